/* Rows of the tables of results. The lock is held; `tick_ns` is what a tick is worth. */
#include <string.h>

#include "instrument/stopwatch/internal.h"

static void put_name(marey_table *table, const struct marey__stopwatch_slot *slot)
{
    size_t len;
    const char *const name = marey_site_name(slot->id, &len);
    marey_table_text(table, name, len);
}

static void put_ns(marey_table *table, double ns)
{
    marey_table_u64(table, (uint64_t)(ns + 0.5));
}

/* The columns of STATS_COLUMNS. Of nothing there is no mean and no smallest. */
static void put_stats(marey_table *table, const struct marey__stopwatch_stats *s)
{
    put_ns(table, s->total);
    if (s->count == 0) {
        for (int i = 0; i < 7; i++)
            marey_table_null(table);
        return;
    }
    marey_table_f64(table, s->mean);
    marey_table_f64(table, s->std);
    put_ns(table, s->min);
    put_ns(table, s->p50);
    put_ns(table, s->p90);
    put_ns(table, s->p99);
    put_ns(table, s->max);
}

bool marey__stopwatch_sum_of_threads(const struct marey__stopwatch_slot *slot,
                                     struct marey__stopwatch_sum *sum, uint64_t *n_threads)
{
    bool ok = marey__stopwatch_sum_merge(sum, &slot->gone);
    *n_threads = slot->n_gone;
    for (const struct marey__stopwatch_cell *cell = slot->cells; cell != NULL;
         cell = cell->next_of_slot) {
        if (marey__stopwatch_mode_of(cell) & MAREY__WATCH_STALE)
            continue;
        *n_threads += __atomic_load_n(&cell->sum.sketch.count, __ATOMIC_RELAXED) != 0;
        ok = ok && marey__stopwatch_cell_merge(sum, cell);
    }
    return ok;
}

marey_status marey__stopwatch_put_intervals(marey_table *table, double tick_ns)
{
    for (size_t i = 0; i < marey__stopwatch_state.listed.n; i++) {
        const struct marey__stopwatch_slot *const slot = marey__stopwatch_state.listed.all[i];
        struct marey__stopwatch_sum sum = {0};
        struct marey__stopwatch_stats stats;
        uint64_t n_threads;
        const bool ok = marey__stopwatch_sum_of_threads(slot, &sum, &n_threads);
        marey__stopwatch_stats_of(&sum, 0, tick_ns, &stats);
        marey__stopwatch_sum_clear(&sum);
        MAREY__TRY_MEMORY(ok);
        put_name(table, slot);
        marey_table_u64(table, n_threads);
        marey_table_u64(table, stats.count);
        put_stats(table, &stats);
        put_ns(table, stats.self);
        marey_table_bool(table, marey__stopwatch_runs(slot));
    }
    return MAREY_OK;
}

/* Nothing where it was not asked for. */
static void put_processors(marey_table *table, bool is_measured, uint64_t cpu_ns, uint64_t wall_ns)
{
    if (is_measured && wall_ns > 0)
        marey_table_f64(table, marey__usage_processors(cpu_ns, wall_ns));
    else
        marey_table_null(table);
}

static void put_thread_row(marey_table *table, const struct marey__stopwatch_slot *slot,
                           const struct marey__stopwatch_thread *thread,
                           const struct marey__stopwatch_sum *sum, const struct marey__usage *usage,
                           double tick_ns)
{
    static const char gone[] = "(ended threads)";
    struct marey__stopwatch_stats stats;
    marey__stopwatch_stats_of(sum, 0, tick_ns, &stats);
    put_name(table, slot);
    if (thread != NULL) {
        marey_table_text(table, thread->name, strlen(thread->name));
        marey_table_i64(table, thread->tid);
    } else {
        marey_table_text(table, gone, strlen(gone));
        marey_table_null(table);
    }
    marey_table_u64(table, stats.count);
    put_stats(table, &stats);
    put_ns(table, stats.self);
    put_processors(table, slot->usage_ever & MAREY_USAGE_THREAD_CPU, usage->thread_cpu_ns,
                   usage->wall_ns);
}

static marey_status put_threads_of(marey_table *table, const struct marey__stopwatch_slot *slot,
                                   double tick_ns)
{
    static const struct marey__usage none;
    for (const struct marey__stopwatch_cell *cell = slot->cells; cell != NULL;
         cell = cell->next_of_slot) {
        struct marey__stopwatch_sum sum = {0};
        if (marey__stopwatch_mode_of(cell) & MAREY__WATCH_STALE)
            continue;
        const bool ok = marey__stopwatch_cell_merge(&sum, cell);
        if (ok)
            put_thread_row(table, slot, cell->thread, &sum,
                           cell->extra != NULL ? &cell->extra->usage : &none, tick_ns);
        marey__stopwatch_sum_clear(&sum);
        MAREY__TRY_MEMORY(ok);
    }
    if (slot->n_gone != 0)
        put_thread_row(table, slot, NULL, &slot->gone, &slot->gone_usage, tick_ns);
    return MAREY_OK;
}

marey_status marey__stopwatch_put_threads(marey_table *table, double tick_ns)
{
    for (size_t i = 0; i < marey__stopwatch_state.listed.n; i++)
        MAREY_TRY(put_threads_of(table, marey__stopwatch_state.listed.all[i], tick_ns));
    return MAREY_OK;
}

marey_status marey__stopwatch_put_iterations(marey_table *table, double tick_ns)
{
    const struct marey__stopwatch_state *const watch = &marey__stopwatch_state;
    const double whole = (double)watch->whole.sum.sketch.sum;
    for (size_t i = 0; i < watch->listed.n; i++) {
        const struct marey__stopwatch_slot *const slot = watch->listed.all[i];
        const struct marey__stopwatch_sum *const sum = &slot->periods.sum;
        struct marey__stopwatch_stats stats;
        marey__stopwatch_stats_of(sum, watch->n_measured - sum->sketch.count, tick_ns, &stats);
        put_name(table, slot);
        marey_table_u64(table, sum->sketch.count);
        put_stats(table, &stats);
        if (whole > 0)
            marey_table_f64(table, stats.total / whole);
        else
            marey_table_null(table);
    }
    return MAREY_OK;
}

/* One row: the iterations themselves. */
marey_status marey__stopwatch_put_iteration(marey_table *table, double tick_ns)
{
    const struct marey__stopwatch_state *const watch = &marey__stopwatch_state;
    struct marey__stopwatch_stats stats;
    (void)tick_ns;
    marey__stopwatch_stats_of(&watch->whole.sum, 0, 1, &stats);
    marey_table_u64(table, watch->n_measured);
    put_stats(table, &stats);
    marey_table_f64(table, watch->n_samples);
    if (watch->n_samples > 0 && stats.total > 0)
        marey_table_f64(table, watch->n_samples * 1e9 / stats.total);
    else
        marey_table_null(table);
    return MAREY_OK;
}

marey_status marey__stopwatch_put_once(marey_table *table, double tick_ns)
{
    for (size_t i = 0; i < marey__stopwatch_state.once.n; i++) {
        const struct marey__stopwatch_slot *const slot = marey__stopwatch_state.once.all[i];
        put_name(table, slot);
        if (slot->once_runs)
            marey_table_null(table);
        else
            put_ns(table, (double)slot->once_ticks * tick_ns);
        marey_table_bool(table, slot->once_runs && marey_stopwatch_is_enabled());
    }
    return MAREY_OK;
}

/* The kernel counts the machine's processor time in ticks of 10 ms: over less than 50 of them it tells nothing. */
#define MACHINE_TRUSTED_NS UINT64_C(500000000)

static void put_count(marey_table *table, bool is_measured, uint64_t n)
{
    if (is_measured)
        marey_table_u64(table, n);
    else
        marey_table_null(table);
}

marey_status marey__stopwatch_put_usage(marey_table *table, double tick_ns)
{
    (void)tick_ns;
    for (size_t i = 0; i < marey__stopwatch_state.listed.n; i++) {
        const struct marey__stopwatch_slot *const slot = marey__stopwatch_state.listed.all[i];
        const uint32_t mask = slot->usage_ever;
        struct marey__usage u;
        if (mask == 0)
            continue;
        marey__stopwatch_usage_of(slot, &u);
        put_name(table, slot);
        put_processors(table, mask & MAREY_USAGE_THREAD_CPU, u.thread_cpu_ns, u.wall_ns);
        put_processors(table, mask & MAREY_USAGE_PROCESS_CPU, u.process_cpu_ns, u.wall_ns);
        put_processors(table, mask & MAREY_USAGE_TREE_CPU, u.tree_cpu_ns, u.tree_wall_ns);
        put_processors(table,
                       (mask & MAREY_USAGE_MACHINE_CPU) && u.machine_wall_ns >= MACHINE_TRUSTED_NS,
                       u.machine_cpu_ns, u.machine_wall_ns);
        put_count(table, mask & MAREY_USAGE_FAULTS, u.n_switches + u.n_switches_involuntary);
        put_count(table, mask & MAREY_USAGE_FAULTS, u.n_switches_involuntary);
        put_count(table, mask & MAREY_USAGE_FAULTS, u.n_minor_faults + u.n_major_faults);
        put_count(table, mask & MAREY_USAGE_FAULTS, u.n_major_faults);
        if (mask & MAREY_USAGE_RSS)
            marey_table_i64(table, u.rss_bytes);
        else
            marey_table_null(table);
    }
    return MAREY_OK;
}

marey_status marey__stopwatch_put_gpu(marey_table *table, double tick_ns)
{
    (void)tick_ns;
    for (size_t i = 0; i < marey__stopwatch_state.listed.n; i++) {
        const struct marey__stopwatch_slot *const slot = marey__stopwatch_state.listed.all[i];
        struct marey__stopwatch_stats stats;
        if (slot->n_gpu == 0)
            continue;
        marey__stopwatch_stats_of(&slot->gpu, 0, 1, &stats);
        put_name(table, slot);
        marey_table_u64(table, stats.count);
        put_stats(table, &stats);
        marey_table_u64(table, slot->n_gpu > stats.count ? slot->n_gpu - stats.count : 0);
    }
    return MAREY_OK;
}

static void put_series_of(marey_table *table, const char *name, size_t len,
                          const struct marey__stopwatch_periods *periods, double scale)
{
    const struct marey__stopwatch_state *const watch = &marey__stopwatch_state;
    const uint64_t number_of_first = marey__stopwatch_first_number();
    for (uint64_t i = marey__stopwatch_series_first(periods); i < watch->n_measured; i++) {
        marey_table_u64(table, number_of_first + i);
        marey_table_text(table, name, len);
        put_ns(table, marey__stopwatch_periods_at(periods, i) * scale);
    }
}

marey_status marey__stopwatch_put_series(marey_table *table, double tick_ns)
{
    put_series_of(table, MAREY__WATCH_WHOLE, strlen(MAREY__WATCH_WHOLE),
                  &marey__stopwatch_state.whole, 1);
    for (size_t i = 0; i < marey__stopwatch_state.listed.n; i++) {
        const struct marey__stopwatch_slot *const slot = marey__stopwatch_state.listed.all[i];
        size_t len;
        const char *const name = marey_site_name(slot->id, &len);
        put_series_of(table, name, len, &slot->periods, tick_ns);
    }
    return MAREY_OK;
}

marey_status marey__stopwatch_put_misuse(marey_table *table, double tick_ns)
{
    (void)tick_ns;
    for (size_t i = 0; i < marey__stopwatch_state.slots.n; i++) {
        const struct marey__stopwatch_slot *const slot = marey__stopwatch_state.slots.all[i];
        for (int what = 0; what < MAREY__WATCH_N_MISUSES; what++) {
            if (slot->misuses[what] == 0)
                continue;
            const char *const text = marey__stopwatch_misuse_text((enum marey__stopwatch_misuse)what);
            put_name(table, slot);
            marey_table_text(table, text, strlen(text));
            marey_table_u64(table, slot->misuses[what]);
        }
    }
    return MAREY_OK;
}
