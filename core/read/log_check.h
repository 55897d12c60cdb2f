/* The logs of a directory looked at together; log_check.c says for what. */
#ifndef MAREY_LOG_CHECK_H
#define MAREY_LOG_CHECK_H

#include "read/read_internal.h"

struct marey__checked_logs {
    const struct marey_process *const *logs; /* by rank */
    size_t n;
    size_t n_broken; /* files that are no logs, or whose first block is gone */
    size_t n_empty;
};

/* Say what is odd. Without memory `warnings` says so. */
void marey__logs_check(const struct marey__checked_logs *all, struct marey__warnings *warnings);

/* One rank of a run, and when it ran by the wall clock of its machine. */
struct marey__run_rank {
    const struct marey_process *process;
    const char *run;    /* its run's id */
    const char *joined; /* the same; "" for a run that has this rank alone */
    uint64_t begin_ns, end_ns;
};

/* A process of the program that has a rank and loads no data for another. */
bool marey__is_rank(const struct marey_process *process);
/* "3, 5 to 9 and 12 more"; `ranks` ascend. */
void marey__put_rank_list(struct marey__buf *text, const int32_t *ranks, size_t n);

/* log_twins.c: ranks that are there more than once; by run, rank and begin. */
void marey__check_twins(const struct marey__run_rank *ranks, size_t n,
                        struct marey__warnings *warnings);
/* Hosts whose clocks disagree; by joined run. */
void marey__check_clocks(const struct marey__run_rank *ranks, size_t n,
                         struct marey__warnings *warnings);

#endif
