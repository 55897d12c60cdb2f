/* Lists of runs, and reports of them, for tests of scaling. */
#ifndef MAREY_TEST_SCALING_RUNS_H
#define MAREY_TEST_SCALING_RUNS_H

#include "analyze/scaling/internal.h"

static inline struct marey__scaling_runs *runs_create(void)
{
    return marey__calloc(1, sizeof(struct marey__scaling_runs));
}

static inline void runs_destroy(struct marey__scaling_runs *runs)
{
    if (runs != NULL)
        marey__scaling_runs_fini(runs);
    marey__free(runs);
}

static inline marey_status scaling_create(const struct marey__scaling_runs *runs,
                                          const struct marey__scaling_options *options,
                                          marey_report **out)
{
    static const struct marey_report_options defaults;
    struct marey__scaling_input input = {.runs = runs};
    if (options != NULL)
        input.options = *options;
    return marey__report_make("scale",
                              &(struct marey__request){.input = &input, .options = &defaults}, out);
}

#endif
