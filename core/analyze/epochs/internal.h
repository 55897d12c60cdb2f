/*
 * epochs: how long an epoch takes, on which rank, in which phases.
 *
 *   logs ── epochs.c ── times: one for each epoch of a process, with its phases; which count ── epochs_tables.c
 *        ── epochs_text.c
 *
 * Input: recordings of programs that mark epochs and phases (<marey/iteration.h>). Output: a report of five tables.
 * Each moment of an epoch belongs to the phase that was open then, or to none, so the times of phases and `other` add up
 * to the epoch, to the nanosecond. The time of an epoch is that of its slowest rank. The first epoch of each process is
 * warm-up and left out of averages, unless there is no other or the setting "first" is on; nor does an epoch that was not
 * ended or in which events were lost. Knows neither the command line nor the page: the entry is in epochs.c.
 *
 * Memory: some 200 bytes for each epoch of a process.
 */
#ifndef MAREY_EPOCHS_INTERNAL_H
#define MAREY_EPOCHS_INTERNAL_H

#include "analyze/walk/internal.h"
#include "report/internal.h"

/* The phases that have a column, in the order of a training step; then what is in none of them. */
enum marey__epoch_phase {
    MAREY__PHASE_DATA,
    MAREY__PHASE_FORWARD,
    MAREY__PHASE_BACKWARD,
    MAREY__PHASE_OPTIMIZER,
    MAREY__PHASE_EVALUATE,
    MAREY__PHASE_CHECKPOINT,
    MAREY__PHASE_LOGGING,
    MAREY__PHASE_OTHER,
    MAREY__N_PHASES,
};
extern const char *const marey__epoch_phase_names[MAREY__N_PHASES];

/* A phase within an epoch. */
struct marey__epoch_part {
    uint32_t name; /* in marey__epochs.names, where the seven come first */
    uint64_t ns, count;
};

enum marey__epoch_flag {
    MAREY__EPOCH_FIRST = 1, /* of its process */
    MAREY__EPOCH_OPEN = 2,  /* never ended */
    MAREY__EPOCH_CUT = 4,   /* events were lost in it */
    MAREY__EPOCH_COUNTS = 8,
};

/* An epoch of a process. */
struct marey__epoch_time {
    const struct marey_process *process;
    uint64_t number, ns, n_iterations;
    double samples; /* 0: not known */
    uint64_t phase_ns[MAREY__N_PHASES];
    size_t first_part, n_parts; /* in marey__epochs.parts */
    uint32_t run, flags;
};

/* The same epoch on all ranks of a run: successive times. */
struct marey__epoch_group {
    size_t first, n;
    bool counts;
    size_t longest;     /* which of the times */
    size_t slowest;     /* the one that stands out; SIZE_MAX: none does */
    uint64_t behind_ns; /* by how much */
    enum marey__epoch_phase slowest_in;
};

enum marey__epoch_table {
    MAREY__EPOCHS_EPOCHS,
    MAREY__EPOCHS_RANKS,
    MAREY__EPOCHS_AVERAGES,
    MAREY__EPOCHS_PHASES,
    MAREY__EPOCHS_NOTES,
    MAREY__N_EPOCH_TABLES,
};

/* Epochs in the making. */
struct marey__epochs {
    marey_table *const *tables; /* of the report, by enum marey__epoch_table */
    bool with_first;
    struct marey__epoch_time *times;
    size_t n_times, times_cap;
    struct marey__epoch_part *parts;
    size_t n_parts, parts_cap;
    struct marey__process_runs runs;
    struct marey__epoch_group *groups;
    size_t n_groups, groups_cap;
    struct marey__names names;
};

/* Whole nanoseconds; a damaged log may have times that no sum of them holds. */
static inline uint64_t marey__epoch_ns(double ns)
{
    return ns < 0x1p63 ? (uint64_t)(ns + 0.5) : UINT64_MAX;
}

/* epochs_tables.c: the definitions, and the rows. Returns false on out of memory. */
extern const struct marey_table_definition marey__epoch_tables[MAREY__N_EPOCH_TABLES];
MAREY_WARN_UNUSED bool marey__epochs_fill(const struct marey__epochs *epochs);

/* epochs_text.c */
marey__put_answer marey__epochs_text;

#endif
