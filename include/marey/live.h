/*
 * marey/live.h: live view of a running sampler (libmarey-tools), used by `marey top` and `marey watch`.
 *
 * A view attaches to a sampler and keeps the samples of the last seconds, summed by thread and stack, and the time of the
 * last progress of each process. It costs the sampler's thread one addition per thread and round.
 *
 *     marey_live *live;
 *     if (marey_live_create(5, &live) == MAREY_OK) {
 *         marey_live_attach(live, sampler);
 *         ... marey_sampler_run(sampler) in another thread; here, repeatedly:
 *         marey_live_table(live, MAREY_LIVE_FUNCTIONS, 0, 500, &table);
 *     }
 */
#ifndef MAREY_LIVE_H
#define MAREY_LIVE_H

#include <marey/sampler.h>
#include <marey/table.h>

MAREY_BEGIN_C

typedef struct marey_live marey_live;

/* `window_s`: seconds to keep; 0: 5. MAREY_EINVAL, MAREY_ENOMEM. Destroy after its sampler has stopped; accepts NULL. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_live_create(double window_s, marey_live **out);
MAREY_API void marey_live_destroy(marey_live *live);
/* Receive the sampler's rounds: sets marey_sampler_on_round(). Call before marey_sampler_run. */
MAREY_API void marey_live_attach(marey_live *live, marey_sampler *sampler);

enum marey_live_by {
    MAREY_LIVE_FUNCTIONS = 0, /* self total function place */
    MAREY_LIVE_LINES,         /* the same by line */
    MAREY_LIVE_THREADS, /* cpu gil rank worker pid thread now wait; rank and worker only if there are any */
    MAREY_LIVE_RANKS, /* cpu gil rank worker pid threads now wait; one row for each process; `now` of its main thread */
};
enum marey_live_flag {
    MAREY_LIVE_BY_TOTAL = 1, /* sort by total instead of self */
    MAREY_LIVE_IDLE = 2,     /* count all threads, waiting or not */
};

/*
 * The last seconds as a table, largest rows first. self and total are shares of the counted time: wall clock for main
 * threads, on-CPU time for others. cpu and gil are shares of the time in which the thread was sampled; those of a process
 * are sums over its threads. The sampler's thread creates the table after its next round; MAREY_ESTATE if there is none
 * within `wait_ms`. MAREY_ENOMEM. One thread at a time.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_live_table(marey_live *live, enum marey_live_by by,
                                                          unsigned flags, uint32_t wait_ms,
                                                          marey_table **out);

/* State over the last seconds. Any thread. */
struct marey_live_state {
    uint64_t n_processes, n_threads; /* sampled */
    double cpu, gil, gc; /* mean number of threads on a CPU core, holding a GIL, collecting garbage */
    uint64_t seen_ns;    /* sampled part of these seconds; 0: nothing yet */
    uint64_t still_ns;   /* time without progress, see below */
    uint64_t n_lost;     /* samples lost on out of memory */
};
/*
 * `still_ns`: how long no thread of any process changed its stack, started or ended, and no process used 2 % of a CPU core.
 * `ignore_cpu` ignores CPU use, for threads that spin while they wait for a GPU or a peer.
 */
MAREY_API void marey_live_state_get(marey_live *live, int ignore_cpu, struct marey_live_state *out,
                                    size_t size);

/* Recently sampled processes, at most `cap`. Returns their total number. Any thread. */
MAREY_API size_t marey_live_pids(marey_live *live, pid_t *pids, size_t cap);

MAREY_END_C
#endif
