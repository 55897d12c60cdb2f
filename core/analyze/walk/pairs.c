/* A set of pairs of numbers: an open table, never more than half full. */
#include "analyze/walk/internal.h"

static uint64_t *find_slot(const struct marey__pairs *pairs, uint64_t key)
{
    const size_t mask = pairs->n_slots - 1;
    size_t slot = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;
    while (pairs->slots[slot] != 0 && pairs->slots[slot] != key)
        slot = (slot + 1) & mask;
    return &pairs->slots[slot];
}

static bool grow(struct marey__pairs *pairs)
{
    struct marey__pairs larger = {.n_slots = pairs->n_slots != 0 ? 2 * pairs->n_slots : 64};
    larger.slots = marey__calloc(larger.n_slots, sizeof *larger.slots);
    if (larger.slots == NULL)
        return false;
    for (size_t i = 0; i < pairs->n_slots; i++)
        if (pairs->slots[i] != 0)
            *find_slot(&larger, pairs->slots[i]) = pairs->slots[i];
    larger.n = pairs->n;
    marey__free(pairs->slots);
    *pairs = larger;
    return true;
}

bool marey__pairs_add(struct marey__pairs *pairs, uint32_t a, uint32_t b, bool *failed)
{
    const uint64_t key = ((uint64_t)a << 32 | b) + 1;
    *failed = 2 * (pairs->n + 1) > pairs->n_slots && !grow(pairs);
    if (*failed)
        return false;
    uint64_t *slot = find_slot(pairs, key);
    const bool is_new = *slot == 0;
    *slot = key;
    pairs->n += is_new;
    return is_new;
}

void marey__pairs_fini(struct marey__pairs *pairs)
{
    marey__free(pairs->slots);
    *pairs = (struct marey__pairs){0};
}
