/* Measurements besides time: system usage, GPU time. Both cost microseconds, so the lock does not matter. */
#include <string.h>

#include "instrument/cuda/internal.h"
#include "instrument/stopwatch/internal.h"

static struct marey__stopwatch_extra *extra_get(struct marey__stopwatch_cell *cell)
{
    if (cell->extra == NULL) {
        struct marey__stopwatch_extra *const extra = marey__calloc(1, sizeof *extra);
        MAREY__STOPWATCH_HOLD(); /* readers of the sums read this */
        cell->extra = extra;
    }
    return cell->extra;
}

static void gpu_begin(struct marey__stopwatch_cell *cell)
{
    void *stream;
    struct marey__stopwatch_extra *const extra = cell->extra;
    if (extra->span != 0)
        marey__gpu_cancel(extra->span);
    extra->span = marey__gpu_stream(&stream) ? marey__gpu_begin(stream, cell->slot->id) : 0;
}

/* The GPU event comes last before the clock read, so that it includes the least of our work. */
void marey__stopwatch_extra_begin(struct marey__stopwatch_cell *cell, uint32_t mode)
{
    struct marey__stopwatch_extra *const extra = extra_get(cell);
    if (extra == NULL)
        return; /* time is still measured */
    extra->usage_now =
        mode & MAREY__STOPWATCH_USAGE ? __atomic_load_n(&cell->slot->usage, __ATOMIC_RELAXED) : 0;
    if (extra->usage_now != 0)
        marey__usage_begin(extra->usage_now, &extra->usage_begin);
    if (mode & MAREY__STOPWATCH_EVENTS)
        gpu_begin(cell);
}

static void gpu_end(struct marey__stopwatch_cell *cell)
{
    void *stream;
    struct marey__stopwatch_extra *const extra = cell->extra;
    const marey__gpu_span span = extra->span;
    extra->span = 0;
    if (!marey__gpu_stream(&stream)) {
        marey__gpu_cancel(span);
        return;
    }
    marey__gpu_end(span, stream);
    MAREY__STOPWATCH_HOLD();
    cell->slot->n_gpu++;
}

void marey__stopwatch_extra_end(struct marey__stopwatch_cell *cell)
{
    struct marey__stopwatch_extra *const extra = cell->extra;
    if (extra == NULL)
        return;
    if (extra->span != 0)
        gpu_end(cell);
    if (extra->usage_now == 0)
        return;
    struct marey__usage end = {0};
    marey__usage_end(extra->usage_now, &end);
    MAREY__STOPWATCH_HOLD();
    marey__usage_add(&extra->usage, &extra->usage_begin, &end);
    extra->usage_now = 0;
}

void marey__stopwatch_extra_drop(struct marey__stopwatch_cell *cell)
{
    struct marey__stopwatch_extra *const extra = cell->extra;
    if (extra == NULL)
        return;
    marey__gpu_cancel(extra->span);
    extra->span = 0;
    extra->usage_now = 0;
}

/* ---- requested usage ---- */

marey_status marey_stopwatch_measure_usage(marey_id id, uint32_t usage)
{
    if (!marey_stopwatch_is_enabled())
        return MAREY_OK;
    const marey_status st = marey__usage_check(usage);
    if (st == MAREY_EUNAVAILABLE)
        marey__say("%s", marey_last_error());
    if (st != MAREY_OK)
        return st;
    struct marey__stopwatch_slot *const slot = marey__stopwatch_slot_get(id);
    if (slot == NULL)
        return marey__stopwatch_no_memory(id);
    MAREY__STOPWATCH_HOLD();
    __atomic_store_n(&slot->usage, usage, __ATOMIC_RELAXED);
    slot->usage_ever |= usage;
    marey__stopwatch_list(slot);
    for (struct marey__stopwatch_cell *cell = slot->cells; cell != NULL; cell = cell->next_of_slot) {
        if (usage != 0)
            __atomic_fetch_or(&cell->mode, MAREY__STOPWATCH_USAGE, __ATOMIC_RELAXED);
        else
            __atomic_fetch_and(&cell->mode, ~(uint32_t)MAREY__STOPWATCH_USAGE, __ATOMIC_RELAXED);
    }
    return MAREY_OK;
}

/* ---- results ---- */

static void take_gpu_time(void *ctx, uint64_t tag, uint64_t elapsed_ns)
{
    struct marey__stopwatch_state *const watch = ctx;
    MAREY__STOPWATCH_HOLD();
    struct marey__stopwatch_slot *const slot = tag < watch->n_by_id ? watch->by_id[tag] : NULL;
    if (slot != NULL && !marey__stopwatch_sum_add(&slot->gpu, elapsed_ns, 0))
        watch->n_lost++;
}

void marey__stopwatch_gpu_collect(void)
{
    if (__atomic_load_n(&marey__stopwatch_state.options.gpu, __ATOMIC_RELAXED) == MAREY_GPU_EVENTS)
        marey__gpu_collect(take_gpu_time, &marey__stopwatch_state);
}

void marey__stopwatch_usage_of(const struct marey__stopwatch_slot *slot, struct marey__usage *out)
{
    *out = slot->gone_usage;
    for (const struct marey__stopwatch_cell *cell = slot->cells; cell != NULL;
         cell = cell->next_of_slot)
        if (cell->extra != NULL && (marey__stopwatch_mode_of(cell) & MAREY__STOPWATCH_STALE) == 0)
            marey__usage_merge(out, &cell->extra->usage);
}
