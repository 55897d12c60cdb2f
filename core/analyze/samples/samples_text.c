/* Samples for a terminal: which samples count, their quality, functions and lines, notes. */
#include <stdio.h>
#include <string.h>

#include "analyze/samples/internal.h"
#include "present/draw/internal.h"

enum { SHORT_ROWS = 5 };

static const struct marey__function_table shown[] = {
    {"functions",
     "functions",
     {"share", "error", "self_ns", "total_share", "cpu", "gil", "waits"},
     {"function"}},
    {"lines", "lines", {"share", "error", "self_ns", "total_share", "cpu", "gil", "waits"}, {"function"}},
    {"files", NULL, {"share", "error", "self_ns", "total_share", "cpu", "gil", "waits", "file"}, {0}},
    {"modules",
     NULL,
     {"share", "error", "self_ns", "total_share", "cpu", "gil", "waits", "module"},
     {0}},
    {"threads",
     NULL,
     {"share", "error", "self_ns", "cpu", "gil", "waits", "rank", "pid", "tid", "thread"},
     {0}},
    {"processes",
     NULL,
     {"share", "error", "self_ns", "cpu", "waits", "rank", "worker", "pid", "command"},
     {0}},
    {"ranks", NULL, {"rank", "processes", "share", "error", "self_ns", "cpu", "gil", "waits"}, {0}},
    {"stacks", NULL, {"share", "error", "self_ns", "cpu", "waits", "stack"}, {0}},
    {"contacts",
     "ways into the library",
     {"share", "error", "self_ns"},
     {"function", "contact", "caller"}},
    {"waits", "what threads wait for", {"share", "self_ns", "waits", "thread"}, {"function"}},
    {"gil",
     "the interpreter lock",
     {"held", "held_ns", "wants", "wants_ns", "switches_per_s", "rank", "pid", "thread"},
     {0}},
    {0},
};
/* Too wide for a table: see put_audit_table. */
static const struct marey__function_table shown_audit = {"audit", NULL, {0}, {0}};

/* ---- tables ---- */

/* Short output omits rows that have only total time. */
static size_t rows_to_draw(const struct marey__report_writer *writer, const marey_table *table)
{
    const size_t n = marey_table_n_rows(table), limit = writer->options->limit;
    if (!writer->options->is_short)
        return limit != 0 ? MAREY__MIN(n, limit) : n;
    size_t n_own = 0;
    while (n_own < n && n_own < SHORT_ROWS && marey__cell_of(table, n_own, "samples").as.u64 != 0)
        n_own++;
    return n_own;
}

static marey_status put_table(struct marey__report_writer *writer,
                              const struct marey__function_table *how)
{
    const marey_table *const table = marey_report_table(writer->report, how->table);
    return marey__function_table_put(how, table, rows_to_draw(writer, table), &writer->options->text,
                                     !writer->options->is_short, &writer->lines);
}

/* The sampler's figures, one line per column with a value. */
static void put_facts(struct marey_table *into, const marey_table *audit, size_t row)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    for (size_t i = 0; i < marey_table_n_columns(audit); i++) {
        const struct marey_column *const column = marey_table_column(audit, i);
        const struct marey_cell cell = marey_table_cell(audit, row, i);
        text.len = 0;
        if (cell.is_null)
            continue;
        if (column->type == MAREY_TYPE_TEXT)
            marey__buf_put(&text, cell.as.text, cell.len);
        else
            marey__text_number(&text, &cell, column, NULL);
        MAREY__PUT_ROW(into, STRING_N(column->name, strlen(column->name)),
                       STRING_N(text.len != 0 ? text.data : "", text.len));
    }
}

static marey_status put_audit_table(struct marey__report_writer *writer)
{
    static const struct marey_column columns[] = {{.name = "fact", .type = MAREY_TYPE_TEXT},
                                                  {.name = "value", .type = MAREY_TYPE_TEXT}};
    const marey_table *const audit = writer->report->tables[MAREY__SAMPLES_AUDIT];
    for (size_t row = 0; row < marey_table_n_rows(audit); row++) {
        marey_table *facts MAREY__FINALLY(marey__table_end) = NULL;
        MAREY_TRY(marey__lines_end(&writer->lines));
        MAREY_TRY(marey_table_create("audit", columns, MAREY__COUNT_OF(columns), &facts));
        put_facts(facts, audit, row);
        MAREY_TRY(marey_table_status(facts));
        const struct marey__text_view view = {
            .table = facts, .options = writer->options->text, .n_rows = marey_table_n_rows(facts)};
        MAREY_TRY(marey__text_draw(&view, writer->lines.out));
    }
    return MAREY_OK;
}

/* ---- sentences ---- */

static marey_status put_totals(struct marey__report_writer *writer)
{
    const marey_table *const totals = writer->report->tables[MAREY__SAMPLES_TOTALS];
    struct marey__buf *const line = &writer->lines.line;
    marey__buf_puts(line, marey__style(&writer->lines, BOLD));
    marey__text_count_of(line, marey__cell_of(totals, 0, "samples").as.u64, "sample");
    marey__buf_puts(line, marey__style(&writer->lines, PLAIN));
    marey__buf_puts(line, " of ");
    marey__text_count_of(line, marey__cell_of(totals, 0, "threads").as.u64, "thread");
    marey__buf_puts(line, " in ");
    marey__text_count_of(line, marey__cell_of(totals, 0, "processes").as.u64, "process");
    marey__buf_puts(line, " over ");
    marey__text_duration(line, marey__cell_of(totals, 0, "seconds").as.f64 * 1e9, NULL);
    marey__buf_printf(line, ": %s", marey__cell_of(totals, 0, "what").as.text);
    return marey__lines_end(&writer->lines);
}

static void put_percent(struct marey__buf *line, const char *before, const marey_table *table,
                        size_t row, const char *column)
{
    marey__buf_puts(line, before);
    const struct marey_cell cell = marey__cell_of(table, row, column);
    const double percent = cell.is_null ? 0 : 100 * cell.as.f64;
    marey__buf_printf(line, percent != 0 && percent < 0.095 ? "%.2g %%" : "%.1f %%", percent);
}

static void put_distance(struct marey__buf *line, const marey_table *audit, size_t row)
{
    if (marey__cell_of(audit, row, "distance").is_null)
        return;
    put_percent(line, "; functions differ from those of threads stopped by chance by ", audit, row,
                "distance");
    put_percent(line, " (", audit, row, "distance_low");
    put_percent(line, " to ", audit, row, "distance_high");
    put_percent(line, "; equal ones would by ", audit, row, "distance_by_chance");
    marey__buf_puts(line, ")");
}

/* One sentence per sampler. */
static void put_audit(struct marey__buf *line, const marey_table *audit, size_t row)
{
    const struct marey_cell rate = marey__cell_of(audit, row, "rate_hz"),
                            achieved = marey__cell_of(audit, row, "achieved_hz");
    if (!achieved.is_null)
        marey__text_real(line, achieved.as.f64);
    if (!achieved.is_null && !rate.is_null) {
        marey__buf_puts(line, " of ");
        marey__text_real(line, rate.as.f64);
    }
    put_percent(line, achieved.is_null ? "" : " Hz, ", audit, row, "missed_share");
    put_percent(line, " missed, ", audit, row, "rejected_share");
    put_percent(line, " rejected, ", audit, row, "unstable_share");
    put_percent(line, " unstable, ", audit, row, "exact_share");
    put_percent(line, " exact; threads were stopped for ", audit, row, "cost_share");
    marey__buf_puts(line, " of the time");
    const uint64_t longest = marey__cell_of(audit, row, "stop_max_ns").as.u64;
    if (longest != 0) {
        marey__buf_puts(line, ", at most ");
        marey__text_duration(line, (double)longest, NULL);
    }
    put_distance(line, audit, row);
}

static marey_status put_audits(struct marey__report_writer *writer)
{
    const marey_table *const audit = writer->report->tables[MAREY__SAMPLES_AUDIT];
    struct marey__buf *const line = &writer->lines.line;
    const size_t n = marey_table_n_rows(audit);
    for (size_t row = 0; row < n; row++) {
        marey__buf_puts(line, "audit");
        if (n > 1)
            marey__buf_printf(line, " of %s %lld", marey__cell_of(audit, row, "host").as.text,
                              (long long)marey__cell_of(audit, row, "pid").as.i64);
        marey__buf_puts(line, ": ");
        put_audit(line, audit, row);
        MAREY_TRY(marey__lines_end(&writer->lines));
    }
    return MAREY_OK;
}

/* ---- all lines ---- */

marey_status marey__samples_text(struct marey__report_writer *writer)
{
    const char *const wanted = writer->options->table;
    const struct marey__function_table *const how = wanted == NULL ? &shown[0]
                                                    : strcmp(wanted, "audit") == 0
                                                        ? &shown_audit
                                                        : marey__function_table_find(shown, wanted);
    if (how == NULL)
        return marey__fail(MAREY_EINVAL, "there is no table '%s' of samples to be drawn", wanted);
    if (writer->options->is_short) {
        marey__buf_printf(&writer->lines.line, "\n%sSamples%s  ",
                          marey__style(&writer->lines, BOLD), marey__style(&writer->lines, PLAIN));
    }
    MAREY_TRY(put_totals(writer));
    MAREY_TRY(put_audits(writer));
    MAREY_TRY(how == &shown_audit ? put_audit_table(writer) : put_table(writer, how));
    if (wanted == NULL)
        MAREY_TRY(put_table(writer, &shown[1]));
    return marey__lines_put_notes_apart(&writer->lines, writer->report->tables[MAREY__SAMPLES_NOTES]);
}
