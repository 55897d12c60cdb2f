/*
 * marey/table.h: the typed table that analyses return and presenters print.
 *
 * A table has a name, columns with a type and a unit, and rows. Cells are appended left to right, row by row, and read in
 * any order. One thread at a time may use a table.
 */
#ifndef MAREY_TABLE_H
#define MAREY_TABLE_H

#include <marey/base.h>

MAREY_BEGIN_C

typedef struct marey_table marey_table;

enum marey_type {
    MAREY_TYPE_TEXT = 1,
    MAREY_TYPE_I64,
    MAREY_TYPE_U64,
    MAREY_TYPE_F64,
    MAREY_TYPE_BOOL
};
enum marey_unit {
    MAREY_UNIT_NONE = 0,
    MAREY_UNIT_COUNT,
    MAREY_UNIT_NS, /* nanoseconds; printed in a suitable unit */
    MAREY_UNIT_BYTES,
    MAREY_UNIT_SHARE,   /* 0..1, printed as percent */
    MAREY_UNIT_UNIX_NS, /* a date: nanoseconds since 1970 */
};

/*
 * `value` as reports show it: "1.23 ms", "2.10 MB", "12.3 %"; without a unit as four digits. Returned in `into`, of `size`
 * bytes. Any thread.
 */
MAREY_API const char *marey_text_number(double value, enum marey_unit unit, char *into, size_t size);

struct marey_column {
    const char *name;  /* in JSON and CSV: total_ns */
    const char *title; /* in text: total; NULL: the name */
    enum marey_type type;
    enum marey_unit unit;
};

/* Create a table with `n` columns (copied). Destroy accepts NULL. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_table_create(const char *name,
                                                            const struct marey_column *columns,
                                                            size_t n, marey_table **out);
MAREY_API void marey_table_destroy(marey_table *table);

/*
 * Append the next cell; the type must be the column's. Text is copied and may hold any bytes; `null` fits every
 * column. marey_table_status() reports an earlier out of memory, so cells need no check.
 */
MAREY_API void marey_table_text(marey_table *table, const char *text, size_t len);
MAREY_API void marey_table_i64(marey_table *table, int64_t value);
MAREY_API void marey_table_u64(marey_table *table, uint64_t value);
MAREY_API void marey_table_f64(marey_table *table, double value);
MAREY_API void marey_table_bool(marey_table *table, int value);
MAREY_API void marey_table_null(marey_table *table);
MAREY_API MAREY_WARN_UNUSED marey_status marey_table_status(const marey_table *table);

MAREY_API const char *marey_table_name(const marey_table *table);
MAREY_API size_t marey_table_n_rows(const marey_table *table);
MAREY_API size_t marey_table_n_columns(const marey_table *table);
MAREY_API const struct marey_column *marey_table_column(const marey_table *table, size_t column);
/* The number of the column called `name`, or -1. */
MAREY_API int marey_table_find(const marey_table *table, const char *name);

/* One cell; null cells are zero elsewhere. Text is lent until the table is destroyed. */
struct marey_cell {
    int is_null;
    size_t len; /* of text */
    union {
        const char *text;
        int64_t i64;
        uint64_t u64;
        double f64;
    } as;
};
MAREY_API struct marey_cell marey_table_cell(const marey_table *table, size_t row, size_t column);

/* Stable sort of the rows by one column; nulls last. */
MAREY_API void marey_table_sort(marey_table *table, size_t column, int descending);
/* Keep the first `n` rows. */
MAREY_API void marey_table_truncate(marey_table *table, size_t n);

MAREY_END_C
#endif
