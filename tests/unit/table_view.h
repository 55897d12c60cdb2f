/* Queries of tables. A missing table, column or row fails the test. */
#ifndef MAREY_TEST_TABLE_VIEW_H
#define MAREY_TEST_TABLE_VIEW_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <marey/table.h>

static inline struct marey_cell table_cell(const marey_table *table, size_t row, const char *column)
{
    assert_non_null(table);
    const int c = marey_table_find(table, column);
    assert_true(c >= 0 && row < marey_table_n_rows(table));
    return marey_table_cell(table, row, (size_t)c);
}

static inline uint64_t table_number(const marey_table *table, size_t row, const char *column)
{
    const struct marey_cell cell = table_cell(table, row, column);
    assert_false(cell.is_null);
    return cell.as.u64;
}

/* The first row with `text` in that column. */
static inline size_t table_row(const marey_table *table, const char *column, const char *text)
{
    for (size_t row = 0; row < marey_table_n_rows(table); row++)
        if (strcmp(table_cell(table, row, column).as.text, text) == 0)
            return row;
    fail_msg("no row %s in %s", text, marey_table_name(table));
    return 0;
}

#endif
