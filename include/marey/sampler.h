/*
 * marey/sampler.h: sample the Python stacks of other processes from outside (libmarey-tools).
 *
 * A sampler reads the stacks of all threads of Python processes at random intervals, by default 100 times per second. It
 * runs no code in these processes and does not write to them. Modes:
 *
 *   exact      stops the thread being read for about 50 us, so its stack is consistent. Default up to 250 Hz
 *   snapshot   stops nothing; reads all threads of a process at once. Default above 250 Hz. A random share of the samples
 *              is exact, to measure the error of the others
 *
 *     marey_sampler *sampler;
 *     const struct marey_sampler_options options = {.size = sizeof options, .path = "run.marey", .pids = &pid, .n_pids = 1};
 *     if (marey_sampler_create(&options, &sampler) == MAREY_OK) {
 *         marey_sampler_run(sampler);
 *         marey_sampler_destroy(sampler);
 *     }
 *
 * Children are followed from their start, also those of processes without Python (a shell, a launcher). All processes share
 * one clock, one thread and one recording.
 *
 * A sampler belongs to the thread that calls marey_sampler_run; any thread may call marey_sampler_stop, _add and
 * _counts_get. If the sampler dies while a thread is stopped, the kernel resumes that thread.
 */
#ifndef MAREY_SAMPLER_H
#define MAREY_SAMPLER_H

#include <sys/types.h>

#include <marey/samples.h>

MAREY_BEGIN_C

typedef struct marey_sampler marey_sampler;

enum marey_sampler_strategy {
    MAREY_SAMPLER_AUTO = 0, /* exact up to 250 Hz, else snapshot */
    MAREY_SAMPLER_EXACT,
    MAREY_SAMPLER_SNAPSHOT,
};

/* Zero means the default for every field but `size`, which is sizeof of this struct. */
struct marey_sampler_options {
    size_t size;
    const char *path;  /* the recording, created if missing; NULL: write nothing */
    const pid_t *pids; /* lent for the call. Creation fails if one cannot be read */
    size_t n_pids;     /* 0: use marey_sampler_add */
    double rate_hz;    /* rounds per second and process; 0: 100 */
    double duration_s; /* 0: until marey_sampler_stop, or until all processes have ended */
    enum marey_sampler_strategy strategy;
    int native;      /* non-zero: include native frames. Every sample then stops its thread */
    int no_children; /* non-zero: only the given processes */
    double max_slowdown; /* maximum share of time a process is stopped; 0: 0.005; 1 and more: no limit */
    uint64_t seed;       /* of intervals and audit; 0: random */
    double audit_share; /* share of snapshots that are also read exactly; 0: 0.01; negative: none */
    int fixed_gaps;     /* non-zero: equal intervals. They alias with periodic programs */
    uint32_t patience_ms; /* time for a process to start Python; 0: 1000; UINT32_MAX: no limit */
    int pauses; /* non-zero: no samples in a random eighth of the time, so that a report can measure what sampling costs */
    int counters; /* non-zero: CPU contention, page faults and I/O of all processes, as counters in the recording */
    int programs; /* non-zero: native stacks of programs without Python, unless a sampled process runs Python. Stops running threads */
};

/*
 * Open the processes and create the recording; marey_sampler_run starts sampling. `options` lent for the call.
 * MAREY_EINVAL: invalid option. MAREY_EUNAVAILABLE: a process cannot be read (not found, not Python, no permission; the
 * message describes the fix). MAREY_EIO: the recording cannot be written.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_sampler_create(const struct marey_sampler_options *options, marey_sampler **out);

/*
 * Add a process, before or while the sampler runs. The sampler's thread opens it. If neither it nor a child runs Python
 * within `patience_ms`, it is counted as skipped. MAREY_ENOMEM. Any thread.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_sampler_add(marey_sampler *sampler, pid_t pid);

/*
 * Called in the sampler's thread after each round of each process, before it sleeps. `samples` and `round` are lent for
 * the call. Set it before marey_sampler_run; NULL: none.
 */
typedef void marey_sampler_on_round_fn(void *ctx, const marey_samples *samples,
                                       const struct marey_samples_round *round);
MAREY_API void marey_sampler_on_round(marey_sampler *sampler, marey_sampler_on_round_fn *call,
                                      void *ctx);

/*
 * Sample until stopped, until the duration is over or all processes have ended. Call once. MAREY_EIO: writing the recording
 * failed; data written before stays. Never leaves a thread stopped.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_sampler_run(marey_sampler *sampler);

/* Make marey_sampler_run return soon. Any thread, and signal handlers. */
MAREY_API void marey_sampler_stop(marey_sampler *sampler);

/* Counts so far, or in total. Any thread. `size` is sizeof of the caller's struct, possibly an older, shorter one. */
struct marey_sampler_counts {
    double rate_hz, achieved_hz; /* requested; mean per process */
    uint64_t target_ns;          /* sampled time, summed over processes; includes all.stop_ns */
    uint64_t late;               /* rounds late by more than half an interval */
    uint64_t processes, alive, children,
        threads;              /* Python processes; alive; started meanwhile; threads of all */
    uint64_t recording_bytes; /* written so far */
    struct marey_samples_counts all;
};
MAREY_API void marey_sampler_counts_get(const marey_sampler *sampler,
                                        struct marey_sampler_counts *counts, size_t size);
/* The collected samples. Lent; use only in on_round, or when the sampler does not run. */
MAREY_API const marey_samples *marey_sampler_samples(const marey_sampler *sampler);
/* Why a process may not be read, with what to type; "": all that were found may. Lent; use only when the sampler does not run. */
MAREY_API const char *marey_sampler_refusal(const marey_sampler *sampler);
/* "futex", "poll", "read socket": what a thread waited for (marey_samples_seen.wait). Returns a static string, or `to`; "" for 0. */
MAREY_API const char *marey_sampler_wait_text(uint32_t wait, char *to, size_t cap);
/* Closes the recording. Accepts NULL. */
MAREY_API void marey_sampler_destroy(marey_sampler *sampler);

/* ---- all threads of many processes, once ---- */

struct marey_sampler_failure {
    pid_t pid;
    const char *why; /* a sentence */
};

/* Created by marey_sampler_stacks_read, freed only by marey_sampler_stacks_free. New fields are appended. */
struct marey_sampler_stacks {
    const marey_samples *samples;
    const struct marey_samples_round *rounds; /* one per readable process; weight 0 */
    size_t n_rounds;
    const struct marey_sampler_failure *failures; /* the others */
    size_t n_failures;
};

/*
 * Read the stacks of all threads of `n_pids` processes and, unless options->no_children, of their descendants, once. Reads
 * processes in parallel and every thread exactly. Uses native, no_children and patience_ms of `options` (may be NULL).
 * Unreadable processes are in `failures`. MAREY_ENOMEM.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_sampler_stacks_read(
    const pid_t *pids, size_t n_pids, const struct marey_sampler_options *options,
    struct marey_sampler_stacks **out);
/* Accepts NULL. */
MAREY_API void marey_sampler_stacks_free(struct marey_sampler_stacks *stacks);

MAREY_END_C
#endif
