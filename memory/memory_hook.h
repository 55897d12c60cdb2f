/* libmarey-memory: malloc and its like, in front of whichever the program has. */
#ifndef MAREY_MEMORY_HOOK_H
#define MAREY_MEMORY_HOOK_H

#include <stddef.h>

/* ---- memory_next.c: the allocator behind us ---- */

struct next {
    void *(*malloc)(size_t bytes);
    void *(*calloc)(size_t n, size_t bytes);
    void *(*realloc)(void *block, size_t bytes);
    void (*free)(void *block);
    int (*posix_memalign)(void **out, size_t alignment, size_t bytes);
    void *(*aligned_alloc)(size_t alignment, size_t bytes);
    void *(*memalign)(size_t alignment, size_t bytes);
    void *(*valloc)(size_t bytes);
    void *(*pvalloc)(size_t bytes);
};
extern struct next next; /* stands still once `malloc` is not NULL */

/* Find it. While that is under way, and dlsym() allocates, early_take() serves. */
void next_find(void);
/* Zeroed memory that is never given back; NULL when it is used up. */
void *early_take(size_t bytes);
/* Whether a block is such, and how much there may be behind its begin. */
size_t early_size(const void *block);
/* A sentence when the allocator is one that also has functions we do not see; NULL: all goes through us. */
const char *next_is_foreign(void);

/* ---- memory_unwind.c ---- */

/* Return addresses, the innermost first, without those of this library; how many. */
size_t unwind(void **frames, size_t n);

#endif
