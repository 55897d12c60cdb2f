/* A set of pairs of numbers. */
#include "analyze/walk/internal.h"

bool marey__pairs_add(struct marey__pairs *pairs, uint32_t a, uint32_t b, bool *failed)
{
    const uint64_t key = marey__pair_key(a, b);
    const size_t n_before = pairs->n;
    *failed = MAREY__MAP_NUMBER(&pairs->by_key, pairs->pairs, pairs->n, pairs->cap, key) == 0;
    return pairs->n > n_before;
}

void marey__pairs_fini(struct marey__pairs *pairs)
{
    marey__free(pairs->pairs);
    marey__key_map_fini(&pairs->by_key);
    *pairs = (struct marey__pairs){0};
}
