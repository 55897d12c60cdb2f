/* The summary: stacks, trees, recursion, gaps, async ranges, merging. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

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

/* ---- looking into tables ---- */

static void expect_range(marey_report *summary, const char *name, uint64_t count, uint64_t total,
                         uint64_t self)
{
    const size_t row = row_of(summary, "ranges", name);
    assert_int_equal(number(summary, "ranges", row, "count"), count);
    assert_int_equal(number(summary, "ranges", row, "total_ns"), total);
    assert_int_equal(number(summary, "ranges", row, "self_ns"), self);
}

static void expect_warning(marey_report *summary, const char *part)
{
    for (size_t row = 0; row < n_rows(summary, "warnings"); row++)
        if (strstr(cell(summary, "warnings", row, "text").as.text, part) != NULL)
            return;
    fail_msg("no warning says \"%s\"", part);
}

/* ---- summaries of one log ---- */

static marey_report *summarise_with(struct log_maker *log, const struct marey_report_options *options)
{
    marey_recording *recording = NULL;
    marey_report *summary = NULL;
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    assert_int_equal(marey_report_create("ranges", &recording, 1, options, &summary), MAREY_OK);
    log_close(recording); /* the summary stands alone */
    return summary;
}

static marey_report *summarise(struct log_maker *log)
{
    log_put_end(log, "stop");
    return summarise_with(log, NULL);
}

static void times_are_split_into_self_and_children(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    log_begin(log, 10, INNER);
    log_begin(log, 20, LEAF);
    log_end(log, 25, LEAF);
    log_end(log, 40, INNER);
    log_begin(log, 50, LEAF);
    log_end(log, 60, 0); /* whatever was begun last */
    log_end(log, 100, OUTER);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log);
    expect_range(summary, "outer", 1, 100, 60);
    expect_range(summary, "inner", 1, 30, 25);
    expect_range(summary, "leaf", 2, 15, 15);
    const size_t leaf = row_of(summary, "ranges", "leaf");
    assert_int_equal(number(summary, "ranges", leaf, "mean_ns"), 8);
    assert_int_equal(number(summary, "ranges", leaf, "min_ns"), 5);
    assert_int_equal(number(summary, "ranges", leaf, "max_ns"), 10);
    assert_int_equal(number(summary, "ranges", leaf, "p50_ns"), 5);
    assert_int_equal(number(summary, "ranges", leaf, "threads"), 1);
    assert_int_equal(number(summary, "ranges", leaf, "processes"), 1);
    assert_true(cell(summary, "ranges", leaf, "share").as.f64 == 0.15);
    assert_string_equal(cell(summary, "ranges", 0, "name").as.text, "outer");
    assert_int_equal(n_rows(summary, "open"), 0);
    assert_int_equal(n_rows(summary, "warnings"), 0);
    assert_null(marey_report_table(summary, "nothing"));
    marey_report_destroy(summary);
}

static void the_tree_is_depth_first_and_heaviest_first(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, INNER); /* a root of less weight comes first in time */
    log_end(log, 5, INNER);
    log_begin(log, 10, OUTER);
    log_begin(log, 20, INNER);
    log_end(log, 30, INNER);
    log_begin(log, 30, LEAF);
    log_end(log, 60, LEAF);
    log_end(log, 100, OUTER);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log);
    const struct {
        uint64_t depth;
        const char *name;
        uint64_t total;
    } want[] = {{0, "outer", 90}, {1, "leaf", 30}, {1, "inner", 10}, {0, "inner", 5}};
    assert_int_equal(n_rows(summary, "tree"), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(number(summary, "tree", i, "depth"), want[i].depth);
        assert_string_equal(cell(summary, "tree", i, "name").as.text, want[i].name);
        assert_int_equal(number(summary, "tree", i, "total_ns"), want[i].total);
    }
    marey_report_destroy(summary);
}

static void of_a_recursion_the_outermost_counts(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    log_begin(log, 10, INNER);
    log_begin(log, 20, OUTER);
    log_end(log, 30, OUTER);
    log_end(log, 50, INNER);
    log_end(log, 100, OUTER);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log);
    expect_range(summary, "outer", 2, 100, 70);
    assert_int_equal(number(summary, "ranges", 0, "mean_ns"), 55);
    marey_report_destroy(summary);
}

/* The record may stand in an earlier block, with other events in between, and holds for one range. */
static void a_range_may_stand_for_many_calls(void **state)
{
    struct log_maker *log = *state;
    log_repeat(log, 0, 4);
    log_begin(log, 0, OUTER);
    log_repeat(log, 0, 1000);
    log_word(log, 5, MAREY_KIND_MARK, LEAF);
    log_put_words(log, 0, 0);
    log_begin(log, 10, INNER);
    log_begin(log, 20, LEAF);
    log_end(log, 30, LEAF);
    log_end(log, 5010, INNER);
    log_begin(log, 5010, INNER);
    log_end(log, 5020, INNER);
    log_end(log, 8000, OUTER);
    log_put_words(log, 0, 1);
    marey_report *summary = summarise(log);
    expect_range(summary, "outer", 4, 8000, 2990);
    expect_range(summary, "inner", 1001, 5010, 5000);
    expect_range(summary, "leaf", 1, 10, 10);
    assert_int_equal(number(summary, "tree", row_of(summary, "tree", "inner"), "count"), 1001);
    assert_int_equal(number(summary, "threads", row_of(summary, "threads", "outer"), "count"), 4);
    const size_t inner = row_of(summary, "ranges", "inner");
    assert_int_equal(number(summary, "ranges", inner, "mean_ns"), 5);
    assert_int_equal(number(summary, "ranges", inner, "min_ns"), 5);
    assert_int_equal(number(summary, "ranges", inner, "p50_ns"), 5);
    assert_int_equal(number(summary, "ranges", inner, "max_ns"), 10);
    marey_report_destroy(summary);
}

static void a_recursion_of_many_calls_counts_all_and_its_outermost_time(void **state)
{
    struct log_maker *log = *state;
    log_repeat(log, 0, 10);
    log_begin(log, 0, OUTER);
    log_repeat(log, 0, 90);
    log_begin(log, 0, OUTER);
    log_end(log, 900, OUTER);
    log_end(log, 1000, OUTER);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log);
    expect_range(summary, "outer", 100, 1000, 1000);
    marey_report_destroy(summary);
}

/* Part of the time of calls that are counted elsewhere: on another path, and here as the only range of a node. */
static void a_range_may_stand_for_no_call(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    log_repeat(log, 0, 0);
    log_begin(log, 0, LEAF);
    log_end(log, 30, LEAF);
    log_repeat(log, 30, 2);
    log_begin(log, 30, INNER);
    log_repeat(log, 30, 3);
    log_begin(log, 30, LEAF);
    log_end(log, 60, LEAF);
    log_end(log, 70, INNER);
    log_end(log, 100, OUTER);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log);
    expect_range(summary, "outer", 1, 100, 30);
    expect_range(summary, "inner", 2, 40, 10);
    expect_range(summary, "leaf", 3, 60, 60);
    assert_int_equal(n_rows(summary, "threads"), 3);
    assert_int_equal(n_rows(summary, "tree"), 4);
    const size_t leaf = row_of(summary, "ranges", "leaf");
    assert_int_equal(number(summary, "ranges", leaf, "mean_ns"), 20);
    assert_int_equal(number(summary, "ranges", leaf, "min_ns"), 10);
    marey_report_destroy(summary);
}

/* What was said before a gap may be about a range that is lost. */
static void a_gap_forgets_how_many_calls_come(void **state)
{
    struct log_maker *log = *state;
    log_repeat(log, 0, 10);
    log_put_words(log, 0, 0);
    log_begin(log, 10, OUTER);
    log_end(log, 20, OUTER);
    log_put_words(log, 0, 2);
    marey_report *summary = summarise(log);
    expect_range(summary, "outer", 1, 10, 10);
    marey_report_destroy(summary);
}

/* Deeper than the tree goes: counts and times stay right, the tree stays small. */
static void a_runaway_recursion_is_counted_and_folded(void **state)
{
    struct log_maker *log = *state;
    enum { DEPTH = 1500 };
    for (uint64_t i = 0; i < DEPTH; i++)
        log_begin(log, i, i % 2 == 0 ? OUTER : INNER);
    for (uint64_t i = 0; i < DEPTH; i++)
        log_end(log, DEPTH + i, 0);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log);
    expect_range(summary, "outer", DEPTH / 2, 2 * DEPTH - 1, DEPTH);
    expect_range(summary, "inner", DEPTH / 2, 2 * DEPTH - 3, DEPTH - 1);
    assert_true(n_rows(summary, "tree") < 500);
    marey_report_destroy(summary);
}

static void an_outer_end_closes_what_was_left_open_inside(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    log_begin(log, 10, INNER);
    log_begin(log, 20, LEAF);
    log_end(log, 50, OUTER);
    log_end(log, 60, OUTER); /* an orphan */
    log_begin(log, 70, LEAF);
    log_end(log, 80, INNER); /* another */
    log_end(log, 90, LEAF);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log);
    expect_range(summary, "outer", 1, 50, 10);
    expect_range(summary, "inner", 1, 40, 10);
    expect_range(summary, "leaf", 2, 50, 50);
    expect_warning(summary, "2 ranges left open inside another");
    expect_warning(summary, "2 ends without a begin");
    marey_report_destroy(summary);
}

/* Begun on one line and ended on another, or in another language: two sites, one name. */
static void a_range_may_end_at_another_site_of_its_name(void **state)
{
    struct log_maker *log = *state;
    log_put_site(log, 9, "outer");
    log_begin(log, 0, OUTER);
    log_end(log, 10, 9);
    log_begin(log, 20, 9);
    log_end(log, 30, OUTER);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log);
    expect_range(summary, "outer", 2, 20, 20);
    assert_int_equal(n_rows(summary, "warnings"), 0);
    marey_report_destroy(summary);
}

static void what_is_open_at_a_gap_is_given_up(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    log_begin(log, 10, INNER);
    log_put_words(log, 0, 0);
    log_end(log, 20, INNER); /* of another call, for all we know */
    log_begin(log, 30, LEAF);
    log_end(log, 35, LEAF);
    log_put_words(log, 0, 2);
    marey_report *summary = summarise(log);
    assert_int_equal(n_rows(summary, "ranges"), 1);
    expect_range(summary, "leaf", 1, 5, 5);
    expect_warning(summary, "2 ranges had begun when events were lost");
    expect_warning(summary, "1 end without a begin");
    assert_int_equal(n_rows(summary, "open"), 0);
    marey_report_destroy(summary);
}

static void a_gap_record_gives_up_what_is_open(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    log_record(log, 10, MAREY_RECORD_GAP, (const uint64_t[]){5, 100}, 2);
    log_end(log, 20, OUTER);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log);
    assert_int_equal(n_rows(summary, "ranges"), 0);
    expect_warning(summary, "1 range had begun when events were lost");
    marey_report_destroy(summary);
}

static void what_is_open_at_the_end_is_listed_and_not_counted(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    log_begin(log, 40, INNER);
    log_begin(log, 50, LEAF);
    log_end(log, 60, LEAF);
    log_put_words(log, 0, 0);
    log_put_end(log, "unclosed");
    marey_report *summary = summarise_with(log, NULL);
    assert_int_equal(n_rows(summary, "ranges"), 1);
    assert_int_equal(n_rows(summary, "open"), 2);
    assert_string_equal(cell(summary, "open", 1, "name").as.text, "inner");
    assert_string_equal(cell(summary, "open", 1, "thread").as.text, "main");
    assert_int_equal(number(summary, "open", 1, "since_ns"), 40);
    assert_int_equal(number(summary, "open", 1, "pid"), 100);
    assert_int_equal(n_rows(summary, "tree"), 3); /* the way down to what was counted */
    marey_report_destroy(summary);
}

static void async_ranges_match_across_lanes_in_any_order(void **state)
{
    struct log_maker *log = *state;
    log_put_lane(log, 1, 101, "worker");
    log_record(log, 50, MAREY_RECORD_ASYNC_END, (const uint64_t[]){0, 7}, 2); /* read before its begin */
    log_record(log, 60, MAREY_RECORD_ASYNC_BEGIN, (const uint64_t[]){INNER, 8}, 2);
    log_record(log, 65, MAREY_RECORD_ASYNC_BEGIN, (const uint64_t[]){LEAF, 9}, 2);
    log_put_words(log, 1, 0);
    log_record(log, 10, MAREY_RECORD_ASYNC_BEGIN, (const uint64_t[]){INNER, 7}, 2);
    log_record(log, 90, MAREY_RECORD_ASYNC_END, (const uint64_t[]){0, 8}, 2);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log);
    assert_int_equal(n_rows(summary, "async"), 1);
    assert_int_equal(number(summary, "async", 0, "count"), 2);
    assert_int_equal(number(summary, "async", 0, "total_ns"), 70);
    assert_int_equal(number(summary, "async", 0, "max_ns"), 40);
    assert_int_equal(n_rows(summary, "ranges"), 0);
    assert_int_equal(n_rows(summary, "open"), 1);
    assert_string_equal(cell(summary, "open", 0, "name").as.text, "leaf");
    marey_report_destroy(summary);
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void counters_marks_and_payloads_are_summed(void **state)
{
    struct log_maker *log = *state;
    const double values[] = {3, -1, 4};
    for (size_t i = 0; i < 3; i++)
        log_record(log, i, MAREY_RECORD_COUNTER, (const uint64_t[]){LEAF, bits_of(values[i])}, 2);
    log_word(log, 5, MAREY_KIND_MARK, OUTER);
    log_record(log, 6, MAREY_RECORD_MARK, (const uint64_t[]){OUTER | 2u << 20, 42}, 2);
    log_record(log, 10, MAREY_RECORD_BEGIN, (const uint64_t[]){INNER | 1u << 20, 42}, 2);
    log_end(log, 30, INNER);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log);
    assert_int_equal(number(summary, "counters", 0, "count"), 3);
    assert_true(cell(summary, "counters", 0, "min").as.f64 == -1);
    assert_true(cell(summary, "counters", 0, "mean").as.f64 == 2);
    assert_true(cell(summary, "counters", 0, "max").as.f64 == 4);
    assert_true(cell(summary, "counters", 0, "last").as.f64 == 4);
    assert_int_equal(number(summary, "marks", 0, "count"), 2);
    expect_range(summary, "inner", 1, 20, 20);
    marey_report_destroy(summary);
}

static void filter_and_depth_choose_what_is_shown(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 0, OUTER);
    log_begin(log, 10, INNER);
    log_begin(log, 20, LEAF);
    log_end(log, 30, LEAF);
    log_end(log, 40, INNER);
    log_end(log, 50, OUTER);
    log_put_words(log, 0, 0);
    log_put_end(log, "stop");
    marey_report *summary = summarise_with(
        log, &(struct marey_report_options){.settings = (const char *const[]){"filter=eaf", NULL}});
    assert_int_equal(n_rows(summary, "ranges"), 1);
    assert_int_equal(n_rows(summary, "threads"), 1);
    assert_int_equal(n_rows(summary, "ranks"), 1);
    assert_int_equal(n_rows(summary, "sites"), 1);
    assert_int_equal(n_rows(summary, "tree"), 3); /* with what leads there */
    marey_report_destroy(summary);

    summary = summarise_with(
        log, &(struct marey_report_options){.settings = (const char *const[]){"filter=?nn*", NULL}});
    assert_int_equal(n_rows(summary, "ranges"), 1);
    assert_int_equal(n_rows(summary, "tree"), 2);
    marey_report_destroy(summary);

    summary = summarise_with(
        log, &(struct marey_report_options){.settings = (const char *const[]){"depth=2", NULL}});
    assert_int_equal(n_rows(summary, "ranges"), 2);
    expect_range(summary, "inner", 1, 30, 20); /* what is deeper is hidden, and counts */
    assert_int_equal(n_rows(summary, "tree"), 2);
    marey_report_destroy(summary);
}

static void a_log_without_events_gives_empty_tables(void **state)
{
    marey_report *summary = summarise(*state);
    assert_int_equal(n_rows(summary, "ranges"), 0);
    assert_int_equal(n_rows(summary, "tree"), 0);
    assert_int_equal(n_rows(summary, "processes"), 1);
    marey_report_destroy(summary);
    assert_int_equal(marey_report_create("ranges", NULL, 0, NULL, &summary), MAREY_OK);
    assert_int_equal(n_rows(summary, "processes"), 0);
    marey_report_destroy(summary);
    marey_report_destroy(NULL);
}

/* ---- several processes ---- */

/* A log of one process: `count` calls of "step" that take `duration`, in each of two threads. */
static marey_recording *make_process(const char *pid, const char *rank, uint64_t count,
                                     uint64_t duration)
{
    struct log_maker log = {0};
    marey_recording *recording = NULL;
    log_put_process(&log, NULL, NULL);
    log_put_pairs(&log, MAREY__BLOCK_LOG, (const char *const[]){"pid", pid, "rank", rank, NULL});
    log_put_site(&log, 4, "step");
    log_put_site(&log, 5, pid); /* numbers differ between processes */
    log_put_moment(&log, 0, 0);
    for (uint32_t lane = 0; lane < 2; lane++) {
        log_put_lane(&log, lane, 100 + lane, lane == 0 ? "main" : "loader");
        for (uint64_t i = 0; i < count; i++) {
            log_begin(&log, i * 1000, 4);
            log_end(&log, i * 1000 + duration, 4);
        }
        log_put_words(&log, lane, 0);
    }
    log_put_end(&log, "exit");
    assert_int_equal(log_open(&log, &recording), MAREY_OK);
    log_maker_fini(&log);
    return recording;
}

static void processes_and_recordings_merge_by_name(void **state)
{
    (void)state;
    for (uint32_t n_jobs = 1; n_jobs <= 3; n_jobs += 2) {
        marey_recording *const recordings[] = {make_process("10", "0", 3, 100),
                                               make_process("11", "1", 5, 200),
                                               make_process("12", "-1", 1, 400)};
        marey_report *summary = NULL;
        const struct marey_report_options options = {.n_jobs = n_jobs};
        assert_int_equal(marey_report_create("ranges", recordings, 3, &options, &summary), MAREY_OK);
        expect_range(summary, "step", 18, 600 + 2000 + 800, 3400);
        assert_int_equal(number(summary, "ranges", 0, "threads"), 6);
        assert_int_equal(number(summary, "ranges", 0, "processes"), 3);
        assert_int_equal(number(summary, "ranges", 0, "min_ns"), 100);
        assert_int_equal(number(summary, "ranges", 0, "max_ns"), 400);
        assert_int_equal(n_rows(summary, "tree"), 1);
        assert_int_equal(n_rows(summary, "threads"), 6);
        assert_string_equal(cell(summary, "threads", 3, "thread").as.text, "loader");
        assert_int_equal(number(summary, "threads", 3, "total_ns"), 1000);
        assert_int_equal(n_rows(summary, "ranks"), 3);
        assert_int_equal(number(summary, "ranks", 1, "rank"), 1);
        assert_int_equal(number(summary, "ranks", 1, "count"), 10);
        assert_true(cell(summary, "ranks", 2, "rank").is_null);
        assert_int_equal(n_rows(summary, "sites"), 4); /* "step" once */
        struct marey_cost cost;
        marey_report_cost(summary, &cost);
        assert_int_equal(cost.events, 36);
        assert_int_equal(cost.in_program_ns, 12 * 95 / 10 + 20 * 95 / 10 + 4 * 95 / 10);
        assert_int_equal(cost.program_ns, 2100 + 4200 + 400);
        marey_report_destroy(summary);
        for (size_t i = 0; i < 3; i++)
            log_close(recordings[i]);
    }
}

/* Ranges of an imported thread that overlap are on several lanes; of a recorder, lanes are threads. */
static void lanes_of_an_imported_thread_are_one_thread(void **state)
{
    for (int is_imported = 0; is_imported < 2; is_imported++) {
        struct log_maker *log = calloc(1, sizeof *log);
        (void)state;
        log_put_preamble(log);
        if (is_imported)
            log_put_pairs(log, MAREY__BLOCK_LOG, (const char *const[]){"source", "kineto", NULL});
        log_put_lane(log, 1, 101, "other");
        log_put_lane(log, 2, 100, "main");
        for (uint32_t lane = 0; lane < 3; lane++) {
            log_begin(log, 10 * lane, OUTER);
            log_end(log, 10 * lane + 100, OUTER);
            log_put_words(log, lane, 0);
        }
        marey_report *summary = summarise(log);
        expect_range(summary, "outer", 3, 300, is_imported ? 200 : 300); /* time counts once */
        assert_int_equal(number(summary, "ranges", 0, "threads"), is_imported ? 2 : 3);
        assert_int_equal(n_rows(summary, "threads"), is_imported ? 2 : 3);
        assert_int_equal(number(summary, "threads", 0, "count"), is_imported ? 2 : 1);
        assert_int_equal(number(summary, "threads", 0, "tid"), 100);
        marey_report_destroy(summary);
        log_maker_fini(log);
        free(log);
    }
}

static void summarising_without_memory_leaks_nothing(void **state)
{
    struct log_maker *log = *state;
    for (uint64_t i = 0; i < 50; i++) {
        log_begin(log, 100 * i, OUTER);
        log_begin(log, 100 * i + 10, INNER);
        log_end(log, 100 * i + 20 + i, INNER);
        log_end(log, 100 * i + 90, OUTER);
    }
    log_record(log, 6000, MAREY_RECORD_COUNTER, (const uint64_t[]){LEAF, 0}, 2);
    log_record(log, 6001, MAREY_RECORD_ASYNC_BEGIN, (const uint64_t[]){LEAF, 8}, 2);
    log_record(log, 6002, MAREY_RECORD_ASYNC_END, (const uint64_t[]){LEAF, 8}, 2);
    log_record(log, 6003, MAREY_RECORD_ASYNC_BEGIN, (const uint64_t[]){LEAF, 9}, 2);
    log_repeat(log, 6004, 10);
    log_begin(log, 6004, LEAF);
    log_end(log, 6009, LEAF);
    log_begin(log, 6010, LEAF);
    log_put_words(log, 0, 0);
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
        TEST(times_are_split_into_self_and_children),
        TEST(the_tree_is_depth_first_and_heaviest_first),
        TEST(of_a_recursion_the_outermost_counts),
        TEST(a_range_may_stand_for_many_calls),
        TEST(a_recursion_of_many_calls_counts_all_and_its_outermost_time),
        TEST(a_range_may_stand_for_no_call),
        TEST(a_gap_forgets_how_many_calls_come),
        TEST(a_runaway_recursion_is_counted_and_folded),
        TEST(an_outer_end_closes_what_was_left_open_inside),
        TEST(a_range_may_end_at_another_site_of_its_name),
        TEST(what_is_open_at_a_gap_is_given_up),
        TEST(a_gap_record_gives_up_what_is_open),
        TEST(what_is_open_at_the_end_is_listed_and_not_counted),
        TEST(async_ranges_match_across_lanes_in_any_order),
        TEST(counters_marks_and_payloads_are_summed),
        TEST(filter_and_depth_choose_what_is_shown),
        TEST(a_log_without_events_gives_empty_tables),
        TEST(processes_and_recordings_merge_by_name),
        TEST(lanes_of_an_imported_thread_are_one_thread),
        TEST(summarising_without_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
