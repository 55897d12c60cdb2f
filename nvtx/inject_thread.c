/*
 * What a thread has pushed and not popped. NVTX has a stack for each domain, and they need not nest with one another:
 * entries of all domains lie in one array, in the order in which they were pushed, and a pop takes the last of its own.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "inject.h"

enum { FIRST_ENTRIES = 64, MAX_ENTRIES = 1 << 20 };

__thread struct inject_thread inject_thread;

/* On top while more was pushed than there is room for. */
static const struct inject_domain beyond;

static pthread_key_t at_exit;
static bool has_key; /* stands still once loaded */

static void thread_exits(void *entries)
{
    struct inject_recent *const recent = inject_thread.recent;
    inject_thread = (struct inject_thread){0}; /* another destructor may push: it begins anew */
    free(entries);
    free(recent);
}

__attribute__((constructor)) static void load(void)
{
    has_key = pthread_key_create(&at_exit, thread_exits) == 0;
}

/* Place for twice as many; one is kept for `beyond`. False at the limit or without memory. */
static bool grow(struct inject_thread *self)
{
    const size_t n = self->entries != NULL ? (size_t)(self->top - self->entries) : 0;
    const size_t cap = n > 0 ? (size_t)(self->limit - self->entries) * 2 + 1 : FIRST_ENTRIES;
    if (cap > MAX_ENTRIES)
        return false;
    if (self->recent == NULL && (self->recent = calloc(INJECT_N_RECENT, sizeof *self->recent)) == NULL)
        return false;
    struct inject_entry *const entries = realloc(self->entries, cap * sizeof *entries);
    if (entries == NULL)
        return false;
    if (n == 0)
        entries[0] = (struct inject_entry){.level = -1};
    self->entries = entries;
    self->top = entries + (n > 0 ? n : 1);
    self->limit = entries + cap - 1;
    /* Without a key they are left behind at the thread's end. */
    if (has_key)
        pthread_setspecific(at_exit, entries);
    return true;
}

void inject_thread_after_fork(void)
{
    for (struct inject_entry *entry = inject_thread.entries; entry != inject_thread.top; entry++)
        entry->id = 0;
}

/* The last entry of `domain`; NULL when there is none. */
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
    if (self->top - self->entries == 1)
        self->entries[0].domain = domain;
    *self->top =
        (struct inject_entry){.domain = domain, .level = below != NULL ? below->level + 1 : 0};
    return self->top++;
}

/* One of those for which there was no room. */
static void pop_beyond(struct inject_thread *self)
{
    if (--self->n_beyond == 0 && self->top != NULL)
        self->top--;
}

const struct inject_entry *inject_thread_pop_slowly(const struct inject_domain *domain, bool *is_top)
{
    struct inject_thread *const self = &inject_thread;
    if (self->n_beyond > 0) {
        pop_beyond(self);
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
