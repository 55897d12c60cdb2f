/*
 * marey/samples_report.h: filter of stack samples, for exports (libmarey-tools). The report "samples" of <marey/report.h>
 * has the same settings.
 *
 * If a sampled process also has a log, its ranges and iterations can select samples; both use the machine's clock.
 */
#ifndef MAREY_SAMPLES_REPORT_H
#define MAREY_SAMPLES_REPORT_H

#include <marey/base.h>

MAREY_BEGIN_C

/* Which samples count. Zeroed: main threads by wall clock, other threads while on a CPU core. */
struct marey_samples_filter {
    /*
     * "wall", NULL: as above. "cpu": threads on a CPU core. "gil": threads that hold the GIL. "exception": threads that
     * handle an exception.
     */
    const char *mode;
    /*
     * With "wall": all threads by wall clock. Otherwise, if another process works and no thread, rank or process is
     * selected, idle processes are omitted: those below 5 % CPU that count no steps and have no rank, or are workers of
     * one; launchers, which are ancestors of ranks; and workers while they wait for their next task. Notes list the
     * omitted times.
     */
    int idle;
    /* The next four use the log of the process; if it has none, the last three use its parent's. */
    const char *range; /* threads with an open range of this name, or matching this pattern if it has one of *?[ */
    const char *iterations; /* "slow", "7", "10..20", "10..", "..20": while one of these runs */
    const char *epochs;     /* "2", "1..3" */
    const char *phase;      /* name or pattern, as `range` */
    const char *thread;     /* thread name, as the filter of names */
    const char *rank;       /* a number: processes of this rank */
    /* A PID; "worker": all data-loader workers; "worker2": one of them; "main": all others; or part of a command. */
    const char *process;
    /*
     * Count imports at start-up, and show the frames of importlib. Otherwise these imports are omitted, and a note has their
     * time; the time of later imports counts for the frame that calls importlib.
     */
    int startup;
};

MAREY_END_C
#endif
