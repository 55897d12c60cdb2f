/*
 * The way in. NVTX calls us once for each object of the program that has it inside, before that object's first call.
 *
 * libmarey has it inside as well, for ranges that go to other tools. Ours are in the recording already: its tables are
 * given to the second tool, if there is one, and we keep out of them.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "inject.h"

/* A function of ours, its place, and where the second tool's is kept. */
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

static const struct slot slots[] = {NVTX_CORE(CORE_SLOT) NVTX_CORE2(CORE2_SLOT) NVTX_SYNC(SYNC_SLOT)};
enum { N_SLOTS = sizeof slots / sizeof slots[0] };

static pthread_mutex_t entry_lock = PTHREAD_MUTEX_INITIALIZER; /* one object at a time */

void inject_entry_lock(bool lock)
{
    if (lock)
        pthread_mutex_lock(&entry_lock);
    else
        pthread_mutex_unlock(&entry_lock);
}

/* Where the object keeps the function; NULL: it knows no such function. */
static nvtx_function **find_place(const struct nvtx_callbacks *callbacks, const struct slot *slot)
{
    nvtx_function ***places = NULL;
    unsigned n = 0;
    if (!callbacks->module(slot->module, &places, &n) || slot->place >= n)
        return NULL;
    return places[slot->place];
}

static void find_places(const struct nvtx_callbacks *callbacks, nvtx_function **places[N_SLOTS])
{
    for (size_t i = 0; i < N_SLOTS; i++)
        places[i] = find_place(callbacks, &slots[i]);
}

/* ---- a second tool ---- */

static nvtx_function **kept_for(const struct slot *slot)
{
    return (nvtx_function **)((char *)&inject_next + slot->next);
}

/* Keep what it put there. A tool has the same functions for all objects; the first ones count. */
static void keep_next(nvtx_function *const before[N_SLOTS], nvtx_function **const places[N_SLOTS])
{
    for (size_t i = 0; i < N_SLOTS; i++) {
        nvtx_function **const kept = kept_for(&slots[i]);
        if (places[i] != NULL && *places[i] != before[i] && *kept == NULL)
            __atomic_store_n(kept, *places[i], __ATOMIC_RELAXED);
    }
    __atomic_store_n(&inject_has_next, true, __ATOMIC_RELAXED);
}

static void remember(nvtx_function **const places[N_SLOTS], nvtx_function *functions[N_SLOTS])
{
    for (size_t i = 0; i < N_SLOTS; i++)
        functions[i] = places[i] != NULL ? *places[i] : NULL;
}

/* Let it have the tables first. */
static void ask_next(nvtx_get_table *get_table, nvtx_function **const places[N_SLOTS])
{
    nvtx_initialize *const initialize = inject_next_find();
    nvtx_function *before[N_SLOTS];
    if (initialize == NULL)
        return;
    remember(places, before);
    if (initialize(get_table) != 0)
        keep_next(before, places);
}

/* ---- us ---- */

/* What only a second tool has a use for is left to NVTX without one. */
static bool is_of_use(const struct slot *slot)
{
    return slot->ours != (nvtx_function *)inject_resource_create &&
           slot->ours != (nvtx_function *)inject_sync_user_create;
}

static void take_places(nvtx_function **const places[N_SLOTS])
{
    for (size_t i = 0; i < N_SLOTS; i++)
        if (places[i] != NULL && (is_of_use(&slots[i]) || *kept_for(&slots[i]) != NULL))
            *places[i] = slots[i].ours;
}

/* Whether the function lies in libmarey. */
static bool is_libmarey(void *function)
{
    Dl_info theirs, ours;
    return dladdr(function, &theirs) != 0 && dladdr((void *)marey_put_begin, &ours) != 0 &&
           theirs.dli_fbase == ours.dli_fbase;
}

/* The lock is held. 0: the object makes its functions empty. */
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
    find_places(callbacks, places);
    ask_next(get_table, places);
    take_places(places);
    return 1;
}

MAREY_API int InitializeInjectionNvtx2(nvtx_get_table *get_table);
MAREY_API int InitializeInjectionNvtx2(nvtx_get_table *get_table)
{
    if (get_table == NULL)
        return 0;
    inject_entry_lock(true);
    const int is_taken = initialize_object(get_table);
    inject_entry_lock(false);
    return is_taken;
}

/* ---- forks ---- */

static void before_fork(void)
{
    inject_entry_lock(true);
    inject_next_lock(true);
    inject_schema_lock(true);
    inject_names_lock(true);
    inject_thread_lock(true);
}

static void after_fork(void)
{
    inject_thread_lock(false);
    inject_names_lock(false);
    inject_schema_lock(false);
    inject_next_lock(false);
    inject_entry_lock(false);
}

static void after_fork_in_child(void)
{
    inject_thread_after_fork();
    after_fork();
}

/* Behind libmarey, which we need: so before a fork our locks are taken first, as they are elsewhere. */
__attribute__((constructor)) static void load(void)
{
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}
