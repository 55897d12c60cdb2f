/*
 * marey/memory.h: allocation sampling, for code that hooks an allocator.
 *
 * `marey run --memory` preloads libmarey-memory, which hooks malloc; marey's Python package hooks Python's allocators. Both
 * count bytes down in a struct marey_memory_thread and report an allocation when the count runs out, so each byte has the
 * same chance to be sampled. A sampled allocation has a stack and a weight, and is tracked until it is freed. The resident
 * memory of the process is recorded as well.
 *
 * Cost: off, a load and a branch. On, a subtraction per allocation and a lookup in a 64 KiB table per free; a few
 * microseconds per sampled allocation.
 *
 * A hook may call these from any thread, with any lock of the program held, and before main(). They do not allocate through
 * the hook, take no lock of the recording and do not wait, except up to 100 ms for a full queue while every allocation is
 * sampled.
 */
#ifndef MAREY_MEMORY_H
#define MAREY_MEMORY_H

#include <marey/switchboard.h>

MAREY_BEGIN_C

enum marey_memory_source {
    MAREY_MEMORY_MALLOC = 0, /* malloc and related functions */
    MAREY_MEMORY_PYTHON = 1, /* Python's allocators for small objects */
};

/* State of one thread, or of threads that never allocate concurrently. Owned by the hook; initially zeroed. */
struct marey_memory_thread {
    int64_t until;     /* bytes until the next sample; negative: due */
    uint64_t interval; /* mean bytes between samples, used to draw `until`; 0: not drawn yet */
    uint64_t random;
};

/* Whether to sample an allocation of `bytes`, with marey_memory_take(). Only while MAREY_ON_MEMORY is set. */
static inline int marey_memory_is_due(struct marey_memory_thread *thread, size_t bytes)
{
    thread->until -= (int64_t)bytes;
    return MAREY_UNLIKELY(thread->until < 0);
}

/*
 * Record a sampled allocation of `bytes` at `block` (not NULL). `frames` are return addresses, innermost first; `n` may be
 * 0. Adds the Python frames of this thread after marey_memory_set_interpreter().
 */
MAREY_API void marey_memory_take(struct marey_memory_thread *thread, const void *block, size_t bytes,
                                 enum marey_memory_source source, void *const *frames, size_t n);
/* Whether marey_memory_take() needs the frames; else skip the unwinding. May redraw `until`. */
MAREY_API int marey_memory_wants(struct marey_memory_thread *thread, size_t bytes);

/* `block` is about to be freed. Call before the free, if marey_memory_is_marked() returns true. */
MAREY_API void marey_memory_give(const void *block);

/*
 * One byte for each of MAREY_MEMORY_N_MARKS groups of addresses; not 0: the group may contain a sampled block. Never freed.
 * NULL on out of memory, or while memory is not measured.
 */
#define MAREY_MEMORY_N_MARKS 65536u
MAREY_API const uint8_t *marey_memory_marks(void);
static inline int marey_memory_is_marked(const uint8_t *marks, const void *block)
{
    const uint64_t hash = ((uint64_t)(uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return __atomic_load_n(&marks[hash >> 48], __ATOMIC_RELAXED) != 0;
}

/* Report, once, that malloc is hooked (NULL), or why not: a static sentence for the recording. */
MAREY_API void marey_memory_hooked(const char *why_not);
/* Whether malloc is hooked. */
MAREY_API int marey_memory_is_hooked(void);

/* An interpreter frame: a position in a function. Equal fields: the same position. */
struct marey_memory_place {
    const void *code, *name, *file;
    int32_t first_line, at;
};
/* Callbacks to find and describe places. They must not allocate or wait, and must be safe on any thread. */
struct marey_memory_interpreter {
    /* Frames of this thread, innermost first, at most `n`. Returns 0 on a thread without the interpreter. */
    size_t (*places)(struct marey_memory_place *out, size_t n);
    /* Fill name (NUL-terminated, truncated if too long), file and line of a place that places() just returned. */
    void (*describe)(const struct marey_memory_place *place, char *name, size_t name_size,
                     char *file, size_t file_size, uint32_t *line);
    const void *within; /* an address in the interpreter's code: native frames from there outwards are omitted */
};
/* `interpreter` must stay valid; later calls are ignored. */
MAREY_API void marey_memory_set_interpreter(const struct marey_memory_interpreter *interpreter);

MAREY_END_C
#endif
