/*
 * What is measured besides time: what a name used of the machine, and how long the GPU worked. Both cost microseconds, so
 * that the lock does not matter here; the quick way never comes by.
 */
#include <string.h>

#include "cuda/cuda_internal.h"
#include "stopwatch/stopwatch_internal.h"

static struct kymo__watch_extra *extra_get(struct kymo__watch_cell *cell)
{
    if (cell->extra == NULL) {
        struct kymo__watch_extra *const extra = kymo__calloc(1, sizeof *extra);
        kymo__watch_lock(); /* whoever reads the sums looks here */
        cell->extra = extra;
        kymo__watch_unlock();
    }
    return cell->extra;
}

static void gpu_begin(struct kymo__watch_cell *cell)
{
    void *stream;
    struct kymo__watch_extra *const extra = cell->extra;
    if (extra->span != 0)
        kymo__gpu_cancel(extra->span);
    extra->span = kymo__gpu_stream(&stream) ? kymo__gpu_begin(stream, cell->slot->id) : 0;
}

/* The GPU's part comes last before the clock is read, so that it has the least of ours in it. */
void kymo__watch_extra_begin(struct kymo__watch_cell *cell, uint32_t mode)
{
    struct kymo__watch_extra *const extra = extra_get(cell);
    if (extra == NULL)
        return; /* the time is measured all the same */
    extra->usage_now =
        mode & KYMO__WATCH_USAGE ? __atomic_load_n(&cell->slot->usage, __ATOMIC_RELAXED) : 0;
    if (extra->usage_now != 0)
        kymo__usage_begin(extra->usage_now, &extra->usage_begin);
    if (mode & KYMO__WATCH_EVENTS)
        gpu_begin(cell);
}

static void gpu_end(struct kymo__watch_cell *cell)
{
    void *stream;
    struct kymo__watch_extra *const extra = cell->extra;
    const kymo__gpu_span span = extra->span;
    extra->span = 0;
    if (!kymo__gpu_stream(&stream)) {
        kymo__gpu_cancel(span);
        return;
    }
    kymo__gpu_end(span, stream);
    kymo__watch_lock();
    cell->slot->n_gpu++;
    kymo__watch_unlock();
}

void kymo__watch_extra_end(struct kymo__watch_cell *cell)
{
    struct kymo__watch_extra *const extra = cell->extra;
    if (extra == NULL)
        return;
    if (extra->span != 0)
        gpu_end(cell);
    if (extra->usage_now == 0)
        return;
    struct kymo__usage end = {0};
    kymo__usage_end(extra->usage_now, &end);
    kymo__watch_lock();
    kymo__usage_add(&extra->usage, &extra->usage_begin, &end);
    kymo__watch_unlock();
    extra->usage_now = 0;
}

void kymo__watch_extra_drop(struct kymo__watch_cell *cell)
{
    struct kymo__watch_extra *const extra = cell->extra;
    if (extra == NULL)
        return;
    kymo__gpu_cancel(extra->span);
    extra->span = 0;
    extra->usage_now = 0;
}

/* ---- what is asked for ---- */

kymo_status kymo_stopwatch_measure_usage(kymo_id id, uint32_t usage)
{
    if (!kymo_stopwatch_is_enabled())
        return KYMO_OK;
    const kymo_status st = kymo__usage_check(usage);
    if (st == KYMO_EUNAVAILABLE)
        kymo__say("%s", kymo_last_error());
    if (st != KYMO_OK)
        return st;
    struct kymo__watch_slot *const slot = kymo__watch_slot_get(id);
    if (slot == NULL)
        return kymo__watch_no_memory(id);
    kymo__watch_lock();
    __atomic_store_n(&slot->usage, usage, __ATOMIC_RELAXED);
    slot->usage_ever |= usage;
    kymo__watch_list(slot);
    for (struct kymo__watch_cell *cell = slot->cells; cell != NULL; cell = cell->next_of_slot) {
        if (usage != 0)
            __atomic_fetch_or(&cell->mode, KYMO__WATCH_USAGE, __ATOMIC_RELAXED);
        else
            __atomic_fetch_and(&cell->mode, ~(uint32_t)KYMO__WATCH_USAGE, __ATOMIC_RELAXED);
    }
    kymo__watch_unlock();
    return KYMO_OK;
}

/* ---- results ---- */

static void take_gpu_time(void *ctx, uint64_t tag, uint64_t elapsed_ns)
{
    struct kymo__watch *const watch = ctx;
    kymo__watch_lock();
    struct kymo__watch_slot *const slot = tag < watch->n_by_id ? watch->by_id[tag] : NULL;
    if (slot != NULL && !kymo__watch_sum_add(&slot->gpu, elapsed_ns, 0))
        watch->n_lost++;
    kymo__watch_unlock();
}

void kymo__watch_gpu_collect(void)
{
    if (__atomic_load_n(&kymo__watch.options.gpu, __ATOMIC_RELAXED) == KYMO_GPU_EVENTS)
        kymo__gpu_collect(take_gpu_time, &kymo__watch);
}

void kymo__watch_usage_of(const struct kymo__watch_slot *slot, struct kymo__usage *out)
{
    *out = slot->gone_usage;
    for (const struct kymo__watch_cell *cell = slot->cells; cell != NULL; cell = cell->next_of_slot)
        if (cell->extra != NULL && (kymo__watch_mode_of(cell) & KYMO__WATCH_STALE) == 0)
            kymo__usage_merge(out, &cell->extra->usage);
}
