/* Hash tables with open addressing, never more than half full. See map.h. */
#include "base/map.h"

enum { FIRST_SLOTS = 16 };

/* ---- hashes ---- */

static inline uint64_t load_8(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Up to seven bytes, all of them in the result, without a loop. */
static inline uint64_t load_few(const unsigned char *at, size_t len)
{
    uint32_t first, last;
    if (len < 4)
        return len == 0 ? 0 : (uint64_t)at[0] << 16 | (uint64_t)at[len / 2] << 8 | at[len - 1];
    memcpy(&first, at, sizeof first);
    memcpy(&last, at + len - 4, sizeof last);
    return (uint64_t)first << 32 | last;
}

uint64_t marey__hash_bytes(uint64_t seed, const void *bytes, size_t len)
{
    const uint64_t odd = 0x9e3779b97f4a7c15u, other = 0xe7037ed1a0b428dbu;
    const unsigned char *at = bytes;
    uint64_t hash = seed ^ marey__hash_mix(len + odd, other);
    if (len < 8)
        return marey__hash_mix(hash ^ load_few(at, len) ^ odd, other ^ seed);
    const unsigned char *last = at + len - 8;
    for (; at < last; at += 8)
        hash = marey__hash_mix(hash ^ load_8(at), odd);
    return marey__hash_mix(hash ^ load_8(last) ^ odd, other ^ seed);
}

/* ---- elements by their first bytes ---- */

static void enter(uint32_t *slots, size_t n_slots, uint64_t hash, uint32_t number)
{
    size_t slot = hash & (n_slots - 1);
    while (slots[slot] != 0)
        slot = (slot + 1) & (n_slots - 1);
    slots[slot] = number;
}

static bool make_room(struct marey__key_map *map, const char *items, size_t size, size_t key_size)
{
    if (2 * ((size_t)map->n + 1) <= map->n_slots)
        return true;
    const size_t n_slots = map->n_slots == 0 ? FIRST_SLOTS : 2 * (size_t)map->n_slots;
    uint32_t *const slots = n_slots <= UINT32_MAX ? marey__calloc(n_slots, sizeof *slots) : NULL;
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < map->n_slots; i++)
        if (map->slots[i] != 0)
            enter(slots, n_slots, marey__key_map_hash(items + (map->slots[i] - 1) * size, key_size),
                  map->slots[i]);
    marey__free(map->slots);
    map->slots = slots;
    map->n_slots = (uint32_t)n_slots;
    return true;
}

uint32_t marey__key_map_add(struct marey__key_map *map, void *array, size_t *n, size_t *cap,
                            size_t size, const void *key, size_t key_size)
{
    char *items;
    if (!marey__grow(array, cap, *n + 1, size))
        return 0;
    memcpy(&items, array, sizeof items);
    if (!make_room(map, items, size, key_size))
        return 0;
    memset(items + *n * size, 0, size);
    memcpy(items + *n * size, key, key_size);
    const uint32_t number = (uint32_t)++ * n;
    enter(map->slots, map->n_slots, marey__key_map_hash(key, key_size), number);
    map->n++;
    return number;
}

void marey__key_map_fini(struct marey__key_map *map)
{
    marey__free(map->slots);
    *map = (struct marey__key_map){0};
}

/* ---- numbers by hash ---- */

static void put_slot(struct marey__index_slot *slots, size_t n_slots, struct marey__index_slot slot)
{
    size_t at = slot.hash & (n_slots - 1);
    while (slots[at].number != 0)
        at = (at + 1) & (n_slots - 1);
    slots[at] = slot;
}

static bool grow_index(struct marey__index *index)
{
    const size_t n_slots = index->n_slots != 0 ? 2 * index->n_slots : FIRST_SLOTS;
    struct marey__index_slot *slots = marey__calloc(n_slots, sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < index->n_slots; i++)
        if (index->slots[i].number != 0)
            put_slot(slots, n_slots, index->slots[i]);
    marey__free(index->slots);
    index->slots = slots;
    index->n_slots = n_slots;
    return true;
}

bool marey__index_put(struct marey__index *index, uint32_t hash, uint32_t number)
{
    if (2 * (index->n + 1) > index->n_slots && !grow_index(index))
        return false;
    put_slot(index->slots, index->n_slots, (struct marey__index_slot){hash, number});
    index->n++;
    return true;
}

void marey__index_fini(struct marey__index *index)
{
    marey__free(index->slots);
    *index = (struct marey__index){0};
}
