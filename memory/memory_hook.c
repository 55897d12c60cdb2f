/*
 * The functions that the program calls. Each calls the underlying allocator and counts bytes; sampled allocations are
 * passed to libmarey with their stack.
 *
 * Called from anywhere: before constructors, inside the loader, between fork and exec, in threads that are exiting.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memory_hook.h"
#include <marey/memory.h>

static __thread struct marey_memory_thread thread;
static const uint8_t *marks; /* NULL: nothing was sampled so far. Release */
static int is_off = 1; /* until everything is loaded, and permanently if the allocator is unsuitable */

enum { MAX_FRAMES = 32 };

static inline int has_next(void)
{
    if (MAREY_LIKELY(__atomic_load_n(&next.malloc, __ATOMIC_ACQUIRE) != NULL))
        return 1;
    static __thread int is_finding;
    if (is_finding)
        return 0;
    is_finding = 1;
    next_find();
    is_finding = 0;
    return 1;
}

/* ---- reporting ---- */

static __attribute__((noinline)) void tell(const void *block, size_t bytes)
{
    void *frames[MAX_FRAMES];
    if (is_off || !marey_memory_wants(&thread, bytes))
        return;
    if (marks == NULL)
        __atomic_store_n(&marks, marey_memory_marks(), __ATOMIC_RELEASE);
    marey_memory_take(&thread, block, bytes, MAREY_MEMORY_MALLOC, frames, unwind(frames, MAX_FRAMES));
    __asm__ volatile(""); /* no tail call: unwind() relies on this frame */
}

/* Every allocation comes here: inlined, so that the hook's own frame is the one above tell(). */
static inline __attribute__((always_inline)) void *taken(void *block, size_t bytes)
{
    if (MAREY_UNLIKELY(marey_on() & MAREY_ON_MEMORY) && marey_memory_is_due(&thread, bytes) &&
        block != NULL)
        tell(block, bytes);
    return block;
}

static inline void given(void *block)
{
    const uint8_t *const table = __atomic_load_n(&marks, __ATOMIC_ACQUIRE);
    if (table != NULL && marey_memory_is_marked(table, block))
        marey_memory_give(block);
}

/* ---- the functions ---- */

static inline __attribute__((always_inline)) void *allocated(size_t bytes)
{
    return MAREY_LIKELY(has_next()) ? taken(next.malloc(bytes), bytes) : early_take(bytes);
}

MAREY_API void *malloc(size_t bytes)
{
    return allocated(bytes);
}

MAREY_API void *calloc(size_t n, size_t bytes)
{
    if (MAREY_UNLIKELY(!has_next()))
        return n == 0 || bytes <= SIZE_MAX / n ? early_take(n * bytes) : NULL;
    return taken(next.calloc(n, bytes), n * bytes);
}

MAREY_API void free(void *block)
{
    if (block == NULL || early_size(block) != 0)
        return;
    given(block);
    if (has_next())
        next.free(block);
}

/* A sampled block is freed and another allocated, maybe at the same address. On failure the old one is no longer tracked. */
static inline __attribute__((always_inline)) void *resized(void *block, size_t bytes)
{
    const size_t early_bytes = block != NULL ? early_size(block) : 0;
    if (MAREY_UNLIKELY(early_bytes != 0 || !has_next())) {
        void *const moved = allocated(bytes);
        if (moved != NULL && early_bytes != 0)
            memcpy(moved, block, bytes < early_bytes ? bytes : early_bytes);
        return moved;
    }
    if (block != NULL)
        given(block);
    return taken(next.realloc(block, bytes), bytes);
}

MAREY_API void *realloc(void *block, size_t bytes)
{
    return resized(block, bytes);
}

MAREY_API void *reallocarray(void *block, size_t n, size_t bytes)
{
    if (n != 0 && bytes > SIZE_MAX / n) {
        errno = ENOMEM;
        return NULL;
    }
    return resized(block, n * bytes);
}

MAREY_API int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    if (!has_next())
        return ENOMEM;
    const int error = next.posix_memalign(out, alignment, bytes);
    if (error == 0)
        taken(*out, bytes);
    return error;
}

MAREY_API void *aligned_alloc(size_t alignment, size_t bytes)
{
    return has_next() ? taken(next.aligned_alloc(alignment, bytes), bytes) : NULL;
}

MAREY_API void *memalign(size_t alignment, size_t bytes)
{
    return has_next() ? taken(next.memalign(alignment, bytes), bytes) : NULL;
}

MAREY_API void *valloc(size_t bytes)
{
    return has_next() ? taken(next.valloc(bytes), bytes) : NULL;
}

MAREY_API void *pvalloc(size_t bytes)
{
    return has_next() ? taken(next.pvalloc(bytes), bytes) : NULL;
}

/* libmarey, a dependency, is loaded and has read its options. */
__attribute__((constructor)) static void load(void)
{
    const char *const why_not = next_is_foreign();
    marey_memory_hooked(why_not);
    is_off = why_not != NULL;
}
