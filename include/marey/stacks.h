/*
 * marey/stacks.h: the stacks of many threads at one moment, equal ones together (libmarey-tools). `marey stacks` and
 * `marey watch` print them.
 *
 * In a job of many ranks most main threads are at the same place. The largest group of them is the majority; those that
 * are elsewhere are outliers, and each is told from which frame on it is.
 */
#ifndef MAREY_STACKS_H
#define MAREY_STACKS_H

#include <stdio.h>

#include <marey/report.h>
#include <marey/sampler.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct marey_stack_groups marey_stack_groups;

/* Threads of `stacks` by equal stacks. `stacks` is lent until destroy, which takes NULL. MAREY_ENOMEM. */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_stack_groups_create(const struct marey_sampler_stacks *stacks, marey_stack_groups **out);
MAREY_API void marey_stack_groups_destroy(marey_stack_groups *groups);

/*
 * For people: processes, then groups, those with main threads first and the majority of them before the outliers; then
 * what could not be read and why. Of `options`, width and color are used; NULL: none. MAREY_EIO when the stream
 * refuses.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_stacks_text(const marey_stack_groups *groups,
                                                           const struct marey_text_options *options,
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
MAREY_API MAREY_WARN_UNUSED marey_status marey_stacks_json(const marey_stack_groups *groups,
                                                           FILE *out);

#ifdef __cplusplus
}
#endif
#endif
