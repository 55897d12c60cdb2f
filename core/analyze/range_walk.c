/*
 * Ranges of the threads of a process, each thread with its stack, by the same rules as the summary (lane_walk.c):
 *
 *   an end whose name is not on the stack       its begin was not recorded: left out
 *   an end whose name lies deeper in the stack  closes what lies above it at the same time
 *   a record END_OF                             takes its range out of the middle
 *   words are missing (a gap)                   what is open is closed at the last moment known
 */
#include <string.h>

#include "analyze/breakdown_internal.h"
#include "read/read_internal.h"

/* A damaged file may begin ranges without end, or hold nothing but orphans: neither may cost for each. */
enum { MAX_OPEN = 1 << 20, MAX_SEARCH = 1000 };

static bool is_same_name(const struct kymo__range_walk *walk, uint32_t a, uint32_t b)
{
    if (a == b)
        return true;
    const struct kymo_site_info *x = kymo_recording_site(walk->recording, walk->process->index, a);
    const struct kymo_site_info *y = kymo_recording_site(walk->recording, walk->process->index, b);
    return x->name_len == y->name_len && memcmp(x->name, y->name, x->name_len) == 0;
}

static bool open_range(struct kymo__range_walk *walk, struct kymo__call_lane *lane, uint32_t site,
                       uint64_t ns)
{
    if (lane->n_open == MAX_OPEN || lane->n_too_deep != 0) {
        lane->n_too_deep++;
        walk->n_too_deep++;
        return true;
    }
    if (KYMO_UNLIKELY(lane->n_open == lane->open_cap) &&
        !kymo__grow(&lane->open, &lane->open_cap, lane->n_open + 1, sizeof *lane->open))
        return false;
    lane->open[lane->n_open++] = (struct kymo__open_call){.begin_ns = ns,
                                                          .site = site,
                                                          .launch = KYMO__NO_INDEX,
                                                          .collective = KYMO__NO_INDEX,
                                                          .range = KYMO__NO_INDEX};
    return walk->opened == NULL || walk->opened(walk->ctx, lane);
}

static bool close_range(struct kymo__range_walk *walk, struct kymo__call_lane *lane, uint64_t ns)
{
    const struct kymo__open_call *call = &lane->open[lane->n_open - 1];
    const bool done = walk->closed(walk->ctx, lane, KYMO__MAX(ns, call->begin_ns));
    lane->n_open--;
    return done;
}

/* How high the stack is below the innermost range of that name; its whole height when there is none in reach. */
static size_t find_range(const struct kymo__range_walk *walk, const struct kymo__call_lane *lane,
                         uint32_t site)
{
    const size_t stop = lane->n_open > MAX_SEARCH ? lane->n_open - MAX_SEARCH : 0;
    for (size_t i = lane->n_open; i > stop; i--)
        if (is_same_name(walk, lane->open[i - 1].site, site))
            return i - 1;
    return lane->n_open;
}

static bool end_range(struct kymo__range_walk *walk, struct kymo__call_lane *lane, uint32_t site,
                      uint64_t ns)
{
    if (KYMO_UNLIKELY(lane->n_too_deep != 0)) {
        lane->n_too_deep--;
        return true;
    }
    if (lane->n_open == 0)
        return true;
    if (KYMO_LIKELY(site == 0 || lane->open[lane->n_open - 1].site == site))
        return close_range(walk, lane, ns);
    for (const size_t target = find_range(walk, lane, site); lane->n_open > target;)
        if (!close_range(walk, lane, ns))
            return false;
    return true;
}

/* For as long as it closes, the range is on top. */
static bool end_of(struct kymo__range_walk *walk, struct kymo__call_lane *lane, uint32_t site,
                   uint64_t ns)
{
    const size_t depth = find_range(walk, lane, site);
    if (depth == lane->n_open) {
        lane->n_too_deep -= lane->n_too_deep != 0;
        return true;
    }
    const struct kymo__open_call call = lane->open[depth];
    memmove(&lane->open[depth], &lane->open[depth + 1],
            (lane->n_open - depth - 1) * sizeof lane->open[0]);
    lane->open[lane->n_open - 1] = call;
    return close_range(walk, lane, ns);
}

static bool close_all(struct kymo__range_walk *walk, struct kymo__call_lane *lane)
{
    lane->n_too_deep = 0;
    while (lane->n_open > 0)
        if (!close_range(walk, lane, lane->last_ns))
            return false;
    return true;
}

static bool take_record(struct kymo__range_walk *walk, struct kymo__call_lane *lane,
                        const struct kymo_batch *batch, const uint64_t *words, uint64_t ns)
{
    switch (kymo_record_type_of(words[0])) {
    case KYMO_RECORD_BEGIN:
        return open_range(walk, lane, kymo_record_site(words[1]), ns);
    case KYMO_RECORD_END_OF:
        return end_of(walk, lane, kymo_record_site(words[1]), ns);
    case KYMO_RECORD_GAP:
        return close_all(walk, lane);
    default:
        return walk->record(walk->ctx, lane, batch, words, ns);
    }
}

static bool take_words(struct kymo__range_walk *walk, struct kymo__call_lane *lane,
                       const struct kymo_batch *batch)
{
    const uint64_t *word = batch->words, *const end = word + batch->n;
    while (word < end) {
        const uint64_t w = *word;
        const uint64_t ns = kymo_batch_ns(batch, w);
        const uint32_t kind = kymo_word_kind(w);
        bool done = true;
        if (kind == KYMO_KIND_BEGIN)
            done = open_range(walk, lane, kymo_word_id(w), ns);
        else if (kind == KYMO_KIND_END)
            done = end_range(walk, lane, kymo_word_id(w), ns);
        else if (kind == KYMO_KIND_RECORD)
            done = take_record(walk, lane, batch, word, ns);
        if (KYMO_UNLIKELY(!done))
            return false;
        lane->last_ns = ns;
        word += kind == KYMO_KIND_RECORD ? kymo_record_length(w) : 1;
    }
    return true;
}

static kymo_status no_memory(const struct kymo__range_walk *walk)
{
    return kymo__fail(KYMO_ENOMEM, "no memory to break down %s", walk->process->log_path);
}

static kymo_status visit_batch(void *ctx, const struct kymo_batch *batch)
{
    struct kymo__range_walk *walk = ctx;
    struct kymo__call_lane *lane = &walk->lanes[batch->lane->lane];
    lane->info = batch->lane;
    if ((batch->gap && !close_all(walk, lane)) || !take_words(walk, lane, batch))
        return no_memory(walk);
    if (batch->n == 0)
        return KYMO_OK;
    walk->first_ns = KYMO__MIN(walk->first_ns, kymo_batch_ns(batch, batch->words[0]));
    walk->last_ns = KYMO__MAX(walk->last_ns, lane->last_ns);
    return KYMO_OK;
}

kymo_status kymo__range_walk(struct kymo__range_walk *walk)
{
    const size_t n_lanes = walk->process->n_lanes;
    walk->first_ns = UINT64_MAX;
    walk->last_ns = 0;
    walk->lanes = kymo__calloc(n_lanes + 1, sizeof *walk->lanes);
    if (walk->lanes == NULL)
        return no_memory(walk);
    kymo_status status =
        kymo__recording_visit_in_order(walk->recording, walk->process->index, visit_batch, walk);
    for (size_t i = 0; i < n_lanes; i++) {
        if (status == KYMO_OK && !close_all(walk, &walk->lanes[i]))
            status = no_memory(walk);
        kymo__free(walk->lanes[i].open);
    }
    kymo__free(walk->lanes);
    walk->lanes = NULL;
    return status;
}
