/*
 * epochs: when each process was in which epoch, and in which phases of it.
 *
 *   logs ── epochs_read.c ── times: one for each epoch of a process, with its phases
 *        ── epochs.c ── in order; which count ── epochs_stats.c ── epochs_tables.c
 *
 * Memory: some 200 bytes for each epoch of a process.
 */
#ifndef KYMO_EPOCHS_WHOLE_H
#define KYMO_EPOCHS_WHOLE_H

#include "analyze/analyze_internal.h"
#include "analyze/process_runs.h"
#include <kymo/epochs.h>

/* The phases that have a column, in the order of a training step; then what is in none of them. */
enum kymo__epoch_phase {
    KYMO__PHASE_DATA,
    KYMO__PHASE_FORWARD,
    KYMO__PHASE_BACKWARD,
    KYMO__PHASE_OPTIMIZER,
    KYMO__PHASE_EVALUATE,
    KYMO__PHASE_CHECKPOINT,
    KYMO__PHASE_LOGGING,
    KYMO__PHASE_OTHER,
    KYMO__N_PHASES,
};
extern const char *const kymo__epoch_phase_names[KYMO__N_PHASES];

/* A phase within an epoch. */
struct kymo__epoch_part {
    uint32_t name; /* in kymo_epoch_report.names, where the seven come first */
    uint64_t ns, count;
};

enum kymo__epoch_flag {
    KYMO__EPOCH_FIRST = 1, /* of its process */
    KYMO__EPOCH_OPEN = 2,  /* never ended */
    KYMO__EPOCH_CUT = 4,   /* events were lost in it */
    KYMO__EPOCH_COUNTS = 8,
};

/* An epoch of a process. */
struct kymo__epoch_time {
    const struct kymo_process *process;
    uint64_t number, ns, n_iterations;
    double samples; /* 0: not known */
    uint64_t phase_ns[KYMO__N_PHASES];
    size_t first_part, n_parts; /* in kymo_epoch_report.parts */
    uint32_t run, flags;
};

/* The same epoch on all ranks of a run: successive times. */
struct kymo__epoch_group {
    size_t first, n;
    bool counts;
    size_t longest;     /* which of the times */
    size_t slowest;     /* the one that stands out; SIZE_MAX: none does */
    uint64_t behind_ns; /* by how much */
    enum kymo__epoch_phase slowest_in;
};

enum kymo__epoch_table {
    KYMO__EPOCHS_EPOCHS,
    KYMO__EPOCHS_RANKS,
    KYMO__EPOCHS_AVERAGES,
    KYMO__EPOCHS_PHASES,
    KYMO__EPOCHS_NOTES,
    KYMO__N_EPOCH_TABLES,
};

struct kymo_epoch_report {
    kymo_table *tables[KYMO__N_EPOCH_TABLES];
    char *title;
    struct kymo_epoch_report_options options;
    /* What follows is gone once the tables are made. */
    struct kymo__epoch_time *times;
    size_t n_times, times_cap;
    struct kymo__epoch_part *parts;
    size_t n_parts, parts_cap;
    struct kymo__process_runs runs;
    struct kymo__epoch_group *groups;
    size_t n_groups, groups_cap;
    struct kymo__names names;
};

/* epochs_read.c: all processes of a recording. */
KYMO_WARN_UNUSED kymo_status kymo__epochs_read(struct kymo_epoch_report *report,
                                               kymo_recording *recording);

/* Whole nanoseconds; a damaged log may have times that no sum of them holds. */
static inline uint64_t kymo__epoch_ns(double ns)
{
    return ns < 0x1p63 ? (uint64_t)(ns + 0.5) : UINT64_MAX;
}

/* ---- epochs_stats.c ---- */

/* Of the times of one epoch: the longest, and which rank stands out. */
void kymo__epoch_group_judge(const struct kymo_epoch_report *report, struct kymo__epoch_group *group);

struct kymo__epoch_values {
    double *values;
    size_t n, cap;
};
struct kymo__epoch_spread {
    double mean, median, std, min, max;
};
KYMO_WARN_UNUSED bool kymo__epoch_values_add(struct kymo__epoch_values *values, double value);
/* Sorts them. All zero for none. */
struct kymo__epoch_spread kymo__epoch_values_spread(struct kymo__epoch_values *values);

/* epochs_tables.c */
KYMO_WARN_UNUSED kymo_status kymo__epochs_make_tables(struct kymo_epoch_report *report);

#endif
