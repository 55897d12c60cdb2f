/* Iterations, epochs and phases: from when to when, what ran in them on which thread, over ranks, across losses. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyze/walk/internal.h"
#include "log_maker.h"
#include "summary_view.h"
#include <marey/report.h>

enum { OUTER = 1, INNER = 2, LEAF = 3 };

static int setup(void **state)
{
    struct log_maker *log = *state = calloc(1, sizeof *log);
    if (log != NULL)
        log_put_preamble(log);
    return log == NULL;
}

static int teardown(void **state)
{
    log_maker_fini(*state);
    free(*state);
    return 0;
}

static marey_report *summarise(struct log_maker *log, const struct marey_report_options *options);

/* ---- series ---- */

struct opened {
    marey_recording *recording;
    struct marey__series series;
};

static struct opened read_series(struct log_maker *log)
{
    struct opened opened = {0};
    log_put_end(log, "stop");
    assert_int_equal(log_open(log, &opened.recording), MAREY_OK);
    assert_int_equal(marey__series_read(&opened.series, opened.recording, 0, 0), MAREY_OK);
    return opened;
}

static void close_series(struct opened *opened)
{
    marey__series_fini(&opened->series);
    log_close(opened->recording);
}

static uint64_t time_of(const struct marey__series *series, const char *name, size_t iteration)
{
    for (size_t i = 0; i < series->n_names; i++)
        if (strcmp(series->names[i].text, name) == 0)
            return (uint64_t)series->names[i].ns[iteration];
    fail_msg("%s ran in no iteration", name);
    return 0;
}

static void iterations_follow_one_another(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 10, OUTER);
    log_end(log, 40, OUTER);
    log_iteration(log, 50, 0, true, 0);
    log_begin(log, 60, OUTER);
    log_begin(log, 65, INNER);
    log_end(log, 70, INNER);
    log_begin(log, 72, INNER);
    log_end(log, 75, INNER);
    log_end(log, 90, OUTER);
    log_iteration(log, 100, 1, false, 32);
    log_put_words(log, 0, 0);
    struct opened opened = read_series(log);
    const struct marey__series *series = &opened.series;
    assert_int_equal(series->n_iterations, 2);
    assert_int_equal(series->flags[0], MAREY__ITERATION_WARMUP);
    assert_int_equal(series->flags[1], 0);
    assert_int_equal(series->numbers[1], 1);
    assert_int_equal((uint64_t)series->ns[0], 50); /* the block's base is the first moment known */
    assert_int_equal((uint64_t)series->ns[1], 50);
    assert_int_equal((uint64_t)series->samples[1], 32);
    assert_int_equal(time_of(series, "outer", 0), 30);
    assert_int_equal(time_of(series, "outer", 1), 30);
    assert_int_equal(time_of(series, "inner", 0), 0);
    assert_int_equal(time_of(series, "inner", 1), 8);
    close_series(&opened);
}

static void a_range_over_a_boundary_is_split(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    log_iteration(log, 100, 0, false, 0);
    log_iteration(log, 250, 1, false, 0);
    log_end(log, 300, OUTER);
    log_iteration(log, 400, 2, false, 0);
    log_put_words(log, 0, 0);
    struct opened opened = read_series(log);
    assert_int_equal(time_of(&opened.series, "outer", 0), 100);
    assert_int_equal(time_of(&opened.series, "outer", 1), 150);
    assert_int_equal(time_of(&opened.series, "outer", 2), 50);
    close_series(&opened);
}

static void a_begin_epoch_or_phase_starts_the_iteration(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER); /* loading: no part of an iteration */
    log_end(log, 50, OUTER);
    log_epoch(log, 60, 0, true);
    log_iteration(log, 100, 0, false, 0);
    log_phase(log, 150, LEAF);
    log_iteration(log, 200, 1, false, 0);
    log_iteration_begin(log, 230, 2);
    log_phase(log, 240, LEAF); /* its own begin holds */
    log_iteration(log, 300, 2, false, 0);
    log_put_words(log, 0, 0);
    struct opened opened = read_series(log);
    assert_int_equal(opened.series.n_names, 0);
    assert_int_equal((uint64_t)opened.series.ns[0], 40);
    assert_int_equal((uint64_t)opened.series.ns[1], 50);
    assert_int_equal((uint64_t)opened.series.ns[2], 70);
    close_series(&opened);
}

/* The other thread writes little: its one block is the last of the log. Times are as if all had been read in order. */
static void threads_are_joined_by_time(void **state)
{
    struct log_maker *log = *state;
    log_put_lane(log, 1, 101, "loader");
    for (uint64_t i = 0; i < 100; i++) {
        log_begin(log, 1000 * i + 10, OUTER);
        log_end(log, 1000 * i + 20 + i, OUTER);
        log_iteration(log, 1000 * i + 1000, i, false, 0);
        if (i % 10 == 9)
            log_put_words(log, 0, (uint32_t)i / 10);
    }
    for (uint64_t i = 0; i < 100; i++) {
        log_begin(log, 1000 * i + 500, OUTER);
        log_begin(log, 1000 * i + 501, INNER);
        log_end(log, 1000 * i + 502 + i, INNER);
        log_end(log, 1000 * i + 1100, OUTER); /* 100 of it lie in the next iteration */
    }
    log_put_words(log, 1, 0);
    struct opened opened = read_series(log);
    assert_int_equal(opened.series.n_iterations, 100);
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(time_of(&opened.series, "inner", i), 1 + i);
        assert_int_equal(time_of(&opened.series, "outer", i), 10 + i + 500 + (i == 0 ? 0 : 100));
    }
    close_series(&opened);
}

static void records_may_come_from_several_threads(void **state)
{
    struct log_maker *log = *state;
    log_put_lane(log, 1, 101, "other");
    for (uint64_t i = 1; i < 10; i += 2)
        log_iteration(log, 100 * i + 100, i, false, 0);
    log_put_words(log, 1, 0);
    for (uint64_t i = 0; i < 10; i += 2) {
        log_iteration(log, 100 * i + 100, i, false, 0);
        log_begin(log, 100 * i + 110, LEAF);
        log_end(log, 100 * i + 110 + i, LEAF);
    }
    log_put_words(log, 0, 0);
    struct opened opened = read_series(log);
    assert_int_equal(opened.series.n_iterations, 10);
    for (uint64_t i = 0; i < 10; i++) {
        assert_int_equal(opened.series.numbers[i], i);
        assert_int_equal(opened.series.flags[i], 0);
        assert_int_equal((uint64_t)opened.series.ns[i], 100);
        assert_int_equal(time_of(&opened.series, "leaf", i), i % 2 == 0 ? 0 : i - 1);
    }
    close_series(&opened);
}

/* Threads that come and go, each with its own lane, while iterations go on: all of them are joined. */
static void short_threads_are_joined_where_they_ran(void **state)
{
    enum { N = 300 };
    struct log_maker *log = *state;
    for (uint32_t i = 0; i < N; i++)
        log_iteration(log, 100 * i + 100, i, false, 0);
    log_put_words(log, 0, 0);
    for (uint32_t i = N; i-- > 0;) { /* written in no order */
        log->base_tick = 100 * i + 20;
        log_begin(log, 100 * i + 20, LEAF);
        log_end(log, 100 * i + 21 + i % 50, LEAF);
        log_put_words(log, 1 + i, 0);
    }
    log->base_tick = 0;
    struct opened opened = read_series(log);
    assert_int_equal(opened.series.n_iterations, N);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(time_of(&opened.series, "leaf", i), 1 + i % 50);
    close_series(&opened);
}

/* Bytes that were changed in a block of the other thread: what lies there is marked, the rest is right. */
static void damage_on_another_thread_marks_what_lies_there(void **state)
{
    struct log_maker *log = *state;
    struct opened opened = {0};
    log_put_lane(log, 1, 101, "loader");
    for (uint64_t i = 0; i < 30; i++)
        log_iteration(log, 100 * i + 100, i, false, 0);
    log_put_words(log, 0, 0);
    size_t damaged = 0;
    for (uint32_t block = 0; block < 3; block++) {
        for (uint64_t i = 10 * block; i < 10 * (block + 1); i++) {
            log_begin(log, 100 * i + 10, LEAF);
            log_end(log, 100 * i + 30, LEAF);
        }
        const size_t at = log_put_words(log, 1, block);
        damaged = block == 1 ? at : damaged;
    }
    log_put_end(log, "stop");
    log->bytes.data[damaged + 50] ^= 1;
    assert_int_equal(log_open(log, &opened.recording), MAREY_OK);
    assert_true(marey_recording_is_damaged(opened.recording));
    assert_int_equal(marey__series_read(&opened.series, opened.recording, 0, 0), MAREY_OK);
    assert_int_equal(opened.series.n_iterations, 30);
    for (size_t i = 0; i < 30; i++) {
        /* From the last word known, at 930, to the next, at 2010. */
        assert_int_equal(opened.series.flags[i], i >= 9 && i <= 20 ? MAREY__ITERATION_CUT : 0);
        assert_int_equal(time_of(&opened.series, "leaf", i), i < 10 || i >= 20 ? 20 : 0);
    }
    close_series(&opened);
}

/* Records that are too short for their type never get as far; those around them do. */
static void short_records_are_left_out(void **state)
{
    static const enum marey_record_type types[] = {MAREY_RECORD_ITERATION,
                                                   MAREY_RECORD_ITERATION_BEGIN, MAREY_RECORD_EPOCH,
                                                   MAREY_RECORD_PHASE, MAREY_RECORD_END_OF};
    static const uint64_t bytes[] = {UINT64_MAX, UINT64_MAX};
    struct log_maker *log = *state;
    log_iteration(log, 100, 0, false, 0);
    for (size_t i = 0; i < MAREY__COUNT_OF(types); i++)
        log_record(log, 101 + i, types[i], bytes,
                   types[i] == MAREY_RECORD_ITERATION ? 2
                   : types[i] == MAREY_RECORD_EPOCH   ? 1
                                                      : 0);
    log_iteration(log, 200, 1, false, 0);
    log_put_words(log, 0, 0);
    struct opened opened = read_series(log);
    assert_int_equal(opened.series.n_iterations, 2);
    assert_int_equal(opened.series.flags[1], MAREY__ITERATION_CUT); /* something was there */
    close_series(&opened);
}

/* Numbers, samples and sites from outside may be anything. */
static void wild_values_are_taken_as_they_are(void **state)
{
    static const double samples[] = {-1, NAN, INFINITY, 1e300, 0x1p60};
    struct log_maker *log = *state;
    for (size_t i = 0; i < MAREY__COUNT_OF(samples); i++)
        log_iteration(log, 100 * i + 100, UINT64_MAX - 2 * i, false, samples[i]);
    log_iteration_begin(log, 700, 7);
    log_iteration(log, 800, 7, false, 3);
    log_epoch(log, 900, UINT64_MAX, true);
    log_epoch(log, 900, 5, false);
    log_phase(log, 950, 0xfffff); /* no such site */
    log_end_of(log, 960, 0xfffff);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log, NULL);
    assert_int_equal(number(summary, "throughput", 0, "iterations"), MAREY__COUNT_OF(samples) + 1);
    assert_true(cell(summary, "throughput", 0, "samples").as.f64 == 3);
    (void)row_of(summary, "phases", "(unnamed)"); /* fails where it is not there */
    marey_report_destroy(summary);
}

static void what_lies_at_a_loss_is_marked(void **state)
{
    struct log_maker *log = *state;
    log_put_lane(log, 1, 101, "loader");
    for (uint64_t i = 0; i < 6; i++)
        log_iteration(log, 100 * i + 100, i, false, 0);
    log_put_words(log, 0, 0);
    log_begin(log, 110, LEAF);
    log_end(log, 120, LEAF);
    log_put_words(log, 1, 0);
    log_begin(log, 430, LEAF); /* sequence 1 is missing: from 120 to 430 */
    log_end(log, 440, LEAF);
    log_put_words(log, 1, 2);
    struct opened opened = read_series(log);
    const uint8_t expected[] = {0, 2, 2, 2, 2, 0};
    assert_memory_equal(opened.series.flags, expected, sizeof expected);
    close_series(&opened);
}

static void a_missing_record_marks_the_next_iteration(void **state)
{
    struct log_maker *log = *state;
    log_iteration(log, 100, 0, false, 0);
    log_iteration(log, 300, 2, false, 0); /* nobody knows where it began */
    log_iteration(log, 400, 3, false, 0);
    log_iteration_begin(log, 650, 6);
    log_iteration(log, 700, 6, false, 0); /* but here */
    log_iteration(log, 800, 0, false, 0); /* a count that was reset */
    log_put_words(log, 0, 0);
    struct opened opened = read_series(log);
    const uint8_t expected[] = {0, 2, 0, 0, 0};
    assert_int_equal(opened.series.n_iterations, 5);
    assert_memory_equal(opened.series.flags, expected, sizeof expected);
    assert_int_equal((uint64_t)opened.series.ns[3], 50);
    assert_int_equal((uint64_t)opened.series.ns[4], 100);
    close_series(&opened);
}

static void a_series_keeps_within_its_limit(void **state)
{
    struct log_maker *log = *state;
    struct marey__series series;
    marey_recording *recording;
    for (uint64_t i = 0; i < 500; i++)
        log_iteration(log, 100 * i + 100, i, false, 0);
    log_put_words(log, 0, 0);
    log_put_end(log, "stop");
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    assert_int_equal(marey__series_read(&series, recording, 0, 1000), MAREY_ENOMEM);
    assert_non_null(strstr(marey_last_error(), "do not fit"));
    assert_int_equal(series.n_iterations, 0);
    log_close(recording);
}

static void each_failed_allocation_is_reported(void **state)
{
    struct log_maker *log = *state;
    marey_recording *recording;
    log_put_lane(log, 1, 101, "loader");
    for (uint64_t i = 0; i < 20; i++) {
        log_begin(log, 100 * i, OUTER);
        log_end(log, 100 * i + 10, OUTER);
        log_iteration(log, 100 * i + 50, i, false, 1);
        log_epoch(log, 100 * i + 60, i, true);
        log_phase(log, 100 * i + 60, LEAF);
    }
    log_put_words(log, 0, 0);
    log_begin(log, 110, LEAF);
    log_put_words(log, 1, 0);
    log_put_end(log, "stop");
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t n = 1; status != MAREY_OK; n++) {
        struct marey__series series;
        marey__alloc_fail_nth(n);
        status = marey__series_read(&series, recording, 0, 0);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        marey__series_fini(&series);
    }
    status = MAREY_ENOMEM;
    for (uint64_t n = 1; status != MAREY_OK; n++) {
        marey_report *summary = NULL;
        marey__alloc_fail_nth(n);
        status = marey_report_create("ranges", &recording, 1, NULL, &summary);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        marey_report_destroy(summary);
    }
    log_close(recording);
}

/* ---- tables ---- */

static void expect_warning(marey_report *summary, const char *part)
{
    for (size_t row = 0; row < n_rows(summary, "warnings"); row++)
        if (strstr(cell(summary, "warnings", row, "text").as.text, part) != NULL)
            return;
    fail_msg("no warning says \"%s\"", part);
}

static marey_report *summarise(struct log_maker *log, const struct marey_report_options *options)
{
    marey_recording *recording = NULL;
    marey_report *summary = NULL;
    log_put_end(log, "stop");
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    assert_int_equal(marey_report_create("ranges", &recording, 1, options, &summary), MAREY_OK);
    log_close(recording);
    return summary;
}

/* Iterations 0 and 1 are warm-up; the others take 1000, outer 100 + i of it, inner 50 in each second one. */
static void put_loop(struct log_maker *log, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t t = 1000 * i;
        log_begin(log, t + 10, OUTER);
        log_end(log, t + 110 + i, OUTER);
        if (i % 2 == 0) {
            log_begin(log, t + 500, INNER);
            log_end(log, t + 550, INNER);
        }
        log_iteration(log, t + 1000, i, i < 2, 8);
    }
    log_put_words(log, 0, 0);
}

static void the_table_has_each_range_by_iteration(void **state)
{
    struct log_maker *log = *state;
    put_loop(log, 12);
    marey_report *summary = summarise(log, NULL);
    assert_int_equal(n_rows(summary, "iterations"), 4);
    assert_string_equal(cell(summary, "iterations", 0, "name").as.text, "(whole iteration)");
    assert_int_equal(number(summary, "iterations", 0, "count"), 10);
    assert_int_equal(number(summary, "iterations", 0, "mean_ns"), 1000);
    assert_int_equal(number(summary, "iterations", 0, "std_ns"), 0);
    assert_string_equal(cell(summary, "iterations", 3, "name").as.text, "(no range)");
    assert_int_equal(number(summary, "iterations", 3, "mean_ns"), 869); /* 1000 - 106.5 - 25 */
    const size_t outer = row_of(summary, "iterations", "outer"),
                 inner = row_of(summary, "iterations", "inner");
    assert_int_equal(number(summary, "iterations", outer, "count"), 10);
    assert_int_equal(number(summary, "iterations", outer, "mean_ns"), 107); /* of 102 to 111 */
    assert_int_equal(number(summary, "iterations", outer, "min_ns"), 102);
    assert_int_equal(number(summary, "iterations", outer, "max_ns"), 111);
    assert_int_equal(number(summary, "iterations", outer, "std_ns"), 3);
    assert_int_equal(number(summary, "iterations", inner, "count"), 10);
    assert_int_equal(number(summary, "iterations", inner, "ran"), 5);
    assert_int_equal(number(summary, "iterations", inner, "mean_ns"), 25);
    assert_int_equal(number(summary, "iterations", inner, "min_ns"), 0);
    assert_int_equal(number(summary, "iterations", inner, "p50_ns"), 0);
    assert_int_equal(number(summary, "iterations", inner, "p90_ns"), 50);
    assert_int_equal(number(summary, "iterations", inner, "max_ns"), 50);
    assert_true(cell(summary, "iterations", inner, "share").as.f64 == 0.025);
    marey_report_destroy(summary);
}

static void throughput_counts_samples_and_waiting(void **state)
{
    struct log_maker *log = *state;
    put_loop(log, 12);
    const struct marey_report_options options = {.settings =
                                                     (const char *const[]){"data=inner", NULL}};
    marey_report *summary = summarise(log, &options);
    assert_int_equal(n_rows(summary, "throughput"), 1);
    assert_int_equal(number(summary, "throughput", 0, "iterations"), 12);
    assert_int_equal(number(summary, "throughput", 0, "warmup"), 2);
    assert_int_equal(number(summary, "throughput", 0, "cut"), 0);
    assert_true(cell(summary, "throughput", 0, "iterations_per_s").as.f64 == 1e6);
    assert_true(cell(summary, "throughput", 0, "samples").as.f64 == 80);
    assert_true(cell(summary, "throughput", 0, "samples_per_s").as.f64 == 8e6);
    assert_true(cell(summary, "throughput", 0, "data_share").as.f64 == 0.025);
    marey_report_destroy(summary);
}

static void a_data_range_that_never_ran_is_reported(void **state)
{
    struct log_maker *log = *state;
    put_loop(log, 4);
    const struct marey_report_options options = {.settings =
                                                     (const char *const[]){"data=loading", NULL}};
    marey_report *summary = summarise(log, &options);
    expect_warning(summary, "No range 'loading' ran in an iteration");
    assert_true(cell(summary, "throughput", 0, "data_share").is_null);
    marey_report_destroy(summary);
}

static void without_iterations_the_tables_are_empty(void **state)
{
    static const char *const tables[] = {"iterations", "iteration_ranks", "throughput", "epochs",
                                         "phases",     "outliers",        "steady"};
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    log_end(log, 10, OUTER);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log, NULL);
    for (size_t i = 0; i < MAREY__COUNT_OF(tables); i++)
        assert_int_equal(n_rows(summary, tables[i]), 0);
    marey_report_destroy(summary);
}

static void epochs_and_phases_have_their_times(void **state)
{
    struct log_maker *log = *state;
    log_epoch(log, 100, 0, true);
    log_epoch(log, 101, 0, true); /* said again, as where a recording opens */
    log_phase(log, 100, OUTER);
    log_iteration(log, 200, 0, false, 4);
    log_iteration(log, 300, 1, false, 4);
    log_phase(log, 350, INNER);
    log_phase(log, 400, 0);
    log_epoch(log, 400, 0, false);
    log_epoch(log, 500, 1, true);
    log_phase(log, 500, OUTER);
    log_iteration(log, 600, 2, false, 4);
    log_begin(log, 700, LEAF);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log, NULL);
    assert_int_equal(n_rows(summary, "epochs"), 2);
    assert_int_equal(number(summary, "epochs", 0, "duration_ns"), 300);
    assert_int_equal(number(summary, "epochs", 0, "iterations"), 2);
    assert_true(cell(summary, "epochs", 0, "samples").as.f64 == 8);
    assert_int_equal(number(summary, "epochs", 0, "ended"), 1);
    assert_int_equal(number(summary, "epochs", 1, "number"), 1);
    assert_int_equal(number(summary, "epochs", 1, "duration_ns"), 200); /* up to the last event */
    assert_int_equal(number(summary, "epochs", 1, "ended"), 0);
    const size_t train = row_of(summary, "phases", "outer");
    assert_int_equal(number(summary, "phases", train, "count"), 2);
    assert_int_equal(number(summary, "phases", train, "total_ns"), 250 + 200);
    assert_int_equal(number(summary, "phases", train, "iterations"), 3);
    assert_int_equal(number(summary, "phases", row_of(summary, "phases", "inner"), "total_ns"), 50);
    marey_report_destroy(summary);
}

static void phases_within_an_iteration_count_it(void **state)
{
    struct log_maker *log = *state;
    for (uint64_t i = 0; i < 5; i++) {
        log_iteration_begin(log, 1000 * i, i);
        log_phase(log, 1000 * i + 100, INNER); /* twice in each iteration, and once around its end */
        log_phase(log, 1000 * i + 200, LEAF);
        log_phase(log, 1000 * i + 300, INNER);
        log_phase(log, 1000 * i + 400, OUTER);
        log_iteration(log, 1000 * i + 900, i, false, 0);
        log_phase(log, 1000 * i + 950, 0);
    }
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log, NULL);
    assert_int_equal(number(summary, "phases", row_of(summary, "phases", "inner"), "count"), 10);
    assert_int_equal(number(summary, "phases", row_of(summary, "phases", "inner"), "iterations"), 5);
    assert_int_equal(number(summary, "phases", row_of(summary, "phases", "leaf"), "iterations"), 5);
    assert_int_equal(number(summary, "phases", row_of(summary, "phases", "outer"), "iterations"), 5);
    marey_report_destroy(summary);
}

/* The 70th takes 5000 longer, all of it in `leaf`, which lies in `inner`, which lies in `outer`. */
static void an_outlier_names_the_innermost_that_was_longer(void **state)
{
    struct log_maker *log = *state;
    uint64_t t = 0;
    for (uint64_t i = 0; i < 200; i++) {
        const uint64_t extra = i == 70 ? 5000 : 0;
        log_begin(log, t, OUTER);
        log_begin(log, t + 100, INNER);
        log_begin(log, t + 200, LEAF);
        log_end(log, t + 300 + extra, LEAF);
        log_end(log, t + 500 + extra, INNER);
        log_end(log, t + 900 + extra, OUTER);
        t += 1000 + extra + (i == 90 ? 4000 : 0); /* in that one nothing ran longer */
        log_iteration(log, t, i, false, 0);
    }
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log, NULL);
    assert_int_equal(n_rows(summary, "outliers"), 2);
    assert_int_equal(number(summary, "outliers", 0, "iteration"), 70);
    assert_int_equal(number(summary, "outliers", 0, "duration_ns"), 6000);
    assert_string_equal(cell(summary, "outliers", 0, "longer").as.text, "leaf");
    assert_int_equal(number(summary, "outliers", 0, "extra_ns"), 5100 - 125);
    assert_int_equal(number(summary, "outliers", 1, "iteration"), 90);
    assert_true(cell(summary, "outliers", 1, "longer").is_null);
    marey_report_destroy(summary);
}

static void iterations_at_a_loss_are_left_out_and_counted(void **state)
{
    struct log_maker *log = *state;
    log_iteration(log, 100, 0, false, 0);
    log_put_words(log, 0, 0);
    log_iteration(log, 900, 4, false, 0);
    log_iteration(log, 1000, 5, false, 0);
    log_put_words(log, 0, 3);
    marey_report *summary = summarise(log, NULL);
    assert_int_equal(number(summary, "iterations", 0, "count"), 2);
    assert_int_equal(number(summary, "iterations", 0, "max_ns"), 100);
    assert_int_equal(number(summary, "throughput", 0, "cut"), 1);
    expect_warning(summary, "1 iteration with lost events");
    marey_report_destroy(summary);
}

/* ---- END_OF ---- */

static void an_overlapping_range_ends_alone(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    log_begin(log, 10, INNER);
    log_begin(log, 30, LEAF);
    log_end_of(log, 60, INNER); /* while leaf goes on */
    log_end(log, 90, LEAF);
    log_end_of(log, 95, LEAF); /* is not there */
    log_end_of(log, 100, OUTER);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log, NULL);
    const struct {
        const char *name;
        uint64_t total, self;
    } expected[] = {{"outer", 100, 20}, {"inner", 50, 20}, {"leaf", 60, 60}};
    for (size_t i = 0; i < MAREY__COUNT_OF(expected); i++) {
        const size_t row = row_of(summary, "ranges", expected[i].name);
        assert_int_equal(number(summary, "ranges", row, "total_ns"), expected[i].total);
        assert_int_equal(number(summary, "ranges", row, "self_ns"), expected[i].self);
    }
    assert_int_equal(n_rows(summary, "open"), 0);
    expect_warning(summary, "1 end without a begin");
    marey_report_destroy(summary);
}

/* ---- ranks ---- */

struct ranks {
    char folder[32];
    marey_recording *recording;
};

/* A recording of several ranks; iteration i of rank r takes duration(r, i). */
static struct ranks make_ranks(uint32_t n_ranks, uint64_t (*duration)(uint32_t rank, uint64_t i))
{
    struct ranks ranks = {.folder = "/tmp/marey-ranks-XXXXXX"};
    assert_non_null(mkdtemp(ranks.folder));
    for (uint32_t r = 0; r < n_ranks; r++) {
        struct log_maker *log = calloc(1, sizeof *log);
        char rank[12], path[64];
        snprintf(rank, sizeof rank, "%u", r);
        log_put_process(log, "rank", rank);
        log_put_site(log, OUTER, "step");
        log_put_lane(log, 0, 100, "main");
        log_put_moment(log, 0, 0);
        log_put_moment(log, 1000000000, 1000000000);
        uint64_t t = 0;
        for (uint64_t i = 0; i < 100; i++) {
            log_begin(log, t, OUTER);
            t += duration(r, i);
            log_end(log, t, OUTER);
            log_iteration(log, t, i, i == 0, 2);
        }
        log_put_words(log, 0, 0);
        log_put_end(log, "stop");
        snprintf(path, sizeof path, "%s/r%u.klog", ranks.folder, r);
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(log->bytes.data, 1, log->bytes.len, file), log->bytes.len);
        assert_int_equal(fclose(file), 0);
        log_maker_fini(log);
        free(log);
    }
    assert_int_equal(marey_recording_open(ranks.folder, &ranks.recording), MAREY_OK);
    return ranks;
}

static marey_report *summarise_ranks(struct ranks *ranks)
{
    char path[64];
    marey_report *summary;
    assert_int_equal(marey_report_create("ranges", &ranks->recording, 1, NULL, &summary), MAREY_OK);
    const size_t n = marey_recording_n_processes(ranks->recording);
    marey_recording_close(ranks->recording);
    for (size_t r = 0; r < n; r++) {
        snprintf(path, sizeof path, "%s/r%zu.klog", ranks->folder, r);
        unlink(path);
    }
    assert_int_equal(rmdir(ranks->folder), 0);
    return summary;
}

/* Rank 2 takes 400 longer but in each tenth iteration, where rank 0 does. */
static uint64_t one_slow_rank(uint32_t rank, uint64_t i)
{
    return 1000 + rank + (rank == (i % 10 == 0 ? 0 : 2) ? 400 : 0);
}

static void the_straggler_is_counted_over_ranks(void **state)
{
    (void)state;
    struct ranks ranks = make_ranks(4, one_slow_rank);
    marey_report *summary = summarise_ranks(&ranks);
    assert_int_equal(n_rows(summary, "iteration_ranks"), 4);
    assert_int_equal(number(summary, "iteration_ranks", 0, "slowest"), 9); /* 10 to 90; 0 is warm-up */
    assert_int_equal(number(summary, "iteration_ranks", 2, "slowest"), 90);
    assert_int_equal(number(summary, "iteration_ranks", 3, "slowest"), 0);
    assert_true(cell(summary, "iteration_ranks", 2, "slowest_share").as.f64 == 90.0 / 99);
    assert_int_equal(number(summary, "iteration_ranks", 2, "behind_ns"), 401); /* the others: 1001.33 */
    const size_t step = row_of(summary, "iterations", "step");
    assert_int_equal(number(summary, "iterations", step, "count"), 4 * 99);
    assert_int_equal(number(summary, "iterations", step, "rank_min_ns"), 1001);
    assert_int_equal(number(summary, "iterations", step, "rank_max_ns"), 1366);
    assert_int_equal(cell(summary, "iterations", step, "max_rank").as.i64, 2);
    assert_int_equal(number(summary, "throughput", 0, "ranks"), 4);

    FILE *out = tmpfile();
    char text[8192] = {0};
    assert_int_equal(marey_report_write(summary, "text", NULL, out), MAREY_OK);
    rewind(out);
    assert_true(fread(text, 1, sizeof text - 1, out) > 0);
    fclose(out);
    assert_non_null(
        strstr(text, "rank 2 is slowest in 90.9 % of iterations, by 401 ns on average"));
    marey_report_destroy(summary);
}

static uint64_t even_ranks(uint32_t rank, uint64_t i)
{
    return 1000 + (rank == i % 4 ? 100 : 0);
}

static void ranks_that_take_turns_have_no_straggler(void **state)
{
    (void)state;
    struct ranks ranks = make_ranks(4, even_ranks);
    marey_report *summary = summarise_ranks(&ranks);
    for (size_t r = 1; r < 4; r++)
        assert_int_equal(number(summary, "iteration_ranks", r, "slowest"), 25);
    FILE *out = tmpfile();
    char text[8192] = {0};
    assert_int_equal(marey_report_write(summary, "text", NULL, out), MAREY_OK);
    rewind(out);
    assert_true(fread(text, 1, sizeof text - 1, out) > 0);
    fclose(out);
    assert_null(strstr(text, "is slowest in"));
    marey_report_destroy(summary);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(iterations_follow_one_another),
        TEST(a_range_over_a_boundary_is_split),
        TEST(a_begin_epoch_or_phase_starts_the_iteration),
        TEST(threads_are_joined_by_time),
        TEST(records_may_come_from_several_threads),
        TEST(short_threads_are_joined_where_they_ran),
        TEST(damage_on_another_thread_marks_what_lies_there),
        TEST(short_records_are_left_out),
        TEST(wild_values_are_taken_as_they_are),
        TEST(what_lies_at_a_loss_is_marked),
        TEST(a_missing_record_marks_the_next_iteration),
        TEST(a_series_keeps_within_its_limit),
        TEST(each_failed_allocation_is_reported),
        TEST(the_table_has_each_range_by_iteration),
        TEST(throughput_counts_samples_and_waiting),
        TEST(a_data_range_that_never_ran_is_reported),
        TEST(without_iterations_the_tables_are_empty),
        TEST(epochs_and_phases_have_their_times),
        TEST(phases_within_an_iteration_count_it),
        TEST(an_outlier_names_the_innermost_that_was_longer),
        TEST(iterations_at_a_loss_are_left_out_and_counted),
        TEST(an_overlapping_range_ends_alone),
        cmocka_unit_test(the_straggler_is_counted_over_ranks),
        cmocka_unit_test(ranks_that_take_turns_have_no_straggler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
