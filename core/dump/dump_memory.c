/*
 * The memory of copies. Pages that are new cost more than the copy itself, so large pieces are kept for the next ones, as
 * far as the budget has room for them beside what is in use.
 */
#include "dump/dump_internal.h"

enum { PAGE = 4096, LARGE = 64 << 10 };

/* Stands right in front of a large piece. */
struct piece {
    void *begin; /* of the allocation */
    size_t size; /* that can be used */
    struct piece *next;
};

static struct {
    pthread_mutex_t lock; /* guards all of it */
    struct piece *kept;
    size_t n_kept_bytes, limit;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct piece *piece_of(void *bytes)
{
    return (struct piece *)bytes - 1;
}

/* The smallest kept piece that will do, unless it would waste as much again. */
static struct piece *take_kept(size_t size)
{
    struct piece **best = NULL;
    pthread_mutex_lock(&memory.lock);
    for (struct piece **at = &memory.kept; *at != NULL; at = &(*at)->next)
        if ((*at)->size >= size && (*at)->size / 2 <= size &&
            (best == NULL || (*at)->size < (*best)->size))
            best = at;
    struct piece *const piece = best != NULL ? *best : NULL;
    if (piece != NULL) {
        *best = piece->next;
        memory.n_kept_bytes -= piece->size;
    }
    pthread_mutex_unlock(&memory.lock);
    return piece;
}

void *kymo__dump_memory_take(size_t size)
{
    if (size < LARGE)
        return kymo__alloc(size);
    struct piece *piece = take_kept(size);
    if (piece != NULL)
        return piece + 1;
    if (size > SIZE_MAX / 2)
        return NULL;
    const size_t rounded = (size + PAGE - 1) / PAGE * PAGE;
    char *const begin = kymo__alloc(rounded + PAGE + sizeof *piece);
    if (begin == NULL)
        return NULL;
    const uintptr_t first = (uintptr_t)begin + sizeof *piece;
    char *const bytes = begin + sizeof *piece + (PAGE - first % PAGE) % PAGE;
    *piece_of(bytes) = (struct piece){.begin = begin, .size = rounded};
    return bytes;
}

void kymo__dump_memory_give(void *bytes, size_t size)
{
    if (bytes == NULL || size < LARGE) {
        kymo__free(bytes);
        return;
    }
    struct piece *const piece = piece_of(bytes);
    pthread_mutex_lock(&memory.lock);
    const bool keep = memory.n_kept_bytes + piece->size <= memory.limit;
    if (keep) {
        piece->next = memory.kept;
        memory.kept = piece;
        memory.n_kept_bytes += piece->size;
    }
    pthread_mutex_unlock(&memory.lock);
    if (!keep)
        kymo__free(piece->begin);
}

void kymo__dump_memory_keep(size_t limit)
{
    pthread_mutex_lock(&memory.lock);
    memory.limit = limit;
    while (memory.n_kept_bytes > limit) {
        struct piece *const piece = memory.kept;
        memory.kept = piece->next;
        memory.n_kept_bytes -= piece->size;
        kymo__free(piece->begin);
    }
    pthread_mutex_unlock(&memory.lock);
}

void kymo__dump_memory_before_fork(void)
{
    pthread_mutex_lock(&memory.lock);
}

void kymo__dump_memory_after_fork(void)
{
    pthread_mutex_unlock(&memory.lock);
}
