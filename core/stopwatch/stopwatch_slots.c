/*
 * Names. They decide, not sites: the slot of an id is that of the site which has its bare name and nothing else, so that
 * a measurement may start in one file and stop in another.
 */
#include <string.h>

#include "stopwatch/stopwatch_internal.h"

struct kymo__watch kymo__watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Memory on cache lines of its own, zeroed. It is freed by what comes back through `block`, or never. */
void *kymo__watch_calloc(size_t size, void **block)
{
    enum { LINE = 64 };
    char *const memory = kymo__calloc(1, size + LINE);
    if (block != NULL)
        *block = memory;
    return memory != NULL ? memory + (LINE - (uintptr_t)memory % LINE) % LINE : NULL;
}

/* Room for `id` in an array of pointers by id; new places are `empty`. */
bool kymo__watch_grow_by_id(void *array, size_t *n, kymo_id id, void *empty)
{
    size_t cap = *n;
    void **places;
    if (id < cap)
        return true;
    if (!kymo__grow(array, &cap, (size_t)id + 1, sizeof(void *)))
        return false;
    memcpy(&places, array, sizeof places);
    while (*n < cap)
        places[(*n)++] = empty;
    return true;
}

bool kymo__watch_slots_add(struct kymo__watch_slots *slots, struct kymo__watch_slot *slot)
{
    if (!kymo__grow(&slots->all, &slots->cap, slots->n + 1, sizeof(struct kymo__watch_slot *)))
        return false;
    slots->all[slots->n++] = slot;
    return true;
}

static struct kymo__watch_slot *slot_of_bare(kymo_id bare)
{
    struct kymo__watch *const watch = &kymo__watch;
    if (!kymo__watch_grow_by_id(&watch->by_id, &watch->n_by_id, bare, NULL))
        return NULL;
    if (watch->by_id[bare] != NULL)
        return watch->by_id[bare];
    void *block;
    struct kymo__watch_slot *const slot = kymo__watch_calloc(sizeof *slot, &block);
    if (slot == NULL || !kymo__watch_slots_add(&watch->slots, slot)) {
        kymo__free(block);
        return NULL;
    }
    slot->id = bare;
    return watch->by_id[bare] = slot;
}

kymo_id kymo__watch_bare_site(kymo_id id)
{
    size_t len;
    const char *const name = kymo_site_name(id, &len);
    return kymo_site_intern(name, len, NULL, 0, NULL, 0);
}

struct kymo__watch_slot *kymo__watch_slot_get(kymo_id id)
{
    const kymo_id bare = kymo__watch_bare_site(id);
    kymo__watch_lock();
    struct kymo__watch_slot *const slot = slot_of_bare(bare);
    kymo__watch_unlock();
    return slot;
}

uint64_t kymo__watch_total(const struct kymo__watch_slot *slot)
{
    uint64_t total = slot->gone.sketch.sum;
    for (const struct kymo__watch_cell *cell = slot->cells; cell != NULL; cell = cell->next_of_slot)
        if ((kymo__watch_mode_of(cell) & KYMO__WATCH_STALE) == 0)
            total += __atomic_load_n(&cell->sum.sketch.sum, __ATOMIC_RELAXED);
    return total;
}

bool kymo__watch_runs(const struct kymo__watch_slot *slot)
{
    if (!kymo_stopwatch_is_enabled())
        return false;
    for (const struct kymo__watch_cell *cell = slot->cells; cell != NULL; cell = cell->next_of_slot)
        if ((kymo__watch_mode_of(cell) & KYMO__WATCH_STALE) == 0 && kymo__watch_start_of(cell) != 0)
            return true;
    return false;
}

void kymo__watch_list(struct kymo__watch_slot *slot)
{
    if (!slot->is_listed)
        slot->is_listed = kymo__watch_slots_add(&kymo__watch.listed, slot);
}

void kymo__watch_mode_all(uint32_t clear, uint32_t set)
{
    for (size_t i = 0; i < kymo__watch.slots.n; i++)
        for (struct kymo__watch_cell *cell = kymo__watch.slots.all[i]->cells; cell != NULL;
             cell = cell->next_of_slot) {
            __atomic_fetch_and(&cell->mode, ~clear, __ATOMIC_RELAXED);
            __atomic_fetch_or(&cell->mode, set, __ATOMIC_RELAXED);
        }
}

void kymo__watch_mark_straddling(void)
{
    for (size_t i = 0; i < kymo__watch.slots.n; i++)
        for (struct kymo__watch_cell *cell = kymo__watch.slots.all[i]->cells; cell != NULL;
             cell = cell->next_of_slot)
            if (kymo__watch_start_of(cell) != 0)
                __atomic_fetch_or(&cell->mode, KYMO__WATCH_STRADDLES, __ATOMIC_RELAXED);
}

/* ---- forgetting ---- */

static void slot_forget(struct kymo__watch_slot *slot)
{
    kymo__watch_sum_clear(&slot->gone);
    kymo__watch_sum_clear(&slot->gpu);
    kymo__watch_periods_clear(&slot->periods);
    memset(slot->misuses, 0, sizeof slot->misuses);
    slot->gone_usage = (struct kymo__usage){0};
    slot->last_total = slot->n_gpu = 0;
    slot->n_gone = 0;
    slot->is_listed = false;
    slot->is_once = slot->once_runs = false;
    slot->once_start = slot->once_ticks = 0;
}

void kymo__watch_forget(void)
{
    struct kymo__watch *const watch = &kymo__watch;
    kymo__watch_mode_all(0, KYMO__WATCH_STALE);
    for (size_t i = 0; i < watch->slots.n; i++)
        slot_forget(watch->slots.all[i]);
    kymo__watch_periods_clear(&watch->whole);
    watch->listed.n = watch->once.n = 0;
    watch->n_measured = watch->n_lost = 0;
    watch->n_samples = 0;
}
