/* The steady part of a process: its self times and phases, and shares of the run without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

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

static marey_report *summarise(struct log_maker *log)
{
    marey_recording *recording = NULL;
    marey_report *summary = NULL;
    log_put_end(log, "stop");
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    assert_int_equal(marey_report_create("ranges", &recording, 1, NULL, &summary), MAREY_OK);
    log_close(recording);
    return summary;
}

/*
 * Set-up, iterations up to 500, 600, 1000 and 1400, tear-down. Unless the first two are warm-up, the steady part begins at
 * 500. Ranges and phases go on across both its ends.
 */
static void put_steady_part(struct log_maker *log, bool is_warmup)
{
    log_begin(log, 0, OUTER);
    log_phase(log, 100, INNER);
    log_begin(log, 400, INNER);
    log_iteration(log, 500, 0, is_warmup, 0);
    log_phase(log, 550, 0);
    log_iteration(log, 600, 1, is_warmup, 0);
    log_end(log, 650, INNER);
    log_phase(log, 700, LEAF);
    log_begin(log, 750, LEAF);
    log_end(log, 800, LEAF);
    log_phase(log, 900, INNER);
    log_iteration(log, 1000, 2, false, 0);
    log_begin(log, 1300, LEAF);
    log_iteration(log, 1400, 3, false, 0);
    log_end(log, 1500, LEAF);
    log_phase(log, 1600, LEAF);
    log_phase(log, 1800, 0);
    log_end(log, 9000, OUTER);
    log_put_words(log, 0, 0);
}

static void shares_are_of_the_steady_part(void **state)
{
    struct log_maker *log = *state;
    put_steady_part(log, false);
    marey_report *summary = summarise(log);
    assert_int_equal(n_rows(summary, "steady"), 3);
    /* Of 900 from 500 to 1400. */
    const size_t outer = row_of(summary, "steady", "outer"), leaf = row_of(summary, "steady", "leaf");
    assert_int_equal(number(summary, "steady", outer, "self_ns"), 100 + 500);
    assert_int_equal(number(summary, "steady", leaf, "self_ns"), 50 + 100);
    assert_int_equal(number(summary, "steady", row_of(summary, "steady", "inner"), "self_ns"), 150);
    assert_true(cell(summary, "steady", outer, "share").as.f64 == 600.0 / 900);
    const size_t inner = row_of(summary, "phases", "inner");
    assert_int_equal(number(summary, "phases", inner, "total_ns"), 450 + 700);
    assert_int_equal(number(summary, "phases", inner, "steady_ns"), 50 + 500);
    assert_true(cell(summary, "phases", inner, "share").as.f64 == 550.0 / 900);
    assert_int_equal(number(summary, "phases", row_of(summary, "phases", "leaf"), "steady_ns"), 200);
    assert_int_equal(number(summary, "phases", row_of(summary, "phases", "(no phase)"), "steady_ns"),
                     150);
    const marey_table *phases = marey_report_table(summary, "phases");
    assert_string_equal(marey_table_column(phases, 5)->title, "of steady");
    marey_report_destroy(summary);
}

static void the_steady_part_follows_the_warmup(void **state)
{
    struct log_maker *log = *state;
    put_steady_part(log, true);
    marey_report *summary = summarise(log);
    /* Of 800 from 600 to 1400. */
    assert_int_equal(number(summary, "steady", row_of(summary, "steady", "inner"), "self_ns"), 50);
    assert_int_equal(number(summary, "steady", row_of(summary, "steady", "outer"), "self_ns"), 600);
    assert_int_equal(number(summary, "phases", row_of(summary, "phases", "inner"), "steady_ns"), 500);
    assert_int_equal(number(summary, "phases", row_of(summary, "phases", "(no phase)"), "steady_ns"),
                     100);
    marey_report_destroy(summary);
}

static void without_a_steady_part_shares_are_of_the_run(void **state)
{
    struct log_maker *log = *state;
    log_phase(log, 0, INNER);
    log_begin(log, 0, OUTER);
    log_iteration(log, 500, 0, false, 0); /* the first, and no other */
    log_phase(log, 750, 0);
    log_end(log, 1000, OUTER);
    log_put_words(log, 0, 0);
    marey_report *summary = summarise(log);
    assert_int_equal(n_rows(summary, "steady"), 0);
    const size_t inner = row_of(summary, "phases", "inner");
    assert_true(cell(summary, "phases", inner, "steady_ns").is_null);
    assert_true(cell(summary, "phases", inner, "share").as.f64 == 0.75);
    const marey_table *phases = marey_report_table(summary, "phases");
    assert_string_equal(marey_table_column(phases, 5)->title, "of run");
    marey_report_destroy(summary);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(shares_are_of_the_steady_part),
        TEST(the_steady_part_follows_the_warmup),
        TEST(without_a_steady_part_shares_are_of_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
