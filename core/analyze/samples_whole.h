/* The report of samples as a whole (samples_report.c) and what its tables are made of. */
#ifndef KYMO_SAMPLES_WHOLE_H
#define KYMO_SAMPLES_WHOLE_H

#include "analyze/samples.h"

enum kymo__samples_table {
    KYMO__SAMPLES_FUNCTIONS,
    KYMO__SAMPLES_LINES,
    KYMO__SAMPLES_FILES,
    KYMO__SAMPLES_MODULES,
    KYMO__SAMPLES_THREADS,
    KYMO__SAMPLES_PROCESSES,
    KYMO__SAMPLES_RANKS,
    KYMO__SAMPLES_STACKS,
    KYMO__SAMPLES_CONTACTS,
    KYMO__SAMPLES_LEAVES,
    KYMO__SAMPLES_LEAF_PATHS,
    KYMO__SAMPLES_WAITS,
    KYMO__SAMPLES_GIL,
    KYMO__SAMPLES_AUDIT,
    KYMO__SAMPLES_TOTALS,
    KYMO__SAMPLES_NOTES,
    KYMO__N_SAMPLES_TABLES,
};

/* Samples added up. */
struct kymo__samples_sum {
    uint64_t n, ns;
    uint64_t known_ns,
        cpu_ns; /* of those of which it is known whether they were on a processor; that were */
    uint64_t gil_ns;
};
void kymo__samples_sum_add(struct kymo__samples_sum *into, const struct kymo__samples_sum *from);

/* Samples of one thread with one stack, that waited for one thing. */
struct kymo__samples_cell {
    uint32_t thread, stack; /* a stack without the frames that are not shown */
    uint32_t wait;          /* of those off the processors; else 0 */
    bool is_chosen; /* it counts; else it is there for the tables of waits and of the lock alone */
    struct kymo__samples_sum sum;
    double squares;    /* of the weights */
    uint64_t wants_ns; /* waited for the interpreter lock */
};

struct kymo__samples_sums {
    struct kymo__samples_cell *cells;
    size_t n_cells, cells_cap;
    uint32_t *slots; /* of cells, plus one; 0: empty */
    size_t n_slots;
    struct kymo__samples_sum whole; /* of those that count */
    double squares;                 /* of their weights */
    uint64_t gc_ns;                 /* of those without frames, in garbage collection */
    uint32_t *folds; /* by stack of the logs: the stack without frames that are not shown */
    uint32_t n_folds;
    /* By source and function: innermost ones of snapshot samples, and of those stopped by chance. */
    uint64_t *snapshots, *audits;
    size_t n_functions;
};

struct kymo_samples_report {
    struct kymo__samples_set set;
    struct kymo__samples_chosen *chosen;
    struct kymo_samples_report_options options;
    struct kymo__samples_sums sums;
    kymo_table *tables[KYMO__N_SAMPLES_TABLES];
};

/* ---- samples_sums.c ---- */

/* One pass over all rounds. KYMO_ENOMEM and what reading gives. */
KYMO_WARN_UNUSED kymo_status kymo__samples_sums_make(struct kymo_samples_report *report);
void kymo__samples_sums_fini(struct kymo__samples_sums *sums);

/* What rows of a table are of: each frame of a stack has one. */
struct kymo__samples_entities {
    const uint32_t *of_location; /* by location; 0: none */
    uint32_t n;                  /* the last one */
};
/* By entity; 0 is of samples without a frame. `wait` is what most of its own samples wait for; total: once for each sample, however often it is in a stack. */
struct kymo__samples_row {
    struct kymo__samples_sum own;
    uint64_t total_ns;
    uint32_t wait;
};
/* An array by entity, to be freed; NULL without memory. */
struct kymo__samples_row *kymo__samples_rows(const struct kymo_samples_report *report,
                                             const struct kymo__samples_entities *entities);
/* The same for what a cell is of itself, as a thread; no totals. */
typedef uint32_t kymo__samples_entity(const void *ctx, const struct kymo_samples_report *report,
                                      const struct kymo__samples_cell *cell);
struct kymo__samples_row *kymo__samples_rows_of_cells(const struct kymo_samples_report *report,
                                                      kymo__samples_entity *entity, const void *ctx,
                                                      uint32_t n);
/* Half of the interval of a share. */
double kymo__samples_error(const struct kymo__samples_sums *sums, uint64_t ns);

/* Samples by a few numbers that they have in common. */
struct kymo__samples_group {
    uint32_t key[3];
    struct kymo__samples_sum sum;
};
/* Equal ones become one, in the order of their keys; how many are left. In samples_more.c. */
size_t kymo__samples_groups_add(struct kymo__samples_group *groups, size_t n);

/* Whether a function is of a library of this name; see samples_library.c. */
bool kymo__samples_is_of_library(const struct kymo_samples_function *function, const char *library);

/* ---- samples_tables.c, samples_more.c, samples_library.c, samples_audit.c: fill tables; false without memory ---- */

bool kymo__samples_put_frames(struct kymo_samples_report *report);
bool kymo__samples_put_stacks(struct kymo_samples_report *report);
bool kymo__samples_put_owners(struct kymo_samples_report *report);
bool kymo__samples_put_contacts(struct kymo_samples_report *report);
bool kymo__samples_put_waits(struct kymo_samples_report *report);
bool kymo__samples_put_gil(struct kymo_samples_report *report);
bool kymo__samples_put_audit(struct kymo_samples_report *report);
void kymo__samples_put_totals(struct kymo_samples_report *report);
bool kymo__samples_put_notes(struct kymo_samples_report *report);

/* samples self_ns [total_ns] share [total_share] error cpu gil waits */
void kymo__samples_put_row(kymo_table *table, const struct kymo__samples_sums *sums,
                           const struct kymo__samples_row *row, bool has_total);
/* What is waited for, in words; null for nothing. */
void kymo__samples_put_wait(kymo_table *table, uint32_t wait);
/* Name, file and line of a location; nulls for 0. */
void kymo__samples_put_place(kymo_table *table, const kymo_samples *samples, uint32_t location);

/* ---- samples_names.c ---- */

/* The module of a function: a library's file name, or what Python would import; "" unknown. */
void kymo__samples_module(struct kymo__buf *module, const struct kymo_samples_function *function);

#endif
