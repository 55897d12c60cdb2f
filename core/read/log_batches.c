/*
 * Splits the words of a block into batches. Records are checked, and each batch lies on one segment
 * of the clock.
 *
 * Nearly every block is one batch: it has no records and the clock's slope does not change, so its
 * words are not inspected here. A block with records is walked once.
 */
#include "read/internal.h"

/*
 * Pass words [from, to) of the run, on clock segment `segment`, to the visitor; `last` is the last
 * one outside a record.
 */
static marey_status deliver(const struct marey__run *run, size_t from, size_t to, size_t last,
                            size_t segment)
{
    if (from == to)
        return MAREY_OK;
    __extension__ typedef unsigned __int128 u128;
    const struct marey__clock_segment *s = &run->log->clock.segments[segment];
    const bool is_behind = run->base_tick >= s->tick;
    const uint64_t away = is_behind ? run->base_tick - s->tick : s->tick - run->base_tick;
    const uint64_t away_ns = (uint64_t)(((u128)away * s->mult) >> 40);
    struct marey_batch batch = {
        .process = &run->log->info,
        .lane = run->lane,
        .words = run->words + from,
        .n = to - from,
        .gap = run->state->gap,
        .base_ns = is_behind ? s->base_ns + away_ns : s->base_ns - away_ns,
        .ns_mult = s->mult,
    };
    /*
     * Rounding may put a batch's first word a nanosecond before the last of the previous batch;
     * clamp it to that time.
     */
    const uint64_t first_ns = marey_batch_ns(&batch, batch.words[0]);
    if (first_ns < run->state->last_ns && run->state->last_ns - first_ns <= 2)
        batch.base_ns += run->state->last_ns - first_ns;
    run->state->last_ns = marey_batch_ns(&batch, run->words[last]);
    run->state->gap = 0;
    return run->visitor(run->ctx, &batch);
}

/* The number of ticks, relative to `base`, at which segment `i` ends. */
static uint64_t end_of_segment(const struct marey__clock_map *clock, size_t i, uint64_t base)
{
    if (i + 1 >= clock->n)
        return UINT64_MAX;
    const uint64_t end = clock->segments[i + 1].tick;
    return end > base ? end - base : 0;
}

/* Whether a record of a known type has all its words. Unknown types pass: readers skip them. */
static bool is_sound_record(const uint64_t *words, size_t n)
{
    static const uint8_t needed[] = {
        [MAREY_RECORD_BEGIN] = 2,       [MAREY_RECORD_MARK] = 2,
        [MAREY_RECORD_COUNTER] = 3,     [MAREY_RECORD_ASYNC_BEGIN] = 3,
        [MAREY_RECORD_ASYNC_END] = 3,   [MAREY_RECORD_GAP] = 3,
        [MAREY_RECORD_ITERATION] = 4,   [MAREY_RECORD_ITERATION_BEGIN] = 2,
        [MAREY_RECORD_EPOCH] = 3,       [MAREY_RECORD_PHASE] = 2,
        [MAREY_RECORD_END_OF] = 2,      [MAREY_RECORD_GPU] = 5,
        [MAREY_RECORD_LAUNCH] = 2,      [MAREY_RECORD_COMMUNICATION] = 6,
        [MAREY_RECORD_ARGUMENTS] = 2,   [MAREY_RECORD_FLOW] = 4,
        [MAREY_RECORD_REPEAT] = 2,      [MAREY_RECORD_MEMORY_STACK] = 2,
        [MAREY_RECORD_MEMORY_TAKE] = 7, [MAREY_RECORD_MEMORY_GIVE] = 3,
        [MAREY_RECORD_CALL_NODE] = 3,   [MAREY_RECORD_COVERED] = 3,
        [MAREY_RECORD_AROUND] = 2,      [MAREY_RECORD_STEP_HINT] = 3,
        [MAREY_RECORD_TRACED] = 2,
    };
    const size_t length = marey_record_length(words[0]);
    const uint32_t type = marey_record_type_of(words[0]);
    if (length == 0 || length > n)
        return false;
    if (type < MAREY__COUNT_OF(needed) && length < needed[type])
        return false;
    if (type == MAREY_RECORD_AROUND)
        return words[1] <= length - 2;
    if (type == MAREY_RECORD_ARGUMENTS)
        return words[1] <= (length - 2) * 8;
    if (type != MAREY_RECORD_BEGIN && type != MAREY_RECORD_MARK)
        return true;
    const uint32_t payload = marey_record_payload_type(words[1]);
    if (payload == 4) /* MAREY_PAYLOAD_TEXT */
        return marey_record_text_len(words[1]) <= (length - 2) * 8;
    return payload == 0 || length >= 3;
}

/* Index of the first word from `i` on that is a record or not before `ticks`. */
static size_t skip_plain(const struct marey__run *run, size_t i, uint64_t ticks)
{
    const uint64_t *const words = run->words;
    const uint64_t limit = ticks >> 40 != 0 ? UINT64_MAX : ticks << 24;
    while (i < run->n && words[i] < limit && marey_word_kind(words[i]) != MAREY_KIND_RECORD)
        i++;
    return i;
}

/* Split a run into batches at clock segments and at invalid records. */
static marey_status walk_run(const struct marey__run *run)
{
    const struct marey__clock_map *clock = &run->log->clock;
    const uint64_t *words = run->words;
    size_t from = 0, last = 0, i = 0;
    size_t segment = marey__clock_map_find(clock, run->base_tick + marey_word_ticks(words[0]));
    uint64_t end = end_of_segment(clock, segment, run->base_tick);
    while (i < run->n) {
        const size_t plain = skip_plain(run, i, end);
        if (plain != i) {
            last = plain - 1;
            i = plain;
            continue;
        }
        const uint64_t ticks = marey_word_ticks(words[i]);
        if (ticks >= end) {
            MAREY_TRY(deliver(run, from, i, last, segment));
            from = i;
            segment = marey__clock_map_find(clock, run->base_tick + ticks);
            end = end_of_segment(clock, segment, run->base_tick);
        }
        if (marey_word_kind(words[i]) != MAREY_KIND_RECORD) {
            last = i++;
            continue;
        }
        const size_t length = marey_record_length(words[i]);
        if (is_sound_record(words + i, run->n - i)) {
            last = i;
            i += length;
            continue;
        }
        MAREY_TRY(deliver(run, from, i, last, segment));
        /*
         * A record longer than the run invalidates the rest: nothing marks where the next word
         * begins.
         */
        i = length == 0 || length > run->n - i ? run->n : i + length;
        from = i;
        run->state->gap = 1;
    }
    return deliver(run, from, run->n < i ? run->n : i, last, segment);
}

marey_status marey__run_deliver(const struct marey__run *run, bool may_have_records)
{
    const struct marey__clock_map *clock = &run->log->clock;
    const size_t last = run->n - 1;
    const size_t segment =
        marey__clock_map_find(clock, run->base_tick + marey_word_ticks(run->words[0]));
    const bool is_one =
        marey_word_ticks(run->words[last]) < end_of_segment(clock, segment, run->base_tick);
    if (MAREY_LIKELY(is_one && !may_have_records))
        return deliver(run, 0, run->n, last, segment);
    return walk_run(run);
}
