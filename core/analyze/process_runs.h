/* process_runs.c: which processes were started together. */
#ifndef KYMO_PROCESS_RUNS_H
#define KYMO_PROCESS_RUNS_H

#include "analyze/analyze_internal.h"

struct kymo__process_run {
    const char *id; /* lent by the recording */
    uint64_t start_unix_ns;
};

struct kymo__process_runs {
    struct kymo__process_run *list;
    size_t n, cap;
};

/* The number of the run that a process is of, put into the list when new. False without memory. */
KYMO_WARN_UNUSED bool kymo__process_runs_find(struct kymo__process_runs *runs,
                                              const struct kymo_process *process, uint32_t *out);

#endif
