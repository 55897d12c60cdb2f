/* The logs of a directory looked at together; log_check.c says for what. */
#ifndef KYMO_LOG_CHECK_H
#define KYMO_LOG_CHECK_H

#include "read/read_internal.h"

struct kymo__checked_logs {
    const struct kymo_process *const *logs; /* by rank */
    size_t n;
    size_t n_broken; /* files that are no logs, or whose first block is gone */
    size_t n_empty;
};

/* Say what is odd. Without memory `warnings` says so. */
void kymo__logs_check(const struct kymo__checked_logs *all, struct kymo__warnings *warnings);

/* One rank of a run, and when it ran by the wall clock of its machine. */
struct kymo__run_rank {
    const struct kymo_process *process;
    const char *run;    /* its run's id */
    const char *joined; /* the same; "" for a run that has this rank alone */
    uint64_t begin_ns, end_ns;
};

/* A process of the program that has a rank and loads no data for another. */
bool kymo__is_rank(const struct kymo_process *process);
/* "3, 5 to 9 and 12 more"; `ranks` ascend. */
void kymo__put_rank_list(struct kymo__buf *text, const int32_t *ranks, size_t n);

/* log_twins.c: ranks that are there more than once; by run, rank and begin. */
void kymo__check_twins(const struct kymo__run_rank *ranks, size_t n, struct kymo__warnings *warnings);
/* Hosts whose clocks disagree; by joined run. */
void kymo__check_clocks(const struct kymo__run_rank *ranks, size_t n,
                        struct kymo__warnings *warnings);

#endif
