/* The sampler as a whole. Inside of core/sampler. */
#ifndef MAREY_SAMPLER_LOOP_H
#define MAREY_SAMPLER_LOOP_H

#include <stdatomic.h>

#include "sampler/loop/sampler_family.h"

struct marey_sampler {
    /* set by create */
    double rate_hz, duration_s, max_slowdown, audit_share;
    bool is_exact;  /* rounds are exact, as far as the budget allows */
    bool is_strict; /* a round that may not be exact is left out */
    bool has_fixed_gaps;
    marey_samples *samples;
    struct marey__samples_log *log; /* NULL: nothing is written */
    struct marey__looker looker;
    struct marey__family family;
    marey_sampler_on_round_fn *on_round;
    void *on_round_ctx;

    /* the sampler's thread alone */
    uint64_t begin_ns, next_ns, told_ns;
    uint64_t n_asked, n_missed, n_late, late_ns;
    uint64_t cpu_begin_ns;
    double n_looked;     /* processes in a round */
    double mean_look_ns; /* how long an exact round took us, lately */
    double mean_stop_ns; /* of an exact round, lately */

    _Atomic int is_stopped; /* stored by anybody; the loop alone loads it. Relaxed: it guards nothing */

    pthread_mutex_t lock; /* guards what is below */
    pid_t *joining;       /* put by anybody, taken by the sampler's thread */
    size_t n_joining, joining_cap;
    struct marey_sampler_counts told; /* put by the sampler's thread, read by anybody */
};

/* sampler_loop.c */
marey_status marey__sampler_loop(struct marey_sampler *sampler);
/* Sums as they are now, for others to read and for the recording. */
void marey__sampler_tell(struct marey_sampler *sampler);

#endif
