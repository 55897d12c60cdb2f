/*
 * Writes the words of one lane into blocks of the log, and the lane's description before its first
 * block.
 */
#include "import/sink/internal.h"

#define TICKS_END (UINT64_C(1) << 40)

static marey_status write_lane(struct marey__sink_log *log, struct marey__sink_track *lane)
{
    const struct marey__lane_entry entry = {
        .tid = lane->of->tid, .kind = lane->of->kind, .name_len = (uint32_t)lane->of->name_len};
    struct marey__buf bytes MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_put(&bytes, &entry, sizeof entry);
    marey__buf_put(&bytes, lane->of->name, lane->of->name_len);
    struct marey__block block = {.type = MAREY__BLOCK_LANE, .lane = lane->number};
    const marey_status status = bytes.failed
                                    ? marey__no_memory()
                                    : marey__log_append(&log->log, &block, bytes.data, bytes.len);
    lane->is_written = true;
    return status;
}

marey_status marey__track_flush(struct marey__sink_log *log, struct marey__sink_track *lane)
{
    if (lane->n_words == 0)
        return MAREY_OK;
    if (!lane->is_written)
        MAREY_TRY(write_lane(log, lane));
    struct marey__block block = {.type = MAREY__BLOCK_WORDS,
                                 .lane = lane->number,
                                 .sequence = lane->sequence++,
                                 .first_tick = lane->base_ns,
                                 .last_tick = MAREY__MAX(lane->last_ns, lane->end_ns)};
    const void *bytes = marey__pack_words(log->packer, lane->words, lane->n_words, &block);
    lane->n_words = 0;
    lane->end_ns = 0;
    return marey__log_append(&log->log, &block, bytes, block.packed_len);
}

/* Make space for `n` words at `ns`, in one block. */
static marey_status make_room(struct marey__sink_log *log, struct marey__sink_track *lane,
                              uint64_t ns, size_t n)
{
    if (lane->n_words + n > MAREY__CHUNK_WORDS ||
        (lane->n_words != 0 && ns - lane->base_ns >= TICKS_END))
        MAREY_TRY(marey__track_flush(log, lane));
    if (lane->n_words == 0)
        lane->base_ns = ns;
    MAREY__TRY_MEMORY(
        marey__grow(&lane->words, &lane->words_cap, lane->n_words + n, sizeof *lane->words));
    lane->last_ns = ns;
    return MAREY_OK;
}

marey_status marey__track_word(struct marey__sink_log *log, struct marey__sink_track *lane,
                               uint64_t ns, uint32_t tag)
{
    MAREY_TRY(make_room(log, lane, ns, 1));
    lane->words[lane->n_words++] = (ns - lane->base_ns) << 24 | tag;
    return MAREY_OK;
}

marey_status marey__track_records(struct marey__sink_log *log, struct marey__sink_track *lane,
                                  uint64_t ns, uint32_t tag, const uint64_t *records, size_t n)
{
    MAREY_TRY(make_room(log, lane, ns, n + 1));
    const uint64_t ticks = (ns - lane->base_ns) << 24;
    uint64_t *to = lane->words + lane->n_words;
    for (size_t i = 0; i < n;) {
        const size_t length = marey_record_length(records[i]);
        if (tag != 0 && marey_record_type_of(records[i]) != MAREY_RECORD_REPEAT) {
            *to++ = ticks | tag;
            tag = 0;
        }
        memcpy(to, records + i, length * sizeof *to);
        *to |= ticks;
        to += length;
        i += length;
    }
    if (tag != 0)
        *to++ = ticks | tag;
    lane->n_words = (size_t)(to - lane->words);
    return MAREY_OK;
}
