/*
 * gpu_tables: the summary's tables of GPU work; copies and memory sets, which the report of GPU work has alike.
 */
#ifndef MAREY_GPU_TABLES_H
#define MAREY_GPU_TABLES_H

#include "analyze/summary/internal.h"

extern const struct marey__table_kind marey__kernels_kind, marey__copies_kind, marey__gpu_ranges_kind;

enum { MAREY__N_COPY_COLUMNS = 9 };
extern const struct marey_column marey__copy_columns[MAREY__N_COPY_COLUMNS];
/* The cells of a copy or memory set, `calls` and so on being of all that are called so. */
struct marey__copy {
    const char *name;
    size_t len;
    const struct marey__sketch *calls;
    uint64_t bytes, bytes_ns;
};
void marey__put_copy(marey_table *table, const struct marey__copy *copy);
/* Bytes in a second; null where none are told. */
void marey__put_byte_rate(marey_table *table, uint64_t bytes, uint64_t ns);

#endif
