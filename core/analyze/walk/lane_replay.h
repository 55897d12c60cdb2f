/*
 * The replay of a lane: turns begins, ends and records of one thread, in the order of the log, into a stack of open ranges
 * and calls of a visitor. Summary, page, breakdown, energy, memory, samples and exports are such visitors, so all of them
 * follow one set of rules:
 *
 *   names          A range may begin at one call site and end at another. Equal names match; an end without a site ends
 *                  the innermost range.
 *   unwinding      An end of a range further down ends the ranges above it at the same timestamp: they were left open.
 *                  They count in `n_unwound`. Only the topmost MAREY__MAX_SEARCH ranges are searched.
 *   orphans        An end whose name is not on the stack has lost its begin: only counted, in `n_orphans`.
 *   overlap        A record END_OF ends the innermost range of its name, and those above continue. The time that both
 *                  ran belongs to the inner one. A visitor whose ranges must nest gets the ones above as two ranges
 *                  (`must_nest`). Imported ranges that overlap without nesting are on further lanes of their thread; a
 *                  record COVERED takes the time they share from the innermost range of its name, a record AROUND
 *                  lists the ranges of other lanes around this one.
 *   recursion      A name may be on the stack any number of times; an end takes the innermost.
 *   depth          At most MAREY__MAX_OPEN ranges are open per lane, and stacks of a process have room for about
 *                  MAREY__MAX_FRAMES. Beyond, begins count in `n_too_deep` and as many ends are skipped.
 *   gaps           Where events of a lane are missing, the ends of its open ranges may be among them: each is cut at the
 *                  lane's last known timestamp and counts in `n_cut_off`. Marked by `gap` of a batch (an empty batch
 *                  reports it early, then `gap` of the visitor follows with the next words) or by a record GAP.
 *   timestamps     Those of begins and ends never go back within a lane: an earlier one is replaced by the latest one,
 *                  so durations are never negative. Other events keep theirs.
 *   repeats        A record REPEAT sets how many calls the next range represents, and is void after a gap.
 *   other records  LAUNCH, COMMUNICATION and ARGUMENTS describe the innermost open range; ASYNC_*, COUNTER, MARK, FLOW
 *                  and the spans of the process (ITERATION, EPOCH, PHASE; progress.c) do not touch the stack. All of
 *                  them go to `record`.
 *   end of a log   Open ranges stay on the stack, for the visitor to handle. They are not in `n_cut_off`.
 *
 * Everything is inlined into the function that takes a batch, with a constant visitor, so that its calls become direct.
 * lane_plain.c is the summary's shortcut for begins and ends that nest.
 */
#ifndef MAREY_LANE_REPLAY_H
#define MAREY_LANE_REPLAY_H

#include "base/internal.h"
#include <marey/recording.h>

#define MAREY__INLINE static inline __attribute__((always_inline))

enum {
    MAREY__MAX_OPEN = 1 << 20,
    MAREY__MAX_FRAMES = 1 << 22,
    MAREY__MAX_SEARCH = 1000,
};

/* Limit on calls represented by a range; sums from a damaged file must not overflow. */
#define MAREY__MAX_REPEAT (UINT64_C(1) << 40)

/* A range that has begun. */
struct marey__frame {
    uint64_t start_ns;
    uint64_t repeat; /* calls that it represents, plus one; 0: not recorded, so it is one call */
    uint32_t site;   /* of its begin */
    uint32_t name;   /* name number; set only by the summary */
    union {          /* data of the visitor, initially zero */
        struct {     /* summary */
            uint64_t children_ns;
            uint32_t node;
        };
        struct { /* work.c, work_host.c: indexes, plus one */
            uint32_t launch; /* its latest launch, in marey__work_set.launches; earlier ones follow by `chained` */
            uint32_t collective; /* in marey__work_set.collectives */
            uint32_t range;      /* in marey__work_set.ranges */
        };
        uint32_t payload; /* exports: index in the lane's `payloads`, plus one */
    };
};

/* The open ranges of a lane. */
struct marey__lane_stack {
    const struct marey_lane_info *info;
    struct marey__frame *open; /* outermost first; once allocated, open[-1] is the thread itself */
    size_t n_open, open_cap;
    uint64_t n_too_deep; /* begun beyond the limit and not ended */
    uint64_t repeat;     /* of the next range, as in marey__frame */
    uint64_t last_ns;    /* of its latest event */
};

/* Shared by the lanes of a process. */
struct marey__replay {
    uint32_t *site_names; /* name number by site, 0 to n_sites; 0 stands for unknown sites, too */
    uint32_t n_sites;
    size_t n_frames; /* allocated frames of all stacks */
    uint64_t n_orphans, n_unwound, n_cut_off, n_too_deep;
};

enum marey__ending {
    MAREY__ENDED,
    MAREY__UNWOUND,   /* by the end of an outer range */
    MAREY__CUT,       /* by a gap, or it never ended; the timestamp is the lane's last one */
    MAREY__TAKEN_OUT, /* while ranges above it continue */
    MAREY__SPLIT,     /* temporarily, if `must_nest`: it begins again */
};

/* Each returns false on out of memory, which ends the replay. Each may be NULL. */
struct marey__lane_visitor {
    /*
     * A range begins; it is not on the stack yet, whose height is its depth. `words` points to its begin, with `n`
     * words left in the batch; NULL: it begins again after a split.
     */
    bool (*begin)(void *ctx, struct marey__lane_stack *stack, struct marey__frame *frame,
                  const uint64_t *words, size_t n);
    /* A range has ended and is off the stack, whose height is its depth. */
    bool (*end)(void *ctx, struct marey__lane_stack *stack, const struct marey__frame *frame,
                uint64_t ns, enum marey__ending how);
    bool (*mark)(void *ctx, struct marey__lane_stack *stack, uint32_t site, uint64_t ns);
    /* A whole record of any type not handled here. */
    bool (*record)(void *ctx, struct marey__lane_stack *stack, const struct marey_batch *batch,
                   const uint64_t *words, uint64_t ns);
    /* Events of this lane are missing between its last timestamp and `ns`; 0: their number is unknown. */
    bool (*gap)(void *ctx, struct marey__lane_stack *stack, uint64_t ns, uint64_t n_events);
    /*
     * The range at `depth` ends while those above it continue: called before its `end`, and again with `is_done` after
     * it is removed from the stack. The range above has been open for `shared_ns`.
     */
    bool (*take_out)(void *ctx, struct marey__lane_stack *stack, size_t depth, uint64_t shared_ns,
                     bool is_done);
    /* `ns` of the self time of the range at `depth` belong to ranges on other lanes of its thread. */
    bool (*covered)(void *ctx, struct marey__lane_stack *stack, size_t depth, uint64_t ns);
    bool must_nest;
};

/*
 * Make space for one more range. Returns false beyond the limit, which is counted, and on out of memory, which sets
 * `*failed`.
 */
bool marey__stack_make_room(struct marey__replay *replay, struct marey__lane_stack *stack,
                            bool *failed);
/* The index of the innermost range of this site's name; `n_open` if there is none within the search depth. */
size_t marey__stack_find(const struct marey__replay *replay, const struct marey__lane_stack *stack,
                         uint32_t site);
void marey__stack_fini(struct marey__lane_stack *stack);

/* The innermost range, or the thread itself; the stack must have space. */
MAREY__INLINE struct marey__frame *marey__stack_top(const struct marey__lane_stack *stack)
{
    return stack->open + stack->n_open - 1;
}

MAREY__INLINE uint32_t marey__replay_name(const struct marey__replay *replay, uint32_t site)
{
    return replay->site_names[MAREY_LIKELY(site <= replay->n_sites) ? site : 0];
}

MAREY__INLINE bool marey__replay_begin(struct marey__replay *replay, struct marey__lane_stack *stack,
                                       uint32_t site, uint64_t ns, const uint64_t *words, size_t n,
                                       const struct marey__lane_visitor *visitor, void *ctx)
{
    uint64_t repeat = 0;
    if (MAREY_UNLIKELY(stack->n_open == stack->open_cap || (stack->n_too_deep | stack->repeat) != 0)) {
        bool failed = false;
        repeat = stack->repeat;
        stack->repeat = 0;
        if (!marey__stack_make_room(replay, stack, &failed))
            return !failed;
    }
    struct marey__frame *const frame = &stack->open[stack->n_open];
    *frame = (struct marey__frame){.start_ns = ns, .repeat = repeat, .site = site};
    if (visitor->begin != NULL && !visitor->begin(ctx, stack, frame, words, n))
        return false;
    stack->n_open++;
    return true;
}

MAREY__INLINE bool marey__replay_pop(struct marey__lane_stack *stack, uint64_t ns,
                                     enum marey__ending how,
                                     const struct marey__lane_visitor *visitor, void *ctx)
{
    stack->n_open--;
    return visitor->end == NULL || visitor->end(ctx, stack, &stack->open[stack->n_open], ns, how);
}

/* End ranges from the innermost, until `n_left` are open. */
MAREY__INLINE bool marey__replay_pop_to(struct marey__lane_stack *stack, size_t n_left, uint64_t ns,
                                        enum marey__ending how,
                                        const struct marey__lane_visitor *visitor, void *ctx)
{
    while (stack->n_open > n_left)
        if (!marey__replay_pop(stack, ns, how, visitor, ctx))
            return false;
    return true;
}

/* End all open ranges at the last timestamp of the lane. */
MAREY__INLINE bool marey__replay_cut(struct marey__lane_stack *stack,
                                     const struct marey__lane_visitor *visitor, void *ctx)
{
    if (!marey__replay_pop_to(stack, 0, stack->last_ns, MAREY__CUT, visitor, ctx))
        return false;
    stack->n_too_deep = 0;
    stack->repeat = 0;
    return true;
}

/* An end whose site is not that of the innermost range. */
MAREY__INLINE bool marey__replay_unwind(struct marey__replay *replay,
                                        struct marey__lane_stack *stack, uint32_t site, uint64_t ns,
                                        const struct marey__lane_visitor *visitor, void *ctx)
{
    const size_t at = marey__stack_find(replay, stack, site);
    if (at == stack->n_open) {
        replay->n_orphans++;
        return true;
    }
    replay->n_unwound += stack->n_open - 1 - at;
    return marey__replay_pop_to(stack, at + 1, ns, MAREY__UNWOUND, visitor, ctx) &&
           marey__replay_pop(stack, ns, MAREY__ENDED, visitor, ctx);
}

MAREY__INLINE bool marey__replay_end(struct marey__replay *replay, struct marey__lane_stack *stack,
                                     uint32_t site, uint64_t ns,
                                     const struct marey__lane_visitor *visitor, void *ctx)
{
    if (MAREY_UNLIKELY(stack->n_too_deep != 0)) {
        stack->n_too_deep--;
        return true;
    }
    if (MAREY_UNLIKELY(stack->n_open == 0)) {
        replay->n_orphans++;
        return true;
    }
    if (MAREY_LIKELY(site == 0 || stack->open[stack->n_open - 1].site == site))
        return marey__replay_pop(stack, ns, MAREY__ENDED, visitor, ctx);
    return marey__replay_unwind(replay, stack, site, ns, visitor, ctx);
}

MAREY__INLINE bool marey__replay_resume(struct marey__lane_stack *stack, size_t n, uint64_t ns,
                                        const struct marey__lane_visitor *visitor, void *ctx)
{
    for (; stack->n_open < n; stack->n_open++) {
        struct marey__frame *const frame = &stack->open[stack->n_open];
        frame->start_ns = ns;
        if (visitor->begin != NULL && !visitor->begin(ctx, stack, frame, NULL, 0))
            return false;
    }
    return true;
}

/* End the range at `depth`, below others. */
MAREY__INLINE bool marey__replay_take_out(struct marey__lane_stack *stack, size_t depth, uint64_t ns,
                                          const struct marey__lane_visitor *visitor, void *ctx)
{
    const size_t n = stack->n_open;
    struct marey__frame *const open = stack->open;
    const uint64_t shared_ns = ns - MAREY__MIN(open[depth + 1].start_ns, ns);
    if (visitor->must_nest && /* those above will begin again */
        !marey__replay_pop_to(stack, depth + 1, ns, MAREY__SPLIT, visitor, ctx))
        return false;
    if (visitor->take_out != NULL && !visitor->take_out(ctx, stack, depth, shared_ns, false))
        return false;
    const struct marey__frame frame = open[depth];
    stack->n_open = depth;
    if (visitor->end != NULL && !visitor->end(ctx, stack, &frame, ns, MAREY__TAKEN_OUT))
        return false;
    memmove(&open[depth], &open[depth + 1], (n - depth - 1) * sizeof *open);
    if (visitor->must_nest)
        return marey__replay_resume(stack, n - 1, ns, visitor, ctx);
    stack->n_open = n - 1;
    return visitor->take_out == NULL || visitor->take_out(ctx, stack, depth, shared_ns, true);
}

MAREY__INLINE bool marey__replay_end_of(struct marey__replay *replay,
                                        struct marey__lane_stack *stack, uint32_t site, uint64_t ns,
                                        const struct marey__lane_visitor *visitor, void *ctx)
{
    const size_t depth = marey__stack_find(replay, stack, site);
    if (depth == stack->n_open) {
        if (stack->n_too_deep != 0)
            stack->n_too_deep--;
        else
            replay->n_orphans++;
        return true;
    }
    if (depth + 1 == stack->n_open)
        return marey__replay_pop(stack, ns, MAREY__ENDED, visitor, ctx);
    return marey__replay_take_out(stack, depth, ns, visitor, ctx);
}

MAREY__INLINE bool marey__replay_gap(struct marey__replay *replay, struct marey__lane_stack *stack,
                                     const struct marey__lane_visitor *visitor, void *ctx)
{
    replay->n_cut_off += stack->n_open + stack->n_too_deep;
    return marey__replay_cut(stack, visitor, ctx);
}

MAREY__INLINE bool marey__replay_covered(struct marey__replay *replay,
                                         struct marey__lane_stack *stack, uint32_t site,
                                         uint64_t covered_ns,
                                         const struct marey__lane_visitor *visitor, void *ctx)
{
    const size_t depth =
        stack->n_too_deep == 0 ? marey__stack_find(replay, stack, site) : stack->n_open;
    return depth == stack->n_open || visitor->covered(ctx, stack, depth, covered_ns);
}

MAREY__INLINE bool marey__replay_record(struct marey__replay *replay, struct marey__lane_stack *stack,
                                        const struct marey_batch *batch, const uint64_t *words,
                                        size_t n, const struct marey__lane_visitor *visitor,
                                        void *ctx)
{
    const uint64_t own_ns = marey_batch_ns(batch, words[0]), ns = MAREY__MAX(own_ns, stack->last_ns);
    switch (marey_record_type_of(words[0])) {
    case MAREY_RECORD_BEGIN:
        return marey__replay_begin(replay, stack, marey_record_site(words[1]), ns, words, n,
                                   visitor, ctx);
    case MAREY_RECORD_END_OF:
        return marey__replay_end_of(replay, stack, marey_record_site(words[1]), ns, visitor, ctx);
    case MAREY_RECORD_GAP:
        return marey__replay_gap(replay, stack, visitor, ctx) &&
               (visitor->gap == NULL || visitor->gap(ctx, stack, ns, words[1]));
    case MAREY_RECORD_COVERED:
        return visitor->covered == NULL ||
               marey__replay_covered(replay, stack, marey_record_site(words[1]), words[2], visitor,
                                     ctx);
    case MAREY_RECORD_REPEAT:
        stack->repeat = MAREY__MIN(words[1], MAREY__MAX_REPEAT) + 1;
        return true;
    default:
        return visitor->record == NULL || visitor->record(ctx, stack, batch, words, own_ns);
    }
}

/*
 * Process the event at `words`, with `n` words left in the batch. Returns its number of words; 0: the visitor failed.
 */
MAREY__INLINE size_t marey__replay_event(struct marey__replay *replay,
                                         struct marey__lane_stack *stack,
                                         const struct marey_batch *batch, const uint64_t *words,
                                         size_t n, const struct marey__lane_visitor *visitor,
                                         void *ctx)
{
    const uint64_t word = words[0];
    const uint64_t own_ns = marey_batch_ns(batch, word), ns = MAREY__MAX(own_ns, stack->last_ns);
    const uint32_t kind = marey_word_kind(word);
    size_t length = 1;
    bool done = true;
    if (kind == MAREY_KIND_BEGIN) {
        done = marey__replay_begin(replay, stack, marey_word_id(word), ns, words, n, visitor, ctx);
    } else if (kind == MAREY_KIND_END) {
        done = marey__replay_end(replay, stack, marey_word_id(word), ns, visitor, ctx);
    } else if (kind == MAREY_KIND_MARK) {
        done = visitor->mark == NULL || visitor->mark(ctx, stack, marey_word_id(word), own_ns);
    } else if (kind == MAREY_KIND_RECORD) {
        length = marey_record_length(word); /* checked by the reader */
        done = marey__replay_record(replay, stack, batch, words, n, visitor, ctx);
    } /* else of a later version */
    stack->last_ns = ns;
    return MAREY_LIKELY(done) ? length : 0;
}

/* Call before the words of a batch: handles its gap, if any. */
MAREY__INLINE bool marey__replay_batch_gap(struct marey__replay *replay,
                                           struct marey__lane_stack *stack,
                                           const struct marey_batch *batch,
                                           const struct marey__lane_visitor *visitor, void *ctx)
{
    if (MAREY_LIKELY(!batch->gap))
        return true;
    if (!marey__replay_gap(replay, stack, visitor, ctx))
        return false;
    return batch->n == 0 || visitor->gap == NULL ||
           visitor->gap(ctx, stack,
                        MAREY__MAX(marey_batch_ns(batch, batch->words[0]), stack->last_ns), 0);
}

/* Process a whole batch. Returns false if the visitor failed. */
MAREY__INLINE bool marey__replay_batch(struct marey__replay *replay, struct marey__lane_stack *stack,
                                       const struct marey_batch *batch,
                                       const struct marey__lane_visitor *visitor, void *ctx)
{
    if (!marey__replay_batch_gap(replay, stack, batch, visitor, ctx))
        return false;
    for (size_t i = 0, length; i < batch->n; i += length) {
        length =
            marey__replay_event(replay, stack, batch, batch->words + i, batch->n - i, visitor, ctx);
        if (MAREY_UNLIKELY(length == 0))
            return false;
    }
    return true;
}

#endif
