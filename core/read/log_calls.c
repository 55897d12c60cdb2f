/*
 * Blocks CALLS of a log: entries of a tag and numbers, taken apart. What they mean together, and whether their numbers
 * lead anywhere, is looked at by core/analyze/calls/calls_read.c.
 */
#include <string.h>

#include "read/internal.h"

/* ---- entries ---- */

struct cursor {
    const uint8_t *at, *end;
};

static bool take_real(struct cursor *from, double *real)
{
    if ((size_t)(from->end - from->at) < sizeof *real)
        return false;
    memcpy(real, from->at, sizeof *real);
    from->at += sizeof *real;
    return true;
}

/* What follows each tag: n a number, r a real, t a text. */
static const char *fields_of(uint8_t tag)
{
    switch (tag) {
    case 'P':
        return "nrnn";
    case 'F':
        return "nnntttt";
    case 'S':
        return "nnnt";
    case 'T':
        return "nnt";
    case 'N':
        return "nnnnn";
    case 'C':
        return "nnnnnn";
    case 'O':
        return "nnn";
    default:
        return NULL;
    }
}

enum marey__calls_step marey__calls_next(const void **at, const void *end,
                                         struct marey__calls_entry *entry)
{
    struct cursor from = {*at, end};
    size_t n_numbers = 0, n_texts = 0;
    bool is_whole = true;
    if (from.at == from.end)
        return MAREY__CALLS_END;
    *entry = (struct marey__calls_entry){.tag = (char)*from.at};
    const char *field = fields_of(*from.at++);
    if (field == NULL)
        return MAREY__CALLS_DAMAGED;
    for (; is_whole && *field != '\0'; field++) {
        if (*field == 'n')
            is_whole = marey__take_number(&from.at, from.end, &entry->numbers[n_numbers++]);
        else if (*field == 'r')
            is_whole = take_real(&from, &entry->real);
        else
            is_whole =
                marey__take_text(&from.at, from.end, &entry->texts[n_texts], &entry->lens[n_texts]),
            n_texts++;
    }
    *at = from.at;
    return is_whole ? MAREY__CALLS_ENTRY : MAREY__CALLS_DAMAGED;
}

/* ---- blocks ---- */

bool marey__log_note_calls(struct marey__log_scan *scan, const struct marey__block *block)
{
    struct marey__log_file *log = scan->log;
    const uint64_t len = sizeof *block + (((uint64_t)block->packed_len + 7) & ~UINT64_C(7));
    return MAREY__PUSH(log->calls, log->n_calls, log->calls_cap, scan->reader.offset - len);
}

static marey_status visit_block(struct marey__block_reader *reader, struct marey__buf *raw,
                                marey__calls_visitor *visitor, void *ctx)
{
    struct marey__block block;
    const uint8_t *packed;
    bool done;
    MAREY_TRY(marey__block_reader_next(reader, &block, &packed, &done));
    if (done || block.type != MAREY__BLOCK_CALLS)
        return MAREY_OK; /* the file has changed since it was opened */
    MAREY__TRY_MEMORY(marey__unpack_payload(&block, packed, raw));
    if (raw->len == 0)
        return marey__fail(MAREY_EFORMAT, "a block cannot be unpacked");
    return visitor(ctx, raw->data, raw->len);
}

marey_status marey__log_file_visit_calls(struct marey__log_file *log,
                                         struct marey__warnings *warnings,
                                         marey__calls_visitor *visitor, void *ctx)
{
    struct marey__block_reader reader;
    struct marey__buf raw = {0};
    size_t n_bad = 0;
    if (log->n_calls == 0)
        return MAREY_OK;
    MAREY_TRY(marey__log_file_acquire(log, &reader));
    marey_status status = MAREY_OK;
    for (size_t i = 0; status == MAREY_OK && i < log->n_calls; i++) {
        reader.offset = log->calls[i];
        status = visit_block(&reader, &raw, visitor, ctx);
        if (status == MAREY_EFORMAT) {
            n_bad++;
            status = MAREY_OK;
        }
    }
    marey__buf_fini(&raw);
    marey__log_file_release(log, &reader);
    if (n_bad != 0 && !log->is_damage_of_calls_told) {
        marey__warn_damage(warnings,
                           "%s: %zu of %zu blocks of calls are damaged; calls in them are missing.",
                           log->info.log_path, n_bad, log->n_calls);
        log->is_damage_of_calls_told = true;
    }
    return status;
}

double marey__log_ns_per_tick(const struct marey__log_file *log)
{
    const struct marey__clock_map *map = &log->clock;
    if (map->n == 0)
        return 1;
    const struct marey__clock_segment *first = &map->segments[0], *last = &map->segments[map->n - 1];
    /* Over the whole log: a single segment may be a second long, and its ends are known to some 50 ns. */
    if (last->tick > first->tick && last->base_ns > first->base_ns)
        return (double)(last->base_ns - first->base_ns) / (double)(last->tick - first->tick);
    return (double)first->mult / (double)(UINT64_C(1) << 40);
}
