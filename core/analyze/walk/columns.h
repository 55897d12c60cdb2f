/* Columns of tables by kind, for files that define many of them. Short names: include it in .c files alone. */
#ifndef MAREY_ANALYZE_COLUMNS_H
#define MAREY_ANALYZE_COLUMNS_H

#include <marey/table.h>

#define COLUMN(name, title, type, unit)                                                            \
    {                                                                                              \
        name, title, type, unit                                                                    \
    }
#define TEXT(name) COLUMN(name, NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE)
#define FLAG(name) COLUMN(name, NULL, MAREY_TYPE_BOOL, MAREY_UNIT_NONE)
#define NUMBER(name) COLUMN(name, NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE) /* a rank, a pid */
#define WHOLE(name) COLUMN(name, NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE)  /* a line */
#define COUNT(name, title) COLUMN(name, title, MAREY_TYPE_U64, MAREY_UNIT_COUNT)
#define NS(name, title) COLUMN(name, title, MAREY_TYPE_U64, MAREY_UNIT_NS)
#define MEAN(name, title) COLUMN(name, title, MAREY_TYPE_F64, MAREY_UNIT_NS)
#define REAL(name, title) COLUMN(name, title, MAREY_TYPE_F64, MAREY_UNIT_NONE)
#define SHARE(name, title) COLUMN(name, title, MAREY_TYPE_F64, MAREY_UNIT_SHARE)

/* A table that is to be made: marey_table_create() takes the three. */
struct marey__table_definition {
    const char *name;
    const struct marey_column *columns;
    size_t n;
};
#define DEFINED(name, columns)                                                                     \
    {                                                                                              \
        name, columns, MAREY__COUNT_OF(columns)                                                    \
    }

#endif
