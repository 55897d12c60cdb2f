/* samples_slow.c: the function that makes slow steps slow. */
#ifndef MAREY_SAMPLES_SLOW_H
#define MAREY_SAMPLES_SLOW_H

#include "analyze/samples/samples.h"

struct marey__slow_function {
    uint32_t function; /* 0: none accounts for it, or no step is slow */
    uint64_t n_slow;   /* steps: more than 1.5 times the median of their process */
    double extra_ns,
        usual_ns; /* of a slow step: its time there beyond `usual_ns`, its time in other steps */
    double longer_ns; /* that a slow step takes longer than others */
};
/* MAREY_ENOMEM, and what reading gives. */
MAREY_WARN_UNUSED marey_status marey__samples_slow_function(struct marey__samples_set *set,
                                                            struct marey__slow_function *out);

#endif
