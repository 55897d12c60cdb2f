/* Tables and texts in Markdown. */
#include <string.h>

#include "present/present_internal.h"

void kymo__markdown_put(struct kymo__buf *line, const char *text, size_t len)
{
    struct kymo__buf clean = {0};
    kymo__text_put(&clean, text, len, 0);
    for (size_t i = 0; i < clean.len; i++) {
        if (strchr("|\\`*_<>[]&", clean.data[i]) != NULL)
            kymo__buf_puts(line, "\\");
        kymo__buf_put(line, &clean.data[i], 1);
    }
    line->failed |= clean.failed;
    kymo__buf_fini(&clean);
}

static void put_row(struct kymo__buf *lines, const kymo_table *table, size_t row)
{
    for (size_t c = 0; c < kymo_table_n_columns(table); c++) {
        const struct kymo_column *column = kymo_table_column(table, c);
        const struct kymo_cell cell = kymo_table_cell(table, row, c);
        kymo__buf_puts(lines, c == 0 ? "| " : " | ");
        if (cell.is_null)
            kymo__buf_puts(lines, "-");
        else if (column->type == KYMO_TYPE_TEXT)
            kymo__markdown_put(lines, cell.as.text, cell.len);
        else
            kymo__text_number(lines, &cell, column, NULL);
    }
    kymo__buf_puts(lines, " |\n");
}

void kymo__markdown_table(struct kymo__buf *lines, const kymo_table *table)
{
    for (size_t c = 0; c < kymo_table_n_columns(table); c++)
        kymo__buf_printf(lines, "%s%s", c == 0 ? "| " : " | ", kymo_table_column(table, c)->title);
    kymo__buf_puts(lines, " |\n");
    for (size_t c = 0; c < kymo_table_n_columns(table); c++)
        kymo__buf_puts(lines, kymo_table_column(table, c)->type == KYMO_TYPE_TEXT ? "|---" : "|---:");
    kymo__buf_puts(lines, "|\n");
    for (size_t row = 0; row < kymo_table_n_rows(table); row++)
        put_row(lines, table, row);
}
