/*
 * marey/stacks.h: group the current stacks of many threads by equality (libmarey-tools). `marey stacks` and `marey watch`
 * print the groups.
 *
 * In a job of many ranks most main threads have the same stack. The largest group is the majority; the others are
 * outliers, each with the frame at which it diverges.
 */
#ifndef MAREY_STACKS_H
#define MAREY_STACKS_H

#include <stdio.h>

#include <marey/report.h>
#include <marey/sampler.h>

MAREY_BEGIN_C

typedef struct marey_stack_groups marey_stack_groups;

/* Group the threads of `stacks` by equal stacks. `stacks` is lent until destroy, which accepts NULL. MAREY_ENOMEM. */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_stack_groups_create(const struct marey_sampler_stacks *stacks, marey_stack_groups **out);
MAREY_API void marey_stack_groups_destroy(marey_stack_groups *groups);

/*
 * Print processes, then groups (those with main threads first, the majority before the outliers), then unreadable processes
 * with the reason. Uses width and color of `options`; NULL: none. MAREY_EIO on a write error.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_stacks_text(const marey_stack_groups *groups,
                                                           const struct marey_text_options *options,
                                                           FILE *out);
/*
 * One object:
 *   processes  pid ppid rank worker python command
 *   groups     is_main is_majority, parts_at (number of outermost frames shared with the majority; null for the majority and for
 *              groups without a main thread),
 *              threads (pid tid rank worker name is_main state wait gil wants_gil gc exception truncated), state is
 *              "running", "waiting" or null,
 *              frames (function file line kind library), innermost first; kind is python, native, kernel or mark
 *   failures   pid why
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_stacks_json(const marey_stack_groups *groups,
                                                           FILE *out);

MAREY_END_C
#endif
