/* How a table of functions is shown on a terminal: drawn.c. */
#ifndef KYMO_PRESENT_DRAWN_H
#define KYMO_PRESENT_DRAWN_H

#include "present/present_internal.h"
#include "present/style.h"

enum { KYMO__DRAWN_COLUMNS = 16, KYMO__DRAWN_PLACES = 3 };

struct kymo__drawn {
    /* NULL behind the last unless there are as many as fit: columns of the table, and prefixes of functions ("caller"). */
    const char *const *columns, *const *places;
    /* Whether a column has nothing to tell in these rows, as that of ranks where there are none. */
    bool (*is_dull)(const kymo_table *table, const char *name, size_t n_rows);
    void (*put_place)(kymo_table *into, const kymo_table *table, size_t row, const char *which);
};

/* The first `n_rows`; with `tells_rest`, of how many these are. */
KYMO_WARN_UNUSED kymo_status kymo__drawn_put(const struct kymo__drawn *how, const kymo_table *table,
                                             size_t n_rows, const struct kymo_text_options *options,
                                             bool tells_rest, struct kymo__lines *lines);

#endif
