/* Replays all threads of a process, and the records of its streams, for visitors other than the summary's. */
#include "analyze/walk/internal.h"
#include "read/internal.h"

/* Streams have only records, each with its own timestamp: they may overlap. */
static bool take_stream(struct marey__range_walk *walk, struct marey__lane_stack *stack,
                        const struct marey_batch *batch)
{
    const uint64_t *word = batch->words, *const end = word + batch->n;
    for (; word < end && walk->visitor->record != NULL; word += marey_record_length(*word)) {
        const uint64_t ns = marey_batch_ns(batch, *word);
        if (!walk->visitor->record(walk->ctx, stack, batch, word, ns))
            return false;
        stack->last_ns = MAREY__MAX(stack->last_ns, ns);
    }
    return true;
}

static marey_status take_batch(void *ctx, const struct marey_batch *batch)
{
    struct marey__range_walk *walk = ctx;
    struct marey__lane_stack *stack = &walk->lanes[batch->lane->lane];
    bool done = true;
    stack->info = batch->lane;
    if (batch->lane->kind == MAREY_LANE_THREAD)
        done = marey__replay_batch(&walk->replay, stack, batch, walk->visitor, walk->ctx);
    else if (batch->lane->kind == MAREY_LANE_GPU)
        done = take_stream(walk, stack, batch);
    if (!done)
        return marey__no_memory();
    if (batch->n == 0)
        return MAREY_OK;
    walk->first_ns = MAREY__MIN(walk->first_ns, marey_batch_ns(batch, batch->words[0]));
    walk->last_ns = MAREY__MAX(walk->last_ns, stack->last_ns);
    return MAREY_OK;
}

static marey_status walk_all(struct marey__range_walk *walk)
{
    const struct marey_process *process = walk->process;
    struct marey__names names MAREY__FINALLY(marey__names_fini) = {0};
    walk->first_ns = UINT64_MAX;
    walk->last_ns = 0;
    walk->lanes = marey__calloc((size_t)process->n_lanes + 1, sizeof *walk->lanes);
    MAREY__TRY_MEMORY(walk->lanes != NULL &&
                      marey__replay_init(&walk->replay, walk->recording, process->index, &names));
    MAREY_TRY(marey__recording_visit_in_order(walk->recording, process->index, take_batch, walk));
    for (size_t i = 0; i < process->n_lanes; i++)
        MAREY__TRY_MEMORY(marey__replay_cut(&walk->lanes[i], walk->visitor, walk->ctx));
    return MAREY_OK;
}

marey_status marey__range_walk(struct marey__range_walk *walk)
{
    const marey_status status = walk_all(walk);
    for (size_t i = 0; walk->lanes != NULL && i < walk->process->n_lanes; i++)
        marey__stack_fini(&walk->lanes[i]);
    MAREY__FREE_ALL(walk->lanes, walk->replay.site_names);
    walk->lanes = NULL;
    walk->replay.site_names = NULL;
    return status;
}
