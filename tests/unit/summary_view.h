/* What tests ask of a summary's tables; see table_view.h. */
#ifndef KYMO_TEST_SUMMARY_VIEW_H
#define KYMO_TEST_SUMMARY_VIEW_H

#include "table_view.h"
#include <kymo/report.h>

static inline struct kymo_cell cell(kymo_summary *summary, const char *table, size_t row,
                                    const char *column)
{
    return table_cell(kymo_summary_table(summary, table), row, column);
}

static inline uint64_t number(kymo_summary *summary, const char *table, size_t row, const char *column)
{
    return table_number(kymo_summary_table(summary, table), row, column);
}

static inline size_t n_rows(kymo_summary *summary, const char *table)
{
    return kymo_table_n_rows(kymo_summary_table(summary, table));
}

static inline size_t row_of(kymo_summary *summary, const char *table, const char *name)
{
    return table_row(kymo_summary_table(summary, table), "name", name);
}

#endif
