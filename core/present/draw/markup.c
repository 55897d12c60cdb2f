/* Texts and tables in XML, HTML (for notebooks and for pages of builds without the viewer) and Markdown. */
#include "present/draw/internal.h"

/* ---- XML ---- */

/* The replacement for a byte of valid UTF-8; NULL: none. */
static const char *escape_of(unsigned char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    case '\t':
    case '\n':
        return NULL;
    default:
        return c < 0x20 ? "\xef\xbf\xbd" : NULL;
    }
}

/* U+FFFE and U+FFFF are valid in UTF-8, but not in XML. */
static bool is_refused(const char *text, size_t left)
{
    return left >= 3 && (unsigned char)text[0] == 0xef && (unsigned char)text[1] == 0xbf &&
           (unsigned char)text[2] >= 0xbe;
}

void marey__xml_put(struct marey__buf *buf, const char *text, size_t len)
{
    struct marey__buf valid = {0};
    marey__utf8_put(&valid, text, len);
    for (size_t i = 0; i < valid.len; i++) {
        const char *escape = escape_of((unsigned char)valid.data[i]);
        if (is_refused(valid.data + i, valid.len - i)) {
            marey__buf_puts(buf, "\xef\xbf\xbd");
            i += 2;
        } else if (escape != NULL) {
            marey__buf_puts(buf, escape);
        } else {
            marey__buf_put(buf, &valid.data[i], 1);
        }
    }
    marey__buf_end(&valid, buf);
}

/* ---- HTML ---- */

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

static void put_html_cell(struct marey__buf *html, const marey_table *table, size_t row, size_t c)
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
            put_html_cell(html, table, row, c);
        marey__buf_puts(html, "</tr>\n");
    }
    marey__buf_puts(html, "</tbody></table>\n");
    if (n_shown != n)
        marey__buf_printf(html, "<p>... and %zu more rows</p>\n", n - n_shown);
}

marey_status marey_present_html(const marey_table *table, size_t max_rows, FILE *out)
{
    struct marey__buf html MAREY__FINALLY(marey__buf_fini) = {0};
    marey__html_table(&html, table, max_rows);
    return marey__buf_to_stream(&html, out);
}

/* ---- Markdown ---- */

void marey__markdown_put(struct marey__buf *line, const char *text, size_t len)
{
    struct marey__buf clean = {0};
    marey__text_put(&clean, text, len, 0);
    for (size_t i = 0; i < clean.len; i++) {
        if (strchr("|\\`*_<>[]&", clean.data[i]) != NULL)
            marey__buf_puts(line, "\\");
        marey__buf_put(line, &clean.data[i], 1);
    }
    marey__buf_end(&clean, line);
}

static void put_markdown_row(struct marey__buf *lines, const marey_table *table, size_t row,
                             const char *unit)
{
    for (size_t c = 0; c < marey_table_n_columns(table); c++) {
        const struct marey_column *column = marey_table_column(table, c);
        const struct marey_cell cell = marey_table_cell(table, row, c);
        marey__buf_puts(lines, c == 0 ? "| " : " | ");
        if (cell.is_null)
            marey__buf_puts(lines, "-");
        else if (column->type == MAREY_TYPE_TEXT)
            marey__markdown_put(lines, cell.as.text, cell.len);
        else
            marey__text_number(lines, &cell, column, unit);
    }
    marey__buf_puts(lines, " |\n");
}

void marey__markdown_table(struct marey__buf *lines, const marey_table *table, size_t limit,
                           const char *unit)
{
    const size_t n_rows = marey_table_n_rows(table);
    const size_t n_shown = limit != 0 ? MAREY__MIN(limit, n_rows) : n_rows;
    for (size_t c = 0; c < marey_table_n_columns(table); c++)
        marey__buf_printf(lines, "%s%s", c == 0 ? "| " : " | ", marey_table_column(table, c)->title);
    marey__buf_puts(lines, " |\n");
    for (size_t c = 0; c < marey_table_n_columns(table); c++)
        marey__buf_puts(lines,
                        marey_table_column(table, c)->type == MAREY_TYPE_TEXT ? "|---" : "|---:");
    marey__buf_puts(lines, "|\n");
    for (size_t row = 0; row < n_shown; row++)
        put_markdown_row(lines, table, row, unit);
    if (n_shown < n_rows)
        marey__buf_printf(lines, "\n... and %zu more; --all shows them\n", n_rows - n_shown);
}
