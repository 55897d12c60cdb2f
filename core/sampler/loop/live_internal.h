/*
 * live: the last seconds of what a sampler sees. A window is a ring of buckets, each a part of it:
 *
 *     on_round -> newest bucket: time by (thread, stack)          the oldest bucket is emptied and becomes the newest
 *              -> threads: where each is now
 *              -> processes: when each last moved
 *     table    <- all buckets, frames by the sampler's store      in the sampler's thread, the only one that may read it
 */
#ifndef MAREY_SAMPLER_LIVE_INTERNAL_H
#define MAREY_SAMPLER_LIVE_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>

#include "base/base_internal.h"
#include <marey/live.h>

/* ---- live_window.c ---- */

struct marey__live_sum {
    uint32_t thread, stack; /* numbers in the store */
    uint64_t wall_ns, cpu_ns, gil_ns, gc_ns;
};

struct marey__live_bucket {
    uint64_t begin_ns;
    struct marey__live_sum *sums;
    size_t n, cap;
    uint32_t *index; /* numbers of sums plus one, by their hash; 0: free */
    size_t n_index;  /* a power of two, or 0 */
};

/* False without memory. */
bool marey__live_bucket_add(struct marey__live_bucket *bucket,
                            const struct marey_samples_seen *seen, uint64_t weight_ns);
/* Its memory is kept. */
void marey__live_bucket_empty(struct marey__live_bucket *bucket);
void marey__live_bucket_fini(struct marey__live_bucket *bucket);

/* ---- live.c ---- */

enum { MAREY__LIVE_BUCKETS = 10 };

struct marey__live_thread {
    uint32_t process, stack, flags, wait; /* process 0: never seen */
    uint64_t seen_ns;
    bool is_main;
};

struct marey__live_process {
    uint64_t seen_ns; /* 0: never */
    uint64_t stack_ns,
        cpu_ns; /* when a stack last changed, and when it last took time of a processor */
    uint64_t cpu_used_ns, cpu_at; /* what its clock said then */
    size_t n_threads;
    pid_t pid;
};

struct marey_live {
    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t made;  /* a table was */
    uint64_t window_ns, first_ns, last_ns;
    struct marey__live_bucket buckets[MAREY__LIVE_BUCKETS];
    size_t newest;
    struct marey__live_thread *threads; /* by number, from 1 */
    size_t n_threads, threads_cap;
    struct marey__live_process *processes; /* by number, from 1 */
    size_t n_processes, processes_cap;
    uint64_t n_lost;

    bool is_wanted; /* a table is asked for */
    enum marey_live_by by;
    unsigned flags;
    marey_table *table; /* the answer; NULL: no memory */
};

/* What hangs on a sampler. */
marey_sampler_on_round_fn marey__live_round;

/* Where a thread or process counts as here: it was seen in the last seconds. */
bool marey__live_is_recent(const struct marey_live *live, uint64_t seen_ns);

/* ---- live_tables.c ---- */

/* The table that is asked for; NULL without memory. In the sampler's thread, with the lock held. */
marey_table *marey__live_make(struct marey_live *live, const marey_samples *samples);

/* ---- live_place.c ---- */

/* "train.py:12", "torch/nn/modules/module.py:1501", "libtorch_cpu.so": where it is, for people. `line` 0: without. */
void marey__live_place(struct marey__buf *buf, const struct marey_samples_function *function,
                       uint32_t line);

#endif
