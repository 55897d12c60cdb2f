/* Entries of blocks SAMPLES, and the rounds in them. */
#include "read/internal.h"

/* ---- entries ---- */

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

/* The columns of an A entry: times, weights, changes. */
static bool skip_rounds(const uint8_t **at, const uint8_t *end)
{
    uint64_t n, values = 0;
    if (!marey__take_leb128(at, end, &n) || !skip_numbers(at, end, n) ||
        !marey__take_leb128(at, end, &n) || n > (uint64_t)(end - *at) ||
        !skip_numbers(at, end, 2 * n) || !marey__take_leb128(at, end, &n) ||
        n > (uint64_t)(end - *at) || !skip_numbers(at, end, 2 * n))
        return false;
    for (; n > 0; n--) {
        uint64_t what;
        if (!marey__take_leb128(at, end, &what))
            return false;
        values += (uint64_t)__builtin_popcountll(what & 7);
    }
    return skip_numbers(at, end, values);
}

static bool skip_list(const uint8_t **at, const uint8_t *end, const struct marey__payload_entry *entry)
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

enum marey__entry_step marey__samples_next(const void **from, const void *end,
                                           struct marey__payload_entry *entry)
{
    /* The lists of L, K, A and O are parsed by their users. */
    static const char *const fields[128] = {
        ['M'] = "nnnnnnnt", ['T'] = "nnnnnt", ['F'] = "nnnttt", ['L'] = "nn",
        ['K'] = "nn",       ['O'] = "nn",     ['A'] = "nn",
    };
    const enum marey__entry_step step = marey__entry_next(from, end, fields, entry);
    if (step != MAREY__ENTRY_TAKEN)
        return step;
    const uint8_t *at = *from;
    entry->list = at;
    const bool is_whole = skip_list(&at, end, entry);
    entry->list_end = at;
    *from = at;
    return is_whole ? MAREY__ENTRY_TAKEN : MAREY__ENTRY_DAMAGED;
}

bool marey__samples_take(struct marey__payload_entry *entry, uint64_t *number)
{
    return marey__take_leb128(&entry->list, entry->list_end, number);
}

/* ---- rounds ---- */

static bool take_u32(struct marey__payload_entry *entry, uint32_t *number)
{
    uint64_t value;
    if (!marey__samples_take(entry, &value) || value > UINT32_MAX)
        return false;
    *number = (uint32_t)value;
    return true;
}

/* Times are limited to 2^62. */
static bool take_times(struct marey__payload_entry *e, struct marey__samples_rounds *rounds)
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

/* A weight holds from its round up to the next weight. */
static bool take_weights(struct marey__payload_entry *e, struct marey__samples_rounds *rounds)
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

static bool take_changes(struct marey__payload_entry *e, struct marey__samples_rounds *rounds)
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

enum marey__entry_step marey__samples_rounds(struct marey__payload_entry *entry,
                                             struct marey__samples_rounds *rounds, bool *failed)
{
    uint64_t n;
    if (entry->numbers[1] > 40 || !marey__samples_take(entry, &n) || n == 0 || n > UINT32_MAX)
        return MAREY__ENTRY_DAMAGED;
    rounds->n = 0;
    *failed = !marey__grow(&rounds->at_ns, &rounds->at_cap, (size_t)n, sizeof *rounds->at_ns) ||
              !marey__grow(&rounds->weights_ns, &rounds->weights_cap, (size_t)n,
                           sizeof *rounds->weights_ns);
    if (*failed)
        return MAREY__ENTRY_DAMAGED;
    rounds->n = (size_t)n;
    if (!take_times(entry, rounds) || !take_weights(entry, rounds) ||
        !marey__samples_take(entry, &n) || n > UINT32_MAX)
        return MAREY__ENTRY_DAMAGED;
    rounds->n_events = (size_t)n;
    *failed = !marey__grow(&rounds->events, &rounds->events_cap, (size_t)n, sizeof *rounds->events);
    return !*failed && take_changes(entry, rounds) ? MAREY__ENTRY_TAKEN : MAREY__ENTRY_DAMAGED;
}

void marey__samples_rounds_fini(struct marey__samples_rounds *rounds)
{
    MAREY__FREE_ALL(rounds->at_ns, rounds->weights_ns, rounds->events);
    *rounds = (struct marey__samples_rounds){0};
}
