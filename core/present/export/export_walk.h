/*
 * Exports as visitors of a lane's replay (rules: analyze/walk/lane_replay.h): calls the format for each event, on the
 * export's clock. Everything is inlined into a format's batch function with a constant table, so that the calls
 * below become direct. MAREY__EXPORT_BATCH at the end defines that function.
 */
#ifndef MAREY_EXPORT_WALK_H
#define MAREY_EXPORT_WALK_H

#include <assert.h>

#include "present/export/internal.h"

/* A format's functions for events; NULL: ignored. Timestamps never go back within a lane. */
struct marey__walker {
    /* Called before the range is on the stack. */
    void (*begin)(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                  uint32_t site, const struct marey__payload *payload);
    /*
     * Called after removing it from the stack, whose height is then its depth. `is_cut`: `ns` is its last known
     * timestamp.
     */
    void (*end)(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                const struct marey__frame *range, bool is_cut);
    void (*mark)(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                 uint32_t site, const struct marey__payload *payload);
    void (*counter)(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                    uint32_t site, double value);
    /* `name` is the site. */
    void (*async)(struct marey__export *x, struct marey__export_lane *lane,
                  const struct marey__async_half *half);
    /* Events of this lane are missing here; 0: unknown number. */
    void (*lost)(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                 uint64_t n_events);
    /* As in marey__lane_visitor. */
    void (*take_out)(struct marey__export *x, struct marey__export_lane *lane, size_t depth,
                     uint64_t shared_ns, bool is_done);
    /* `begin` gets the records after the begin of a range that describe it; otherwise they are complete at its end. */
    bool looks_ahead;
    bool may_overlap; /* otherwise ranges must nest in this format, unless it has take_out */
};

/* Sites known to the reader have their own slots; slot 0 is for all others. */
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

/* Bytes of a text, padded to whole words. */
static inline size_t marey__whole_words(size_t len)
{
    return (len + 7) / 8 * 8;
}

/* Append a payload, its text padded to whole words, and its records; if there is one, borrowed. */
void marey__payload_put(struct marey__buf *into, const struct marey__payload *payload);
static inline struct marey__payload marey__payload_at(const char *stored)
{
    struct marey__payload payload;
    memcpy(&payload, stored, sizeof payload);
    payload.text = stored + sizeof payload;
    payload.records = (const uint64_t *)(payload.text + marey__whole_words(payload.len));
    return payload;
}

/* The payload at the begin of `range`, and later records about it, valid until the lane's next event; all 0 if none. */
static inline struct marey__payload marey__open_payload(const struct marey__export_lane *lane,
                                                        const struct marey__frame *range)
{
    return range->payload != 0 ? marey__payload_at(lane->payloads.data + range->payload - 1)
                               : (struct marey__payload){0};
}

/* For formats that use the stack of a stream: false beyond its limit, and on out of memory, which sets x->status. */
bool marey__export_lane_has_room(struct marey__export *x, struct marey__export_lane *lane);
/* Keep `payload` while its range is open; 0 if there is nothing to keep, or on out of memory. */
uint32_t marey__export_lane_keep(struct marey__export *x, struct marey__export_lane *lane,
                                 const struct marey__payload *payload);
/* Keep another record about the topmost range, if any. */
void marey__export_lane_note(struct marey__export *x, struct marey__export_lane *lane,
                             const uint64_t *words, size_t len);
/*
 * How many of the `n` words are records about the range whose begin, `begin`, is right before them, including flows
 * with the same timestamp.
 */
size_t marey__export_look_ahead(uint64_t begin, const uint64_t *words, size_t n);

/* The payload of a record of `len` words; its text is truncated to the record. */
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

/* ---- the visitor ---- */

struct marey__export_visit {
    struct marey__export *x;
    const struct marey__walker *walker;
};

/* A begin with more than a site and a timestamp, or one that begins again. */
MAREY__INLINE void marey__walk_begin_with(struct marey__export *x, struct marey__export_lane *lane,
                                          struct marey__frame *frame, const uint64_t *words,
                                          size_t n, const struct marey__walker *walker)
{
    struct marey__payload payload = {0};
    bool has_any = true;
    if (words == NULL) {
        payload = marey__open_payload(lane, frame);
        has_any = frame->payload != 0;
    } else if (marey_word_kind(words[0]) == MAREY_KIND_RECORD) {
        payload = marey__record_payload(words, marey_record_length(words[0]));
    } else if (walker->looks_ahead && n > 1) {
        payload.n_early = payload.n_words =
            (uint32_t)marey__export_look_ahead(words[0], words + 1, n - 1);
        payload.records = words + 1;
        lane->n_ahead = payload.n_words;
        has_any = payload.n_words != 0 || frame->repeat != 0;
    }
    payload.repeat = frame->repeat;
    if (walker->begin != NULL && !marey__is_skipped(x, frame->site))
        walker->begin(x, lane, frame->start_ns, frame->site, has_any ? &payload : NULL);
    if (words != NULL)
        frame->payload = marey__export_lane_keep(x, lane, &payload);
}

MAREY__INLINE bool marey__walk_on_begin(void *ctx, struct marey__lane_stack *stack,
                                        struct marey__frame *frame, const uint64_t *words, size_t n)
{
    const struct marey__export_visit *visit = ctx;
    const struct marey__walker *walker = visit->walker;
    struct marey__export *x = visit->x;
    struct marey__export_lane *lane = marey__export_lane_of(stack);
    const bool is_plain =
        words != NULL && marey_word_kind(words[0]) == MAREY_KIND_BEGIN && frame->repeat == 0 &&
        !(walker->looks_ahead && n > 1 && marey_word_kind(words[1]) == MAREY_KIND_RECORD);
    if (MAREY_UNLIKELY(!is_plain))
        marey__walk_begin_with(x, lane, frame, words, n, walker);
    else if (walker->begin != NULL && !marey__is_skipped(x, frame->site))
        walker->begin(x, lane, frame->start_ns, frame->site, NULL);
    return true;
}

MAREY__INLINE bool marey__walk_on_end(void *ctx, struct marey__lane_stack *stack,
                                      const struct marey__frame *range, uint64_t ns,
                                      enum marey__ending how)
{
    const struct marey__export_visit *visit = ctx;
    struct marey__export_lane *lane = marey__export_lane_of(stack);
    if (!marey__is_skipped(visit->x, range->site))
        visit->walker->end(visit->x, lane, ns, range, how == MAREY__CUT);
    if (MAREY_UNLIKELY(range->payload != 0) && how < MAREY__TAKEN_OUT)
        lane->payloads.len = range->payload - 1;
    return true;
}

MAREY__INLINE bool marey__walk_on_mark(void *ctx, struct marey__lane_stack *stack, uint32_t site,
                                       uint64_t ns)
{
    const struct marey__export_visit *visit = ctx;
    ns = MAREY__MAX(ns, stack->last_ns);
    if (visit->walker->mark != NULL && !marey__is_skipped(visit->x, site))
        visit->walker->mark(visit->x, marey__export_lane_of(stack), ns, site, NULL);
    return true;
}

MAREY__INLINE bool marey__walk_on_gap(void *ctx, struct marey__lane_stack *stack, uint64_t ns,
                                      uint64_t n_events)
{
    const struct marey__export_visit *visit = ctx;
    if (visit->walker->lost != NULL)
        visit->walker->lost(visit->x, marey__export_lane_of(stack), ns, n_events);
    return true;
}

MAREY__INLINE bool marey__walk_on_take_out(void *ctx, struct marey__lane_stack *stack, size_t depth,
                                           uint64_t shared_ns, bool is_done)
{
    const struct marey__export_visit *visit = ctx;
    if (visit->walker->take_out != NULL)
        visit->walker->take_out(visit->x, marey__export_lane_of(stack), depth, shared_ns, is_done);
    return true;
}

MAREY__INLINE bool marey__walk_on_covered(void *ctx, struct marey__lane_stack *stack, size_t depth,
                                          uint64_t ns)
{
    const struct marey__export_visit *visit = ctx;
    if (visit->x->format->covered != NULL)
        visit->x->format->covered(visit->x, marey__export_lane_of(stack), depth, ns);
    return true;
}

MAREY__INLINE bool marey__walk_on_record(void *ctx, struct marey__lane_stack *stack,
                                         const struct marey_batch *batch, const uint64_t *words,
                                         uint64_t ns)
{
    const struct marey__export_visit *visit = ctx;
    const struct marey__walker *walker = visit->walker;
    struct marey__export *x = visit->x;
    struct marey__export_lane *lane = marey__export_lane_of(stack);
    const uint32_t type = marey_record_type_of(words[0]), len = marey_record_length(words[0]);
    (void)batch;
    ns = MAREY__MAX(ns, stack->last_ns);
    if (walker->looks_ahead && lane->n_ahead != 0) { /* already passed to `begin` */
        lane->n_ahead -= len;
        return true;
    }
    if (marey__is_progress(type)) {
        marey__export_progress(x, words, ns);
        return true;
    }
    if (type >= MAREY_RECORD_LAUNCH && type <= MAREY_RECORD_ARGUMENTS) {
        marey__export_lane_note(x, lane, words, len);
        return true;
    }
    if (type == MAREY_RECORD_AROUND) {
        lane->has_self_times = true;
        return true;
    }
    const uint32_t site = marey_record_site(words[1]);
    if (marey__is_skipped(x, site))
        return true;
    if (type == MAREY_RECORD_MARK && walker->mark != NULL) {
        const struct marey__payload payload = marey__record_payload(words, len);
        walker->mark(x, lane, ns, site, &payload);
    } else if (type == MAREY_RECORD_COUNTER && walker->counter != NULL) {
        double value;
        memcpy(&value, &words[2], sizeof value);
        walker->counter(x, lane, ns, site, value);
    } else if ((type == MAREY_RECORD_ASYNC_BEGIN || type == MAREY_RECORD_ASYNC_END) &&
               walker->async != NULL) {
        const struct marey__async_half half = {.handle = words[2],
                                               .ns = ns,
                                               .name = site,
                                               .lane = stack->info->lane,
                                               .is_begin = type == MAREY_RECORD_ASYNC_BEGIN};
        walker->async(x, lane, &half);
    } else if (type == MAREY_RECORD_FLOW && x->format->flow != NULL) {
        x->format->flow(x, lane, ns, words);
    } /* else of a later version */
    return true;
}

MAREY__INLINE marey_status marey__walk(struct marey__export *x, struct marey__export_lane *lane,
                                       const struct marey_batch *batch,
                                       const struct marey__walker *walker)
{
    const struct marey__lane_visitor visitor = {
        .begin = marey__walk_on_begin,
        .end = marey__walk_on_end,
        .mark = marey__walk_on_mark,
        .record = marey__walk_on_record,
        .gap = marey__walk_on_gap,
        .take_out = marey__walk_on_take_out,
        .covered = marey__walk_on_covered,
        .must_nest = walker->take_out == NULL && !walker->may_overlap,
    };
    struct marey__export_visit visit = {x, walker};
    struct marey_batch shifted = *batch;
    shifted.base_ns += (uint64_t)x->shift_ns;
    if (!marey__replay_batch(&x->replay, &lane->stack, &shifted, &visitor, &visit))
        return marey__no_memory();
    return x->status != MAREY_OK ? x->status : x->out.status;
}

/* Call `put` for each range of the process that never ended, outermost first, with its `depth`. */
MAREY__INLINE void
marey__walk_left_open(struct marey__export *x,
                      void (*put)(struct marey__export *x, const struct marey__export_lane *lane,
                                  const struct marey__frame *range, uint32_t depth))
{
    for (uint32_t i = 0; i < x->process->n_lanes; i++) {
        const struct marey__export_lane *lane = &x->lanes[i];
        for (size_t k = 0; k < lane->stack.n_open; k++) {
            if (!marey__is_skipped(x, lane->stack.open[k].site))
                put(x, lane, &lane->stack.open[k], (uint32_t)k);
        }
    }
}

/*
 * Defines the batch function `on_batch` for a format's `walker`. `open_lane_` prepares a lane before its first event:
 * it sets lane->own, or sets x->status and returns false.
 */
#define MAREY__EXPORT_BATCH(open_lane_)                                                            \
    static marey_status on_batch(struct marey__export *x, struct marey__export_lane *lane,         \
                                 const struct marey_batch *batch)                                  \
    {                                                                                              \
        if (MAREY_UNLIKELY(lane->own == NULL) && !open_lane_(x, lane))                             \
            return x->status;                                                                      \
        return marey__walk(x, lane, batch, &walker);                                               \
    }                                                                                              \
    static_assert(true, "takes the semicolon")

#endif
