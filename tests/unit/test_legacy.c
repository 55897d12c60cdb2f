/* itwinai's computation_fraction: which names it calls what, averages from a log, its files, its formula. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyze/device/legacy_internal.h"
#include "log_maker.h"
#include "table_view.h"

/* ---- names ---- */

static void names_are_called_what_upstream_calls_them(void **state)
{
    (void)state;
    enum { COMPUTES = MAREY__LEGACY_COMPUTATION, COMMUNICATES = MAREY__LEGACY_COMMUNICATION };
    static const struct {
        const char *name;
        unsigned class;
    } want[] = {
        {"aten::mm", COMPUTES},
        {"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >",
         COMPUTES},
        {"autograd::engine::evaluate_function: AddmmBackward0", COMPUTES},
        {"torch::autograd::AccumulateGrad", COMPUTES},
        {"void c10::x", COMPUTES},
        {"ampere_sgemm_128x64_nn", 0},
        {"cutlass::Kernel2<x>", 0},
        {"void cub::DeviceReduceKernel<x>", 0},
        {"void cub::DeviceReduceKernel<x, at::y>", COMPUTES}, /* an argument happens to have it */
        {"void (anonymous namespace)::softmax_warp_forward<float>", 0},
        {"at::native::x", 0}, /* no blank before it */
        {"xat::y", 0},
        {"x\tat::y", COMPUTES},
        {"x at:", 0},
        {"triton_poi_fused_add_0", 0},
        {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", 0},
        {"nccl:all_reduce", COMMUNICATES},
        {"nccl:broadcast", COMMUNICATES},
        {"nccl:reduce_scatter", COMMUNICATES},
        {"nccl:_reduce_scatter_base", 0},
        {"nccl:_all_gather_base", 0},
        {"nccl:gather", COMMUNICATES},
        {"nccl:all_to_all", 0},
        {"c10d::allreduce_", 0},
        {"cudaStreamSynchronize", COMMUNICATES},
        {"cudaStreamWaitEvent", COMMUNICATES},
        {"Memcpy HtoD (Pageable -> Device)", 0},
        {"Optimizer.step#SGD.step", 0},
        {"cudaLaunchKernel", 0},
        {"ProfilerStep*", MAREY__LEGACY_PROFILER},
        {"ProfilerStep#4", 0},
        {"", 0},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(want); i++)
        if (marey__legacy_class(want[i].name, strlen(want[i].name)) != want[i].class)
            fail_msg("%s", want[i].name);
}

/* ---- files ---- */

struct folder {
    char path[32], file[64];
};

static int make_folder(void **state)
{
    struct folder *f = *state = calloc(1, sizeof *f);
    strcpy(f->path, "/tmp/marey-legacy-XXXXXX");
    return f == NULL || mkdtemp(f->path) == NULL;
}

static int remove_folder(void **state)
{
    struct folder *f = *state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", f->path);
    const int status = system(command);
    free(f);
    return status;
}

static const char *write_file(struct folder *f, const char *name, const char *text)
{
    snprintf(f->file, sizeof f->file, "%s/%s", f->path, name);
    FILE *out = fopen(f->file, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    return f->file;
}

#define NAMES                                                                                      \
    "name,node_id,self_cuda_time_total,cuda_time_total,cuda_time_total_str,calls,strategy,num_"    \
    "gpus,"                                                                                        \
    "global_rank\n"

static const char averages[] =
    NAMES "aten::mm,-1,60.0,60.0,60.000us,3,torch-ddp,2,0\n"
          "\"void at::native::f<4, \"\"x\"\">\",-1,20.5,20.5,20.500us,3,torch-ddp,2,0\n"
          "sgemm,-1,19.5,19.5,19.500us,3,torch-ddp,2,1\n"
          "ProfilerStep*,-1,900.0,900.0,900.000us,1,torch-ddp,2,1\n"
          "nccl:all_reduce,-1,100.0,100.0,100.000us,1,torch-ddp,2,1\n"
          "aten::mm,-1,5,5,5us,1,horovod,4,0\r\n";

static void expect_near(double value, double want)
{
    assert_true(value > want - 1e-9 && value < want + 1e-9);
}

static void expect_fractions(const marey_table *table)
{
    assert_int_equal(marey_table_n_rows(table), 5);
    assert_string_equal(table_cell(table, 0, "strategy").as.text, "torch-ddp");
    assert_int_equal(table_cell(table, 0, "num_gpus").as.u64, 2);
    assert_true(table_cell(table, 0, "rank").is_null);
    expect_near(table_cell(table, 0, "computation_fraction").as.f64, 80.5 / 200);
    expect_near(table_cell(table, 0, "computation_vs_communication").as.f64, 80.5 / 180.5);
    assert_int_equal(table_cell(table, 0, "rows").as.u64, 5);
    assert_string_equal(table_cell(table, 1, "strategy").as.text, "horovod");
    assert_int_equal(table_cell(table, 1, "num_gpus").as.u64, 4);
    expect_near(table_cell(table, 1, "computation_fraction").as.f64, 1);
    assert_int_equal(table_cell(table, 2, "rank").as.i64, 0);
    expect_near(table_cell(table, 2, "computation_fraction").as.f64, 1);
    assert_int_equal(table_cell(table, 3, "rank").as.i64, 1);
    expect_near(table_cell(table, 3, "computation_fraction").as.f64, 0);
}

static marey_table *read_one(const char *path, struct marey_legacy_source *source)
{
    marey_table *table = NULL;
    assert_int_equal(marey_legacy_read(&path, 1, &table, source), MAREY_OK);
    return table;
}

static void fractions_are_those_of_the_formula(void **state)
{
    struct marey_legacy_source source = {0, 9};
    marey_table *table = read_one(write_file(*state, "a.csv", averages), &source);
    expect_fractions(table);
    assert_int_equal(source.n_dropped, 0);
    marey_table_destroy(table);
}

/* Older versions wrote the row's number first, without a name for that. */
static void a_leading_column_without_a_name_is_left_out(void **state)
{
    static const char text[] = ",name,node_id,self_cuda_time_total,strategy,num_gpus\n"
                               "0,aten::mm,-1,3.0,deepspeed,8.0\n"
                               "1,sgemm,-1,1.0,deepspeed,8.0";
    marey_table *table = read_one(write_file(*state, "old.csv", text), NULL);
    assert_int_equal(marey_table_n_rows(table), 1); /* ranks are not said */
    assert_int_equal(table_cell(table, 0, "num_gpus").as.u64, 8);
    expect_near(table_cell(table, 0, "computation_fraction").as.f64, 0.75);
    marey_table_destroy(table);
}

static void rows_that_lack_something_are_counted_and_left_out(void **state)
{
    static const char text[] = NAMES
        "aten::mm,-1,60.0,60.0,x,3,torch-ddp,2,0\n"
        "torn,-1,1\n"
        "no strategy,-1,1.0,1.0,x,3,,2,0\n"
        "no number,-1,1.0,1.0,x,3,torch-ddp,,0\n"
        "half a GPU,-1,1.0,1.0,x,3,torch-ddp,1.5,0\n"
        "no time,-1,nan,1.0,x,3,torch-ddp,2,0\n"
        "for ever,-1,inf,1.0,x,3,torch-ddp,2,0\n"
        "a word,-1,long,1.0,x,3,torch-ddp,2,0\n"
        "\n"
        "name,node_id,self_cuda_time_total,cuda_time_total,x,calls,strategy,num_gpus,global_rank\n"
        "\"over\nlines\",-1,20.0,1.0,x,3,torch-ddp,2,0\n";
    struct marey_legacy_source source = {0};
    marey_table *table = read_one(write_file(*state, "a.csv", text), &source);
    assert_int_equal(source.n_dropped, 8);
    assert_int_equal(table_cell(table, 0, "rows").as.u64, 2);
    expect_near(table_cell(table, 0, "computation_fraction").as.f64, 0.75);
    marey_table_destroy(table);
}

static void files_that_are_something_else_are_named(void **state)
{
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"", "it is empty"},
        {"\n\n", "no line of names"},
        {"name,calls\nx,1\n", "has no column self_cuda_time_total"},
        {"name,self_cuda_time_total,num_gpus\nx,1,1\n", "has no column strategy"},
        {NAMES "\"x,-1,1\n", "ends within quotes"},
        {",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\n",
         "64 fields"},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(bad); i++) {
        const char *path = write_file(*state, "bad.csv", bad[i].text);
        marey_table *table = NULL;
        assert_int_equal(marey_legacy_read(&path, 1, &table, NULL), MAREY_EFORMAT);
        assert_null(table);
        assert_non_null(strstr(marey_last_error(), bad[i].part));
        assert_non_null(strstr(marey_last_error(), path));
    }
    const char *missing = "/tmp/marey-no-such-file.csv";
    marey_table *table = NULL;
    assert_int_equal(marey_legacy_read(&missing, 1, &table, NULL), MAREY_EIO);
}

static void folders_are_searched(void **state)
{
    struct folder *f = *state;
    const char *folder = f->path;
    marey_table *table = NULL;
    assert_int_equal(marey_legacy_is_file(folder), 0);
    assert_int_equal(marey_legacy_read(&folder, 1, &table, NULL), MAREY_EFORMAT);
    char inner[64];
    snprintf(inner, sizeof inner, "%s/run", f->path);
    mkdir(inner, 0777);
    write_file(f, "run/averages.csv", averages);
    write_file(f, "epochtime_ddp_1N.csv", "epoch_id,time,name,nodes\n1,2,3,4\n");
    write_file(f, "note.txt", "nothing");
    assert_int_equal(marey_legacy_is_file(folder), 1);
    assert_int_equal(marey_legacy_is_file("x.csv"), 1);
    assert_int_equal(marey_legacy_is_file("x.csv.gz"), 1);
    assert_int_equal(marey_legacy_is_file("x.json"), 0);
    assert_int_equal(marey_legacy_read(&folder, 1, &table, NULL), MAREY_OK);
    expect_fractions(table);
    marey_table_destroy(table);
    write_file(f, "run/broken.csv", NAMES "\"x");
    assert_int_equal(marey_legacy_read(&folder, 1, &table, NULL), MAREY_EFORMAT);
}

/* ---- recordings ---- */

enum { STEP = 1, OPERATOR, INNER, LAUNCH, GEMM, NATIVE, REDUCE, FRAME };
enum { MAIN = 0, STREAM };

/* aten::linear around aten::mm, which launches a kernel of 30; then a fill of 10, and an annotation on the device. */
static marey_recording *make_recording(void)
{
    static struct log_maker log;
    marey_recording *recording = NULL;
    log_put_process(&log, "world_size", "2");
    log_put_site_of(&log, STEP, "ProfilerStep#3", "user_annotation", "");
    log_put_site_of(&log, OPERATOR, "aten::linear", "cpu_op", "");
    log_put_site_of(&log, INNER, "aten::mm", "cpu_op", "");
    log_put_site_of(&log, LAUNCH, "cudaLaunchKernel", "cuda_runtime", "");
    log_put_site_of(&log, GEMM, "sgemm", "kernel", "");
    log_put_site_of(&log, NATIVE, "void at::native::fill", "kernel", "");
    log_put_site_of(&log, REDUCE, "nccl:all_reduce", "user_annotation", "");
    log_put_site_of(&log, FRAME, "train.py(3): step", "python_function", "");
    log_put_lane(&log, MAIN, 100, "main");
    log_put_stream(&log, STREAM, 0, 7, "");
    log_put_moment(&log, 0, 0);
    log_put_moment(&log, 1000000000, 1000000000);
    log_begin(&log, 0, STEP);
    log_begin(&log, 1, FRAME);
    log_begin(&log, 10, OPERATOR);
    log_begin(&log, 20, INNER);
    log_begin(&log, 30, LAUNCH);
    log_launch(&log, 30, 1);
    log_end(&log, 40, LAUNCH);
    log_end(&log, 50, INNER);
    log_begin(&log, 60, LAUNCH);
    log_launch(&log, 60, 2);
    log_end(&log, 70, LAUNCH);
    log_end(&log, 80, OPERATOR);
    log_end(&log, 90, FRAME);
    log_end(&log, 100, STEP);
    log_put_words(&log, MAIN, 0);
    log_work(&log, 50000, GEMM, MAREY_WORK_KERNEL, 30000, 1, 0);
    log_work(&log, 50000, STEP, MAREY_WORK_ANNOTATION, 60000, 0, 0);
    log_work(&log, 80000, NATIVE, MAREY_WORK_KERNEL, 10000, 2, 0);
    log_work(&log, 90000, REDUCE, MAREY_WORK_ANNOTATION, 20000, 0, 0);
    log_put_words(&log, STREAM, 0);
    log_put_end(&log, "stop");
    assert_int_equal(log_open(&log, &recording), MAREY_OK);
    log_maker_fini(&log);
    memset(&log, 0, sizeof log);
    return recording;
}

static void averages_are_those_of_torch(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double self_us, total_us;
        uint64_t calls;
    } want[] = {
        {"ProfilerStep*", 60, 60, 1}, /* on the device */
        {"aten::mm", 30, 30, 1},
        {"sgemm", 30, 30, 1},
        {"nccl:all_reduce", 20, 20, 1},
        {"aten::linear", 10, 40, 1},
        {"void at::native::fill", 10, 10, 1},
        {"ProfilerStep*", 0, 40, 1}, /* on the host */
        {"cudaLaunchKernel", 0, 0, 2},
    };
    marey_recording *recording = make_recording();
    marey_table *table = NULL, *legacy = NULL;
    assert_int_equal(marey_averages_create(&recording, 1, "torch-ddp", &table), MAREY_OK);
    static const char *const names[] = {"name",
                                        "node_id",
                                        "self_cuda_time_total",
                                        "cuda_time_total",
                                        "cuda_time_total_str",
                                        "calls",
                                        "strategy",
                                        "num_gpus",
                                        "global_rank"};
    assert_int_equal(marey_table_n_columns(table), MAREY__COUNT_OF(names));
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++)
        assert_string_equal(marey_table_column(table, i)->name, names[i]);
    assert_int_equal(marey_table_n_rows(table), MAREY__COUNT_OF(want));
    for (size_t i = 0; i < MAREY__COUNT_OF(want); i++) {
        assert_string_equal(table_cell(table, i, "name").as.text, want[i].name);
        assert_true(table_cell(table, i, "self_cuda_time_total").as.f64 == want[i].self_us);
        assert_true(table_cell(table, i, "cuda_time_total").as.f64 == want[i].total_us);
        assert_int_equal(table_cell(table, i, "calls").as.u64, want[i].calls);
    }
    assert_string_equal(table_cell(table, 0, "cuda_time_total_str").as.text, "60.000us");
    assert_int_equal(table_cell(table, 0, "num_gpus").as.u64, 2);
    assert_int_equal(table_cell(table, 0, "global_rank").as.i64, 0);
    /* 40 us of work on the device, and the sum is 100 without the step. */
    assert_int_equal(marey_legacy_create(table, &legacy), MAREY_OK);
    expect_near(table_cell(legacy, 0, "computation_fraction").as.f64, 50.0 / 100);
    expect_near(table_cell(legacy, 0, "computation_vs_communication").as.f64, 50.0 / 70);
    marey_table_destroy(legacy);
    marey_table_destroy(table);
    log_close(recording);
}

/* ---- energy ---- */

static const char power_file[] =
    "sample_idx,utilization,power,local_rank,node_idx,num_global_gpus,strategy,probing_interval\n"
    "0,50,100,0,0,1,torch-ddp,2\n1,50,300,0,0,1,torch-ddp,2\n0,50,200,0,0,1,torch-ddp,2\n";

static void old_power_is_integrated_and_never_added_over_repeats(void **state)
{
    const char *path = write_file(*state, "power.csv", power_file);
    marey_table *runs = NULL, *repeats = NULL;
    uint64_t n_dropped = 9;
    assert_int_equal(marey_legacy_energy_read(&path, 1, &runs, &repeats, &n_dropped), MAREY_OK);
    assert_int_equal(n_dropped, 0);
    assert_int_equal(marey_table_n_rows(runs), 2);
    const size_t joules = (size_t)marey_table_find(runs, "joules"),
                 mean = (size_t)marey_table_find(repeats, "mean_j");
    assert_true(marey_table_cell(runs, 0, joules).as.f64 == 800);
    assert_true(marey_table_cell(runs, 1, joules).as.f64 == 400);
    assert_true(marey_table_cell(repeats, 0, mean).as.f64 == 600);
    marey_table_destroy(runs);
    marey_table_destroy(repeats);
}

/* ---- no memory ---- */

static void every_failed_allocation_is_told(void **state)
{
    marey_recording *recording = make_recording();
    char first[256];
    snprintf(first, sizeof first, "%s", write_file(*state, "power.csv", power_file));
    const char *power = first, *path = write_file(*state, "a.csv", averages);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey_table *table = NULL, *legacy = NULL, *of_file = NULL, *runs = NULL, *repeats = NULL;
        uint64_t n_dropped;
        marey__alloc_fail_nth(nth);
        status = marey_averages_create(&recording, 1, NULL, &table);
        if (status == MAREY_OK)
            status = marey_legacy_create(table, &legacy);
        if (status == MAREY_OK)
            status = marey_legacy_read(&path, 1, &of_file, NULL);
        if (status == MAREY_OK)
            status = marey_legacy_energy_read(&power, 1, &runs, &repeats, &n_dropped);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        marey_table_destroy(table);
        marey_table_destroy(legacy);
        marey_table_destroy(of_file);
        marey_table_destroy(runs);
        marey_table_destroy(repeats);
    }
    log_close(recording);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_called_what_upstream_calls_them),
        TEST(fractions_are_those_of_the_formula),
        TEST(a_leading_column_without_a_name_is_left_out),
        TEST(rows_that_lack_something_are_counted_and_left_out),
        TEST(files_that_are_something_else_are_named),
        TEST(folders_are_searched),
        cmocka_unit_test(averages_are_those_of_torch),
        TEST(old_power_is_integrated_and_never_added_over_repeats),
        TEST(every_failed_allocation_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
