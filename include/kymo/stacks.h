/*
 * kymo/stacks.h: the stacks of many threads at one moment, equal ones together (libkymo-tools). `kymo stacks` and
 * `kymo watch` print them.
 *
 * In a job of many ranks most main threads are at the same place. The largest group of them is the majority; those that
 * are elsewhere are outliers, and each is told from which frame on it is.
 */
#ifndef KYMO_STACKS_H
#define KYMO_STACKS_H

#include <stdio.h>

#include <kymo/report.h>
#include <kymo/sampler.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kymo_stack_groups kymo_stack_groups;

/* Threads of `stacks` by equal stacks. `stacks` is lent until destroy, which takes NULL. KYMO_ENOMEM. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_stack_groups_create(const struct kymo_sampler_stacks *stacks,
                                                               kymo_stack_groups **out);
KYMO_API void kymo_stack_groups_destroy(kymo_stack_groups *groups);

/*
 * For people: processes, then groups, those with main threads first and the majority of them before the outliers; then
 * what could not be read and why. Of `options`, width and color are used; NULL: none. KYMO_EIO when the stream refuses.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_stacks_text(const kymo_stack_groups *groups,
                                                       const struct kymo_text_options *options,
                                                       FILE *out);
/*
 * One object:
 *   processes  pid ppid rank worker python command
 *   groups     is_main is_majority, parts_at (the number of frames, from the outermost, that it shares with the majority; null
 *              where it is the majority or has no main thread),
 *              threads (pid tid rank worker name is_main state wait gil wants_gil gc exception truncated), state is
 *              "running", "waiting" or null,
 *              frames (function file line kind library), the innermost first; kind is python, native, kernel or mark
 *   failures   pid why
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_stacks_json(const kymo_stack_groups *groups, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
