/*
 * The end of an iteration: the growth of each name's sum. Names that did not run are not touched, as their count shows.
 */
#include <string.h>

#include "instrument/stopwatch/internal.h"

/* ---- periods ---- */

/* Doubles the room until it suffices for `index` or reaches the limit. Nothing moves: the ring has not wrapped yet. */
static void series_grow(struct marey__stopwatch_periods *periods, uint64_t index)
{
    enum { FIRST = 64 };
    uint32_t cap = periods->cap;
    while (cap <= index && cap < MAREY__STOPWATCH_SERIES)
        cap = cap == 0 ? FIRST : cap * 2;
    if (cap == periods->cap || periods->n_series > periods->cap)
        return; /* out of memory: the ring wrapped early */
    float *const grown = marey__realloc(periods->series, cap * sizeof *grown);
    if (grown == NULL)
        return;
    periods->series = grown;
    periods->cap = cap;
}

/* Adds zeros for iterations in which it did not run, as far as they are stored. */
static void series_put(struct marey__stopwatch_periods *periods, uint64_t index, float value)
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

void marey__stopwatch_periods_add(struct marey__stopwatch_periods *periods, uint64_t index,
                                  uint64_t value)
{
    if (!marey__stopwatch_sum_add(&periods->sum, value, 0))
        marey__stopwatch_state.n_lost++;
    series_put(periods, index, (float)value);
}

void marey__stopwatch_periods_clear(struct marey__stopwatch_periods *periods)
{
    marey__stopwatch_sum_clear(&periods->sum);
    marey__free(periods->series);
    *periods = (struct marey__stopwatch_periods){0};
}

double marey__stopwatch_periods_at(const struct marey__stopwatch_periods *periods, uint64_t index)
{
    return index < periods->n_series ? (double)periods->series[index & (periods->cap - 1)] : 0;
}

uint64_t marey__stopwatch_series_first(const struct marey__stopwatch_periods *periods)
{
    const uint64_t n = marey__stopwatch_state.n_measured;
    const uint64_t kept = n > MAREY__STOPWATCH_SERIES ? n - MAREY__STOPWATCH_SERIES : 0;
    const uint64_t came_round =
        periods->n_series > periods->cap ? periods->n_series - periods->cap : 0;
    return MAREY__MAX(kept, came_round);
}

/* ---- the end of an iteration ---- */

/* Caller holds the lock. */
static void add_iteration(const struct marey__iteration_event *it)
{
    struct marey__stopwatch_state *const watch = &marey__stopwatch_state;
    const uint64_t index = watch->n_measured++;
    for (size_t i = 0; i < watch->listed.n; i++) {
        struct marey__stopwatch_slot *const slot = watch->listed.all[i];
        const uint64_t total = marey__stopwatch_total(slot), grown = total - slot->last_total;
        slot->last_total = total;
        if (grown != 0)
            marey__stopwatch_periods_add(&slot->periods, index, grown);
    }
    marey__stopwatch_periods_add(&watch->whole, index, it->duration_ns);
    watch->last_number = it->number;
    watch->n_samples += it->samples;
}

/* Reports and counts measurements still running on this thread; true if there are any. */
static bool tell_running(void)
{
    bool runs = false;
    for (const struct marey__stopwatch_cell *cell = marey__stopwatch_self.top; cell != NULL;
         cell = cell->outer) {
        if (marey__stopwatch_start_of(cell) == 0 ||
            (marey__stopwatch_mode_of(cell) & (MAREY__STOPWATCH_STALE | MAREY__STOPWATCH_WARMUP)))
            continue;
        runs = true;
        marey__stopwatch_misused(cell->slot->id, MAREY__STOPWATCH_RUNS_ON);
    }
    return runs;
}

void marey__stopwatch_set_warmup(bool in_warmup)
{
    struct marey__stopwatch_state *const watch = &marey__stopwatch_state;
    MAREY__STOPWATCH_HOLD();
    if (in_warmup == ((watch->mode & MAREY__STOPWATCH_WARMUP) != 0))
        return;
    __atomic_store_n(&watch->measured_from, marey__stopwatch_ticks(), __ATOMIC_RELAXED);
    watch->mode ^= MAREY__STOPWATCH_WARMUP;
    /* Running ones are marked before they count again, so that none counts from its start. */
    if (!in_warmup)
        marey__stopwatch_mark_straddling();
    marey__stopwatch_mode_all(in_warmup ? 0 : MAREY__STOPWATCH_WARMUP,
                              in_warmup ? MAREY__STOPWATCH_WARMUP : 0);
}

static void finished(const struct marey__iteration_event *it)
{
    struct marey__stopwatch_state *const watch = &marey__stopwatch_state;
    struct marey__stopwatch_self *const self = &marey__stopwatch_self;
    if (!marey_stopwatch_is_enabled())
        return;
    self->ran_on = tell_running();
    marey__stopwatch_gpu_collect();
    marey__stopwatch_lock();
    const bool is_measured = (watch->mode & MAREY__STOPWATCH_WARMUP) == 0;
    if (is_measured)
        add_iteration(it);
    const uint64_t every = watch->options.print_every;
    const bool prints = is_measured && every != 0 && watch->n_measured % every == 0;
    marey__stopwatch_unlock();
    marey__stopwatch_set_warmup(it->next_is_warmup);
    if (prints)
        marey__stopwatch_print_by_itself();
}

const struct marey__iteration_subscriber marey__stopwatch_subscriber = {
    .finished = finished, .warmup_set = marey__stopwatch_set_warmup};

marey_status marey_stopwatch_finish_iteration(double samples)
{
    return marey_stopwatch_finish_iteration_by("marey_stopwatch_finish_iteration", samples);
}

marey_status marey_stopwatch_finish_iteration_by(marey_driver driver, double samples)
{
    struct marey__stopwatch_self *const self = &marey__stopwatch_self;
    if (!marey_stopwatch_is_enabled())
        return MAREY_OK;
    self->ran_on = false;
    marey_iteration_finish_by(driver, samples);
    return self->ran_on ? MAREY_ESTATE : MAREY_OK; /* tell_running() set the message */
}

uint64_t marey_stopwatch_n_measured(void)
{
    MAREY__STOPWATCH_HOLD();
    return marey__stopwatch_state.n_measured;
}
