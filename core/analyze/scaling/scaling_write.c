/*
 * A scaling report as text, Markdown, JSON and a page: a summary of each series, tables, notes. The page has charts as
 * well, no script, and loads nothing.
 */
#include <stdio.h>
#include <string.h>

#include "analyze/scaling/internal.h"

struct writing {
    const marey_report *report;
    const struct marey_text_options *options;
    const marey_table *notes;
    struct marey__scaling_list list;
    struct marey__lines lines;
};

/* The tables of single runs come last, and are not in text and Markdown. */
enum { N_TEXT_SECTIONS = MAREY__SCALING_SECTIONS - 1 };

typedef void put_string(struct marey__buf *line, const char *text, size_t len);

/* The summary of a series, escaped by `put`. */
static void put_summary(struct writing *w, size_t series, put_string *put)
{
    struct marey__buf summary = {0};
    marey__scaling_summary(&summary, w->report, &w->list, series);
    put(&w->lines.line, summary.data, summary.failed ? 0 : summary.len);
    w->lines.line.failed |= summary.failed;
    marey__buf_fini(&summary);
}

static void put_note(struct writing *w, size_t row, put_string *put)
{
    const struct marey_cell text = marey_table_cell(w->notes, row, 0);
    put(&w->lines.line, text.as.text, text.len);
}

/* One section's table with its heading; empty tables are left out. */
typedef marey_status put_table(struct writing *w, const char *heading, const marey_table *table);

static marey_status put_tables(struct writing *w, size_t n_sections, uint32_t width, put_table *put)
{
    for (size_t section = 0; section < n_sections; section++) {
        marey_table *table = NULL;
        MAREY_TRY(marey__scaling_view(w->report, section, width, &table));
        const marey_status status =
            table != NULL ? put(w, marey__scaling_heading(section), table) : MAREY_OK;
        marey_table_destroy(table);
        MAREY_TRY(status);
    }
    return MAREY_OK;
}

/* ---- text ---- */

static marey_status put_text_table(struct writing *w, const char *heading, const marey_table *table)
{
    const struct marey__text_view view = {
        .table = table, .options = *w->options, .n_rows = marey_table_n_rows(table)};
    marey__buf_printf(&w->lines.line, "\n%s%s%s", marey__style(&w->lines, DIM), heading,
                      marey__style(&w->lines, PLAIN));
    MAREY_TRY(marey__lines_end(&w->lines));
    return marey__text_draw(&view, w->lines.out);
}

static marey_status put_text(struct writing *w)
{
    for (size_t s = 0; s < w->list.n; s++) {
        marey__buf_puts(&w->lines.line, marey__style(&w->lines, BOLD));
        marey__scaling_summary(&w->lines.line, w->report, &w->list, s);
        marey__buf_puts(&w->lines.line, marey__style(&w->lines, PLAIN));
        MAREY_TRY(marey__lines_end(&w->lines));
    }
    MAREY_TRY(put_tables(w, N_TEXT_SECTIONS, w->options->width, put_text_table));
    return marey__lines_put_notes_apart(&w->lines, w->notes);
}

/* ---- Markdown ---- */

static marey_status put_markdown_table(struct writing *w, const char *heading,
                                       const marey_table *table)
{
    marey__buf_printf(&w->lines.line, "\n### %s\n\n", heading);
    marey__markdown_table(&w->lines.line, table);
    return marey__buf_to_stream(&w->lines.line, w->lines.out);
}

static marey_status put_markdown(struct writing *w)
{
    for (size_t s = 0; s < w->list.n; s++) {
        marey__buf_puts(&w->lines.line, s == 0 ? "**" : "\n**");
        put_summary(w, s, marey__markdown_put);
        marey__buf_puts(&w->lines.line, "**\n");
    }
    MAREY_TRY(put_tables(w, N_TEXT_SECTIONS, 0, put_markdown_table));
    for (size_t row = 0; row < marey_table_n_rows(w->notes); row++) {
        marey__buf_puts(&w->lines.line, row == 0 ? "\n- note: " : "- note: ");
        put_note(w, row, marey__markdown_put);
        marey__buf_puts(&w->lines.line, "\n");
    }
    return marey__buf_to_stream(&w->lines.line, w->lines.out);
}

/* ---- JSON ---- */

static marey_status put_json(struct writing *w)
{
    struct marey__buf *line = &w->lines.line;
    marey__buf_puts(line, "{\n  \"summary\": [");
    for (size_t s = 0; s < w->list.n; s++) {
        marey__buf_puts(line, s == 0 ? "\n    " : ",\n    ");
        put_summary(w, s, marey__json_put);
    }
    marey__buf_puts(line, w->list.n == 0 ? "],\n" : "\n  ],\n");
    for (size_t t = 0; t < MAREY__SCALING_NOTES; t++)
        MAREY_TRY(marey__json_named_rows(line, w->report->tables[t], w->lines.out));
    marey__json_last_texts(line, w->notes);
    return marey__buf_to_stream(line, w->lines.out);
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

/* Charts without data are left out. */
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

static marey_status put_html_table(struct writing *w, const char *heading, const marey_table *table)
{
    marey__buf_printf(&w->lines.line, "<h2>%s</h2>\n", heading);
    marey__html_table(&w->lines.line, table, 0);
    return MAREY_OK;
}

static marey_status put_page(struct writing *w)
{
    struct marey__buf *html = &w->lines.line;
    const size_t n_notes = marey_table_n_rows(w->notes);
    put_head(html);
    for (size_t s = 0; s < w->list.n; s++) {
        marey__buf_puts(html, "<p>");
        put_summary(w, s, marey__xml_put);
        marey__buf_puts(html, "</p>\n");
    }
    MAREY_TRY(put_charts(html, w->report));
    MAREY_TRY(put_tables(w, MAREY__SCALING_SECTIONS, 0, put_html_table));
    marey__buf_puts(html, n_notes != 0 ? "<h2>notes</h2>\n<ul>\n" : "");
    for (size_t row = 0; row < n_notes; row++) {
        marey__buf_puts(html, "<li>");
        put_note(w, row, marey__xml_put);
        marey__buf_puts(html, "</li>\n");
    }
    marey__buf_puts(html, n_notes != 0 ? "</ul>\n" : "");
    marey__buf_puts(html, "</body></html>\n");
    return marey__buf_to_stream(html, w->lines.out);
}

/* ---- the formats ---- */

static marey_status write_all(const marey_report *report, const struct marey_write_options *options,
                              FILE *out, marey_status (*put)(struct writing *w))
{
    struct writing w = {.report = report,
                        .options = &options->text,
                        .notes = marey_report_table(report, "notes"),
                        .lines = {.out = out, .has_color = options->text.color}};
    marey_status status = marey__scaling_list_init(&w.list, report);
    if (status == MAREY_OK)
        status = put(&w);
    marey__scaling_list_fini(&w.list);
    return marey__lines_close(&w.lines, status);
}

marey_status marey__scaling_text(const marey_report *report,
                                 const struct marey_write_options *options, FILE *out)
{
    return write_all(report, options, out, put_text);
}

marey_status marey__scaling_markdown(const marey_report *report,
                                     const struct marey_write_options *options, FILE *out)
{
    return write_all(report, options, out, put_markdown);
}

marey_status marey__scaling_json(const marey_report *report,
                                 const struct marey_write_options *options, FILE *out)
{
    return write_all(report, options, out, put_json);
}

marey_status marey__scaling_html(const marey_report *report,
                                 const struct marey_write_options *options, FILE *out)
{
    return write_all(report, options, out, put_page);
}
