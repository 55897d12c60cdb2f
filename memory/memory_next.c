/* The underlying allocator: looked up at the first call, which may come before any constructor has run. */
#include <dlfcn.h>
#include <stdint.h>

#include "memory_hook.h"

struct next next;

/* ---- memory for dlsym() ---- */

static char early[32 << 10] __attribute__((aligned(64)));
static size_t early_used;

void *early_take(size_t bytes)
{
    const size_t rounded = (bytes + 63) & ~(size_t)63;
    if (bytes > sizeof early)
        return NULL;
    const size_t at = __atomic_fetch_add(&early_used, rounded, __ATOMIC_RELAXED);
    return at + rounded <= sizeof early ? early + at : NULL;
}

size_t early_size(const void *block)
{
    const uintptr_t offset = (uintptr_t)block - (uintptr_t)early;
    return offset < sizeof early ? sizeof early - offset : 0;
}

/* ---- lookup ---- */

void next_find(void)
{
    struct next found = {0};
#define FIND(name, result, arguments) *(void **)&found.name = dlsym(RTLD_NEXT, #name);
    NEXT_FUNCTIONS(FIND)
#undef FIND
    void *(*const malloc_behind)(size_t) = found.malloc;
    found.malloc = next.malloc;
    next = found;
    /* Release: a thread that sees it sees all functions. */
    __atomic_store_n(&next.malloc, malloc_behind, __ATOMIC_RELEASE);
}

const char *next_is_foreign(void)
{
    static const struct {
        const char *symbol, *sentence;
    } known[] = {
        {"__asan_init", "no: the program is built with a sanitizer that has a malloc of its own"},
        {"__tsan_init", "no: the program is built with a sanitizer that has a malloc of its own"},
        {"mallctl", "no: the program has jemalloc"},
        {"MallocExtension_ReleaseFreeMemory", "no: the program has tcmalloc"},
        {"tc_malloc", "no: the program has tcmalloc"},
        {"mi_malloc", "no: the program has mimalloc"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (dlsym(RTLD_DEFAULT, known[i].symbol) != NULL)
            return known[i].sentence;
    return NULL;
}
