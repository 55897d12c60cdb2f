/* Tables and texts in Markdown. */
#include <string.h>

#include "present/draw/internal.h"

void marey__markdown_put(struct marey__buf *line, const char *text, size_t len)
{
    struct marey__buf clean = {0};
    marey__text_put(&clean, text, len, 0);
    for (size_t i = 0; i < clean.len; i++) {
        if (strchr("|\\`*_<>[]&", clean.data[i]) != NULL)
            marey__buf_puts(line, "\\");
        marey__buf_put(line, &clean.data[i], 1);
    }
    line->failed |= clean.failed;
    marey__buf_fini(&clean);
}

static void put_row(struct marey__buf *lines, const marey_table *table, size_t row)
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
            marey__text_number(lines, &cell, column, NULL);
    }
    marey__buf_puts(lines, " |\n");
}

void marey__markdown_table(struct marey__buf *lines, const marey_table *table)
{
    for (size_t c = 0; c < marey_table_n_columns(table); c++)
        marey__buf_printf(lines, "%s%s", c == 0 ? "| " : " | ", marey_table_column(table, c)->title);
    marey__buf_puts(lines, " |\n");
    for (size_t c = 0; c < marey_table_n_columns(table); c++)
        marey__buf_puts(lines,
                        marey_table_column(table, c)->type == MAREY_TYPE_TEXT ? "|---" : "|---:");
    marey__buf_puts(lines, "|\n");
    for (size_t row = 0; row < marey_table_n_rows(table); row++)
        put_row(lines, table, row);
}
