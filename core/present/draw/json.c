/* JSON by patterns, and a table as a list of objects, one per line. */
#include "present/draw/internal.h"

/* ---- patterns ---- */

/* The limit of exact integers in JavaScript. */
#define MOST_OF_SCRIPT (UINT64_C(1) << 53)

/* The text of a number, as a string if it exceeds `most`. */
static void put_whole(struct marey__buf *json, bool is_negative, uint64_t size, uint64_t most)
{
    const char *const quote = size > most ? "\"" : "";
    marey__buf_puts(json, quote);
    marey__buf_puts(json, is_negative ? "-" : "");
    marey__buf_put_u64(json, size);
    marey__buf_puts(json, quote);
}

/* The argument of a conversion that ends with `kind`, preceded by `n_l` l's. */
static void put_argument(struct marey__buf *json, char kind, size_t n_l, int len, uint64_t most,
                         va_list *args)
{
    if (kind == 's') {
        const char *const text = va_arg(*args, const char *);
        if (text != NULL)
            marey__json_put(json, text, len >= 0 ? (size_t)len : strlen(text));
        else
            marey__buf_puts(json, len == 0 ? "\"\"" : "null");
    } else if (kind == 'f') {
        marey__json_put_f64(json, va_arg(*args, double));
    } else if (kind == 'u') {
        put_whole(json, false, n_l != 0 ? va_arg(*args, uint64_t) : va_arg(*args, unsigned), most);
    } else if (kind == 'x') {
        marey__buf_puts(json, va_arg(*args, int) != 0 ? "true" : "false");
    } else {
        const int64_t value = n_l != 0 ? va_arg(*args, int64_t) : va_arg(*args, int);
        MAREY_ASSERT(kind == 'd' || kind == 'i');
        if (kind == 'i' && value < 0)
            marey__buf_puts(json, "null");
        else
            put_whole(json, value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, most);
    }
}

static void put_pattern(struct marey__buf *json, const char *at, uint64_t most, va_list *args)
{
    for (; *at != '\0'; at++) {
        const size_t n = strcspn(at, "%'");
        marey__buf_put(json, at, n);
        at += n;
        if (*at == '\0')
            return;
        if (*at == '\'') {
            marey__buf_puts(json, "\"");
            continue;
        }
        const bool has_len = at[1] == '.';
        const int len = has_len ? va_arg(*args, int) : -1;
        at += has_len ? 3 : 1;
        const size_t n_l = strspn(at, "lz");
        at += n_l;
        put_argument(json, *at, n_l, len, most, args);
    }
}

void marey__json_printf(struct marey__buf *json, const char *pattern, ...)
{
    va_list args;
    va_start(args, pattern);
    put_pattern(json, pattern, UINT64_MAX >> 1, &args);
    va_end(args);
}

void marey__script_printf(struct marey__buf *json, const char *pattern, ...)
{
    va_list args;
    va_start(args, pattern);
    put_pattern(json, pattern, MOST_OF_SCRIPT, &args);
    va_end(args);
}

/* ---- tables ---- */

void marey__json_value(struct marey__buf *json, const struct marey_cell *cell, enum marey_type type,
                       bool for_script)
{
    const uint64_t most = for_script ? MOST_OF_SCRIPT : UINT64_MAX;
    const int64_t whole = cell->as.i64;
    if (cell->is_null)
        marey__buf_puts(json, "null");
    else if (type == MAREY_TYPE_TEXT)
        marey__json_put(json, cell->as.text, cell->len);
    else if (type == MAREY_TYPE_BOOL)
        marey__buf_puts(json, cell->as.u64 != 0 ? "true" : "false");
    else if (type == MAREY_TYPE_F64)
        marey__json_put_f64(json, cell->as.f64);
    else if (type == MAREY_TYPE_I64)
        put_whole(json, whole < 0, whole < 0 ? 0 - (uint64_t)whole : (uint64_t)whole, most);
    else
        put_whole(json, false, cell->as.u64, most);
}

void marey__json_cell(struct marey__buf *line, const marey_table *table, size_t row, size_t column)
{
    const struct marey_cell cell = marey_table_cell(table, row, column);
    marey__json_value(line, &cell, marey_table_column(table, column)->type, false);
}

void marey__json_row(struct marey__buf *line, const marey_table *table, size_t row)
{
    for (size_t c = 0; c < marey_table_n_columns(table); c++) {
        const char *name = marey_table_column(table, c)->name;
        marey__buf_puts(line, c == 0 ? "{" : ", ");
        marey__json_put(line, name, strlen(name));
        marey__buf_puts(line, ": ");
        marey__json_cell(line, table, row, c);
    }
    marey__buf_puts(line, "}");
}

static marey_status put_rows(struct marey__buf *line, const marey_table *table, size_t n_rows,
                             const char *indent, FILE *out)
{
    marey__buf_puts(line, "[");
    for (size_t row = 0; row < n_rows; row++) {
        marey__buf_printf(line, "%s\n%s  ", row == 0 ? "" : ",", indent);
        marey__json_row(line, table, row);
        MAREY_TRY(marey__buf_to_stream(line, out));
    }
    if (n_rows != 0)
        marey__buf_printf(line, "\n%s", indent);
    marey__buf_puts(line, "]");
    return marey__buf_to_stream(line, out);
}

marey_status marey__json_rows(const marey_table *table, size_t n_rows, const char *indent, FILE *out)
{
    struct marey__buf line MAREY__FINALLY(marey__buf_fini) = {0};
    return put_rows(&line, table, n_rows, indent, out);
}

marey_status marey__json_named_rows(struct marey__buf *line, const marey_table *table, FILE *out)
{
    marey__buf_printf(line, "  \"%s\": ", marey_table_name(table));
    MAREY_TRY(marey__buf_to_stream(line, out));
    MAREY_TRY(marey__json_rows(table, marey_table_n_rows(table), "  ", out));
    marey__buf_puts(line, ",\n");
    return marey__buf_to_stream(line, out);
}

void marey__json_last_texts(struct marey__buf *line, const marey_table *table)
{
    const size_t n_rows = marey_table_n_rows(table);
    marey__buf_printf(line, "  \"%s\": [", marey_table_name(table));
    for (size_t row = 0; row < n_rows; row++) {
        const struct marey_cell text = marey_table_cell(table, row, 0);
        marey__buf_puts(line, row == 0 ? "\n    " : ",\n    ");
        marey__json_put(line, text.as.text, text.len);
    }
    marey__buf_puts(line, n_rows == 0 ? "]\n}\n" : "\n  ]\n}\n");
}

marey_status marey__json_report(struct marey__buf *line, marey_table *const *tables, size_t n,
                                const marey_table *notes, FILE *out)
{
    marey_status status = MAREY_OK;
    for (size_t i = 0; status == MAREY_OK && i < n; i++)
        status = marey__json_named_rows(line, tables[i], out);
    if (status == MAREY_OK) {
        marey__json_last_texts(line, notes);
        status = marey__buf_to_stream(line, out);
    }
    if (status == MAREY_OK && fflush(out) != 0)
        status = marey__fail_errno("write the report");
    return status;
}

marey_status marey_present_json(const marey_table *table, FILE *out)
{
    struct marey__buf end MAREY__FINALLY(marey__buf_fini) = {0};
    MAREY_TRY(marey__json_rows(table, marey_table_n_rows(table), "", out));
    marey__buf_puts(&end, "\n");
    return marey__buf_to_stream(&end, out);
}

static marey_status put_tables(struct marey__buf *buf, const marey_table *const *tables, size_t n,
                               FILE *out)
{
    marey__buf_puts(buf, "{");
    for (size_t i = 0; i < n; i++) {
        const char *name = marey_table_name(tables[i]);
        marey__buf_puts(buf, i == 0 ? "\n  " : ",\n  ");
        marey__json_put(buf, name, strlen(name));
        marey__buf_puts(buf, ": ");
        MAREY_TRY(marey__buf_to_stream(buf, out));
        MAREY_TRY(marey__json_rows(tables[i], marey_table_n_rows(tables[i]), "  ", out));
    }
    marey__buf_puts(buf, n == 0 ? "}\n" : "\n}\n");
    return marey__buf_to_stream(buf, out);
}

marey_status marey_present_json_tables(const marey_table *const *tables, size_t n, FILE *out)
{
    struct marey__buf buf MAREY__FINALLY(marey__buf_fini) = {0};
    return put_tables(&buf, tables, n, out);
}
