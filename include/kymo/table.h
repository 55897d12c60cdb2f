/*
 * kymo/table.h: the typed table that every analysis returns and every presenter draws.
 *
 * A table has a name, columns with a type and a unit, and rows. Cells are written left to right, row by row, and read
 * at random. A table is used by one thread at a time.
 */
#ifndef KYMO_TABLE_H
#define KYMO_TABLE_H

#include <kymo/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kymo_table kymo_table;

enum kymo_type { KYMO_TYPE_TEXT = 1, KYMO_TYPE_I64, KYMO_TYPE_U64, KYMO_TYPE_F64, KYMO_TYPE_BOOL };
enum kymo_unit {
    KYMO_UNIT_NONE = 0,
    KYMO_UNIT_COUNT,
    KYMO_UNIT_NS, /* nanoseconds; drawn in the unit that fits */
    KYMO_UNIT_BYTES,
    KYMO_UNIT_SHARE,   /* 0..1, drawn as percent */
    KYMO_UNIT_UNIX_NS, /* a moment: nanoseconds since 1970 */
};

struct kymo_column {
    const char *name;  /* as JSON and CSV call it: total_ns */
    const char *title; /* as people read it: total; NULL: the name */
    enum kymo_type type;
    enum kymo_unit unit;
};

/* A table with `n` columns (copied). Destroy takes NULL. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_table_create(const char *name,
                                                        const struct kymo_column *columns, size_t n,
                                                        kymo_table **out);
KYMO_API void kymo_table_destroy(kymo_table *table);

/*
 * Append the next cell; the type must be the column's. Text is copied and may hold any bytes; `null` fits every
 * column. When memory runs out the table remembers it and kymo_table_status() tells; no need to check each cell.
 */
KYMO_API void kymo_table_text(kymo_table *table, const char *text, size_t len);
KYMO_API void kymo_table_i64(kymo_table *table, int64_t value);
KYMO_API void kymo_table_u64(kymo_table *table, uint64_t value);
KYMO_API void kymo_table_f64(kymo_table *table, double value);
KYMO_API void kymo_table_bool(kymo_table *table, int value);
KYMO_API void kymo_table_null(kymo_table *table);
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_table_status(const kymo_table *table);

KYMO_API const char *kymo_table_name(const kymo_table *table);
KYMO_API size_t kymo_table_n_rows(const kymo_table *table);
KYMO_API size_t kymo_table_n_columns(const kymo_table *table);
KYMO_API const struct kymo_column *kymo_table_column(const kymo_table *table, size_t column);
/* The number of the column called `name`, or -1. */
KYMO_API int kymo_table_find(const kymo_table *table, const char *name);

/* One cell. `is_null` cells have zero elsewhere. Text is lent until the table goes. */
struct kymo_cell {
    int is_null;
    size_t len; /* of text */
    union {
        const char *text;
        int64_t i64;
        uint64_t u64;
        double f64;
    } as;
};
KYMO_API struct kymo_cell kymo_table_cell(const kymo_table *table, size_t row, size_t column);

/* Stable sort of the rows by one column; nulls last. */
KYMO_API void kymo_table_sort(kymo_table *table, size_t column, int descending);
/* Keep the first `n` rows. */
KYMO_API void kymo_table_truncate(kymo_table *table, size_t n);

#ifdef __cplusplus
}
#endif
#endif
