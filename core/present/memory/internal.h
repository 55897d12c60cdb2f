/*
 * memory: files of memory timelines.
 *
 *   memory_json_out.c       the files by their kind; torch's two JSON files
 *   memory_page_out.c       the page
 *   memory_snapshot_out.c   the allocator's snapshot, a pickle; memory_arenas.c assigns blocks to segments
 *
 * Input: a timeline of analyze/memory. Output: whole files into a descriptor that stays open. Does not know traces or
 * categories: analyze/memory has assigned them.
 */
#ifndef MAREY_PRESENT_MEMORY_INTERNAL_H
#define MAREY_PRESENT_MEMORY_INTERNAL_H

#include "analyze/memory/internal.h"
#include "present/export/internal.h"

/* ---- memory_page_out.c: all devices ---- */

MAREY_WARN_UNUSED marey_status marey__memory_page_write(const struct marey__memory_timeline *timeline,
                                                        const char *title, int fd);

/* ---- memory_snapshot_out.c: all devices, for PyTorch's memory viewer ---- */

MAREY_WARN_UNUSED marey_status
marey__memory_snapshot_write(const struct marey__memory_timeline *timeline, int fd);

/* ---- memory_arenas.c ---- */

/* Segments for the allocator's snapshot of one device, and their blocks at the end. */

struct marey__memory_arena {
    uint64_t begin, end;
    size_t first_live, n_live; /* in marey__memory_arenas.live */
    int64_t live_bytes;
    bool is_small;
};
struct marey__memory_arenas {
    struct marey__memory_arena *arenas; /* by address, not adjacent */
    size_t n_arenas;
    uint32_t *live; /* blocks by address, without overlaps */
    size_t n_live;
};

/* Whether the viewer can draw a block: its numbers are doubles, and it needs an address. */
static inline bool marey__memory_is_shown(const struct marey__memory_block *block)
{
    const uint64_t most = UINT64_C(1) << 53;
    return block->address != 0 && block->address < most &&
           (uint64_t)block->bytes < most - block->address;
}

/* Fails with MAREY_ENOMEM; call fini in any case. */
MAREY_WARN_UNUSED marey_status marey__memory_arenas_init(struct marey__memory_arenas *arenas,
                                                         const struct marey__memory_timeline *timeline,
                                                         uint32_t device);
void marey__memory_arenas_fini(struct marey__memory_arenas *arenas);

#endif
