/* Hash tables with open addressing, at most half full. See internal.h. */
#include "base/internal.h"

enum { FIRST_SLOTS = 16 };

/* ---- hashes ---- */

static inline uint64_t load_8(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Hashes up to seven bytes without a loop. */
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

static inline void enter(struct marey__key_map *map, const void *key, size_t key_size, uint32_t number)
{
    const size_t mask = ((size_t)1 << map->n_slots_log2) - 1;
    size_t slot = marey__key_map_hash(key, key_size) >> (64 - map->n_slots_log2);
    while (map->slots[slot] != 0)
        slot = (slot + 1) & mask;
    map->slots[slot] = number;
    map->n++;
}

/* `n` is the length of the array. The map's elements are the last ones; inserting them in order is cache-friendly. */
static bool make_room(struct marey__key_map *map, const char *items, size_t n, size_t size,
                      size_t key_size)
{
    const size_t n_before = map->slots != NULL ? (size_t)1 << map->n_slots_log2 : 0;
    if (2 * ((size_t)map->n + 1) <= n_before)
        return true;
    const size_t n_slots = n_before == 0 ? FIRST_SLOTS : 2 * n_before;
    struct marey__key_map larger = {.slots = marey__calloc(n_slots, sizeof *larger.slots),
                                    .n_slots_log2 = (uint8_t)__builtin_ctzll(n_slots)};
    if (larger.slots == NULL)
        return false;
    for (size_t i = n - map->n; i < n; i++) {
        if (key_size == sizeof(uint64_t))
            enter(&larger, items + i * size, sizeof(uint64_t), (uint32_t)i + 1);
        else
            enter(&larger, items + i * size, key_size, (uint32_t)i + 1);
    }
    marey__free(map->slots);
    *map = larger;
    return true;
}

uint32_t marey__key_map_add(struct marey__key_map *map, void *array, size_t *n, size_t *cap,
                            size_t size, const void *key, size_t key_size)
{
    char *items;
    if (!marey__grow(array, cap, *n + 1, size))
        return 0;
    memcpy(&items, array, sizeof items);
    if (!make_room(map, items, *n, size, key_size))
        return 0;
    memset(items + *n * size, 0, size);
    memcpy(items + *n * size, key, key_size);
    const uint32_t number = (uint32_t)++ * n;
    enter(map, key, key_size, number);
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

uint32_t marey__index_number(struct marey__index *index, uint64_t seed, void *array, size_t *n,
                             size_t *cap, size_t size, const void *key, size_t key_size)
{
    const uint32_t hash = (uint32_t)marey__hash_bytes(seed, key, key_size);
    size_t at = hash;
    char *items;
    memcpy(&items, array, sizeof items);
    for (uint32_t number; (number = marey__index_next(index, hash, &at)) != 0;)
        if (memcmp(items + (number - 1) * size, key, key_size) == 0)
            return number;
    if (*n >= UINT32_MAX - 1 || !marey__grow(array, cap, *n + 1, size) ||
        !marey__index_put(index, hash, (uint32_t)*n + 1))
        return 0;
    memcpy(&items, array, sizeof items);
    memset(items + *n * size, 0, size);
    memcpy(items + *n * size, key, key_size);
    return (uint32_t)++ * n;
}

void marey__index_fini(struct marey__index *index)
{
    marey__free(index->slots);
    *index = (struct marey__index){0};
}
