/*
 * What attach, top, watch and run --sample share: a sampler from options, in a thread of its own where somebody else needs
 * this one.
 */
#ifndef MAREY_CLI_SAMPLING_H
#define MAREY_CLI_SAMPLING_H

#include <pthread.h>

#include "cli.h"

/*
 * Create a sampler of `n` processes. Those that cannot be read are named with the reason, and the others are sampled;
 * NULL when none is left, or when an option is wrong, with a sentence said. `options` has no pids. `*n_failed` gets how many were named.
 */
marey_sampler *sampling_create(struct marey_sampler_options *options, const pid_t *pids, size_t n,
                               size_t *n_failed);

/* A sampler that runs beside this thread. */
struct sampling {
    marey_sampler *sampler;
    pthread_t thread;
    bool is_running;
    marey_status status; /* of its end; read it after sampling_stop */
    char error[512];
};
/* Begin. False, with a sentence said, when no thread can be had. */
bool sampling_start(struct sampling *sampling, marey_sampler *sampler);
/* Whether it goes on: not once all processes have ended. */
bool sampling_goes_on(struct sampling *sampling);
/* End it and wait until it has. Nothing is stopped afterwards, and the sampler is still there. */
void sampling_stop(struct sampling *sampling);

/* Groups of equal stacks as text (`color`: auto, always, never) or JSON. */
MAREY_WARN_UNUSED marey_status sampling_print_stacks(const struct marey_sampler_stacks *stacks,
                                                     bool as_json, const char *color, FILE *out);
/* The functions and lines with most samples, and the audit, to stderr. */
MAREY_WARN_UNUSED marey_status sampling_print_top(marey_recording *recording);
/* The same, and what to type next. */
void sampling_summarize(const char *path);

#endif
