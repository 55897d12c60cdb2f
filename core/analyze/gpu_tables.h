/*
 * gpu_tables: the summary's tables of GPU work; copies and memory sets, which the report of GPU work has alike.
 */
#ifndef KYMO_GPU_TABLES_H
#define KYMO_GPU_TABLES_H

#include "analyze/analyze_internal.h"

extern const struct kymo__table_kind kymo__kernels_kind, kymo__copies_kind, kymo__gpu_ranges_kind;

enum { KYMO__N_COPY_COLUMNS = 9 };
extern const struct kymo_column kymo__copy_columns[KYMO__N_COPY_COLUMNS];
/* The cells of a copy or memory set, `calls` and so on being of all that are called so. */
struct kymo__copy {
    const char *name;
    size_t len;
    const struct kymo__sketch *calls;
    uint64_t bytes, bytes_ns;
};
void kymo__put_copy(kymo_table *table, const struct kymo__copy *copy);
/* Bytes in a second; null where none are told. */
void kymo__put_byte_rate(kymo_table *table, uint64_t bytes, uint64_t ns);

#endif
