/*
 * Ranges of the threads of a process, each thread with its stack, by the same rules as the summary (lane_walk.c):
 *
 *   an end whose name is not on the stack       its begin was not recorded: left out
 *   an end whose name lies deeper in the stack  closes what lies above it at the same time
 *   a record END_OF                             takes its range out of the middle
 *   words are missing (a gap)                   what is open is closed at the last moment known
 */
#include <string.h>

#include "analyze/walk/internal.h"
#include "read/read_internal.h"

/* A damaged file may begin ranges without end, or hold nothing but orphans: neither may cost for each. */
enum { MAX_OPEN = 1 << 20, MAX_SEARCH = 1000 };

static bool is_same_name(const struct marey__range_walk *walk, uint32_t a, uint32_t b)
{
    if (a == b)
        return true;
    const struct marey_site_info *x = marey_recording_site(walk->recording, walk->process->index, a);
    const struct marey_site_info *y = marey_recording_site(walk->recording, walk->process->index, b);
    return x->name_len == y->name_len && memcmp(x->name, y->name, x->name_len) == 0;
}

static bool open_range(struct marey__range_walk *walk, struct marey__call_lane *lane, uint32_t site,
                       uint64_t ns)
{
    if (lane->n_open == MAX_OPEN || lane->n_too_deep != 0) {
        lane->n_too_deep++;
        walk->n_too_deep++;
        return true;
    }
    if (MAREY_UNLIKELY(lane->n_open == lane->open_cap) &&
        !marey__grow(&lane->open, &lane->open_cap, lane->n_open + 1, sizeof *lane->open))
        return false;
    lane->open[lane->n_open++] = (struct marey__open_call){.begin_ns = ns,
                                                           .site = site,
                                                           .launch = MAREY__NO_INDEX,
                                                           .collective = MAREY__NO_INDEX,
                                                           .range = MAREY__NO_INDEX};
    return walk->opened == NULL || walk->opened(walk->ctx, lane);
}

static bool close_range(struct marey__range_walk *walk, struct marey__call_lane *lane, uint64_t ns)
{
    const struct marey__open_call *call = &lane->open[lane->n_open - 1];
    const bool done = walk->closed(walk->ctx, lane, MAREY__MAX(ns, call->begin_ns));
    lane->n_open--;
    return done;
}

/* How high the stack is below the innermost range of that name; its whole height when there is none in reach. */
static size_t find_range(const struct marey__range_walk *walk, const struct marey__call_lane *lane,
                         uint32_t site)
{
    const size_t stop = lane->n_open > MAX_SEARCH ? lane->n_open - MAX_SEARCH : 0;
    for (size_t i = lane->n_open; i > stop; i--)
        if (is_same_name(walk, lane->open[i - 1].site, site))
            return i - 1;
    return lane->n_open;
}

static bool end_range(struct marey__range_walk *walk, struct marey__call_lane *lane, uint32_t site,
                      uint64_t ns)
{
    if (MAREY_UNLIKELY(lane->n_too_deep != 0)) {
        lane->n_too_deep--;
        return true;
    }
    if (lane->n_open == 0)
        return true;
    if (MAREY_LIKELY(site == 0 || lane->open[lane->n_open - 1].site == site))
        return close_range(walk, lane, ns);
    for (const size_t target = find_range(walk, lane, site); lane->n_open > target;)
        if (!close_range(walk, lane, ns))
            return false;
    return true;
}

/* For as long as it closes, the range is on top. */
static bool end_of(struct marey__range_walk *walk, struct marey__call_lane *lane, uint32_t site,
                   uint64_t ns)
{
    const size_t depth = find_range(walk, lane, site);
    if (depth == lane->n_open) {
        lane->n_too_deep -= lane->n_too_deep != 0;
        return true;
    }
    const struct marey__open_call call = lane->open[depth];
    memmove(&lane->open[depth], &lane->open[depth + 1],
            (lane->n_open - depth - 1) * sizeof lane->open[0]);
    lane->open[lane->n_open - 1] = call;
    return close_range(walk, lane, ns);
}

static bool close_all(struct marey__range_walk *walk, struct marey__call_lane *lane)
{
    lane->n_too_deep = 0;
    while (lane->n_open > 0)
        if (!close_range(walk, lane, lane->last_ns))
            return false;
    return true;
}

static bool take_record(struct marey__range_walk *walk, struct marey__call_lane *lane,
                        const struct marey_batch *batch, const uint64_t *words, uint64_t ns)
{
    switch (marey_record_type_of(words[0])) {
    case MAREY_RECORD_BEGIN:
        return open_range(walk, lane, marey_record_site(words[1]), ns);
    case MAREY_RECORD_END_OF:
        return end_of(walk, lane, marey_record_site(words[1]), ns);
    case MAREY_RECORD_GAP:
        return close_all(walk, lane);
    default:
        return walk->record(walk->ctx, lane, batch, words, ns);
    }
}

static bool take_words(struct marey__range_walk *walk, struct marey__call_lane *lane,
                       const struct marey_batch *batch)
{
    const uint64_t *word = batch->words, *const end = word + batch->n;
    while (word < end) {
        const uint64_t w = *word;
        const uint64_t ns = marey_batch_ns(batch, w);
        const uint32_t kind = marey_word_kind(w);
        bool done = true;
        if (kind == MAREY_KIND_BEGIN)
            done = open_range(walk, lane, marey_word_id(w), ns);
        else if (kind == MAREY_KIND_END)
            done = end_range(walk, lane, marey_word_id(w), ns);
        else if (kind == MAREY_KIND_RECORD)
            done = take_record(walk, lane, batch, word, ns);
        if (MAREY_UNLIKELY(!done))
            return false;
        lane->last_ns = ns;
        word += kind == MAREY_KIND_RECORD ? marey_record_length(w) : 1;
    }
    return true;
}

static marey_status visit_batch(void *ctx, const struct marey_batch *batch)
{
    struct marey__range_walk *walk = ctx;
    struct marey__call_lane *lane = &walk->lanes[batch->lane->lane];
    lane->info = batch->lane;
    if ((batch->gap && !close_all(walk, lane)) || !take_words(walk, lane, batch))
        return marey__no_memory();
    if (batch->n == 0)
        return MAREY_OK;
    walk->first_ns = MAREY__MIN(walk->first_ns, marey_batch_ns(batch, batch->words[0]));
    walk->last_ns = MAREY__MAX(walk->last_ns, lane->last_ns);
    return MAREY_OK;
}

marey_status marey__range_walk(struct marey__range_walk *walk)
{
    const size_t n_lanes = walk->process->n_lanes;
    walk->first_ns = UINT64_MAX;
    walk->last_ns = 0;
    walk->lanes = marey__calloc(n_lanes + 1, sizeof *walk->lanes);
    MAREY__TRY_MEMORY(walk->lanes != NULL);
    marey_status status =
        marey__recording_visit_in_order(walk->recording, walk->process->index, visit_batch, walk);
    for (size_t i = 0; i < n_lanes; i++) {
        if (status == MAREY_OK && !close_all(walk, &walk->lanes[i]))
            status = marey__no_memory();
        marey__free(walk->lanes[i].open);
    }
    marey__free(walk->lanes);
    walk->lanes = NULL;
    return status;
}
