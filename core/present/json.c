/* A table as a JSON list of objects, one in a line. */
#include <string.h>

#include "present/export_internal.h"
#include "present/present_internal.h"

static char *put_number(char *p, const struct kymo_cell *cell, enum kymo_type type)
{
    if (type == KYMO_TYPE_I64)
        return kymo__put_i64(p, cell->as.i64);
    if (type == KYMO_TYPE_F64)
        return kymo__put_f64(p, cell->as.f64); /* null when it is not finite */
    return kymo__put_u64(p, cell->as.u64);
}

static void put_value(struct kymo__buf *line, const struct kymo_cell *cell, enum kymo_type type)
{
    char number[40];
    if (cell->is_null)
        kymo__buf_puts(line, "null");
    else if (type == KYMO_TYPE_TEXT)
        kymo__json_put(line, cell->as.text, cell->len);
    else if (type == KYMO_TYPE_BOOL)
        kymo__buf_puts(line, cell->as.u64 != 0 ? "true" : "false");
    else
        kymo__buf_put(line, number, (size_t)(put_number(number, cell, type) - number));
}

void kymo__json_cell(struct kymo__buf *line, const kymo_table *table, size_t row, size_t column)
{
    const struct kymo_cell cell = kymo_table_cell(table, row, column);
    put_value(line, &cell, kymo_table_column(table, column)->type);
}

void kymo__json_row(struct kymo__buf *line, const kymo_table *table, size_t row)
{
    for (size_t c = 0; c < kymo_table_n_columns(table); c++) {
        const char *name = kymo_table_column(table, c)->name;
        kymo__buf_puts(line, c == 0 ? "{" : ", ");
        kymo__json_put(line, name, strlen(name));
        kymo__buf_puts(line, ": ");
        kymo__json_cell(line, table, row, c);
    }
    kymo__buf_puts(line, "}");
}

static kymo_status put_rows(struct kymo__buf *line, const kymo_table *table, size_t n_rows,
                            const char *indent, FILE *out)
{
    kymo__buf_puts(line, "[");
    for (size_t row = 0; row < n_rows; row++) {
        kymo__buf_printf(line, "%s\n%s  ", row == 0 ? "" : ",", indent);
        kymo__json_row(line, table, row);
        KYMO_TRY(kymo__buf_to_stream(line, out));
    }
    if (n_rows != 0)
        kymo__buf_printf(line, "\n%s", indent);
    kymo__buf_puts(line, "]");
    return kymo__buf_to_stream(line, out);
}

kymo_status kymo__json_rows(const kymo_table *table, size_t n_rows, const char *indent, FILE *out)
{
    struct kymo__buf line = {0};
    const kymo_status status = put_rows(&line, table, n_rows, indent, out);
    kymo__buf_fini(&line);
    return status;
}

kymo_status kymo__json_named_rows(struct kymo__buf *line, const kymo_table *table, FILE *out)
{
    kymo__buf_printf(line, "  \"%s\": ", kymo_table_name(table));
    KYMO_TRY(kymo__buf_to_stream(line, out));
    KYMO_TRY(kymo__json_rows(table, kymo_table_n_rows(table), "  ", out));
    kymo__buf_puts(line, ",\n");
    return kymo__buf_to_stream(line, out);
}

void kymo__json_last_texts(struct kymo__buf *line, const kymo_table *table)
{
    const size_t n_rows = kymo_table_n_rows(table);
    kymo__buf_printf(line, "  \"%s\": [", kymo_table_name(table));
    for (size_t row = 0; row < n_rows; row++) {
        const struct kymo_cell text = kymo_table_cell(table, row, 0);
        kymo__buf_puts(line, row == 0 ? "\n    " : ",\n    ");
        kymo__json_put(line, text.as.text, text.len);
    }
    kymo__buf_puts(line, n_rows == 0 ? "]\n}\n" : "\n  ]\n}\n");
}

kymo_status kymo__json_report(kymo_table *const *tables, size_t n, const kymo_table *notes, FILE *out)
{
    struct kymo__buf line = {0};
    kymo_status status = KYMO_OK;
    kymo__buf_puts(&line, "{\n");
    for (size_t i = 0; status == KYMO_OK && i < n; i++)
        status = kymo__json_named_rows(&line, tables[i], out);
    if (status == KYMO_OK) {
        kymo__json_last_texts(&line, notes);
        status = kymo__buf_to_stream(&line, out);
    }
    kymo__buf_fini(&line);
    if (status == KYMO_OK && fflush(out) != 0)
        status = kymo__fail_errno("write the report");
    return status;
}

kymo_status kymo_present_json(const kymo_table *table, FILE *out)
{
    struct kymo__buf end = {0};
    KYMO_TRY(kymo__json_rows(table, kymo_table_n_rows(table), "", out));
    kymo__buf_puts(&end, "\n");
    const kymo_status status = kymo__buf_to_stream(&end, out);
    kymo__buf_fini(&end);
    return status;
}

static kymo_status put_tables(struct kymo__buf *buf, const kymo_table *const *tables, size_t n,
                              FILE *out)
{
    kymo__buf_puts(buf, "{");
    for (size_t i = 0; i < n; i++) {
        const char *name = kymo_table_name(tables[i]);
        kymo__buf_puts(buf, i == 0 ? "\n  " : ",\n  ");
        kymo__json_put(buf, name, strlen(name));
        kymo__buf_puts(buf, ": ");
        KYMO_TRY(kymo__buf_to_stream(buf, out));
        KYMO_TRY(kymo__json_rows(tables[i], kymo_table_n_rows(tables[i]), "  ", out));
    }
    kymo__buf_puts(buf, n == 0 ? "}\n" : "\n}\n");
    return kymo__buf_to_stream(buf, out);
}

kymo_status kymo_present_json_tables(const kymo_table *const *tables, size_t n, FILE *out)
{
    struct kymo__buf buf = {0};
    const kymo_status status = put_tables(&buf, tables, n, out);
    kymo__buf_fini(&buf);
    return status;
}
