/* Samples for a terminal and as JSON: what counts, how good it is, functions and lines, notes. */
#include <stdio.h>
#include <string.h>

#include "analyze/samples_whole.h"
#include "present/calls_out.h"
#include "present/drawn.h"
#include "present/present_internal.h"
#include "present/style.h"

enum { SHORT_ROWS = 5 };

/* How a table is drawn: numbers first, then who they are of. */
static const struct shown {
    enum kymo__samples_table table;
    const char *title, *columns[KYMO__DRAWN_COLUMNS], *places[KYMO__DRAWN_PLACES];
} shown[] = {
    {KYMO__SAMPLES_FUNCTIONS,
     "functions",
     {"share", "error", "self_ns", "total_share", "cpu", "gil", "waits"},
     {"function"}},
    {KYMO__SAMPLES_LINES,
     "lines",
     {"share", "error", "self_ns", "total_share", "cpu", "gil", "waits"},
     {"function"}},
    {KYMO__SAMPLES_FILES,
     NULL,
     {"share", "error", "self_ns", "total_share", "cpu", "gil", "waits", "file"},
     {0}},
    {KYMO__SAMPLES_MODULES,
     NULL,
     {"share", "error", "self_ns", "total_share", "cpu", "gil", "waits", "module"},
     {0}},
    {KYMO__SAMPLES_THREADS,
     NULL,
     {"share", "error", "self_ns", "cpu", "gil", "waits", "rank", "pid", "tid", "thread"},
     {0}},
    {KYMO__SAMPLES_PROCESSES,
     NULL,
     {"share", "error", "self_ns", "cpu", "waits", "rank", "worker", "pid", "command"},
     {0}},
    {KYMO__SAMPLES_RANKS,
     NULL,
     {"rank", "processes", "share", "error", "self_ns", "cpu", "gil", "waits"},
     {0}},
    {KYMO__SAMPLES_STACKS, NULL, {"share", "error", "self_ns", "cpu", "waits", "stack"}, {0}},
    {KYMO__SAMPLES_CONTACTS,
     "ways into the library",
     {"share", "error", "self_ns"},
     {"function", "contact", "caller"}},
    {KYMO__SAMPLES_WAITS, "what threads wait for", {"share", "self_ns", "waits", "thread"}, {"function"}},
    {KYMO__SAMPLES_GIL,
     "the interpreter lock",
     {"held", "held_ns", "wants", "wants_ns", "switches_per_s", "rank", "pid", "thread"},
     {0}},
};

/* Its rows are too wide: see put_audit_table. */
static const struct shown shown_audit = {KYMO__SAMPLES_AUDIT, NULL, {0}, {0}};

struct answer {
    struct kymo_samples_report *report;
    const struct kymo_samples_text_options *options;
    struct kymo__lines lines;
};

/* ---- tables ---- */

/* A column without anything to tell, as of ranks where there are none. */
static bool is_dull(const kymo_table *table, const char *name, size_t n_rows)
{
    const size_t column = (size_t)kymo_table_find(table, name);
    for (size_t row = 0; row < n_rows; row++)
        if (!kymo_table_cell(table, row, column).is_null)
            return false;
    return true;
}

/* "train.py:12(forward)"; of a line its number, of a function the one it begins with. */
static void put_place(kymo_table *into, const kymo_table *table, size_t row, const char *which)
{
    char file[32], line[32];
    struct kymo__buf text = {0};
    const bool is_other = strcmp(which, "function") != 0;
    snprintf(file, sizeof file, "%s%s", is_other ? which : "", is_other ? "_file" : "file");
    snprintf(line, sizeof line, "%s%s", is_other ? which : "", is_other ? "_line" : "line");
    const struct kymo_cell name = kymo__cell_of(table, row, which);
    if (name.is_null) {
        kymo_table_null(into);
        return;
    }
    kymo__call_place(&text, kymo__cell_of(table, row, file).as.text,
                     kymo__cell_of(table, row, line).as.u64, name.as.text, name.len);
    kymo_table_text(into, text.data != NULL ? text.data : "", text.len);
    kymo__buf_fini(&text);
}

/* Functions that are only on the way to others have no time of their own: a few rows are of those that have. */
static size_t rows_to_draw(const struct answer *answer, const kymo_table *table)
{
    const size_t n = kymo_table_n_rows(table), limit = answer->options->limit;
    if (!answer->options->is_short)
        return limit != 0 ? KYMO__MIN(n, limit) : n;
    size_t n_own = 0;
    while (n_own < n && n_own < SHORT_ROWS && kymo__cell_of(table, n_own, "samples").as.u64 != 0)
        n_own++;
    return n_own;
}

static kymo_status put_table(struct answer *answer, const struct shown *how)
{
    const kymo_table *const table = answer->report->tables[how->table];
    const size_t n = kymo_table_n_rows(table), n_drawn = rows_to_draw(answer, table);
    KYMO_TRY(kymo__lines_end(&answer->lines));
    if (how->title != NULL)
        kymo__buf_printf(&answer->lines.line, "%s%s%s\n", kymo__style(&answer->lines, DIM),
                         how->title, kymo__style(&answer->lines, PLAIN));
    if (n == 0)
        kymo__buf_puts(&answer->lines.line, "(nothing of the kind)\n");
    KYMO_TRY(kymo__buf_to_stream(&answer->lines.line, answer->lines.out));
    if (n == 0)
        return KYMO_OK;
    const struct kymo__drawn drawn = {
        .columns = how->columns, .places = how->places, .is_dull = is_dull, .put_place = put_place};
    return kymo__drawn_put(&drawn, table, n_drawn, &answer->options->text,
                           !answer->options->is_short, &answer->lines);
}

/* What a sampler says about itself, a line for each column that says something. */
static void put_facts(struct kymo_table *into, const kymo_table *audit, size_t row)
{
    struct kymo__buf text = {0};
    for (size_t i = 0; i < kymo_table_n_columns(audit); i++) {
        const struct kymo_column *const column = kymo_table_column(audit, i);
        const struct kymo_cell cell = kymo_table_cell(audit, row, i);
        text.len = 0;
        if (cell.is_null)
            continue;
        if (column->type == KYMO_TYPE_TEXT)
            kymo__buf_put(&text, cell.as.text, cell.len);
        else
            kymo__text_number(&text, &cell, column, NULL);
        kymo_table_text(into, column->name, strlen(column->name));
        kymo_table_text(into, text.len != 0 ? text.data : "", text.len);
    }
    kymo__buf_fini(&text);
}

static kymo_status put_audit_table(struct answer *answer)
{
    static const struct kymo_column columns[] = {{.name = "fact", .type = KYMO_TYPE_TEXT},
                                                 {.name = "value", .type = KYMO_TYPE_TEXT}};
    const kymo_table *const audit = answer->report->tables[KYMO__SAMPLES_AUDIT];
    for (size_t row = 0; row < kymo_table_n_rows(audit); row++) {
        kymo_table *facts = NULL;
        KYMO_TRY(kymo__lines_end(&answer->lines));
        kymo_status status = kymo_table_create("audit", columns, KYMO__COUNT_OF(columns), &facts);
        if (status == KYMO_OK) {
            put_facts(facts, audit, row);
            status = kymo_table_status(facts);
        }
        if (status == KYMO_OK) {
            const struct kymo__text_view view = {.table = facts,
                                                 .options = answer->options->text,
                                                 .n_rows = kymo_table_n_rows(facts)};
            status = kymo__text_draw(&view, answer->lines.out);
        }
        kymo_table_destroy(facts);
        KYMO_TRY(status);
    }
    return KYMO_OK;
}

/* ---- sentences ---- */

static kymo_status put_totals(struct answer *answer)
{
    const kymo_table *const totals = answer->report->tables[KYMO__SAMPLES_TOTALS];
    struct kymo__buf *const line = &answer->lines.line;
    kymo__buf_puts(line, kymo__style(&answer->lines, BOLD));
    kymo__text_count_of(line, kymo__cell_of(totals, 0, "samples").as.u64, "sample");
    kymo__buf_puts(line, kymo__style(&answer->lines, PLAIN));
    kymo__buf_puts(line, " of ");
    kymo__text_count_of(line, kymo__cell_of(totals, 0, "threads").as.u64, "thread");
    kymo__buf_puts(line, " in ");
    kymo__text_count_of(line, kymo__cell_of(totals, 0, "processes").as.u64, "process");
    kymo__buf_puts(line, " over ");
    kymo__text_duration(line, kymo__cell_of(totals, 0, "seconds").as.f64 * 1e9, NULL);
    kymo__buf_printf(line, ": %s", kymo__cell_of(totals, 0, "what").as.text);
    return kymo__lines_end(&answer->lines);
}

static void put_percent(struct kymo__buf *line, const kymo_table *table, size_t row,
                        const char *column)
{
    const struct kymo_cell cell = kymo__cell_of(table, row, column);
    const double percent = cell.is_null ? 0 : 100 * cell.as.f64;
    kymo__buf_printf(line, percent != 0 && percent < 0.095 ? "%.2g %%" : "%.1f %%", percent);
}

static void put_distance(struct kymo__buf *line, const kymo_table *audit, size_t row)
{
    if (kymo__cell_of(audit, row, "distance").is_null)
        return;
    kymo__buf_puts(line, "; functions differ from those of threads stopped by chance by ");
    put_percent(line, audit, row, "distance");
    kymo__buf_puts(line, " (");
    put_percent(line, audit, row, "distance_low");
    kymo__buf_puts(line, " to ");
    put_percent(line, audit, row, "distance_high");
    kymo__buf_puts(line, "; equal ones would by ");
    put_percent(line, audit, row, "distance_by_chance");
    kymo__buf_puts(line, ")");
}

/* One sentence for each sampler. */
static void put_audit(struct kymo__buf *line, const kymo_table *audit, size_t row)
{
    const struct kymo_cell rate = kymo__cell_of(audit, row, "rate_hz"),
                           achieved = kymo__cell_of(audit, row, "achieved_hz");
    if (!achieved.is_null)
        kymo__buf_printf(line, "%.4g", achieved.as.f64);
    if (!achieved.is_null && !rate.is_null)
        kymo__buf_printf(line, " of %.4g", rate.as.f64);
    kymo__buf_puts(line, achieved.is_null ? "" : " Hz, ");
    put_percent(line, audit, row, "missed_share");
    kymo__buf_puts(line, " missed, ");
    put_percent(line, audit, row, "rejected_share");
    kymo__buf_puts(line, " rejected, ");
    put_percent(line, audit, row, "unstable_share");
    kymo__buf_puts(line, " unstable, ");
    put_percent(line, audit, row, "exact_share");
    kymo__buf_puts(line, " exact; threads were stopped for ");
    put_percent(line, audit, row, "cost_share");
    kymo__buf_puts(line, " of the time");
    const uint64_t longest = kymo__cell_of(audit, row, "stop_max_ns").as.u64;
    if (longest != 0) {
        kymo__buf_puts(line, ", at most ");
        kymo__text_duration(line, (double)longest, NULL);
    }
    put_distance(line, audit, row);
}

static kymo_status put_audits(struct answer *answer)
{
    const kymo_table *const audit = answer->report->tables[KYMO__SAMPLES_AUDIT];
    struct kymo__buf *const line = &answer->lines.line;
    const size_t n = kymo_table_n_rows(audit);
    for (size_t row = 0; row < n; row++) {
        kymo__buf_puts(line, "audit");
        if (n > 1)
            kymo__buf_printf(line, " of %s %lld", kymo__cell_of(audit, row, "host").as.text,
                             (long long)kymo__cell_of(audit, row, "pid").as.i64);
        kymo__buf_puts(line, ": ");
        put_audit(line, audit, row);
        KYMO_TRY(kymo__lines_end(&answer->lines));
    }
    return KYMO_OK;
}

/* ---- the whole ---- */

static const struct shown *find_shown(const struct answer *answer, const char *name)
{
    for (size_t i = 0; i < KYMO__COUNT_OF(shown); i++)
        if (strcmp(kymo_table_name(answer->report->tables[shown[i].table]), name) == 0)
            return &shown[i];
    return strcmp(name, "audit") == 0 ? &shown_audit : NULL;
}

static kymo_status put_all(struct answer *answer, const struct shown *how)
{
    if (answer->options->is_short) {
        kymo__buf_printf(&answer->lines.line, "\n%sSamples%s  ", kymo__style(&answer->lines, BOLD),
                         kymo__style(&answer->lines, PLAIN));
    }
    KYMO_TRY(put_totals(answer));
    KYMO_TRY(put_audits(answer));
    if (how != NULL && how->table == KYMO__SAMPLES_AUDIT)
        KYMO_TRY(put_audit_table(answer));
    else
        KYMO_TRY(put_table(answer, how != NULL ? how : &shown[0]));
    if (how == NULL)
        KYMO_TRY(put_table(answer, &shown[1]));
    return kymo__lines_put_notes_apart(&answer->lines, answer->report->tables[KYMO__SAMPLES_NOTES]);
}

kymo_status kymo_samples_report_text(kymo_samples_report *report,
                                     const struct kymo_samples_text_options *options, FILE *out)
{
    static const struct kymo_samples_text_options defaults;
    struct answer answer = {
        .report = report, .options = options != NULL ? options : &defaults, .lines = {.out = out}};
    answer.lines.has_color = answer.options->text.color;
    const char *const wanted = answer.options->table;
    const struct shown *const how = wanted != NULL ? find_shown(&answer, wanted) : NULL;
    if (wanted != NULL && how == NULL)
        return kymo__fail(KYMO_EINVAL, "there is no table '%s' of samples to be drawn", wanted);
    return kymo__lines_close(&answer.lines, put_all(&answer, how));
}

kymo_status kymo_samples_report_json(kymo_samples_report *report, FILE *out)
{
    return kymo__json_report(report->tables, KYMO__SAMPLES_NOTES,
                             report->tables[KYMO__SAMPLES_NOTES], out);
}
