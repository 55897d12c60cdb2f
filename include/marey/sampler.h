/*
 * marey/sampler.h: what the Python of other processes is doing, read from outside (libmarey-tools).
 *
 * A sampler looks at Python processes at random moments, 100 times a second unless told otherwise, and writes down the
 * stack of each of their threads. Nothing runs in these processes and nothing is written into them. It reads
 *
 *   exact      the one thread that is read is stopped for some 50 us, and its stack is true. Up to 250 Hz by default
 *   snapshot   nothing is stopped; all threads of a process come with one read. Above 250 Hz by default. A random share
 *              of the samples is exact all the same, and tells how far the others are off
 *
 *     marey_sampler *sampler;
 *     const struct marey_sampler_options options = {.size = sizeof options, .path = "run.marey", .pids = &pid, .n_pids = 1};
 *     if (marey_sampler_create(&options, &sampler) == MAREY_OK) {
 *         marey_sampler_run(sampler);
 *         marey_sampler_destroy(sampler);
 *     }
 *
 * Children are followed from their birth. A process that is no Python (a shell, a launcher) is looked through: its
 * children are followed. All processes share one clock, one thread and one recording.
 *
 * A sampler belongs to the thread that calls marey_sampler_run; marey_sampler_stop, _add and _counts_get may be called from
 * any. If we die while a thread is stopped, the kernel lets it go on.
 */
#ifndef MAREY_SAMPLER_H
#define MAREY_SAMPLER_H

#include <sys/types.h>

#include <marey/samples.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct marey_sampler marey_sampler;

enum marey_sampler_strategy {
    MAREY_SAMPLER_AUTO = 0, /* exact up to 250 Hz, else snapshot */
    MAREY_SAMPLER_EXACT,
    MAREY_SAMPLER_SNAPSHOT,
};

/* Zero means the default for every field but `size`, which is sizeof of this struct. */
struct marey_sampler_options {
    size_t size;
    const char *path; /* the directory of the recording, made when it is not there; NULL: nothing is written */
    const pid_t *pids; /* lent for the call. One that cannot be read makes it fail, with a sentence that tells why */
    size_t n_pids;     /* 0: marey_sampler_add names them */
    double rate_hz;    /* rounds per second, of each process; 0: 100 */
    double duration_s; /* 0: until marey_sampler_stop, or until all processes have ended */
    enum marey_sampler_strategy strategy;
    int native; /* non-zero: native frames as well. Each sample then stops its thread, as exact ones do */
    int no_children; /* non-zero: only the processes that are named */
    double max_slowdown; /* the share of its time that a process may be kept stopped; 0: 0.005; 1 and more: no limit */
    uint64_t seed;      /* of gaps and audit; 0: another one each time */
    double audit_share; /* of snapshots that are exact as well; 0: 0.01; negative: none */
    int fixed_gaps; /* non-zero: equal gaps. They alias with programs that do the same thing again and again */
    uint32_t patience_ms; /* how long a process may take to become a Python; 0: 1000; UINT32_MAX: as long as it lives */
};

/*
 * `options` lent for the call. Processes are opened and the recording is begun; sampling begins with marey_sampler_run.
 * MAREY_EINVAL: an option makes no sense; MAREY_EUNAVAILABLE: a process cannot be read (no such, no Python, no permission;
 * the sentence says what to do); MAREY_EIO: the recording cannot be written.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_sampler_create(const struct marey_sampler_options *options, marey_sampler **out);

/*
 * One more process, any thread, before or while the sampler runs. It is opened by the sampler's thread; when it turns out
 * to be no Python within `patience_ms`, and to have no children that are, it is counted as skipped. MAREY_ENOMEM.
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
 * Sample until stopped, until the duration is over or all processes have ended; once. MAREY_EIO: the recording could not be
 * written any further; what was written stays. No thread is left stopped however it ends.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_sampler_run(marey_sampler *sampler);

/* Make marey_sampler_run return soon. Any thread, and signal handlers. */
MAREY_API void marey_sampler_stop(marey_sampler *sampler);

/* So far, or in all. Any thread. `size` is sizeof of the caller's struct, which may be an older, shorter one. */
struct marey_sampler_counts {
    double rate_hz, achieved_hz; /* asked; of each process, on the mean */
    uint64_t target_ns;          /* of all processes together; stop_ns of it were taken away */
    uint64_t late;               /* rounds over half a gap behind their time */
    uint64_t processes, alive, children,
        threads;              /* seen as Python; alive; born meanwhile; of all of them */
    uint64_t recording_bytes; /* written so far */
    struct marey_samples_counts all;
};
MAREY_API void marey_sampler_counts_get(const marey_sampler *sampler,
                                        struct marey_sampler_counts *counts, size_t size);
/* All that was numbered. Lent; only in on_round, or when the sampler does not run. */
MAREY_API const marey_samples *marey_sampler_samples(const marey_sampler *sampler);
/* "futex", "poll", "read socket": what a thread waited for (marey_samples_seen.wait). A static text, or `to`; "" for 0. */
MAREY_API const char *marey_sampler_wait_text(uint32_t wait, char *to, size_t cap);
/* Ends the recording. NULL is fine. */
MAREY_API void marey_sampler_destroy(marey_sampler *sampler);

/* ---- all threads of many processes, once ---- */

struct marey_sampler_failure {
    pid_t pid;
    const char *why; /* a sentence */
};

/* Made by marey_sampler_stacks_read, and freed by marey_sampler_stacks_free alone. May grow at its end. */
struct marey_sampler_stacks {
    const marey_samples *samples;
    const struct marey_samples_round *rounds; /* one for each process that could be read; weight 0 */
    size_t n_rounds;
    const struct marey_sampler_failure *failures; /* the others */
    size_t n_failures;
};

/*
 * Read the stacks of all threads of `n_pids` processes and, unless options->no_children, of their descendants, once. The
 * processes in parallel, each thread exact, native frames if asked. Of `options` (may be NULL) native, no_children and
 * patience_ms are used. A process that cannot be read is one of `failures`. MAREY_ENOMEM.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_sampler_stacks_read(
    const pid_t *pids, size_t n_pids, const struct marey_sampler_options *options,
    struct marey_sampler_stacks **out);
/* NULL is fine. */
MAREY_API void marey_sampler_stacks_free(struct marey_sampler_stacks *stacks);

#ifdef __cplusplus
}
#endif
#endif
