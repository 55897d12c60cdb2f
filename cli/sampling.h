/*
 * Shared by attach, top, watch and run --sample: creates a sampler from options, and runs it in a thread if needed.
 */
#ifndef MAREY_CLI_SAMPLING_H
#define MAREY_CLI_SAMPLING_H

#include <pthread.h>

#include "lib/cli.h"

/*
 * Creates a sampler of `n` processes. Unreadable ones are printed with the reason and counted in `*n_failed`, and the
 * others are sampled; NULL, with a message printed, if none is left or an option is wrong. `options` has no pids.
 */
marey_sampler *sampling_create(struct marey_sampler_options *options, const pid_t *pids, size_t n,
                               size_t *n_failed);

/* A sampler that runs in another thread. */
struct sampling {
    marey_sampler *sampler;
    pthread_t thread;
    bool is_running;
    marey_status status; /* final status; valid after sampling_stop */
    char error[512];
};
/* False, with a message printed, if the thread cannot be started. */
bool sampling_start(struct sampling *sampling, marey_sampler *sampler);
/* Whether it is still running: false once all processes have ended. */
bool sampling_goes_on(struct sampling *sampling);
/* Ends it and waits. No thread remains stopped, and the sampler still exists. */
void sampling_stop(struct sampling *sampling);

/* Groups of equal stacks as text (`color`: auto, always, never) or JSON. */
MAREY_WARN_UNUSED marey_status sampling_print_stacks(const struct marey_sampler_stacks *stacks,
                                                     bool as_json, const char *color, FILE *out);
/* Prints the functions and lines with most samples, and the audit, to stderr. */
MAREY_WARN_UNUSED marey_status sampling_print_top(marey_recording *recording);
/* The same, and the next command to try. */
void sampling_summarize(const char *path);

#endif
