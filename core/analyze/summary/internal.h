/*
 * summary: all processes of some recordings added up, and the tables of the result.
 *
 * Comes in: one walked process after the other (analyze/walk). Goes out: marey_summary with its tables. Sums can be
 * joined across threads and MPI ranks in any order.
 */
#ifndef MAREY_SUMMARY_INTERNAL_H
#define MAREY_SUMMARY_INTERNAL_H

#include "analyze/walk/internal.h"

/* ---- all processes ---- */

#include "analyze/summary/merge.h"

/* ---- the summary ---- */

enum marey__summary_table {
    MAREY__TABLE_RANGES,
    MAREY__TABLE_TREE,
    MAREY__TABLE_THREADS,
    MAREY__TABLE_RANKS,
    MAREY__TABLE_PROCESSES,
    MAREY__TABLE_ASYNC,
    MAREY__TABLE_COUNTERS,
    MAREY__TABLE_MARKS,
    MAREY__TABLE_OPEN,
    MAREY__TABLE_ITERATIONS,
    MAREY__TABLE_ITERATION_RANKS,
    MAREY__TABLE_THROUGHPUT,
    MAREY__TABLE_EPOCHS,
    MAREY__TABLE_PHASES,
    MAREY__TABLE_OUTLIERS,
    MAREY__TABLE_STEADY,
    MAREY__TABLE_KERNELS,
    MAREY__TABLE_COPIES,
    MAREY__TABLE_GPU_RANGES,
    MAREY__TABLE_WORKERS,
    MAREY__TABLE_RANK_SPREAD,
    MAREY__TABLE_RANK_TIMES,
    MAREY__TABLE_RANK_OUTLIERS,
    MAREY__TABLE_RANK_HOSTS,
    MAREY__TABLE_SITES,
    MAREY__TABLE_WARNINGS,
    MAREY__N_TABLES,
};

struct marey_summary {
    marey_table *tables[MAREY__N_TABLES];
    int32_t straggler; /* its row in the table iteration_ranks; -1: none */
    struct marey_cost cost;
    char source[24]; /* what all was imported from; "" when something was not */
    uint64_t n_threads;
    char *title; /* the recordings' names */
};

/*
 * Somebody who listens to every process of a summary. `begin` may set the walk's tap and the visitor of its spans, `end`
 * comes behind its last event; both on the thread that walks it, several processes at a time.
 */
struct marey__summary_tap {
    marey_status (*begin)(void *ctx, struct marey__process_walk *walk, size_t number);
    marey_status (*end)(void *ctx, struct marey__process_walk *walk, size_t number);
    void *ctx;
};
/* marey_summary_create; `tap` may be NULL. `number` above counts the processes of all recordings, from 0. */
MAREY_WARN_UNUSED marey_status marey__summary_create(marey_recording *const *recordings, size_t n,
                                                     const struct marey_summary_options *options,
                                                     const struct marey__summary_tap *tap,
                                                     marey_summary **out);

MAREY_WARN_UNUSED marey_status marey__summary_make_tables(marey_summary *summary,
                                                          const struct marey__merge *merge,
                                                          const struct marey_summary_options *options);
/*
 * The two halves of it: all processes of the recordings added up, which lend their texts, and the summary of what was
 * added up, by this and by marey__merge_join.
 */
MAREY_WARN_UNUSED marey_status marey__summary_merge(marey_recording *const *recordings, size_t n,
                                                    const struct marey_summary_options *options,
                                                    const struct marey__summary_tap *tap,
                                                    struct marey__merge *merge);
MAREY_WARN_UNUSED marey_status marey__summary_make(struct marey__merge *merge,
                                                   marey_recording *const *recordings, size_t n,
                                                   const struct marey_summary_options *options,
                                                   marey_summary **out);

/* Whether somebody wants the table called so, which grows with ranks times names. In summary_tables.c. */
bool marey__is_table_wanted(const struct marey_summary_options *options, const char *name);

/* ---- tables in the making ---- */

struct marey__ranks;
struct marey__making {
    const struct marey__merge *merge;
    const char *filter;
    const struct marey_cost *cost;
    const struct marey__ranks *ranks; /* in ranks.h */
    uint32_t max_depth;               /* of ranges that are shown; 0: all are */
    const uint8_t *shallow;           /* by name: whether a range of it is; NULL: all are */
};

void marey__put_name(marey_table *table, const struct marey__making *m, uint32_t name);
/* Whether they are two ranks; else one is a repeat of the other. Those without a rank are two if they ran at one time. */
bool marey__is_other_rank(const struct marey_process *a, const struct marey_process *b);
/* Whether the name passes the filter. */
bool marey__is_wanted(const struct marey__making *m, uint32_t name);
/* And whether ranges of that name are shown, by their depth. */
bool marey__is_range_wanted(const struct marey__making *m, uint32_t name);

enum { MAREY__N_TREE_COLUMNS = 6, MAREY__N_SITE_COLUMNS = 6 };
extern const struct marey_column marey__tree_columns[MAREY__N_TREE_COLUMNS];
extern const struct marey_column marey__site_columns[MAREY__N_SITE_COLUMNS];
MAREY_WARN_UNUSED marey_status marey__fill_tree(marey_table *table, const struct marey__making *m);
MAREY_WARN_UNUSED marey_status marey__fill_sites(marey_table *table, const struct marey__making *m);
MAREY_WARN_UNUSED marey_status marey__fill_warnings(marey_table *table,
                                                    const struct marey__making *m);

/* What a table of the summary is called, its columns, and who fills it. */
struct marey__table_kind {
    const char *name;
    const struct marey_column *columns;
    size_t n_columns;
    marey_status (*fill)(marey_table *table, const struct marey__making *m);
};
#define MAREY__TABLE_KIND(name, columns, fill)                                                     \
    {                                                                                              \
        name, columns, MAREY__COUNT_OF(columns), fill                                              \
    }
/* iteration_tables.c: those from MAREY__TABLE_ITERATIONS on. */
enum { MAREY__N_ITERATION_TABLES = 7 };
extern const struct marey__table_kind marey__iteration_kinds[MAREY__N_ITERATION_TABLES];
extern const struct marey__table_kind marey__steady_phases_kind; /* where there is a steady part */
/* rank_tables.c: those from MAREY__TABLE_RANK_SPREAD on. */
enum { MAREY__N_RANK_TABLES = 4 };
extern const struct marey__table_kind marey__rank_kinds[MAREY__N_RANK_TABLES];
/* How the row of whole iterations is called. */
#define MAREY__WHOLE_ITERATION "(whole iteration)"
#define MAREY__NO_RANGE "(no range)"
/*
 * The row of `iterations` of the rank that is slowest more often than chance would have it, or NULL: more than three
 * standard deviations above its due, and at least half as often again.
 */
const struct marey__iteration_row *
marey__find_straggler(const struct marey__iteration_merge *iterations);

#endif
