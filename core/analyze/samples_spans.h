/* Times in which samples count: spans of ranges, iterations, epochs and phases (samples_join.c). */
#ifndef KYMO_SAMPLES_SPANS_H
#define KYMO_SAMPLES_SPANS_H

#include "analyze/samples.h"

/* Once finished: in order, none touching another. */
struct kymo__spans {
    struct kymo__time_span {
        uint64_t begin_ns, end_ns; /* up to the end, which is not in it */
    } * items;
    size_t n, cap;
};
bool kymo__spans_have(const struct kymo__spans *spans, uint64_t ns);
void kymo__spans_fini(struct kymo__spans *spans);

/* Numbers from `first` to `last`, or those that are slow. */
struct kymo__numbers {
    bool is_slow;
    uint64_t first, last;
};

/* What "slow" came to in all processes together. */
struct kymo__slow_found {
    uint64_t n_iterations, n_slow;
    bool is_by_rank; /* none was above the limit: those are the slowest of a process */
};

/* Ranges of a thread by the name or pattern `name`, by thread of the store. False in `*is_there`: no site is called so. */
KYMO_WARN_UNUSED kymo_status kymo__samples_join_ranges(struct kymo__samples_set *set,
                                                       const char *name,
                                                       struct kymo__spans *by_thread, bool *is_there);
/* The next three by process of the store; a process without a log has none. */
KYMO_WARN_UNUSED kymo_status kymo__samples_join_iterations(struct kymo__samples_set *set,
                                                           const struct kymo__numbers *which,
                                                           struct kymo__spans *by_process,
                                                           struct kymo__slow_found *slow);
KYMO_WARN_UNUSED kymo_status kymo__samples_join_epochs(struct kymo__samples_set *set,
                                                       const struct kymo__numbers *which,
                                                       struct kymo__spans *by_process);
KYMO_WARN_UNUSED kymo_status kymo__samples_join_phases(struct kymo__samples_set *set,
                                                       const char *name,
                                                       struct kymo__spans *by_process);

#endif
