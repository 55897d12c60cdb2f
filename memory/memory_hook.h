/* libmarey-memory: malloc and related functions, in front of the program's allocator. */
#ifndef MAREY_MEMORY_HOOK_H
#define MAREY_MEMORY_HOOK_H

#include <stddef.h>

/* ---- memory_next.c: the underlying allocator ---- */

/* X(name, result, arguments) of the functions that we define; malloc is looked up last. */
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
extern struct next next; /* constant after `malloc` is set */

/* Looks up the underlying functions. Meanwhile dlsym() may allocate, which early_take() serves. */
void next_find(void);
/* Zeroed memory that is never freed; NULL when it is used up. */
void *early_take(size_t bytes);
/* Whether a block is from there, and the maximum it may contain. */
size_t early_size(const void *block);
/* A message if the allocator has functions that bypass us, or NULL. */
const char *next_is_foreign(void);

/* ---- memory_unwind.c ---- */

/* Return addresses, innermost first, without those of this library. Returns how many. */
size_t unwind(void **frames, size_t n);

#endif
