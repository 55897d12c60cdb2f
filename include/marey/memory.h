/*
 * marey/memory.h: what a program allocates, for whoever stands in front of an allocator.
 *
 * `marey run --memory` preloads libmarey-memory, which stands in front of malloc; marey's Python package stands in front of
 * Python's own allocators. Both keep a struct marey_memory_thread, count bytes down in it, and tell libmarey of an
 * allocation when the count is used up: of some, chosen so that each byte has the same chance. What is told has a stack
 * and a weight, and is followed until it is freed. Readings of the process's resident memory come with it.
 *
 * Cost: off, a load and a branch. On, a subtraction for each allocation and a look into a table of 64 KiB for each free;
 * a few microseconds for one that is told.
 *
 * A hook calls these from any thread, within any lock of the program and before main(): nothing here allocates through
 * it, takes a lock of the recording or waits, but for a full queue while every allocation is told, up to 100 ms.
 */
#ifndef MAREY_MEMORY_H
#define MAREY_MEMORY_H

#include <marey/switchboard.h>

#ifdef __cplusplus
extern "C" {
#endif

enum marey_memory_source {
    MAREY_MEMORY_MALLOC = 0, /* malloc and its like */
    MAREY_MEMORY_PYTHON = 1, /* Python's allocators of small objects */
};

/* Of one thread, or of all that never allocate at the same time; zeroed at first. The hook's own. */
struct marey_memory_thread {
    int64_t until; /* bytes until the next that is told; below 0 from then on */
    uint64_t interval; /* bytes between two, on average, by which `until` was drawn; 0: not drawn so far */
    uint64_t random;
};

/* Whether an allocation of `bytes` is to be told, by marey_memory_take(). Only while MAREY_ON_MEMORY is set. */
static inline int marey_memory_is_due(struct marey_memory_thread *thread, size_t bytes)
{
    thread->until -= (int64_t)bytes;
    return MAREY_UNLIKELY(thread->until < 0);
}

/*
 * An allocation of `bytes` at `block` (not NULL) that is due. `frames` are return addresses, the innermost first; `n` may be
 * 0. What Python runs on this thread is added where its package has said how.
 */
MAREY_API void marey_memory_take(struct marey_memory_thread *thread, const void *block, size_t bytes,
                                 enum marey_memory_source source, void *const *frames, size_t n);
/* Whether marey_memory_take() will want the frames; else they need not be gathered. May draw `until` anew. */
MAREY_API int marey_memory_wants(struct marey_memory_thread *thread, size_t bytes);

/* `block` is about to be freed. Call it where marey_memory_is_marked() says so, before the block is. */
MAREY_API void marey_memory_give(const void *block);

/*
 * A byte for each of MAREY_MEMORY_N_MARKS groups of addresses; not 0: there may be a block that was told. Lent for good. NULL
 * without memory, or while nobody has asked for memory to be measured.
 */
#define MAREY_MEMORY_N_MARKS 65536u
MAREY_API const uint8_t *marey_memory_marks(void);
static inline int marey_memory_is_marked(const uint8_t *marks, const void *block)
{
    const uint64_t hash = ((uint64_t)(uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return __atomic_load_n(&marks[hash >> 48], __ATOMIC_RELAXED) != 0;
}

/* Say, once, that malloc is hooked, or why it is not: a static sentence, which goes into the recording. */
MAREY_API void marey_memory_hooked(const char *why_not);
/* Whether malloc is. */
MAREY_API int marey_memory_is_hooked(void);

/* What an interpreter runs: a place in a function. Equal in all fields means the same place. */
struct marey_memory_place {
    const void *code, *name, *file;
    int32_t first_line, at;
};
/* How places are found and named. Both must neither allocate nor wait, and be safe on any thread. */
struct marey_memory_interpreter {
    /* What this thread runs, the innermost first, at most `n`; 0 for a thread without it. */
    size_t (*places)(struct marey_memory_place *out, size_t n);
    /* Fill name (with a NUL, cut where it is too long), file and line of a place that places() has just given. */
    void (*describe)(const struct marey_memory_place *place, char *name, size_t name_size,
                     char *file, size_t file_size, uint32_t *line);
    const void *within; /* an address of the interpreter's code: frames from there on outwards are its own, and left out */
};
/* `interpreter` is lent for good; the first one counts. */
MAREY_API void marey_memory_set_interpreter(const struct marey_memory_interpreter *interpreter);

#ifdef __cplusplus
}
#endif
#endif
