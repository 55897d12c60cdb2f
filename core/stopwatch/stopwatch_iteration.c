/*
 * The end of an iteration: by how much each name's sum grew since the last one. What does not grow is not touched; that a
 * name did not run in an iteration is known from the count of iterations, when somebody asks.
 */
#include <string.h>

#include "stopwatch/stopwatch_internal.h"

/* ---- periods ---- */

/* Twice the room, until there is enough for `index` or all there may be. Nothing has to move: it has not come round yet. */
static void series_grow(struct kymo__watch_periods *periods, uint64_t index)
{
    enum { FIRST = 64 };
    uint32_t cap = periods->cap;
    while (cap <= index && cap < KYMO__WATCH_SERIES)
        cap = cap == 0 ? FIRST : cap * 2;
    if (cap == periods->cap || periods->n_series > periods->cap)
        return; /* without memory for more it came round early */
    float *const grown = kymo__realloc(periods->series, cap * sizeof *grown);
    if (grown == NULL)
        return;
    periods->series = grown;
    periods->cap = cap;
}

/* Zeros for the iterations since the last in which it ran, as far as they are kept. */
static void series_put(struct kymo__watch_periods *periods, uint64_t index, float value)
{
    series_grow(periods, index);
    if (periods->cap == 0)
        return;
    uint64_t at = periods->n_series;
    if (index - at > periods->cap)
        at = index - periods->cap;
    for (; at < index; at++)
        periods->series[at & (periods->cap - 1)] = 0;
    periods->series[index & (periods->cap - 1)] = value;
    periods->n_series = index + 1;
}

void kymo__watch_periods_add(struct kymo__watch_periods *periods, uint64_t index, uint64_t value)
{
    if (!kymo__watch_sum_add(&periods->sum, value, 0))
        kymo__watch.n_lost++;
    series_put(periods, index, (float)value);
}

void kymo__watch_periods_clear(struct kymo__watch_periods *periods)
{
    kymo__watch_sum_clear(&periods->sum);
    kymo__free(periods->series);
    *periods = (struct kymo__watch_periods){0};
}

double kymo__watch_periods_at(const struct kymo__watch_periods *periods, uint64_t index)
{
    return index < periods->n_series ? (double)periods->series[index & (periods->cap - 1)] : 0;
}

uint64_t kymo__watch_series_first(const struct kymo__watch_periods *periods)
{
    const uint64_t n = kymo__watch.n_measured;
    const uint64_t kept = n > KYMO__WATCH_SERIES ? n - KYMO__WATCH_SERIES : 0;
    const uint64_t came_round =
        periods->n_series > periods->cap ? periods->n_series - periods->cap : 0;
    return KYMO__MAX(kept, came_round);
}

/* ---- the end of an iteration ---- */

/* The lock is held. */
static void add_iteration(const struct kymo__iteration *it)
{
    struct kymo__watch *const watch = &kymo__watch;
    const uint64_t index = watch->n_measured++;
    for (size_t i = 0; i < watch->listed.n; i++) {
        struct kymo__watch_slot *const slot = watch->listed.all[i];
        const uint64_t total = kymo__watch_total(slot), grown = total - slot->last_total;
        slot->last_total = total;
        if (grown != 0)
            kymo__watch_periods_add(&slot->periods, index, grown);
    }
    kymo__watch_periods_add(&watch->whole, index, it->duration_ns);
    watch->last_number = it->number;
    watch->n_samples += it->samples;
}

/* Say and count what still runs on this thread; true when something does. */
static bool tell_running(void)
{
    bool runs = false;
    for (const struct kymo__watch_cell *cell = kymo__watch_self.top; cell != NULL;
         cell = cell->outer) {
        if (kymo__watch_start_of(cell) == 0 ||
            (kymo__watch_mode_of(cell) & (KYMO__WATCH_STALE | KYMO__WATCH_WARMUP)))
            continue;
        runs = true;
        kymo__watch_misused(cell->slot->id, KYMO__WATCH_RUNS_ON);
    }
    return runs;
}

void kymo__watch_set_warmup(bool in_warmup)
{
    struct kymo__watch *const watch = &kymo__watch;
    kymo__watch_lock();
    const bool was_warmup = (watch->mode & KYMO__WATCH_WARMUP) != 0;
    if (in_warmup != was_warmup) {
        __atomic_store_n(&watch->measured_from, kymo__watch_ticks(), __ATOMIC_RELAXED);
        watch->mode ^= KYMO__WATCH_WARMUP;
        /* What runs is marked before it counts again, so that none of it counts from its start. */
        if (was_warmup)
            kymo__watch_mark_straddling();
        kymo__watch_mode_all(in_warmup ? 0 : KYMO__WATCH_WARMUP, in_warmup ? KYMO__WATCH_WARMUP : 0);
    }
    kymo__watch_unlock();
}

static void finished(const struct kymo__iteration *it)
{
    struct kymo__watch *const watch = &kymo__watch;
    struct kymo__watch_self *const self = &kymo__watch_self;
    if (!kymo_stopwatch_is_enabled())
        return;
    self->ran_on = tell_running();
    kymo__watch_gpu_collect();
    kymo__watch_lock();
    const bool is_measured = (watch->mode & KYMO__WATCH_WARMUP) == 0;
    if (is_measured)
        add_iteration(it);
    const uint64_t every = watch->options.print_every;
    const bool prints = is_measured && every != 0 && watch->n_measured % every == 0;
    kymo__watch_unlock();
    kymo__watch_set_warmup(it->next_is_warmup);
    if (prints)
        kymo__watch_print_by_itself();
}

const struct kymo__iteration_subscriber kymo__watch_subscriber = {
    .finished = finished, .warmup_set = kymo__watch_set_warmup};

kymo_status kymo_stopwatch_finish_iteration(double samples)
{
    return kymo_stopwatch_finish_iteration_by("kymo_stopwatch_finish_iteration", samples);
}

kymo_status kymo_stopwatch_finish_iteration_by(kymo_driver driver, double samples)
{
    struct kymo__watch_self *const self = &kymo__watch_self;
    if (!kymo_stopwatch_is_enabled())
        return KYMO_OK;
    self->ran_on = false;
    kymo_iteration_finish_by(driver, samples);
    return self->ran_on ? KYMO_ESTATE : KYMO_OK; /* the sentence was left by tell_running() */
}

uint64_t kymo_stopwatch_n_measured(void)
{
    kymo__watch_lock();
    const uint64_t n = kymo__watch.n_measured;
    kymo__watch_unlock();
    return n;
}
