/*
 * A table keeps each column in an array of its own: eight bytes a cell, a byte that says whether it
 * is null, and for text its length. The texts themselves never move, so that a lent one stays valid
 * while rows are added.
 */
#include <string.h>

#include "table/table_internal.h"

union value {
    const char *text;
    int64_t i64;
    uint64_t u64;
    double f64;
};

struct column_cells {
    union value *values;
    size_t *lengths; /* of texts; NULL in other columns */
    uint8_t *nulls;
    size_t values_cap, lengths_cap, nulls_cap;
};

struct kymo_table {
    char *name;
    struct kymo_column *columns; /* names and titles are copies */
    struct column_cells *cells;
    size_t n_columns, n_rows;
    size_t next_column; /* the cell to be written */
    struct kymo__arena texts;
    kymo_status status;
};

static bool copy_columns(kymo_table *table, const struct kymo_column *columns)
{
    for (size_t c = 0; c < table->n_columns; c++) {
        const char *title = columns[c].title != NULL ? columns[c].title : columns[c].name;
        struct kymo_column *copy = &table->columns[c];
        *copy = columns[c];
        copy->name = kymo__arena_text(&table->texts, columns[c].name, strlen(columns[c].name));
        copy->title = kymo__arena_text(&table->texts, title, strlen(title));
        if (copy->name == NULL || copy->title == NULL)
            return false;
    }
    return true;
}

kymo_status kymo_table_create(const char *name, const struct kymo_column *columns, size_t n,
                              kymo_table **out)
{
    kymo_table *table = kymo__calloc(1, sizeof *table);
    if (table == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for table %s", name);
    table->n_columns = n;
    table->columns = kymo__calloc(n + 1, sizeof *table->columns);
    table->cells = kymo__calloc(n + 1, sizeof *table->cells);
    table->name = kymo__strndup(name, strlen(name));
    if (table->columns == NULL || table->cells == NULL || table->name == NULL ||
        !copy_columns(table, columns)) {
        kymo_table_destroy(table);
        return kymo__fail(KYMO_ENOMEM, "no memory for table %s", name);
    }
    *out = table;
    return KYMO_OK;
}

void kymo_table_destroy(kymo_table *table)
{
    if (table == NULL)
        return;
    for (size_t c = 0; table->cells != NULL && c < table->n_columns; c++) {
        kymo__free(table->cells[c].values);
        kymo__free(table->cells[c].lengths);
        kymo__free(table->cells[c].nulls);
    }
    kymo__arena_fini(&table->texts);
    kymo__free(table->cells);
    kymo__free(table->columns);
    kymo__free(table->name);
    kymo__free(table);
}

static bool make_room(kymo_table *table, struct column_cells *cells)
{
    const size_t want = table->n_rows + 1;
    const bool is_text = table->columns[table->next_column].type == KYMO_TYPE_TEXT;
    return kymo__grow(&cells->values, &cells->values_cap, want, sizeof *cells->values) &&
           kymo__grow(&cells->nulls, &cells->nulls_cap, want, sizeof *cells->nulls) &&
           (!is_text ||
            kymo__grow(&cells->lengths, &cells->lengths_cap, want, sizeof *cells->lengths));
}

/* Write the next cell. A row counts once its last cell is there. */
static void put(kymo_table *table, union value value, size_t len, bool is_null)
{
    struct column_cells *cells = &table->cells[table->next_column];
    if (!make_room(table, cells)) {
        table->status = KYMO_ENOMEM;
        return;
    }
    cells->values[table->n_rows] = value;
    cells->nulls[table->n_rows] = is_null;
    if (cells->lengths != NULL)
        cells->lengths[table->n_rows] = len;
    if (++table->next_column == table->n_columns) {
        table->next_column = 0;
        table->n_rows++;
    }
}

/* After a failure nothing more is taken: what is there stays a table of whole rows. */
static bool accepts(kymo_table *table, enum kymo_type type)
{
    if (table->status == KYMO_OK &&
        (table->n_columns == 0 || table->columns[table->next_column].type != type))
        table->status = KYMO_EINVAL;
    return table->status == KYMO_OK;
}

void kymo_table_text(kymo_table *table, const char *text, size_t len)
{
    if (!accepts(table, KYMO_TYPE_TEXT))
        return;
    const char *kept = kymo__arena_text(&table->texts, text, len);
    if (kept == NULL)
        table->status = KYMO_ENOMEM;
    else
        put(table, (union value){.text = kept}, len, false);
}

void kymo_table_i64(kymo_table *table, int64_t value)
{
    if (accepts(table, KYMO_TYPE_I64))
        put(table, (union value){.i64 = value}, 0, false);
}

void kymo_table_u64(kymo_table *table, uint64_t value)
{
    if (accepts(table, KYMO_TYPE_U64))
        put(table, (union value){.u64 = value}, 0, false);
}

void kymo_table_f64(kymo_table *table, double value)
{
    if (accepts(table, KYMO_TYPE_F64))
        put(table, (union value){.f64 = value}, 0, false);
}

void kymo_table_bool(kymo_table *table, int value)
{
    if (accepts(table, KYMO_TYPE_BOOL))
        put(table, (union value){.u64 = value != 0}, 0, false);
}

void kymo_table_null(kymo_table *table)
{
    if (table->status == KYMO_OK && table->n_columns != 0)
        put(table, (union value){0}, 0, true);
}

kymo_status kymo_table_status(const kymo_table *table)
{
    if (table->status == KYMO_ENOMEM)
        return kymo__fail(KYMO_ENOMEM, "no memory for all of table %s", table->name);
    if (table->status != KYMO_OK)
        return kymo__fail(table->status, "a cell of table %s was given a value of another type",
                          table->name);
    return KYMO_OK;
}

const char *kymo_table_name(const kymo_table *table)
{
    return table->name;
}

size_t kymo_table_n_rows(const kymo_table *table)
{
    return table->n_rows;
}

size_t kymo_table_n_columns(const kymo_table *table)
{
    return table->n_columns;
}

const struct kymo_column *kymo_table_column(const kymo_table *table, size_t column)
{
    return column < table->n_columns ? &table->columns[column] : NULL;
}

int kymo_table_find(const kymo_table *table, const char *name)
{
    for (size_t c = 0; c < table->n_columns; c++)
        if (strcmp(table->columns[c].name, name) == 0)
            return (int)c;
    return -1;
}

struct kymo_cell kymo_table_cell(const kymo_table *table, size_t row, size_t column)
{
    if (row >= table->n_rows || column >= table->n_columns)
        return (struct kymo_cell){.is_null = 1};
    const struct column_cells *cells = &table->cells[column];
    if (cells->nulls[row])
        return (struct kymo_cell){.is_null = 1};
    struct kymo_cell cell = {.len = cells->lengths != NULL ? cells->lengths[row] : 0};
    memcpy(&cell.as, &cells->values[row], sizeof cell.as);
    return cell;
}

void kymo_table_truncate(kymo_table *table, size_t n)
{
    table->n_rows = KYMO__MIN(table->n_rows, n);
    table->next_column = 0;
}

/*
 * ---- sorting: a stable merge sort of row numbers, which then move the cells of every column ----
 */

struct order {
    const struct column_cells *cells;
    enum kymo_type type;
    int descending;
};

static int compare_values(const struct order *order, size_t a, size_t b)
{
    const union value *x = &order->cells->values[a], *y = &order->cells->values[b];
    switch (order->type) {
    case KYMO_TYPE_TEXT: {
        const size_t x_len = order->cells->lengths[a], y_len = order->cells->lengths[b];
        const int c = memcmp(x->text, y->text, KYMO__MIN(x_len, y_len));
        return c != 0 ? c : (x_len > y_len) - (x_len < y_len);
    }
    case KYMO_TYPE_I64:
        return (x->i64 > y->i64) - (x->i64 < y->i64);
    case KYMO_TYPE_F64:
        return (x->f64 > y->f64) - (x->f64 < y->f64);
    case KYMO_TYPE_U64:
    case KYMO_TYPE_BOOL:
        break;
    }
    return (x->u64 > y->u64) - (x->u64 < y->u64);
}

/* Whether row `b`, which stands behind `a`, has to go before it. */
static bool goes_before(const struct order *order, size_t b, size_t a)
{
    const bool a_null = order->cells->nulls[a], b_null = order->cells->nulls[b];
    if (a_null || b_null)
        return a_null && !b_null;
    const int c = compare_values(order, b, a);
    return order->descending ? c > 0 : c < 0;
}

static void merge_runs(const struct order *order, const size_t *from, size_t *to, size_t left,
                       size_t middle, size_t right)
{
    size_t i = left, j = middle;
    for (size_t k = left; k < right; k++) {
        const bool take_right = i == middle || (j < right && goes_before(order, from[j], from[i]));
        to[k] = take_right ? from[j++] : from[i++];
    }
}

/*
 * Sort the `n` row numbers in `rows`, with as many in `spare`; return the one of the two that holds
 * the result.
 */
static size_t *sort_rows(const struct order *order, size_t *rows, size_t *spare, size_t n)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t left = 0; left < n; left += 2 * width)
            merge_runs(order, rows, spare, left, KYMO__MIN(left + width, n),
                       KYMO__MIN(left + 2 * width, n));
        size_t *const sorted = spare;
        spare = rows;
        rows = sorted;
    }
    return rows;
}

/* `spare` has room for a column. */
static void move_cells(struct column_cells *cells, const size_t *rows, size_t n, union value *spare)
{
    for (size_t i = 0; i < n; i++)
        spare[i] = cells->values[rows[i]];
    memcpy(cells->values, spare, n * sizeof *spare);
    for (size_t i = 0; i < n; i++)
        spare[i].u64 = cells->nulls[rows[i]];
    for (size_t i = 0; i < n; i++)
        cells->nulls[i] = (uint8_t)spare[i].u64;
    if (cells->lengths == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        spare[i].u64 = cells->lengths[rows[i]];
    for (size_t i = 0; i < n; i++)
        cells->lengths[i] = (size_t)spare[i].u64;
}

void kymo_table_sort(kymo_table *table, size_t column, int descending)
{
    const size_t n = table->n_rows;
    if (column >= table->n_columns || n < 2)
        return;
    size_t *rows = kymo__calloc(2 * n, sizeof *rows);
    union value *spare = kymo__calloc(n, sizeof *spare);
    if (rows == NULL || spare == NULL) {
        table->status = KYMO_ENOMEM;
    } else {
        const struct order order = {&table->cells[column], table->columns[column].type, descending};
        for (size_t i = 0; i < n; i++)
            rows[i] = i;
        const size_t *sorted = sort_rows(&order, rows, rows + n, n);
        for (size_t c = 0; c < table->n_columns; c++)
            move_cells(&table->cells[c], sorted, n, spare);
        table->next_column = 0;
    }
    kymo__free(spare);
    kymo__free(rows);
}
