/* The report of samples as a whole (samples_report.c) and what its tables are made of. */
#ifndef MAREY_SAMPLES_WHOLE_H
#define MAREY_SAMPLES_WHOLE_H

#include "analyze/samples/samples.h"
#include "base/map.h"
#include "report/internal.h"

enum marey__samples_table {
    MAREY__SAMPLES_FUNCTIONS,
    MAREY__SAMPLES_LINES,
    MAREY__SAMPLES_FILES,
    MAREY__SAMPLES_MODULES,
    MAREY__SAMPLES_THREADS,
    MAREY__SAMPLES_PROCESSES,
    MAREY__SAMPLES_RANKS,
    MAREY__SAMPLES_STACKS,
    MAREY__SAMPLES_CONTACTS,
    MAREY__SAMPLES_LEAVES,
    MAREY__SAMPLES_LEAF_PATHS,
    MAREY__SAMPLES_WAITS,
    MAREY__SAMPLES_GIL,
    MAREY__SAMPLES_AUDIT,
    MAREY__SAMPLES_TOTALS,
    MAREY__SAMPLES_NOTES,
    MAREY__N_SAMPLES_TABLES,
};

/* Samples added up. */
struct marey__samples_sum {
    uint64_t n, ns;
    uint64_t known_ns,
        cpu_ns; /* of those of which it is known whether they were on a processor; that were */
    uint64_t gil_ns;
};
void marey__samples_sum_add(struct marey__samples_sum *into, const struct marey__samples_sum *from);

/* Samples of one thread with one stack, that waited for one thing. */
struct marey__samples_cell {
    uint32_t thread, stack; /* a stack without the frames that are not shown */
    uint32_t wait;          /* of those off the processors; else 0 */
    /* Whether it counts; else it is for the tables of waits and of the lock only. The last field of the key. */
    uint32_t is_chosen;
    struct marey__samples_sum sum;
    double squares;    /* of the weights */
    uint64_t wants_ns; /* waited for the interpreter lock */
};

struct marey__samples_sums {
    struct marey__samples_cell *cells;
    size_t n_cells, cells_cap;
    struct marey__key_map by_key;
    struct marey__samples_sum whole; /* of those that count */
    double squares;                  /* of their weights */
    uint64_t gc_ns;                  /* of those without frames, in garbage collection */
    uint32_t *folds; /* by stack of the logs: the stack without frames that are not shown */
    uint32_t n_folds;
    /* By source and function: innermost ones of snapshot samples, and of those stopped by chance. */
    uint64_t *snapshots, *audits;
    size_t n_functions;
};

struct marey__samples_report {
    struct marey__samples_set set;
    struct marey__samples_chosen *chosen;
    struct {
        struct marey_samples_filter filter;
        const char *sort; /* self, total, samples, name; "-" before it reverses */
        /*
         * Tables `contacts`, `leaves`, `leaf_paths`: the library whose frames are searched. A folder or file on the path of
         * a frame is called so, extensions apart, or matches it where it has one of *?[; "torch/nn" and "torch.nn" are a
         * folder in one. NULL: these tables are empty.
         */
        const char *library;
        const char *names; /* rows whose name has this in it; sums do not change by it */
        bool native; /* native frames count as functions; else their time is that of the Python frame around them */
    } options;
    struct marey__samples_sums sums;
    marey_table *const *tables; /* of the report, by enum marey__samples_table */
};

/* samples_text.c */
MAREY_WARN_UNUSED marey_status marey__samples_text(const marey_report *report,
                                                   const struct marey_write_options *options,
                                                   FILE *out);

/* ---- samples_sums.c ---- */

/* One pass over all rounds. MAREY_ENOMEM and what reading gives. */
MAREY_WARN_UNUSED marey_status marey__samples_sums_make(struct marey__samples_report *report);
void marey__samples_sums_fini(struct marey__samples_sums *sums);

/* What rows of a table are of: each frame of a stack has one. */
struct marey__samples_entities {
    const uint32_t *of_location; /* by location; 0: none */
    uint32_t n;                  /* the last one */
};
/* By entity; 0 is of samples without a frame. `wait` is what most of its own samples wait for; total: once for each sample, however often it is in a stack. */
struct marey__samples_row {
    struct marey__samples_sum own;
    uint64_t total_ns;
    uint32_t wait;
};
/* An array by entity, to be freed; NULL without memory. */
struct marey__samples_row *marey__samples_rows(const struct marey__samples_report *report,
                                               const struct marey__samples_entities *entities);
/* The same for what a cell is of itself, as a thread; no totals. */
typedef uint32_t marey__samples_entity(const void *ctx, const struct marey__samples_report *report,
                                       const struct marey__samples_cell *cell);
struct marey__samples_row *marey__samples_rows_of_cells(const struct marey__samples_report *report,
                                                        marey__samples_entity *entity,
                                                        const void *ctx, uint32_t n);
/* Half of the interval of a share. */
double marey__samples_error(const struct marey__samples_sums *sums, uint64_t ns);

/* Samples by a few numbers that they have in common. */
struct marey__samples_group {
    uint32_t key[3];
    struct marey__samples_sum sum;
};
/* Equal ones become one, in the order of their keys; how many are left. In samples_more.c. */
size_t marey__samples_groups_add(struct marey__samples_group *groups, size_t n);

/* Whether a function is of a library of this name; see samples_library.c. */
bool marey__samples_is_of_library(const struct marey_samples_function *function, const char *library);

/* ---- samples_tables.c, samples_more.c, samples_library.c, samples_audit.c: fill tables; false without memory ---- */

bool marey__samples_put_frames(struct marey__samples_report *report);
bool marey__samples_put_stacks(struct marey__samples_report *report);
bool marey__samples_put_owners(struct marey__samples_report *report);
bool marey__samples_put_contacts(struct marey__samples_report *report);
bool marey__samples_put_waits(struct marey__samples_report *report);
bool marey__samples_put_gil(struct marey__samples_report *report);
bool marey__samples_put_audit(struct marey__samples_report *report);
void marey__samples_put_totals(struct marey__samples_report *report);
bool marey__samples_put_notes(struct marey__samples_report *report);

/* samples self_ns [total_ns] share [total_share] error cpu gil waits */
void marey__samples_put_row(marey_table *table, const struct marey__samples_sums *sums,
                            const struct marey__samples_row *row, bool has_total);
/* What is waited for, in words; null for nothing. */
void marey__samples_put_wait(marey_table *table, uint32_t wait);
/* Name, file and line of a location; nulls for 0. */
void marey__samples_put_place(marey_table *table, const marey_samples *samples, uint32_t location);

/* ---- samples_names.c ---- */

/* The module of a function: a library's file name, or what Python would import; "" unknown. */
void marey__samples_module(struct marey__buf *module, const struct marey_samples_function *function);

#endif
