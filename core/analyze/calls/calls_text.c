/* Calls for a terminal: a line about the whole, one table, notes. Functions are written as cProfile's table does. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/calls/internal.h"
#include "present/draw/internal.h"

/* How a table is drawn: numbers first, then who they are of. */
static const struct shown {
    enum marey__calls_table table;
    const char *title, *columns[MAREY__FUNCTION_TABLE_COLUMNS], *places[MAREY__FUNCTION_TABLE_PLACES];
} shown[] = {
    {MAREY__CALLS_FUNCTIONS,
     NULL,
     {"calls", "primitive_calls", "self_ns", "self_per_call_ns", "total_ns", "total_per_call_ns",
      "max_ns", "gpu_ns", "share"},
     {"function"}},
    {MAREY__CALLS_BY_SIGNATURE,
     NULL,
     {"calls", "primitive_calls", "self_ns", "self_per_call_ns", "total_ns", "total_per_call_ns",
      "max_ns", "gpu_ns", "share"},
     {"function"}},
    {MAREY__CALLS_CALLERS,
     "who was called by whom",
     {"calls", "primitive_calls", "self_ns", "total_ns", "share"},
     {"function", "caller"}},
    {MAREY__CALLS_CALLEES,
     "who called whom",
     {"calls", "primitive_calls", "self_ns", "total_ns", "share"},
     {"function", "callee"}},
    {MAREY__CALLS_PATHS, NULL, {"calls", "self_ns", "total_ns", "gpu_ns", "share"}, {"function"}},
    {MAREY__CALLS_SHAPES,
     "same function, different arguments",
     {"calls", "per_call_ns", "elements", "ns_per_element", "times_best", "share"},
     {"function"}},
    {MAREY__CALLS_THREADS,
     NULL,
     {"rank", "pid", "tid", "calls", "functions", "self_ns", "thread"},
     {NULL}},
};

struct answer {
    const struct marey__calls_report *report;
    const struct marey_write_options *options;
    struct marey__lines lines;
};

/* ---- functions ---- */

/* The number of a node in the table of paths is not its row; a row's depth is. */
static void put_indent(struct marey__buf *text, const marey_table *table, size_t row)
{
    const int depth = marey_table_find(table, "depth");
    for (uint64_t i = depth >= 0 ? marey_table_cell(table, row, (size_t)depth).as.u64 : 0; i > 0; i--)
        marey__buf_puts(text, "  ");
}

static void put_function(struct marey_table *into, const marey_table *table, size_t row,
                         const char *which)
{
    char file[32], line[32];
    struct marey__buf text = {0}, label = {0};
    const bool is_other = strcmp(which, "function") != 0;
    snprintf(file, sizeof file, "%s%s", is_other ? which : "", is_other ? "_file" : "file");
    snprintf(line, sizeof line, "%s%s", is_other ? which : "", is_other ? "_line" : "line");
    const struct marey_cell name = marey__cell_of(table, row, which);
    const int signature = is_other ? -1 : marey_table_find(table, "signature");
    if (signature >= 0) {
        const struct marey_cell text_of = marey_table_cell(table, row, (size_t)signature);
        marey__call_label_of(&label, name.as.text, text_of.as.text, text_of.len != 0);
    } else {
        marey__buf_put(&label, name.as.text, name.len);
    }
    put_indent(&text, table, row);
    marey__call_place(&text, marey__cell_of(table, row, file).as.text,
                      marey__cell_of(table, row, line).as.u64, label.data != NULL ? label.data : "",
                      label.len);
    marey_table_text(into, text.data != NULL ? text.data : "", text.len);
    marey__buf_fini(&text);
    marey__buf_fini(&label);
}

/* ---- the table ---- */

/* Recursion shows in the difference of calls and primitive calls; whatever else is missing everywhere is not shown. */
static bool is_hidden(const marey_table *table, const char *name, size_t n_rows)
{
    const size_t column = (size_t)marey_table_find(table, name);
    const int calls = marey_table_find(table, "calls");
    const bool is_primitive = strcmp(name, "primitive_calls") == 0;
    for (size_t row = 0; row < n_rows; row++) {
        const struct marey_cell cell = marey_table_cell(table, row, column);
        if (is_primitive ? cell.as.u64 != marey_table_cell(table, row, (size_t)calls).as.u64
                         : !cell.is_null)
            return false;
    }
    return true;
}

static marey_status put_table(struct answer *answer, const struct shown *how)
{
    const marey_table *const table = answer->report->tables[how->table];
    const size_t n = marey_table_n_rows(table), limit = answer->options->limit;
    const size_t n_drawn = limit != 0 ? MAREY__MIN(n, limit) : n;
    marey__buf_puts(&answer->lines.line, n == 0 ? "(nothing of the kind)" : "");
    if (how->title != NULL && n != 0)
        marey__buf_printf(&answer->lines.line, "%s%s%s\n", marey__style(&answer->lines, DIM),
                          how->title, marey__style(&answer->lines, PLAIN));
    if (n == 0)
        return marey__lines_end(&answer->lines);
    MAREY_TRY(marey__buf_to_stream(&answer->lines.line, answer->lines.out));
    const struct marey__function_table drawn = {.columns = how->columns,
                                                .places = how->places,
                                                .is_hidden = is_hidden,
                                                .put_place = put_function};
    return marey__function_table_put(&drawn, table, n_drawn, &answer->options->text, true,
                                     &answer->lines);
}

/* ---- the whole ---- */

static marey_status put_totals(struct answer *answer)
{
    const marey_table *const totals = answer->report->tables[MAREY__CALLS_TOTALS];
    struct marey__buf *const line = &answer->lines.line;
    const uint64_t calls = marey__cell_of(totals, 0, "calls").as.u64,
                   primitive = marey__cell_of(totals, 0, "primitive_calls").as.u64;
    const struct marey_cell cost = marey__cell_of(totals, 0, "cost_per_call_ns");
    const char *const timer = marey__cell_of(totals, 0, "timer").as.text;
    marey__buf_puts(line, marey__style(&answer->lines, BOLD));
    if (answer->report->calls.from_samples)
        marey__buf_puts(line, "samples");
    else
        marey__text_count_of(line, calls, answer->report->calls.from_ranges ? "range" : "call");
    marey__buf_puts(line, marey__style(&answer->lines, PLAIN));
    if (primitive != calls) {
        marey__buf_puts(line, " (");
        marey__text_amount(line, (double)primitive);
        marey__buf_puts(line, " primitive)");
    }
    marey__buf_puts(line, " of ");
    marey__text_count_of(line, marey__cell_of(totals, 0, "functions").as.u64, "function");
    marey__buf_puts(line, " on ");
    marey__text_count_of(line, marey__cell_of(totals, 0, "threads").as.u64, "thread");
    marey__buf_puts(line, ", ");
    marey__text_duration(line, (double)marey__cell_of(totals, 0, "self_ns").as.u64, NULL);
    marey__buf_puts(line, strcmp(timer, "cpu") == 0   ? " of processor time"
                          : strcmp(timer, "own") == 0 ? " by the program's own timer"
                                                      : "");
    if (!cost.is_null) {
        marey__buf_puts(line, "; measuring a call costs ");
        marey__text_duration(line, cost.as.f64, NULL);
        marey__buf_puts(line, ", ");
        marey__text_duration(line, cost.as.f64 * (double)calls, NULL);
        marey__buf_puts(line, answer->report->subtracted_ns != 0
                                  ? " in all"
                                  : " in all, which is in these times");
    }
    MAREY_TRY(marey__lines_end(&answer->lines));
    return marey__lines_end(&answer->lines);
}

static marey_status put_all(struct answer *answer, const struct shown *how)
{
    MAREY_TRY(put_totals(answer));
    MAREY_TRY(put_table(answer, how));
    return marey__lines_put_notes_apart(&answer->lines, answer->report->tables[MAREY__CALLS_NOTES]);
}

marey_status marey__calls_text(const marey_report *report,
                               const struct marey_write_options *options, FILE *out)
{
    const char *const wanted = options->table != NULL ? options->table : "functions";
    const struct shown *how = NULL;
    struct answer answer = {
        .report = report->data,
        .options = options,
        .lines = {.out = out, .has_color = options->text.color},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(shown); i++)
        if (strcmp(marey__calls_tables[shown[i].table].name, wanted) == 0)
            how = &shown[i];
    if (how == NULL)
        return marey__fail(MAREY_EINVAL, "there is no table '%s' of calls to be drawn", wanted);
    return marey__lines_close(&answer.lines, put_all(&answer, how));
}
