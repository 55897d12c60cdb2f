/*
 * Names. The slot of an id is that of the site with only its name: start and stop may be in different files.
 */
#include <string.h>

#include "instrument/stopwatch/internal.h"

struct marey__stopwatch_state marey__stopwatch_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

void *marey__stopwatch_calloc(size_t size, void **block)
{
    enum { LINE = 64 };
    char *const memory = marey__calloc(1, size + LINE);
    if (block != NULL)
        *block = memory;
    return memory != NULL ? memory + (LINE - (uintptr_t)memory % LINE) % LINE : NULL;
}

bool marey__stopwatch_grow_by_id(void *array, size_t *n, marey_id id, void *empty)
{
    size_t cap = *n;
    void **places;
    if (id < cap)
        return true;
    if (!marey__grow(array, &cap, (size_t)id + 1, sizeof(void *)))
        return false;
    memcpy(&places, array, sizeof places);
    while (*n < cap)
        places[(*n)++] = empty;
    return true;
}

bool marey__stopwatch_slots_add(struct marey__stopwatch_slots *slots,
                                struct marey__stopwatch_slot *slot)
{
    return MAREY__PUSH(slots->all, slots->n, slots->cap, slot);
}

static struct marey__stopwatch_slot *slot_of_bare(marey_id bare)
{
    struct marey__stopwatch_state *const watch = &marey__stopwatch_state;
    if (!marey__stopwatch_grow_by_id(&watch->by_id, &watch->n_by_id, bare, NULL))
        return NULL;
    if (watch->by_id[bare] != NULL)
        return watch->by_id[bare];
    void *block;
    struct marey__stopwatch_slot *const slot = marey__stopwatch_calloc(sizeof *slot, &block);
    if (slot == NULL || !marey__stopwatch_slots_add(&watch->slots, slot)) {
        marey__free(block);
        return NULL;
    }
    slot->id = bare;
    return watch->by_id[bare] = slot;
}

marey_id marey__stopwatch_bare_site(marey_id id)
{
    size_t len;
    const char *const name = marey_site_name(id, &len);
    return marey_site_intern(name, len, NULL, 0, NULL, 0);
}

struct marey__stopwatch_slot *marey__stopwatch_slot_get(marey_id id)
{
    const marey_id bare = marey__stopwatch_bare_site(id);
    MAREY__STOPWATCH_HOLD();
    return slot_of_bare(bare);
}

uint64_t marey__stopwatch_total(const struct marey__stopwatch_slot *slot)
{
    uint64_t total = slot->gone.sketch.sum;
    for (const struct marey__stopwatch_cell *cell = slot->cells; cell != NULL;
         cell = cell->next_of_slot)
        if ((marey__stopwatch_mode_of(cell) & MAREY__STOPWATCH_STALE) == 0)
            total += __atomic_load_n(&cell->sum.sketch.sum, __ATOMIC_RELAXED);
    return total;
}

bool marey__stopwatch_runs(const struct marey__stopwatch_slot *slot)
{
    if (!marey_stopwatch_is_enabled())
        return false;
    for (const struct marey__stopwatch_cell *cell = slot->cells; cell != NULL;
         cell = cell->next_of_slot)
        if ((marey__stopwatch_mode_of(cell) & MAREY__STOPWATCH_STALE) == 0 &&
            marey__stopwatch_start_of(cell) != 0)
            return true;
    return false;
}

void marey__stopwatch_list(struct marey__stopwatch_slot *slot)
{
    if (!slot->is_listed)
        slot->is_listed = marey__stopwatch_slots_add(&marey__stopwatch_state.listed, slot);
}

void marey__stopwatch_mode_all(uint32_t clear, uint32_t set)
{
    for (size_t i = 0; i < marey__stopwatch_state.slots.n; i++)
        for (struct marey__stopwatch_cell *cell = marey__stopwatch_state.slots.all[i]->cells;
             cell != NULL; cell = cell->next_of_slot) {
            __atomic_fetch_and(&cell->mode, ~clear, __ATOMIC_RELAXED);
            __atomic_fetch_or(&cell->mode, set, __ATOMIC_RELAXED);
        }
}

void marey__stopwatch_mark_straddling(void)
{
    for (size_t i = 0; i < marey__stopwatch_state.slots.n; i++)
        for (struct marey__stopwatch_cell *cell = marey__stopwatch_state.slots.all[i]->cells;
             cell != NULL; cell = cell->next_of_slot)
            if (marey__stopwatch_start_of(cell) != 0)
                __atomic_fetch_or(&cell->mode, MAREY__STOPWATCH_STRADDLES, __ATOMIC_RELAXED);
}

/* ---- reset ---- */

static void slot_forget(struct marey__stopwatch_slot *slot)
{
    marey__stopwatch_sum_clear(&slot->gone);
    marey__stopwatch_sum_clear(&slot->gpu);
    marey__stopwatch_periods_clear(&slot->periods);
    memset(slot->misuses, 0, sizeof slot->misuses);
    slot->gone_usage = (struct marey__usage){0};
    slot->last_total = slot->n_gpu = 0;
    slot->n_gone = 0;
    slot->is_listed = false;
    slot->is_once = slot->once_runs = false;
    slot->once_start = slot->once_ticks = 0;
}

void marey__stopwatch_forget(void)
{
    struct marey__stopwatch_state *const watch = &marey__stopwatch_state;
    marey__stopwatch_mode_all(0, MAREY__STOPWATCH_STALE);
    for (size_t i = 0; i < watch->slots.n; i++)
        slot_forget(watch->slots.all[i]);
    marey__stopwatch_periods_clear(&watch->whole);
    watch->listed.n = watch->once.n = 0;
    watch->n_measured = watch->n_lost = 0;
    watch->n_samples = 0;
}
