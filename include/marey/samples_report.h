/*
 * marey/samples_report.h: which stack samples count, for exports (libmarey-tools). The report "samples" of
 * <marey/report.h> takes the same as settings.
 *
 * Where a sampled process has a log as well, its ranges and iterations choose samples, on the one clock of the machine.
 */
#ifndef MAREY_SAMPLES_REPORT_H
#define MAREY_SAMPLES_REPORT_H

#include <marey/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which samples count. Zeroed: the main thread of each process all the time, others while they are on a processor. */
struct marey_samples_filter {
    /*
     * "wall", NULL: as above. "cpu": threads on a processor. "gil": those that hold the interpreter lock. "exception": those
     * that handle one.
     */
    const char *mode;
    /*
     * With "wall": all threads, all the time. Else idle processes are left out where another one works and neither thread,
     * rank nor process is asked for: those on a CPU core for less than 5 % of their time that have no rank, or are workers
     * of one, and count no steps; launchers, from which ranks descend; and workers while they wait for their next task.
     * Notes have the times.
     */
    int idle;
    /* The next four by the log of the process itself; where it has none, the last three by its parent's. */
    const char *range; /* threads that have a range open of this name, or that matches it where it has one of *?[ */
    const char *iterations; /* "slow", "7", "10..20", "10..", "..20": while one of these runs */
    const char *epochs;     /* "2", "1..3" */
    const char *phase;      /* as `range` */
    const char *thread;     /* of threads by their name, as the filter of names */
    const char *rank;       /* a number: processes of this rank */
    /* A PID; "worker": workers of data loaders, "worker2" one of them; "main": all others; or a part of a command. */
    const char *process;
    /*
     * Imports before the work begins count, and importlib has its frames. Else these imports are left out, and a note says how
     * long they took; the time of other imports is that of the frame around importlib.
     */
    int startup;
};

#ifdef __cplusplus
}
#endif
#endif
