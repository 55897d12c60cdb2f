/* The report of GPU work: kernels and their shapes, launches by range, waits for the host, gaps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/device/internal.h"
#include "log_maker.h"
#include "table_view.h"

enum { OUTER = 1, INNER = 2, GEMM = 4, COPY = 5, CALL = 6, SMALL = 7, LARGE = 8, EMPTY = 9 };

static int setup(void **state)
{
    struct log_maker *log = *state = calloc(1, sizeof *log);
    if (log == NULL)
        return 1;
    log_put_preamble(log);
    log_put_site_of(log, GEMM, "gemm", "kernel", "");
    log_put_site_of(log, COPY, "Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", "");
    log_put_site_of(log, CALL, "cudaLaunchKernel", "cuda_runtime", "");
    log_put_site_of(log, SMALL,
                    "{\"grid\":[8,1,1],\"block\":[128,1,1],\"registers per thread\":32,"
                    "\"shared memory\":1024,\"graph id\":3}",
                    "details", "");
    log_put_site_of(log, LARGE, "{\"grid\": [64, 2, 1], \"block\": [256, 1, 1]}", "details", "");
    log_put_site_of(log, EMPTY, "{\"graph id\": [1}", "details", "");
    log_put_stream(log, 1, 0, 7, "");
    log_put_stream(log, 2, 0, 13, "copies");
    return 0;
}

static int teardown(void **state)
{
    log_maker_fini(*state);
    free(*state);
    return 0;
}

/* ---- making and looking ---- */

static marey_report *report_of(struct log_maker *log, const char *setting)
{
    marey_recording *recording = NULL;
    marey_report *report = NULL;
    log_put_end(log, "stop");
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    const struct marey_report_options options = {.settings = (const char *const[]){setting, NULL}};
    assert_int_equal(marey_report_create("gpu", &recording, 1, &options, &report), MAREY_OK);
    log_close(recording);
    return report;
}

static struct marey_cell cell(marey_report *report, const char *table, size_t row, const char *column)
{
    return table_cell(marey_report_table(report, table), row, column);
}

static size_t row_named(marey_report *report, const char *table, const char *name)
{
    return table_row(marey_report_table(report, table), "name", name);
}

static void expect(marey_report *report, const char *table, size_t row, const char *column,
                   uint64_t value)
{
    const struct marey_cell found = cell(report, table, row, column);
    if (found.is_null || found.as.u64 != value)
        fail_msg("%s of row %zu of %s is %llu and not %llu", column, row, table,
                 (unsigned long long)found.as.u64, (unsigned long long)value);
}

static void expect_text(marey_report *report, const char *table, size_t row, const char *column,
                        const char *value)
{
    const struct marey_cell found = cell(report, table, row, column);
    assert_false(found.is_null);
    assert_string_equal(found.as.text, value);
}

static size_t n_rows(marey_report *report, const char *table)
{
    return marey_table_n_rows(marey_report_table(report, table));
}

static void launch(struct log_maker *log, uint64_t begin, uint64_t end, uint64_t correlation)
{
    log_begin(log, begin, CALL);
    log_launch(log, begin, correlation);
    log_end(log, end, CALL);
}

static void kernel(struct log_maker *log, uint64_t tick, uint64_t duration, uint64_t correlation,
                   uint32_t details)
{
    const uint64_t words[] = {GEMM | (uint64_t)MAREY_WORK_KERNEL << 20 | (uint64_t)details << 28,
                              duration, correlation, 0};
    log_record(log, tick, MAREY_RECORD_GPU, words, 4);
}

/*
 *   outer 0 .. 1000000
 *     inner 100000 .. 400000      launches 1, 2 (a graph of two kernels), 5
 *     launches 3, 6
 *   launch 4                      in no range
 */
static void put_program(struct log_maker *log)
{
    log_begin(log, 0, OUTER);
    log_begin(log, 100000, INNER);
    launch(log, 110000, 115000, 1);
    launch(log, 120000, 125000, 2);
    launch(log, 160000, 161000, 5);
    log_end(log, 400000, INNER);
    launch(log, 600000, 606000, 3);
    launch(log, 655000, 656000, 6);
    log_iteration(log, 1000000, 3, false, 0);
    log_end(log, 1000000, OUTER);
    launch(log, 1100000, 1101000, 4);
    log_put_words(log, 0, 0);
    kernel(log, 120000, 10000, 1, SMALL);
    kernel(log, 130000, 10000, 2, SMALL);
    kernel(log, 140000, 10000, 2, LARGE);
    kernel(log, 170000, 5000, 5, SMALL);
    kernel(log, 665000, 5000, 6, EMPTY);
    kernel(log, 1110000, 10000, 4, 0);
    log_put_words(log, 1, 0);
    log_work(log, 650000, COPY, MAREY_WORK_COPY, 10000, 3, 1 << 20);
    log_put_words(log, 2, 0);
}

/* ---- results ---- */

static void every_nanosecond_of_a_device_is_busy_waiting_or_idle(void **state)
{
    put_program(*state);
    marey_report *report = report_of(*state, NULL);
    assert_int_equal(n_rows(report, "devices"), 1);
    expect(report, "devices", 0, "span_ns", 1000000);
    expect(report, "devices", 0, "busy_ns", 60000);
    expect(report, "devices", 0, "kernels", 6);
    expect(report, "devices", 0, "copies", 1);
    expect(report, "devices", 0, "sets", 0);
    expect(report, "devices", 0, "launches", 6);
    expect(report, "devices", 0, "launch_ns", 5000 + 5000 + 1000 + 6000 + 1000 + 1000);
    expect(report, "devices", 0, "launch_wait_ns", 20000);
    expect(report, "devices", 0, "host_wait_ns", 475000 + 440000);
    expect(report, "devices", 0, "other_idle_ns", 5000);
    marey_report_destroy(report);
}

static void work_belongs_to_all_ranges_around_its_launch(void **state)
{
    put_program(*state);
    marey_report *report = report_of(*state, NULL);
    assert_int_equal(n_rows(report, "ranges"), 3); /* and none for the runtime's call */
    const size_t outer = row_named(report, "ranges", "outer"),
                 inner = row_named(report, "ranges", "inner"),
                 none = row_named(report, "ranges", "(no range)");
    expect(report, "ranges", inner, "calls", 1);
    expect(report, "ranges", inner, "launches", 3);
    expect(report, "ranges", inner, "work", 4); /* one launch is a graph of two */
    expect(report, "ranges", inner, "gpu_ns", 35000);
    expect(report, "ranges", inner, "self_gpu_ns", 35000);
    expect(report, "ranges", inner, "launch_ns", 11000);
    expect(report, "ranges", inner, "delay_max_ns", 10000);
    expect(report, "ranges", outer, "launches", 5);
    expect(report, "ranges", outer, "work", 6);
    expect(report, "ranges", outer, "gpu_ns", 50000);
    expect(report, "ranges", outer, "self_gpu_ns", 15000);
    expect(report, "ranges", outer, "launch_ns", 18000);
    expect(report, "ranges", outer, "self_launch_ns", 7000);
    expect(report, "ranges", outer, "delay_max_ns", 50000);
    expect(report, "ranges", none, "work", 1);
    expect(report, "ranges", none, "self_gpu_ns", 10000);
    marey_report_destroy(report);
}

static void waits_are_of_the_range_that_launched_what_ended_them(void **state)
{
    put_program(*state);
    marey_report *report = report_of(*state, NULL);
    const size_t outer = row_named(report, "launch_bound", "outer"),
                 inner = row_named(report, "launch_bound", "inner");
    expect(report, "launch_bound", inner, "span_ns", 300000);
    expect(report, "launch_bound", inner, "launch_wait_ns", 20000);
    expect(report, "launch_bound", inner, "host_wait_ns", 0);
    assert_true(cell(report, "launch_bound", inner, "verdict").is_null);
    expect(report, "launch_bound", outer, "span_ns", 1000000);
    expect(report, "launch_bound", outer, "launch_wait_ns", 20000);
    expect(report, "launch_bound", outer, "host_wait_ns", 475000);
    expect_text(report, "launch_bound", outer, "verdict", "host-bound");
    /* What was launched in no range has a row as well. */
    const size_t none = row_named(report, "launch_bound", "(no range)");
    assert_true(cell(report, "launch_bound", none, "span_ns").is_null);
    assert_true(cell(report, "launch_bound", none, "verdict").is_null);
    marey_report_destroy(report);
}

static void a_loop_of_late_launches_is_launch_bound(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    for (uint64_t i = 0; i < 100; i++)
        launch(log, i * 20000, i * 20000 + 5000, i + 1);
    log_end(log, 2000000, OUTER);
    log_put_words(log, 0, 0);
    for (uint64_t i = 0; i < 100; i++)
        kernel(log, i * 20000 + 6000, 4000, i + 1, SMALL);
    log_put_words(log, 1, 0);
    marey_report *report = report_of(log, NULL);
    expect_text(report, "launch_bound", 0, "name", "outer");
    expect_text(report, "launch_bound", 0, "verdict", "launch-bound");
    expect(report, "launch_bound", 0, "launch_wait_ns", 99 * 16000);
    expect(report, "launch_bound", 0, "launches", 100);
    expect(report, "launch_bound", 0, "work_mean_ns", 4000);
    assert_true(cell(report, "launch_bound", 0, "launches_per_ms").as.f64 == 50);
    marey_report_destroy(report);
}

static void kernels_are_reported_by_name_and_by_shape(void **state)
{
    put_program(*state);
    marey_report *report = report_of(*state, NULL);
    assert_int_equal(n_rows(report, "kernels"), 2);
    const size_t gemm = row_named(report, "kernels", "gemm");
    expect(report, "kernels", gemm, "count", 6);
    expect(report, "kernels", gemm, "total_ns", 50000);
    expect(report, "kernels", gemm, "min_ns", 5000);
    expect(report, "kernels", gemm, "max_ns", 10000);
    assert_true(cell(report, "kernels", gemm, "share").as.f64 == 50000.0 / 60000);
    assert_int_equal(n_rows(report, "shapes"), 3); /* those whose shape is not known are one */
    expect_text(report, "shapes", 0, "grid", "8x1x1");
    expect_text(report, "shapes", 0, "block", "128x1x1");
    expect(report, "shapes", 0, "registers", 32);
    expect(report, "shapes", 0, "shared_bytes", 1024);
    expect(report, "shapes", 0, "count", 3);
    expect(report, "shapes", 0, "total_ns", 25000);
    assert_true(cell(report, "shapes", 1, "grid").is_null);
    expect(report, "shapes", 1, "count", 2);
    expect_text(report, "shapes", 2, "grid", "64x2x1");
    assert_int_equal(n_rows(report, "copies"), 1);
    expect_text(report, "copies", 0, "direction", "HtoD");
    expect(report, "copies", 0, "bytes", 1 << 20);
    assert_true(cell(report, "copies", 0, "bytes_per_s").as.f64 == (1 << 20) * 1e9 / 10000);
    assert_int_equal(n_rows(report, "streams"), 2);
    expect(report, "streams", 1, "copies", 1);
    expect(report, "streams", 1, "busy_ns", 10000);
    expect(report, "streams", 1, "bytes", 1 << 20);
    marey_report_destroy(report);
}

static void arguments_of_a_trace_tell_the_shape(void **state)
{
    struct log_maker *log = *state;
    kernel(log, 100, 50, 0, 0);
    log_arguments(log, 100, "{\"device\": 0, \"grid\": [4, 3, 2], \"block\": [32, 1, 1], \"x\": {}}");
    kernel(log, 200, 50, 0, 0);
    log_arguments(log, 200, "{\"grid\": \"none\"}");
    log_put_words(log, 1, 0);
    marey_report *report = report_of(log, NULL);
    assert_int_equal(n_rows(report, "shapes"), 2);
    expect_text(report, "shapes", 0, "grid", "4x3x2");
    assert_true(cell(report, "shapes", 1, "grid").is_null);
    assert_int_equal(n_rows(report, "warnings"), 1); /* nobody launched them */
    marey_report_destroy(report);
}

static void iterations_have_the_work_launched_in_them(void **state)
{
    put_program(*state);
    marey_report *report = report_of(*state, NULL);
    assert_int_equal(n_rows(report, "iterations"), 1);
    expect(report, "iterations", 0, "iteration", 3);
    expect(report, "iterations", 0, "span_ns", 1000000);
    expect(report, "iterations", 0, "busy_ns", 50000);
    expect(report, "iterations", 0, "launches", 5);
    expect(report, "iterations", 0, "work", 6);
    expect(report, "iterations", 0, "gpu_ns", 50000);
    expect(report, "iterations", 0, "launch_wait_ns", 20000);
    expect(report, "iterations", 0, "host_wait_ns", 475000);
    marey_report_destroy(report);
}

static void the_longest_gaps_come_first_with_what_is_around_them(void **state)
{
    put_program(*state);
    marey_report *report = report_of(*state, "gaps=3");
    assert_int_equal(n_rows(report, "gaps"), 3);
    expect(report, "gaps", 0, "begin_ns", 175000);
    expect(report, "gaps", 0, "duration_ns", 475000);
    expect_text(report, "gaps", 0, "before", "gemm");
    expect_text(report, "gaps", 0, "after", "Memcpy HtoD (Pinned -> Device)");
    expect_text(report, "gaps", 0, "range", "outer");
    expect_text(report, "gaps", 0, "reason", "host_bound");
    expect(report, "gaps", 0, "iteration", 3);
    expect(report, "gaps", 1, "duration_ns", 440000);
    assert_true(cell(report, "gaps", 1, "range").is_null);
    assert_true(cell(report, "gaps", 1, "iteration").is_null);
    expect(report, "gaps", 2, "duration_ns", 20000);
    expect_text(report, "gaps", 2, "range", "outer > inner");
    marey_report_destroy(report);
}

/* The sizes of a launch are fields of the record; a copy in a CUDA graph has none. */
static void launches_are_fields_of_the_record(void **state)
{
    struct log_maker *log = *state;
    const uint64_t gemm[] = {GEMM | (uint64_t)MAREY_WORK_KERNEL << 20,
                             50,
                             1,
                             0,
                             0,
                             UINT64_C(2147483647) | UINT64_C(65535) << 32 | UINT64_C(3) << 48,
                             UINT64_C(32) | UINT64_C(4) << 16 | UINT64_C(8) << 32 |
                                 UINT64_C(255) << 48,
                             UINT64_C(16) | UINT64_C(1024) << 32};
    const uint64_t copy[] = {GEMM | (uint64_t)MAREY_WORK_COPY << 20, 10, 2, 64, 0, 0, 0, 0, 7, 9};
    log_record(log, 100, MAREY_RECORD_GPU, gemm, MAREY__COUNT_OF(gemm));
    log_record(log, 200, MAREY_RECORD_GPU, copy, MAREY__COUNT_OF(copy));
    log_put_words(log, 1, 0);
    marey_report *report = report_of(log, NULL);
    assert_int_equal(n_rows(report, "shapes"), 1);
    expect_text(report, "shapes", 0, "grid", "2147483647x65535x3");
    expect_text(report, "shapes", 0, "block", "32x4x8");
    expect(report, "shapes", 0, "registers", 255);
    expect(report, "shapes", 0, "shared_bytes", 1040);
    expect(report, "copies", 0, "bytes", 64);
    marey_report_destroy(report);
}

static void what_is_no_work_is_in_no_sum(void **state)
{
    struct log_maker *log = *state;
    kernel(log, 100, 50, 0, 0);
    kernel(log, 200, 0, 0, 0); /* of no length, and work all the same */
    log_work(log, 300, GEMM, MAREY_WORK_SYNC, 1000, 0, 0);
    log_work(log, 300, GEMM, MAREY_WORK_ANNOTATION, 1000, 0, 0);
    log_work(log, 400, GEMM, MAREY_WORK_MEMORY, 0, 0, 1 << 20);
    log_work(log, 500, GEMM, 77, 1000, 0, 0);
    log_put_words(log, 1, 0);
    marey_report *report = report_of(log, NULL);
    assert_int_equal(n_rows(report, "kernels"), 1);
    expect(report, "kernels", 0, "count", 2);
    expect(report, "kernels", 0, "total_ns", 50);
    assert_true(cell(report, "kernels", 0, "bytes").is_null);
    expect(report, "devices", 0, "kernels", 2);
    expect(report, "devices", 0, "busy_ns", 50);
    marey_report_destroy(report);
}

static void without_work_all_tables_are_empty(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    log_end(log, 100, OUTER);
    log_put_words(log, 0, 0);
    log_work(log, 50, GEMM, MAREY_WORK_SYNC, 10, 0, 0);
    log_put_words(log, 1, 0);
    marey_report *report = report_of(log, NULL);
    static const char *const tables[] = {"devices",      "kernels",    "shapes",
                                         "copies",       "streams",    "ranges",
                                         "launch_bound", "iterations", "gaps"};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        assert_int_equal(n_rows(report, tables[i]), 0);
    assert_null(marey_report_table(report, "no such"));
    marey_report_destroy(report);
    marey_report_destroy(NULL);
}

static void shapes_are_read_or_refused(void **state)
{
    (void)state;
    struct marey__launch_config shape;
    static const char *const bad[] = {
        "", "[]", "{", "{\"grid\": [1,", "{\"grid\": {}}", "{\"grid\"}", "{\"a\": 1}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(marey__launch_config_read(bad[i], strlen(bad[i]), &shape));
    static const char odd[] =
        "{\"grid\": [1, -2, 1e300, 7], \"block\": [null, 2], \"shared memory\": \"x\"}";
    assert_true(marey__launch_config_read(odd, strlen(odd), &shape));
    assert_int_equal(shape.grid[0], 1);
    assert_int_equal(shape.grid[1], 0);
    assert_int_equal(shape.grid[2], 0);
    assert_int_equal(shape.block[1], 2);
    assert_int_equal(shape.shared_bytes, 0);
}

static void without_memory_nothing_leaks(void **state)
{
    struct log_maker *log = *state;
    put_program(log);
    log_put_end(log, "stop");
    marey_recording *recording = NULL;
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey_report *report = NULL;
        marey__alloc_fail_nth(nth);
        status = marey_report_create("gpu", &recording, 1,
                                     &(struct marey_report_options){.n_jobs = 1}, &report);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || (status == MAREY_ENOMEM && report == NULL));
        marey_report_destroy(report);
        assert_true(nth < 10000);
    }
    log_close(recording);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_nanosecond_of_a_device_is_busy_waiting_or_idle),
        TEST(work_belongs_to_all_ranges_around_its_launch),
        TEST(waits_are_of_the_range_that_launched_what_ended_them),
        TEST(a_loop_of_late_launches_is_launch_bound),
        TEST(kernels_are_reported_by_name_and_by_shape),
        TEST(arguments_of_a_trace_tell_the_shape),
        TEST(iterations_have_the_work_launched_in_them),
        TEST(the_longest_gaps_come_first_with_what_is_around_them),
        TEST(launches_are_fields_of_the_record),
        TEST(what_is_no_work_is_in_no_sum),
        TEST(without_work_all_tables_are_empty),
        TEST(shapes_are_read_or_refused),
        TEST(without_memory_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
