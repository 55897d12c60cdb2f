/* Reasons of idle time add up to the idle time of devices in both windows; collectives of ranks are
 * compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "log_maker.h"
#include "table_view.h"
#include <marey/report.h>

enum { STEP = 1, OPERATOR, LAUNCH, DATA, GEMM, REDUCE };
enum { MAIN = 0, STREAM };
enum { US = 1000, N_STEPS = 3 };

static void put_launch(struct log_maker *log, uint64_t begin, uint64_t correlation)
{
    log_begin(log, begin * US, LAUNCH);
    log_launch(log, begin * US, correlation);
    log_end(log, (begin + 5) * US, LAUNCH);
}

/* Steps of 1000 us: 300 of data, a kernel of 200, an all-reduce that ends together on all ranks. */
static marey_recording *make_rank(const char *rank, uint64_t late)
{
    static struct log_maker log;
    marey_recording *recording = NULL;
    log_put_pairs(&log, MAREY__BLOCK_LOG,
                  (const char *const[]){"pid", "100", "rank", rank, "world_size", "2", "host", "h",
                                        "clock", "tsc", "tick_hz", "1000000000", NULL});
    log_put_site_of(&log, STEP, "ProfilerStep#1", "user_annotation", "");
    log_put_site_of(&log, OPERATOR, "aten::mm", "cpu_op", "");
    log_put_site_of(&log, LAUNCH, "cudaLaunchKernel", "cuda_runtime", "");
    log_put_site_of(&log, DATA, "enumerate(DataLoader)", "user_annotation", "");
    log_put_site_of(&log, GEMM, "sgemm", "kernel", "");
    log_put_site_of(&log, REDUCE, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "kernel", "");
    log_put_lane(&log, MAIN, 100, "main");
    log_put_stream(&log, STREAM, 0, 7, "");
    log_put_moment(&log, 0, 0);
    log_put_moment(&log, 1000000000, 1000000000);
    for (uint64_t i = 0; i < N_STEPS; i++) {
        const uint64_t at = 1000 * i;
        log_iteration_begin(&log, at * US, i);
        log_begin(&log, at * US, DATA);
        log_end(&log, (at + 300) * US, DATA);
        log_begin(&log, (at + 310) * US, OPERATOR);
        put_launch(&log, at + 320, 2 * i + 1);
        put_launch(&log, at + 330, 2 * i + 2);
        log_end(&log, (at + 340) * US, OPERATOR);
        log_iteration(&log, (at + 1000) * US, i, false, 0);
    }
    log_put_words(&log, MAIN, 0);
    for (uint64_t i = 0; i < N_STEPS; i++) {
        const uint64_t at = 1000 * i;
        log_work(&log, (at + 330) * US, GEMM, MAREY_WORK_KERNEL, (200 + late) * US, 2 * i + 1, 0);
        log_work(&log, (at + 530 + late) * US, REDUCE, MAREY_WORK_KERNEL, (170 - late) * US,
                 2 * i + 2, 0);
    }
    log_put_words(&log, STREAM, 0);
    log_put_end(&log, "stop");
    assert_int_equal(log_open(&log, &recording), MAREY_OK);
    log_maker_fini(&log);
    memset(&log, 0, sizeof log);
    return recording;
}

struct fixture {
    marey_recording *ranks[2];
    marey_report *b;
};

static int setup(void **state)
{
    struct fixture *f = *state = calloc(1, sizeof *f);
    f->ranks[0] = make_rank("0", 0);
    f->ranks[1] = make_rank("1", 70);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    marey_report_destroy(f->b);
    log_close(f->ranks[0]);
    log_close(f->ranks[1]);
    free(f);
    return 0;
}

static void break_down(struct fixture *f, const char *window)
{
    const struct marey_report_options options = {.settings = (const char *const[]){window, NULL}};
    marey_report_destroy(f->b);
    assert_int_equal(marey_report_create("breakdown", f->ranks, 2, &options, &f->b), MAREY_OK);
}

static struct marey_cell cell(struct fixture *f, const char *table, size_t row, const char *column)
{
    return table_cell(marey_report_table(f->b, table), row, column);
}

static uint64_t idle_us(struct fixture *f, int64_t rank, const char *reason)
{
    uint64_t us = 0;
    for (size_t i = 0; i < marey_table_n_rows(marey_report_table(f->b, "idle")); i++)
        if (cell(f, "idle", i, "rank").as.i64 == rank &&
            (reason == NULL || strcmp(cell(f, "idle", i, "reason").as.text, reason) == 0))
            us += cell(f, "idle", i, "ns").as.u64 / US;
    return us;
}

/* Of rank 0 from its first work to its last: twice what lies between two steps. */
static void reasons_add_up_to_the_idle_time_of_the_span(void **state)
{
    struct fixture *f = *state;
    break_down(f, NULL);
    assert_int_equal(idle_us(f, 0, "data_loading"), 2 * 300);
    assert_int_equal(idle_us(f, 0, "host_bound"), 2 * (300 + 20));
    assert_int_equal(idle_us(f, 0, "launch_latency"), 2 * 10);
    for (int64_t rank = 0; rank < 2; rank++)
        assert_int_equal(idle_us(f, rank, NULL) * US,
                         cell(f, "devices", 2 * (size_t)rank, "idle_ns").as.u64);
}

static void reasons_add_up_to_the_idle_time_of_the_steps(void **state)
{
    struct fixture *f = *state;
    break_down(f, "window=steps");
    assert_int_equal(idle_us(f, 0, "data_loading"), 3 * 300);
    assert_int_equal(idle_us(f, 0, "host_bound"), 3 * (300 + 20));
    assert_int_equal(idle_us(f, 0, "launch_latency"), 3 * 10);
    for (int64_t rank = 0; rank < 2; rank++)
        assert_int_equal(idle_us(f, rank, NULL) * US,
                         cell(f, "devices", 2 * (size_t)rank + 1, "idle_ns").as.u64);
    uint64_t by_step = 0;
    for (size_t i = 0; i < marey_table_n_rows(marey_report_table(f->b, "idle_by_step")); i++)
        by_step += cell(f, "idle_by_step", i, "ns").as.u64 / US;
    assert_int_equal(by_step, idle_us(f, 0, NULL) + idle_us(f, 1, NULL));
}

/* The kernels have no more than their names. They are matched though the work is gone by then. */
static void ranks_of_several_recordings_are_compared(void **state)
{
    struct fixture *f = *state;
    break_down(f, NULL);
    assert_string_equal(cell(f, "collectives", 0, "what").as.text, "all_reduce");
    assert_int_equal(cell(f, "collectives", 0, "count").as.u64, N_STEPS);
    assert_int_equal(cell(f, "collectives", 0, "transfer_ns").as.u64, N_STEPS * 100 * US);
    assert_int_equal(cell(f, "collectives", 0, "skew_ns").as.u64, 70 * US);
    assert_string_equal(cell(f, "collectives", 0, "slowest_rank").as.text, "rank 1 (h)");
    assert_int_equal(cell(f, "collective_ranks", 0, "wait_ns").as.u64, N_STEPS * 70 * US);
    assert_int_equal(cell(f, "collective_ranks", 1, "wait_ns").as.u64, 0);
}

static void repeats_of_a_rank_are_not_compared(void **state)
{
    struct fixture *f = *state;
    log_close(f->ranks[1]);
    f->ranks[1] = make_rank("0", 70);
    break_down(f, NULL);
    assert_int_equal(cell(f, "collectives", 0, "count").as.u64, 0);
    assert_int_equal(cell(f, "collectives", 0, "partial").as.u64, 2 * N_STEPS);
    assert_true(cell(f, "collective_ranks", 0, "wait_ns").is_null);
}

static void print(struct fixture *f, char *text, size_t size, bool is_json)
{
    FILE *out = fmemopen(text, size, "w");
    assert_non_null(out);
    assert_int_equal(marey_report_write(f->b, is_json ? "json" : "text", NULL, out), MAREY_OK);
    fclose(out);
}

static void the_answer_names_reasons_and_operators(void **state)
{
    struct fixture *f = *state;
    static char text[65536];
    break_down(f, NULL);
    print(f, text, sizeof text, false);
    assert_non_null(strstr(text, "why idle"));
    assert_non_null(strstr(text, "enumerate(DataLoader) 100 %"));
    assert_non_null(strstr(text, "aten::mm"));
    assert_non_null(strstr(text, "rank 1 (h)  100 %"));
    assert_non_null(strstr(text, "skew by one common clock"));
    print(f, text, sizeof text, true);
    assert_non_null(strstr(text, "\"idle_by_operator\": ["));
    assert_non_null(
        strstr(text, "\"reason\": \"data_loading\", \"operator\": \"enumerate(DataLoader)\""));
    assert_non_null(strstr(text, "\"collectives\": ["));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(reasons_add_up_to_the_idle_time_of_the_span),
        TEST(reasons_add_up_to_the_idle_time_of_the_steps),
        TEST(ranks_of_several_recordings_are_compared),
        TEST(repeats_of_a_rank_are_not_compared),
        TEST(the_answer_names_reasons_and_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
