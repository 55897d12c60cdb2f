/* Times in which samples count: spans of ranges, iterations, epochs and phases (samples_join.c). */
#ifndef MAREY_SAMPLES_SPANS_H
#define MAREY_SAMPLES_SPANS_H

#include "analyze/samples/samples.h"

/* Once finished: in order, none touching another. */
struct marey__spans {
    struct marey__time_span {
        uint64_t begin_ns, end_ns; /* up to the end, which is not in it */
    } * items;
    size_t n, cap;
};
bool marey__spans_have(const struct marey__spans *spans, uint64_t ns);
void marey__spans_fini(struct marey__spans *spans);

/* Numbers from `first` to `last`, or those that are slow. */
struct marey__numbers {
    bool is_slow;
    uint64_t first, last;
};

/* What "slow" came to in all processes together. */
struct marey__slow_found {
    uint64_t n_iterations, n_slow;
    bool is_by_rank; /* none was above the limit: those are the slowest of a process */
};

/* Ranges of a thread by the name or pattern `name`, by thread of the store. False in `*is_there`: no site is called so. */
MAREY_WARN_UNUSED marey_status marey__samples_join_ranges(struct marey__samples_set *set,
                                                          const char *name,
                                                          struct marey__spans *by_thread,
                                                          bool *is_there);
/* The next three by process of the store; a process without a log has none. */
MAREY_WARN_UNUSED marey_status marey__samples_join_iterations(struct marey__samples_set *set,
                                                              const struct marey__numbers *which,
                                                              struct marey__spans *by_process,
                                                              struct marey__slow_found *slow);
MAREY_WARN_UNUSED marey_status marey__samples_join_epochs(struct marey__samples_set *set,
                                                          const struct marey__numbers *which,
                                                          struct marey__spans *by_process);
MAREY_WARN_UNUSED marey_status marey__samples_join_phases(struct marey__samples_set *set,
                                                          const char *name,
                                                          struct marey__spans *by_process);

#endif
