/* Scaling as a page that stands alone: sentences, pictures, tables. Nothing in it runs, and nothing is fetched. */
#include <stdio.h>
#include <string.h>

#include "codec/deflate.h"
#include "present/scaling_out.h"

/* page_plain.css and chart.css with their sums, which the build turns into C. */
extern const char kymo__page_plain_css[], kymo__chart_css[];
extern const unsigned char kymo__page_plain_css_sha256[32], kymo__chart_css_sha256[32];

static const char *const pictures[] = {"speedup",    "efficiency", "epoch-time", "step-breakdown",
                                       "throughput", "energy",     "utilization"};

/* The policy knows both styles by their sums: no other one is taken. */
static void put_head(struct kymo__buf *html)
{
    kymo__buf_puts(html,
                   "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width\">\n"
                   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                   "style-src 'sha256-");
    kymo__base64_put(html, kymo__page_plain_css_sha256, sizeof kymo__page_plain_css_sha256);
    kymo__buf_puts(html, "' 'sha256-");
    kymo__base64_put(html, kymo__chart_css_sha256, sizeof kymo__chart_css_sha256);
    kymo__buf_printf(html,
                     "'; base-uri 'none'; form-action 'none'\">\n<title>Scaling</title>"
                     "<style>%s</style><style>%s</style></head><body>\n<h1>Scaling</h1>\n",
                     kymo__page_plain_css, kymo__chart_css);
}

static kymo_status put_sentences(struct kymo__buf *html, kymo_scaling *scaling)
{
    struct kymo__scaling_list list;
    const kymo_status status = kymo__scaling_list_init(&list, scaling);
    for (size_t s = 0; status == KYMO_OK && s < list.n; s++) {
        struct kymo__buf sentence = {0};
        kymo__scaling_sentence(&sentence, scaling, &list, s);
        kymo__buf_puts(html, "<p>");
        kymo__xml_put(html, sentence.data, sentence.len);
        kymo__buf_puts(html, "</p>\n");
        html->failed |= sentence.failed;
        kymo__buf_fini(&sentence);
    }
    kymo__scaling_list_fini(&list);
    return status;
}

/* What these runs do not have is left out. */
static kymo_status put_pictures(struct kymo__buf *html, kymo_scaling *scaling)
{
    kymo__buf_puts(html, "<div class=\"pictures\">\n");
    for (size_t i = 0; i < KYMO__COUNT_OF(pictures); i++) {
        struct kymo__buf svg = {0};
        const kymo_status status = kymo__scaling_picture_put(scaling, pictures[i], false, &svg);
        if (status == KYMO_OK) {
            kymo__buf_puts(html, "<figure>");
            kymo__buf_put(html, svg.data, svg.len);
            kymo__buf_puts(html, "</figure>\n");
        }
        html->failed |= svg.failed;
        kymo__buf_fini(&svg);
        if (status != KYMO_OK && status != KYMO_EFORMAT)
            return status;
    }
    kymo__buf_puts(html, "</div>\n");
    return KYMO_OK;
}

static kymo_status put_tables(struct kymo__buf *html, kymo_scaling *scaling)
{
    for (size_t section = 0; section < KYMO__SCALING_SECTIONS; section++) {
        kymo_table *table = NULL;
        KYMO_TRY(kymo__scaling_drawn(scaling, section, 0, &table));
        if (table == NULL)
            continue;
        kymo__buf_printf(html, "<h2>%s</h2>\n", kymo__scaling_heading(section));
        kymo__html_table(html, table, 0);
        kymo_table_destroy(table);
    }
    return KYMO_OK;
}

static void put_notes(struct kymo__buf *html, kymo_scaling *scaling)
{
    const kymo_table *notes = kymo_scaling_table(scaling, "notes");
    const size_t n = kymo_table_n_rows(notes);
    kymo__buf_puts(html, n != 0 ? "<h2>notes</h2>\n<ul>\n" : "");
    for (size_t row = 0; row < n; row++) {
        const struct kymo_cell text = kymo_table_cell(notes, row, 0);
        kymo__buf_puts(html, "<li>");
        kymo__xml_put(html, text.as.text, text.len);
        kymo__buf_puts(html, "</li>\n");
    }
    kymo__buf_puts(html, n != 0 ? "</ul>\n" : "");
}

static kymo_status put_page(struct kymo__buf *html, kymo_scaling *scaling)
{
    put_head(html);
    KYMO_TRY(put_sentences(html, scaling));
    KYMO_TRY(put_pictures(html, scaling));
    KYMO_TRY(put_tables(html, scaling));
    put_notes(html, scaling);
    kymo__buf_puts(html, "</body></html>\n");
    return KYMO_OK;
}

kymo_status kymo_scaling_html(kymo_scaling *scaling, FILE *out)
{
    struct kymo__buf html = {0};
    kymo_status status = put_page(&html, scaling);
    if (status == KYMO_OK)
        status = kymo__buf_to_stream(&html, out);
    kymo__buf_fini(&html);
    return status;
}
