/* Words of one lane into blocks of the log. The lane is told to the log before its first. */
#include <string.h>

#include "import/sink_internal.h"

#define TICKS_END (UINT64_C(1) << 40)

static kymo_status tell_lane(struct kymo__sink_log *log, struct kymo__sink_track *lane)
{
    const struct kymo__lane_entry entry = {
        .tid = lane->of->tid, .kind = lane->of->kind, .name_len = (uint32_t)lane->of->name_len};
    struct kymo__buf bytes = {0};
    kymo__buf_put(&bytes, &entry, sizeof entry);
    kymo__buf_put(&bytes, lane->of->name, lane->of->name_len);
    struct kymo__block block = {.type = KYMO__BLOCK_LANE, .lane = lane->number};
    const kymo_status status = bytes.failed
                                   ? kymo__fail(KYMO_ENOMEM, "no memory for a block of a log")
                                   : kymo__log_append(&log->log, &block, bytes.data, bytes.len);
    kymo__buf_fini(&bytes);
    lane->is_told = true;
    return status;
}

kymo_status kymo__track_flush(struct kymo__sink_log *log, struct kymo__sink_track *lane)
{
    if (lane->n_words == 0)
        return KYMO_OK;
    if (!lane->is_told)
        KYMO_TRY(tell_lane(log, lane));
    struct kymo__block block = {.type = KYMO__BLOCK_WORDS,
                                .lane = lane->number,
                                .sequence = lane->sequence++,
                                .first_tick = lane->base_ns,
                                .last_tick = KYMO__MAX(lane->last_ns, lane->end_ns)};
    const void *bytes = kymo__pack_words(log->packer, lane->words, lane->n_words, &block);
    lane->n_words = 0;
    lane->end_ns = 0;
    return kymo__log_append(&log->log, &block, bytes, block.packed_len);
}

/* Room for `n` words at `ns`, in one block. */
static kymo_status make_room(struct kymo__sink_log *log, struct kymo__sink_track *lane, uint64_t ns,
                             size_t n)
{
    if (lane->n_words + n > KYMO__CHUNK_WORDS ||
        (lane->n_words != 0 && ns - lane->base_ns >= TICKS_END))
        KYMO_TRY(kymo__track_flush(log, lane));
    if (lane->n_words == 0)
        lane->base_ns = ns;
    if (!kymo__grow(&lane->words, &lane->words_cap, lane->n_words + n, sizeof *lane->words))
        return kymo__fail(KYMO_ENOMEM, "no memory for a block of a log");
    lane->last_ns = ns;
    return KYMO_OK;
}

kymo_status kymo__track_word(struct kymo__sink_log *log, struct kymo__sink_track *lane, uint64_t ns,
                             uint32_t tag)
{
    KYMO_TRY(make_room(log, lane, ns, 1));
    lane->words[lane->n_words++] = (ns - lane->base_ns) << 24 | tag;
    return KYMO_OK;
}

kymo_status kymo__track_records(struct kymo__sink_log *log, struct kymo__sink_track *lane,
                                uint64_t ns, uint32_t tag, const uint64_t *records, size_t n)
{
    KYMO_TRY(make_room(log, lane, ns, n + 1));
    const uint64_t ticks = (ns - lane->base_ns) << 24;
    uint64_t *to = lane->words + lane->n_words;
    for (size_t i = 0; i < n;) {
        const size_t length = kymo_record_length(records[i]);
        if (tag != 0 && kymo_record_type_of(records[i]) != KYMO_RECORD_REPEAT) {
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
    return KYMO_OK;
}
