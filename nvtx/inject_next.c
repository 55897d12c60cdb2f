/*
 * The second tool: the library that NVTX_INJECTION64_PATH named before `marey run` replaced it. It gets every call
 * unchanged, with its own handles instead of ours.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "inject.h"

struct inject_next inject_next;
bool inject_has_next;

/* ---- loading ---- */

/* A library that cannot be loaded is reported once and ignored. */
static void *open_library(const char *path)
{
    void *const library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (library != NULL && dlsym(library, "InitializeInjectionNvtx2") != NULL)
        return library;
    fprintf(stderr,
            "marey: NVTX's ranges are recorded and go to no second tool, because %s %s; see "
            "NVTX_INJECTION64_PATH\n",
            path, library == NULL ? "cannot be loaded" : "is not an NVTX tool");
    return NULL;
}

/* A function of the second tool; NULL without one. */
static void *find(const char *name)
{
    static bool is_known; /* this and the next are guarded by the lock of inject_entry.c */
    static void *library;
    const char *const path = getenv("MAREY_NVTX_NEXT");
    if (!is_known && path != NULL && path[0] != '\0')
        library = open_library(path);
    is_known = true;
    return library != NULL ? dlsym(library, name) : NULL;
}

nvtx_initialize *inject_next_find(void)
{
    return (nvtx_initialize *)find("InitializeInjectionNvtx2");
}

nvtx_initialize_extension *inject_next_find_extension(void)
{
    return (nvtx_initialize_extension *)find("InitializeInjectionNvtxExtension");
}

/* ---- its handles ---- */

const struct nvtx_event *inject_next_event(const struct nvtx_event *event, struct nvtx_event *copy)
{
    if (event == NULL || event->text_type != NVTX_REGISTERED || event->as.registered == NULL)
        return event;
    const struct inject_name *const name = event->as.registered;
    *copy = *event;
    copy->bytes = sizeof *copy;
    copy->as.registered = __atomic_load_n(&name->theirs, __ATOMIC_ACQUIRE);
    return copy;
}

/* ---- its numbers of ranges ---- */

struct pair {
    uint64_t ours, theirs;
};

/* Guarded by INJECT_LOCK_NEXT. */
static struct {
    struct pair *open;
    size_t n, cap;
    uint64_t n_unrecorded;
} ranges;

/* Caller holds the lock. */
static bool has_room(void)
{
    if (ranges.n < ranges.cap)
        return true;
    const size_t cap = ranges.cap > 0 ? ranges.cap * 2 : 64;
    struct pair *const open = realloc(ranges.open, cap * sizeof *open);
    if (open == NULL)
        return false;
    ranges.open = open;
    ranges.cap = cap;
    return true;
}

uint64_t inject_next_started(uint64_t ours, uint64_t theirs)
{
    inject_lock(INJECT_LOCK_NEXT);
    if (ours == 0)
        ours = UINT64_C(1) << 63 | ++ranges.n_unrecorded;
    if (has_room())
        ranges.open[ranges.n++] = (struct pair){ours, theirs};
    inject_unlock(INJECT_LOCK_NEXT);
    return ours;
}

bool inject_next_ended(uint64_t ours, uint64_t *theirs)
{
    inject_lock(INJECT_LOCK_NEXT);
    size_t i = ranges.n;
    while (i > 0 && ranges.open[i - 1].ours != ours)
        i--;
    if (i > 0) {
        *theirs = ranges.open[i - 1].theirs;
        ranges.open[i - 1] = ranges.open[--ranges.n];
    }
    inject_unlock(INJECT_LOCK_NEXT);
    return i > 0;
}
