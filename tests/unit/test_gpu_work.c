/* GPU activity in the summary: kernels by name, ranges by launched activity, lanes of streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_maker.h"
#include "table_view.h"
#include <marey/report.h>

enum { OUTER = 1, INNER = 2, LEAF = 3, GEMM = 4, COPY = 5, STEP = 6 };

static int setup(void **state)
{
    struct log_maker *log = *state = calloc(1, sizeof *log);
    if (log == NULL)
        return 1;
    log_put_preamble(log);
    log_put_site_of(log, GEMM, "gemm", "kernel", "");
    log_put_site_of(log, COPY, "copy", "gpu_memcpy", "");
    log_put_site_of(log, STEP, "step", "gpu_user_annotation", "");
    log_put_stream(log, 1, 0, 7, "");
    log_put_stream(log, 2, 1, 7, "compute");
    return 0;
}

static int teardown(void **state)
{
    log_maker_fini(*state);
    free(*state);
    return 0;
}

/* ---- looking into tables ---- */

static struct marey_cell cell(marey_report *summary, const char *table_name, const char *name,
                              const char *column)
{
    const marey_table *table = marey_report_table(summary, table_name);
    return table_cell(table, table_row(table, "name", name), column);
}

static uint64_t number(marey_report *summary, const char *table, const char *name, const char *column)
{
    const struct marey_cell found = cell(summary, table, name, column);
    assert_false(found.is_null);
    return found.as.u64;
}

static size_t n_rows(marey_report *summary, const char *table)
{
    return marey_table_n_rows(marey_report_table(summary, table));
}

static void expect_launched(marey_report *summary, const char *range, uint64_t count,
                            uint64_t gpu_ns, uint64_t self_ns)
{
    assert_int_equal(number(summary, "gpu_ranges", range, "count"), count);
    assert_int_equal(number(summary, "gpu_ranges", range, "gpu_ns"), gpu_ns);
    assert_int_equal(number(summary, "gpu_ranges", range, "self_gpu_ns"), self_ns);
}

static marey_report *summarise_with(struct log_maker *log, const struct marey_report_options *options)
{
    marey_recording *recording = NULL;
    marey_report *summary = NULL;
    log_put_end(log, "stop");
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    assert_int_equal(marey_report_create("ranges", &recording, 1, options, &summary), MAREY_OK);
    log_close(recording);
    return summary;
}

static marey_report *summarise(struct log_maker *log)
{
    return summarise_with(log, NULL);
}

/* ---- what streams did ---- */

static void work_is_summed_by_name_and_kind(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    log_end(log, 100, OUTER);
    log_put_words(log, 0, 0);
    log_work(log, 10, GEMM, MAREY_WORK_KERNEL, 40, 1, 0);
    log_work(log, 20, COPY, MAREY_WORK_COPY, 10, 2, 4096);
    log_work(log, 60, GEMM, MAREY_WORK_KERNEL, 20, 3, 0);
    log_work(log, 60, STEP, MAREY_WORK_ANNOTATION, 900, 0, 0);
    log_put_words(log, 1, 0);
    log_work(log, 15, GEMM, MAREY_WORK_KERNEL, 30, 4, 0);
    log_work(log, 70, GEMM, MAREY_WORK_SET, 100, 4, 0);
    log_put_words(log, 2, 0);
    marey_report *summary = summarise(log);

    assert_int_equal(n_rows(summary, "kernels"), 4);
    const marey_table *kernels = marey_report_table(summary, "kernels");
    const size_t kind = (size_t)marey_table_find(kernels, "kind");
    /* The longest first, and what is no work behind all that is. */
    static const char *const kinds[] = {"set", "kernel", "copy", "annotation"};
    for (size_t row = 0; row < 4; row++)
        assert_string_equal(marey_table_cell(kernels, row, kind).as.text, kinds[row]);
    assert_int_equal(marey_table_cell(kernels, 1, (size_t)marey_table_find(kernels, "count")).as.u64,
                     3);
    assert_int_equal(
        marey_table_cell(kernels, 1, (size_t)marey_table_find(kernels, "total_ns")).as.u64, 90);
    assert_int_equal(
        marey_table_cell(kernels, 1, (size_t)marey_table_find(kernels, "streams")).as.u64, 2);
    assert_int_equal(
        marey_table_cell(kernels, 1, (size_t)marey_table_find(kernels, "devices")).as.u64, 2);
    assert_int_equal(number(summary, "kernels", "copy", "streams"), 1);
    assert_int_equal(number(summary, "kernels", "copy", "mean_ns"), 10);
    assert_true(cell(summary, "kernels", "copy", "share").as.f64 == 10.0 / 200);
    assert_true(cell(summary, "kernels", "step", "share").is_null);
    assert_int_equal(number(summary, "kernels", "step", "max_ns"), 900);
    marey_report_destroy(summary);
}

static void streams_are_neither_threads_nor_ranges(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    log_end(log, 100, OUTER);
    log_put_words(log, 0, 0);
    log_work(log, 90, GEMM, MAREY_WORK_KERNEL, 400, 1, 0);
    log_put_words(log, 1, 0);
    marey_report *summary = summarise(log);
    assert_int_equal(n_rows(summary, "ranges"), 1);
    assert_int_equal(n_rows(summary, "tree"), 1);
    assert_int_equal(n_rows(summary, "threads"), 1);
    assert_int_equal(number(summary, "ranges", "outer", "threads"), 1);
    /* The process lasts until its GPU is done. */
    const marey_table *processes = marey_report_table(summary, "processes");
    const size_t duration = (size_t)marey_table_find(processes, "duration_ns");
    assert_int_equal(marey_table_cell(processes, 0, duration).as.u64, 490);
    marey_report_destroy(summary);
}

static void a_gap_on_a_stream_cuts_no_range(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    log_put_words(log, 0, 0);
    log_work(log, 10, GEMM, MAREY_WORK_KERNEL, 5, 1, 0);
    log_put_words(log, 1, 0);
    log_work(log, 20, GEMM, MAREY_WORK_KERNEL, 5, 2, 0);
    log_put_words(log, 1, 2); /* block 1 is missing */
    log_end(log, 100, OUTER);
    log_put_words(log, 0, 1);
    marey_report *summary = summarise(log);
    assert_int_equal(number(summary, "ranges", "outer", "total_ns"), 100);
    assert_int_equal(number(summary, "kernels", "gemm", "count"), 2);
    marey_report_destroy(summary);
}

/* ---- launches ---- */

/* outer { inner { launches 1 and 2 } launches 3 } leaf { launches 4 } */
static void put_launches(struct log_maker *log)
{
    log_begin(log, 0, OUTER);
    log_begin(log, 10, INNER);
    log_launch(log, 10, 1);
    log_launch(log, 12, 2);
    log_end(log, 20, INNER);
    log_launch(log, 30, 3);
    log_end(log, 40, OUTER);
    log_begin(log, 50, LEAF);
    log_launch(log, 50, 4);
    log_end(log, 60, LEAF);
}

static void put_launched_work(struct log_maker *log)
{
    log_work(log, 15, GEMM, MAREY_WORK_KERNEL, 100, 1, 0);
    log_work(log, 120, GEMM, MAREY_WORK_KERNEL, 10, 2, 0);
    log_work(log, 130, GEMM, MAREY_WORK_KERNEL, 10, 2,
             0); /* a graph: launched once, two pieces of work */
    log_work(log, 140, COPY, MAREY_WORK_COPY, 1000, 3, 0);
    log_work(log, 1200, GEMM, MAREY_WORK_KERNEL, 7, 5, 0);      /* launched before the recording */
    log_work(log, 1300, STEP, MAREY_WORK_ANNOTATION, 50, 4, 0); /* no work */
    log_work(log, 1400, GEMM, MAREY_WORK_KERNEL, 3, 0, 0);      /* nobody knows */
}

static void expect_launches(marey_report *summary)
{
    expect_launched(summary, "outer", 4, 1120, 1000);
    expect_launched(summary, "inner", 3, 120, 120);
    assert_int_equal(n_rows(summary, "gpu_ranges"), 2);
    assert_true(cell(summary, "gpu_ranges", "inner", "share").as.f64 == 120.0 / 1130);
}

static void work_belongs_to_the_range_that_launched_it(void **state)
{
    struct log_maker *log = *state;
    put_launches(log);
    log_put_words(log, 0, 0);
    put_launched_work(log);
    log_put_words(log, 1, 0);
    marey_report *summary = summarise(log);
    expect_launches(summary);
    marey_report_destroy(summary);
}

static void work_may_be_read_before_its_launch(void **state)
{
    struct log_maker *log = *state;
    put_launched_work(log);
    log_put_words(log, 1, 0);
    put_launches(log);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log);
    expect_launches(summary);
    marey_report_destroy(summary);
}

static void of_a_recursion_the_outermost_has_the_work_once(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    log_launch(log, 1, 1);
    log_begin(log, 10, OUTER);
    log_launch(log, 11, 2);
    log_end(log, 20, OUTER);
    log_end(log, 30, OUTER);
    log_put_words(log, 0, 0);
    log_work(log, 40, GEMM, MAREY_WORK_KERNEL, 100, 1, 0);
    log_work(log, 140, GEMM, MAREY_WORK_KERNEL, 10, 2, 0);
    log_put_words(log, 1, 0);
    marey_report *summary = summarise(log);
    expect_launched(summary, "outer", 2, 110, 110);
    marey_report_destroy(summary);
}

static void a_limit_of_depth_hides_ranges_and_changes_no_number(void **state)
{
    struct log_maker *log = *state;
    put_launches(log);
    log_put_words(log, 0, 0);
    put_launched_work(log);
    log_put_words(log, 1, 0);
    marey_report *summary = summarise_with(
        log, &(struct marey_report_options){.settings = (const char *const[]){"depth=1", NULL}});
    expect_launched(summary, "outer", 4, 1120, 1000);
    assert_int_equal(n_rows(summary, "gpu_ranges"), 1);
    marey_report_destroy(summary);
}

static void a_filter_chooses_kernels_and_ranges(void **state)
{
    struct log_maker *log = *state;
    put_launches(log);
    log_put_words(log, 0, 0);
    put_launched_work(log);
    log_put_words(log, 1, 0);
    marey_report *summary = summarise_with(
        log, &(struct marey_report_options){.settings = (const char *const[]){"filter=inner", NULL}});
    assert_int_equal(n_rows(summary, "kernels"), 0);
    expect_launched(summary, "inner", 3, 120, 120);
    assert_int_equal(n_rows(summary, "gpu_ranges"), 1);
    marey_report_destroy(summary);
}

/* Many names, correlations and streams: tables that grow. */
static void many_launches_are_all_found(void **state)
{
    enum { N = 3000, STREAMS = 40 };
    struct log_maker *log = *state;
    for (uint32_t i = 0; i < STREAMS; i++)
        log_put_stream(log, 3 + i, (int32_t)(i % 4), i, "");
    log_begin(log, 0, OUTER);
    for (uint64_t i = 1; i <= N / 2; i++)
        log_launch(log, i, i * 0x100000001);
    log_put_words(log, 0, 0);
    for (uint32_t s = 0; s < STREAMS; s++) {
        for (uint64_t i = 1 + s; i <= N; i += STREAMS)
            log_work(log, i, i % 3 == 0 ? COPY : GEMM, MAREY_WORK_KERNEL, i, i * 0x100000001, 0);
        log_put_words(log, 3 + s, 0);
    }
    for (uint64_t i = N / 2 + 1; i <= N; i++)
        log_launch(log, i, i * 0x100000001);
    log_end(log, N + 1, OUTER);
    log_put_words(log, 0, 1);
    marey_report *summary = summarise(log);
    expect_launched(summary, "outer", N, (uint64_t)N * (N + 1) / 2, (uint64_t)N * (N + 1) / 2);
    assert_int_equal(number(summary, "kernels", "gemm", "streams"), STREAMS);
    assert_int_equal(number(summary, "kernels", "gemm", "devices"), 4);
    assert_int_equal(number(summary, "kernels", "copy", "count"), N / 3);
    marey_report_destroy(summary);
}

/* ---- reports and memory ---- */

static void put_everything(struct log_maker *log)
{
    put_launches(log);
    log_put_words(log, 0, 0);
    put_launched_work(log);
    log_put_words(log, 1, 0);
    log_work(log, 15, GEMM, MAREY_WORK_KERNEL, 100, 9, 0);
    log_put_words(log, 2, 0);
}

static void processes_add_up(void **state)
{
    struct log_maker *log = *state;
    marey_recording *recordings[2] = {NULL, NULL};
    marey_report *summary = NULL;
    put_everything(log);
    log_put_end(log, "stop");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(log_open(log, &recordings[i]), MAREY_OK);
    assert_int_equal(marey_report_create("ranges", recordings, 2, NULL, &summary), MAREY_OK);
    assert_int_equal(number(summary, "kernels", "gemm", "count"), 12);
    assert_int_equal(number(summary, "kernels", "gemm", "processes"), 2);
    assert_int_equal(number(summary, "kernels", "gemm", "streams"), 4);
    expect_launched(summary, "outer", 8, 2240, 2000);
    marey_report_destroy(summary);
    for (size_t i = 0; i < 2; i++)
        log_close(recordings[i]);
}

/* The text of a report, freed by the caller. */
static char *report_of(marey_report *summary, bool is_json, const char *tables)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    const struct marey_write_options options = {.table = tables};
    assert_int_equal(is_json ? marey_report_write(summary, "json", &options, out)
                             : marey_report_write(summary, "text", &options, out),
                     MAREY_OK);
    fclose(out);
    return text;
}

static void reports_show_kernels_below_ranges(void **state)
{
    struct log_maker *log = *state;
    put_everything(log);
    marey_report *summary = summarise(log);
    char *text = report_of(summary, false, NULL);
    assert_non_null(strstr(text, "1 process, 1 thread,"));
    assert_non_null(strstr(text, "\nranges\n"));
    assert_true(strstr(text, "\nkernels\n") > strstr(text, "\nranges\n"));
    free(text);
    text = report_of(summary, true, NULL);
    assert_non_null(strstr(text, "\"kernels\": [\n"));
    assert_non_null(strstr(text, "\"gpu_ranges\": [\n"));
    assert_non_null(strstr(text, "\"kind\": \"kernel\""));
    free(text);
    text = report_of(summary, false, "tree");
    assert_null(strstr(text, "gemm"));
    free(text);
    marey_report_destroy(summary);
}

static void without_memory_nothing_leaks(void **state)
{
    struct log_maker *log = *state;
    put_everything(log);
    log_put_end(log, "stop");
    marey_recording *recording = NULL;
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey_report *summary = NULL;
        marey__alloc_fail_nth(nth);
        status = marey_report_create("ranges", &recording, 1,
                                     &(struct marey_report_options){.n_jobs = 1}, &summary);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || (status == MAREY_ENOMEM && summary == NULL));
        marey_report_destroy(summary);
        assert_true(nth < 10000);
    }
    log_close(recording);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(work_is_summed_by_name_and_kind),
        TEST(streams_are_neither_threads_nor_ranges),
        TEST(a_gap_on_a_stream_cuts_no_range),
        TEST(work_belongs_to_the_range_that_launched_it),
        TEST(work_may_be_read_before_its_launch),
        TEST(of_a_recursion_the_outermost_has_the_work_once),
        TEST(a_limit_of_depth_hides_ranges_and_changes_no_number),
        TEST(a_filter_chooses_kernels_and_ranges),
        TEST(many_launches_are_all_found),
        TEST(processes_add_up),
        TEST(reports_show_kernels_below_ranges),
        TEST(without_memory_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
