/* Samples as itwinai's report of py-spy has them: innermost frames, with the nearest one of a library. */
#include <string.h>

#include "analyze/columns.h"
#include "analyze/samples_whole.h"
#include "present/present_internal.h"

static const struct kymo_column columns[] = {
    TEXT("name"),
    TEXT("path"),
    WHOLE("line"),
    TEXT("library_function_name"),
    TEXT("library_function_path"),
    WHOLE("library_function_line"),
    TEXT("proportion (n)"),
};

static void copy_cell(kymo_table *into, const kymo_table *from, size_t row, const char *column,
                      const char *otherwise)
{
    const struct kymo_cell cell = kymo__cell_of(from, row, column);
    const size_t at = (size_t)kymo_table_find(from, column);
    if (kymo_table_column(from, at)->type == KYMO_TYPE_TEXT)
        kymo_table_text(into, cell.is_null ? otherwise : cell.as.text,
                        cell.is_null ? strlen(otherwise) : cell.len);
    else if (cell.is_null)
        kymo_table_null(into);
    else
        kymo_table_u64(into, cell.as.u64);
}

static void copy_row(kymo_table *into, const kymo_table *from, size_t row, uint64_t n_samples)
{
    static const char missing[] = "Not Found";
    char proportion[64];
    const uint64_t n = kymo__cell_of(from, row, "samples").as.u64;
    copy_cell(into, from, row, "name", "(no frames)");
    copy_cell(into, from, row, "path", "");
    copy_cell(into, from, row, "line", "");
    copy_cell(into, from, row, "library_function_name", missing);
    copy_cell(into, from, row, "library_function_path", missing);
    copy_cell(into, from, row, "library_function_line", "");
    snprintf(proportion, sizeof proportion, "%.2f%% (%llu)",
             100.0 * (double)n / (double)KYMO__MAX(n_samples, 1), (unsigned long long)n);
    kymo_table_text(into, proportion, strlen(proportion));
}

kymo_status kymo_samples_report_leaves(kymo_samples_report *report, int merged, size_t limit,
                                       FILE *out)
{
    const kymo_table *const from =
        report->tables[merged ? KYMO__SAMPLES_LEAF_PATHS : KYMO__SAMPLES_LEAVES];
    const size_t n = kymo_table_n_rows(from), n_drawn = limit != 0 ? KYMO__MIN(n, limit) : n;
    kymo_table *table = NULL;
    KYMO_TRY(kymo_table_create("leaves", columns, KYMO__COUNT_OF(columns), &table));
    for (size_t row = 0; row < n_drawn; row++)
        copy_row(table, from, row, report->sums.whole.n);
    kymo_status status = kymo_table_status(table);
    if (status == KYMO_OK)
        status = kymo_present_presto(table, out);
    kymo_table_destroy(table);
    return status;
}
