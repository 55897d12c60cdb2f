/*
 * What the text and the JSON report share.
 */
#ifndef KYMO_REPORT_INTERNAL_H
#define KYMO_REPORT_INTERNAL_H

#include "analyze/analyze_internal.h"
#include "present/present_internal.h"

/*
 * Sort `ranges`, `async` and, where it has the column, `kernels`; "-" before it for ascending, NULL leaves them.
 * KYMO_EINVAL lists the columns.
 */
KYMO_WARN_UNUSED kymo_status kymo__report_sort(kymo_summary *summary, const char *sort);

/*
 * The tables called `names` (comma separated, NULL: ranges) in that order, each once, into `tables`, which has room for
 * KYMO__N_TABLES; behind `ranges` come kernels, copies, async ranges, counters and marks where there are any, behind `iterations` their ranks (where
 * there are several), epochs, phases and outliers. KYMO_EINVAL for an unknown one.
 */
KYMO_WARN_UNUSED kymo_status kymo__report_tables(kymo_summary *summary, const char *names,
                                                 kymo_table **tables, size_t *n);

/* ---- ncu_out.c ---- */

/* What is known of the program for Nsight Compute. */
struct kymo__ncu {
    const char *command; /* as a shell takes it; NULL: unknown */
    size_t n_processes;
};
/* Commands that look into the first of `kernels`, which are those that take longest; nothing where there are none. */
KYMO_WARN_UNUSED kymo_status kymo__ncu_put(const kymo_table *kernels, const struct kymo__ncu *ncu,
                                           struct kymo__buf *line, FILE *out);

/* How a GPU report is drawn. */
struct kymo__gpu_text {
    struct kymo_text_options options;
    size_t limit;  /* rows of a table; 0: all */
    bool is_alone; /* there is one process: which it is need not be said */
    struct kymo__ncu ncu;
};
/* Its tables into `out`, each line through `line`. In gpu_report_out.c. */
struct kymo_gpu_report;
KYMO_WARN_UNUSED kymo_status kymo__gpu_report_text(const struct kymo_gpu_report *report,
                                                   const struct kymo__gpu_text *text,
                                                   struct kymo__buf *line, FILE *out);

/*
 * The report's lines about iterations into `out`, each through `line`, where the summary has any: how long, how many in
 * a second, what takes most of them, which were out of the ordinary, which rank is slowest.
 */
KYMO_WARN_UNUSED kymo_status kymo__report_iterations(kymo_summary *summary, struct kymo__buf *line,
                                                     FILE *out);

/* More than so many ranks are shown by exception. */
enum { KYMO__FEW_RANKS = 16, KYMO__RANK_ROWS = 10 };
bool kymo__report_has_many_ranks(const kymo_summary *summary);
/* Lines about many ranks, in report_ranks.c: what is usual, the slowest and the fastest, outliers, hosts that stand out. */
KYMO_WARN_UNUSED kymo_status kymo__report_ranks(const kymo_summary *summary, struct kymo__buf *line,
                                                FILE *out);

/* One line about the workers of data loaders, where there are any: how busy they were. */
KYMO_WARN_UNUSED kymo_status kymo__report_workers(kymo_summary *summary, struct kymo__buf *line,
                                                  FILE *out);

/* ---- cost_text.c ---- */

/* The line on cost, without its end; false when there is nothing to print. */
bool kymo__cost_put(struct kymo__buf *line, const struct kymo_cost *cost);
/* The line that lists what the cost leaves out, the same. */
bool kymo__cost_put_missing(struct kymo__buf *line, const struct kymo_cost *cost);
/* The array of its parts. */
void kymo__cost_put_json(struct kymo__buf *buf, const struct kymo_cost *cost);

#endif
