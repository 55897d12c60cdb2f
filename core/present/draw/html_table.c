/* A table as HTML, for notebooks and for pages of builds without the viewer. */
#include <string.h>

#include "present/draw/internal.h"

static void put_head(struct marey__buf *html, const marey_table *table)
{
    marey__buf_puts(html, "<thead><tr>");
    for (size_t c = 0; c < marey_table_n_columns(table); c++) {
        const struct marey_column *column = marey_table_column(table, c);
        const char *title = column->title != NULL ? column->title : column->name;
        marey__buf_puts(html, "<th scope=\"col\">");
        marey__xml_put(html, title, strlen(title));
        marey__buf_puts(html, "</th>");
    }
    marey__buf_puts(html, "</tr></thead>\n");
}

static void put_cell(struct marey__buf *html, const marey_table *table, size_t row, size_t c)
{
    const struct marey_column *column = marey_table_column(table, c);
    const struct marey_cell cell = marey_table_cell(table, row, c);
    if (cell.is_null) {
        marey__buf_puts(html, "<td></td>");
    } else if (column->type == MAREY_TYPE_TEXT) {
        marey__buf_puts(html, "<td>");
        marey__xml_put(html, cell.as.text, cell.len);
        marey__buf_puts(html, "</td>");
    } else {
        marey__buf_puts(html, "<td class=\"n\" align=\"right\">");
        marey__text_number(html, &cell, column, NULL);
        marey__buf_puts(html, "</td>");
    }
}

void marey__html_table(struct marey__buf *html, const marey_table *table, size_t max_rows)
{
    const size_t n = marey_table_n_rows(table);
    const size_t n_shown = max_rows != 0 && n > max_rows ? max_rows : n;
    marey__buf_puts(html, "<table>\n");
    put_head(html, table);
    marey__buf_puts(html, "<tbody>\n");
    for (size_t row = 0; row < n_shown; row++) {
        marey__buf_puts(html, "<tr>");
        for (size_t c = 0; c < marey_table_n_columns(table); c++)
            put_cell(html, table, row, c);
        marey__buf_puts(html, "</tr>\n");
    }
    marey__buf_puts(html, "</tbody></table>\n");
    if (n_shown != n)
        marey__buf_printf(html, "<p>... and %zu more rows</p>\n", n - n_shown);
}

marey_status marey_present_html(const marey_table *table, size_t max_rows, FILE *out)
{
    struct marey__buf html = {0};
    marey__html_table(&html, table, max_rows);
    const marey_status status = marey__buf_to_stream(&html, out);
    marey__buf_fini(&html);
    return status;
}
