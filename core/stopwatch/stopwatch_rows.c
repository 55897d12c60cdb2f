/* Rows of the tables of results. The lock is held; `tick_ns` is what a tick is worth. */
#include <string.h>

#include "stopwatch/stopwatch_internal.h"

static void put_name(kymo_table *table, const struct kymo__watch_slot *slot)
{
    size_t len;
    const char *const name = kymo_site_name(slot->id, &len);
    kymo_table_text(table, name, len);
}

static void put_ns(kymo_table *table, double ns)
{
    kymo_table_u64(table, (uint64_t)(ns + 0.5));
}

/* The columns of STATS_COLUMNS. Of nothing there is no mean and no smallest. */
static void put_stats(kymo_table *table, const struct kymo__watch_stats *s)
{
    put_ns(table, s->total);
    if (s->count == 0) {
        for (int i = 0; i < 7; i++)
            kymo_table_null(table);
        return;
    }
    kymo_table_f64(table, s->mean);
    kymo_table_f64(table, s->std);
    put_ns(table, s->min);
    put_ns(table, s->p50);
    put_ns(table, s->p90);
    put_ns(table, s->p99);
    put_ns(table, s->max);
}

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for a table of the stopwatch");
}

bool kymo__watch_sum_of_threads(const struct kymo__watch_slot *slot, struct kymo__watch_sum *sum,
                                uint64_t *n_threads)
{
    bool ok = kymo__watch_sum_merge(sum, &slot->gone);
    *n_threads = slot->n_gone;
    for (const struct kymo__watch_cell *cell = slot->cells; cell != NULL; cell = cell->next_of_slot) {
        if (kymo__watch_mode_of(cell) & KYMO__WATCH_STALE)
            continue;
        *n_threads += __atomic_load_n(&cell->sum.sketch.count, __ATOMIC_RELAXED) != 0;
        ok = ok && kymo__watch_cell_merge(sum, cell);
    }
    return ok;
}

kymo_status kymo__watch_put_intervals(kymo_table *table, double tick_ns)
{
    for (size_t i = 0; i < kymo__watch.listed.n; i++) {
        const struct kymo__watch_slot *const slot = kymo__watch.listed.all[i];
        struct kymo__watch_sum sum = {0};
        struct kymo__watch_stats stats;
        uint64_t n_threads;
        const bool ok = kymo__watch_sum_of_threads(slot, &sum, &n_threads);
        kymo__watch_stats_of(&sum, 0, tick_ns, &stats);
        kymo__watch_sum_clear(&sum);
        if (!ok)
            return no_memory();
        put_name(table, slot);
        kymo_table_u64(table, n_threads);
        kymo_table_u64(table, stats.count);
        put_stats(table, &stats);
        put_ns(table, stats.self);
        kymo_table_bool(table, kymo__watch_runs(slot));
    }
    return KYMO_OK;
}

/* Nothing where it was not asked for. */
static void put_processors(kymo_table *table, bool is_measured, uint64_t cpu_ns, uint64_t wall_ns)
{
    if (is_measured && wall_ns > 0)
        kymo_table_f64(table, kymo__usage_processors(cpu_ns, wall_ns));
    else
        kymo_table_null(table);
}

static void put_thread_row(kymo_table *table, const struct kymo__watch_slot *slot,
                           const struct kymo__watch_thread *thread, const struct kymo__watch_sum *sum,
                           const struct kymo__usage *usage, double tick_ns)
{
    static const char gone[] = "(ended threads)";
    struct kymo__watch_stats stats;
    kymo__watch_stats_of(sum, 0, tick_ns, &stats);
    put_name(table, slot);
    if (thread != NULL) {
        kymo_table_text(table, thread->name, strlen(thread->name));
        kymo_table_i64(table, thread->tid);
    } else {
        kymo_table_text(table, gone, strlen(gone));
        kymo_table_null(table);
    }
    kymo_table_u64(table, stats.count);
    put_stats(table, &stats);
    put_ns(table, stats.self);
    put_processors(table, slot->usage_ever & KYMO_USAGE_THREAD_CPU, usage->thread_cpu_ns,
                   usage->wall_ns);
}

static kymo_status put_threads_of(kymo_table *table, const struct kymo__watch_slot *slot,
                                  double tick_ns)
{
    static const struct kymo__usage none;
    for (const struct kymo__watch_cell *cell = slot->cells; cell != NULL; cell = cell->next_of_slot) {
        struct kymo__watch_sum sum = {0};
        if (kymo__watch_mode_of(cell) & KYMO__WATCH_STALE)
            continue;
        const bool ok = kymo__watch_cell_merge(&sum, cell);
        if (ok)
            put_thread_row(table, slot, cell->thread, &sum,
                           cell->extra != NULL ? &cell->extra->usage : &none, tick_ns);
        kymo__watch_sum_clear(&sum);
        if (!ok)
            return no_memory();
    }
    if (slot->n_gone != 0)
        put_thread_row(table, slot, NULL, &slot->gone, &slot->gone_usage, tick_ns);
    return KYMO_OK;
}

kymo_status kymo__watch_put_threads(kymo_table *table, double tick_ns)
{
    for (size_t i = 0; i < kymo__watch.listed.n; i++)
        KYMO_TRY(put_threads_of(table, kymo__watch.listed.all[i], tick_ns));
    return KYMO_OK;
}

kymo_status kymo__watch_put_iterations(kymo_table *table, double tick_ns)
{
    const struct kymo__watch *const watch = &kymo__watch;
    const double whole = (double)watch->whole.sum.sketch.sum;
    for (size_t i = 0; i < watch->listed.n; i++) {
        const struct kymo__watch_slot *const slot = watch->listed.all[i];
        const struct kymo__watch_sum *const sum = &slot->periods.sum;
        struct kymo__watch_stats stats;
        kymo__watch_stats_of(sum, watch->n_measured - sum->sketch.count, tick_ns, &stats);
        put_name(table, slot);
        kymo_table_u64(table, sum->sketch.count);
        put_stats(table, &stats);
        if (whole > 0)
            kymo_table_f64(table, stats.total / whole);
        else
            kymo_table_null(table);
    }
    return KYMO_OK;
}

/* One row: the iterations themselves. */
kymo_status kymo__watch_put_iteration(kymo_table *table, double tick_ns)
{
    const struct kymo__watch *const watch = &kymo__watch;
    struct kymo__watch_stats stats;
    (void)tick_ns;
    kymo__watch_stats_of(&watch->whole.sum, 0, 1, &stats);
    kymo_table_u64(table, watch->n_measured);
    put_stats(table, &stats);
    kymo_table_f64(table, watch->n_samples);
    if (watch->n_samples > 0 && stats.total > 0)
        kymo_table_f64(table, watch->n_samples * 1e9 / stats.total);
    else
        kymo_table_null(table);
    return KYMO_OK;
}

kymo_status kymo__watch_put_once(kymo_table *table, double tick_ns)
{
    for (size_t i = 0; i < kymo__watch.once.n; i++) {
        const struct kymo__watch_slot *const slot = kymo__watch.once.all[i];
        put_name(table, slot);
        if (slot->once_runs)
            kymo_table_null(table);
        else
            put_ns(table, (double)slot->once_ticks * tick_ns);
        kymo_table_bool(table, slot->once_runs && kymo_stopwatch_is_enabled());
    }
    return KYMO_OK;
}

/* The kernel counts the machine's processor time in ticks of 10 ms: over less than 50 of them it tells nothing. */
#define MACHINE_TRUSTED_NS UINT64_C(500000000)

static void put_count(kymo_table *table, bool is_measured, uint64_t n)
{
    if (is_measured)
        kymo_table_u64(table, n);
    else
        kymo_table_null(table);
}

kymo_status kymo__watch_put_usage(kymo_table *table, double tick_ns)
{
    (void)tick_ns;
    for (size_t i = 0; i < kymo__watch.listed.n; i++) {
        const struct kymo__watch_slot *const slot = kymo__watch.listed.all[i];
        const uint32_t mask = slot->usage_ever;
        struct kymo__usage u;
        if (mask == 0)
            continue;
        kymo__watch_usage_of(slot, &u);
        put_name(table, slot);
        put_processors(table, mask & KYMO_USAGE_THREAD_CPU, u.thread_cpu_ns, u.wall_ns);
        put_processors(table, mask & KYMO_USAGE_PROCESS_CPU, u.process_cpu_ns, u.wall_ns);
        put_processors(table, mask & KYMO_USAGE_TREE_CPU, u.tree_cpu_ns, u.tree_wall_ns);
        put_processors(table,
                       (mask & KYMO_USAGE_MACHINE_CPU) && u.machine_wall_ns >= MACHINE_TRUSTED_NS,
                       u.machine_cpu_ns, u.machine_wall_ns);
        put_count(table, mask & KYMO_USAGE_FAULTS, u.n_switches + u.n_switches_involuntary);
        put_count(table, mask & KYMO_USAGE_FAULTS, u.n_switches_involuntary);
        put_count(table, mask & KYMO_USAGE_FAULTS, u.n_minor_faults + u.n_major_faults);
        put_count(table, mask & KYMO_USAGE_FAULTS, u.n_major_faults);
        if (mask & KYMO_USAGE_RSS)
            kymo_table_i64(table, u.rss_bytes);
        else
            kymo_table_null(table);
    }
    return KYMO_OK;
}

kymo_status kymo__watch_put_gpu(kymo_table *table, double tick_ns)
{
    (void)tick_ns;
    for (size_t i = 0; i < kymo__watch.listed.n; i++) {
        const struct kymo__watch_slot *const slot = kymo__watch.listed.all[i];
        struct kymo__watch_stats stats;
        if (slot->n_gpu == 0)
            continue;
        kymo__watch_stats_of(&slot->gpu, 0, 1, &stats);
        put_name(table, slot);
        kymo_table_u64(table, stats.count);
        put_stats(table, &stats);
        kymo_table_u64(table, slot->n_gpu > stats.count ? slot->n_gpu - stats.count : 0);
    }
    return KYMO_OK;
}

static void put_series_of(kymo_table *table, const char *name, size_t len,
                          const struct kymo__watch_periods *periods, double scale)
{
    const struct kymo__watch *const watch = &kymo__watch;
    const uint64_t number_of_first = kymo__watch_first_number();
    for (uint64_t i = kymo__watch_series_first(periods); i < watch->n_measured; i++) {
        kymo_table_u64(table, number_of_first + i);
        kymo_table_text(table, name, len);
        put_ns(table, kymo__watch_periods_at(periods, i) * scale);
    }
}

kymo_status kymo__watch_put_series(kymo_table *table, double tick_ns)
{
    put_series_of(table, KYMO__WATCH_WHOLE, strlen(KYMO__WATCH_WHOLE), &kymo__watch.whole, 1);
    for (size_t i = 0; i < kymo__watch.listed.n; i++) {
        const struct kymo__watch_slot *const slot = kymo__watch.listed.all[i];
        size_t len;
        const char *const name = kymo_site_name(slot->id, &len);
        put_series_of(table, name, len, &slot->periods, tick_ns);
    }
    return KYMO_OK;
}

kymo_status kymo__watch_put_misuse(kymo_table *table, double tick_ns)
{
    (void)tick_ns;
    for (size_t i = 0; i < kymo__watch.slots.n; i++) {
        const struct kymo__watch_slot *const slot = kymo__watch.slots.all[i];
        for (int what = 0; what < KYMO__WATCH_N_MISUSES; what++) {
            if (slot->misuses[what] == 0)
                continue;
            const char *const text = kymo__watch_misuse_text((enum kymo__watch_misuse)what);
            put_name(table, slot);
            kymo_table_text(table, text, strlen(text));
            kymo_table_u64(table, slot->misuses[what]);
        }
    }
    return KYMO_OK;
}
