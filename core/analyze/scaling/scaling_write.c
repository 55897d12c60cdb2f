/*
 * A scaling report as text, Markdown, JSON and a page: a summary of each series, tables, notes. The page also has
 * charts, contains no scripts and loads nothing.
 *
 * Displayed tables use fitting units for times, percent for shares, and one column per interval. They omit columns that
 * have no values, or only the default one.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/scaling/internal.h"

/* ---- displayed tables ---- */

enum how {
    AS_TEXT,
    AS_COUNT,
    AS_SECONDS,
    AS_REAL,
    AS_PERCENT,
    AS_YES,
    TO_SECONDS,
    TO_PERCENT,
    TO_REAL
};

struct drawn {
    const char *title, *from, *high; /* for an interval: its low and high columns */
    enum how how;
    bool is_key;   /* identifies the row: a row with only key columns is not drawn */
    uint32_t room; /* required terminal width; 0: any */
};

enum { NARROW = 100, WIDE = 130, MOST_COLUMNS = 16 };

#define SERIES                                                                                     \
    {"experiment", "experiment", NULL, AS_TEXT, true, 0},                                          \
    {                                                                                              \
        "strategy", "strategy", NULL, AS_TEXT, true, 0                                             \
    }
#define WORKERS                                                                                    \
    {                                                                                              \
        "workers", "workers", NULL, AS_COUNT, true, 0                                              \
    }

static const struct drawn point_columns[] = {
    SERIES,
    WORKERS,
    {"nodes", "nodes", NULL, AS_COUNT, true, WIDE},
    {"runs", "runs", NULL, AS_COUNT, true, 0},
    {"epochs", "epochs", NULL, AS_COUNT, true, WIDE},
    {"scaling", "kind", NULL, AS_TEXT, true, WIDE},
    {"of", "measure", NULL, AS_TEXT, true, 0},
    {"time", "time_s", NULL, AS_SECONDS, false, 0},
    {"interval", "low_s", "high_s", TO_SECONDS, false, NARROW},
    {"speedup", "speedup", NULL, AS_REAL, false, 0},
    {"efficiency %", "efficiency", NULL, AS_PERCENT, false, 0},
    {"interval %", "efficiency_low", "efficiency_high", TO_PERCENT, false, 0},
    {"samples/s", "throughput", NULL, AS_REAL, false, NARROW},
    {"Karp-Flatt %", "karp_flatt", NULL, AS_PERCENT, false, WIDE},
    {"repeats disagree", "disagrees", NULL, AS_YES, false, 0},
};
static const struct drawn step_columns[] = {
    SERIES,
    WORKERS,
    {"compute", "compute_s", NULL, AS_SECONDS, false, 0},
    {"exposed communication", "communication_s", NULL, AS_SECONDS, false, 0},
    {"exposed copies", "memory_s", NULL, AS_SECONDS, false, 0},
    {"idle", "idle_s", NULL, AS_SECONDS, false, 0},
};
static const struct drawn energy_columns[] = {
    SERIES,
    WORKERS,
    {"J/epoch", "joules_per_epoch", NULL, AS_REAL, false, 0},
    {"interval", "joules_low", "joules_high", TO_REAL, false, 0},
    {"J/sample", "joules_per_sample", NULL, AS_REAL, false, 0},
    {"energy efficiency %", "energy_efficiency", NULL, AS_PERCENT, false, 0},
    {"energy x delay Js", "energy_delay", NULL, AS_REAL, false, WIDE},
    {"GPU utilization %", "utilization", NULL, AS_PERCENT, false, 0},
};
static const struct drawn fit_columns[] = {
    SERIES,
    {"model", "model", NULL, AS_TEXT, true, 0},
    {"serial %", "serial", NULL, AS_PERCENT, false, 0},
    {"interval %", "serial_low", "serial_high", TO_PERCENT, false, 0},
    {"contention", "contention", NULL, AS_REAL, false, 0},
    {"interval", "contention_low", "contention_high", TO_REAL, false, WIDE},
    {"coherency", "coherency", NULL, AS_REAL, false, 0},
    {"interval", "coherency_low", "coherency_high", TO_REAL, false, WIDE},
    {"off by %", "residual", NULL, AS_PERCENT, false, 0},
    {"fastest at", "best_workers", NULL, AS_REAL, false, 0},
    {"interval", "best_low", "best_high", TO_REAL, false, WIDE},
    {"note", "note", NULL, AS_TEXT, false, 0},
};
static const struct drawn forecast_columns[] = {
    SERIES,
    {"model", "model", NULL, AS_TEXT, true, 0},
    WORKERS,
    {"time", "time_s", NULL, AS_SECONDS, false, 0},
    {"interval", "low_s", "high_s", TO_SECONDS, false, 0},
    {"speedup", "speedup", NULL, AS_REAL, false, 0},
    {"efficiency %", "efficiency", NULL, AS_PERCENT, false, 0},
};
static const struct drawn best_columns[] = {
    SERIES,
    {"for", "for", NULL, AS_TEXT, true, 0},
    WORKERS,
    {"measured", "measured", NULL, AS_YES, false, 0},
};
static const struct drawn run_columns[] = {
    SERIES,
    WORKERS,
    {"run", "run", NULL, AS_TEXT, true, 0},
    {"epochs", "epochs", NULL, AS_COUNT, true, 0},
    {"median epoch", "median_epoch_s", NULL, AS_SECONDS, false, 0},
    {"median step", "median_step_s", NULL, AS_SECONDS, false, 0},
    {"joules", "joules", NULL, AS_REAL, false, 0},
    {"stopped half-way", "partial", NULL, AS_YES, false, 0},
};

#define SECTION(heading, table, columns)                                                           \
    {                                                                                              \
        heading, table, columns, MAREY__COUNT_OF(columns)                                          \
    }
static const struct {
    const char *heading, *table;
    const struct drawn *columns;
    size_t n;
} sections[] = {
    SECTION("time, speedup, efficiency", "points", point_columns),
    SECTION("a step, mean over ranks", "points", step_columns),
    SECTION("energy", "points", energy_columns),
    SECTION("fits", "fits", fit_columns),
    SECTION("forecast", "forecast", forecast_columns),
    SECTION("best number of workers", "best", best_columns),
    SECTION("runs", "runs", run_columns),
};

/* ---- selection of columns and rows ---- */

static bool is_empty(const marey_table *from, size_t row, const struct drawn *column)
{
    if (column->how == AS_TEXT)
        return marey__cell_of(from, row, column->from).len == 0;
    const double value = marey__scaling_number(from, row, column->from);
    if (column->high != NULL)
        return !isfinite(value) || !isfinite(marey__scaling_number(from, row, column->high));
    return !isfinite(value) || (value == 0 && column->how == AS_YES);
}

static bool is_worth_a_row(const marey_table *from, size_t row, const struct drawn *columns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!columns[i].is_key && columns[i].how != AS_YES && !is_empty(from, row, &columns[i]))
            return true;
    return columns == best_columns;
}

/* The default value: one node, measured by epochs, time 0. */
static bool is_default(const marey_table *from, const struct drawn *column, size_t row)
{
    if (strcmp(column->from, "nodes") == 0)
        return marey__scaling_number(from, row, "nodes") <= 1;
    if (strcmp(column->from, "measure") == 0)
        return strcmp(marey__cell_of(from, row, "measure").as.text, "epoch") == 0;
    return column->how == AS_SECONDS && marey__scaling_number(from, row, column->from) == 0;
}

static bool is_worth_a_column(const marey_table *from, const struct drawn *column, uint32_t width)
{
    if (width != 0 && width < column->room)
        return false;
    for (size_t row = 0; row < marey_table_n_rows(from); row++)
        if (!is_empty(from, row, column) && !is_default(from, column, row))
            return true;
    return false;
}

/* ---- cells ---- */

/* Both ends in one text: "9.8 s to 10.4 s", "78.1 to 82.0". */
static void put_interval(marey_table *into, struct marey__buf *text, const marey_table *from,
                         size_t row, const struct drawn *column)
{
    const double ends[] = {marey__scaling_number(from, row, column->from),
                           marey__scaling_number(from, row, column->high)};
    text->len = 0;
    for (size_t i = 0; i < MAREY__COUNT_OF(ends); i++) {
        marey__buf_puts(text, i != 0 ? " to " : "");
        if (column->how == TO_SECONDS)
            marey__text_duration(text, ends[i] * 1e9, NULL);
        else if (column->how == TO_PERCENT)
            marey__buf_printf(text, "%.1f", ends[i] * 100);
        else
            marey__buf_printf(text, fabs(ends[i]) >= 1000 ? "%.0f" : "%.3g", ends[i]);
    }
    marey_table_text(into, text->data, text->failed ? 0 : text->len);
}

/* `text` is a scratch buffer, which records out of memory. */
static void put_cell(marey_table *into, struct marey__buf *text, const marey_table *from,
                     size_t row, const struct drawn *column)
{
    const struct marey_cell cell = marey__cell_of(from, row, column->from);
    const double value =
        column->how == AS_TEXT ? NAN : marey__scaling_number(from, row, column->from);
    if (is_empty(from, row, column) && column->how != AS_YES)
        marey_table_null(into);
    else if (column->how == AS_TEXT)
        marey_table_text(into, cell.as.text, cell.len);
    else if (column->high != NULL)
        put_interval(into, text, from, row, column);
    else if (column->how == AS_YES)
        marey_table_bool(into, value > 0);
    else if (column->how == AS_COUNT)
        marey_table_u64(into, (uint64_t)value);
    else if (column->how == AS_SECONDS)
        marey_table_f64(into, value * 1e9);
    else if (column->how == AS_PERCENT)
        marey_table_f64(into, round(value * 1000) / 10);
    else
        marey_table_f64(into, value);
}

static struct marey_column column_of(const struct drawn *column)
{
    static const struct {
        enum marey_type type;
        enum marey_unit unit;
    } kinds[] = {
        [AS_TEXT] = {MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
        [AS_COUNT] = {MAREY_TYPE_U64, MAREY_UNIT_COUNT},
        [AS_SECONDS] = {MAREY_TYPE_F64, MAREY_UNIT_NS},
        [AS_REAL] = {MAREY_TYPE_F64, MAREY_UNIT_NONE},
        [AS_PERCENT] = {MAREY_TYPE_F64, MAREY_UNIT_NONE},
        [AS_YES] = {MAREY_TYPE_BOOL, MAREY_UNIT_NONE},
    };
    const enum how how = column->high != NULL ? AS_TEXT : column->how; /* an interval is a text */
    return (struct marey_column){column->from, column->title, kinds[how].type, kinds[how].unit};
}

/* ---- the table ---- */

/* A section's table without empty columns and those too wide for `width` (0: any); NULL without columns. */
static marey_status make_view(const marey_report *report, size_t section, uint32_t width,
                              marey_table **out)
{
    const marey_table *from = marey_report_table(report, sections[section].table);
    const struct drawn *columns = sections[section].columns, *chosen[MOST_COLUMNS];
    struct marey_column made[MOST_COLUMNS];
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    size_t n = 0;
    for (size_t i = 0; i < sections[section].n; i++)
        if (is_worth_a_column(from, &columns[i], width)) {
            chosen[n] = &columns[i];
            made[n++] = column_of(&columns[i]);
        }
    if (n == 0)
        return MAREY_OK;
    MAREY_TRY(marey_table_create(sections[section].table, made, n, out));
    for (size_t row = 0; row < marey_table_n_rows(from); row++)
        for (size_t i = 0; i < n && is_worth_a_row(from, row, columns, sections[section].n); i++)
            put_cell(*out, &text, from, row, chosen[i]);
    return text.failed ? marey__no_memory() : marey_table_status(*out);
}

/* ---- all formats ---- */

static const struct marey__scaling_list *list_of(const struct marey__report_writer *writer)
{
    return writer->report->data;
}

static const marey_table *notes_of(const struct marey__report_writer *writer)
{
    return writer->report->tables[MAREY__SCALING_NOTES];
}

/* The tables of single runs come last, and are not in text and Markdown. */
enum { N_SECTIONS = MAREY__COUNT_OF(sections), N_TEXT_SECTIONS = N_SECTIONS - 1 };

typedef void put_string(struct marey__buf *line, const char *text, size_t len);

/* The summary of a series, escaped by `put`. */
static void put_summary(struct marey__report_writer *writer, size_t series, put_string *put)
{
    struct marey__buf summary = {0};
    marey__scaling_summary(&summary, writer->report, series);
    put(&writer->lines.line, summary.data, summary.failed ? 0 : summary.len);
    marey__buf_end(&summary, &writer->lines.line);
}

static void put_note(struct marey__report_writer *writer, size_t row, put_string *put)
{
    const struct marey_cell text = marey_table_cell(notes_of(writer), row, 0);
    put(&writer->lines.line, text.as.text, text.len);
}

/* One section's table with its heading; empty tables are omitted. */
typedef marey_status put_table(struct marey__report_writer *writer, const char *heading,
                               const marey_table *table);

static marey_status put_tables(struct marey__report_writer *writer, size_t n_sections,
                               uint32_t width, put_table *put)
{
    for (size_t section = 0; section < n_sections; section++) {
        marey_table *table MAREY__FINALLY(marey__table_end) = NULL;
        MAREY_TRY(make_view(writer->report, section, width, &table));
        if (table != NULL && marey_table_n_rows(table) != 0)
            MAREY_TRY(put(writer, sections[section].heading, table));
    }
    return MAREY_OK;
}

/* ---- text ---- */

static marey_status put_text_table(struct marey__report_writer *writer, const char *heading,
                                   const marey_table *table)
{
    const struct marey__text_view view = {
        .table = table, .options = writer->options->text, .n_rows = marey_table_n_rows(table)};
    marey__buf_printf(&writer->lines.line, "\n%s%s%s", marey__style(&writer->lines, DIM), heading,
                      marey__style(&writer->lines, PLAIN));
    MAREY_TRY(marey__lines_end(&writer->lines));
    return marey__text_draw(&view, writer->lines.out);
}

marey_status marey__scaling_text(struct marey__report_writer *writer)
{
    for (size_t s = 0; s < list_of(writer)->n; s++) {
        marey__buf_puts(&writer->lines.line, marey__style(&writer->lines, BOLD));
        marey__scaling_summary(&writer->lines.line, writer->report, s);
        marey__buf_puts(&writer->lines.line, marey__style(&writer->lines, PLAIN));
        MAREY_TRY(marey__lines_end(&writer->lines));
    }
    MAREY_TRY(put_tables(writer, N_TEXT_SECTIONS, writer->options->text.width, put_text_table));
    return marey__lines_put_notes_apart(&writer->lines, notes_of(writer));
}

/* ---- Markdown ---- */

static marey_status put_markdown_table(struct marey__report_writer *writer, const char *heading,
                                       const marey_table *table)
{
    marey__buf_printf(&writer->lines.line, "\n### %s\n\n", heading);
    marey__markdown_table(&writer->lines.line, table, 0, NULL);
    return marey__buf_to_stream(&writer->lines.line, writer->lines.out);
}

marey_status marey__scaling_markdown(struct marey__report_writer *writer)
{
    for (size_t s = 0; s < list_of(writer)->n; s++) {
        marey__buf_puts(&writer->lines.line, s == 0 ? "**" : "\n**");
        put_summary(writer, s, marey__markdown_put);
        marey__buf_puts(&writer->lines.line, "**\n");
    }
    MAREY_TRY(put_tables(writer, N_TEXT_SECTIONS, 0, put_markdown_table));
    for (size_t row = 0; row < marey_table_n_rows(notes_of(writer)); row++) {
        marey__buf_puts(&writer->lines.line, row == 0 ? "\n- note: " : "- note: ");
        put_note(writer, row, marey__markdown_put);
        marey__buf_puts(&writer->lines.line, "\n");
    }
    return marey__buf_to_stream(&writer->lines.line, writer->lines.out);
}

/* ---- JSON ---- */

marey_status marey__scaling_json(struct marey__report_writer *writer)
{
    struct marey__buf *line = &writer->lines.line;
    marey__buf_puts(line, "{\n  \"summary\": [");
    for (size_t s = 0; s < list_of(writer)->n; s++) {
        marey__buf_puts(line, s == 0 ? "\n    " : ",\n    ");
        put_summary(writer, s, marey__json_put);
    }
    marey__buf_puts(line, list_of(writer)->n == 0 ? "],\n" : "\n  ],\n");
    for (size_t t = 0; t < MAREY__SCALING_NOTES; t++)
        MAREY_TRY(marey__json_named_rows(line, writer->report->tables[t], writer->lines.out));
    marey__json_last_texts(line, notes_of(writer));
    return marey__buf_to_stream(line, writer->lines.out);
}

/* ---- the page ---- */

/* scaling_page.css and chart.css with their hashes, which the build turns into C. */
extern const char marey__scaling_page_css[], marey__chart_css[];
extern const unsigned char marey__scaling_page_css_sha256[32], marey__chart_css_sha256[32];

/* The policy allows these two styles, by their hashes, and nothing else. */
static void put_head(struct marey__buf *html)
{
    marey__buf_puts(html,
                    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                    "style-src 'sha256-");
    marey__base64_put(html, marey__scaling_page_css_sha256, sizeof marey__scaling_page_css_sha256);
    marey__buf_puts(html, "' 'sha256-");
    marey__base64_put(html, marey__chart_css_sha256, sizeof marey__chart_css_sha256);
    marey__buf_printf(html,
                      "'; base-uri 'none'; form-action 'none'\">\n<title>Scaling</title>"
                      "<style>%s</style><style>%s</style></head><body>\n<h1>Scaling</h1>\n",
                      marey__scaling_page_css, marey__chart_css);
}

/* Charts without data are omitted. */
static marey_status put_charts(struct marey__buf *html, const marey_report *report)
{
    static const char *const charts[] = {"speedup",    "efficiency", "epoch-time", "step-breakdown",
                                         "throughput", "energy",     "utilization"};
    marey__buf_puts(html, "<div class=\"pictures\">\n");
    for (size_t i = 0; i < MAREY__COUNT_OF(charts); i++) {
        struct marey__buf svg = {0};
        const marey_status status = marey__scaling_chart_put(report, charts[i], false, &svg);
        if (status == MAREY_OK) {
            marey__buf_puts(html, "<figure>");
            marey__buf_put(html, svg.data, svg.len);
            marey__buf_puts(html, "</figure>\n");
        }
        html->failed |= svg.failed;
        marey__buf_fini(&svg);
        if (status != MAREY_OK && status != MAREY_EFORMAT)
            return status;
    }
    marey__buf_puts(html, "</div>\n");
    return MAREY_OK;
}

static marey_status put_html_table(struct marey__report_writer *writer, const char *heading,
                                   const marey_table *table)
{
    marey__buf_printf(&writer->lines.line, "<h2>%s</h2>\n", heading);
    marey__html_table(&writer->lines.line, table, 0);
    return MAREY_OK;
}

marey_status marey__scaling_html(struct marey__report_writer *writer)
{
    struct marey__buf *html = &writer->lines.line;
    const size_t n_notes = marey_table_n_rows(notes_of(writer));
    put_head(html);
    for (size_t s = 0; s < list_of(writer)->n; s++) {
        marey__buf_puts(html, "<p>");
        put_summary(writer, s, marey__xml_put);
        marey__buf_puts(html, "</p>\n");
    }
    MAREY_TRY(put_charts(html, writer->report));
    MAREY_TRY(put_tables(writer, N_SECTIONS, 0, put_html_table));
    marey__buf_puts(html, n_notes != 0 ? "<h2>notes</h2>\n<ul>\n" : "");
    for (size_t row = 0; row < n_notes; row++) {
        marey__buf_puts(html, "<li>");
        put_note(writer, row, marey__xml_put);
        marey__buf_puts(html, "</li>\n");
    }
    marey__buf_puts(html, n_notes != 0 ? "</ul>\n" : "");
    marey__buf_puts(html, "</body></html>\n");
    return marey__buf_to_stream(html, writer->lines.out);
}
