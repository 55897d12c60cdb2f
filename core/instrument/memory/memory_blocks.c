/* Sampled blocks by address: a sharded hash table with short locks, and marks that let nearly every free() skip it. */
#include <sched.h>

#include "instrument/memory/internal.h"

enum {
    N_SHARDS = 64,
    SHARD_SLOTS = 1 << 14,
    SHARD_MOST = SHARD_SLOTS / 8 * 7, /* longer probes would be noticeable */
    MARK_MAX = 255,                   /* a saturated mark stays, because its count is unknown */
};

struct slot {
    uint64_t address; /* 0: empty */
    uint64_t number;
};
struct shard {
    uint32_t is_locked; /* acquire and release */
    uint32_t n;
    struct slot slots[SHARD_SLOTS];
};

static struct {
    struct shard *shards; /* release, as hooks may be called at any time */
    uint8_t *marks;       /* stored before `shards` */
} blocks;

static uint64_t hash_of(const void *block)
{
    return ((uint64_t)(uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15);
}

bool marey__blocks_open(void)
{
    if (blocks.shards != NULL)
        return true;
    if (blocks.marks == NULL)
        blocks.marks = marey__memory_map(MAREY_MEMORY_N_MARKS);
    struct shard *const shards =
        blocks.marks != NULL ? marey__memory_map(N_SHARDS * sizeof *shards) : NULL;
    __atomic_store_n(&blocks.shards, shards, __ATOMIC_RELEASE);
    return shards != NULL;
}

const uint8_t *marey__blocks_marks(void)
{
    return __atomic_load_n(&blocks.shards, __ATOMIC_ACQUIRE) != NULL ? blocks.marks : NULL;
}

/* ---- marks ---- */

static void mark(uint64_t hash, int change)
{
    uint8_t *const at = &blocks.marks[hash >> 48];
    uint8_t before = __atomic_load_n(at, __ATOMIC_RELAXED);
    do {
        if (before == MARK_MAX)
            return;
    } while (!__atomic_compare_exchange_n(at, &before, (uint8_t)(before + change), true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/* ---- shards ---- */

static struct shard *lock_shard(uint64_t hash)
{
    struct shard *const shard = &blocks.shards[hash % N_SHARDS];
    for (unsigned spins = 0; __atomic_exchange_n(&shard->is_locked, 1, __ATOMIC_ACQUIRE) != 0; spins++)
        if (spins % 64 == 63)
            sched_yield();
    return shard;
}

static void unlock(struct shard *shard)
{
    __atomic_store_n(&shard->is_locked, 0, __ATOMIC_RELEASE);
}

static uint32_t home_of(uint64_t address)
{
    return (uint32_t)(hash_of((const void *)(uintptr_t)address) >> 32) % SHARD_SLOTS;
}

/* The slot of `address`, or the empty one where it belongs. */
static uint32_t find(const struct shard *shard, uint64_t address)
{
    uint32_t i = home_of(address);
    while (shard->slots[i].address != 0 && shard->slots[i].address != address)
        i = (i + 1) % SHARD_SLOTS;
    return i;
}

bool marey__blocks_put(const void *block, uint64_t number)
{
    const uint64_t hash = hash_of(block), address = (uint64_t)(uintptr_t)block;
    struct shard *const shard = lock_shard(hash);
    struct slot *const slot = &shard->slots[find(shard, address)];
    const bool is_new = slot->address == 0, fits = !is_new || shard->n < SHARD_MOST;
    if (fits) { /* the address is still in the table because its free was missed: replace it */
        *slot = (struct slot){address, number};
        shard->n += is_new;
    }
    unlock(shard);
    if (fits && is_new)
        mark(hash, 1);
    return fits;
}

/* Closes the gap, so that no probe ends too early. */
static void remove_slot(struct shard *shard, uint32_t gap)
{
    for (uint32_t i = (gap + 1) % SHARD_SLOTS; shard->slots[i].address != 0;
         i = (i + 1) % SHARD_SLOTS) {
        const uint32_t home = home_of(shard->slots[i].address);
        if ((i - home) % SHARD_SLOTS >= (i - gap) % SHARD_SLOTS) {
            shard->slots[gap] = shard->slots[i];
            gap = i;
        }
    }
    shard->slots[gap] = (struct slot){0};
    shard->n--;
}

uint64_t marey__blocks_take(const void *block)
{
    const uint64_t hash = hash_of(block);
    if (blocks.shards == NULL)
        return 0;
    struct shard *const shard = lock_shard(hash);
    const uint32_t i = find(shard, (uint64_t)(uintptr_t)block);
    const uint64_t number = shard->slots[i].number;
    if (shard->slots[i].address != 0)
        remove_slot(shard, i);
    unlock(shard);
    if (number != 0)
        mark(hash, -1);
    return number;
}

void marey__blocks_clear(void)
{
    for (size_t i = 0; blocks.shards != NULL && i < N_SHARDS; i++) {
        struct shard *const shard = lock_shard(i);
        for (size_t k = 0; shard->n > 0 && k < SHARD_SLOTS; k++) {
            if (shard->slots[k].address == 0)
                continue;
            mark(hash_of((const void *)(uintptr_t)shard->slots[k].address), -1);
            shard->slots[k] = (struct slot){0};
            shard->n--;
        }
        unlock(shard);
    }
}
