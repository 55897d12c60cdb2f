/* Use a memory report, from any source. */
#ifndef MAREY_FUZZ_MEMORY_H
#define MAREY_FUZZ_MEMORY_H

#include <math.h>
#include <stdio.h>

#include "base/internal.h"
#include "fuzz.h"
#include <marey/report.h>

static inline void fuzz_memory_check(const marey_table *table)
{
    for (size_t row = 0; row < marey_table_n_rows(table); row++)
        for (size_t c = 0; c < marey_table_n_columns(table); c++) {
            const struct marey_cell cell = marey_table_cell(table, row, c);
            if (!cell.is_null && marey_table_column(table, c)->type == MAREY_TYPE_F64)
                MAREY_ASSERT(isfinite(cell.as.f64));
        }
}

static inline void fuzz_memory_tell(marey_report *report)
{
    static const char *const tables[] = {"pools",  "phases", "categories",    "modules",
                                         "stacks", "growth", "fragmentation", "resident",
                                         "live",   "notes"};
    FILE *out = fopen("/dev/null", "w");
    for (size_t i = 0; i < MAREY__COUNT_OF(tables); i++)
        fuzz_memory_check(marey_report_table(report, tables[i]));
    if (out == NULL)
        return;
    (void)!marey_report_write(report, "text", NULL, out);
    (void)!marey_report_write(report, "json", NULL, out);
    fclose(out);
}

#endif
