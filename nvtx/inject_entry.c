/*
 * Entry points. NVTX calls us once for each object of the program that contains it, before that object's first call.
 *
 * libmarey contains NVTX as well, for ranges that go to other tools. Its ranges are in the recording already: its
 * tables are passed to the second tool, if there is one, and we do not change them.
 */
#include <dlfcn.h>
#include <string.h>

#include "inject.h"

/* Our function, its slot, and where the second tool's function is stored. */
struct slot {
    int module;
    unsigned place;
    nvtx_function *ours;
    size_t next; /* offset in struct inject_next */
};

#define SLOT(module, place, name)                                                                  \
    {                                                                                              \
        (module), (place), (nvtx_function *)inject_##name, offsetof(struct inject_next, name)      \
    }
#define CORE_SLOT(place, type, name, params) SLOT(NVTX_MODULE_CORE, place, name),
#define CORE2_SLOT(place, type, name, params) SLOT(NVTX_MODULE_CORE2, place, name),
#define SYNC_SLOT(place, type, name, params) SLOT(NVTX_MODULE_SYNC, place, name),

#define PAYLOAD_SLOT(place, type, name, params) SLOT(0, place, name),

static const struct slot slots[] = {NVTX_CORE(CORE_SLOT) NVTX_CORE2(CORE2_SLOT) NVTX_SYNC(SYNC_SLOT)};
enum { N_SLOTS = sizeof slots / sizeof slots[0] };

pthread_mutex_t inject_locks[INJECT_N_LOCKS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                                PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                                PTHREAD_MUTEX_INITIALIZER};

/* Where the object stores the function; NULL if it does not have it. */
static nvtx_function **find_place(const struct nvtx_callbacks *callbacks, const struct slot *slot)
{
    nvtx_function ***places = NULL;
    unsigned n = 0;
    if (!callbacks->module(slot->module, &places, &n) || slot->place >= n)
        return NULL;
    return places[slot->place];
}

/* ---- a second tool ---- */

static nvtx_function **kept_for(const struct slot *slot)
{
    return (nvtx_function **)((char *)&inject_next + slot->next);
}

/* A tool has the same functions for all objects; keep the first ones. */
static void keep(const struct slot *slot, nvtx_function *theirs)
{
    nvtx_function **const kept = kept_for(slot);
    if (*kept == NULL)
        __atomic_store_n(kept, theirs, __ATOMIC_RELAXED);
}

/* Passes the tables to the second tool first, and stores its functions. */
static void ask_next(nvtx_get_table *get_table, nvtx_function **const places[N_SLOTS])
{
    nvtx_initialize *const initialize = inject_next_find();
    nvtx_function *before[N_SLOTS];
    for (size_t i = 0; i < N_SLOTS; i++)
        /* cppcheck-suppress legacyUninitvar ; all are set here */
        before[i] = places[i] != NULL ? *places[i] : NULL;
    if (initialize == NULL || initialize(get_table) == 0)
        return;
    for (size_t i = 0; i < N_SLOTS; i++)
        if (places[i] != NULL && *places[i] != before[i])
            keep(&slots[i], *places[i]);
    __atomic_store_n(&inject_has_next, true, __ATOMIC_RELAXED);
}

/* ---- our functions ---- */

/* Functions useful only to a second tool are not provided without one. */
static bool is_of_use(const struct slot *slot)
{
    return slot->ours != (nvtx_function *)inject_resource_create &&
           slot->ours != (nvtx_function *)inject_sync_user_create;
}

/* Whether the function is in libmarey. */
static bool is_libmarey(void *function)
{
    Dl_info theirs, ours;
    return dladdr(function, &theirs) != 0 && dladdr((void *)marey_put_begin, &ours) != 0 &&
           theirs.dli_fbase == ours.dli_fbase;
}

/* Caller holds the lock. 0: NVTX uses empty functions. */
static int initialize_object(nvtx_get_table *get_table)
{
    nvtx_function **places[N_SLOTS];
    const struct nvtx_callbacks *const callbacks = get_table(NVTX_TABLE_CALLBACKS);
    if (callbacks == NULL || callbacks->bytes < sizeof *callbacks)
        return 0;
    if (is_libmarey((void *)get_table)) {
        nvtx_initialize *const next = inject_next_find();
        return next != NULL ? next(get_table) : 0;
    }
    for (size_t i = 0; i < N_SLOTS; i++)
        places[i] = find_place(callbacks, &slots[i]);
    ask_next(get_table, places);
    for (size_t i = 0; i < N_SLOTS; i++)
        if (places[i] != NULL && (is_of_use(&slots[i]) || *kept_for(&slots[i]) != NULL))
            *places[i] = slots[i].ours;
    return 1;
}

MAREY_API int InitializeInjectionNvtx2(nvtx_get_table *get_table);
MAREY_API int InitializeInjectionNvtx2(nvtx_get_table *get_table)
{
    if (get_table == NULL)
        return 0;
    inject_lock(INJECT_LOCK_ENTRY);
    const int is_taken = initialize_object(get_table);
    inject_unlock(INJECT_LOCK_ENTRY);
    return is_taken;
}

/*
 * ---- the payload extension ----
 *
 * Its functions for clocks and event batches are not provided, nor other extensions.
 */

static const struct slot payload_slots[] = {NVTX_PAYLOADS(PAYLOAD_SLOT)};
enum { N_PAYLOAD_SLOTS = sizeof payload_slots / sizeof payload_slots[0], PLACE_OF_TIMESTAMP = 8 };

/*
 * Passes the slots to the second tool first. Disables its other functions, because they would get our handles, except
 * one without handles.
 */
static void ask_next_extension(struct nvtx_extension *extension)
{
    nvtx_initialize_extension *const initialize = inject_next_find_extension();
    const struct nvtx_segment *const segment = &extension->segments[0];
    if (initialize == NULL || initialize(extension) == 0)
        return;
    for (size_t i = 0; i < N_PAYLOAD_SLOTS; i++) {
        const size_t place = payload_slots[i].place;
        if (place < segment->n && segment->places[place] > NVTX_EXTENSION_OFF)
            keep(&payload_slots[i], (nvtx_function *)segment->places[place]);
    }
    for (size_t i = N_PAYLOAD_SLOTS; i < segment->n; i++)
        if (i != PLACE_OF_TIMESTAMP)
            segment->places[i] = 0;
}

/* 0: NVTX uses empty functions for the extension. */
MAREY_API int InitializeInjectionNvtxExtension(struct nvtx_extension *extension);
MAREY_API int InitializeInjectionNvtxExtension(struct nvtx_extension *extension)
{
    if (extension == NULL || extension->bytes < sizeof *extension ||
        extension->module != NVTX_EXTENSION_PAYLOAD || extension->n_segments == 0 ||
        extension->segments == NULL || extension->segments[0].places == NULL)
        return 0;
    inject_lock(INJECT_LOCK_ENTRY);
    ask_next_extension(extension);
    for (size_t i = 0; i < N_PAYLOAD_SLOTS; i++)
        if (payload_slots[i].place < extension->segments[0].n)
            extension->segments[0].places[payload_slots[i].place] = (intptr_t)payload_slots[i].ours;
    inject_unlock(INJECT_LOCK_ENTRY);
    return 1;
}

/* ---- forks ---- */

static void before_fork(void)
{
    for (int i = 0; i < INJECT_N_LOCKS; i++)
        inject_lock((enum inject_lock)i);
}

static void after_fork(void)
{
    for (int i = INJECT_N_LOCKS; i-- > 0;)
        inject_unlock((enum inject_lock)i);
}

static void after_fork_in_child(void)
{
    inject_thread_after_fork();
    after_fork();
}

/* Runs after libmarey, a dependency: so before a fork our locks are taken first, as elsewhere. */
__attribute__((constructor)) static void load(void)
{
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}
