/*
 * The stack machine: begins and ends of one thread, in order, become counts and times in its call
 * tree. lane_plain.c takes what is usual, which is nearly everything; here is the rest, and whatever
 * somebody else listens to.
 *
 *   an end of the name on top                closes it
 *   an end of a name further down            closes what lies above it at that moment: those were left open
 *   an end of a name that is not there       is an orphan: counted, nothing else
 *   a record END_OF                          takes that range out of the middle; those above go on
 *   words are missing (a gap)                what is open is given up: its end may be among them
 *
 * A begin and its end may be different sites (other line, other language) of one name: names
 * decide.
 */
#include <string.h>

#include "analyze/analyze_internal.h"

enum {
    /*
     * Frames of all lanes of a process: beyond, begins are counted by the stack and nothing else.
     */
    MAX_FRAMES = 1 << 22,
    /*
     * How far down an end looks for its begin; a file full of orphans must not cost a walk of the
     * stack each.
     */
    MAX_SEARCH = 1000,
};

static kymo_status no_memory(const struct kymo__process_walk *walk)
{
    return kymo__fail(KYMO_ENOMEM, "no memory to summarise %s", walk->info->log_path);
}

/* ---- opening and closing a range ---- */

/* What the loop over words does for nearly every word; a call would cost as much as the work. */
#define HOT static inline __attribute__((always_inline))

/* Whether there is room for one more frame, made where need be; `*status` tells memory from the limit. */
static bool has_room(struct kymo__process_walk *walk, struct kymo__lane_walk *lane,
                     kymo_status *status)
{
    const size_t before = lane->frames_cap;
    const bool is_full = lane->n_frames == lane->frames_cap;
    *status = KYMO_OK;
    if (lane->n_too_deep != 0 || (is_full && walk->n_frames > MAX_FRAMES)) {
        lane->n_too_deep++;
        walk->n_too_deep++;
        return false;
    }
    if (!kymo__grow(&lane->frames, &lane->frames_cap, lane->n_frames + 1, sizeof *lane->frames)) {
        *status = no_memory(walk);
        return false;
    }
    walk->n_frames += lane->frames_cap - before;
    return true;
}

/* The node of `name` below `parent`; 0 without memory. */
HOT uint32_t find_node(struct kymo__process_walk *walk, struct kymo__lane_walk *lane,
                       uint32_t parent, uint32_t name)
{
    struct kymo__tree *tree = &lane->tree;
    if (KYMO_LIKELY(tree->nodes[parent].depth < KYMO__TREE_DEPTH))
        return kymo__tree_child(tree, parent, name, walk->other);
    if (tree->nodes[parent].depth > KYMO__TREE_DEPTH)
        parent = tree->nodes[parent].parent;
    const uint32_t node = kymo__tree_child(tree, parent, name, walk->other);
    tree->nodes[node].n_active += node != 0;
    return node;
}

static inline bool is_folded(const struct kymo__node *node)
{
    return node->depth > KYMO__TREE_DEPTH;
}

HOT kymo_status open_range(struct kymo__process_walk *walk, struct kymo__lane_walk *lane,
                           uint32_t site, uint64_t ns)
{
    const uint32_t name = kymo__name_of_site(walk, site);
    uint64_t repeat = 0;
    if (KYMO_UNLIKELY(lane->n_frames == lane->frames_cap || (lane->n_too_deep | lane->repeat) != 0)) {
        kymo_status status;
        repeat = lane->repeat;
        lane->repeat = 0;
        if (!has_room(walk, lane, &status))
            return status;
    }
    const uint32_t parent = lane->frames[lane->n_frames - 1].node;
    const uint32_t node = find_node(walk, lane, parent, name);
    if (KYMO_UNLIKELY(node == 0))
        return no_memory(walk);
    lane->frames[lane->n_frames++] = (struct kymo__frame){
        .start_ns = ns, .repeat = repeat, .node = node, .name = name, .site = site};
    return KYMO_OK;
}

/* What a range that stands for several calls, or for none, adds beyond one that stands for itself. */
static bool add_repeated(struct kymo__process_walk *walk, const struct kymo__frame *frame,
                         struct kymo__node *node, uint64_t duration)
{
    const uint64_t n_calls = frame->repeat - 1;
    node->count += n_calls - 1;
    return kymo__sketch_add_sum(&walk->ranges[frame->name], duration, n_calls);
}

HOT bool add_call(struct kymo__process_walk *walk, const struct kymo__frame *frame,
                  struct kymo__node *node, uint64_t duration)
{
    if (KYMO_UNLIKELY(frame->repeat != 0))
        return add_repeated(walk, frame, node, duration);
    return kymo__sketch_add(&walk->ranges[frame->name], duration);
}

/* Close the topmost range at `ns`. False without memory. */
HOT bool close_range(struct kymo__process_walk *walk, struct kymo__lane_walk *lane, uint64_t ns)
{
    const struct kymo__frame *frame = &lane->frames[--lane->n_frames];
    struct kymo__node *node = &lane->tree.nodes[frame->node];
    const uint64_t duration = ns > frame->start_ns ? ns - frame->start_ns : 0;
    lane->frames[lane->n_frames - 1].children_ns += duration;
    node->count++;
    node->self_ns += duration > frame->children_ns ? duration - frame->children_ns : 0;
    if (KYMO_UNLIKELY(walk->tap != NULL) && !walk->tap->call(walk->tap_ctx, lane, frame, ns))
        return false;
    if (KYMO_UNLIKELY(is_folded(node)) && --node->n_active != 0)
        return add_call(walk, frame, node, duration);
    node->total_ns += duration;
    if (node->is_outermost)
        kymo__iteration_add(&walk->iterations, frame->name, frame->start_ns, ns);
    return add_call(walk, frame, node, duration);
}

/* The topmost frame of that name; 0 when there is none within reach. */
static size_t find_frame(const struct kymo__lane_walk *lane, uint32_t name)
{
    size_t i = lane->n_frames - 1;
    const size_t stop = i > MAX_SEARCH ? i - MAX_SEARCH : 0;
    while (i > stop && lane->frames[i].name != name)
        i--;
    return i > stop ? i : 0;
}

/* An end whose name is not on top. */
static bool unwind(struct kymo__process_walk *walk, struct kymo__lane_walk *lane, uint32_t name,
                   uint64_t ns)
{
    const size_t i = find_frame(lane, name);
    if (i == 0) {
        walk->n_orphans++;
        return true;
    }
    walk->n_unwound += lane->n_frames - 1 - i;
    while (lane->n_frames > i)
        if (!close_range(walk, lane, ns))
            return false;
    return true;
}

HOT bool end_range(struct kymo__process_walk *walk, struct kymo__lane_walk *lane, uint32_t id,
                   uint64_t ns)
{
    if (KYMO_UNLIKELY(lane->n_too_deep != 0)) {
        lane->n_too_deep--;
        return true;
    }
    if (KYMO_UNLIKELY(lane->n_frames == 1)) {
        walk->n_orphans++;
        return true;
    }
    const uint32_t name = id != 0 ? kymo__name_of_site(walk, id) : KYMO__NO_NAME;
    if (KYMO_LIKELY(id == 0 || lane->frames[lane->n_frames - 1].name == name))
        return close_range(walk, lane, ns);
    return unwind(walk, lane, name, ns);
}

/*
 * The innermost range of that name ends; those begun after it stay open and go on as children of the one around it. The
 * time in which both ran belongs to the inner one, here and in the sum of children below.
 */
static bool end_of(struct kymo__process_walk *walk, struct kymo__lane_walk *lane, uint32_t name,
                   uint64_t ns)
{
    const size_t i = find_frame(lane, name);
    if (i == lane->n_frames - 1 && i != 0)
        return close_range(walk, lane, ns);
    if (i == 0) {
        if (lane->n_too_deep != 0)
            lane->n_too_deep--;
        else
            walk->n_orphans++;
        return true;
    }
    struct kymo__frame *frames = lane->frames;
    const struct kymo__frame frame = frames[i];
    const uint64_t inner_start = frames[i + 1].start_ns;
    const uint64_t shared = ns > inner_start ? ns - inner_start : 0;
    memmove(&frames[i], &frames[i + 1], (lane->n_frames - i - 1) * sizeof *frames);
    const size_t n_left = lane->n_frames - 1;
    lane->n_frames = i + 1; /* as if it were on top of the one around it */
    const struct kymo__frame above = frames[i];
    frames[i] = frame;
    frames[i].children_ns += shared;
    const bool done = close_range(walk, lane, ns);
    frames[i - 1].children_ns -= KYMO__MIN(shared, frames[i - 1].children_ns);
    frames[i] = above;
    lane->n_frames = n_left;
    return done;
}

/* Words of this lane are missing: whether what is open ended among them nobody knows. */
static void give_up_open_ranges(struct kymo__process_walk *walk, struct kymo__lane_walk *lane)
{
    walk->n_cut_off += lane->n_frames - 1 + lane->n_too_deep;
    walk->iterations.is_cut = true;
    for (size_t i = 1; i < lane->n_frames; i++)
        lane->tree.nodes[lane->frames[i].node].n_active = 0;
    lane->n_frames = 1;
    lane->n_too_deep = 0;
    lane->repeat = 0;
}

/* ---- words ---- */

static kymo_status take_record(struct kymo__process_walk *walk, struct kymo__lane_walk *lane,
                               const uint64_t *words, uint64_t ns)
{
    const struct kymo__walk_tap *tap = walk->tap;
    if (tap != NULL && tap->record != NULL && !tap->record(walk->tap_ctx, lane, words, ns))
        return no_memory(walk);
    switch (kymo_record_type_of(words[0])) {
    case KYMO_RECORD_BEGIN:
        return open_range(walk, lane, kymo_record_site(words[1]), ns);
    case KYMO_RECORD_END_OF:
        return end_of(walk, lane, kymo__name_of_site(walk, kymo_record_site(words[1])), ns)
                   ? KYMO_OK
                   : no_memory(walk);
    case KYMO_RECORD_ITERATION:
    case KYMO_RECORD_ITERATION_BEGIN:
    case KYMO_RECORD_EPOCH:
    case KYMO_RECORD_PHASE:
        return kymo__iteration_walk_record(walk, lane, words, ns);
    case KYMO_RECORD_LAUNCH:
        return kymo_record_launches_memory(words) ? KYMO_OK
                                                  : kymo__gpu_walk_launch(walk, lane, words[1]);
    case KYMO_RECORD_GAP:
        give_up_open_ranges(walk, lane);
        return KYMO_OK;
    case KYMO_RECORD_REPEAT:
        lane->repeat = KYMO__MIN(words[1], KYMO__MAX_REPEAT) + 1;
        return KYMO_OK;
    default:
        return kymo__process_walk_record(walk, lane->info->lane, words, ns);
    }
}

kymo_status kymo__lane_walk_batch(struct kymo__process_walk *walk, struct kymo__lane_walk *lane,
                                  const struct kymo_batch *batch)
{
    const struct kymo__walk_tap *tap = walk->tap;
    if (batch->gap) {
        if (tap != NULL && tap->gap != NULL && !tap->gap(walk->tap_ctx, lane, batch))
            return no_memory(walk);
        give_up_open_ranges(walk, lane);
    }
    const uint64_t *word = batch->words, *const end = word + batch->n;
    for (;;) {
        if (tap == NULL && (lane->n_too_deep | lane->repeat) == 0)
            word = kymo__lane_walk_plain(walk, lane, batch, word);
        if (word == end)
            return KYMO_OK;
        const uint64_t w = *word++;
        const uint64_t ns = kymo_batch_ns(batch, w);
        switch (kymo_word_kind(w)) {
        case KYMO_KIND_BEGIN:
            KYMO_TRY(open_range(walk, lane, kymo_word_id(w), ns));
            break;
        case KYMO_KIND_END:
            if (KYMO_UNLIKELY(!end_range(walk, lane, kymo_word_id(w), ns)))
                return no_memory(walk);
            break;
        case KYMO_KIND_MARK:
            walk->marks[kymo__name_of_site(walk, kymo_word_id(w))]++;
            if (tap != NULL && tap->mark != NULL &&
                !tap->mark(walk->tap_ctx, lane, kymo_word_id(w), ns))
                return no_memory(walk);
            break;
        case KYMO_KIND_RECORD:
            KYMO_TRY(take_record(walk, lane, word - 1, ns));
            word += kymo_record_length(w) - 1;
            break;
        default: /* kinds of later versions */
            break;
        }
    }
}
