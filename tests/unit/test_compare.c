/*
 * Comparisons: the statistics against tables and plain sorting, files of stats with every mistake, recordings made by
 * hand. How often verdicts are right is in test_compare_truth.c.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyze/compare/internal.h"
#include "log_maker.h"
#include "table_view.h"

/* ---- statistics ---- */

static void medians_by_digits_are_those_of_sorting(void **state)
{
    static float times[3000];
    static double sorted[3000];
    static uint32_t scratch[3000];
    struct marey__digest digest;
    (void)state;
    srand48(1);
    for (size_t n = 1; n < 3000; n += n < 600 ? 1 : 401) {
        for (size_t i = 0; i < n; i++) {
            times[i] = n % 3 == 0 ? (float)(lrand48() % 5) : (float)exp(40 * drand48() - 10);
            sorted[i] = (double)times[i];
        }
        marey__digest_make(&digest, times, n, scratch);
        const double exact = marey__median(sorted, n);
        /* Of many values the lower of two middle ones is taken. */
        const double lower = sorted[(n - 1) / 2];
        const double median = exp(digest.log_median), expected = n <= 256 ? exact : lower;
        assert_true(fabs(median - expected) <= 1e-6 * expected);
    }
}

static void bounds_by_ranks_are_those_of_the_tables(void **state)
{
    (void)state;
    /* Mann and Whitney's U at 0.05, two-sided, plus one; 10 and 20 runs at 0.04 as here. */
    assert_int_equal(marey__mann_whitney_bound(1, 100), 0);
    assert_int_equal(marey__mann_whitney_bound(3, 3), 0);
    assert_int_equal(marey__mann_whitney_bound(4, 4), 1);
    assert_int_equal(marey__mann_whitney_bound(5, 5), 3);
    assert_int_equal(marey__mann_whitney_bound(3, 8), marey__mann_whitney_bound(8, 3));
    assert_int_equal(marey__signed_rank_bound(5), 0);
    assert_int_equal(marey__signed_rank_bound(6), 1);
    assert_int_equal(marey__signed_rank_bound(8), 4);
    /* The approximation goes on where the exact one ends. */
    const size_t exact = marey__mann_whitney_bound(25, 25), next = marey__mann_whitney_bound(25, 26);
    assert_in_range(next, exact, exact + 15);
    assert_in_range(marey__signed_rank_bound(51), marey__signed_rank_bound(50),
                    marey__signed_rank_bound(50) + 30);
}

static void student_s_t_is_that_of_the_tables(void **state)
{
    (void)state;
    assert_true(fabs(marey__t_quantile(0.95, 1) - 12.7062) < 1e-3);
    assert_true(fabs(marey__t_quantile(0.95, 4) - 2.7764) < 1e-3);
    assert_true(fabs(marey__t_quantile(0.95, 10) - 2.2281) < 1e-3);
    assert_true(fabs(marey__t_quantile(0.99, 30) - 2.7500) < 1e-3);
    assert_true(fabs(marey__t_quantile(0.95, 1e6) - 1.9600) < 1e-3);
}

static struct marey_change change_of(const struct marey_run_times *a, size_t n_a,
                                     const struct marey_run_times *b, size_t n_b)
{
    struct marey_change change;
    assert_int_equal(marey_compare_runs(a, n_a, b, n_b, NULL, &change), MAREY_OK);
    return change;
}

static void times_that_never_vary_give_a_certain_answer(void **state)
{
    double a[20], b[20];
    (void)state;
    for (int i = 0; i < 20; i++)
        a[i] = 100, b[i] = 110;
    const struct marey_run_times run_a = {a, 20, 0}, run_b = {b, 20, 0};
    assert_int_equal(change_of(&run_a, 1, &run_a, 1).verdict, MAREY_SAME);
    const struct marey_change slower = change_of(&run_a, 1, &run_b, 1);
    assert_int_equal(slower.verdict, MAREY_SLOWER);
    assert_true(fabs(slower.percent - 10) < 1e-4);
    assert_int_equal(change_of(&run_b, 1, &run_a, 1).verdict, MAREY_FASTER);
}

static void few_times_are_unsure_and_say_so(void **state)
{
    const double a[] = {1, 2, 1, 2, 1}, b[] = {9, 8, 9, 8, 9};
    (void)state;
    const struct marey_run_times run_a = {a, 5, 0}, run_b = {b, 5, 0};
    const struct marey_change change = change_of(&run_a, 1, &run_b, 1);
    assert_int_equal(change.verdict, MAREY_UNSURE);
    assert_true(change.percent > 500 && isnan(change.low_percent));
    assert_non_null(strstr(change.reason, "too few"));
}

/* Five runs each that hardly differ, and one that went astray. */
static void one_wrecked_run_does_not_hide_a_change(void **state)
{
    const double a[] = {100, 101, 100.5, 99.5, 100.2}, b[] = {110, 111, 110.5, 400, 110.2};
    struct marey_run_times runs[2][5];
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        runs[0][i] = (struct marey_run_times){&a[i], 1, 0};
        runs[1][i] = (struct marey_run_times){&b[i], 1, 0};
    }
    const struct marey_change change = change_of(runs[0], 5, runs[1], 5);
    assert_int_equal(change.verdict, MAREY_SLOWER);
    assert_true(change.percent > 9 && change.percent < 12);
    assert_true(change.low_percent > 8);
}

/* Two of each: too few for ranks, Student's t serves; one against three as well. */
static void few_runs_go_by_student_s_t(void **state)
{
    const double a[] = {100, 100.1, 100.05}, b[] = {110, 110.1, 110.05};
    struct marey_run_times runs[2][3];
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        runs[0][i] = (struct marey_run_times){&a[i], 1, 0};
        runs[1][i] = (struct marey_run_times){&b[i], 1, 0};
    }
    assert_int_equal(change_of(runs[0], 2, runs[1], 2).verdict, MAREY_SLOWER);
    assert_int_equal(change_of(runs[0], 1, runs[1], 3).verdict, MAREY_SLOWER);
    assert_int_equal(change_of(runs[0], 3, runs[0], 3).verdict, MAREY_SAME);
}

static void wrong_times_are_refused(void **state)
{
    const double wrong[][2] = {{1, NAN}, {1, -1}, {1, INFINITY}}, good[] = {1, 1};
    struct marey_change change;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const struct marey_run_times a = {good, 2, 0}, b = {wrong[i], 2, 0};
        assert_int_equal(marey_compare_runs(&a, 1, &b, 1, NULL, &change), MAREY_EINVAL);
        assert_non_null(strstr(marey_last_error(), "side B"));
        assert_int_equal(marey_compare_pairs(wrong[i], good, 2, NULL, &change), MAREY_EINVAL);
        assert_non_null(strstr(marey_last_error(), "side A"));
    }
    const struct marey_run_times a = {good, 2, 0}, none = {good, 0, 0};
    assert_int_equal(marey_compare_runs(&a, 1, &none, 1, NULL, &change), MAREY_EINVAL);
    assert_int_equal(marey_compare_runs(&a, 0, &a, 1, NULL, &change), MAREY_EINVAL);
}

static void times_of_zero_are_unsure(void **state)
{
    const double a[10] = {0}, b[10] = {0};
    struct marey_change change;
    (void)state;
    const struct marey_run_times run = {a, 10, 0};
    assert_int_equal(change_of(&run, 1, &run, 1).verdict, MAREY_UNSURE);
    assert_int_equal(marey_compare_pairs(a, b, 10, NULL, &change), MAREY_OK);
    assert_int_equal(change.verdict, MAREY_UNSURE);
}

/* ---- files of stats ---- */

static marey_status compare_files(const char *a, const char *b, marey_report **out)
{
    const char *const paths[] = {a, b};
    return marey_report_create_files("compare", paths, 2, NULL, out);
}

/* A side's stats as a file; the caller removes it. */
static void write_stats(const char *text, char path[64])
{
    log_write(text, strlen(text), path);
}

static marey_status compare_texts(const char *a, const char *b, marey_report **out)
{
    char paths[2][64];
    write_stats(a, paths[0]);
    write_stats(b, paths[1]);
    const marey_status status = compare_files(paths[0], paths[1], out);
    unlink(paths[0]);
    unlink(paths[1]);
    return status;
}

#define TEN "10, 10, 10, 10, 10, 10, 10, 10, 10, 10"
#define ELEVEN "11, 11, 11, 11, 11, 11, 11, 11, 11, 11"

static struct marey_cell cell(marey_report *c, const char *table, size_t row, const char *column)
{
    return table_cell(marey_report_table(c, table), row, column);
}

static void stats_by_name_are_compared(void **state)
{
    marey_report *c = NULL;
    (void)state;
    const marey_status status =
        compare_texts("{\"other\": {\"a\": [1, [2], {}]}, \"iteration\": [{\"mean_ns\": 3}],\n"
                      " \"series\": {\"(iteration)\": [" TEN "], \"step\": [" TEN
                      "], \"gone\": [" TEN "], \"half\": [0, 5, 0, 5]}}",
                      "{\"series\": {\"step\": [" ELEVEN
                      "], \"new\\u00e9\": [1], \"(iteration)\": [" ELEVEN "]}, \"start\": 5}",
                      &c);
    assert_int_equal(status, MAREY_OK);
    assert_string_equal(cell(c, "iteration", 0, "verdict").as.text, "slower");
    assert_int_equal(marey_table_n_rows(marey_report_table(c, "ranges")), 1);
    assert_string_equal(cell(c, "ranges", 0, "name").as.text, "step");
    assert_true(fabs(cell(c, "ranges", 0, "change_percent").as.f64 - 10) < 1e-3);
    assert_true(fabs(cell(c, "ranges", 0, "effect_percent").as.f64 - 10) < 1e-3);
    assert_int_equal(marey_table_n_rows(marey_report_table(c, "only")), 3);
    marey_report_destroy(c);
}

static void rows_of_a_stopwatch_are_series(void **state)
{
    struct marey__buf text = {0};
    marey_report *c = NULL;
    (void)state;
    marey__buf_puts(&text, "{\"intervals\": [], \"series\": ["
                           "{\"iteration\": 0, \"name\": \"(iteration)\", \"total_ns\": 400}, ");
    for (int i = 0; i < 20; i++)
        marey__buf_printf(&text, "%s{\"iteration\": %d, \"name\": \"fwd\", \"total_ns\": 100}",
                          i == 0 ? "" : ",", i);
    marey__buf_puts(&text, "]}");
    marey__buf_put(&text, "", 1);
    assert_int_equal(compare_texts(text.data, text.data, &c), MAREY_OK);
    assert_string_equal(cell(c, "ranges", 0, "verdict").as.text, "same");
    assert_int_equal(cell(c, "ranges", 0, "n_a").as.u64, 20);
    assert_int_equal(cell(c, "iteration", 0, "n_a").as.u64, 1);
    marey__buf_fini(&text);
    marey_report_destroy(c);
}

static void a_file_may_hold_several_runs(void **state)
{
    marey_report *c = NULL;
    (void)state;
    assert_int_equal(
        compare_texts("{\"runs\": [{\"series\": {\"s\": [10]}}, {\"series\": {\"s\": [10.01]}}]}",
                      "{\"runs\": [{\"series\": {\"s\": [12]}}, {\"series\": {\"s\": [12.01]}}]}", &c),
        MAREY_OK);
    assert_int_equal(marey_table_n_rows(marey_report_table(c, "runs")), 4);
    assert_string_equal(cell(c, "ranges", 0, "verdict").as.text, "slower");
    marey_report_destroy(c);
}

static void wrong_stats_are_refused_with_the_range(void **state)
{
    static const struct {
        const char *text;
        marey_status status;
        const char *words;
    } cases[] = {
        {"{\"series\": {\"fwd\": [1, NaN]}}", MAREY_EINVAL, "time 1 of range 'fwd' is NaN"},
        {"{\"series\": {\"fwd\": [-1]}}", MAREY_EINVAL, "'fwd' is negative"},
        {"{\"series\": {\"fwd\": [Infinity]}}", MAREY_EINVAL, "'fwd' is infinite"},
        {"{\"series\": {\"fwd\": [null]}}", MAREY_EINVAL, "'fwd' is no number"},
        {"{\"series\": {\"fwd\": 3}}", MAREY_EFORMAT, "not a list"},
        {"{\"series\": [{\"name\": \"bwd\", \"total_ns\": NaN}]}", MAREY_EINVAL, "'bwd' is NaN"},
        {"{\"series\": [{\"name\": \"bwd\"}]}", MAREY_EINVAL, "'bwd' is no number"},
        {"{\"series\": [3]}", MAREY_EFORMAT, "not an object"},
        {"{\"series\": {\"(iteration)\": [NaN]}}", MAREY_EINVAL, "'(iteration)' is NaN"},
        {"{}", MAREY_EMISMATCH, "no times"},
        {"{\"series\": {}}", MAREY_EMISMATCH, "no times"},
        {"{\"series\": {\"a\": [1,]}}", MAREY_EFORMAT, "comma"},
        {"{\"series\": {\"a\": [1 2]}}", MAREY_EFORMAT, "comma"},
        {"{\"series\": {\"a\": [1]}", MAREY_EFORMAT, "ends in the middle"},
        {"{\"series\": {\"a\": [1]}} x", MAREY_EFORMAT, ""},
        {"{\"series\": {\"a\\q\": [1]}}", MAREY_EFORMAT, "escape"},
        {"{\"series", MAREY_EFORMAT, "ends in the middle"},
        {"{\"x\": [[[", MAREY_EFORMAT, "ends in the middle"},
        {"{\"runs\": [1]}", MAREY_EFORMAT, "runs"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        marey_report *c = NULL;
        const marey_status status =
            compare_texts("{\"series\": {\"fwd\": [" TEN "]}}", cases[i].text, &c);
        if (status != cases[i].status || strstr(marey_last_error(), cases[i].words) == NULL)
            fail_msg("%s: %s, %s", cases[i].text, marey_status_name(status), marey_last_error());
        assert_null(c);
    }
}

static void nothing_in_common_is_an_error_that_names_both(void **state)
{
    marey_report *c = NULL;
    (void)state;
    assert_int_equal(compare_texts("{\"series\": {\"a\": [1]}}", "{\"series\": {\"b\": [1]}}", &c),
                     MAREY_EMISMATCH);
    assert_non_null(strstr(marey_last_error(), "no range is in both"));
    static const char *const sides[] = {"A", "C"}, *const both[] = {"/nowhere", "/nowhere"};
    const struct marey_report_options options = {.groups = &sides[1]};
    assert_int_equal(marey_report_create_files("compare", NULL, 0, NULL, &c), MAREY_EMISMATCH);
    assert_non_null(strstr(marey_last_error(), "side A has nothing"));
    assert_int_equal(marey_report_create_files("compare", both, 2, NULL, &c), MAREY_EIO);
    assert_int_equal(marey_report_create_files("compare", both, 1, &options, &c), MAREY_EINVAL);
    assert_null(c);
}

/* ---- recordings ---- */

static void put_iteration(struct log_maker *log, uint64_t tick, uint64_t number, bool is_warmup)
{
    const uint64_t words[] = {number, is_warmup, 0};
    log_record(log, tick, MAREY_RECORD_ITERATION, words, 3);
}

/*
 * Iterations of 1000 ticks or so, `outer` in each for `step` of them, `leaf` in every second; two of warm-up, which
 * take ten times as long.
 */
static void make_log(struct log_maker *log, const char *const *extra, uint64_t step)
{
    uint64_t now = 1000;
    const char *pairs[32] = {"pid",  "100",   "rank", "0",       "host",
                             "here", "clock", "tsc",  "tick_hz", "1000000000"};
    for (size_t i = 0; extra[i] != NULL; i++)
        pairs[10 + i] = extra[i];
    log_put_pairs(log, MAREY__BLOCK_LOG, pairs);
    log_put_site(log, 1, "outer");
    log_put_site(log, 2, "inner");
    log_put_site(log, 3, "leaf");
    log_put_lane(log, 0, 100, "main");
    log_put_moment(log, 0, 0);
    for (uint64_t i = 0; i < 60; i++) {
        const uint64_t times = i < 2 ? 10 : 1;
        log_begin(log, now, 1);
        log_end(log, now += times * step + i % 7, 1);
        if (i % 2 == 0) {
            log_begin(log, now, 3);
            log_end(log, now += 50, 3);
        }
        put_iteration(log, now += times * 100, i, i < 2);
    }
    log_put_words(log, 0, 0);
    log_put_moment(log, now, now);
    log_put_end(log, "stop");
}

static marey_status compare_logs(struct log_maker *a, struct log_maker *b, marey_report **out)
{
    char paths[2][64];
    log_write(a->bytes.data, a->bytes.len, paths[0]);
    log_write(b->bytes.data, b->bytes.len, paths[1]);
    const marey_status status = compare_files(paths[0], paths[1], out);
    unlink(paths[0]);
    unlink(paths[1]);
    return status;
}

static size_t row_of(marey_report *c, const char *name)
{
    return table_row(marey_report_table(c, "ranges"), "name", name);
}

static void iterations_of_recordings_are_compared_without_their_warm_up(void **state)
{
    static const char *const none[] = {NULL};
    struct log_maker a = {0}, b = {0};
    marey_report *c = NULL;
    (void)state;
    make_log(&a, none, 1000);
    make_log(&b, none, 1200);
    assert_int_equal(compare_logs(&a, &b, &c), MAREY_OK);
    assert_int_equal(cell(c, "runs", 0, "n_iterations").as.u64, 58);
    assert_int_equal(cell(c, "runs", 0, "n_left_out").as.u64, 2);
    const size_t outer = row_of(c, "outer"), leaf = row_of(c, "leaf");
    assert_int_equal(outer, 0); /* it does most */
    assert_string_equal(cell(c, "ranges", outer, "verdict").as.text, "slower");
    assert_true(fabs(cell(c, "ranges", outer, "change_percent").as.f64 - 20) < 0.5);
    assert_string_equal(cell(c, "ranges", leaf, "verdict").as.text, "same");
    assert_int_equal(cell(c, "ranges", leaf, "n_a").as.u64, 29);
    assert_true(fabs(cell(c, "iteration", 0, "change_percent").as.f64 - 17.8) < 1);
    /* What outer does to the whole is what the whole does. */
    assert_true(fabs(cell(c, "ranges", outer, "effect_percent").as.f64 -
                     cell(c, "iteration", 0, "change_percent").as.f64) < 0.7);
    marey_report_destroy(c);
    log_maker_fini(&a);
    log_maker_fini(&b);
}

static bool warns_of(marey_report *c, const char *words)
{
    const marey_table *warnings = marey_report_table(c, "warnings");
    for (size_t row = 0; row < marey_table_n_rows(warnings); row++)
        if (strstr(marey_table_cell(warnings, row, 0).as.text, words) != NULL)
            return true;
    return false;
}

static void machines_that_differ_are_reported(void **state)
{
    static const char *const old[] = {
        "cpu", "Old CPU", "kernel", "6.1", "load_percent", "10", "gpu", "A100", "cpus", "8", NULL};
    static const char *const new[] = {"cpu",          "New CPU", "kernel", "6.1",
                                      "load_percent", "450",     "gpu",    "A100",
                                      "cpus",         "16",      NULL};
    struct log_maker a = {0}, b = {0};
    marey_report *c = NULL;
    (void)state;
    make_log(&a, old, 1000);
    make_log(&b, new, 1000);
    assert_int_equal(compare_logs(&a, &b, &c), MAREY_OK);
    assert_true(warns_of(c, "the CPU is not the same in all runs: Old CPU and New CPU"));
    assert_true(warns_of(c, "8 and 16"));
    assert_true(warns_of(c, "load was 0.1 at the start of A and 4.5 at the start of B"));
    assert_true(warns_of(c, "one run on each side"));
    assert_false(warns_of(c, "kernel"));
    assert_false(warns_of(c, "GPU"));
    marey_report_destroy(c);
    log_maker_fini(&a);
    log_maker_fini(&b);
}

static void different_numbers_of_ranks_are_refused(void **state)
{
    static const char *const two[] = {"world_size", "2", NULL}, *const four[] = {"world_size", "4",
                                                                                 NULL};
    struct log_maker a = {0}, b = {0};
    marey_report *c = NULL;
    (void)state;
    make_log(&a, two, 1000);
    make_log(&b, four, 1000);
    assert_int_equal(compare_logs(&a, &b, &c), MAREY_EMISMATCH);
    assert_non_null(strstr(marey_last_error(), "with 2 ranks"));
    assert_non_null(strstr(marey_last_error(), "with 4"));
    marey_report_destroy(c);
    log_maker_fini(&a);
    log_maker_fini(&b);
}

static void calls_are_compared_where_there_are_no_iterations(void **state)
{
    struct log_maker a = {0}, b = {0};
    marey_report *c = NULL;
    (void)state;
    log_put_preamble(&a);
    log_put_ranges(&a, 5000);
    log_put_preamble(&b);
    log_put_ranges(&b, 5000);
    assert_int_equal(compare_logs(&a, &b, &c), MAREY_OK);
    assert_int_equal(marey_table_n_rows(marey_report_table(c, "iteration")), 0);
    assert_int_equal(cell(c, "ranges", 0, "n_a").as.u64, 5000);
    assert_string_equal(cell(c, "ranges", 0, "verdict").as.text, "same");
    assert_true(cell(c, "ranges", 0, "effect_percent").is_null);
    marey_report_destroy(c);
    log_maker_fini(&a);
    log_maker_fini(&b);
}

/* 1000 calls of `outer` in `ns` together, within a recursion of as many. */
static void make_profile(struct log_maker *log, uint64_t ns)
{
    log_put_preamble(log);
    log_repeat(log, 0, 1000);
    log_begin(log, 0, 1);
    log_repeat(log, 0, 1000);
    log_begin(log, 0, 1);
    log_end(log, ns / 2, 1);
    log_end(log, ns, 1);
    log_put_words(log, 0, 0);
    log_put_end(log, "stop");
}

static void of_profiles_the_time_of_the_whole_run_is_compared(void **state)
{
    struct log_maker a = {0}, b = {0};
    marey_report *c = NULL;
    (void)state;
    make_profile(&a, 1000000);
    make_profile(&b, 1500000);
    assert_int_equal(compare_logs(&a, &b, &c), MAREY_OK);
    assert_int_equal(cell(c, "ranges", 0, "n_a").as.u64, 1);
    assert_true(fabs(cell(c, "ranges", 0, "change_percent").as.f64 - 50) < 1e-3);
    assert_string_equal(cell(c, "ranges", 0, "verdict").as.text, "unsure");
    bool is_reported = false;
    const marey_table *warnings = marey_report_table(c, "warnings");
    for (size_t i = 0; i < marey_table_n_rows(warnings); i++)
        is_reported |=
            strstr(cell(c, "warnings", i, "text").as.text, "both sides are profiles") != NULL;
    assert_true(is_reported);
    marey_report_destroy(c);
    log_maker_fini(&a);
    log_maker_fini(&b);
}

static void an_empty_recording_is_named(void **state)
{
    static const char *const none[] = {NULL};
    struct log_maker a = {0}, b = {0};
    marey_report *c = NULL;
    (void)state;
    make_log(&a, none, 1000);
    log_put_preamble(&b);
    assert_int_equal(compare_logs(&a, &b, &c), MAREY_EMISMATCH);
    assert_non_null(strstr(marey_last_error(), "(side B) has nothing to compare"));
    marey_report_destroy(c);
    log_maker_fini(&a);
    log_maker_fini(&b);
}

/* ---- memory that runs out ---- */

static void every_allocation_may_fail(void **state)
{
    static const char *const none[] = {NULL};
    struct log_maker a = {0};
    (void)state;
    make_log(&a, none, 1000);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t n = 1; status != MAREY_OK; n++) {
        char path[64], stats[64], *text = NULL;
        size_t len;
        marey_report *c = NULL;
        log_write(a.bytes.data, a.bytes.len, path);
        write_stats("{\"series\": {\"outer\": [" TEN "], \"(iteration)\": [" TEN "]}}", stats);
        FILE *out = open_memstream(&text, &len);
        assert_non_null(out);
        marey__alloc_fail_nth(n);
        const char *const paths[] = {path, stats};
        const struct marey_report_options options = {.n_jobs = 1};
        status = marey_report_create_files("compare", paths, 2, &options, &c);
        if (status == MAREY_OK)
            status = marey_report_write(c, "text", NULL, out);
        if (status == MAREY_OK)
            status = marey_report_write(c, "markdown", NULL, out);
        if (status == MAREY_OK)
            status = marey_report_write(c, "json", NULL, out);
        marey__alloc_fail_nth(0);
        marey_report_destroy(c);
        fclose(out);
        free(text);
        unlink(path);
        unlink(stats);
        assert_true(n < 10000);
    }
    log_maker_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians_by_digits_are_those_of_sorting),
        cmocka_unit_test(bounds_by_ranks_are_those_of_the_tables),
        cmocka_unit_test(student_s_t_is_that_of_the_tables),
        cmocka_unit_test(times_that_never_vary_give_a_certain_answer),
        cmocka_unit_test(few_times_are_unsure_and_say_so),
        cmocka_unit_test(one_wrecked_run_does_not_hide_a_change),
        cmocka_unit_test(few_runs_go_by_student_s_t),
        cmocka_unit_test(wrong_times_are_refused),
        cmocka_unit_test(times_of_zero_are_unsure),
        cmocka_unit_test(stats_by_name_are_compared),
        cmocka_unit_test(rows_of_a_stopwatch_are_series),
        cmocka_unit_test(a_file_may_hold_several_runs),
        cmocka_unit_test(wrong_stats_are_refused_with_the_range),
        cmocka_unit_test(nothing_in_common_is_an_error_that_names_both),
        cmocka_unit_test(iterations_of_recordings_are_compared_without_their_warm_up),
        cmocka_unit_test(machines_that_differ_are_reported),
        cmocka_unit_test(different_numbers_of_ranks_are_refused),
        cmocka_unit_test(calls_are_compared_where_there_are_no_iterations),
        cmocka_unit_test(of_profiles_the_time_of_the_whole_run_is_compared),
        cmocka_unit_test(an_empty_recording_is_named),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
