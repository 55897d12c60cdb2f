/* How a table of functions is shown on a terminal: function_table.c. */
#ifndef MAREY_PRESENT_FUNCTION_TABLE_H
#define MAREY_PRESENT_FUNCTION_TABLE_H

#include "present/draw/present_internal.h"
#include "present/draw/style.h"

enum { MAREY__FUNCTION_TABLE_COLUMNS = 16, MAREY__FUNCTION_TABLE_PLACES = 3 };

struct marey__function_table {
    /* NULL behind the last unless there are as many as fit: columns of the table, and prefixes of functions ("caller"). */
    const char *const *columns, *const *places;
    /* Whether a column has nothing to tell in these rows, as that of ranks where there are none. */
    bool (*is_dull)(const marey_table *table, const char *name, size_t n_rows);
    void (*put_place)(marey_table *into, const marey_table *table, size_t row, const char *which);
};

/* The first `n_rows`; with `tells_rest`, of how many these are. */
MAREY_WARN_UNUSED marey_status marey__function_table_put(const struct marey__function_table *how,
                                                         const marey_table *table, size_t n_rows,
                                                         const struct marey_text_options *options,
                                                         bool tells_rest, struct marey__lines *lines);

/* A function as pstats writes it: "dot.py:7(dot)", "{built-in method builtins.len}". */
void marey__call_place(struct marey__buf *text, const char *file, uint64_t line, const char *label,
                       size_t len);

#endif
