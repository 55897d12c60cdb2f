/*
 * tasks: the same for each of several things, such as the logs of processes, several at a time.
 */
#ifndef MAREY_TASKS_H
#define MAREY_TASKS_H

#include "base/base_internal.h"
#include <marey/report.h>

/* Number `i`, from 0, on any thread. */
typedef marey_status marey__task(void *ctx, size_t i);

struct marey__tasks {
    marey__task *run;
    void *ctx;
    size_t n;
    size_t n_jobs;            /* threads; 0: as many as there are cores */
    marey_progress *progress; /* told the share that is done, on the caller's thread; NULL: nobody */
    void *progress_ctx;
};

/* Run all, also behind one that failed. The first failure with its sentence, or MAREY_OK. */
MAREY_WARN_UNUSED marey_status marey__tasks_run(const struct marey__tasks *tasks);

#endif
