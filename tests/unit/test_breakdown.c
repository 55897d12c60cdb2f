/* The breakdown from logs to tables, text and JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_maker.h"
#include "table_view.h"
#include <marey/report.h>

enum { STEP = 1, OPERATOR, LAUNCH, GEMM, REDUCE, COPY, GROUP_A, GROUP_B, SEND };
enum { MAIN = 0, FIRST_STREAM };

static void put_sites(struct log_maker *log)
{
    log_put_site_of(log, STEP, "train step", "user_annotation", "");
    log_put_site_of(log, OPERATOR, "aten::mm", "cpu_op", "");
    log_put_site_of(log, LAUNCH, "cudaLaunchKernel", "cuda_runtime", "");
    log_put_site_of(log, GEMM, "ampere_sgemm_128x64_nn", "kernel", "");
    log_put_site_of(log, REDUCE, "ncclKernel_AllReduce_RING_LL_Sum_float", "kernel", "");
    log_put_site_of(log, COPY, "Memcpy HtoD", "gpu_memcpy", "");
    log_put_site_of(log, GROUP_A, "data parallel", "", "0,1");
    log_put_site_of(log, GROUP_B, "tensor parallel", "", "0,1,2,3");
    log_put_site_of(log, SEND, "exchange", "communication", "");
}

/* A process of `rank`; "-1" for none. */
static void put_process(struct log_maker *log, const char *rank, const char *world_size)
{
    const char *const pairs[] = {"pid",      "100",   "rank", rank,      "world_size",
                                 world_size, "clock", "tsc",  "tick_hz", "1000000000",
                                 "command",  "train", NULL};
    log_put_pairs(log, MAREY__BLOCK_LOG, pairs);
    put_sites(log);
    log_put_lane(log, MAIN, 100, "main");
    log_put_moment(log, 0, 0);
    log_put_moment(log, 1000000000, 1000000000);
}

static int setup(void **state)
{
    struct log_maker *log = *state = calloc(1, sizeof *log);
    if (log != NULL)
        put_process(log, "0", "1");
    return log == NULL;
}

static int teardown(void **state)
{
    log_maker_fini(*state);
    free(*state);
    return 0;
}

/* ---- looking into tables ---- */

static struct marey_cell cell(marey_report *b, const char *table, size_t row, const char *column)
{
    return table_cell(marey_report_table(b, table), row, column);
}

static uint64_t number(marey_report *b, const char *table, size_t row, const char *column)
{
    return table_number(marey_report_table(b, table), row, column);
}

static size_t n_rows(marey_report *b, const char *table)
{
    return marey_table_n_rows(marey_report_table(b, table));
}

static bool has_warning(marey_report *b, const char *part)
{
    for (size_t row = 0; row < n_rows(b, "warnings"); row++)
        if (strstr(cell(b, "warnings", row, "text").as.text, part) != NULL)
            return true;
    return false;
}

/* Values of one row, in their usual order. */
struct numbers {
    uint64_t span, compute, comm_total, exposed_comm, hidden_comm, mem_total, exposed_mem, idle;
};

static void expect_numbers(marey_report *b, const char *table, size_t row, const struct numbers *want)
{
    assert_int_equal(number(b, table, row, "span_ns"), want->span);
    assert_int_equal(number(b, table, row, "compute_ns"), want->compute);
    assert_int_equal(number(b, table, row, "comm_total_ns"), want->comm_total);
    assert_int_equal(number(b, table, row, "exposed_comm_ns"), want->exposed_comm);
    assert_int_equal(number(b, table, row, "hidden_comm_ns"), want->hidden_comm);
    assert_int_equal(number(b, table, row, "mem_total_ns"), want->mem_total);
    assert_int_equal(number(b, table, row, "exposed_mem_ns"), want->exposed_mem);
    assert_int_equal(number(b, table, row, "idle_ns"), want->idle);
    assert_int_equal(want->compute + want->exposed_comm + want->exposed_mem + want->idle, want->span);
}

static void expect_summary(marey_report *b, uint64_t computation, uint64_t communication,
                           uint64_t other)
{
    const uint64_t want[] = {computation, communication, other};
    const double whole = (double)(computation + communication + other);
    assert_int_equal(n_rows(b, "summary"), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(number(b, "summary", i, "ns"), want[i]);
        assert_true(cell(b, "summary", i, "share").as.f64 == (double)want[i] / whole);
    }
}

static marey_report *break_down(struct log_maker *log, const char *setting)
{
    marey_recording *recording = NULL;
    marey_report *b = NULL;
    log_put_end(log, "stop");
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    const struct marey_report_options options = {.settings = (const char *const[]){setting, NULL}};
    assert_int_equal(marey_report_create("breakdown", &recording, 1, &options, &b), MAREY_OK);
    log_close(recording); /* the breakdown stands alone */
    return b;
}

/* ---- the worked example ---- */

/* COMP [0,40) [30,60) [100,120); COMM [50,90) [110,130); MEM [85,95) [125,140), shifted; a step of 150. */
static void put_worked_example(struct log_maker *log, uint64_t at)
{
    log_put_stream(log, FIRST_STREAM, 0, 7, "");
    log_put_stream(log, FIRST_STREAM + 1, 0, 8, "");
    log_put_stream(log, FIRST_STREAM + 2, 0, 9, "");
    log_iteration_begin(log, at, 0);
    log_begin(log, at, LAUNCH);
    log_launch(log, at, 1);
    log_end(log, at + 1, LAUNCH);
    log_iteration(log, at + 150, 0, false, 0);
    log_put_words(log, MAIN, 0);
    log_work(log, at, GEMM, MAREY_WORK_KERNEL, 40, 1, 0);
    log_work(log, at + 100, GEMM, MAREY_WORK_KERNEL, 20, 1, 0);
    log_put_words(log, FIRST_STREAM, 0);
    log_work(log, at + 30, GEMM, MAREY_WORK_KERNEL, 30, 1, 0);
    log_work(log, at + 85, COPY, MAREY_WORK_COPY, 10, 1, 64);
    log_work(log, at + 125, COPY, MAREY_WORK_SET, 15, 1, 64);
    log_put_words(log, FIRST_STREAM + 1, 0);
    log_work(log, at + 50, REDUCE, MAREY_WORK_KERNEL, 40, 1, 0);
    log_work(log, at + 110, REDUCE, MAREY_WORK_KERNEL, 20, 1, 0);
    log_put_words(log, FIRST_STREAM + 2, 0);
}

static void the_worked_example_is_exact(void **state)
{
    put_worked_example(*state, 1000);
    marey_report *b = break_down(*state, "window=steps");
    static const char *const atoms[] = {"atom_none_ns", "atom_c_ns",  "atom_n_ns",  "atom_cn_ns",
                                        "atom_m_ns",    "atom_cm_ns", "atom_nm_ns", "atom_cnm_ns"};
    static const uint64_t want[] = {15, 60, 30, 20, 15, 0, 10, 0};
    assert_int_equal(n_rows(b, "devices"), 2);
    assert_string_equal(cell(b, "devices", 0, "window").as.text, "gpu_span");
    assert_string_equal(cell(b, "devices", 1, "window").as.text, "steps");
    expect_numbers(b, "devices", 1, &(struct numbers){150, 80, 60, 40, 20, 25, 15, 15});
    expect_numbers(b, "devices", 0, &(struct numbers){140, 80, 60, 40, 20, 25, 15, 5});
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(number(b, "devices", 1, atoms[i]), want[i]);
    assert_int_equal(number(b, "devices", 1, "sum_of_durations_ns"), 175);
    assert_int_equal(number(b, "devices", 1, "busy_ns"), 135);
    assert_true(cell(b, "devices", 1, "overlap_ratio").as.f64 == 20.0 / 60);
    assert_true(cell(b, "devices", 1, "concurrency").as.f64 == 175.0 / 135);
    assert_int_equal(number(b, "devices", 1, "n_work"), 7);
    expect_summary(b, 80, 40, 30);
    marey_report_destroy(b);
}

static void what_rules_caught_is_reported(void **state)
{
    put_worked_example(*state, 1000);
    marey_report *b = break_down(*state, NULL);
    const struct {
        const char *rule, *class;
        uint64_t count, ns;
    } want[] = {{"memory-copy", "copy", 1, 10},
                {"memory-set", "copy", 1, 15},
                {"nccl", "communication", 2, 60},
                {"cublas-gemm", "compute", 3, 90}};
    assert_int_equal(n_rows(b, "rules"), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(cell(b, "rules", i, "rule").as.text, want[i].rule);
        assert_string_equal(cell(b, "rules", i, "class").as.text, want[i].class);
        assert_int_equal(number(b, "rules", i, "count"), want[i].count);
        assert_int_equal(number(b, "rules", i, "ns"), want[i].ns);
    }
    marey_report_destroy(b);
}

/* ---- parts ---- */

/* Two steps, [1000,1100) and [1100,1200); the first one's last kernel runs on into the second. */
static void put_two_steps(struct log_maker *log)
{
    log_put_stream(log, FIRST_STREAM, 0, 7, "compute");
    log_put_stream(log, FIRST_STREAM + 1, 0, 20, "");
    for (uint64_t i = 0; i < 2; i++) {
        const uint64_t at = 1000 + 100 * i;
        log_iteration_begin(log, at, 5 + i);
        log_begin(log, at, STEP);
        log_begin(log, at + 10, OPERATOR);
        log_begin(log, at + 20, LAUNCH);
        log_launch(log, at + 20, 1 + i);
        log_end(log, at + 30, LAUNCH);
        log_end(log, at + 40, OPERATOR);
        log_begin(log, at + 50, LAUNCH);
        log_launch(log, at + 50, 11 + i);
        log_end(log, at + 60, LAUNCH);
        log_end(log, at + 100, STEP);
        log_iteration(log, at + 100, 5 + i, false, 0);
    }
    log_begin(log, 1300, LAUNCH);
    log_launch(log, 1300, 21);
    log_end(log, 1310, LAUNCH);
    log_put_words(log, MAIN, 0);
    log_work(log, 1030, GEMM, MAREY_WORK_KERNEL, 40, 1, 0);
    log_work(log, 1130, GEMM, MAREY_WORK_KERNEL, 40, 2, 0);
    log_work(log, 1310, GEMM, MAREY_WORK_KERNEL, 5, 21, 0);
    log_put_words(log, FIRST_STREAM, 0);
    log_work(log, 1060, REDUCE, MAREY_WORK_KERNEL, 90, 11, 0); /* to 1150 */
    log_communication(
        log, 1060,
        &(struct marey_communication){.group = GROUP_A, .what = MAREY_COLLECTIVE_ALL_REDUCE});
    log_work(log, 1160, REDUCE, MAREY_WORK_KERNEL, 20, 12, 0); /* to 1180 */
    log_communication(
        log, 1160,
        &(struct marey_communication){.group = GROUP_B, .what = MAREY_COLLECTIVE_ALL_REDUCE});
    log_put_words(log, FIRST_STREAM + 1, 0);
}

static void work_belongs_to_the_step_that_launched_it(void **state)
{
    put_two_steps(*state);
    marey_report *b = break_down(*state, "by=step");
    assert_int_equal(n_rows(b, "by"), 2);
    assert_int_equal(number(b, "by", 0, "step"), 5);
    assert_int_equal(number(b, "by", 1, "step"), 6);
    /* [1000,1150): computes [1030,1070), communicates [1060,1150) */
    expect_numbers(b, "by", 0, &(struct numbers){150, 40, 90, 80, 10, 0, 0, 30});
    /* [1100,1200): the other step's kernel is not its own */
    expect_numbers(b, "by", 1, &(struct numbers){100, 40, 20, 10, 10, 0, 0, 50});
    /* The union: [1000,1200), in which [1060,1150) counts once */
    assert_string_equal(cell(b, "devices", 1, "window").as.text, "steps");
    expect_numbers(b, "devices", 1, &(struct numbers){200, 80, 110, 70, 40, 0, 0, 50});
    assert_true(has_warning(b, "launched outside of all steps: 1 of rank 0 ("));
    marey_report_destroy(b);
}

static size_t row_of(marey_report *b, const char *column, const char *text)
{
    return table_row(marey_report_table(b, "by"), column, text);
}

static void work_belongs_to_every_range_around_its_launch(void **state)
{
    put_two_steps(*state);
    marey_report *b = break_down(*state, "by=range");
    assert_int_equal(n_rows(b, "by"), 2);
    /* Both steps, extended to their last work: [1000,1150) and [1100,1200). */
    expect_numbers(b, "by", row_of(b, "range", "train step"),
                   &(struct numbers){200, 80, 110, 70, 40, 0, 0, 50});
    /* [1010,1070) and [1110,1170) */
    expect_numbers(b, "by", row_of(b, "range", "aten::mm"),
                   &(struct numbers){120, 80, 0, 0, 0, 0, 0, 40});
    assert_int_equal(row_of(b, "range", "train step"), 0); /* most work first */
    marey_report_destroy(b);
}

static void a_stream_has_its_own_work_alone(void **state)
{
    put_two_steps(*state);
    marey_report *b = break_down(*state, "by=stream");
    assert_int_equal(n_rows(b, "by"), 2);
    assert_int_equal(number(b, "by", 0, "stream"), 7);
    assert_string_equal(cell(b, "by", 0, "stream_name").as.text, "compute");
    expect_numbers(b, "by", 0, &(struct numbers){285, 85, 0, 0, 0, 0, 0, 200});
    expect_numbers(b, "by", 1, &(struct numbers){285, 0, 110, 110, 0, 0, 0, 175});
    marey_report_destroy(b);
}

static void a_group_has_its_communication_beside_all_else(void **state)
{
    put_two_steps(*state);
    marey_report *b = break_down(*state, "by=process-group");
    assert_int_equal(n_rows(b, "by"), 2);
    expect_numbers(b, "by", row_of(b, "group", "data parallel"),
                   &(struct numbers){285, 85, 90, 60, 30, 0, 0, 140});
    expect_numbers(b, "by", row_of(b, "group", "tensor parallel"),
                   &(struct numbers){285, 85, 20, 10, 10, 0, 0, 190});
    marey_report_destroy(b);
}

/* ---- why idle, and what ranks do together ---- */

static void the_reasons_add_up_to_the_idle_time(void **state)
{
    put_two_steps(*state);
    marey_report *b = break_down(*state, NULL);
    uint64_t idle = 0, in_steps = 0;
    for (size_t row = 0; row < n_rows(b, "idle"); row++)
        idle += number(b, "idle", row, "ns");
    for (size_t row = 0; row < n_rows(b, "idle_by_step"); row++)
        in_steps += number(b, "idle_by_step", row, "ns");
    assert_int_equal(idle, number(b, "devices", 0, "idle_ns"));
    assert_true(in_steps > 0);
    assert_int_equal(n_rows(b, "collectives"), 2);
    marey_report_destroy(b);
}

/* ---- several devices and ranks ---- */

static void each_device_has_its_row(void **state)
{
    struct log_maker *log = *state;
    for (uint32_t d = 0; d < 10; d++) {
        log_put_stream(log, FIRST_STREAM + d, (int32_t)d, 7, "");
        log_work(log, 100, GEMM, MAREY_WORK_KERNEL, 10 + d, 0, 0);
        log_put_words(log, FIRST_STREAM + d, 0);
    }
    marey_report *b = break_down(log, NULL);
    assert_int_equal(n_rows(b, "devices"), 10);
    for (size_t d = 0; d < 10; d++) {
        assert_int_equal(cell(b, "devices", d, "device").as.i64, d);
        expect_numbers(b, "devices", d, &(struct numbers){10 + d, 10 + d, 0, 0, 0, 0, 0, 0});
        assert_true(cell(b, "devices", d, "overlap_ratio").is_null);
    }
    expect_summary(b, 145, 0, 0);
    marey_report_destroy(b);
}

static void several_ranks_without_communication_are_doubted(void **state)
{
    (void)state;
    struct log_maker logs[2] = {{{0}}, {{0}}};
    marey_recording *recordings[2];
    marey_report *b = NULL;
    for (size_t rank = 0; rank < 2; rank++) {
        put_process(&logs[rank], rank == 0 ? "0" : "1", "-1");
        log_put_stream(&logs[rank], FIRST_STREAM, 0, 7, "");
        log_work(&logs[rank], 100, GEMM, MAREY_WORK_KERNEL, 100 + 50 * rank, 0, 0);
        log_put_words(&logs[rank], FIRST_STREAM, 0);
        log_put_end(&logs[rank], "stop");
        assert_int_equal(log_open(&logs[rank], &recordings[rank]), MAREY_OK);
    }
    assert_int_equal(marey_report_create("breakdown", recordings, 2, NULL, &b), MAREY_OK);
    assert_int_equal(n_rows(b, "devices"), 2);
    assert_int_equal(cell(b, "devices", 1, "rank").as.i64, 1);
    expect_summary(b, 250, 0, 0);
    assert_true(has_warning(b, "no communication was found"));
    for (size_t rank = 0; rank < 2; rank++) {
        log_close(recordings[rank]);
        log_maker_fini(&logs[rank]);
    }
    marey_report_destroy(b);
}

static void one_rank_of_many_is_reported(void **state)
{
    (void)state;
    struct log_maker log = {{0}};
    put_process(&log, "3", "128");
    put_worked_example(&log, 1000);
    marey_report *b = break_down(&log, NULL);
    assert_true(has_warning(b, "1 of 128 ranks is recorded here"));
    assert_false(has_warning(b, "nothing that communicates"));
    assert_int_equal(cell(b, "devices", 0, "rank").as.i64, 3);
    marey_report_destroy(b);
    log_maker_fini(&log);
}

/* ---- no GPU ---- */

static void a_process_without_gpu_is_reported_by_its_ranges(void **state)
{
    struct log_maker *log = *state;
    log->base_tick = 1000;
    log_iteration_begin(log, 1000, 0);
    log_begin(log, 1100, SEND);
    log_end(log, 1150, SEND);
    log_iteration(log, 1200, 0, false, 0);
    log_begin(log, 1300, STEP);
    log_end(log, 1400, STEP);
    log_put_words(log, MAIN, 0);
    marey_report *b = break_down(log, "by=step");
    assert_int_equal(cell(b, "devices", 0, "device").as.i64, -1);
    assert_string_equal(cell(b, "devices", 0, "window").as.text, "process_span");
    expect_numbers(b, "devices", 0, &(struct numbers){400, 350, 50, 50, 0, 0, 0, 0});
    expect_numbers(b, "devices", 1, &(struct numbers){200, 150, 50, 50, 0, 0, 0, 0});
    expect_numbers(b, "by", 0, &(struct numbers){200, 150, 50, 50, 0, 0, 0, 0});
    marey_report_destroy(b);
}

/* Ranges of one name inside another of it count once. */
static void of_a_process_without_gpu_a_range_is_its_time(void **state)
{
    struct log_maker *log = *state;
    log->base_tick = 1000;
    log_begin(log, 1000, STEP);
    log_begin(log, 1010, STEP);
    log_begin(log, 1100, SEND);
    log_end(log, 1150, SEND);
    log_end(log, 1160, STEP);
    log_end(log, 1200, STEP);
    log_begin(log, 1300, STEP);
    log_end(log, 1400, STEP);
    log_put_words(log, MAIN, 0);
    marey_report *b = break_down(log, "by=range");
    assert_int_equal(n_rows(b, "by"), 2);
    expect_numbers(b, "by", row_of(b, "range", "train step"),
                   &(struct numbers){300, 250, 50, 50, 0, 0, 0, 0});
    expect_numbers(b, "by", row_of(b, "range", "exchange"),
                   &(struct numbers){50, 0, 50, 50, 0, 0, 0, 0});
    marey_report_destroy(b);
}

/* ---- errors ---- */

static void expect_failure(struct log_maker *log, const char *setting, marey_status want,
                           const char *part)
{
    marey_recording *recording = NULL;
    marey_report *b = NULL;
    log_put_end(log, "stop");
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    const struct marey_report_options options = {.settings = (const char *const[]){setting, NULL}};
    assert_int_equal(marey_report_create("breakdown", &recording, 1, &options, &b), want);
    assert_null(b);
    assert_non_null(strstr(marey_last_error(), part));
    log_close(recording);
}

static void nothing_to_break_down_is_a_sentence(void **state)
{
    expect_failure(*state, NULL, MAREY_EFORMAT, "no GPU activity and no ranges");
}

static void steps_must_be_there_where_asked_for(void **state)
{
    struct log_maker *log = *state;
    log_put_stream(log, FIRST_STREAM, 0, 7, "");
    log_work(log, 100, GEMM, MAREY_WORK_KERNEL, 10, 0, 0);
    log_put_words(log, FIRST_STREAM, 0);
    expect_failure(log, "window=steps", MAREY_EFORMAT, "has no steps");
}

static void wrong_options_are_reported(void **state)
{
    expect_failure(*state, "by=colour", MAREY_EINVAL, "colour");
    expect_failure(*state, "window=moon", MAREY_EINVAL, "moon");
    expect_failure(*state, "rules=/no/such/file", MAREY_EIO, "/no/such/file");
}

/* ---- text and JSON ---- */

static char *printed(marey_report *b, bool as_json)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_int_equal(marey_report_write(b, as_json ? "json" : "text", NULL, out), MAREY_OK);
    fclose(out);
    return text;
}

static void the_answer_begins_with_three_parts(void **state)
{
    put_worked_example(*state, 1000);
    marey_report *b = break_down(*state, "window=steps");
    char *text = printed(b, false), *json = printed(b, true);
    static const char first[] =
        "computation 80 ns (53.3 %), communication 40 ns (26.7 %), other 30 ns (20.0 %)\n";
    text[sizeof first - 1] = '\0';
    assert_string_equal(text, first);
    assert_non_null(
        strstr(json, "{\n  \"summary\": {\n    \"computation\": {\"ns\": 80, \"seconds\": "));
    assert_non_null(strstr(json,
                           "\"atoms\": {\"none\": 15, \"c\": 60, \"n\": 30, \"cn\": 20, \"m\": "
                           "15, \"cm\": 0, \"nm\": 10, \"cnm\": 0}}"));
    free(text);
    free(json);
    marey_report_destroy(b);
}

/* ---- no memory ---- */

static void every_failed_allocation_is_reported(void **state)
{
    static const char *const bys[] = {NULL, "by=step", "by=range", "by=stream", "by=process-group"};
    marey_recording *recording = NULL;
    put_two_steps(*state);
    log_put_end(*state, "stop");
    assert_int_equal(log_open(*state, &recording), MAREY_OK);
    for (size_t i = 0; i < MAREY__COUNT_OF(bys); i++)
        for (uint64_t nth = 1;; nth++) {
            marey_report *b = NULL;
            marey__alloc_fail_nth(nth);
            const marey_status status = marey_report_create(
                "breakdown", &recording, 1,
                &(struct marey_report_options){.settings = (const char *const[]){bys[i], NULL},
                                               .n_jobs = 1},
                &b);
            marey__alloc_fail_nth(0);
            marey_report_destroy(b);
            if (status == MAREY_OK)
                break;
            assert_int_equal(status, MAREY_ENOMEM);
        }
    log_close(recording);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_worked_example_is_exact),
        TEST(what_rules_caught_is_reported),
        TEST(work_belongs_to_the_step_that_launched_it),
        TEST(work_belongs_to_every_range_around_its_launch),
        TEST(a_stream_has_its_own_work_alone),
        TEST(a_group_has_its_communication_beside_all_else),
        TEST(the_reasons_add_up_to_the_idle_time),
        TEST(each_device_has_its_row),
        cmocka_unit_test(several_ranks_without_communication_are_doubted),
        cmocka_unit_test(one_rank_of_many_is_reported),
        TEST(a_process_without_gpu_is_reported_by_its_ranges),
        TEST(of_a_process_without_gpu_a_range_is_its_time),
        TEST(nothing_to_break_down_is_a_sentence),
        TEST(steps_must_be_there_where_asked_for),
        TEST(wrong_options_are_reported),
        TEST(the_answer_begins_with_three_parts),
        TEST(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
