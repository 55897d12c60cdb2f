/* The allocator behind us: found by the loader at the first call, which may come before any constructor has run. */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "memory_hook.h"

struct next next;

/* ---- what is handed out while dlsym() looks ---- */

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

/* ---- finding ---- */

static void find(const char *name, void *into)
{
    void *const found = dlsym(RTLD_NEXT, name);
    memcpy(into, &found, sizeof found);
}

void next_find(void)
{
    struct next found;
    find("calloc", &found.calloc);
    find("realloc", &found.realloc);
    find("free", &found.free);
    find("posix_memalign", &found.posix_memalign);
    find("aligned_alloc", &found.aligned_alloc);
    find("memalign", &found.memalign);
    find("valloc", &found.valloc);
    find("pvalloc", &found.pvalloc);
    find("malloc", &found.malloc);
    next.calloc = found.calloc, next.realloc = found.realloc, next.free = found.free;
    next.posix_memalign = found.posix_memalign, next.aligned_alloc = found.aligned_alloc;
    next.memalign = found.memalign, next.valloc = found.valloc, next.pvalloc = found.pvalloc;
    /* Release: who sees it sees all of them. */
    __atomic_store_n(&next.malloc, found.malloc, __ATOMIC_RELEASE);
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
