/*
 * kymo/live.h: what a sampler sees, while it samples (libkymo-tools). `kymo top` and `kymo watch` are made of it.
 *
 * A view hangs on a sampler and keeps the last seconds of what that sees, added up by thread and stack, and when each process
 * last moved. In the sampler's thread it costs one addition for each thread of a round.
 *
 *     kymo_live *live;
 *     if (kymo_live_create(5, &live) == KYMO_OK) {
 *         kymo_live_hang_on(live, sampler);
 *         ... kymo_sampler_run(sampler) in a thread of its own; here, now and then:
 *         kymo_live_table(live, KYMO_LIVE_FUNCTIONS, 0, 500, &table);
 *     }
 */
#ifndef KYMO_LIVE_H
#define KYMO_LIVE_H

#include <kymo/sampler.h>
#include <kymo/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kymo_live kymo_live;

/* `window_s`: how many seconds are kept; 0: 5. KYMO_EINVAL, KYMO_ENOMEM. Destroy it once its sampler does not run; NULL is fine. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_live_create(double window_s, kymo_live **out);
KYMO_API void kymo_live_destroy(kymo_live *live);
/* Become what the sampler tells its rounds to. Before kymo_sampler_run. */
KYMO_API void kymo_live_hang_on(kymo_live *live, kymo_sampler *sampler);

enum kymo_live_by {
    KYMO_LIVE_FUNCTIONS = 0, /* self total function place */
    KYMO_LIVE_LINES,         /* the same by line */
    KYMO_LIVE_THREADS, /* cpu gil rank worker pid thread now wait; rank and worker where there are any */
    KYMO_LIVE_RANKS, /* cpu gil rank worker pid threads now wait; one row for each process; `now` of its main thread */
};
enum kymo_live_flag {
    KYMO_LIVE_BY_TOTAL = 1, /* sorted by total and not by self */
    KYMO_LIVE_IDLE = 2,     /* time counts on all threads, waiting or not */
};

/*
 * The last seconds as a table; rows that matter most first. self and total are shares of all time that counts: by the
 * clock on main threads, and on others while they are on a processor. cpu and gil are shares of the time that the thread
 * was seen; those of a process are sums over its threads. The sampler's thread makes the table behind its next round, which is waited for `wait_ms` at most:
 * KYMO_ESTATE when none came. KYMO_ENOMEM. One thread asks at a time.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_live_table(kymo_live *live, enum kymo_live_by by,
                                                      unsigned flags, uint32_t wait_ms,
                                                      kymo_table **out);

/* Of the last seconds. Any thread. */
struct kymo_live_state {
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
KYMO_API void kymo_live_state_get(kymo_live *live, int ignore_cpu, struct kymo_live_state *out,
                                  size_t size);

/* The processes that were seen lately, at most `cap`: how many there are in all. Any thread. */
KYMO_API size_t kymo_live_pids(kymo_live *live, pid_t *pids, size_t cap);

#ifdef __cplusplus
}
#endif
#endif
