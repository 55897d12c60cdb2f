/*
 * Each thread's open ranges. NVTX has a stack per domain, and these need not nest: entries of all domains are in one
 * array in push order, and a pop removes the last one of its domain.
 */
#include <stdlib.h>
#include <string.h>

#include "inject.h"

enum { FIRST_ENTRIES = 64, MAX_ENTRIES = 1 << 20 };

__thread struct inject_thread inject_thread;

/* On top after more pushes than there is room for. */
static const struct inject_domain beyond;

static struct {
    struct inject_memory *first; /* list; guarded by INJECT_LOCK_THREADS */
    pthread_key_t at_exit;
    bool has_key; /* constant after loading */
} threads;

/* Caller holds the lock. */
static void destroy(struct inject_memory *memory)
{
    *memory->link = memory->next;
    if (memory->next != NULL)
        memory->next->link = memory->link;
    free(memory->entries);
    free(memory);
}

static void thread_exits(void *memory)
{
    inject_thread = (struct inject_thread){0}; /* a later destructor may push: start afresh */
    inject_lock(INJECT_LOCK_THREADS);
    destroy(memory);
    inject_unlock(INJECT_LOCK_THREADS);
}

__attribute__((constructor)) static void load(void)
{
    threads.has_key = pthread_key_create(&threads.at_exit, thread_exits) == 0;
}

static struct inject_memory *create(void)
{
    struct inject_memory *const memory = calloc(1, sizeof *memory);
    if (memory == NULL)
        return NULL;
    inject_lock(INJECT_LOCK_THREADS);
    memory->next = threads.first;
    memory->link = &threads.first;
    if (memory->next != NULL)
        memory->next->link = &memory->next;
    threads.first = memory;
    inject_unlock(INJECT_LOCK_THREADS);
    if (threads.has_key) /* without a key it is leaked at thread exit */
        pthread_setspecific(threads.at_exit, memory);
    inject_thread.memory = memory;
    return memory;
}

/* Doubles the array; one entry is reserved for `beyond`. False at the limit or on out of memory. */
static bool grow(struct inject_thread *self)
{
    if (self->memory == NULL && create() == NULL)
        return false;
    struct inject_memory *const memory = self->memory;
    const size_t n = memory->entries != NULL ? (size_t)(self->top - memory->entries) : 0;
    const size_t cap = n > 0 ? (size_t)(self->limit - memory->entries) * 2 + 1 : FIRST_ENTRIES;
    struct inject_entry *const entries =
        cap <= MAX_ENTRIES ? reallocarray(memory->entries, cap, sizeof *entries) : NULL;
    if (entries == NULL)
        return false;
    memory->entries = entries;
    if (n == 0)
        entries[0] = (struct inject_entry){.level = -1};
    self->top = entries + (n > 0 ? n : 1);
    self->limit = entries + cap - 1;
    return true;
}

void inject_thread_after_fork(void)
{
    struct inject_memory *const own = inject_thread.memory;
    for (struct inject_memory *memory = threads.first, *next; memory != NULL; memory = next) {
        next = memory->next;
        if (memory != own)
            destroy(memory);
    }
    if (own == NULL)
        return;
    for (struct inject_entry *entry = own->entries; entry < inject_thread.top; entry++)
        entry->id = 0;
}

/* The last entry of `domain`, or NULL. */
static struct inject_entry *find(const struct inject_thread *self, const struct inject_domain *domain)
{
    struct inject_entry *entry = self->top - 1;
    while (entry->level >= 0 && entry->domain != domain)
        entry--;
    return entry->level >= 0 ? entry : NULL;
}

struct inject_entry *inject_thread_push_slowly(const struct inject_domain *domain)
{
    struct inject_thread *const self = &inject_thread;
    if (self->n_beyond > 0 || (self->top == self->limit && !grow(self))) {
        if (self->n_beyond++ == 0 && self->top != NULL)
            *self->top++ = (struct inject_entry){.domain = &beyond};
        return NULL;
    }
    const struct inject_entry *const below = find(self, domain);
    if (self->top[-1].level < 0)
        self->top[-1].domain = domain;
    *self->top =
        (struct inject_entry){.domain = domain, .level = below != NULL ? below->level + 1 : 0};
    return self->top++;
}

const struct inject_entry *inject_thread_pop_slowly(const struct inject_domain *domain, bool *is_top)
{
    struct inject_thread *const self = &inject_thread;
    if (self->n_beyond > 0) { /* one of those for which there was no room */
        if (--self->n_beyond == 0 && self->top != NULL)
            self->top--;
        return NULL;
    }
    struct inject_entry *const found = self->top != NULL ? find(self, domain) : NULL;
    if (found == NULL)
        return NULL;
    const struct inject_entry taken = *found;
    struct inject_entry *const last = --self->top;
    *is_top = found == last;
    memmove(found, found + 1, (size_t)(last - found) * sizeof *found);
    *last = taken;
    return last;
}
