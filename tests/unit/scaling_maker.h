/* Measured runs for tests of scaling, and their tables. */
#ifndef MAREY_TEST_SCALING_MAKER_H
#define MAREY_TEST_SCALING_MAKER_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/internal.h"
#include "scaling_runs.h"

/* A run with a number of workers; the caller fills in the rest. */
static inline struct marey__scaling_run run_with(const char *strategy, uint32_t workers)
{
    struct marey__scaling_run run = marey__scaling_run_unknown("a run");
    run.strategy = strategy;
    run.workers = workers;
    return run;
}

static inline void add(struct marey__scaling_runs *runs, const struct marey__scaling_run *run)
{
    assert_int_equal(marey__scaling_runs_add(runs, run), MAREY_OK);
}

/* A warm-up of 100 s, then these epochs. */
static inline void add_epochs(struct marey__scaling_runs *runs, const char *strategy,
                              uint32_t workers, const double *epochs, size_t n)
{
    double all[64] = {100};
    assert_true(n < 64);
    memcpy(all + 1, epochs, n * sizeof *epochs);
    struct marey__scaling_run run = run_with(strategy, workers);
    run.epoch_s = all;
    run.n_epochs = n + 1;
    add(runs, &run);
}

static inline marey_report *scale_with(const struct marey__scaling_runs *runs,
                                       const struct marey__scaling_options *options)
{
    marey_report *scaling = NULL;
    const marey_status status = scaling_create(runs, options, &scaling);
    if (status != MAREY_OK)
        fail_msg("%s", marey_last_error());
    return scaling;
}

/* ---- tables ---- */

static inline size_t n_rows(marey_report *scaling, const char *table)
{
    return marey_table_n_rows(marey_report_table(scaling, table));
}

static inline struct marey_cell cell(marey_report *scaling, const char *table, size_t row,
                                     const char *column)
{
    const marey_table *t = marey_report_table(scaling, table);
    assert_non_null(t);
    assert_true(marey_table_find(t, column) >= 0);
    assert_true(row < marey_table_n_rows(t));
    return marey__cell_of(t, row, column);
}

/* NaN for null. */
static inline double real(marey_report *scaling, const char *table, size_t row, const char *column)
{
    const struct marey_cell c = cell(scaling, table, row, column);
    return c.is_null ? NAN : c.as.f64;
}

static inline uint64_t whole(marey_report *scaling, const char *table, size_t row, const char *column)
{
    return cell(scaling, table, row, column).as.u64;
}

static inline const char *text(marey_report *scaling, const char *table, size_t row,
                               const char *column)
{
    return cell(scaling, table, row, column).as.text;
}

static inline bool has_note(marey_report *scaling, const char *part)
{
    for (size_t row = 0; row < n_rows(scaling, "notes"); row++)
        if (strstr(text(scaling, "notes", row, "text"), part) != NULL)
            return true;
    return false;
}

static inline void expect_note(marey_report *scaling, const char *part)
{
    if (has_note(scaling, part))
        return;
    for (size_t row = 0; row < n_rows(scaling, "notes"); row++)
        print_message("note: %s\n", text(scaling, "notes", row, "text"));
    fail_msg("no note says \"%s\"", part);
}

static inline void expect_near(double value, double want, double share)
{
    if (!(fabs(value - want) <= fabs(want) * share + 1e-300))
        fail_msg("%.17g is not %.17g", value, want);
}

/* ---- chance, the same each time ---- */

static inline uint64_t next_number(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline double next_normal(uint64_t *state)
{
    const double a = (double)((next_number(state) >> 11) + 1) * 0x1p-53,
                 b = (double)(next_number(state) >> 11) * 0x1p-53;
    return sqrt(-2 * log(a)) * cos(2 * M_PI * b);
}

#endif
