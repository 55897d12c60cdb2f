/*
 * The summary's visitor of a thread's replay (see lane_replay.h for the rules): ranges become counts and times in the
 * thread's call tree. lane_plain.c handles nearly all events; this file handles the others, and all events if there is
 * a tap.
 */
#include "analyze/walk/internal.h"

/* Called for nearly every event; a function call would cost as much as the work itself. */
#define HOT static inline __attribute__((always_inline))

/* The stack is the first member. */
HOT struct marey__lane_walk *lane_of(struct marey__lane_stack *stack)
{
    return (struct marey__lane_walk *)stack;
}

/* ---- ranges ---- */

/* The node of `name` below `parent`; 0 on out of memory. */
HOT uint32_t find_node(struct marey__process_walk *walk, struct marey__lane_walk *lane,
                       uint32_t parent, uint32_t name)
{
    struct marey__tree *tree = &lane->tree;
    if (MAREY_LIKELY(tree->nodes[parent].depth < MAREY__TREE_DEPTH))
        return marey__tree_child(tree, parent, name, walk->other);
    if (tree->nodes[parent].depth > MAREY__TREE_DEPTH)
        parent = tree->nodes[parent].parent;
    const uint32_t node = marey__tree_child(tree, parent, name, walk->other);
    tree->nodes[node].n_active += node != 0;
    return node;
}

static bool tap_record(struct marey__process_walk *walk, const struct marey__lane_walk *lane,
                       const uint64_t *words, uint64_t ns)
{
    const struct marey__walk_tap *tap = walk->tap;
    return tap == NULL || tap->record == NULL || tap->record(walk->tap_ctx, lane, words, ns);
}

HOT bool on_begin(void *ctx, struct marey__lane_stack *stack, struct marey__frame *frame,
                  const uint64_t *words, size_t n)
{
    struct marey__process_walk *walk = ctx;
    struct marey__lane_walk *lane = lane_of(stack);
    (void)n;
    if (MAREY_UNLIKELY(marey_word_kind(words[0]) == MAREY_KIND_RECORD) &&
        !tap_record(walk, lane, words, frame->start_ns))
        return false;
    frame->name = marey__replay_name(&walk->replay, frame->site);
    frame->node = find_node(walk, lane, frame[-1].node, frame->name);
    return frame->node != 0;
}

/* Count a range that represents several calls, or none, beyond a single call. */
static bool add_repeated(struct marey__process_walk *walk, const struct marey__frame *frame,
                         struct marey__node *node, uint64_t duration)
{
    const uint64_t n_calls = frame->repeat - 1;
    node->count += n_calls - 1;
    return marey__sketch_add_sum(&walk->ranges[frame->name], duration, n_calls);
}

HOT bool add_call(struct marey__process_walk *walk, const struct marey__frame *frame,
                  struct marey__node *node, uint64_t duration)
{
    if (MAREY_UNLIKELY(frame->repeat != 0))
        return add_repeated(walk, frame, node, duration);
    return marey__sketch_add(&walk->ranges[frame->name], duration);
}

static bool cut(struct marey__process_walk *walk, struct marey__lane_walk *lane,
                const struct marey__frame *frame, uint64_t last_ns)
{
    const struct marey__walk_tap *tap = walk->tap;
    lane->tree.nodes[frame->node].n_active = 0;
    return tap == NULL || tap->cut == NULL || tap->cut(walk->tap_ctx, lane, frame, last_ns);
}

HOT bool on_end(void *ctx, struct marey__lane_stack *stack, const struct marey__frame *frame,
                uint64_t ns, enum marey__ending how)
{
    struct marey__process_walk *walk = ctx;
    struct marey__lane_walk *lane = lane_of(stack);
    if (MAREY_UNLIKELY(how == MAREY__CUT))
        return cut(walk, lane, frame, ns);
    struct marey__node *node = &lane->tree.nodes[frame->node];
    const uint64_t duration = ns - frame->start_ns;
    marey__stack_top(stack)->children_ns += duration;
    node->count++;
    marey__node_add_self(node, walk->iterations.n_ended,
                         duration - MAREY__MIN(frame->children_ns, duration));
    if (MAREY_UNLIKELY(walk->tap != NULL) && !walk->tap->call(walk->tap_ctx, lane, frame, ns))
        return false;
    if (MAREY_UNLIKELY(node->depth > MAREY__TREE_DEPTH) && --node->n_active != 0)
        return add_call(walk, frame, node, duration);
    node->total_ns += duration;
    if (node->is_outermost)
        marey__iteration_add(&walk->iterations, frame->name, frame->start_ns, ns);
    return add_call(walk, frame, node, duration);
}

/* The time in which both ran belongs to the inner range, also in the sum of children around it. */
static bool on_take_out(void *ctx, struct marey__lane_stack *stack, size_t depth,
                        uint64_t shared_ns, bool is_done)
{
    (void)ctx;
    if (!is_done) {
        stack->open[depth].children_ns += shared_ns;
        return true;
    }
    struct marey__frame *around = stack->open + depth - 1;
    around->children_ns -= MAREY__MIN(shared_ns, around->children_ns);
    return true;
}

/* ---- other events ---- */

/* Self time of that range belongs to ranges on other lanes of the thread. */
static bool on_covered(void *ctx, struct marey__lane_stack *stack, size_t depth, uint64_t ns)
{
    (void)ctx;
    stack->open[depth].children_ns += ns;
    return true;
}

/* Outermost ranges of this lane from here on are within these ranges of other lanes. Returns false on out of memory. */
static bool set_around(const struct marey__process_walk *walk, struct marey__lane_walk *lane,
                       const uint64_t *words)
{
    uint32_t node = 0;
    for (uint64_t i = 0; i < words[1] && lane->tree.nodes[node].depth + 1 < MAREY__TREE_DEPTH; i++) {
        const uint32_t name = marey__name_of_site(walk, marey_record_site(words[2 + i]));
        if ((node = marey__tree_child(&lane->tree, node, name, walk->other)) == 0)
            return false;
    }
    lane->stack.open[-1].node = node;
    lane->has_self_times = true;
    return true;
}

static bool on_mark(void *ctx, struct marey__lane_stack *stack, uint32_t site, uint64_t ns)
{
    struct marey__process_walk *walk = ctx;
    const struct marey__walk_tap *tap = walk->tap;
    walk->marks[marey__replay_name(&walk->replay, site)]++;
    return tap == NULL || tap->mark == NULL || tap->mark(walk->tap_ctx, lane_of(stack), site, ns);
}

static bool on_record(void *ctx, struct marey__lane_stack *stack, const struct marey_batch *batch,
                      const uint64_t *words, uint64_t ns)
{
    struct marey__process_walk *walk = ctx;
    struct marey__lane_walk *lane = lane_of(stack);
    (void)batch;
    if (!tap_record(walk, lane, words, ns))
        return false;
    switch (marey_record_type_of(words[0])) {
    case MAREY_RECORD_ITERATION:
    case MAREY_RECORD_ITERATION_BEGIN:
    case MAREY_RECORD_EPOCH:
    case MAREY_RECORD_PHASE:
    case MAREY_RECORD_STEP_HINT:
        return marey__iteration_walk_record(walk, lane, words, ns);
    case MAREY_RECORD_LAUNCH:
        return marey_record_launches_memory(words) || marey__gpu_walk_launch(walk, lane, words[1]);
    case MAREY_RECORD_AROUND:
        return set_around(walk, lane, words);
    default:
        return marey__process_walk_record(walk, stack->info->lane, words, ns);
    }
}

static bool on_gap(void *ctx, struct marey__lane_stack *stack, uint64_t ns, uint64_t n_events)
{
    struct marey__process_walk *walk = ctx;
    const struct marey__walk_tap *tap = walk->tap;
    walk->iterations.is_cut = true;
    return tap == NULL || tap->gap == NULL || tap->gap(walk->tap_ctx, lane_of(stack), ns, n_events);
}

static const struct marey__lane_visitor visitor = {
    .begin = on_begin,
    .end = on_end,
    .mark = on_mark,
    .record = on_record,
    .gap = on_gap,
    .take_out = on_take_out,
    .covered = on_covered,
};

marey_status marey__lane_walk_batch(struct marey__process_walk *walk, struct marey__lane_walk *lane,
                                    const struct marey_batch *batch)
{
    struct marey__replay *replay = &walk->replay;
    struct marey__lane_stack *stack = &lane->stack;
    walk->iterations.is_cut |= batch->gap != 0;
    if (!marey__replay_batch_gap(replay, stack, batch, &visitor, walk))
        return marey__no_memory();
    const uint64_t *word = batch->words, *const end = word + batch->n;
    for (;;) {
        if (walk->tap == NULL && (stack->n_too_deep | stack->repeat) == 0)
            word = marey__lane_walk_plain(walk, lane, batch, word);
        if (word == end)
            return MAREY_OK;
        const size_t length =
            marey__replay_event(replay, stack, batch, word, (size_t)(end - word), &visitor, walk);
        if (MAREY_UNLIKELY(length == 0))
            return marey__no_memory();
        word += length;
    }
}
