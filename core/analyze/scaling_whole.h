/*
 * scaling: from measured runs to what more workers bring.
 *
 *   paths ── scaling_read*.c ── scaling_runs.c (the list)
 */
#ifndef KYMO_SCALING_WHOLE_H
#define KYMO_SCALING_WHOLE_H

#include "analyze/analyze_internal.h"
#include <kymo/scaling.h>

struct kymo_scaling_runs {
    struct kymo_scaling_run *list; /* owns their arrays */
    size_t n, cap;
    const char **notes;
    size_t n_notes, notes_cap;
    struct kymo__arena texts;
};

enum kymo__scaling_table {
    KYMO__SCALING_POINTS,
    KYMO__SCALING_FITS,
    KYMO__SCALING_FORECAST,
    KYMO__SCALING_BEST,
    KYMO__SCALING_RUNS,
    KYMO__SCALING_NOTES,
    KYMO__N_SCALING_TABLES,
};

struct kymo_scaling {
    kymo_table *tables[KYMO__N_SCALING_TABLES];
};

/* scaling_tables.c: empty ones, by their columns. */
KYMO_WARN_UNUSED kymo_status kymo__scaling_make_tables(struct kymo_scaling *scaling);

#endif
