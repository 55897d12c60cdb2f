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
 * become direct ones. KYMO__EXPORT_BATCH at the end writes that function.
 */
#ifndef KYMO_EXPORT_WALK_H
#define KYMO_EXPORT_WALK_H

#include <assert.h>

#include "present/export_internal.h"

#define KYMO__INLINE static inline __attribute__((always_inline))

/*
 * What a format does with events. Times are on the clock of the export and never go back within a
 * lane.
 */
struct kymo__walker {
    /* Called before the range is on the stack. */
    void (*begin)(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                  uint32_t site, const struct kymo__payload *payload);
    /*
     * Called once it is off the stack, whose height is then its depth. `is_cut`: `ns` is the last
     * known of it.
     */
    void (*end)(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                const struct kymo__open_range *range, bool is_cut);
    void (*mark)(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns, uint32_t site,
                 const struct kymo__payload *payload);
    void (*counter)(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                    uint32_t site, double value);
    void (*async)(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                  uint32_t site, uint64_t handle, bool begins);
    /* Events of this lane are missing here; 0: nobody counted them. */
    void (*lost)(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                 uint64_t n_events);
    /*
     * The range at `depth`, from 0, ends while those above it go on: called before its `end`, and
     * with `is_done` once the stack has closed up behind it, for formats that keep a stack beside
     * the walk's. The range above has been open for `shared_ns`. NULL: ranges must nest in this
     * format, so that those above are ended and begun again.
     */
    void (*take_out)(struct kymo__export *x, struct kymo__export_lane *lane, size_t depth,
                     uint64_t shared_ns, bool is_done);
    /* `begin` wants what is said of the range right behind its begin; else all of it is there at its end. */
    bool looks_ahead;
};

/* Sites the reader knows have a slot of their own; slot 0 stands for all others. */
KYMO__INLINE uint32_t kymo__site_slot(const struct kymo__export *x, uint32_t site)
{
    return KYMO_LIKELY(site <= x->process->n_sites) ? site : 0;
}

KYMO__INLINE struct kymo__site_text kymo__site_text(const struct kymo__export *x, uint32_t site)
{
    return ((const struct kymo__site_text *)x->sites)[kymo__site_slot(x, site)];
}

KYMO__INLINE bool kymo__is_skipped(const struct kymo__export *x, uint32_t site)
{
    return x->skip != NULL && x->skip[kymo__site_slot(x, site)] != 0;
}

/* Bytes of a text with what fills it to whole words. */
static inline size_t kymo__whole_words(size_t len)
{
    return (len + 7) / 8 * 8;
}

/* The payload `range` began with and what was said of it since, lent until the lane's next event; all 0 when it has none. */
static inline struct kymo__payload kymo__open_payload(const struct kymo__export_lane *lane,
                                                      const struct kymo__open_range *range)
{
    struct kymo__payload payload = {0};
    if (range->payload == 0)
        return payload;
    const char *stored = lane->payloads.data + range->payload - 1;
    memcpy(&payload, stored, sizeof payload);
    payload.text = stored + sizeof payload;
    payload.records = (const uint64_t *)(payload.text + kymo__whole_words(payload.len));
    return payload;
}

KYMO__INLINE void kymo__walk_pop(struct kymo__export *x, struct kymo__export_lane *lane,
                                 uint64_t ns, bool is_cut, const struct kymo__walker *walker)
{
    const struct kymo__open_range range = lane->open[--lane->n_open];
    if (!kymo__is_skipped(x, range.site))
        walker->end(x, lane, ns, &range, is_cut);
    if (KYMO_UNLIKELY(range.payload != 0))
        lane->payloads.len = range.payload - 1;
}

/*
 * A damaged file may begin ranges without end, or hold nothing but orphans: neither may cost memory
 * or time for each.
 */
enum { KYMO__MAX_OPEN = 1 << 20, KYMO__MAX_SEARCH = 1000 };

/*
 * The stack is full: make room. False at the limit, where ranges are only counted, and without
 * memory, which whoever asks at the end of the batch is told.
 */
bool kymo__export_lane_grow(struct kymo__export *x, struct kymo__export_lane *lane);
/*
 * How high the stack is below the topmost range of this site's name; its whole height when there is
 * none.
 */
size_t kymo__export_lane_find(const struct kymo__export *x, const struct kymo__export_lane *lane,
                              uint32_t site);
/* Keep `payload` while its range is open, and forget what is in `next`; 0 when there is nothing, or no memory. */
uint32_t kymo__export_lane_keep(struct kymo__export *x, struct kymo__export_lane *lane,
                                const struct kymo__payload *payload);

/* Keep one more record about the topmost range, if there is one. */
void kymo__export_lane_note(struct kymo__export *x, struct kymo__export_lane *lane,
                            const uint64_t *words, size_t len);
/*
 * How many of the `n` words are records about the range whose begin stands right before them; `begin` is that word, and
 * flows that are told at the same time are among them.
 */
size_t kymo__export_look_ahead(uint64_t begin, const uint64_t *words, size_t n);

KYMO__INLINE void kymo__walk_begin(struct kymo__export *x, struct kymo__export_lane *lane,
                                   uint64_t ns, uint32_t site, const struct kymo__payload *payload,
                                   const struct kymo__walker *walker)
{
    if (KYMO_UNLIKELY(lane->n_open == lane->cap_open) && !kymo__export_lane_grow(x, lane))
        return;
    if (!kymo__is_skipped(x, site))
        walker->begin(x, lane, ns, site, payload);
    lane->open[lane->n_open++] = (struct kymo__open_range){
        .start_ns = ns,
        .site = site,
        .payload = payload != NULL ? kymo__export_lane_keep(x, lane, payload) : 0,
    };
}

KYMO__INLINE void kymo__walk_end(struct kymo__export *x, struct kymo__export_lane *lane,
                                 uint64_t ns, uint32_t site, const struct kymo__walker *walker)
{
    if (KYMO_UNLIKELY(lane->n_too_deep != 0)) {
        lane->n_too_deep--;
        return;
    }
    if (KYMO_UNLIKELY(lane->n_open == 0))
        return;
    const size_t top = lane->n_open - 1;
    if (KYMO_LIKELY(site == 0 || lane->open[top].site == site)) {
        kymo__walk_pop(x, lane, ns, false, walker);
        return;
    }
    for (const size_t target = kymo__export_lane_find(x, lane, site); lane->n_open > target;)
        kymo__walk_pop(x, lane, ns, false, walker);
}

/* Everything above `depth` ends and begins again, and in between the range there ends for good. */
KYMO__INLINE void kymo__walk_split(struct kymo__export *x, struct kymo__export_lane *lane,
                                   uint64_t ns, size_t depth, const struct kymo__walker *walker)
{
    for (size_t i = lane->n_open; i-- > depth;) {
        const struct kymo__open_range range = lane->open[i];
        lane->n_open = i;
        if (!kymo__is_skipped(x, range.site))
            walker->end(x, lane, ns, &range, false);
    }
}

KYMO__INLINE void kymo__walk_begin_again(struct kymo__export *x, struct kymo__export_lane *lane,
                                         uint64_t ns, const struct kymo__walker *walker)
{
    struct kymo__open_range *range = &lane->open[lane->n_open];
    const struct kymo__payload payload = kymo__open_payload(lane, range);
    if (!kymo__is_skipped(x, range->site))
        walker->begin(x, lane, ns, range->site, range->payload != 0 ? &payload : NULL);
    range->start_ns = ns;
    lane->n_open++;
}

/* The innermost range of this site's name ends; those begun after it stay open. */
KYMO__INLINE void kymo__walk_end_of(struct kymo__export *x, struct kymo__export_lane *lane,
                                    uint64_t ns, uint32_t site, const struct kymo__walker *walker)
{
    const size_t n = lane->n_open, depth = kymo__export_lane_find(x, lane, site);
    if (depth == n) {
        lane->n_too_deep -= lane->n_too_deep != 0;
        return;
    }
    if (depth + 1 == n) {
        kymo__walk_pop(x, lane, ns, false, walker);
        return;
    }
    const uint64_t shared_ns = ns - KYMO__MIN(lane->open[depth + 1].start_ns, ns);
    if (walker->take_out == NULL) {
        kymo__walk_split(x, lane, ns, depth, walker);
    } else {
        const struct kymo__open_range range = lane->open[depth];
        walker->take_out(x, lane, depth, shared_ns, false);
        lane->n_open = depth;
        if (!kymo__is_skipped(x, range.site))
            walker->end(x, lane, ns, &range, false);
    }
    memmove(&lane->open[depth], &lane->open[depth + 1], (n - depth - 1) * sizeof lane->open[0]);
    if (walker->take_out == NULL) {
        while (lane->n_open < n - 1)
            kymo__walk_begin_again(x, lane, ns, walker);
    } else {
        lane->n_open = n - 1;
        walker->take_out(x, lane, depth, shared_ns, true);
    }
}

KYMO__INLINE void kymo__walk_lost(struct kymo__export *x, struct kymo__export_lane *lane,
                                  uint64_t ns, uint64_t n_events, const struct kymo__walker *walker)
{
    while (lane->n_open > 0)
        kymo__walk_pop(x, lane, lane->last_ns, true, walker);
    lane->n_too_deep = 0;
    lane->next.repeat = 0;
    walker->lost(x, lane, ns, n_events);
}

/* The payload of a record of `len` words; its text is cut to what is there. */
static inline struct kymo__payload kymo__record_payload(const uint64_t *words, size_t len)
{
    struct kymo__payload payload = {.type = kymo_record_payload_type(words[1])};
    if (payload.type == KYMO_PAYLOAD_TEXT) {
        payload.len =
            (uint32_t)KYMO__MIN((size_t)kymo_record_text_len(words[1]), (len - 2) * sizeof words[0]);
        payload.text = (const char *)(words + 2);
    } else if (len > 2) {
        payload.bits = words[2];
    } else {
        payload.type = 0;
    }
    return payload;
}

/* A record of `len` words, at least 2, stamped `ns`. */
KYMO__INLINE void kymo__walk_record(struct kymo__export *x, struct kymo__export_lane *lane,
                                    const uint64_t *words, size_t len, uint64_t ns,
                                    const struct kymo__walker *walker)
{
    const uint32_t type = kymo_record_type_of(words[0]);
    const uint32_t site = kymo_record_site(words[1]);
    struct kymo__payload payload;
    double value;

    switch (type) {
    case KYMO_RECORD_BEGIN:
        payload = kymo__record_payload(words, len);
        payload.repeat = lane->next.repeat;
        kymo__walk_begin(x, lane, ns, site, &payload, walker);
        break;
    case KYMO_RECORD_MARK:
        payload = kymo__record_payload(words, len);
        if (!kymo__is_skipped(x, site))
            walker->mark(x, lane, ns, site, &payload);
        break;
    case KYMO_RECORD_COUNTER:
        if (len < 3 || kymo__is_skipped(x, site))
            break;
        memcpy(&value, &words[2], sizeof value);
        walker->counter(x, lane, ns, site, value);
        break;
    case KYMO_RECORD_ASYNC_BEGIN:
    case KYMO_RECORD_ASYNC_END:
        if (len >= 3 && !kymo__is_skipped(x, site))
            walker->async(x, lane, ns, site, words[2], type == KYMO_RECORD_ASYNC_BEGIN);
        break;
    case KYMO_RECORD_END_OF:
        kymo__walk_end_of(x, lane, ns, site, walker);
        break;
    case KYMO_RECORD_ITERATION:
    case KYMO_RECORD_ITERATION_BEGIN:
    case KYMO_RECORD_EPOCH:
    case KYMO_RECORD_PHASE:
        kymo__export_progress(x, words, ns);
        break;
    case KYMO_RECORD_GAP:
        kymo__walk_lost(x, lane, ns, words[1], walker);
        break;
    case KYMO_RECORD_REPEAT:
        lane->next.repeat = KYMO__MIN(words[1], KYMO__MAX_REPEAT) + 1;
        break;
    case KYMO_RECORD_LAUNCH:
    case KYMO_RECORD_COMMUNICATION:
    case KYMO_RECORD_ARGUMENTS:
        kymo__export_lane_note(x, lane, words, len);
        break;
    case KYMO_RECORD_FLOW:
        if (len >= 4 && x->format->flow != NULL && !kymo__is_skipped(x, site))
            x->format->flow(x, lane, ns, words);
        break;
    default: /* of a later version */
        break;
    }
}

/* A begin at words[0] of `n`; returns how many of them it took. */
KYMO__INLINE size_t kymo__walk_plain_begin(struct kymo__export *x, struct kymo__export_lane *lane,
                                           const uint64_t *words, size_t n, uint64_t ns,
                                           const struct kymo__walker *walker)
{
    struct kymo__payload *next = &lane->next;
    const uint32_t site = kymo_word_id(words[0]);
    if (walker->looks_ahead && n > 1 && KYMO_UNLIKELY(kymo_word_kind(words[1]) == KYMO_KIND_RECORD)) {
        next->n_early = next->n_words = (uint32_t)kymo__export_look_ahead(words[0], words + 1, n - 1);
        next->records = words + 1;
    }
    const uint32_t n_ahead = walker->looks_ahead ? next->n_words : 0;
    const bool has_any = next->repeat != 0 || n_ahead != 0;
    kymo__walk_begin(x, lane, ns, site, KYMO_UNLIKELY(has_any) ? next : NULL, walker);
    if (walker->looks_ahead)
        next->n_words = 0;
    return 1 + n_ahead;
}

KYMO__INLINE kymo_status kymo__walk(struct kymo__export *x, struct kymo__export_lane *lane,
                                    const struct kymo_batch *batch, const struct kymo__walker *walker)
{
    struct kymo_batch shifted = *batch;
    shifted.base_ns += (uint64_t)x->shift_ns;

    if (batch->gap && batch->n > 0)
        kymo__walk_lost(x, lane, kymo_batch_ns(&shifted, batch->words[0]), 0, walker);
    for (size_t i = 0, step; i < batch->n; i += step) {
        const uint64_t word = batch->words[i];
        const uint64_t ns = KYMO__MAX(kymo_batch_ns(&shifted, word), lane->last_ns);
        const uint32_t kind = kymo_word_kind(word);

        step = 1;
        if (kind == KYMO_KIND_BEGIN) {
            step = kymo__walk_plain_begin(x, lane, batch->words + i, batch->n - i, ns, walker);
        } else if (kind == KYMO_KIND_END) {
            kymo__walk_end(x, lane, ns, kymo_word_id(word), walker);
        } else if (kind == KYMO_KIND_MARK) {
            if (!kymo__is_skipped(x, kymo_word_id(word)))
                walker->mark(x, lane, ns, kymo_word_id(word), NULL);
        } else if (kind == KYMO_KIND_RECORD) {
            /* The reader hands over whole records; a length of 0 would hold us here for ever. */
            step = KYMO__MAX(kymo_record_length(word), 1u);
            if (step >= 2 && step <= batch->n - i)
                kymo__walk_record(x, lane, batch->words + i, step, ns, walker);
        }
        lane->last_ns = ns;
    }
    return x->status != KYMO_OK ? x->status : x->out.status;
}

/* For formats that write a range when it ends. */
KYMO__INLINE void kymo__walk_no_begin(struct kymo__export *x, struct kymo__export_lane *lane,
                                      uint64_t ns, uint32_t site, const struct kymo__payload *payload)
{
    (void)x, (void)lane, (void)ns, (void)site, (void)payload;
}

/* Call `put` for each range of the process that never ended, outermost first; `depth` is its own. */
KYMO__INLINE void
kymo__walk_left_open(struct kymo__export *x,
                     void (*put)(struct kymo__export *x, const struct kymo__export_lane *lane,
                                 const struct kymo__open_range *range, uint32_t depth))
{
    for (uint32_t i = 0; i < x->process->n_lanes; i++) {
        const struct kymo__export_lane *lane = &x->lanes[i];
        for (size_t k = 0; k < lane->n_open; k++) {
            if (!kymo__is_skipped(x, lane->open[k].site))
                put(x, lane, &lane->open[k], (uint32_t)k);
        }
    }
}

/* For formats in which ranges may overlap and that keep no stack of their own. */
KYMO__INLINE void kymo__walk_no_stack(struct kymo__export *x, struct kymo__export_lane *lane,
                                      size_t depth, uint64_t shared_ns, bool is_done)
{
    (void)x, (void)lane, (void)depth, (void)shared_ns, (void)is_done;
}

/* A format that looks ahead defines this before it includes us. */
#ifndef KYMO__LOOKS_AHEAD
#define KYMO__LOOKS_AHEAD false
#endif

/*
 * Define a format's `walker` from its own on_end, on_mark, on_counter, on_async and on_lost.
 * `take_out_` is NULL where ranges must nest.
 */
#define KYMO__EXPORT_WALKER(on_begin_, take_out_)                                                  \
    static const struct kymo__walker walker = {                                                    \
        .begin = on_begin_,                                                                        \
        .looks_ahead = KYMO__LOOKS_AHEAD,                                                          \
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
#define KYMO__EXPORT_BATCH(open_lane_, on_begin_, take_out_)                                       \
    KYMO__EXPORT_WALKER(on_begin_, take_out_);                                                     \
    static kymo_status on_batch(struct kymo__export *x, struct kymo__export_lane *lane,            \
                                const struct kymo_batch *batch)                                    \
    {                                                                                              \
        if (KYMO_UNLIKELY(lane->own == NULL) && !open_lane_(x, lane))                              \
            return x->status;                                                                      \
        return kymo__walk(x, lane, batch, &walker);                                                \
    }                                                                                              \
    static_assert(true, "takes the semicolon")

#endif
