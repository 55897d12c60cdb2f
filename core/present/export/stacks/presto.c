/*
 * A table between bars, as tabulate's format "presto" has it, which itwinai prints:
 *
 *    strategy   |   global_world_size | avg_epoch_time
 *   ------------+---------------------+------------------
 *    torch-ddp  |                   2 | 2.65 s
 *
 * Texts to the left, numbers to the right. A column is two wider than its name at least. Nothing is cut: who reads such a
 * table with a program finds each cell whole.
 */
#include <string.h>

#include "present/draw/present_internal.h"

enum { PADDING = 2 };

struct presto {
    const marey_table *table;
    size_t *widths;
    struct marey__buf cell, line;
};

/* The cell's text into p->cell; its width. */
static size_t format_cell(struct presto *p, size_t row, size_t column)
{
    const struct marey_cell cell = marey_table_cell(p->table, row, column);
    const struct marey_column *const info = marey_table_column(p->table, column);
    p->cell.len = 0;
    if (cell.is_null)
        return 0;
    if (info->type == MAREY_TYPE_TEXT)
        return marey__text_put(&p->cell, cell.as.text, cell.len, 0);
    marey__text_number(&p->cell, &cell, info, NULL);
    return p->cell.len;
}

static void put_filling(struct presto *p, char with, size_t n)
{
    for (size_t i = 0; i < n; i++)
        marey__buf_put(&p->line, &with, 1);
}

/* p->cell, `width` wide, between its blanks. */
static void put_cell(struct presto *p, size_t column, size_t width)
{
    const bool is_text = marey_table_column(p->table, column)->type == MAREY_TYPE_TEXT;
    const size_t fill = p->widths[column] - width;
    marey__buf_puts(&p->line, column == 0 ? " " : "| ");
    put_filling(p, ' ', is_text ? 0 : fill);
    marey__buf_put(&p->line, p->cell.data, p->cell.len);
    put_filling(p, ' ', (is_text ? fill : 0) + 1);
}

static marey_status end_line(struct presto *p, FILE *out)
{
    while (p->line.len > 0 && p->line.data[p->line.len - 1] == ' ')
        p->line.len--;
    marey__buf_puts(&p->line, "\n");
    p->line.failed |= p->cell.failed;
    return marey__buf_to_stream(&p->line, out);
}

static marey_status draw_head(struct presto *p, FILE *out)
{
    const size_t n = marey_table_n_columns(p->table);
    for (size_t i = 0; i < n; i++) {
        p->cell.len = 0;
        marey__buf_puts(&p->cell, marey_table_column(p->table, i)->title);
        put_cell(p, i, p->cell.len);
    }
    MAREY_TRY(end_line(p, out));
    for (size_t i = 0; i < n; i++) {
        marey__buf_puts(&p->line, i == 0 ? "" : "+");
        put_filling(p, '-', p->widths[i] + 2);
    }
    return end_line(p, out);
}

static marey_status draw(struct presto *p, FILE *out)
{
    const size_t n = marey_table_n_columns(p->table), n_rows = marey_table_n_rows(p->table);
    for (size_t i = 0; i < n; i++) {
        p->widths[i] = strlen(marey_table_column(p->table, i)->title) + PADDING;
        for (size_t row = 0; row < n_rows; row++) {
            const size_t width = format_cell(p, row, i);
            p->widths[i] = MAREY__MAX(p->widths[i], width);
        }
    }
    MAREY_TRY(draw_head(p, out));
    for (size_t row = 0; row < n_rows; row++) {
        for (size_t i = 0; i < n; i++) {
            const size_t width = format_cell(p, row, i);
            put_cell(p, i, width);
        }
        MAREY_TRY(end_line(p, out));
    }
    return MAREY_OK;
}

marey_status marey_present_presto(const marey_table *table, FILE *out)
{
    struct presto p = {.table = table};
    p.widths = marey__calloc(marey_table_n_columns(table) + 1, sizeof *p.widths);
    const marey_status status = p.widths != NULL ? draw(&p, out) : marey__no_memory();
    marey__buf_fini(&p.cell);
    marey__buf_fini(&p.line);
    marey__free(p.widths);
    return status;
}
