/* Scaling as a page that stands alone: sentences, pictures, tables. Nothing in it runs, and nothing is fetched. */
#include <stdio.h>
#include <string.h>

#include "analyze/scaling/internal.h"
#include "codec/internal.h"

/* scaling_page.css and chart.css with their sums, which the build turns into C. */
extern const char marey__scaling_page_css[], marey__chart_css[];
extern const unsigned char marey__scaling_page_css_sha256[32], marey__chart_css_sha256[32];

static const char *const pictures[] = {"speedup",    "efficiency", "epoch-time", "step-breakdown",
                                       "throughput", "energy",     "utilization"};

/* The policy knows both styles by their sums: no other one is taken. */
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

static marey_status put_sentences(struct marey__buf *html, const marey_report *report)
{
    struct marey__scaling_list list;
    const marey_status status = marey__scaling_list_init(&list, report);
    for (size_t s = 0; status == MAREY_OK && s < list.n; s++) {
        struct marey__buf sentence = {0};
        marey__scaling_sentence(&sentence, report, &list, s);
        marey__buf_puts(html, "<p>");
        marey__xml_put(html, sentence.data, sentence.len);
        marey__buf_puts(html, "</p>\n");
        html->failed |= sentence.failed;
        marey__buf_fini(&sentence);
    }
    marey__scaling_list_fini(&list);
    return status;
}

/* What these runs do not have is left out. */
static marey_status put_pictures(struct marey__buf *html, const marey_report *report)
{
    marey__buf_puts(html, "<div class=\"pictures\">\n");
    for (size_t i = 0; i < MAREY__COUNT_OF(pictures); i++) {
        struct marey__buf svg = {0};
        const marey_status status = marey__scaling_picture_put(report, pictures[i], false, &svg);
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

static marey_status put_tables(struct marey__buf *html, const marey_report *report)
{
    for (size_t section = 0; section < MAREY__SCALING_SECTIONS; section++) {
        marey_table *table = NULL;
        MAREY_TRY(marey__scaling_drawn(report, section, 0, &table));
        if (table == NULL)
            continue;
        marey__buf_printf(html, "<h2>%s</h2>\n", marey__scaling_heading(section));
        marey__html_table(html, table, 0);
        marey_table_destroy(table);
    }
    return MAREY_OK;
}

static void put_notes(struct marey__buf *html, const marey_report *report)
{
    const marey_table *notes = marey_report_table(report, "notes");
    const size_t n = marey_table_n_rows(notes);
    marey__buf_puts(html, n != 0 ? "<h2>notes</h2>\n<ul>\n" : "");
    for (size_t row = 0; row < n; row++) {
        const struct marey_cell text = marey_table_cell(notes, row, 0);
        marey__buf_puts(html, "<li>");
        marey__xml_put(html, text.as.text, text.len);
        marey__buf_puts(html, "</li>\n");
    }
    marey__buf_puts(html, n != 0 ? "</ul>\n" : "");
}

static marey_status put_page(struct marey__buf *html, const marey_report *report)
{
    put_head(html);
    MAREY_TRY(put_sentences(html, report));
    MAREY_TRY(put_pictures(html, report));
    MAREY_TRY(put_tables(html, report));
    put_notes(html, report);
    marey__buf_puts(html, "</body></html>\n");
    return MAREY_OK;
}

marey_status marey__scaling_html(const marey_report *report,
                                 const struct marey_write_options *options, FILE *out)
{
    (void)options;
    struct marey__buf html = {0};
    marey_status status = put_page(&html, report);
    if (status == MAREY_OK)
        status = marey__buf_to_stream(&html, out);
    marey__buf_fini(&html);
    return status;
}
