/* libmarey-memory: malloc and its like, in front of whichever the program has. */
#ifndef MAREY_MEMORY_HOOK_H
#define MAREY_MEMORY_HOOK_H

#include <stddef.h>

/* ---- memory_next.c: the allocator behind us ---- */

/* X(name, result, arguments) of the functions that we define; malloc is found last. */
#define NEXT_FUNCTIONS(X)                                                                          \
    X(calloc, void *, (size_t n, size_t bytes))                                                    \
    X(realloc, void *, (void *block, size_t bytes))                                                \
    X(free, void, (void *block))                                                                   \
    X(posix_memalign, int, (void **out, size_t alignment, size_t bytes))                           \
    X(aligned_alloc, void *, (size_t alignment, size_t bytes))                                     \
    X(memalign, void *, (size_t alignment, size_t bytes))                                          \
    X(valloc, void *, (size_t bytes))                                                              \
    X(pvalloc, void *, (size_t bytes))                                                             \
    X(malloc, void *, (size_t bytes))
#define NEXT_FIELD(name, result, arguments) result(*name) arguments;
struct next {
    NEXT_FUNCTIONS(NEXT_FIELD)
};
extern struct next next; /* constant once `malloc` is not NULL */

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
