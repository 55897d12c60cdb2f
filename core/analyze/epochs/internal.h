/*
 * epochs: durations of epochs, by rank and phase.
 *
 *   logs ── epochs.c ── times: one per epoch of a process, with its phases ── epochs_tables.c, epochs_text.c
 *
 * The time of an epoch belongs to the open phase, or to none, so the times of phases and `other` add up to the epoch,
 * to the nanosecond. The time of an epoch is that of its slowest rank. The first epoch of each process is warm-up and
 * excluded from averages, unless there is no other or the setting "first" is on; so are epochs that did not end or lost
 * events.
 *
 * Input: recordings of programs that mark epochs and phases (<marey/iteration.h>). Output: a report of five tables.
 * Memory: about 200 bytes per epoch of a process. Does not know the command line or the page: the registry entry is in
 * epochs.c.
 */
#ifndef MAREY_ANALYZE_EPOCHS_INTERNAL_H
#define MAREY_ANALYZE_EPOCHS_INTERNAL_H

#include "analyze/walk/internal.h"
#include "report/internal.h"

/* The phases with a column, in the order of a training step; then the time outside of them. */
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
    uint32_t name; /* index in marey__epochs.names, which starts with the seven */
    uint64_t ns, count;
};

enum marey__epoch_flag {
    MAREY__EPOCH_FIRST = 1, /* of its process */
    MAREY__EPOCH_OPEN = 2,  /* never ended */
    MAREY__EPOCH_CUT = 4,   /* lost events */
    MAREY__EPOCH_COUNTS = 8,
};

/* An epoch of a process. */
struct marey__epoch_time {
    const struct marey_process *process;
    uint64_t number, ns, n_iterations;
    double samples; /* 0: unknown */
    uint64_t phase_ns[MAREY__N_PHASES];
    size_t first_part, n_parts; /* in marey__epochs.parts */
    uint32_t run, flags;
};

/* The same epoch on all ranks of a run: successive times. */
struct marey__epoch_group {
    size_t first, n;
    bool counts;
    size_t longest;     /* index of the time */
    size_t slowest;     /* index of the one that stands out; SIZE_MAX: none */
    uint64_t behind_ns; /* its excess */
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

/* State of making the report. */
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

/* Whole nanoseconds; saturates for times from a damaged log. */
static inline uint64_t marey__epoch_ns(double ns)
{
    return ns < 0x1p63 ? (uint64_t)(ns + 0.5) : UINT64_MAX;
}

/* epochs_tables.c: definitions and rows. Returns false on out of memory. */
extern const struct marey_table_definition marey__epoch_tables[MAREY__N_EPOCH_TABLES];
MAREY_WARN_UNUSED bool marey__epochs_fill(const struct marey__epochs *epochs);

/* epochs_text.c */
marey__put_answer marey__epochs_text;

#endif
