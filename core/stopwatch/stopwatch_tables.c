/* The results as tables. Each is made under the lock from what stands there at that moment. */
#include <string.h>

#include "stopwatch/stopwatch_internal.h"

#define TEXT_OF(column)                                                                            \
    {                                                                                              \
        column, NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE                                               \
    }
#define COUNT_OF(column)                                                                           \
    {                                                                                              \
        column, NULL, KYMO_TYPE_U64, KYMO_UNIT_COUNT                                               \
    }
#define NS_OF(column, title)                                                                       \
    {                                                                                              \
        column, title, KYMO_TYPE_U64, KYMO_UNIT_NS                                                 \
    }
#define NS_F64_OF(column, title)                                                                   \
    {                                                                                              \
        column, title, KYMO_TYPE_F64, KYMO_UNIT_NS                                                 \
    }
#define STATS_COLUMNS                                                                              \
    NS_OF("total_ns", "total"), NS_F64_OF("mean_ns", "mean"), NS_F64_OF("std_ns", "std"),          \
        NS_OF("min_ns", "min"), NS_OF("p50_ns", "p50"), NS_OF("p90_ns", "p90"),                    \
        NS_OF("p99_ns", "p99"), NS_OF("max_ns", "max")

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

/* ---- rows; the lock is held ---- */

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for a table of the stopwatch");
}

/* All threads of a slot in one; free it with kymo__watch_sum_clear(). */
static bool sum_of_threads(const struct kymo__watch_slot *slot, struct kymo__watch_sum *sum,
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

static kymo_status put_intervals(kymo_table *table, double tick_ns)
{
    for (size_t i = 0; i < kymo__watch.listed.n; i++) {
        const struct kymo__watch_slot *const slot = kymo__watch.listed.all[i];
        struct kymo__watch_sum sum = {0};
        struct kymo__watch_stats stats;
        uint64_t n_threads;
        const bool ok = sum_of_threads(slot, &sum, &n_threads);
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

static void put_thread_row(kymo_table *table, const struct kymo__watch_slot *slot,
                           const struct kymo__watch_thread *thread, struct kymo__watch_sum *sum,
                           double tick_ns)
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
}

static kymo_status put_threads_of(kymo_table *table, struct kymo__watch_slot *slot, double tick_ns)
{
    for (const struct kymo__watch_cell *cell = slot->cells; cell != NULL; cell = cell->next_of_slot) {
        struct kymo__watch_sum sum = {0};
        if (kymo__watch_mode_of(cell) & KYMO__WATCH_STALE)
            continue;
        const bool ok = kymo__watch_cell_merge(&sum, cell);
        if (ok)
            put_thread_row(table, slot, cell->thread, &sum, tick_ns);
        kymo__watch_sum_clear(&sum);
        if (!ok)
            return no_memory();
    }
    if (slot->n_gone != 0)
        put_thread_row(table, slot, NULL, &slot->gone, tick_ns);
    return KYMO_OK;
}

static kymo_status put_threads(kymo_table *table, double tick_ns)
{
    for (size_t i = 0; i < kymo__watch.listed.n; i++)
        KYMO_TRY(put_threads_of(table, kymo__watch.listed.all[i], tick_ns));
    return KYMO_OK;
}

static kymo_status put_iterations(kymo_table *table, double tick_ns)
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
static kymo_status put_iteration(kymo_table *table, double tick_ns)
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

static kymo_status put_once(kymo_table *table, double tick_ns)
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

static void put_series_of(kymo_table *table, const char *name, size_t len,
                          const struct kymo__watch_periods *periods, double scale)
{
    const struct kymo__watch *const watch = &kymo__watch;
    const uint64_t number_of_first = watch->last_number + 1 - watch->n_measured;
    for (uint64_t i = kymo__watch_series_first(periods); i < watch->n_measured; i++) {
        kymo_table_u64(table, number_of_first + i);
        kymo_table_text(table, name, len);
        put_ns(table, kymo__watch_periods_at(periods, i) * scale);
    }
}

static kymo_status put_series(kymo_table *table, double tick_ns)
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

static kymo_status put_misuse(kymo_table *table, double tick_ns)
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

/* ---- all of them ---- */

enum { MAX_COLUMNS = 14 };
static const struct {
    const char *name;
    kymo_status (*put)(kymo_table *table, double tick_ns);
    struct kymo_column columns[MAX_COLUMNS]; /* up to the first without a name */
} tables[] = {
    {"intervals",
     put_intervals,
     {TEXT_OF("name"),
      COUNT_OF("threads"),
      COUNT_OF("count"),
      STATS_COLUMNS,
      NS_OF("self_ns", "self"),
      {"running", NULL, KYMO_TYPE_BOOL, KYMO_UNIT_NONE}}},
    {"iterations",
     put_iterations,
     {TEXT_OF("name"),
      COUNT_OF("iterations"),
      STATS_COLUMNS,
      {"share", NULL, KYMO_TYPE_F64, KYMO_UNIT_SHARE}}},
    {"iteration",
     put_iteration,
     {COUNT_OF("iterations"),
      STATS_COLUMNS,
      {"samples", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
      {"samples_per_s", "samples/s", KYMO_TYPE_F64, KYMO_UNIT_NONE}}},
    {"threads",
     put_threads,
     {TEXT_OF("name"),
      TEXT_OF("thread"),
      {"tid", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE},
      COUNT_OF("count"),
      STATS_COLUMNS,
      NS_OF("self_ns", "self")}},
    {"once",
     put_once,
     {TEXT_OF("name"), NS_OF("total_ns", "total"), {"running", NULL, KYMO_TYPE_BOOL, KYMO_UNIT_NONE}}},
    {"series", put_series, {COUNT_OF("iteration"), TEXT_OF("name"), NS_OF("total_ns", "total")}},
    {"outliers",
     kymo__watch_put_outliers,
     {COUNT_OF("iteration"),
      TEXT_OF("name"),
      NS_OF("total_ns", "total"),
      NS_OF("median_ns", "median"),
      {"times", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE}}},
    {"misuse", put_misuse, {TEXT_OF("name"), TEXT_OF("what"), COUNT_OF("count")}},
};

static kymo_status unknown_table(const char *name)
{
    char list[256];
    size_t len = 0;
    for (size_t i = 0; i < KYMO__COUNT_OF(tables); i++)
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", i > 0 ? ", " : "",
                                tables[i].name);
    return kymo__fail(KYMO_EINVAL, "the stopwatch has no table '%s'; the tables are %s",
                      name != NULL ? name : "", list);
}

static kymo_status make(size_t which, kymo_table **out)
{
    size_t n = 0;
    while (n < MAX_COLUMNS && tables[which].columns[n].name != NULL)
        n++;
    kymo_table *table;
    KYMO_TRY(kymo_table_create(tables[which].name, tables[which].columns, n, &table));
    kymo__watch_lock();
    kymo_status st = tables[which].put(table, kymo__watch_tick_ns());
    kymo__watch_unlock();
    if (st == KYMO_OK)
        st = kymo_table_status(table);
    if (st != KYMO_OK) {
        kymo_table_destroy(table);
        return st;
    }
    *out = table;
    return KYMO_OK;
}

kymo_status kymo_stopwatch_table(const char *name, kymo_table **out)
{
    for (size_t i = 0; name != NULL && i < KYMO__COUNT_OF(tables); i++)
        if (strcmp(name, tables[i].name) == 0)
            return make(i, out);
    return unknown_table(name);
}
