/*
 * The time of each range in each iteration, on all threads together. Batches come in order of time with respect to
 * iterations (log_order.c), so there is one current iteration, and memory does not grow with their number:
 *
 *   a range ends              adds its time since the iteration's begin, or its own, to its name
 *   an iteration ends         adds the time of all open ranges, passes the names to the visitor and resets them
 *   an iteration begins late  earlier time belongs to no iteration
 */
#include "analyze/walk/internal.h"

bool marey__iteration_walk_init(struct marey__process_walk *walk)
{
    struct marey__iteration_walk *it = &walk->iterations;
    marey__progress_init(&it->progress, walk->info, walk->info->first_ns);
    it->round = 1;
    it->times = marey__calloc(walk->names.n, sizeof *it->times);
    it->ran = marey__calloc(walk->names.n, sizeof *it->ran);
    return it->times != NULL && it->ran != NULL;
}

void marey__iteration_walk_fini(struct marey__iteration_walk *it)
{
    MAREY__FREE_ALL(it->times, it->ran, it->lanes);
    *it = (struct marey__iteration_walk){0};
}

bool marey__iteration_walk_batch(struct marey__process_walk *walk, struct marey__lane_walk *lane,
                                 const struct marey_batch *batch)
{
    struct marey__iteration_walk *it = &walk->iterations;
    if (lane->is_blind != (batch->n == 0)) {
        lane->is_blind = batch->n == 0;
        it->n_blind = lane->is_blind ? it->n_blind + 1 : it->n_blind - 1;
    }
    if (lane->is_listed)
        return true;
    lane->is_listed = MAREY__PUSH(it->lanes, it->n_lanes, it->lanes_cap, lane);
    return lane->is_listed;
}

/* Reset the times of all names at once. */
static void start_round(struct marey__process_walk *walk)
{
    struct marey__iteration_walk *it = &walk->iterations;
    it->n_ran = 0;
    it->is_cut = false;
    if (++it->round != 0)
        return;
    for (size_t i = 0; i < walk->names.n; i++) /* once in four billion iterations */
        it->times[i].round = 0;
    it->round = 1;
}

static void add_open_ranges(struct marey__process_walk *walk, const struct marey__lane_walk *lane,
                            uint64_t ns)
{
    for (size_t i = 0; i < lane->stack.n_open; i++) {
        const struct marey__frame *frame = &lane->stack.open[i];
        const struct marey__node *node = &lane->tree.nodes[frame->node];
        if (node->is_outermost && node->depth <= MAREY__TREE_DEPTH)
            marey__iteration_add(&walk->iterations, frame->name, frame->start_ns, ns);
    }
}

/* Lanes without open ranges leave the list; their next batch adds them again. */
static void add_all_open(struct marey__process_walk *walk, uint64_t ns)
{
    struct marey__iteration_walk *it = &walk->iterations;
    for (size_t i = it->n_lanes; i-- > 0;) {
        struct marey__lane_walk *lane = it->lanes[i];
        add_open_ranges(walk, lane, ns);
        if (lane->stack.n_open != 0)
            continue;
        lane->is_listed = false;
        it->lanes[i] = it->lanes[--it->n_lanes];
    }
}

/* A lane that lost its last words stays blind; that matters only where events were lost. */
static bool is_cut(const struct marey__process_walk *walk, const struct marey__span *span)
{
    const struct marey_process *info = walk->info;
    const bool is_where_lost = info->lost_events == 0 || (info->lost_first_ns <= span->end_ns &&
                                                          info->lost_last_ns >= span->begin_ns);
    return walk->iterations.is_cut || (walk->iterations.n_blind != 0 && is_where_lost);
}

static bool hand_on(struct marey__process_walk *walk, struct marey__span *span, uint64_t no_range_ns)
{
    struct marey__iteration_walk *it = &walk->iterations;
    if (it->visitor == NULL)
        return true;
    if (span->kind != MAREY__SPAN_ITERATION)
        return it->visitor(it->visitor_ctx, span, NULL);
    if (is_cut(walk, span))
        span->flags |= MAREY__ITERATION_CUT;
    const struct marey__iteration iteration = {.span = *span,
                                               .ran = it->ran,
                                               .n_ran = it->n_ran,
                                               .times = it->times,
                                               .no_range_ns = no_range_ns};
    return it->visitor(it->visitor_ctx, span, &iteration);
}

/* The time in ranges of a lane from its first event until now. */
static uint64_t covered_until(const struct marey__lane_walk *lane, uint64_t ns)
{
    const struct marey__frame *open = lane->stack.open;
    const bool is_open = lane->stack.n_open != 0 && ns > open[0].start_ns;
    return open[-1].children_ns + (is_open ? ns - open[0].start_ns : 0);
}

/* At the end of an iteration, the self times of open ranges so far belong to the time before. */
static void end_iteration(struct marey__iteration_walk *it, uint64_t ns)
{
    it->n_ended++;
    for (size_t i = 0; i < it->n_lanes; i++) {
        const struct marey__lane_walk *lane = it->lanes[i];
        for (size_t f = 0; f < lane->stack.n_open; f++) {
            const struct marey__frame *frame = &lane->stack.open[f];
            const uint64_t until = f + 1 < lane->stack.n_open ? frame[1].start_ns : ns,
                           ran_ns = until - MAREY__MIN(frame->start_ns, until);
            struct marey__node *node = &lane->tree.nodes[frame->node];
            marey__node_add_self(node, it->n_ended, 0);
            node->self_before_ns += ran_ns - MAREY__MIN(frame->children_ns, ran_ns);
        }
    }
}

bool marey__iteration_walk_record(struct marey__process_walk *walk,
                                  const struct marey__lane_walk *lane, const uint64_t *words,
                                  uint64_t ns)
{
    struct marey__iteration_walk *it = &walk->iterations;
    struct marey__span span;
    if (marey_record_type_of(words[0]) == MAREY_RECORD_ITERATION)
        add_all_open(walk, ns);
    const uint64_t begin_ns = it->progress.begin_ns, covered_ns = covered_until(lane, ns),
                   in_ranges_ns = it->counting == lane || it->counting == NULL
                                      ? covered_ns - MAREY__MIN(it->covered_ns, covered_ns)
                                      : UINT64_MAX; /* another thread records iterations now */
    if (marey__progress_take(&it->progress, words, ns, &span)) {
        const uint64_t duration_ns = span.end_ns - span.begin_ns;
        if (!hand_on(walk, &span, duration_ns - MAREY__MIN(in_ranges_ns, duration_ns)))
            return false;
        if (span.kind == MAREY__SPAN_ITERATION)
            end_iteration(it, ns);
    }
    if (it->progress.begin_ns == begin_ns && marey_record_type_of(words[0]) != MAREY_RECORD_ITERATION)
        return true;
    it->counting = lane;
    it->covered_ns = covered_ns;
    start_round(walk);
    return true;
}

marey_status marey__iteration_walk_finish(struct marey__process_walk *walk)
{
    struct marey__span span;
    while (marey__progress_finish(&walk->iterations.progress, walk->info->last_ns, &span))
        MAREY__TRY_MEMORY(hand_on(walk, &span, 0));
    return MAREY_OK;
}
