/* Functions of lane_replay.h that only a few events need. */
#include "analyze/walk/lane_replay.h"

bool marey__stack_make_room(struct marey__replay *replay, struct marey__lane_stack *stack,
                            bool *failed)
{
    const size_t before = stack->open_cap;
    const bool is_full = stack->n_open == before;
    *failed = false;
    if (stack->n_too_deep != 0 || stack->n_open == MAREY__MAX_OPEN ||
        (is_full && replay->n_frames > MAREY__MAX_FRAMES)) {
        stack->n_too_deep++;
        replay->n_too_deep++;
        return false;
    }
    if (!is_full)
        return true;
    struct marey__frame *frames = before != 0 ? stack->open - 1 : NULL;
    size_t cap = before != 0 ? before + 1 : 0;
    *failed = !marey__grow(&frames, &cap, before + 2, sizeof *frames);
    if (*failed)
        return false;
    if (before == 0)
        frames[0] = (struct marey__frame){.name = UINT32_MAX};
    stack->open = frames + 1;
    stack->open_cap = MAREY__MIN(cap - 1, (size_t)MAREY__MAX_OPEN);
    replay->n_frames += stack->open_cap - before;
    return true;
}

size_t marey__stack_find(const struct marey__replay *replay, const struct marey__lane_stack *stack,
                         uint32_t site)
{
    const uint32_t name = marey__replay_name(replay, site);
    const size_t stop = stack->n_open > MAREY__MAX_SEARCH ? stack->n_open - MAREY__MAX_SEARCH : 0;
    for (size_t i = stack->n_open; i > stop; i--)
        if (marey__replay_name(replay, stack->open[i - 1].site) == name)
            return i - 1;
    return stack->n_open;
}

void marey__stack_fini(struct marey__lane_stack *stack)
{
    if (stack->open != NULL)
        marey__free(stack->open - 1);
    stack->open = NULL;
    stack->n_open = stack->open_cap = 0;
}
