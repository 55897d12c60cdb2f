/*
 * A table as RFC 4180 wants it: a line of names, then a line for each row; a null is an empty
 * field.
 */
#include <stdlib.h>
#include <string.h>

#include "present/draw/internal.h"

/* A spreadsheet runs a cell that begins so as a formula; a number is none. */
static bool is_formula(const char *text, size_t len)
{
    char number[64], *end;
    if (len == 0 || strchr("=+-@\t\r", text[0]) == NULL || text[0] == '\0')
        return false;
    if (len >= sizeof number)
        return true;
    memcpy(mempcpy(number, text, len), "", 1);
    (void)strtod(number, &end);
    return end == number || *end != '\0';
}

/*
 * Texts are valid UTF-8 and quoted where they must be. A NUL, which no reader of CSV takes, counts
 * as invalid. In front of what a spreadsheet would run stands an apostrophe, which it does not show.
 */
void marey__csv_put(struct marey__buf *line, const char *text, size_t len)
{
    struct marey__buf valid = {0};
    if (is_formula(text, len))
        marey__buf_puts(&valid, "'");
    marey__utf8_put(&valid, text, len);
    bool is_plain = valid.len == 0 || (valid.data[0] != ' ' && valid.data[valid.len - 1] != ' ');
    for (size_t i = 0; i < valid.len; i++)
        is_plain &= valid.data[i] != '\0' && strchr(",\"\r\n", valid.data[i]) == NULL;
    if (is_plain && !valid.failed) {
        marey__buf_put(line, valid.data, valid.len);
    } else {
        marey__buf_puts(line, "\"");
        for (size_t i = 0; i < valid.len; i++) {
            if (valid.data[i] == '\0')
                marey__buf_puts(line, "\xef\xbf\xbd");
            else
                marey__buf_put(line, valid.data[i] == '"' ? "\"\"" : &valid.data[i],
                               valid.data[i] == '"' ? 2 : 1);
        }
        marey__buf_puts(line, "\"");
    }
    line->failed |= valid.failed;
    marey__buf_fini(&valid);
}

static char *put_number(char *p, const struct marey_cell *cell, enum marey_type type)
{
    switch (type) {
    case MAREY_TYPE_I64:
        return marey__put_i64(p, cell->as.i64);
    case MAREY_TYPE_F64:
        return marey__put_f64_csv(p, cell->as.f64);
    case MAREY_TYPE_U64:
    case MAREY_TYPE_BOOL:
        return marey__put_u64(p, cell->as.u64);
    case MAREY_TYPE_TEXT:
        break;
    }
    return p;
}

static void put_cell(struct marey__buf *line, const struct marey_cell *cell, enum marey_type type)
{
    char number[40];
    if (cell->is_null)
        return;
    if (type == MAREY_TYPE_TEXT)
        marey__csv_put(line, cell->as.text, cell->len);
    else
        marey__buf_put(line, number, (size_t)(put_number(number, cell, type) - number));
}

void marey__csv_header(const marey_table *table, struct marey__buf *line)
{
    const size_t n_columns = marey_table_n_columns(table);
    for (size_t c = 0; c < n_columns; c++) {
        const char *name = marey_table_column(table, c)->name;
        marey__csv_put(line, name, strlen(name));
        marey__buf_puts(line, c + 1 < n_columns ? "," : "\r\n");
    }
}

void marey__csv_row(const marey_table *table, size_t row, struct marey__buf *line)
{
    const size_t n_columns = marey_table_n_columns(table);
    for (size_t c = 0; c < n_columns; c++) {
        const struct marey_cell cell = marey_table_cell(table, row, c);
        put_cell(line, &cell, marey_table_column(table, c)->type);
        marey__buf_puts(line, c + 1 < n_columns ? "," : "\r\n");
    }
}

marey_status marey__csv_rows(const marey_table *table, size_t max_rows, FILE *out)
{
    struct marey__buf line = {0};
    const size_t n_rows = MAREY__MIN(marey_table_n_rows(table), max_rows);
    marey__csv_header(table, &line);
    marey_status status = marey__buf_to_stream(&line, out);
    for (size_t row = 0; status == MAREY_OK && row < n_rows; row++) {
        marey__csv_row(table, row, &line);
        status = marey__buf_to_stream(&line, out);
    }
    marey__buf_fini(&line);
    return status;
}

marey_status marey_present_csv(const marey_table *table, FILE *out)
{
    return marey__csv_rows(table, SIZE_MAX, out);
}
