/*
 * breakdown_whole: the whole answer: processes put together, and its tables.
 */
#ifndef KYMO_BREAKDOWN_WHOLE_H
#define KYMO_BREAKDOWN_WHOLE_H

#include "analyze/breakdown_internal.h"
#include "analyze/collectives.h"
#include "analyze/idle.h"

/* What is known of one process. */
struct kymo__process_breakdown {
    kymo_recording *recording;
    size_t process;
    struct kymo__work_set set; /* once it is done: without work, launches and ranges */
    struct kymo__device_windows windows;
    struct kymo__device_rows devices, by;
    struct kymo__idle idle;
    uint64_t n_work, n_outside, outside_ns; /* work, and that which was launched in no step */
    bool is_left_out;                       /* it helps others, which speak for the run */
};

enum kymo__breakdown_table {
    KYMO__BROKEN_SUMMARY,
    KYMO__BROKEN_DEVICES,
    KYMO__BROKEN_BY,
    KYMO__BROKEN_IDLE,
    KYMO__BROKEN_IDLE_OPERATORS,
    KYMO__BROKEN_IDLE_STEPS,
    KYMO__BROKEN_COLLECTIVES,
    KYMO__BROKEN_COLLECTIVE_RANKS,
    KYMO__BROKEN_RULES,
    KYMO__BROKEN_LEGACY, /* where asked for */
    KYMO__BROKEN_WARNINGS,
    KYMO__N_BROKEN,
};

struct kymo_breakdown {
    char *title;
    kymo_table *tables[KYMO__N_BROKEN];
    struct kymo__rules rules;
    enum kymo__by by;
    enum kymo__window window;
    enum kymo__clocks clocks; /* by which collectives are compared */
    uint64_t n_nodes, clocks_within_ns,
        n_aligned_by; /* where they are aligned, as in struct kymo__collectives */
    bool clocks_drift;
    /* While it is made. */
    struct kymo__process_breakdown *processes;
    size_t n_processes;
    struct kymo__collectives collectives;
};

/* The tables from the processes; `recordings` for what they warn of themselves. */
KYMO_WARN_UNUSED kymo_status kymo__breakdown_make_tables(kymo_breakdown *breakdown,
                                                         kymo_recording *const *recordings, size_t n);
/* Fill the table of warnings. In breakdown_notes.c. */
void kymo__breakdown_put_warnings(kymo_table *table, const kymo_breakdown *breakdown,
                                  kymo_recording *const *recordings, size_t n);
/* As people and tables call them. */
extern const char *const kymo__window_names[2];
extern const char *const kymo__by_names[5];

#endif
