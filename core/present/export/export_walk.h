/*
 * The walk over a lane's words: pairs ends with begins, as the summary does, and calls the format
 * for each event.
 *
 *   an end whose name is not on the stack       is an orphan, its begin was not recorded: left out
 *   an end whose name lies deeper in the stack  closes what lies above it at the same time
 *   a record END_OF                             takes its range out of the middle; what lies above goes on
 *   events of this lane are missing             what is open is cut off at the last moment known
 *
 * Names decide, because a range may begin at one site and end at another of the same name.
 * Everything is inlined into a format's batch function with a constant table, so the calls below
 * become direct ones. MAREY__EXPORT_BATCH at the end writes that function.
 */
#ifndef MAREY_EXPORT_WALK_H
#define MAREY_EXPORT_WALK_H

#include <assert.h>

#include "present/export/export_internal.h"

#define MAREY__INLINE static inline __attribute__((always_inline))

/*
 * What a format does with events. Times are on the clock of the export and never go back within a
 * lane.
 */
struct marey__walker {
    /* Called before the range is on the stack. */
    void (*begin)(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                  uint32_t site, const struct marey__payload *payload);
    /*
     * Called once it is off the stack, whose height is then its depth. `is_cut`: `ns` is the last
     * known of it.
     */
    void (*end)(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                const struct marey__open_range *range, bool is_cut);
    void (*mark)(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                 uint32_t site, const struct marey__payload *payload);
    void (*counter)(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                    uint32_t site, double value);
    void (*async)(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                  uint32_t site, uint64_t handle, bool begins);
    /* Events of this lane are missing here; 0: nobody counted them. */
    void (*lost)(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                 uint64_t n_events);
    /*
     * The range at `depth`, from 0, ends while those above it go on: called before its `end`, and
     * with `is_done` once the stack has closed up behind it, for formats that keep a stack beside
     * the walk's. The range above has been open for `shared_ns`. NULL: ranges must nest in this
     * format, so that those above are ended and begun again.
     */
    void (*take_out)(struct marey__export *x, struct marey__export_lane *lane, size_t depth,
                     uint64_t shared_ns, bool is_done);
    /* `begin` wants what is said of the range right behind its begin; else all of it is there at its end. */
    bool looks_ahead;
};

/* Sites the reader knows have a slot of their own; slot 0 stands for all others. */
MAREY__INLINE uint32_t marey__site_slot(const struct marey__export *x, uint32_t site)
{
    return MAREY_LIKELY(site <= x->process->n_sites) ? site : 0;
}

MAREY__INLINE struct marey__site_text marey__site_text(const struct marey__export *x, uint32_t site)
{
    return ((const struct marey__site_text *)x->sites)[marey__site_slot(x, site)];
}

MAREY__INLINE bool marey__is_skipped(const struct marey__export *x, uint32_t site)
{
    return x->skip != NULL && x->skip[marey__site_slot(x, site)] != 0;
}

/* Bytes of a text with what fills it to whole words. */
static inline size_t marey__whole_words(size_t len)
{
    return (len + 7) / 8 * 8;
}

/* The payload `range` began with and what was said of it since, lent until the lane's next event; all 0 when it has none. */
static inline struct marey__payload marey__open_payload(const struct marey__export_lane *lane,
                                                        const struct marey__open_range *range)
{
    struct marey__payload payload = {0};
    if (range->payload == 0)
        return payload;
    const char *stored = lane->payloads.data + range->payload - 1;
    memcpy(&payload, stored, sizeof payload);
    payload.text = stored + sizeof payload;
    payload.records = (const uint64_t *)(payload.text + marey__whole_words(payload.len));
    return payload;
}

MAREY__INLINE void marey__walk_pop(struct marey__export *x, struct marey__export_lane *lane,
                                   uint64_t ns, bool is_cut, const struct marey__walker *walker)
{
    const struct marey__open_range range = lane->open[--lane->n_open];
    if (!marey__is_skipped(x, range.site))
        walker->end(x, lane, ns, &range, is_cut);
    if (MAREY_UNLIKELY(range.payload != 0))
        lane->payloads.len = range.payload - 1;
}

/*
 * A damaged file may begin ranges without end, or hold nothing but orphans: neither may cost memory
 * or time for each.
 */
enum { MAREY__MAX_OPEN = 1 << 20, MAREY__MAX_SEARCH = 1000 };

/*
 * The stack is full: make room. False at the limit, where ranges are only counted, and without
 * memory, which whoever asks at the end of the batch is told.
 */
bool marey__export_lane_grow(struct marey__export *x, struct marey__export_lane *lane);
/*
 * How high the stack is below the topmost range of this site's name; its whole height when there is
 * none.
 */
size_t marey__export_lane_find(const struct marey__export *x, const struct marey__export_lane *lane,
                               uint32_t site);
/* Keep `payload` while its range is open, and forget what is in `next`; 0 when there is nothing, or no memory. */
uint32_t marey__export_lane_keep(struct marey__export *x, struct marey__export_lane *lane,
                                 const struct marey__payload *payload);

/* Keep one more record about the topmost range, if there is one. */
void marey__export_lane_note(struct marey__export *x, struct marey__export_lane *lane,
                             const uint64_t *words, size_t len);
/*
 * How many of the `n` words are records about the range whose begin stands right before them; `begin` is that word, and
 * flows that are told at the same time are among them.
 */
size_t marey__export_look_ahead(uint64_t begin, const uint64_t *words, size_t n);

MAREY__INLINE void marey__walk_begin(struct marey__export *x, struct marey__export_lane *lane,
                                     uint64_t ns, uint32_t site, const struct marey__payload *payload,
                                     const struct marey__walker *walker)
{
    if (MAREY_UNLIKELY(lane->n_open == lane->cap_open) && !marey__export_lane_grow(x, lane))
        return;
    if (!marey__is_skipped(x, site))
        walker->begin(x, lane, ns, site, payload);
    lane->open[lane->n_open++] = (struct marey__open_range){
        .start_ns = ns,
        .site = site,
        .payload = payload != NULL ? marey__export_lane_keep(x, lane, payload) : 0,
    };
}

MAREY__INLINE void marey__walk_end(struct marey__export *x, struct marey__export_lane *lane,
                                   uint64_t ns, uint32_t site, const struct marey__walker *walker)
{
    if (MAREY_UNLIKELY(lane->n_too_deep != 0)) {
        lane->n_too_deep--;
        return;
    }
    if (MAREY_UNLIKELY(lane->n_open == 0))
        return;
    const size_t top = lane->n_open - 1;
    if (MAREY_LIKELY(site == 0 || lane->open[top].site == site)) {
        marey__walk_pop(x, lane, ns, false, walker);
        return;
    }
    for (const size_t target = marey__export_lane_find(x, lane, site); lane->n_open > target;)
        marey__walk_pop(x, lane, ns, false, walker);
}

/* Everything above `depth` ends and begins again, and in between the range there ends for good. */
MAREY__INLINE void marey__walk_split(struct marey__export *x, struct marey__export_lane *lane,
                                     uint64_t ns, size_t depth, const struct marey__walker *walker)
{
    for (size_t i = lane->n_open; i-- > depth;) {
        const struct marey__open_range range = lane->open[i];
        lane->n_open = i;
        if (!marey__is_skipped(x, range.site))
            walker->end(x, lane, ns, &range, false);
    }
}

MAREY__INLINE void marey__walk_begin_again(struct marey__export *x, struct marey__export_lane *lane,
                                           uint64_t ns, const struct marey__walker *walker)
{
    struct marey__open_range *range = &lane->open[lane->n_open];
    const struct marey__payload payload = marey__open_payload(lane, range);
    if (!marey__is_skipped(x, range->site))
        walker->begin(x, lane, ns, range->site, range->payload != 0 ? &payload : NULL);
    range->start_ns = ns;
    lane->n_open++;
}

/* The innermost range of this site's name ends; those begun after it stay open. */
MAREY__INLINE void marey__walk_end_of(struct marey__export *x, struct marey__export_lane *lane,
                                      uint64_t ns, uint32_t site, const struct marey__walker *walker)
{
    const size_t n = lane->n_open, depth = marey__export_lane_find(x, lane, site);
    if (depth == n) {
        lane->n_too_deep -= lane->n_too_deep != 0;
        return;
    }
    if (depth + 1 == n) {
        marey__walk_pop(x, lane, ns, false, walker);
        return;
    }
    const uint64_t shared_ns = ns - MAREY__MIN(lane->open[depth + 1].start_ns, ns);
    if (walker->take_out == NULL) {
        marey__walk_split(x, lane, ns, depth, walker);
    } else {
        const struct marey__open_range range = lane->open[depth];
        walker->take_out(x, lane, depth, shared_ns, false);
        lane->n_open = depth;
        if (!marey__is_skipped(x, range.site))
            walker->end(x, lane, ns, &range, false);
    }
    memmove(&lane->open[depth], &lane->open[depth + 1], (n - depth - 1) * sizeof lane->open[0]);
    if (walker->take_out == NULL) {
        while (lane->n_open < n - 1)
            marey__walk_begin_again(x, lane, ns, walker);
    } else {
        lane->n_open = n - 1;
        walker->take_out(x, lane, depth, shared_ns, true);
    }
}

MAREY__INLINE void marey__walk_lost(struct marey__export *x, struct marey__export_lane *lane,
                                    uint64_t ns, uint64_t n_events,
                                    const struct marey__walker *walker)
{
    while (lane->n_open > 0)
        marey__walk_pop(x, lane, lane->last_ns, true, walker);
    lane->n_too_deep = 0;
    lane->next.repeat = 0;
    walker->lost(x, lane, ns, n_events);
}

/* The payload of a record of `len` words; its text is cut to what is there. */
static inline struct marey__payload marey__record_payload(const uint64_t *words, size_t len)
{
    struct marey__payload payload = {.type = marey_record_payload_type(words[1])};
    if (payload.type == MAREY_PAYLOAD_TEXT) {
        payload.len = (uint32_t)MAREY__MIN((size_t)marey_record_text_len(words[1]),
                                           (len - 2) * sizeof words[0]);
        payload.text = (const char *)(words + 2);
    } else if (len > 2) {
        payload.bits = words[2];
    } else {
        payload.type = 0;
    }
    return payload;
}

/* A record of `len` words, at least 2, stamped `ns`. */
MAREY__INLINE void marey__walk_record(struct marey__export *x, struct marey__export_lane *lane,
                                      const uint64_t *words, size_t len, uint64_t ns,
                                      const struct marey__walker *walker)
{
    const uint32_t type = marey_record_type_of(words[0]);
    const uint32_t site = marey_record_site(words[1]);
    struct marey__payload payload;
    double value;

    switch (type) {
    case MAREY_RECORD_BEGIN:
        payload = marey__record_payload(words, len);
        payload.repeat = lane->next.repeat;
        marey__walk_begin(x, lane, ns, site, &payload, walker);
        break;
    case MAREY_RECORD_MARK:
        payload = marey__record_payload(words, len);
        if (!marey__is_skipped(x, site))
            walker->mark(x, lane, ns, site, &payload);
        break;
    case MAREY_RECORD_COUNTER:
        if (len < 3 || marey__is_skipped(x, site))
            break;
        memcpy(&value, &words[2], sizeof value);
        walker->counter(x, lane, ns, site, value);
        break;
    case MAREY_RECORD_ASYNC_BEGIN:
    case MAREY_RECORD_ASYNC_END:
        if (len >= 3 && !marey__is_skipped(x, site))
            walker->async(x, lane, ns, site, words[2], type == MAREY_RECORD_ASYNC_BEGIN);
        break;
    case MAREY_RECORD_END_OF:
        marey__walk_end_of(x, lane, ns, site, walker);
        break;
    case MAREY_RECORD_ITERATION:
    case MAREY_RECORD_ITERATION_BEGIN:
    case MAREY_RECORD_EPOCH:
    case MAREY_RECORD_PHASE:
        marey__export_progress(x, words, ns);
        break;
    case MAREY_RECORD_GAP:
        marey__walk_lost(x, lane, ns, words[1], walker);
        break;
    case MAREY_RECORD_COVERED:
        if (x->format->covered != NULL && lane->n_too_deep == 0)
            x->format->covered(x, lane, marey__export_lane_find(x, lane, site), words[2]);
        break;
    case MAREY_RECORD_AROUND:
        lane->has_self_times = true;
        break;
    case MAREY_RECORD_REPEAT:
        lane->next.repeat = MAREY__MIN(words[1], MAREY__MAX_REPEAT) + 1;
        break;
    case MAREY_RECORD_LAUNCH:
    case MAREY_RECORD_COMMUNICATION:
    case MAREY_RECORD_ARGUMENTS:
        marey__export_lane_note(x, lane, words, len);
        break;
    case MAREY_RECORD_FLOW:
        if (len >= 4 && x->format->flow != NULL && !marey__is_skipped(x, site))
            x->format->flow(x, lane, ns, words);
        break;
    default: /* of a later version */
        break;
    }
}

/* A begin at words[0] of `n`; returns how many of them it took. */
MAREY__INLINE size_t marey__walk_plain_begin(struct marey__export *x, struct marey__export_lane *lane,
                                             const uint64_t *words, size_t n, uint64_t ns,
                                             const struct marey__walker *walker)
{
    struct marey__payload *next = &lane->next;
    const uint32_t site = marey_word_id(words[0]);
    if (walker->looks_ahead && n > 1 &&
        MAREY_UNLIKELY(marey_word_kind(words[1]) == MAREY_KIND_RECORD)) {
        next->n_early = next->n_words =
            (uint32_t)marey__export_look_ahead(words[0], words + 1, n - 1);
        next->records = words + 1;
    }
    const uint32_t n_ahead = walker->looks_ahead ? next->n_words : 0;
    const bool has_any = next->repeat != 0 || n_ahead != 0;
    marey__walk_begin(x, lane, ns, site, MAREY_UNLIKELY(has_any) ? next : NULL, walker);
    if (walker->looks_ahead)
        next->n_words = 0;
    return 1 + n_ahead;
}

MAREY__INLINE marey_status marey__walk(struct marey__export *x, struct marey__export_lane *lane,
                                       const struct marey_batch *batch,
                                       const struct marey__walker *walker)
{
    struct marey_batch shifted = *batch;
    shifted.base_ns += (uint64_t)x->shift_ns;

    if (batch->gap && batch->n > 0)
        marey__walk_lost(x, lane, marey_batch_ns(&shifted, batch->words[0]), 0, walker);
    for (size_t i = 0, step; i < batch->n; i += step) {
        const uint64_t word = batch->words[i];
        const uint64_t ns = MAREY__MAX(marey_batch_ns(&shifted, word), lane->last_ns);
        const uint32_t kind = marey_word_kind(word);

        step = 1;
        if (kind == MAREY_KIND_BEGIN) {
            step = marey__walk_plain_begin(x, lane, batch->words + i, batch->n - i, ns, walker);
        } else if (kind == MAREY_KIND_END) {
            marey__walk_end(x, lane, ns, marey_word_id(word), walker);
        } else if (kind == MAREY_KIND_MARK) {
            if (!marey__is_skipped(x, marey_word_id(word)))
                walker->mark(x, lane, ns, marey_word_id(word), NULL);
        } else if (kind == MAREY_KIND_RECORD) {
            /* The reader hands over whole records; a length of 0 would hold us here for ever. */
            step = MAREY__MAX(marey_record_length(word), 1u);
            if (step >= 2 && step <= batch->n - i)
                marey__walk_record(x, lane, batch->words + i, step, ns, walker);
        }
        lane->last_ns = ns;
    }
    return x->status != MAREY_OK ? x->status : x->out.status;
}

/* For formats that write a range when it ends. */
MAREY__INLINE void marey__walk_no_begin(struct marey__export *x, struct marey__export_lane *lane,
                                        uint64_t ns, uint32_t site,
                                        const struct marey__payload *payload)
{
    (void)x, (void)lane, (void)ns, (void)site, (void)payload;
}

/* Call `put` for each range of the process that never ended, outermost first; `depth` is its own. */
MAREY__INLINE void
marey__walk_left_open(struct marey__export *x,
                      void (*put)(struct marey__export *x, const struct marey__export_lane *lane,
                                  const struct marey__open_range *range, uint32_t depth))
{
    for (uint32_t i = 0; i < x->process->n_lanes; i++) {
        const struct marey__export_lane *lane = &x->lanes[i];
        for (size_t k = 0; k < lane->n_open; k++) {
            if (!marey__is_skipped(x, lane->open[k].site))
                put(x, lane, &lane->open[k], (uint32_t)k);
        }
    }
}

/* For formats in which ranges may overlap and that keep no stack of their own. */
MAREY__INLINE void marey__walk_no_stack(struct marey__export *x, struct marey__export_lane *lane,
                                        size_t depth, uint64_t shared_ns, bool is_done)
{
    (void)x, (void)lane, (void)depth, (void)shared_ns, (void)is_done;
}

/* A format that looks ahead defines this before it includes us. */
#ifndef MAREY__LOOKS_AHEAD
#define MAREY__LOOKS_AHEAD false
#endif

/*
 * Define a format's `walker` from its own on_end, on_mark, on_counter, on_async and on_lost.
 * `take_out_` is NULL where ranges must nest.
 */
#define MAREY__EXPORT_WALKER(on_begin_, take_out_)                                                 \
    static const struct marey__walker walker = {                                                   \
        .begin = on_begin_,                                                                        \
        .looks_ahead = MAREY__LOOKS_AHEAD,                                                         \
        .end = on_end,                                                                             \
        .mark = on_mark,                                                                           \
        .counter = on_counter,                                                                     \
        .async = on_async,                                                                         \
        .lost = on_lost,                                                                           \
        .take_out = take_out_,                                                                     \
    }

/*
 * The same, and the batch function `on_batch` that most formats have. `open_lane_` prepares a lane
 * before its first event: it sets lane->own, or x->status and returns false.
 */
#define MAREY__EXPORT_BATCH(open_lane_, on_begin_, take_out_)                                      \
    MAREY__EXPORT_WALKER(on_begin_, take_out_);                                                    \
    static marey_status on_batch(struct marey__export *x, struct marey__export_lane *lane,         \
                                 const struct marey_batch *batch)                                  \
    {                                                                                              \
        if (MAREY_UNLIKELY(lane->own == NULL) && !open_lane_(x, lane))                             \
            return x->status;                                                                      \
        return marey__walk(x, lane, batch, &walker);                                               \
    }                                                                                              \
    static_assert(true, "takes the semicolon")

#endif
