/* A table as HTML, for notebooks and for pages of builds without the viewer. */
#include <string.h>

#include "present/present_internal.h"

static void put_head(struct kymo__buf *html, const kymo_table *table)
{
    kymo__buf_puts(html, "<thead><tr>");
    for (size_t c = 0; c < kymo_table_n_columns(table); c++) {
        const struct kymo_column *column = kymo_table_column(table, c);
        const char *title = column->title != NULL ? column->title : column->name;
        kymo__buf_puts(html, "<th scope=\"col\">");
        kymo__xml_put(html, title, strlen(title));
        kymo__buf_puts(html, "</th>");
    }
    kymo__buf_puts(html, "</tr></thead>\n");
}

static void put_cell(struct kymo__buf *html, const kymo_table *table, size_t row, size_t c)
{
    const struct kymo_column *column = kymo_table_column(table, c);
    const struct kymo_cell cell = kymo_table_cell(table, row, c);
    if (cell.is_null) {
        kymo__buf_puts(html, "<td></td>");
    } else if (column->type == KYMO_TYPE_TEXT) {
        kymo__buf_puts(html, "<td>");
        kymo__xml_put(html, cell.as.text, cell.len);
        kymo__buf_puts(html, "</td>");
    } else {
        kymo__buf_puts(html, "<td class=\"n\" align=\"right\">");
        kymo__text_number(html, &cell, column, NULL);
        kymo__buf_puts(html, "</td>");
    }
}

void kymo__html_table(struct kymo__buf *html, const kymo_table *table, size_t max_rows)
{
    const size_t n = kymo_table_n_rows(table);
    const size_t n_shown = max_rows != 0 && n > max_rows ? max_rows : n;
    kymo__buf_puts(html, "<table>\n");
    put_head(html, table);
    kymo__buf_puts(html, "<tbody>\n");
    for (size_t row = 0; row < n_shown; row++) {
        kymo__buf_puts(html, "<tr>");
        for (size_t c = 0; c < kymo_table_n_columns(table); c++)
            put_cell(html, table, row, c);
        kymo__buf_puts(html, "</tr>\n");
    }
    kymo__buf_puts(html, "</tbody></table>\n");
    if (n_shown != n)
        kymo__buf_printf(html, "<p>... and %zu more rows</p>\n", n - n_shown);
}

kymo_status kymo_present_html(const kymo_table *table, size_t max_rows, FILE *out)
{
    struct kymo__buf html = {0};
    kymo__html_table(&html, table, max_rows);
    const kymo_status status = kymo__buf_to_stream(&html, out);
    kymo__buf_fini(&html);
    return status;
}
