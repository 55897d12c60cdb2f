/* Rules, names and times of the report. */
#include <string.h>

#include "stopwatch/stopwatch_lines.h"

enum { NAME_WIDTH = 60 };

void kymo__line_repeat(struct kymo__buf *out, const char *text, int n)
{
    while (n-- > 0)
        kymo__buf_puts(out, text);
}

void kymo__line_rule(struct kymo__buf *out, const char *text, int n)
{
    kymo__line_repeat(out, text, n);
    kymo__buf_puts(out, "\n");
}

void kymo__line_separator(struct kymo__buf *out)
{
    kymo__line_rule(out, ". ", 25);
}

void kymo__line_divider(struct kymo__buf *out)
{
    kymo__line_rule(out, "~", 50);
}

struct kymo_cell kymo__line_cell(const struct kymo__lines *lines, size_t row, const char *column)
{
    return kymo_table_cell(lines->table, row, (size_t)kymo_table_find(lines->table, column));
}

static void put_padded(struct kymo__buf *out, const struct kymo__buf *text, size_t width)
{
    const size_t len = text->len;
    for (size_t i = len; i < width; i++)
        kymo__buf_puts(out, " ");
    kymo__buf_put(out, text->data, len);
    out->failed |= text->failed;
}

static size_t put_quoted(struct kymo__buf *out, const struct kymo_cell *name)
{
    kymo__buf_puts(out, "`");
    const size_t width = kymo__text_put(out, name->as.text, name->len, NAME_WIDTH);
    kymo__buf_puts(out, "`:");
    return width + 3;
}

kymo_status kymo__lines_open(struct kymo__lines *lines, const char *name)
{
    *lines = (struct kymo__lines){0};
    KYMO_TRY(kymo_stopwatch_table(name, &lines->table));
    struct kymo__buf scratch = {0};
    for (size_t row = 0;
         kymo_table_find(lines->table, "name") >= 0 && row < kymo_table_n_rows(lines->table); row++) {
        const struct kymo_cell cell = kymo__line_cell(lines, row, "name");
        scratch.len = 0;
        lines->width = KYMO__MAX(lines->width, put_quoted(&scratch, &cell));
    }
    kymo__buf_fini(&scratch);
    return KYMO_OK;
}

void kymo__line_name(struct kymo__buf *out, const struct kymo__lines *lines, size_t row)
{
    const struct kymo_cell cell = kymo__line_cell(lines, row, "name");
    kymo__buf_puts(out, "  ");
    const size_t width = put_quoted(out, &cell);
    kymo__line_repeat(out, " ", (int)(lines->width - width));
}

/* A cell of nanoseconds, ten columns wide; 0 where there is nothing. */
void kymo__line_time(struct kymo__buf *out, const struct kymo__lines *lines, size_t row,
                     const char *column)
{
    const int number = kymo_table_find(lines->table, column);
    const struct kymo_cell cell = kymo_table_cell(lines->table, row, (size_t)number);
    const bool is_f64 = kymo_table_column(lines->table, (size_t)number)->type == KYMO_TYPE_F64;
    struct kymo__buf text = {0};
    kymo__text_duration(&text, is_f64 ? cell.as.f64 : (double)cell.as.u64, NULL);
    put_padded(out, &text, 10);
    kymo__buf_fini(&text);
}

bool kymo__line_runs(const struct kymo__lines *lines, size_t row)
{
    return kymo_table_find(lines->table, "running") >= 0 &&
           kymo__line_cell(lines, row, "running").as.u64 != 0;
}
