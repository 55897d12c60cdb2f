/*
 * tasks: the same for each of several things, such as the logs of processes, several at a time.
 */
#ifndef KYMO_TASKS_H
#define KYMO_TASKS_H

#include "base/base_internal.h"
#include <kymo/report.h>

/* Number `i`, from 0, on any thread. */
typedef kymo_status kymo__task(void *ctx, size_t i);

struct kymo__tasks {
    kymo__task *run;
    void *ctx;
    size_t n;
    size_t n_jobs;           /* threads; 0: as many as there are cores */
    kymo_progress *progress; /* told the share that is done, on the caller's thread; NULL: nobody */
    void *progress_ctx;
};

/* Run all, also behind one that failed. The first failure with its sentence, or KYMO_OK. */
KYMO_WARN_UNUSED kymo_status kymo__tasks_run(const struct kymo__tasks *tasks);

#endif
