/* Columns of tables by kind, for files that define many of them. Short names: include it in .c files alone. */
#ifndef KYMO_ANALYZE_COLUMNS_H
#define KYMO_ANALYZE_COLUMNS_H

#include <kymo/table.h>

#define COLUMN(name, title, type, unit)                                                            \
    {                                                                                              \
        name, title, type, unit                                                                    \
    }
#define TEXT(name) COLUMN(name, NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE)
#define FLAG(name) COLUMN(name, NULL, KYMO_TYPE_BOOL, KYMO_UNIT_NONE)
#define NUMBER(name) COLUMN(name, NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE) /* a rank, a pid */
#define WHOLE(name) COLUMN(name, NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE)  /* a line */
#define COUNT(name, title) COLUMN(name, title, KYMO_TYPE_U64, KYMO_UNIT_COUNT)
#define NS(name, title) COLUMN(name, title, KYMO_TYPE_U64, KYMO_UNIT_NS)
#define MEAN(name, title) COLUMN(name, title, KYMO_TYPE_F64, KYMO_UNIT_NS)
#define REAL(name, title) COLUMN(name, title, KYMO_TYPE_F64, KYMO_UNIT_NONE)
#define SHARE(name, title) COLUMN(name, title, KYMO_TYPE_F64, KYMO_UNIT_SHARE)

/* A table that is to be made: kymo_table_create() takes the three. */
struct kymo__table_definition {
    const char *name;
    const struct kymo_column *columns;
    size_t n;
};
#define DEFINED(name, columns)                                                                     \
    {                                                                                              \
        name, columns, KYMO__COUNT_OF(columns)                                                     \
    }

#endif
