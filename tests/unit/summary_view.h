/* Queries of a summary's tables; see table_view.h. */
#ifndef MAREY_TEST_SUMMARY_VIEW_H
#define MAREY_TEST_SUMMARY_VIEW_H

#include "table_view.h"
#include <marey/report.h>

static inline struct marey_cell cell(marey_report *summary, const char *table, size_t row,
                                     const char *column)
{
    return table_cell(marey_report_table(summary, table), row, column);
}

static inline uint64_t number(marey_report *summary, const char *table, size_t row, const char *column)
{
    return table_number(marey_report_table(summary, table), row, column);
}

static inline size_t n_rows(marey_report *summary, const char *table)
{
    return marey_table_n_rows(marey_report_table(summary, table));
}

static inline size_t row_of(marey_report *summary, const char *table, const char *name)
{
    return table_row(marey_report_table(summary, table), "name", name);
}

#endif
