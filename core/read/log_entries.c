/*
 * Blocks CALLS and SAMPLES of a log: where they are, and their payload of entries, each a tag, numbers and texts.
 * analyze/calls/calls_read.c and analyze/samples/samples_read.c check the numbers.
 */
#include <zstd.h>

#include "read/internal.h"

/* ---- entries ---- */

bool marey__unpack_payload(const struct marey__block *block, const uint8_t *packed,
                           struct marey__buf *raw)
{
    raw->len = 0;
    if ((block->flags & MAREY__FLAG_ZSTD) == 0) {
        marey__buf_put(raw, packed, block->packed_len);
        return !raw->failed;
    }
    if (block->raw_len == 0 || !marey__packing_is_sound(block->raw_len, block->packed_len))
        return true;
    char *into = marey__buf_extend(raw, block->raw_len);
    if (into == NULL)
        return false;
    const size_t n = ZSTD_decompress(into, block->raw_len, packed, block->packed_len);
    raw->len = ZSTD_isError(n) ? 0 : n;
    return true;
}

bool marey__take_text(const uint8_t **at, const uint8_t *end, const char **text, size_t *len)
{
    uint64_t n;
    if (!marey__take_leb128(at, end, &n) || n > (uint64_t)(end - *at))
        return false;
    *text = (const char *)*at;
    *len = (size_t)n;
    *at += n;
    return true;
}

static bool take_real(const uint8_t **at, const uint8_t *end, double *real)
{
    if ((size_t)(end - *at) < sizeof *real)
        return false;
    memcpy(real, *at, sizeof *real);
    *at += sizeof *real;
    return true;
}

enum marey__entry_step marey__entry_next(const void **from, const void *end,
                                         const char *const fields[128],
                                         struct marey__payload_entry *entry)
{
    const uint8_t *at = *from;
    size_t n_numbers = 0, n_texts = 0;
    bool is_whole = true;
    if (*from == end)
        return MAREY__ENTRY_END;
    *entry = (struct marey__payload_entry){.tag = (char)*at};
    const char *field = *at < 128 ? fields[*at] : NULL;
    if (field == NULL)
        return MAREY__ENTRY_DAMAGED;
    for (at++; is_whole && *field != '\0'; field++) {
        if (*field == 'n') {
            is_whole = marey__take_leb128(&at, end, &entry->numbers[n_numbers++]);
        } else if (*field == 'r') {
            is_whole = take_real(&at, end, &entry->real);
        } else {
            is_whole = marey__take_text(&at, end, &entry->texts[n_texts], &entry->lens[n_texts]);
            n_texts++;
        }
    }
    *from = at;
    return is_whole ? MAREY__ENTRY_TAKEN : MAREY__ENTRY_DAMAGED;
}

enum marey__entry_step marey__calls_next(const void **at, const void *end,
                                         struct marey__payload_entry *entry)
{
    static const char *const fields[128] = {
        ['P'] = "nrnn",  ['F'] = "nnntttt", ['S'] = "nnnt", ['T'] = "nnt",
        ['N'] = "nnnnn", ['C'] = "nnnnnn",  ['O'] = "nnn",
    };
    return marey__entry_next(at, end, fields, entry);
}

/* ---- blocks ---- */

marey_status marey__payload_reader_open(struct marey__payload_reader *reader,
                                        struct marey__log_file *log, enum marey__payload_kind payload,
                                        _Atomic uint64_t *budget, struct marey__warnings *warnings)
{
    *reader =
        (struct marey__payload_reader){.payload = payload, .budget = budget, .warnings = warnings};
    MAREY_TRY(marey__log_file_acquire(log, &reader->blocks));
    reader->log = log;
    return MAREY_OK;
}

void marey__payload_reader_close(struct marey__payload_reader *reader)
{
    static const char *const names[] = {"calls", "samples"};
    if (reader->log == NULL)
        return;
    struct marey__payload_blocks *const list = &reader->log->payloads[reader->payload];
    const char *const name = names[reader->payload];
    if (reader->n_damaged != 0 && !list->is_damage_reported) {
        marey__warn_damage(reader->warnings,
                           "%s: %zu of %zu blocks of %s are damaged; %s in them are missing.",
                           reader->log->info.log_path, reader->n_damaged, list->n, name, name);
        list->is_damage_reported = true;
    }
    marey__buf_fini(&reader->raw);
    marey__log_file_release(reader->log, &reader->blocks);
    *reader = (struct marey__payload_reader){0};
}

static void take(struct marey__payload_reader *reader, const struct marey__buf *raw,
                 uint64_t sequence, const void **payload, size_t *len)
{
    reader->has_gap = sequence != reader->next_sequence;
    reader->next_sequence = sequence + 1;
    *payload = raw->data;
    *len = raw->len;
    reader->n_damaged += raw->len == 0;
}

marey_status marey__payload_reader_next(struct marey__payload_reader *reader, const void **payload,
                                        size_t *len, bool *done)
{
    static const uint8_t types[] = {MAREY__BLOCK_CALLS, MAREY__BLOCK_SAMPLES};
    struct marey__payload_blocks *const list = &reader->log->payloads[reader->payload];
    const size_t i = reader->next;
    struct marey__block block;
    const uint8_t *packed;
    bool is_end;
    *done = i == list->n;
    *len = 0;
    if (*done)
        return MAREY_OK;
    reader->next++;
    const struct marey__kept_payload *kept =
        list->kept != NULL && list->kept[i].is_there ? &list->kept[i] : NULL;
    if (kept == NULL) {
        reader->blocks.offset = list->offsets[i];
        MAREY_TRY(marey__block_reader_next(&reader->blocks, &block, &packed, &is_end));
        if (is_end || block.type != types[reader->payload])
            return MAREY_OK; /* the file has changed since it was opened */
        MAREY__TRY_MEMORY(marey__unpack_payload(&block, packed, &reader->raw));
        if (reader->budget != NULL)
            kept = marey__keep_payload(list, i, block.sequence, &reader->raw, reader->budget);
    }
    if (kept != NULL)
        take(reader, &kept->raw, kept->sequence, payload, len);
    else
        take(reader, &reader->raw, block.sequence, payload, len);
    return MAREY_OK;
}

/* ---- all entries of a log ---- */

const char *marey__payload_text(struct marey__payload_taker *taker,
                                const struct marey__payload_entry *entry, size_t i)
{
    const char *const text =
        entry->lens[i] == 0 ? ""
                            : marey__arena_text(&taker->scratch, entry->texts[i], entry->lens[i]);
    taker->failed |= text == NULL;
    return text != NULL ? text : "";
}

/* Returns false if anything in the block is damaged. */
static bool take_block(struct marey__payload_taker *taker, enum marey__payload_kind payload,
                       const void *at, const void *end)
{
    struct marey__payload_entry entry;
    enum marey__entry_step step = MAREY__ENTRY_TAKEN;
    for (bool is_first = true; step == MAREY__ENTRY_TAKEN; is_first = false) {
        step = payload == MAREY__PAYLOAD_CALLS ? marey__calls_next(&at, end, &entry)
                                               : marey__samples_next(&at, end, &entry);
        entry.begins_block = is_first;
        if (step == MAREY__ENTRY_TAKEN && !taker->take(taker->ctx, &entry))
            step = MAREY__ENTRY_DAMAGED;
    }
    marey__arena_fini(&taker->scratch);
    return step == MAREY__ENTRY_END;
}

marey_status marey__recording_take_payload(marey_recording *recording, size_t log,
                                           enum marey__payload_kind payload,
                                           struct marey__payload_taker *taker)
{
    struct marey__payload_reader blocks;
    const void *bytes;
    size_t len;
    bool done = false;
    MAREY_TRY(marey__recording_read_payload(recording, log, payload, &blocks));
    marey_status status = MAREY_OK;
    while (status == MAREY_OK && !done) {
        status = marey__payload_reader_next(&blocks, &bytes, &len, &done);
        if (status != MAREY_OK || len == 0)
            continue;
        blocks.n_damaged += !take_block(taker, payload, bytes, (const char *)bytes + len);
        status = taker->failed ? marey__no_memory() : MAREY_OK;
    }
    marey__payload_reader_close(&blocks);
    return status;
}
