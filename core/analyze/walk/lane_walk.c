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

#include "analyze/walk/internal.h"

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

/* ---- opening and closing a range ---- */

/* What the loop over words does for nearly every word; a call would cost as much as the work. */
#define HOT static inline __attribute__((always_inline))

/* Whether there is room for one more frame, made where need be; `*status` tells memory from the limit. */
static bool has_room(struct marey__process_walk *walk, struct marey__lane_walk *lane,
                     marey_status *status)
{
    const size_t before = lane->frames_cap;
    const bool is_full = lane->n_frames == lane->frames_cap;
    *status = MAREY_OK;
    if (lane->n_too_deep != 0 || (is_full && walk->n_frames > MAX_FRAMES)) {
        lane->n_too_deep++;
        walk->n_too_deep++;
        return false;
    }
    if (!marey__grow(&lane->frames, &lane->frames_cap, lane->n_frames + 1, sizeof *lane->frames)) {
        *status = marey__no_memory();
        return false;
    }
    walk->n_frames += lane->frames_cap - before;
    return true;
}

/* The node of `name` below `parent`; 0 without memory. */
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

static inline bool is_folded(const struct marey__node *node)
{
    return node->depth > MAREY__TREE_DEPTH;
}

HOT marey_status open_range(struct marey__process_walk *walk, struct marey__lane_walk *lane,
                            uint32_t site, uint64_t ns)
{
    const uint32_t name = marey__name_of_site(walk, site);
    uint64_t repeat = 0;
    if (MAREY_UNLIKELY(lane->n_frames == lane->frames_cap || (lane->n_too_deep | lane->repeat) != 0)) {
        marey_status status;
        repeat = lane->repeat;
        lane->repeat = 0;
        if (!has_room(walk, lane, &status))
            return status;
    }
    const uint32_t parent = lane->frames[lane->n_frames - 1].node;
    const uint32_t node = find_node(walk, lane, parent, name);
    if (MAREY_UNLIKELY(node == 0))
        return marey__no_memory();
    lane->frames[lane->n_frames++] = (struct marey__frame){
        .start_ns = ns, .repeat = repeat, .node = node, .name = name, .site = site};
    return MAREY_OK;
}

/* What a range that stands for several calls, or for none, adds beyond one that stands for itself. */
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

/* Close the topmost range at `ns`. False without memory. */
HOT bool close_range(struct marey__process_walk *walk, struct marey__lane_walk *lane, uint64_t ns)
{
    const struct marey__frame *frame = &lane->frames[--lane->n_frames];
    struct marey__node *node = &lane->tree.nodes[frame->node];
    const uint64_t duration = ns > frame->start_ns ? ns - frame->start_ns : 0;
    lane->frames[lane->n_frames - 1].children_ns += duration;
    node->count++;
    marey__node_add_self(node, walk->iterations.n_ended,
                         duration - MAREY__MIN(frame->children_ns, duration));
    if (MAREY_UNLIKELY(walk->tap != NULL) && !walk->tap->call(walk->tap_ctx, lane, frame, ns))
        return false;
    if (MAREY_UNLIKELY(is_folded(node)) && --node->n_active != 0)
        return add_call(walk, frame, node, duration);
    node->total_ns += duration;
    if (node->is_outermost)
        marey__iteration_add(&walk->iterations, frame->name, frame->start_ns, ns);
    return add_call(walk, frame, node, duration);
}

/* The topmost frame of that name; 0 when there is none within reach. */
static size_t find_frame(const struct marey__lane_walk *lane, uint32_t name)
{
    size_t i = lane->n_frames - 1;
    const size_t stop = i > MAX_SEARCH ? i - MAX_SEARCH : 0;
    while (i > stop && lane->frames[i].name != name)
        i--;
    return i > stop ? i : 0;
}

/* An end whose name is not on top. */
static bool unwind(struct marey__process_walk *walk, struct marey__lane_walk *lane, uint32_t name,
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

HOT bool end_range(struct marey__process_walk *walk, struct marey__lane_walk *lane, uint32_t id,
                   uint64_t ns)
{
    if (MAREY_UNLIKELY(lane->n_too_deep != 0)) {
        lane->n_too_deep--;
        return true;
    }
    if (MAREY_UNLIKELY(lane->n_frames == 1)) {
        walk->n_orphans++;
        return true;
    }
    const uint32_t name = id != 0 ? marey__name_of_site(walk, id) : MAREY__NO_NAME;
    if (MAREY_LIKELY(id == 0 || lane->frames[lane->n_frames - 1].name == name))
        return close_range(walk, lane, ns);
    return unwind(walk, lane, name, ns);
}

/*
 * The innermost range of that name ends; those begun after it stay open and go on as children of the one around it. The
 * time in which both ran belongs to the inner one, here and in the sum of children below.
 */
static bool end_of(struct marey__process_walk *walk, struct marey__lane_walk *lane, uint32_t name,
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
    struct marey__frame *frames = lane->frames;
    const struct marey__frame frame = frames[i];
    const uint64_t inner_start = frames[i + 1].start_ns;
    const uint64_t shared = ns > inner_start ? ns - inner_start : 0;
    memmove(&frames[i], &frames[i + 1], (lane->n_frames - i - 1) * sizeof *frames);
    const size_t n_left = lane->n_frames - 1;
    lane->n_frames = i + 1; /* as if it were on top of the one around it */
    const struct marey__frame above = frames[i];
    frames[i] = frame;
    frames[i].children_ns += shared;
    const bool done = close_range(walk, lane, ns);
    frames[i - 1].children_ns -= MAREY__MIN(shared, frames[i - 1].children_ns);
    frames[i] = above;
    lane->n_frames = n_left;
    return done;
}

/* Self time of the innermost range of that name belongs to ranges on other lanes of the thread. */
static void cover(struct marey__lane_walk *lane, uint32_t name, uint64_t ns)
{
    const size_t i = lane->n_too_deep == 0 ? find_frame(lane, name) : 0;
    if (i != 0)
        lane->frames[i].children_ns += ns;
}

/* Outermost ranges of this lane that begin from here on are in these ranges of other lanes. False without memory. */
static bool set_around(const struct marey__process_walk *walk, struct marey__lane_walk *lane,
                       const uint64_t *words)
{
    uint32_t node = 0;
    for (uint64_t i = 0; i < words[1] && lane->tree.nodes[node].depth + 1 < MAREY__TREE_DEPTH; i++) {
        const uint32_t name = marey__name_of_site(walk, marey_record_site(words[2 + i]));
        if ((node = marey__tree_child(&lane->tree, node, name, walk->other)) == 0)
            return false;
    }
    lane->frames[0].node = node;
    lane->has_self_times = true;
    return true;
}

/* Words of this lane are missing: whether what is open ended among them nobody knows. */
static void give_up_open_ranges(struct marey__process_walk *walk, struct marey__lane_walk *lane)
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

static marey_status take_record(struct marey__process_walk *walk, struct marey__lane_walk *lane,
                                const uint64_t *words, uint64_t ns)
{
    const struct marey__walk_tap *tap = walk->tap;
    if (tap != NULL && tap->record != NULL && !tap->record(walk->tap_ctx, lane, words, ns))
        return marey__no_memory();
    switch (marey_record_type_of(words[0])) {
    case MAREY_RECORD_BEGIN:
        return open_range(walk, lane, marey_record_site(words[1]), ns);
    case MAREY_RECORD_END_OF:
        return end_of(walk, lane, marey__name_of_site(walk, marey_record_site(words[1])), ns)
                   ? MAREY_OK
                   : marey__no_memory();
    case MAREY_RECORD_ITERATION:
    case MAREY_RECORD_ITERATION_BEGIN:
    case MAREY_RECORD_EPOCH:
    case MAREY_RECORD_PHASE:
        return marey__iteration_walk_record(walk, lane, words, ns);
    case MAREY_RECORD_LAUNCH:
        return marey_record_launches_memory(words) ? MAREY_OK
                                                   : marey__gpu_walk_launch(walk, lane, words[1]);
    case MAREY_RECORD_GAP:
        give_up_open_ranges(walk, lane);
        return MAREY_OK;
    case MAREY_RECORD_COVERED:
        cover(lane, marey__name_of_site(walk, marey_record_site(words[1])), words[2]);
        return MAREY_OK;
    case MAREY_RECORD_AROUND:
        return set_around(walk, lane, words) ? MAREY_OK : marey__no_memory();
    case MAREY_RECORD_REPEAT:
        lane->repeat = MAREY__MIN(words[1], MAREY__MAX_REPEAT) + 1;
        return MAREY_OK;
    default:
        return marey__process_walk_record(walk, lane->info->lane, words, ns);
    }
}

marey_status marey__lane_walk_batch(struct marey__process_walk *walk, struct marey__lane_walk *lane,
                                    const struct marey_batch *batch)
{
    const struct marey__walk_tap *tap = walk->tap;
    if (batch->gap) {
        if (tap != NULL && tap->gap != NULL && !tap->gap(walk->tap_ctx, lane, batch))
            return marey__no_memory();
        give_up_open_ranges(walk, lane);
    }
    const uint64_t *word = batch->words, *const end = word + batch->n;
    for (;;) {
        if (tap == NULL && (lane->n_too_deep | lane->repeat) == 0)
            word = marey__lane_walk_plain(walk, lane, batch, word);
        if (word == end)
            return MAREY_OK;
        const uint64_t w = *word++;
        const uint64_t ns = marey_batch_ns(batch, w);
        switch (marey_word_kind(w)) {
        case MAREY_KIND_BEGIN:
            MAREY_TRY(open_range(walk, lane, marey_word_id(w), ns));
            break;
        case MAREY_KIND_END:
            if (MAREY_UNLIKELY(!end_range(walk, lane, marey_word_id(w), ns)))
                return marey__no_memory();
            break;
        case MAREY_KIND_MARK:
            walk->marks[marey__name_of_site(walk, marey_word_id(w))]++;
            if (tap != NULL && tap->mark != NULL &&
                !tap->mark(walk->tap_ctx, lane, marey_word_id(w), ns))
                return marey__no_memory();
            break;
        case MAREY_KIND_RECORD:
            MAREY_TRY(take_record(walk, lane, word - 1, ns));
            word += marey_record_length(w) - 1;
            break;
        default: /* kinds of later versions */
            break;
        }
    }
}
