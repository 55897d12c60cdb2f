/* What is done with a report of memory, whatever it was made of. */
#ifndef KYMO_FUZZ_MEMORY_H
#define KYMO_FUZZ_MEMORY_H

#include <math.h>
#include <stdio.h>

#include "base/base_internal.h"
#include "fuzz.h"
#include <kymo/memory_report.h>

static inline void fuzz_memory_check(const kymo_table *table)
{
    for (size_t row = 0; row < kymo_table_n_rows(table); row++)
        for (size_t c = 0; c < kymo_table_n_columns(table); c++) {
            const struct kymo_cell cell = kymo_table_cell(table, row, c);
            if (!cell.is_null && kymo_table_column(table, c)->type == KYMO_TYPE_F64)
                KYMO_ASSERT(isfinite(cell.as.f64));
        }
}

static inline void fuzz_memory_tell(kymo_memory_report *report)
{
    static const char *const tables[] = {"pools",  "phases", "categories",    "modules",
                                         "stacks", "growth", "fragmentation", "resident",
                                         "live",   "notes"};
    FILE *out = fopen("/dev/null", "w");
    for (size_t i = 0; i < KYMO__COUNT_OF(tables); i++)
        fuzz_memory_check(kymo_memory_report_table(report, tables[i]));
    if (out == NULL)
        return;
    (void)kymo_memory_report_text(report, NULL, out);
    (void)kymo_memory_report_json(report, out);
    fclose(out);
}

#endif
