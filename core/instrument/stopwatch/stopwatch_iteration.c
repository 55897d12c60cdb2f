/*
 * The end of an iteration: by how much each name's sum grew since the last one. What does not grow is not touched; that a
 * name did not run in an iteration is known from the count of iterations, when somebody asks.
 */
#include <string.h>

#include "instrument/stopwatch/stopwatch_internal.h"

/* ---- periods ---- */

/* Twice the room, until there is enough for `index` or all there may be. Nothing has to move: it has not come round yet. */
static void series_grow(struct marey__watch_periods *periods, uint64_t index)
{
    enum { FIRST = 64 };
    uint32_t cap = periods->cap;
    while (cap <= index && cap < MAREY__WATCH_SERIES)
        cap = cap == 0 ? FIRST : cap * 2;
    if (cap == periods->cap || periods->n_series > periods->cap)
        return; /* without memory for more it came round early */
    float *const grown = marey__realloc(periods->series, cap * sizeof *grown);
    if (grown == NULL)
        return;
    periods->series = grown;
    periods->cap = cap;
}

/* Zeros for the iterations since the last in which it ran, as far as they are kept. */
static void series_put(struct marey__watch_periods *periods, uint64_t index, float value)
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

void marey__watch_periods_add(struct marey__watch_periods *periods, uint64_t index, uint64_t value)
{
    if (!marey__watch_sum_add(&periods->sum, value, 0))
        marey__watch.n_lost++;
    series_put(periods, index, (float)value);
}

void marey__watch_periods_clear(struct marey__watch_periods *periods)
{
    marey__watch_sum_clear(&periods->sum);
    marey__free(periods->series);
    *periods = (struct marey__watch_periods){0};
}

double marey__watch_periods_at(const struct marey__watch_periods *periods, uint64_t index)
{
    return index < periods->n_series ? (double)periods->series[index & (periods->cap - 1)] : 0;
}

uint64_t marey__watch_series_first(const struct marey__watch_periods *periods)
{
    const uint64_t n = marey__watch.n_measured;
    const uint64_t kept = n > MAREY__WATCH_SERIES ? n - MAREY__WATCH_SERIES : 0;
    const uint64_t came_round =
        periods->n_series > periods->cap ? periods->n_series - periods->cap : 0;
    return MAREY__MAX(kept, came_round);
}

/* ---- the end of an iteration ---- */

/* The lock is held. */
static void add_iteration(const struct marey__iteration *it)
{
    struct marey__watch *const watch = &marey__watch;
    const uint64_t index = watch->n_measured++;
    for (size_t i = 0; i < watch->listed.n; i++) {
        struct marey__watch_slot *const slot = watch->listed.all[i];
        const uint64_t total = marey__watch_total(slot), grown = total - slot->last_total;
        slot->last_total = total;
        if (grown != 0)
            marey__watch_periods_add(&slot->periods, index, grown);
    }
    marey__watch_periods_add(&watch->whole, index, it->duration_ns);
    watch->last_number = it->number;
    watch->n_samples += it->samples;
}

/* Say and count what still runs on this thread; true when something does. */
static bool tell_running(void)
{
    bool runs = false;
    for (const struct marey__watch_cell *cell = marey__watch_self.top; cell != NULL;
         cell = cell->outer) {
        if (marey__watch_start_of(cell) == 0 ||
            (marey__watch_mode_of(cell) & (MAREY__WATCH_STALE | MAREY__WATCH_WARMUP)))
            continue;
        runs = true;
        marey__watch_misused(cell->slot->id, MAREY__WATCH_RUNS_ON);
    }
    return runs;
}

void marey__watch_set_warmup(bool in_warmup)
{
    struct marey__watch *const watch = &marey__watch;
    marey__watch_lock();
    const bool was_warmup = (watch->mode & MAREY__WATCH_WARMUP) != 0;
    if (in_warmup != was_warmup) {
        __atomic_store_n(&watch->measured_from, marey__watch_ticks(), __ATOMIC_RELAXED);
        watch->mode ^= MAREY__WATCH_WARMUP;
        /* What runs is marked before it counts again, so that none of it counts from its start. */
        if (was_warmup)
            marey__watch_mark_straddling();
        marey__watch_mode_all(in_warmup ? 0 : MAREY__WATCH_WARMUP,
                              in_warmup ? MAREY__WATCH_WARMUP : 0);
    }
    marey__watch_unlock();
}

static void finished(const struct marey__iteration *it)
{
    struct marey__watch *const watch = &marey__watch;
    struct marey__watch_self *const self = &marey__watch_self;
    if (!marey_stopwatch_is_enabled())
        return;
    self->ran_on = tell_running();
    marey__watch_gpu_collect();
    marey__watch_lock();
    const bool is_measured = (watch->mode & MAREY__WATCH_WARMUP) == 0;
    if (is_measured)
        add_iteration(it);
    const uint64_t every = watch->options.print_every;
    const bool prints = is_measured && every != 0 && watch->n_measured % every == 0;
    marey__watch_unlock();
    marey__watch_set_warmup(it->next_is_warmup);
    if (prints)
        marey__watch_print_by_itself();
}

const struct marey__iteration_subscriber marey__watch_subscriber = {
    .finished = finished, .warmup_set = marey__watch_set_warmup};

marey_status marey_stopwatch_finish_iteration(double samples)
{
    return marey_stopwatch_finish_iteration_by("marey_stopwatch_finish_iteration", samples);
}

marey_status marey_stopwatch_finish_iteration_by(marey_driver driver, double samples)
{
    struct marey__watch_self *const self = &marey__watch_self;
    if (!marey_stopwatch_is_enabled())
        return MAREY_OK;
    self->ran_on = false;
    marey_iteration_finish_by(driver, samples);
    return self->ran_on ? MAREY_ESTATE : MAREY_OK; /* the sentence was left by tell_running() */
}

uint64_t marey_stopwatch_n_measured(void)
{
    marey__watch_lock();
    const uint64_t n = marey__watch.n_measured;
    marey__watch_unlock();
    return n;
}
