/* JSON of the page: values, and tables as columns of cells. */
#include <inttypes.h>
#include <string.h>

#include "present/page_internal.h"

void kymo__page_put_string(struct kymo__buf *json, const char *text)
{
    kymo__json_put(json, text, strlen(text));
}

void kymo__page_put_key(struct kymo__buf *json, const char *key)
{
    kymo__buf_printf(json, "\"%s\":", key);
}

void kymo__page_put_text(struct kymo__buf *json, const char *key, const char *text)
{
    kymo__page_put_key(json, key);
    kymo__page_put_string(json, text);
    kymo__buf_puts(json, ",");
}

/* Beyond 2^53 a number of JavaScript would be another one: it is a text then. */
void kymo__page_put_i64(struct kymo__buf *json, int64_t value)
{
    const int64_t most = INT64_C(1) << 53;
    kymo__buf_printf(json, value > most || value < -most ? "\"%" PRId64 "\"" : "%" PRId64, value);
}

void kymo__page_put_u64(struct kymo__buf *json, uint64_t value)
{
    kymo__buf_printf(json, value > UINT64_C(1) << 53 ? "\"%" PRIu64 "\"" : "%" PRIu64, value);
}

void kymo__page_put_number(struct kymo__buf *json, const char *key, uint64_t value)
{
    kymo__page_put_key(json, key);
    kymo__page_put_u64(json, value);
    kymo__buf_puts(json, ",");
}

/* Take the comma behind the last element back and close what was opened. */
void kymo__page_close(struct kymo__buf *json, const char *bracket)
{
    if (json->len > 0 && json->data[json->len - 1] == ',')
        json->len--;
    kymo__buf_puts(json, bracket);
}

/* ---- tables ---- */

static const char *const type_names[] = {"", "text", "i64", "u64", "f64", "bool"};
static const char *const unit_names[] = {"", "count", "ns", "bytes", "share", "unix_ns"};

static void put_columns(struct kymo__buf *json, const kymo_table *table)
{
    kymo__buf_puts(json, "\"columns\":[");
    for (size_t c = 0; c < kymo_table_n_columns(table); c++) {
        const struct kymo_column *column = kymo_table_column(table, c);
        kymo__buf_puts(json, "{");
        kymo__page_put_text(json, "name", column->name);
        kymo__page_put_text(json, "title", column->title != NULL ? column->title : column->name);
        kymo__page_put_text(json, "type", type_names[column->type]);
        kymo__page_put_text(json, "unit", unit_names[column->unit]);
        kymo__page_close(json, "},");
    }
    kymo__page_close(json, "],");
}

static void put_cell(struct kymo__buf *json, const struct kymo_cell *cell, enum kymo_type type)
{
    char number[40];
    if (cell->is_null)
        kymo__buf_puts(json, "null");
    else if (type == KYMO_TYPE_TEXT)
        kymo__json_put(json, cell->as.text, cell->len);
    else if (type == KYMO_TYPE_I64)
        kymo__page_put_i64(json, cell->as.i64);
    else if (type == KYMO_TYPE_F64)
        kymo__buf_put(json, number, (size_t)(kymo__put_f64(number, cell->as.f64) - number));
    else if (type == KYMO_TYPE_BOOL)
        kymo__buf_puts(json, cell->as.u64 != 0 ? "true" : "false");
    else
        kymo__page_put_u64(json, cell->as.u64);
    kymo__buf_puts(json, ",");
}

/* Of numbers of nanoseconds in all rows, for what is worked out from columns that are not whole. */
static void put_sums(struct kymo__buf *json, const kymo_table *table)
{
    kymo__page_put_key(json, "sums");
    kymo__buf_puts(json, "{");
    for (size_t c = 0; c < kymo_table_n_columns(table); c++) {
        const struct kymo_column *column = kymo_table_column(table, c);
        uint64_t sum = 0;
        if (column->unit != KYMO_UNIT_NS || column->type != KYMO_TYPE_U64)
            continue;
        for (size_t row = 0; row < kymo_table_n_rows(table); row++)
            sum += kymo_table_cell(table, row, c).as.u64;
        kymo__page_put_number(json, column->name, sum);
    }
    kymo__page_close(json, "},");
}

static void put_cells(struct kymo__buf *json, const kymo_table *table, size_t n_rows)
{
    kymo__buf_puts(json, "\"cells\":[");
    for (size_t c = 0; c < kymo_table_n_columns(table); c++) {
        const enum kymo_type type = kymo_table_column(table, c)->type;
        kymo__buf_puts(json, "[");
        for (size_t row = 0; row < n_rows; row++) {
            const struct kymo_cell cell = kymo_table_cell(table, row, c);
            put_cell(json, &cell, type);
        }
        kymo__page_close(json, "],");
    }
    kymo__page_close(json, "]},");
}

void kymo__page_table(struct kymo__buf *json, const kymo_table *table, size_t max_rows)
{
    kymo__page_named_table(json, kymo_table_name(table), table, max_rows);
}

void kymo__page_named_table(struct kymo__buf *json, const char *name, const kymo_table *table,
                            size_t max_rows)
{
    const size_t n = kymo_table_n_rows(table);
    const size_t n_kept = max_rows != 0 && n > max_rows ? max_rows : n;
    kymo__buf_puts(json, "{");
    kymo__page_put_text(json, "name", name);
    kymo__page_put_number(json, "rows", n);
    if (n_kept < n)
        put_sums(json, table);
    put_columns(json, table);
    put_cells(json, table, n_kept);
}

void kymo__page_tree(struct kymo__buf *json, const kymo_table *tree, size_t max_rows)
{
    kymo_table *reduced = NULL;
    size_t n_others = 0;
    if (kymo_table_n_rows(tree) <= max_rows) {
        kymo__page_table(json, tree, 0);
        return;
    }
    if (!kymo__page_reduce_tree(tree, max_rows, &reduced, &n_others)) {
        json->failed = true;
        return;
    }
    kymo__buf_puts(json, "{");
    kymo__page_put_text(json, "name", kymo_table_name(tree));
    kymo__page_put_number(json, "rows", kymo_table_n_rows(tree));
    kymo__page_put_number(json, "others", n_others);
    put_columns(json, reduced);
    put_cells(json, reduced, kymo_table_n_rows(reduced));
    kymo_table_destroy(reduced);
}
