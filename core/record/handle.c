/* Handles: numbers for names that compiled code may store on disk. They depend only on the name, in any process. */
#include <pthread.h>
#include <string.h>

#include "record/internal.h"

struct slot {
    uint64_t handle; /* 0: free. Release; loaded with acquire */
    marey_id id;
};

/* Never freed: a reader may be in an older one. All older ones together are no larger than the newest. */
struct table {
    struct table *older;
    size_t n_slots; /* a power of two, at least twice the number of handles */
    struct slot slots[];
};

static struct {
    pthread_mutex_t lock; /* guards growing and adding */
    struct table *table;  /* release; loaded with acquire */
    size_t n;
} handles = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* FNV-1a; the top bit stays clear, because some callers store handles in signed integers. */
static uint64_t hash(const char *name, size_t len)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    h &= INT64_MAX;
    return h != 0 ? h : 1;
}

/* The slot of `handle`, or the free slot where it belongs. */
static struct slot *probe(struct table *table, uint64_t handle)
{
    for (size_t i = handle;; i++) {
        struct slot *slot = &table->slots[i & (table->n_slots - 1)];
        const uint64_t found = __atomic_load_n(&slot->handle, __ATOMIC_ACQUIRE);
        if (found == handle || found == 0)
            return slot;
    }
}

static void add(struct table *table, uint64_t handle, marey_id id)
{
    struct slot *const slot = probe(table, handle);
    slot->id = id;
    __atomic_store_n(&slot->handle, handle, __ATOMIC_RELEASE);
}

/* Caller holds the lock. */
static bool make_room(void)
{
    struct table *const old = handles.table;
    const size_t n_old = old != NULL ? old->n_slots : 0;
    if ((handles.n + 1) * 2 <= n_old)
        return true;
    const size_t n = n_old > 0 ? n_old * 2 : 64;
    struct table *const table = marey__calloc(1, sizeof *table + n * sizeof table->slots[0]);
    if (table == NULL)
        return false;
    table->n_slots = n;
    table->older = old;
    for (size_t i = 0; i < n_old; i++)
        if (old->slots[i].handle != 0)
            add(table, old->slots[i].handle, old->slots[i].id);
    __atomic_store_n(&handles.table, table, __ATOMIC_RELEASE);
    return true;
}

/* Two names with the same handle (chance: one in a billion billions) share the first one's name. */
uint64_t marey__handle_of(const char *name, size_t len)
{
    const uint64_t handle = hash(name, len);
    const marey_id id = marey_site_intern(name, len, NULL, 0, NULL, 0);
    MAREY__HOLD(&handles.lock);
    if (make_room() && probe(handles.table, handle)->handle == 0) {
        add(handles.table, handle, id);
        handles.n++;
    }
    return handle;
}

marey_id marey__handle_id(uint64_t handle)
{
    struct table *const table = __atomic_load_n(&handles.table, __ATOMIC_ACQUIRE);
    const struct slot *const slot = table != NULL && handle != 0 ? probe(table, handle) : NULL;
    return slot != NULL && __atomic_load_n(&slot->handle, __ATOMIC_ACQUIRE) == handle ? slot->id : 0;
}

void marey__handles_before_fork(void)
{
    pthread_mutex_lock(&handles.lock);
}

void marey__handles_after_fork(void)
{
    pthread_mutex_unlock(&handles.lock);
}
