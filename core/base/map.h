/*
 * base: hash tables. Both hold numbers of elements of an array that the caller owns, from 1, and never shrink.
 *
 *   struct marey__key_map     finds an element by its first bytes (a key of fixed size): sums by (thread, stack), the nodes
 *                         of a tree by (parent, name)
 *   struct marey__index   finds an element by a hash; the caller compares. For texts and for keys in several places
 *
 * Not built on them: record/intern.c, record/handle.c and nvtx/inject_names.c (readers take no lock),
 * instrument/memory/memory_blocks.c (fixed memory, locks per shard, removal), instrument/calls/calls_tree.c (runs in
 * every call of the program and keeps pointers), analyze/walk/async_match.c and sampler/remote/remote_code.c (removal),
 * import/stacks/paths.c (collapsed stacks were imported 3 to 6 % slower).
 */
#ifndef MAREY_MAP_H
#define MAREY_MAP_H

#include <string.h>

#include "base/base_internal.h"

__extension__ typedef unsigned __int128 marey__u128;

static inline uint64_t marey__hash_mix(uint64_t a, uint64_t b)
{
    const marey__u128 product = (marey__u128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Of bytes of any number. `seed`: a random one for names from files, which must not be able to make all collide. */
MAREY_PRIVATE_API uint64_t marey__hash_bytes(uint64_t seed, const void *bytes, size_t len);

/* ---- elements by their first bytes ---- */

struct marey__key_map {
    uint32_t *slots; /* 0: empty */
    uint32_t n;
    uint8_t n_slots_log2; /* where there are any */
};

/* A key of two fields that are next to each other, `first` before `second`. */
static inline uint64_t marey__pair_key(uint32_t first, uint32_t second)
{
    return (uint64_t)second << 32 | first; /* the byte order is little-endian, see number_text.c */
}

/*
 * Its highest bits count. `key_size`: a multiple of 4, and a constant, for which this becomes a few instructions. Keys of
 * 8 bytes are only multiplied: numbers that follow each other, which most of them have, then spread without collisions.
 */
static inline uint64_t marey__key_map_hash(const void *key, size_t key_size)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < key_size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, (const char *)key + i, key_size - i < 8 ? 4 : 8);
        hash = (hash ^ hash >> 29 ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return hash;
}

/* The number of the element of `array` (each of `size` bytes) that begins with `key`; 0 when there is none. */
static inline uint32_t marey__key_map_find(const struct marey__key_map *map, const void *array,
                                           size_t size, const void *key, size_t key_size)
{
    uint32_t number = 0;
    if (MAREY_LIKELY(map->slots != NULL)) {
        const size_t mask = ((size_t)1 << map->n_slots_log2) - 1;
        size_t slot = marey__key_map_hash(key, key_size) >> (64 - map->n_slots_log2);
        while ((number = map->slots[slot]) != 0 &&
               memcmp((const char *)array + (number - 1) * size, key, key_size) != 0)
            slot = (slot + 1) & mask;
    }
    return number;
}

/*
 * Append an element, all zeros but for its key, which is new. Returns its number, 0 on out of memory. Elements without an
 * entry, such as the root of a tree, are appended before all others; no element is removed or moved.
 */
MAREY_PRIVATE_API uint32_t marey__key_map_add(struct marey__key_map *map, void *array, size_t *n,
                                              size_t *cap, size_t size, const void *key,
                                              size_t key_size);

static inline uint32_t marey__key_map_number(struct marey__key_map *map, void *array, size_t *n,
                                             size_t *cap, size_t size, const void *key,
                                             size_t key_size)
{
    void *items;
    memcpy(&items, array, sizeof items);
    const uint32_t number = marey__key_map_find(map, items, size, key, key_size);
    return number != 0 ? number : marey__key_map_add(map, array, n, cap, size, key, key_size);
}

/*
 * The number of the element that begins with the variable `key`; MAREY__MAP_NUMBER appends one when there is none,
 * MAREY__MAP_ADD is for a key that was not found.
 */
#define MAREY__MAP_FIND(map, array, key)                                                           \
    marey__key_map_find((map), (array), sizeof *(array), &(key), sizeof(key))
#define MAREY__MAP_ADD(map, array, n, cap, key)                                                    \
    marey__key_map_add((map), &(array), &(n), &(cap), sizeof *(array), &(key), sizeof(key))
#define MAREY__MAP_NUMBER(map, array, n, cap, key)                                                 \
    marey__key_map_number((map), &(array), &(n), &(cap), sizeof *(array), &(key), sizeof(key))

MAREY_PRIVATE_API void marey__key_map_fini(struct marey__key_map *map);

/* ---- numbers by hash ---- */

struct marey__index {
    struct marey__index_slot {
        uint32_t hash, number; /* 0: empty */
    } * slots;
    size_t n, n_slots;
};

/* The next number that was put for `hash`, 0 when there is no other. `*at` starts as the hash. */
static inline uint32_t marey__index_next(const struct marey__index *index, uint32_t hash, size_t *at)
{
    if (index->n_slots == 0)
        return 0;
    for (;; ++*at) {
        const struct marey__index_slot *const slot = &index->slots[*at & (index->n_slots - 1)];
        if (slot->number == 0)
            return 0;
        if (slot->hash == hash) {
            ++*at;
            return slot->number;
        }
    }
}

/* Returns false on out of memory. */
MAREY_PRIVATE_API bool marey__index_put(struct marey__index *index, uint32_t hash, uint32_t number);
MAREY_PRIVATE_API void marey__index_fini(struct marey__index *index);

#endif
