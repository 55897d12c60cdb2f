/* process_runs.c: which processes were started together. */
#ifndef MAREY_PROCESS_RUNS_H
#define MAREY_PROCESS_RUNS_H

#include "analyze/walk/internal.h"

struct marey__process_run {
    const char *id; /* lent by the recording */
    uint64_t start_unix_ns;
};

struct marey__process_runs {
    struct marey__process_run *list;
    size_t n, cap;
};

/* The number of the run that a process is of, put into the list when new. False without memory. */
MAREY_WARN_UNUSED bool marey__process_runs_find(struct marey__process_runs *runs,
                                                const struct marey_process *process, uint32_t *out);

#endif
