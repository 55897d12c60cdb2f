/* Calls for a terminal: a summary line, one table, notes. Functions are written as in cProfile's table. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/calls/internal.h"
#include "present/draw/internal.h"

#define SUMS                                                                                       \
    {                                                                                              \
        "calls", "primitive_calls", "self_ns", "self_per_call_ns", "total_ns",                     \
            "total_per_call_ns", "max_ns", "gpu_ns", "share"                                       \
    }
static const struct marey__function_table shown[] = {
    {"functions", NULL, SUMS, {"function"}},
    {"signatures", NULL, SUMS, {"function"}},
    {"callers",
     "who was called by whom",
     {"calls", "primitive_calls", "self_ns", "total_ns", "share"},
     {"function", "caller"}},
    {"callees",
     "who called whom",
     {"calls", "primitive_calls", "self_ns", "total_ns", "share"},
     {"function", "callee"}},
    {"paths", NULL, {"calls", "self_ns", "total_ns", "gpu_ns", "share"}, {"function"}},
    {"shapes",
     "same function, different arguments",
     {"calls", "per_call_ns", "elements", "ns_per_element", "times_best", "share"},
     {"function"}},
    {"threads", NULL, {"rank", "pid", "tid", "calls", "functions", "self_ns", "thread"}, {NULL}},
    {0},
};

/* ---- summary line ---- */

static marey_status put_totals(struct marey__report_writer *writer)
{
    const struct marey__calls_report *const report = writer->report->data;
    const marey_table *const totals = writer->report->tables[MAREY__CALLS_TOTALS];
    struct marey__buf *const line = &writer->lines.line;
    const uint64_t calls = marey__cell_of(totals, 0, "calls").as.u64,
                   primitive = marey__cell_of(totals, 0, "primitive_calls").as.u64;
    const struct marey_cell cost = marey__cell_of(totals, 0, "cost_per_call_ns");
    const char *const timer = marey__cell_of(totals, 0, "timer").as.text;
    marey__buf_puts(line, marey__style(&writer->lines, BOLD));
    if (report->calls.from_samples)
        marey__buf_puts(line, "samples");
    else
        marey__text_count_of(line, calls, report->calls.from_ranges ? "range" : "call");
    marey__buf_puts(line, marey__style(&writer->lines, PLAIN));
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
    marey__buf_puts(line, strcmp(timer, "cpu") == 0   ? " of CPU time"
                          : strcmp(timer, "own") == 0 ? " by the program's own timer"
                                                      : "");
    if (!cost.is_null) {
        marey__buf_puts(line, "; measuring a call costs ");
        marey__text_duration(line, cost.as.f64, NULL);
        marey__buf_puts(line, ", ");
        marey__text_duration(line, cost.as.f64 * (double)calls, NULL);
        marey__buf_puts(line, report->subtracted_ns != 0 ? " in all"
                                                         : " in all, which is in these times");
    }
    return marey__lines_end(&writer->lines);
}

marey_status marey__calls_text(struct marey__report_writer *writer)
{
    const char *const wanted = writer->options->table != NULL ? writer->options->table : "functions";
    const struct marey__function_table *const how = marey__function_table_find(shown, wanted);
    const marey_table *const table = marey_report_table(writer->report, wanted);
    const size_t n = table != NULL ? marey_table_n_rows(table) : 0, limit = writer->options->limit;
    if (how == NULL)
        return marey__fail(MAREY_EINVAL, "there is no table '%s' of calls to be drawn", wanted);
    MAREY_TRY(put_totals(writer));
    MAREY_TRY(marey__function_table_put(how, table, limit != 0 ? MAREY__MIN(n, limit) : n,
                                        &writer->options->text, true, &writer->lines));
    return marey__lines_put_notes_apart(&writer->lines, writer->report->tables[MAREY__CALLS_NOTES]);
}
