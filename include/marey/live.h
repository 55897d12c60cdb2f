/*
 * marey/live.h: what a sampler sees, while it samples (libmarey-tools). `marey top` and `marey watch` are made of it.
 *
 * A view hangs on a sampler and keeps the last seconds of what that sees, added up by thread and stack, and when each process
 * last moved. In the sampler's thread it costs one addition for each thread of a round.
 *
 *     marey_live *live;
 *     if (marey_live_create(5, &live) == MAREY_OK) {
 *         marey_live_attach(live, sampler);
 *         ... marey_sampler_run(sampler) in a thread of its own; here, now and then:
 *         marey_live_table(live, MAREY_LIVE_FUNCTIONS, 0, 500, &table);
 *     }
 */
#ifndef MAREY_LIVE_H
#define MAREY_LIVE_H

#include <marey/sampler.h>
#include <marey/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct marey_live marey_live;

/* `window_s`: how many seconds are kept; 0: 5. MAREY_EINVAL, MAREY_ENOMEM. Destroy it once its sampler does not run; NULL is fine. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_live_create(double window_s, marey_live **out);
MAREY_API void marey_live_destroy(marey_live *live);
/* Become what the sampler tells its rounds to. Before marey_sampler_run. */
MAREY_API void marey_live_attach(marey_live *live, marey_sampler *sampler);

enum marey_live_by {
    MAREY_LIVE_FUNCTIONS = 0, /* self total function place */
    MAREY_LIVE_LINES,         /* the same by line */
    MAREY_LIVE_THREADS, /* cpu gil rank worker pid thread now wait; rank and worker where there are any */
    MAREY_LIVE_RANKS, /* cpu gil rank worker pid threads now wait; one row for each process; `now` of its main thread */
};
enum marey_live_flag {
    MAREY_LIVE_BY_TOTAL = 1, /* sorted by total and not by self */
    MAREY_LIVE_IDLE = 2,     /* time counts on all threads, waiting or not */
};

/*
 * The last seconds as a table; rows that matter most first. self and total are shares of all time that counts: by the
 * clock on main threads, and on others while they are on a processor. cpu and gil are shares of the time that the thread
 * was seen; those of a process are sums over its threads. The sampler's thread makes the table behind its next round, which is waited for `wait_ms` at most:
 * MAREY_ESTATE when none came. MAREY_ENOMEM. One thread asks at a time.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_live_table(marey_live *live, enum marey_live_by by,
                                                          unsigned flags, uint32_t wait_ms,
                                                          marey_table **out);

/* Of the last seconds. Any thread. */
struct marey_live_state {
    uint64_t n_processes, n_threads; /* that were seen */
    double cpu, gil,
        gc; /* how many threads were on a processor, held a lock of an interpreter, collected garbage, on the mean */
    uint64_t seen_ns;  /* of these seconds, how much has been seen; 0: nothing yet */
    uint64_t still_ns; /* for how long nothing has moved, see below */
    uint64_t n_lost;   /* samples that found no memory */
};
/*
 * `still_ns`: no thread of any process had another stack than before, none came or went, and no process took 2 % of a
 * processor, for that long. With `ignore_cpu`, whatever processors do: threads that spin until a GPU or a peer answers.
 */
MAREY_API void marey_live_state_get(marey_live *live, int ignore_cpu, struct marey_live_state *out,
                                    size_t size);

/* The processes that were seen lately, at most `cap`: how many there are in all. Any thread. */
MAREY_API size_t marey_live_pids(marey_live *live, pid_t *pids, size_t cap);

#ifdef __cplusplus
}
#endif
#endif
