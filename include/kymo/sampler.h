/*
 * kymo/sampler.h: what the Python of other processes is doing, read from outside (libkymo-tools).
 *
 * A sampler looks at Python processes at random moments, 100 times a second unless told otherwise, and writes down the
 * stack of each of their threads. Nothing runs in these processes and nothing is written into them. It reads
 *
 *   exact      the one thread that is read is stopped for some 50 us, and its stack is true. Up to 250 Hz by default
 *   snapshot   nothing is stopped; all threads of a process come with one read. Above 250 Hz by default. A random share
 *              of the samples is exact all the same, and tells how far the others are off
 *
 *     kymo_sampler *sampler;
 *     const struct kymo_sampler_options options = {.size = sizeof options, .path = "run.kymo", .pids = &pid, .n_pids = 1};
 *     if (kymo_sampler_create(&options, &sampler) == KYMO_OK) {
 *         kymo_sampler_run(sampler);
 *         kymo_sampler_destroy(sampler);
 *     }
 *
 * Children are followed from their birth. A process that is no Python (a shell, a launcher) is looked through: its
 * children are followed. All processes share one clock, one thread and one recording.
 *
 * A sampler belongs to the thread that calls kymo_sampler_run; kymo_sampler_stop, _add and _counts_get may be called from
 * any. If we die while a thread is stopped, the kernel lets it go on.
 */
#ifndef KYMO_SAMPLER_H
#define KYMO_SAMPLER_H

#include <sys/types.h>

#include <kymo/samples.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kymo_sampler kymo_sampler;

enum kymo_sampler_strategy {
    KYMO_SAMPLER_AUTO = 0, /* exact up to 250 Hz, else snapshot */
    KYMO_SAMPLER_EXACT,
    KYMO_SAMPLER_SNAPSHOT,
};

/* Zero means the default for every field but `size`, which is sizeof of this struct. */
struct kymo_sampler_options {
    size_t size;
    const char *path; /* the directory of the recording, made when it is not there; NULL: nothing is written */
    const pid_t *pids; /* lent for the call. One that cannot be read makes it fail, with a sentence that tells why */
    size_t n_pids;     /* 0: kymo_sampler_add names them */
    double rate_hz;    /* rounds per second, of each process; 0: 100 */
    double duration_s; /* 0: until kymo_sampler_stop, or until all processes have ended */
    enum kymo_sampler_strategy strategy;
    int native; /* non-zero: native frames as well. Each sample then stops its thread, as exact ones do */
    int no_children; /* non-zero: only the processes that are named */
    double max_slowdown; /* the share of its time that a process may be kept stopped; 0: 0.005; 1 and more: no limit */
    uint64_t seed;      /* of gaps and audit; 0: another one each time */
    double audit_share; /* of snapshots that are exact as well; 0: 0.01; negative: none */
    int fixed_gaps; /* non-zero: equal gaps. They alias with programs that do the same thing again and again */
    uint32_t patience_ms; /* how long a process may take to become a Python; 0: 1000; UINT32_MAX: as long as it lives */
};

/*
 * `options` lent for the call. Processes are opened and the recording is begun; sampling begins with kymo_sampler_run.
 * KYMO_EINVAL: an option makes no sense; KYMO_EUNAVAILABLE: a process cannot be read (no such, no Python, no permission;
 * the sentence says what to do); KYMO_EIO: the recording cannot be written.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_sampler_create(const struct kymo_sampler_options *options,
                                                          kymo_sampler **out);

/*
 * One more process, any thread, before or while the sampler runs. It is opened by the sampler's thread; when it turns out
 * to be no Python within `patience_ms`, and to have no children that are, it is counted as skipped. KYMO_ENOMEM.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_sampler_add(kymo_sampler *sampler, pid_t pid);

/*
 * Called in the sampler's thread after each round of each process, before it sleeps. `samples` and `round` are lent for
 * the call. Set it before kymo_sampler_run; NULL: none.
 */
typedef void kymo_sampler_on_round_fn(void *ctx, const kymo_samples *samples,
                                      const struct kymo_samples_round *round);
KYMO_API void kymo_sampler_on_round(kymo_sampler *sampler, kymo_sampler_on_round_fn *call, void *ctx);

/*
 * Sample until stopped, until the duration is over or all processes have ended; once. KYMO_EIO: the recording could not be
 * written any further; what was written stays. No thread is left stopped however it ends.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_sampler_run(kymo_sampler *sampler);

/* Make kymo_sampler_run return soon. Any thread, and signal handlers. */
KYMO_API void kymo_sampler_stop(kymo_sampler *sampler);

/* So far, or in all. Any thread. `size` is sizeof of the caller's struct, which may be an older, shorter one. */
struct kymo_sampler_counts {
    double rate_hz, achieved_hz; /* asked; of each process, on the mean */
    uint64_t target_ns;          /* of all processes together; stop_ns of it were taken away */
    uint64_t late;               /* rounds over half a gap behind their time */
    uint64_t processes, alive, children,
        threads;              /* seen as Python; alive; born meanwhile; of all of them */
    uint64_t recording_bytes; /* written so far */
    struct kymo_samples_counts all;
};
KYMO_API void kymo_sampler_counts_get(const kymo_sampler *sampler,
                                      struct kymo_sampler_counts *counts, size_t size);
/* All that was numbered. Lent; only in on_round, or when the sampler does not run. */
KYMO_API const kymo_samples *kymo_sampler_samples(const kymo_sampler *sampler);
/* "futex", "poll", "read socket": what a thread waited for (kymo_samples_seen.wait). A static text, or `to`; "" for 0. */
KYMO_API const char *kymo_sampler_wait_text(uint32_t wait, char *to, size_t cap);
/* Ends the recording. NULL is fine. */
KYMO_API void kymo_sampler_destroy(kymo_sampler *sampler);

/* ---- all threads of many processes, once ---- */

struct kymo_sampler_failure {
    pid_t pid;
    const char *why; /* a sentence */
};

/* Made by kymo_sampler_stacks_read, and freed by kymo_sampler_stacks_free alone. May grow at its end. */
struct kymo_sampler_stacks {
    const kymo_samples *samples;
    const struct kymo_samples_round *rounds; /* one for each process that could be read; weight 0 */
    size_t n_rounds;
    const struct kymo_sampler_failure *failures; /* the others */
    size_t n_failures;
};

/*
 * Read the stacks of all threads of `n_pids` processes and, unless options->no_children, of their descendants, once. The
 * processes in parallel, each thread exact, native frames if asked. Of `options` (may be NULL) native, no_children and
 * patience_ms are used. A process that cannot be read is one of `failures`. KYMO_ENOMEM.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_sampler_stacks_read(const pid_t *pids, size_t n_pids,
                                                               const struct kymo_sampler_options *options,
                                                               struct kymo_sampler_stacks **out);
/* NULL is fine. */
KYMO_API void kymo_sampler_stacks_free(struct kymo_sampler_stacks *stacks);

#ifdef __cplusplus
}
#endif
#endif
