/* Samples as itwinai's report of py-spy has them: innermost frames, with the nearest one of a library. */
#include <string.h>

#include "analyze/samples/samples_whole.h"
#include "analyze/walk/columns.h"
#include "present/draw/present_internal.h"

static const struct marey_column columns[] = {
    TEXT("name"),
    TEXT("path"),
    WHOLE("line"),
    TEXT("library_function_name"),
    TEXT("library_function_path"),
    WHOLE("library_function_line"),
    TEXT("proportion (n)"),
};

static void copy_cell(marey_table *into, const marey_table *from, size_t row, const char *column,
                      const char *otherwise)
{
    const struct marey_cell cell = marey__cell_of(from, row, column);
    const size_t at = (size_t)marey_table_find(from, column);
    if (marey_table_column(from, at)->type == MAREY_TYPE_TEXT)
        marey_table_text(into, cell.is_null ? otherwise : cell.as.text,
                         cell.is_null ? strlen(otherwise) : cell.len);
    else if (cell.is_null)
        marey_table_null(into);
    else
        marey_table_u64(into, cell.as.u64);
}

static void copy_row(marey_table *into, const marey_table *from, size_t row, uint64_t n_samples)
{
    static const char missing[] = "Not Found";
    char proportion[64];
    const uint64_t n = marey__cell_of(from, row, "samples").as.u64;
    copy_cell(into, from, row, "name", "(no frames)");
    copy_cell(into, from, row, "path", "");
    copy_cell(into, from, row, "line", "");
    copy_cell(into, from, row, "library_function_name", missing);
    copy_cell(into, from, row, "library_function_path", missing);
    copy_cell(into, from, row, "library_function_line", "");
    snprintf(proportion, sizeof proportion, "%.2f%% (%llu)",
             100.0 * (double)n / (double)MAREY__MAX(n_samples, 1), (unsigned long long)n);
    marey_table_text(into, proportion, strlen(proportion));
}

marey_status marey_samples_report_leaves(marey_samples_report *report, int merged, size_t limit,
                                         FILE *out)
{
    const marey_table *const from =
        report->tables[merged ? MAREY__SAMPLES_LEAF_PATHS : MAREY__SAMPLES_LEAVES];
    const size_t n = marey_table_n_rows(from), n_drawn = limit != 0 ? MAREY__MIN(n, limit) : n;
    marey_table *table = NULL;
    MAREY_TRY(marey_table_create("leaves", columns, MAREY__COUNT_OF(columns), &table));
    for (size_t row = 0; row < n_drawn; row++)
        copy_row(table, from, row, report->sums.whole.n);
    marey_status status = marey_table_status(table);
    if (status == MAREY_OK)
        status = marey_present_presto(table, out);
    marey_table_destroy(table);
    return status;
}
