/*
 * Matches the ends of async ranges by handle. They may be in different lanes, and a lane with fewer
 * events is flushed later, so the end may be read long before the begin. Either half waits here for
 * the other.
 */
#include "analyze/walk/internal.h"

enum { MAX_WAITING = 1 << 21 };

static size_t home_of(const struct marey__async_match *match, uint64_t handle)
{
    return (size_t)((handle * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (match->n_slots - 1);
}

/* The slot of `handle`, or the empty slot for it. */
static size_t find(const struct marey__async_match *match, uint64_t handle)
{
    size_t slot = home_of(match, handle);
    while (match->slots[slot].handle != 0 && match->slots[slot].handle != handle)
        slot = (slot + 1) & (match->n_slots - 1);
    return slot;
}

static bool make_room(struct marey__async_match *match)
{
    if ((match->n + 1) * 2 <= match->n_slots)
        return true;
    struct marey__async_match larger = {.n = match->n, .n_dropped = match->n_dropped};
    larger.n_slots = match->n_slots == 0 ? 32 : match->n_slots * 2;
    larger.slots = marey__calloc(larger.n_slots, sizeof *larger.slots);
    if (larger.slots == NULL)
        return false;
    for (size_t i = 0; i < match->n_slots; i++)
        if (match->slots[i].handle != 0)
            larger.slots[find(&larger, match->slots[i].handle)] = match->slots[i];
    marey__free(match->slots);
    *match = larger;
    return true;
}

/* Empty a slot, and move up later entries that it displaced. */
static void empty(struct marey__async_match *match, size_t hole)
{
    const size_t mask = match->n_slots - 1;
    for (size_t i = (hole + 1) & mask; match->slots[i].handle != 0; i = (i + 1) & mask) {
        const size_t home = home_of(match, match->slots[i].handle);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            match->slots[hole] = match->slots[i];
            hole = i;
        }
    }
    match->slots[hole].handle = 0;
    match->n--;
}

bool marey__async_match(struct marey__async_match *match, const struct marey__async_half *half,
                        struct marey__async_half *other, bool *failed)
{
    *failed = false;
    if (half->handle == 0)
        return false;
    if (!make_room(match)) {
        *failed = true;
        return false;
    }
    const size_t slot = find(match, half->handle);
    struct marey__async_half *waiting = &match->slots[slot];
    if (waiting->handle != 0 && waiting->is_begin != half->is_begin) {
        *other = *waiting;
        empty(match, slot);
        return true;
    }
    if (waiting->handle == 0 && match->n == MAX_WAITING) {
        match->n_dropped++;
    } else if (waiting->handle == 0) {
        *waiting = *half;
        match->n++;
    }
    return false;
}

void marey__async_match_fini(struct marey__async_match *match)
{
    marey__free(match->slots);
    *match = (struct marey__async_match){0};
}
