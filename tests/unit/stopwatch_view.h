/* Shared by the tests of the stopwatch: short helpers to measure, numbers from its tables, a
 * message sink. */
#ifndef MAREY_TEST_STOPWATCH_VIEW_H
#define MAREY_TEST_STOPWATCH_VIEW_H

#include "instrument/stopwatch/internal.h"
#include "scratch.h"

static inline void enable(uint64_t warmup)
{
    assert_int_equal(marey_stopwatch_enable(&(struct marey_stopwatch_options){.warmup = warmup}),
                     MAREY_OK);
}

static inline void start(const char *name)
{
    assert_int_equal(marey_stopwatch_start(marey_site_intern(name, strlen(name), NULL, 0, NULL, 0)),
                     MAREY_OK);
}

static inline void stop(const char *name)
{
    assert_int_equal(marey_stopwatch_stop(marey_site_intern(name, strlen(name), NULL, 0, NULL, 0)),
                     MAREY_OK);
}

static inline void once(const char *name)
{
    start(name);
    stop(name);
}

static inline void finish(void)
{
    assert_int_equal(marey_stopwatch_finish_iteration(0), MAREY_OK);
}

static inline marey_table *table_of(const char *name)
{
    marey_table *table = NULL;
    assert_int_equal(marey_stopwatch_table(name, &table), MAREY_OK);
    return table;
}

static inline size_t n_rows(const char *name)
{
    marey_table *const table = table_of(name);
    const size_t n = marey_table_n_rows(table);
    marey_table_destroy(table);
    return n;
}

/* A number of the row of `name`; -1 without such a row, NAN for null. */
static inline double value(const char *which, const char *name, const char *column)
{
    marey_table *const table = table_of(which);
    const int place = marey_table_find(table, column), names = marey_table_find(table, "name");
    double found = -1;
    assert_true(place >= 0);
    for (size_t row = 0; row < marey_table_n_rows(table); row++) {
        const struct marey_cell cell = marey_table_cell(table, row, (size_t)place);
        if (names >= 0 && name != NULL &&
            strcmp(marey_table_cell(table, row, (size_t)names).as.text, name) != 0)
            continue;
        found = cell.is_null ? 0.0 / 0.0
                : marey_table_column(table, (size_t)place)->type == MAREY_TYPE_F64
                    ? cell.as.f64
                    : (double)cell.as.u64;
        break;
    }
    marey_table_destroy(table);
    return found;
}

static inline double misuse(const char *name, const char *what)
{
    marey_table *const table = table_of("misuse");
    double n = 0;
    for (size_t row = 0; row < marey_table_n_rows(table); row++)
        if (strcmp(marey_table_cell(table, row, 0).as.text, name) == 0 &&
            strcmp(marey_table_cell(table, row, 1).as.text, what) == 0)
            n = (double)marey_table_cell(table, row, 2).as.u64;
    marey_table_destroy(table);
    return n;
}

static inline void pass_time(void)
{
    const uint64_t until = marey__clock_ns(CLOCK_MONOTONIC) + 20000;
    while (marey__clock_ns(CLOCK_MONOTONIC) < until)
        ;
}

struct heard {
    int n;
    char text[4096];
};

static inline void hear(void *ctx, const char *sentence)
{
    struct heard *const heard = ctx;
    const size_t len = strlen(heard->text);
    heard->n++;
    snprintf(heard->text + len, sizeof heard->text - len, "%s\n", sentence);
}

/* Misuse prints to stderr; tests capture it. */
static inline int quiet_setup(void **state)
{
    static struct heard nobody;
    nobody = (struct heard){0};
    marey_set_sink(hear, &nobody);
    return scratch_setup(state);
}

static inline int quiet_teardown(void **state)
{
    marey_stopwatch_set_printer(NULL, NULL);
    const int status = scratch_teardown(state);
    marey_set_sink(NULL, NULL);
    return status;
}

#define QUIET_TEST(name) cmocka_unit_test_setup_teardown(name, quiet_setup, quiet_teardown)

#endif
