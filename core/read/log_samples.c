/*
 * Blocks SAMPLES of a log: entries of a tag and numbers, taken apart. What they mean together, and whether their numbers
 * lead anywhere, is looked at by core/analyze/samples/samples_read.c.
 */
#include "read/internal.h"

/* ---- entries ---- */

/* What follows each tag: n a number, t a text. The lists of L, K, A and O are taken by whoever wants them. */
static const char *fields_of(uint8_t tag)
{
    switch (tag) {
    case 'M':
        return "nnnnnnnt";
    case 'T':
        return "nnnnnt";
    case 'F':
        return "nnnttt";
    case 'L':
    case 'K':
    case 'O':
        return "nn";
    case 'A':
        return "nn";
    default:
        return NULL;
    }
}

static bool skip_numbers(const uint8_t **at, const uint8_t *end, uint64_t n)
{
    for (; n > 0; n--) {
        while (*at < end && **at >= 0x80)
            (*at)++;
        if (*at == end)
            return false;
        (*at)++;
    }
    return true;
}

/* The columns of an A: times, weights, changes. */
static bool skip_rounds(const uint8_t **at, const uint8_t *end)
{
    uint64_t n, values = 0;
    if (!marey__take_number(at, end, &n) || !skip_numbers(at, end, n) ||
        !marey__take_number(at, end, &n) || n > (uint64_t)(end - *at) ||
        !skip_numbers(at, end, 2 * n) || !marey__take_number(at, end, &n) ||
        n > (uint64_t)(end - *at) || !skip_numbers(at, end, 2 * n))
        return false;
    for (; n > 0; n--) {
        uint64_t what;
        if (!marey__take_number(at, end, &what))
            return false;
        values += (uint64_t)__builtin_popcountll(what & 7);
    }
    return skip_numbers(at, end, values);
}

static bool skip_list(const uint8_t **at, const uint8_t *end, const struct marey__samples_entry *entry)
{
    switch (entry->tag) {
    case 'L':
    case 'K':
        return entry->numbers[1] <= (uint64_t)(end - *at) &&
               skip_numbers(at, end, 2 * entry->numbers[1]);
    case 'O':
        return skip_numbers(at, end, entry->numbers[1]);
    case 'A':
        return skip_rounds(at, end);
    default:
        return true;
    }
}

enum marey__calls_step marey__samples_next(const void **from, const void *end,
                                           struct marey__samples_entry *entry)
{
    const uint8_t *at = *from;
    size_t n_numbers = 0, n_texts = 0;
    bool is_whole = true;
    if (*from == end)
        return MAREY__CALLS_END;
    *entry = (struct marey__samples_entry){.tag = (char)*at};
    const char *field = fields_of(*at++);
    if (field == NULL)
        return MAREY__CALLS_DAMAGED;
    for (; is_whole && *field != '\0'; field++) {
        if (*field == 'n')
            is_whole = marey__take_number(&at, end, &entry->numbers[n_numbers++]);
        else
            is_whole = marey__take_text(&at, end, &entry->texts[n_texts], &entry->lens[n_texts]),
            n_texts++;
    }
    entry->list = at;
    is_whole = is_whole && skip_list(&at, end, entry);
    entry->list_end = at;
    *from = at;
    return is_whole ? MAREY__CALLS_ENTRY : MAREY__CALLS_DAMAGED;
}

bool marey__samples_take(struct marey__samples_entry *entry, uint64_t *number)
{
    return marey__take_number(&entry->list, entry->list_end, number);
}

/* ---- rounds ---- */

static bool take_u32(struct marey__samples_entry *entry, uint32_t *number)
{
    uint64_t value;
    if (!marey__samples_take(entry, &value) || value > UINT32_MAX)
        return false;
    *number = (uint32_t)value;
    return true;
}

/* Times do not run over 2^62. */
static bool take_times(struct marey__samples_entry *e, struct marey__samples_rounds *rounds)
{
    const uint64_t shift = e->numbers[1];
    uint64_t at = 0, step;
    for (size_t i = 0; i < rounds->n; i++) {
        if (!marey__samples_take(e, &step) || step > (UINT64_C(1) << 62) >> shift)
            return false;
        at += step;
        if (at > (UINT64_C(1) << 62) >> shift)
            return false;
        rounds->at_ns[i] = at << shift;
        rounds->weights_ns[i] = 0;
    }
    return true;
}

/* A weight holds from its round on, up to the next one. */
static bool take_weights(struct marey__samples_entry *e, struct marey__samples_rounds *rounds)
{
    uint64_t n, at = 0, step, weight = 0, next;
    if (!marey__samples_take(e, &n))
        return false;
    for (; n > 0; n--) {
        if (!marey__samples_take(e, &step) || !marey__samples_take(e, &next) ||
            step >= rounds->n - at || next > UINT64_C(1) << 60)
            return false;
        for (const uint64_t end = at + step; at < end; at++)
            rounds->weights_ns[at] = weight;
        weight = next;
    }
    for (; at < rounds->n; at++)
        rounds->weights_ns[at] = weight;
    return true;
}

static bool take_changes(struct marey__samples_entry *e, struct marey__samples_rounds *rounds)
{
    struct marey__samples_event *const events = rounds->events;
    const size_t n = rounds->n_events;
    uint64_t at = 0, step;
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        ok = marey__samples_take(e, &step) && step < rounds->n - at;
        at += ok ? step : 0;
        events[i] = (struct marey__samples_event){.round = (uint32_t)at};
    }
    for (size_t i = 0; ok && i < n; i++)
        ok = take_u32(e, &events[i].thread);
    for (size_t i = 0; ok && i < n; i++)
        ok = take_u32(e, &events[i].what);
    for (size_t i = 0; ok && i < n; i++)
        ok = (events[i].what & 1) == 0 || take_u32(e, &events[i].stack);
    for (size_t i = 0; ok && i < n; i++)
        ok = (events[i].what & 2) == 0 || take_u32(e, &events[i].flags);
    for (size_t i = 0; ok && i < n; i++)
        ok = (events[i].what & 4) == 0 || take_u32(e, &events[i].wait);
    return ok;
}

enum marey__calls_step marey__samples_rounds(struct marey__samples_entry *entry,
                                             struct marey__samples_rounds *rounds, bool *failed)
{
    uint64_t n;
    if (entry->numbers[1] > 40 || !marey__samples_take(entry, &n) || n == 0 || n > UINT32_MAX)
        return MAREY__CALLS_DAMAGED;
    rounds->n = 0;
    *failed = !marey__grow(&rounds->at_ns, &rounds->at_cap, (size_t)n, sizeof *rounds->at_ns) ||
              !marey__grow(&rounds->weights_ns, &rounds->weights_cap, (size_t)n,
                           sizeof *rounds->weights_ns);
    if (*failed)
        return MAREY__CALLS_DAMAGED;
    rounds->n = (size_t)n;
    if (!take_times(entry, rounds) || !take_weights(entry, rounds) ||
        !marey__samples_take(entry, &n) || n > UINT32_MAX)
        return MAREY__CALLS_DAMAGED;
    rounds->n_events = (size_t)n;
    *failed = !marey__grow(&rounds->events, &rounds->events_cap, (size_t)n, sizeof *rounds->events);
    return !*failed && take_changes(entry, rounds) ? MAREY__CALLS_ENTRY : MAREY__CALLS_DAMAGED;
}

void marey__samples_rounds_fini(struct marey__samples_rounds *rounds)
{
    marey__free(rounds->at_ns);
    marey__free(rounds->weights_ns);
    marey__free(rounds->events);
    *rounds = (struct marey__samples_rounds){0};
}

/* ---- blocks ---- */

bool marey__log_note_samples(struct marey__log_scan *scan, const struct marey__block *block)
{
    struct marey__log_file *log = scan->log;
    const uint64_t len = sizeof *block + (((uint64_t)block->packed_len + 7) & ~UINT64_C(7));
    return MAREY__PUSH(log->samples, log->n_samples, log->samples_cap, scan->reader.offset - len);
}

marey_status marey__samples_reader_open(struct marey__samples_reader *reader,
                                        struct marey__log_file *log, struct marey__warnings *warnings)
{
    *reader = (struct marey__samples_reader){.log = log, .warnings = warnings};
    return marey__log_file_acquire(log, &reader->blocks);
}

void marey__samples_reader_close(struct marey__samples_reader *reader)
{
    if (reader->log == NULL)
        return;
    if (reader->n_damaged != 0 && !reader->log->is_damage_of_samples_told) {
        marey__warn_damage(
            reader->warnings,
            "%s: %zu of %zu blocks of samples are damaged; samples in them are missing.",
            reader->log->info.log_path, reader->n_damaged, reader->log->n_samples);
        reader->log->is_damage_of_samples_told = true;
    }
    marey__buf_fini(&reader->raw);
    marey__log_file_release(reader->log, &reader->blocks);
    *reader = (struct marey__samples_reader){0};
}

marey_status marey__samples_reader_next(struct marey__samples_reader *reader, const void **payload,
                                        size_t *len, bool *done)
{
    struct marey__block block;
    const uint8_t *packed;
    *done = reader->next == reader->log->n_samples;
    *len = 0;
    if (*done)
        return MAREY_OK;
    bool is_end;
    reader->blocks.offset = reader->log->samples[reader->next++];
    MAREY_TRY(marey__block_reader_next(&reader->blocks, &block, &packed, &is_end));
    if (is_end || block.type != MAREY__BLOCK_SAMPLES)
        return MAREY_OK; /* the file has changed since it was opened */
    MAREY__TRY_MEMORY(marey__unpack_payload(&block, packed, &reader->raw));
    reader->has_gap = block.sequence != reader->next_sequence;
    reader->next_sequence = (uint64_t)block.sequence + 1;
    *payload = reader->raw.data;
    *len = reader->raw.len;
    reader->n_damaged += *len == 0;
    return MAREY_OK;
}
