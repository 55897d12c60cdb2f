/*
 * breakdown_whole: the whole answer: processes put together, and its tables.
 */
#ifndef MAREY_BREAKDOWN_WHOLE_H
#define MAREY_BREAKDOWN_WHOLE_H

#include "analyze/device/breakdown_internal.h"
#include "analyze/device/collectives.h"
#include "analyze/device/idle.h"

/* What is known of one process. */
struct marey__process_breakdown {
    marey_recording *recording;
    size_t process;
    struct marey__work_set set; /* once it is done: without work, launches and ranges */
    struct marey__device_windows windows;
    struct marey__device_rows devices, by;
    struct marey__idle idle;
    uint64_t n_work, n_outside, outside_ns; /* work, and that which was launched in no step */
    bool is_left_out;                       /* it helps others, which speak for the run */
};

enum marey__breakdown_table {
    MAREY__BROKEN_SUMMARY,
    MAREY__BROKEN_DEVICES,
    MAREY__BROKEN_BY,
    MAREY__BROKEN_IDLE,
    MAREY__BROKEN_IDLE_OPERATORS,
    MAREY__BROKEN_IDLE_STEPS,
    MAREY__BROKEN_COLLECTIVES,
    MAREY__BROKEN_COLLECTIVE_RANKS,
    MAREY__BROKEN_RULES,
    MAREY__BROKEN_WARNINGS,
    MAREY__N_BROKEN,
};

struct marey_breakdown {
    char *title;
    marey_table *tables[MAREY__N_BROKEN];
    struct marey__rules rules;
    enum marey__by by;
    enum marey__window window;
    enum marey__clocks clocks; /* by which collectives are compared */
    uint64_t n_nodes, clocks_within_ns,
        n_aligned_by; /* where they are aligned, as in struct marey__collectives */
    bool clocks_drift;
    /* While it is made. */
    struct marey__process_breakdown *processes;
    size_t n_processes;
    struct marey__collectives collectives;
};

/* The tables from the processes; `recordings` for what they warn of themselves. */
MAREY_WARN_UNUSED marey_status marey__breakdown_make_tables(marey_breakdown *breakdown,
                                                            marey_recording *const *recordings,
                                                            size_t n);
/* Fill the table of warnings. In breakdown_notes.c. */
void marey__breakdown_put_warnings(marey_table *table, const marey_breakdown *breakdown,
                                   marey_recording *const *recordings, size_t n);
/* As people and tables call them. */
extern const char *const marey__window_names[2];
extern const char *const marey__by_names[5];

#endif
