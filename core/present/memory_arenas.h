/* Segments for the allocator's snapshot of one device, and what lies in them at the end. */
#ifndef KYMO_MEMORY_ARENAS_H
#define KYMO_MEMORY_ARENAS_H

#include "analyze/memory_timeline.h"

struct kymo__memory_arena {
    uint64_t begin, end;
    size_t first_live, n_live; /* of kymo__memory_arenas.live */
    int64_t live_bytes;
    bool is_small;
};
struct kymo__memory_arenas {
    struct kymo__memory_arena *arenas; /* by address; they do not touch */
    size_t n_arenas;
    uint32_t *live; /* blocks by address; they do not overlap */
    size_t n_live;
};

/* Whether the viewer can draw a block: its numbers are doubles, and what has no address has no place. */
static inline bool kymo__memory_is_shown(const struct kymo__memory_block *block)
{
    const uint64_t most = UINT64_C(1) << 53;
    return block->address != 0 && block->address < most &&
           (uint64_t)block->bytes < most - block->address;
}

/* KYMO_ENOMEM; fini in any case. */
KYMO_WARN_UNUSED kymo_status kymo__memory_arenas_init(struct kymo__memory_arenas *arenas,
                                                      const struct kymo__memory_timeline *timeline,
                                                      uint32_t device);
void kymo__memory_arenas_fini(struct kymo__memory_arenas *arenas);

#endif
