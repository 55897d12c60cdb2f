/*
 * Groups equal stacks. They have equal numbers in a store, in all processes, so a group is a run of equal numbers; the
 * shared part of two stacks is their nearest common ancestor in the store's tree.
 */
#include "present/text/internal.h"

/* ---- leading threads ---- */

static const struct marey_samples_process *process_at(const struct marey_sampler_stacks *stacks,
                                                      size_t i)
{
    return marey_samples_get_process(stacks->samples, stacks->rounds[i].process);
}

static bool has_ranks(const struct marey_sampler_stacks *stacks)
{
    for (size_t i = 0; i < stacks->n_rounds; i++)
        if (process_at(stacks, i)->rank >= 0)
            return true;
    return false;
}

/* Data loader workers have the rank of their parent; a launcher has none. */
static bool leads(const struct marey_sampler_stacks *stacks,
                  const struct marey_samples_process *process, bool are_ranks)
{
    if (process->worker >= 0 || (are_ranks && process->rank < 0))
        return false;
    for (size_t i = 0; i < stacks->n_rounds; i++) {
        const struct marey_samples_process *other = process_at(stacks, i);
        if (other->pid == process->ppid && other->rank == process->rank)
            return false;
    }
    return true;
}

/* ---- members, and groups of them ---- */

MAREY__ORDER(by_stack, struct marey__stack_member,
             MAREY__UP(seen->stack) MAREY__DOWN(leads) MAREY__UP(process->rank)
                 MAREY__UP(process->pid) MAREY__DOWN(thread->is_main) MAREY__UP(thread->tid))

MAREY__ORDER(by_weight, struct marey__stack_group,
             MAREY__DOWN(n_leading) MAREY__DOWN(n) MAREY__UP(stack))

static void collect(struct marey_stack_groups *groups)
{
    const struct marey_sampler_stacks *stacks = groups->stacks;
    const bool are_ranks = has_ranks(stacks);
    size_t n = 0;
    for (size_t i = 0; i < stacks->n_rounds; i++) {
        const struct marey_samples_process *process = process_at(stacks, i);
        const bool may_lead = leads(stacks, process, are_ranks);
        for (size_t t = 0; t < stacks->rounds[i].n_seen; t++) {
            const struct marey_samples_seen *seen = &stacks->rounds[i].seen[t];
            const struct marey_samples_thread *thread =
                marey_samples_get_thread(stacks->samples, seen->thread);
            const bool is_leading = may_lead && thread->is_main != 0;
            groups->members[n++] = (struct marey__stack_member){
                .seen = seen, .thread = thread, .process = process, .leads = is_leading};
            groups->n_leading += is_leading;
        }
    }
    qsort(groups->members, n, sizeof *groups->members, by_stack);
}

static void divide(struct marey_stack_groups *groups)
{
    for (size_t i = 0; i < groups->n_members; i++) {
        const struct marey__stack_member *member = &groups->members[i];
        if (i == 0 || member->seen->stack != member[-1].seen->stack)
            groups->groups[groups->n_groups++] =
                (struct marey__stack_group){.stack = member->seen->stack, .members = member};
        struct marey__stack_group *group = &groups->groups[groups->n_groups - 1];
        group->n++;
        group->n_leading += member->leads;
    }
    qsort(groups->groups, groups->n_groups, sizeof *groups->groups, by_weight);
}

/* ---- the majority and the others ---- */

/* The number of common outer frames of two stacks. */
static uint32_t shared_frames(const marey_samples *samples, uint32_t a, uint32_t b)
{
    struct marey_samples_stack p = marey_samples_get_stack(samples, a),
                               q = marey_samples_get_stack(samples, b);
    while (a != b) {
        const bool is_a = p.depth >= q.depth;
        a = is_a ? p.parent : a;
        b = p.depth <= q.depth ? q.parent : b;
        p = marey_samples_get_stack(samples, a);
        q = marey_samples_get_stack(samples, b);
    }
    return p.depth;
}

static void compare(struct marey_stack_groups *groups)
{
    if (groups->n_groups == 0 || groups->groups[0].n_leading < 2)
        return;
    groups->groups[0].is_majority = true;
    for (size_t i = 1; i < groups->n_groups; i++)
        groups->groups[i].shared =
            shared_frames(groups->stacks->samples, groups->groups[0].stack, groups->groups[i].stack);
}

marey_status marey_stack_groups_create(const struct marey_sampler_stacks *stacks,
                                       marey_stack_groups **out)
{
    size_t n = 0;
    for (size_t i = 0; i < stacks->n_rounds; i++)
        n += stacks->rounds[i].n_seen;
    marey_stack_groups *groups = marey__calloc(1, sizeof *groups);
    MAREY__TRY_MEMORY(groups != NULL);
    groups->stacks = stacks;
    groups->n_members = n;
    groups->members = marey__calloc(n + 1, sizeof *groups->members);
    groups->groups = marey__calloc(n + 1, sizeof *groups->groups);
    if (groups->members == NULL || groups->groups == NULL) {
        marey_stack_groups_destroy(groups);
        return marey__no_memory();
    }
    collect(groups);
    divide(groups);
    compare(groups);
    *out = groups;
    return MAREY_OK;
}

void marey_stack_groups_destroy(marey_stack_groups *groups)
{
    if (groups == NULL)
        return;
    MAREY__FREE_ALL(groups->members, groups->groups, groups);
}
