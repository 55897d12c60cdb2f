/* Rules, names and times of the report. */
#include <string.h>

#include "instrument/stopwatch/internal.h"

enum { NAME_WIDTH = 60 };

void marey__line_repeat(struct marey__buf *out, const char *text, int n)
{
    while (n-- > 0)
        marey__buf_puts(out, text);
}

void marey__line_rule(struct marey__buf *out, const char *text, int n)
{
    marey__line_repeat(out, text, n);
    marey__buf_puts(out, "\n");
}

void marey__line_separator(struct marey__buf *out)
{
    marey__line_rule(out, ". ", 25);
}

void marey__line_divider(struct marey__buf *out)
{
    marey__line_rule(out, "~", 50);
}

struct marey_cell marey__line_cell(const struct marey__stopwatch_lines *lines, size_t row,
                                   const char *column)
{
    return marey_table_cell(lines->table, row, (size_t)marey_table_find(lines->table, column));
}

static void put_padded(struct marey__buf *out, const struct marey__buf *text, size_t width)
{
    const size_t len = text->len;
    for (size_t i = len; i < width; i++)
        marey__buf_puts(out, " ");
    marey__buf_put(out, text->data, len);
    out->failed |= text->failed;
}

static size_t put_quoted(struct marey__buf *out, const struct marey_cell *name)
{
    marey__buf_puts(out, "`");
    const size_t width = marey__text_put(out, name->as.text, name->len, NAME_WIDTH);
    marey__buf_puts(out, "`:");
    return width + 3;
}

marey_status marey__lines_open(struct marey__stopwatch_lines *lines, const char *name)
{
    *lines = (struct marey__stopwatch_lines){0};
    MAREY_TRY(marey_stopwatch_table(name, &lines->table));
    struct marey__buf scratch = {0};
    for (size_t row = 0;
         marey_table_find(lines->table, "name") >= 0 && row < marey_table_n_rows(lines->table);
         row++) {
        const struct marey_cell cell = marey__line_cell(lines, row, "name");
        scratch.len = 0;
        lines->width = MAREY__MAX(lines->width, put_quoted(&scratch, &cell));
    }
    marey__buf_fini(&scratch);
    return MAREY_OK;
}

void marey__line_name(struct marey__buf *out, const struct marey__stopwatch_lines *lines, size_t row)
{
    const struct marey_cell cell = marey__line_cell(lines, row, "name");
    marey__buf_puts(out, "  ");
    const size_t width = put_quoted(out, &cell);
    marey__line_repeat(out, " ", (int)(lines->width - width));
}

/* A cell of nanoseconds, ten columns wide; 0 where there is nothing. */
void marey__line_time(struct marey__buf *out, const struct marey__stopwatch_lines *lines,
                      size_t row, const char *column)
{
    const int number = marey_table_find(lines->table, column);
    const struct marey_cell cell = marey_table_cell(lines->table, row, (size_t)number);
    const bool is_f64 = marey_table_column(lines->table, (size_t)number)->type == MAREY_TYPE_F64;
    struct marey__buf text = {0};
    marey__text_duration(&text, is_f64 ? cell.as.f64 : (double)cell.as.u64, NULL);
    put_padded(out, &text, 10);
    marey__buf_fini(&text);
}

bool marey__line_runs(const struct marey__stopwatch_lines *lines, size_t row)
{
    return marey_table_find(lines->table, "running") >= 0 &&
           marey__line_cell(lines, row, "running").as.u64 != 0;
}
