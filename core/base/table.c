/*
 * A table stores each column in an array: eight bytes per cell, and a byte for null. Strings are preceded by their
 * length and never move, so a lent one stays valid while rows are added; consecutive equal strings share one.
 */
#include "base/internal.h"

union value {
    const char *text;
    int64_t i64;
    uint64_t u64;
    double f64;
};

struct column_cells {
    union value *values;
    uint8_t *nulls;
    size_t values_cap, nulls_cap;
};

struct marey_table {
    char *name;
    struct marey_column *columns; /* names and titles are copies */
    struct column_cells *cells;
    size_t n_columns, n_rows;
    size_t next_column; /* the next cell to write */
    struct marey__arena texts;
    marey_status status;
};

static bool copy_columns(marey_table *table, const struct marey_column *columns)
{
    for (size_t c = 0; c < table->n_columns; c++) {
        const char *title = columns[c].title != NULL ? columns[c].title : columns[c].name;
        struct marey_column *copy = &table->columns[c];
        *copy = columns[c];
        copy->name = marey__arena_text(&table->texts, columns[c].name, strlen(columns[c].name));
        copy->title = marey__arena_text(&table->texts, title, strlen(title));
        if (copy->name == NULL || copy->title == NULL)
            return false;
    }
    return true;
}

marey_status marey_table_create(const char *name, const struct marey_column *columns, size_t n,
                                marey_table **out)
{
    marey_table *table = marey__calloc(1, sizeof *table);
    MAREY__TRY_MEMORY(table != NULL);
    table->n_columns = n;
    table->columns = marey__calloc(n + 1, sizeof *table->columns);
    table->cells = marey__calloc(n + 1, sizeof *table->cells);
    table->name = marey__strndup(name, strlen(name));
    if (table->columns == NULL || table->cells == NULL || table->name == NULL ||
        !copy_columns(table, columns)) {
        marey_table_destroy(table);
        return marey__no_memory();
    }
    *out = table;
    return MAREY_OK;
}

void marey_table_destroy(marey_table *table)
{
    if (table == NULL)
        return;
    for (size_t c = 0; table->cells != NULL && c < table->n_columns; c++) {
        MAREY__FREE_ALL(table->cells[c].values, table->cells[c].nulls);
    }
    marey__arena_fini(&table->texts);
    MAREY__FREE_ALL(table->cells, table->columns, table->name, table);
}

static bool make_room(marey_table *table, struct column_cells *cells)
{
    const size_t want = table->n_rows + 1;
    return marey__grow(&cells->values, &cells->values_cap, want, sizeof *cells->values) &&
           marey__grow(&cells->nulls, &cells->nulls_cap, want, sizeof *cells->nulls);
}

/* Writes the next cell. A row counts once its last cell is written. */
static void put(marey_table *table, union value value, bool is_null)
{
    struct column_cells *cells = &table->cells[table->next_column];
    if (!make_room(table, cells)) {
        table->status = MAREY_ENOMEM;
        return;
    }
    cells->values[table->n_rows] = value;
    cells->nulls[table->n_rows] = is_null;
    if (++table->next_column == table->n_columns) {
        table->next_column = 0;
        table->n_rows++;
    }
}

/* After a failure nothing more is accepted, so the table keeps whole rows only. */
static bool accepts(marey_table *table, enum marey_type type)
{
    if (table->status == MAREY_OK &&
        (table->n_columns == 0 || table->columns[table->next_column].type != type))
        table->status = MAREY_EINVAL;
    return table->status == MAREY_OK;
}

static size_t length_of(const char *text)
{
    size_t len;
    memcpy(&len, text - sizeof len, sizeof len);
    return len;
}

/* Stores a string after its length, unless the row before has the same one. NULL on out of memory. */
static const char *keep_text(marey_table *table, const char *text, size_t len)
{
    const struct column_cells *cells = &table->cells[table->next_column];
    const char *const before =
        table->n_rows != 0 ? cells->values[table->n_rows - 1].text : NULL; /* NULL if null */
    if (before != NULL && length_of(before) == len && memcmp(before, text, len) == 0)
        return before;
    char *const room = marey__arena_take(&table->texts, sizeof len + len + 1, 1);
    if (room == NULL)
        return NULL;
    memcpy(room, &len, sizeof len);
    memcpy(room + sizeof len, text, len);
    room[sizeof len + len] = '\0';
    return room + sizeof len;
}

void marey_table_text(marey_table *table, const char *text, size_t len)
{
    if (!accepts(table, MAREY_TYPE_TEXT))
        return;
    const char *kept = keep_text(table, len != 0 ? text : "", len);
    if (kept == NULL)
        table->status = MAREY_ENOMEM;
    else
        put(table, (union value){.text = kept}, false);
}

void marey_table_i64(marey_table *table, int64_t value)
{
    if (accepts(table, MAREY_TYPE_I64))
        put(table, (union value){.i64 = value}, false);
}

void marey_table_u64(marey_table *table, uint64_t value)
{
    if (accepts(table, MAREY_TYPE_U64))
        put(table, (union value){.u64 = value}, false);
}

void marey_table_f64(marey_table *table, double value)
{
    if (accepts(table, MAREY_TYPE_F64))
        put(table, (union value){.f64 = value}, false);
}

void marey_table_bool(marey_table *table, int value)
{
    if (accepts(table, MAREY_TYPE_BOOL))
        put(table, (union value){.u64 = value != 0}, false);
}

void marey_table_null(marey_table *table)
{
    if (table->status == MAREY_OK && table->n_columns != 0)
        put(table, (union value){0}, true);
}

void marey__put_texts(marey_table *table, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (texts[i] != NULL && texts[i][0] != '\0')
            marey_table_text(table, texts[i], strlen(texts[i]));
        else
            marey_table_null(table);
}

void marey__put_reals(marey_table *table, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (values[i] == values[i]) /* not NaN */
            marey_table_f64(table, values[i]);
        else
            marey_table_null(table);
}

void marey__put_counts(marey_table *table, const uint64_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        marey_table_u64(table, values[i]);
}

marey_status marey_table_status(const marey_table *table)
{
    MAREY__TRY_MEMORY(table->status != MAREY_ENOMEM);
    if (table->status != MAREY_OK)
        return marey__fail(table->status, "a cell of table %s was given a value of another type",
                           table->name);
    return MAREY_OK;
}

const char *marey_table_name(const marey_table *table)
{
    return table->name;
}

size_t marey_table_n_rows(const marey_table *table)
{
    return table->n_rows;
}

size_t marey_table_n_columns(const marey_table *table)
{
    return table->n_columns;
}

const struct marey_column *marey_table_column(const marey_table *table, size_t column)
{
    return column < table->n_columns ? &table->columns[column] : NULL;
}

int marey_table_find(const marey_table *table, const char *name)
{
    for (size_t c = 0; c < table->n_columns; c++)
        if (strcmp(table->columns[c].name, name) == 0)
            return (int)c;
    return -1;
}

struct marey_cell marey_table_cell(const marey_table *table, size_t row, size_t column)
{
    if (row >= table->n_rows || column >= table->n_columns)
        return (struct marey_cell){.is_null = 1};
    const struct column_cells *cells = &table->cells[column];
    if (cells->nulls[row])
        return (struct marey_cell){.is_null = 1};
    const bool is_text = table->columns[column].type == MAREY_TYPE_TEXT;
    struct marey_cell cell = {.len = is_text ? length_of(cells->values[row].text) : 0};
    memcpy(&cell.as, &cells->values[row], sizeof cell.as);
    return cell;
}

void marey_table_truncate(marey_table *table, size_t n)
{
    table->n_rows = MAREY__MIN(table->n_rows, n);
    table->next_column = 0;
}

/* ---- sorting: row numbers, which then move the cells of every column ---- */

struct order {
    const struct column_cells *cells;
    enum marey_type type;
    int descending;
};

static int compare_values(const struct order *order, size_t a, size_t b)
{
    const union value *x = &order->cells->values[a], *y = &order->cells->values[b];
    switch (order->type) {
    case MAREY_TYPE_TEXT: {
        const size_t x_len = length_of(x->text), y_len = length_of(y->text);
        const int c = memcmp(x->text, y->text, MAREY__MIN(x_len, y_len));
        return c != 0 ? c : (x_len > y_len) - (x_len < y_len);
    }
    case MAREY_TYPE_I64:
        return (x->i64 > y->i64) - (x->i64 < y->i64);
    case MAREY_TYPE_F64:
        return (x->f64 > y->f64) - (x->f64 < y->f64);
    case MAREY_TYPE_U64:
    case MAREY_TYPE_BOOL:
        break;
    }
    return (x->u64 > y->u64) - (x->u64 < y->u64);
}

/* Null cells come last; the sort is stable. */
static int compare_rows(const void *x, const void *y, void *ctx)
{
    const struct order *order = ctx;
    const size_t a = *(const size_t *)x, b = *(const size_t *)y;
    const bool a_null = order->cells->nulls[a], b_null = order->cells->nulls[b];
    int c = a_null - b_null;
    if (!a_null && !b_null)
        c = order->descending ? compare_values(order, b, a) : compare_values(order, a, b);
    return c != 0 ? c : (a > b) - (a < b);
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
}

void marey_table_sort(marey_table *table, size_t column, int descending)
{
    const size_t n = table->n_rows;
    if (column >= table->n_columns || n < 2)
        return;
    size_t *rows = marey__calloc(n, sizeof *rows);
    union value *spare = marey__calloc(n, sizeof *spare);
    if (rows == NULL || spare == NULL) {
        table->status = MAREY_ENOMEM;
    } else {
        struct order order = {&table->cells[column], table->columns[column].type, descending};
        for (size_t i = 0; i < n; i++)
            rows[i] = i;
        qsort_r(rows, n, sizeof *rows, compare_rows, &order);
        for (size_t c = 0; c < table->n_columns; c++)
            move_cells(&table->cells[c], rows, n, spare);
        table->next_column = 0;
    }
    MAREY__FREE_ALL(spare, rows);
}
