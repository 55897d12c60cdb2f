/* zlib_memory.h: zlib's memory comes from base/alloc, as all of ours does: {.zalloc = marey__zlib_take, .zfree = marey__zlib_give}. */
#ifndef MAREY_ZLIB_MEMORY_H
#define MAREY_ZLIB_MEMORY_H

#include "base/internal.h"

static inline void *marey__zlib_take(void *ctx, unsigned n, unsigned size)
{
    (void)ctx;
    return marey__calloc(n, size);
}

static inline void marey__zlib_give(void *ctx, void *p)
{
    (void)ctx;
    marey__free(p);
}

#endif
