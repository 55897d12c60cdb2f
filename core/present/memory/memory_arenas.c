/*
 * Segments for a snapshot: address ranges that an allocator may have reserved. A trace has only allocations, so a
 * segment is a cluster of allocations from any time; every address ever used must be in one, because the viewer goes
 * back in time with the final segments.
 */
#include "present/memory/internal.h"

enum {
    GAP = 1 << 20,           /* minimum distance between segments */
    SMALL_SEGMENT = 2 << 20, /* size that the caching allocator reserves for small blocks */
};

struct range {
    uint64_t begin, end;
};

static size_t list_ranges(const struct marey__memory_timeline *timeline, uint32_t device,
                          struct range *ranges)
{
    size_t n = 0;
    for (size_t i = 0; i < timeline->n_blocks; i++) {
        const struct marey__memory_block *block = &timeline->blocks[i];
        if (block->device == device && marey__memory_is_shown(block))
            ranges[n++] = (struct range){block->address, block->address + (uint64_t)block->bytes};
    }
    qsort(ranges, n, sizeof *ranges, marey__compare_u64); /* by `begin`, the first member */
    return n;
}

static bool join_ranges(struct marey__memory_arenas *arenas, const struct range *ranges, size_t n)
{
    size_t cap = 0;
    for (size_t i = 0; i < n; i++) {
        struct marey__memory_arena *last =
            arenas->n_arenas != 0 ? &arenas->arenas[arenas->n_arenas - 1] : NULL;
        if (last != NULL && ranges[i].begin <= last->end + GAP) {
            last->end = MAREY__MAX(last->end, ranges[i].end);
            continue;
        }
        if (!MAREY__PUSH(arenas->arenas, arenas->n_arenas, cap,
                         (struct marey__memory_arena){.begin = ranges[i].begin, .end = ranges[i].end}))
            return false;
    }
    return true;
}

/* ---- blocks at the end ---- */

struct sorted_block {
    uint64_t address;
    uint32_t block;
};

MAREY__ORDER(by_place, struct sorted_block, MAREY__UP(address) MAREY__UP(block))

/*
 * Of two overlapping blocks, the one allocated first is gone: its release was not recorded. Kept blocks do not overlap,
 * so checking the last one is enough.
 */
static void keep_block(struct marey__memory_arenas *arenas,
                       const struct marey__memory_timeline *timeline, uint32_t number)
{
    const struct marey__memory_block *block = &timeline->blocks[number];
    if (arenas->n_live != 0) {
        const struct marey__memory_block *last = &timeline->blocks[arenas->live[arenas->n_live - 1]];
        if (last->address + (uint64_t)last->bytes > block->address) {
            if (last->made_change > block->made_change)
                return;
            arenas->n_live--;
        }
    }
    arenas->live[arenas->n_live++] = number;
}

static bool find_live(struct marey__memory_arenas *arenas,
                      const struct marey__memory_timeline *timeline, uint32_t device)
{
    struct sorted_block *sorted MAREY__FREED = marey__calloc(timeline->n_blocks + 1, sizeof *sorted);
    arenas->live = marey__calloc(timeline->n_blocks + 1, sizeof *arenas->live);
    size_t n = 0;
    if (sorted == NULL || arenas->live == NULL)
        return false;
    for (uint32_t i = 0; i < timeline->n_blocks; i++) {
        const struct marey__memory_block *block = &timeline->blocks[i];
        if (block->device == device && marey__memory_is_shown(block) &&
            block->freed_ns == MAREY__MEMORY_NEVER)
            sorted[n++] = (struct sorted_block){block->address, i};
    }
    qsort(sorted, n, sizeof *sorted, by_place);
    for (size_t i = 0; i < n; i++)
        keep_block(arenas, timeline, sorted[i].block);
    return true;
}

static void share_out(struct marey__memory_arenas *arenas,
                      const struct marey__memory_timeline *timeline)
{
    size_t at = 0;
    for (size_t i = 0; i < arenas->n_arenas; i++) {
        struct marey__memory_arena *arena = &arenas->arenas[i];
        arena->first_live = at;
        for (; at < arenas->n_live; at++) {
            const struct marey__memory_block *block = &timeline->blocks[arenas->live[at]];
            if (block->address >= arena->end)
                break;
            arena->live_bytes += block->bytes;
        }
        arena->n_live = at - arena->first_live;
        arena->is_small = arena->end - arena->begin <= SMALL_SEGMENT;
    }
}

marey_status marey__memory_arenas_init(struct marey__memory_arenas *arenas,
                                       const struct marey__memory_timeline *timeline, uint32_t device)
{
    *arenas = (struct marey__memory_arenas){0};
    struct range *ranges MAREY__FREED = marey__calloc(timeline->n_blocks + 1, sizeof *ranges);
    MAREY__TRY_MEMORY(ranges != NULL &&
                      join_ranges(arenas, ranges, list_ranges(timeline, device, ranges)) &&
                      find_live(arenas, timeline, device));
    share_out(arenas, timeline);
    return MAREY_OK;
}

void marey__memory_arenas_fini(struct marey__memory_arenas *arenas)
{
    MAREY__FREE_ALL(arenas->arenas, arenas->live);
    *arenas = (struct marey__memory_arenas){0};
}
