/*
 * iteration: the one count of iterations in a process, its driver, epochs and phases; and whoever works by iterations.
 */
#ifndef MAREY_ITERATION_INTERNAL_H
#define MAREY_ITERATION_INTERNAL_H

#include "base/base_internal.h"
#include <marey/iteration.h>

/* What a subscriber is told of an iteration that ended. */
struct marey__iteration {
    uint64_t number; /* from 0 */
    bool is_warmup;
    bool next_is_warmup; /* the one that begins now */
    bool has_begin;      /* it is known when it began; else `duration_ns` is 0 */
    uint64_t duration_ns;
    double samples; /* 0: not known */
};

/*
 * Somebody who works by iterations. `finished` is called at each iteration that counts, on the thread that ended it;
 * `warmup_set` when it changes whether the iteration that runs is warm-up; `epoch_edge` where an epoch begins or ends.
 * No lock is held. Each may be NULL.
 */
struct marey__iteration_subscriber {
    void (*finished)(const struct marey__iteration *iteration);
    void (*warmup_set)(bool in_warmup);
    void (*epoch_edge)(void);
};

/*
 * The table is small and fixed: false when it is full. Who is there already is not added again. `subscriber` is lent for
 * good. An iteration whose begin nobody knows begins now.
 */
bool marey__iteration_subscribe(const struct marey__iteration_subscriber *subscriber);
void marey__iteration_unsubscribe(const struct marey__iteration_subscriber *subscriber);

/* How many iterations are finished, and how many from the first on are warm-up. */
struct marey__iteration_place {
    uint64_t n_finished, warmup_end;
};
struct marey__iteration_place marey__iteration_place(void);
/* The next `n` iterations are warm-up, besides those that are already. */
void marey__iteration_more_warmup(uint64_t n);

#endif
