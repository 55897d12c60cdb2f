/*
 * text: the stacks of running processes (`marey stacks`) as text for a terminal, and as JSON.
 *
 *   stack_groups.c        threads grouped by equal stacks
 *   stacks_text_out.c, stacks_json_out.c   the groups
 *
 * Input: stacks read once by sampler/loop. Output: text or JSON on a stream. Does not know recordings or analyses:
 * those of the registry have their text in their own folder.
 */
#ifndef MAREY_PRESENT_TEXT_INTERNAL_H
#define MAREY_PRESENT_TEXT_INTERNAL_H

#include "base/internal.h"
#include "present/draw/internal.h"
#include <marey/stacks.h>

/* Threads grouped by equal stacks: the types of <marey/stacks.h>. */

struct marey__stack_member {
    const struct marey_samples_seen *seen;
    const struct marey_samples_thread *thread;
    const struct marey_samples_process *process;
    bool leads; /* the main thread of a rank; without ranks, of a process not started by any of the others */
};

struct marey__stack_group {
    uint32_t stack, shared;                    /* `shared`: outer frames shared with the majority */
    const struct marey__stack_member *members; /* leading ones first, then by rank, pid and tid */
    size_t n, n_leading;
    bool is_majority;
};

struct marey_stack_groups {
    const struct marey_sampler_stacks *stacks;
    struct marey__stack_member *members;
    size_t n_members, n_leading;
    struct marey__stack_group *groups; /* most leading threads first, then most threads */
    size_t n_groups;
};

/* PY_VERSION_HEX in readable form. For versions before 3.11 only major and minor are known: 3.8. */
static inline void marey__put_python_version(struct marey__buf *to, uint32_t hex)
{
    marey__buf_printf(to, "%u.%u", hex >> 24, hex >> 16 & 255);
    if ((hex & 255) != 0)
        marey__buf_printf(to, ".%u", hex >> 8 & 255);
}

#endif
