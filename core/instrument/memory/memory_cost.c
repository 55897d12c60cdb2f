/*
 * The cost of the hooks per allocation: a block allocated and freed through them, compared with the C library's
 * functions.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "instrument/memory/internal.h"

enum { PAIRS = 400, ROUNDS = 5, BYTES = 64 };

struct allocator {
    void *(*allocate)(size_t bytes);
    void (*release)(void *block);
};

/* Ticks for PAIRS blocks, the minimum of some rounds, the one with the least interference. */
static uint64_t time_pairs(const struct allocator *a)
{
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t begin = marey__clock_ticks();
        for (int i = 0; i < PAIRS; i++) {
            void *block = a->allocate(BYTES);
            __asm__ volatile("" : : "r"(block) : "memory");
            a->release(block);
        }
        least = MAREY__MIN(least, marey__clock_ticks() - begin);
    }
    return least;
}

/* Picoseconds per allocation and its free; 0 if malloc is not hooked, or is not the C library's. */
static uint64_t hook_ps(void)
{
    static uint64_t measured; /* Guarded by the lock of memory.c */
    struct allocator plain = {0};
    const struct allocator hooked = {malloc, free};
    *(void **)&plain.allocate = dlsym(RTLD_DEFAULT, "__libc_malloc");
    *(void **)&plain.release = dlsym(RTLD_DEFAULT, "__libc_free");
    if (measured != 0 || !marey_memory_is_hooked() || plain.allocate == NULL || plain.release == NULL)
        return measured;
    const uint64_t with = time_pairs(&hooked), without = time_pairs(&plain);
    const uint64_t more = with > without ? with - without : 0;
    measured = (uint64_t)((double)more * 1e12 / (double)marey__clock_hz() / PAIRS);
    return measured;
}

void marey__memory_cost_record(const struct marey__memory_counts *counts)
{
    const double sampled_ps = (double)counts->ticks * 1e12 / (double)marey__clock_hz();
    const uint64_t n = MAREY__MAX(counts->n_allocations, (uint64_t)1);
    const uint64_t each_ps = hook_ps() + (uint64_t)(sampled_ps / (double)n);
    marey__record_cost(MAREY__KEY_MEMORY_COST, n, each_ps, each_ps);
}
