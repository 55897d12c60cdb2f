/* zlib_memory.h: zlib's memory comes from base/alloc, as all of ours does: {.zalloc = kymo__zlib_take, .zfree = kymo__zlib_give}. */
#ifndef KYMO_ZLIB_MEMORY_H
#define KYMO_ZLIB_MEMORY_H

#include "base/base_internal.h"

static inline void *kymo__zlib_take(void *ctx, unsigned n, unsigned size)
{
    (void)ctx;
    return kymo__calloc(n, size);
}

static inline void kymo__zlib_give(void *ctx, void *p)
{
    (void)ctx;
    kymo__free(p);
}

#endif
