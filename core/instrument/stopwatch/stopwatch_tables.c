/* The results as tables, each made under the lock from the current results. */
#include <math.h>
#include <string.h>

#include "instrument/stopwatch/internal.h"

static const struct marey__stopwatch_state *const watch = &marey__stopwatch_state;

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

static void put_count(marey_table *table, bool is_known, uint64_t n)
{
    if (is_known)
        marey_table_u64(table, n);
    else
        marey_table_null(table);
}

/* The columns of STATS_COLUMNS. An empty distribution has no mean and no minimum. */
static void put_stats(marey_table *table, const struct marey__stopwatch_stats *s)
{
    const double times[] = {s->min, s->p50, s->p90, s->p99, s->max};
    const bool is_known = s->count > 0;
    put_ns(table, s->total);
    MAREY__PUT_REALS(table, is_known ? s->mean : NAN, is_known ? s->std : NAN);
    for (size_t i = 0; i < MAREY__COUNT_OF(times); i++)
        put_count(table, is_known, (uint64_t)(times[i] + 0.5));
}

bool marey__stopwatch_sum_of_threads(const struct marey__stopwatch_slot *slot,
                                     struct marey__stopwatch_sum *sum, uint64_t *n_threads)
{
    bool ok = marey__stopwatch_sum_merge(sum, &slot->gone);
    *n_threads = slot->n_gone;
    for (const struct marey__stopwatch_cell *cell = slot->cells; cell != NULL;
         cell = cell->next_of_slot) {
        if (marey__stopwatch_mode_of(cell) & MAREY__STOPWATCH_STALE)
            continue;
        *n_threads += __atomic_load_n(&cell->sum.sketch.count, __ATOMIC_RELAXED) != 0;
        ok = ok && marey__stopwatch_cell_merge(sum, cell);
    }
    return ok;
}

static marey_status put_interval(marey_table *table, const struct marey__stopwatch_slot *slot)
{
    struct marey__stopwatch_sum sum MAREY__FINALLY(marey__stopwatch_sum_clear) = {0};
    struct marey__stopwatch_stats stats;
    uint64_t n_threads;
    MAREY__TRY_MEMORY(marey__stopwatch_sum_of_threads(slot, &sum, &n_threads));
    marey__stopwatch_stats_of(&sum, 0, watch->tick_ns, &stats);
    put_name(table, slot);
    MAREY__PUT_COUNTS(table, n_threads, stats.count);
    put_stats(table, &stats);
    put_ns(table, stats.self);
    marey_table_bool(table, marey__stopwatch_runs(slot));
    return MAREY_OK;
}

/* Null if not requested. */
static void put_processors(marey_table *table, bool is_measured, uint64_t cpu_ns, uint64_t wall_ns)
{
    MAREY__PUT_REALS(table,
                     is_measured && wall_ns > 0 ? marey__usage_processors(cpu_ns, wall_ns) : NAN);
}

static void put_thread_row(marey_table *table, const struct marey__stopwatch_slot *slot,
                           const struct marey__stopwatch_thread *thread,
                           const struct marey__stopwatch_sum *sum, const struct marey__usage *usage)
{
    struct marey__stopwatch_stats stats;
    marey__stopwatch_stats_of(sum, 0, watch->tick_ns, &stats);
    put_name(table, slot);
    MAREY__PUT_TEXTS(table, thread != NULL ? thread->name : "(ended threads)");
    if (thread != NULL)
        marey_table_i64(table, thread->tid);
    else
        marey_table_null(table);
    marey_table_u64(table, stats.count);
    put_stats(table, &stats);
    put_ns(table, stats.self);
    put_processors(table, slot->usage_ever & MAREY_USAGE_THREAD_CPU, usage->thread_cpu_ns,
                   usage->wall_ns);
}

static marey_status put_threads(marey_table *table, const struct marey__stopwatch_slot *slot)
{
    static const struct marey__usage none;
    for (const struct marey__stopwatch_cell *cell = slot->cells; cell != NULL;
         cell = cell->next_of_slot) {
        struct marey__stopwatch_sum sum MAREY__FINALLY(marey__stopwatch_sum_clear) = {0};
        if (marey__stopwatch_mode_of(cell) & MAREY__STOPWATCH_STALE)
            continue;
        MAREY__TRY_MEMORY(marey__stopwatch_cell_merge(&sum, cell));
        put_thread_row(table, slot, cell->thread, &sum,
                       cell->extra != NULL ? &cell->extra->usage : &none);
    }
    if (slot->n_gone != 0)
        put_thread_row(table, slot, NULL, &slot->gone, &slot->gone_usage);
    return MAREY_OK;
}

static marey_status put_iterations(marey_table *table, const struct marey__stopwatch_slot *slot)
{
    const double whole = (double)watch->whole.sum.sketch.sum;
    const struct marey__stopwatch_sum *const sum = &slot->periods.sum;
    struct marey__stopwatch_stats stats;
    marey__stopwatch_stats_of(sum, watch->n_measured - sum->sketch.count, watch->tick_ns, &stats);
    put_name(table, slot);
    marey_table_u64(table, sum->sketch.count);
    put_stats(table, &stats);
    MAREY__PUT_REALS(table, whole > 0 ? stats.total / whole : NAN);
    return MAREY_OK;
}

/* One row for the iterations themselves. */
static marey_status put_iteration(marey_table *table)
{
    struct marey__stopwatch_stats stats;
    marey__stopwatch_stats_of(&watch->whole.sum, 0, 1, &stats);
    marey_table_u64(table, watch->n_measured);
    put_stats(table, &stats);
    const bool has_rate = watch->n_samples > 0 && stats.total > 0;
    MAREY__PUT_REALS(table, watch->n_samples, has_rate ? watch->n_samples * 1e9 / stats.total : NAN);
    return MAREY_OK;
}

static marey_status put_once(marey_table *table)
{
    for (size_t i = 0; i < watch->once.n; i++) {
        const struct marey__stopwatch_slot *const slot = watch->once.all[i];
        put_name(table, slot);
        if (slot->once_runs)
            marey_table_null(table);
        else
            put_ns(table, (double)slot->once_ticks * watch->tick_ns);
        marey_table_bool(table, slot->once_runs && marey_stopwatch_is_enabled());
    }
    return MAREY_OK;
}

/* The kernel counts the machine's CPU time in ticks of 10 ms: over less than 50 ticks it is unusable. */
#define MACHINE_TRUSTED_NS UINT64_C(500000000)

static marey_status put_usage(marey_table *table, const struct marey__stopwatch_slot *slot)
{
    const uint32_t mask = slot->usage_ever;
    struct marey__usage u;
    if (mask == 0)
        return MAREY_OK;
    marey__stopwatch_usage_of(slot, &u);
    put_name(table, slot);
    put_processors(table, mask & MAREY_USAGE_THREAD_CPU, u.thread_cpu_ns, u.wall_ns);
    put_processors(table, mask & MAREY_USAGE_PROCESS_CPU, u.process_cpu_ns, u.wall_ns);
    put_processors(table, mask & MAREY_USAGE_TREE_CPU, u.tree_cpu_ns, u.tree_wall_ns);
    put_processors(table, (mask & MAREY_USAGE_MACHINE_CPU) && u.machine_wall_ns >= MACHINE_TRUSTED_NS,
                   u.machine_cpu_ns, u.machine_wall_ns);
    put_count(table, mask & MAREY_USAGE_FAULTS, u.n_switches + u.n_switches_involuntary);
    put_count(table, mask & MAREY_USAGE_FAULTS, u.n_switches_involuntary);
    put_count(table, mask & MAREY_USAGE_FAULTS, u.n_minor_faults + u.n_major_faults);
    put_count(table, mask & MAREY_USAGE_FAULTS, u.n_major_faults);
    if (mask & MAREY_USAGE_RSS)
        marey_table_i64(table, u.rss_bytes);
    else
        marey_table_null(table);
    return MAREY_OK;
}

static marey_status put_gpu(marey_table *table, const struct marey__stopwatch_slot *slot)
{
    struct marey__stopwatch_stats stats;
    if (slot->n_gpu == 0)
        return MAREY_OK;
    marey__stopwatch_stats_of(&slot->gpu, 0, 1, &stats);
    put_name(table, slot);
    marey_table_u64(table, stats.count);
    put_stats(table, &stats);
    marey_table_u64(table, slot->n_gpu > stats.count ? slot->n_gpu - stats.count : 0);
    return MAREY_OK;
}

static marey_status put_misuse(marey_table *table)
{
    for (size_t i = 0; i < watch->slots.n; i++)
        for (int what = 0; what < MAREY__STOPWATCH_N_MISUSES; what++) {
            const struct marey__stopwatch_slot *const slot = watch->slots.all[i];
            if (slot->misuses[what] == 0)
                continue;
            put_name(table, slot);
            MAREY__PUT_TEXTS(table, marey__stopwatch_misuse_text((enum marey__stopwatch_misuse)what));
            marey_table_u64(table, slot->misuses[what]);
        }
    return MAREY_OK;
}

/* ---- single iterations ---- */

/* The number of the first measured iteration, if all are consecutive. */
static uint64_t first_number(void)
{
    const uint64_t behind_last = watch->last_number + 1;
    return behind_last > watch->n_measured ? behind_last - watch->n_measured : 0;
}

/* Times per iteration of one name, or whole iterations; `scale` converts them to nanoseconds. */
struct series {
    const char *name;
    size_t len;
    const struct marey__stopwatch_periods *periods;
    double scale;
};

/* 0: the iterations themselves, then each name; false past the last. */
static bool series_at(size_t i, struct series *out)
{
    *out = (struct series){MAREY__STOPWATCH_WHOLE, strlen(MAREY__STOPWATCH_WHOLE), &watch->whole, 1};
    if (i == 0 || i > watch->listed.n)
        return i == 0;
    const struct marey__stopwatch_slot *const slot = watch->listed.all[i - 1];
    out->name = marey_site_name(slot->id, &out->len);
    out->periods = &slot->periods;
    out->scale = watch->tick_ns;
    return true;
}

static marey_status put_series(marey_table *table)
{
    const uint64_t number_of_first = first_number();
    struct series of;
    for (size_t s = 0; series_at(s, &of); s++)
        for (uint64_t i = marey__stopwatch_series_first(of.periods); i < watch->n_measured; i++) {
            marey_table_u64(table, number_of_first + i);
            marey_table_text(table, of.name, of.len);
            put_ns(table, marey__stopwatch_periods_at(of.periods, i) * of.scale);
        }
    return MAREY_OK;
}

/*
 * Outliers: iterations far above the typical one, based on the median of the stored iterations and the median distance
 * from it (MAD), which a few stalls do not move. An outlier is more than LIMIT deviations (scaled to standard
 * deviations of normal noise) above the median, and at least 20 % longer: a name with nearly constant times has no
 * outliers of a few nanoseconds.
 */
enum {
    LIMIT = 6,
    MOST = 20,
    FEWEST = 8
}; /* per name at most 20; none from fewer than 8 iterations */

static double median_of(double *values, size_t n)
{
    qsort(values, n, sizeof *values, marey__compare_f64);
    return n % 2 != 0 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

struct outlier {
    uint64_t index;
    double value;
};

MAREY__ORDER(by_value_down, struct outlier, MAREY__DOWN(value))

/* The median, and the limit above which a value is an outlier. Reorders `values`. */
static double limit_of(double *values, size_t n, double *median)
{
    *median = median_of(values, n);
    for (size_t i = 0; i < n; i++)
        values[i] = values[i] > *median ? values[i] - *median : *median - values[i];
    return MAREY__MAX(*median + LIMIT * 1.4826 * median_of(values, n), *median * 1.2);
}

/* Sorts the worst first. Returns how many. */
static size_t worst_of(const struct marey__stopwatch_periods *periods, uint64_t first, double limit,
                       struct outlier *worst)
{
    size_t n = 0;
    for (uint64_t i = first; i < watch->n_measured; i++) {
        const double value = marey__stopwatch_periods_at(periods, i);
        if (value <= limit || (n == MOST && value <= worst[MOST - 1].value))
            continue;
        n = MAREY__MIN(n, (size_t)MOST - 1);
        worst[n++] = (struct outlier){i, value};
        qsort(worst, n, sizeof *worst, by_value_down);
    }
    return n;
}

/* `values` has room for MAREY__STOPWATCH_SERIES. */
static void put_outliers_of(marey_table *table, const struct series *of, double *values)
{
    const uint64_t first = marey__stopwatch_series_first(of->periods);
    const size_t n = (size_t)(watch->n_measured - first);
    struct outlier worst[MOST];
    double median;
    if (n < FEWEST || of->periods->sum.sketch.count == 0)
        return;
    for (size_t i = 0; i < n; i++)
        values[i] = marey__stopwatch_periods_at(of->periods, first + i);
    const double limit = limit_of(values, n, &median);
    if (median == 0) /* it runs only occasionally */
        return;
    const size_t n_worst = worst_of(of->periods, first, limit, worst);
    for (size_t i = 0; i < n_worst; i++) {
        marey_table_u64(table, first_number() + worst[i].index);
        marey_table_text(table, of->name, of->len);
        put_ns(table, worst[i].value * of->scale);
        put_ns(table, median * of->scale);
        marey_table_f64(table, worst[i].value / median);
    }
}

static marey_status put_outliers(marey_table *table)
{
    double *const values MAREY__FREED = marey__calloc(MAREY__STOPWATCH_SERIES, sizeof *values);
    MAREY__TRY_MEMORY(values != NULL);
    struct series of;
    for (size_t i = 0; series_at(i, &of); i++)
        put_outliers_of(table, &of, values);
    return MAREY_OK;
}

/* ---- the tables ---- */

#define TEXT_OF(column) MAREY__COLUMN(column, NULL, TEXT, NONE)
#define COUNT_OF(column) MAREY__COLUMN(column, NULL, U64, COUNT)
#define CPU_OF(column) MAREY__COLUMN(column, NULL, F64, NONE) /* 1.0: one CPU core */
#define NS_OF(column, title) MAREY__COLUMN(column, title, U64, NS)
#define NS_F64_OF(column, title) MAREY__COLUMN(column, title, F64, NS)
#define STATS_COLUMNS                                                                              \
    NS_OF("total_ns", "total"), NS_F64_OF("mean_ns", "mean"), NS_F64_OF("std_ns", "std"),          \
        NS_OF("min_ns", "min"), NS_OF("p50_ns", "p50"), NS_OF("p90_ns", "p90"),                    \
        NS_OF("p99_ns", "p99"), NS_OF("max_ns", "max")

enum { MAX_COLUMNS = 14 };
static const struct {
    const char *name;
    marey_status (*put)(marey_table *table); /* all rows; or the rows of each listed name: */
    marey_status (*put_slot)(marey_table *table, const struct marey__stopwatch_slot *slot);
    struct marey_column columns[MAX_COLUMNS]; /* up to the first without a name */
} tables[] = {
    {"intervals",
     NULL,
     put_interval,
     {TEXT_OF("name"),
      COUNT_OF("threads"),
      COUNT_OF("count"),
      STATS_COLUMNS,
      NS_OF("self_ns", "self"),
      {"running", NULL, MAREY_TYPE_BOOL, MAREY_UNIT_NONE}}},
    {"iterations",
     NULL,
     put_iterations,
     {TEXT_OF("name"),
      COUNT_OF("iterations"),
      STATS_COLUMNS,
      {"share", NULL, MAREY_TYPE_F64, MAREY_UNIT_SHARE}}},
    {"iteration",
     put_iteration,
     NULL,
     {COUNT_OF("iterations"),
      STATS_COLUMNS,
      {"samples", NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE},
      {"samples_per_s", "samples/s", MAREY_TYPE_F64, MAREY_UNIT_NONE}}},
    {"threads",
     NULL,
     put_threads,
     {TEXT_OF("name"),
      TEXT_OF("thread"),
      {"tid", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},
      COUNT_OF("count"),
      STATS_COLUMNS,
      NS_OF("self_ns", "self"),
      CPU_OF("thread_cpu")}},
    {"gpu", NULL, put_gpu, {TEXT_OF("name"), COUNT_OF("count"), STATS_COLUMNS, COUNT_OF("pending")}},
    {"usage",
     NULL,
     put_usage,
     {TEXT_OF("name"),
      CPU_OF("thread_cpu"),
      CPU_OF("process_cpu"),
      CPU_OF("tree_cpu"),
      CPU_OF("machine_cpu"),
      COUNT_OF("context_switches"),
      COUNT_OF("involuntary_switches"),
      COUNT_OF("page_faults"),
      COUNT_OF("major_faults"),
      {"rss_bytes", "rss", MAREY_TYPE_I64, MAREY_UNIT_BYTES}}},
    {"once",
     put_once,
     NULL,
     {TEXT_OF("name"), NS_OF("total_ns", "total"), {"running", NULL, MAREY_TYPE_BOOL, MAREY_UNIT_NONE}}},
    {"series", put_series, NULL, {COUNT_OF("iteration"), TEXT_OF("name"), NS_OF("total_ns", "total")}},
    {"outliers",
     put_outliers,
     NULL,
     {COUNT_OF("iteration"),
      TEXT_OF("name"),
      NS_OF("total_ns", "total"),
      NS_OF("median_ns", "median"),
      {"times", NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE}}},
    {"misuse", put_misuse, NULL, {TEXT_OF("name"), TEXT_OF("what"), COUNT_OF("count")}},
};

static marey_status unknown_table(const char *name)
{
    char list[256];
    size_t len = 0;
    for (size_t i = 0; i < MAREY__COUNT_OF(tables); i++)
        marey__append(list, sizeof list, &len, "%s%s", i > 0 ? ", " : "", tables[i].name);
    return marey__fail(MAREY_EINVAL, "the stopwatch has no table '%s'; the tables are %s",
                       name != NULL ? name : "", list);
}

static marey_status fill(marey_table *table, size_t which)
{
    MAREY__STOPWATCH_HOLD();
    marey__stopwatch_know_tick();
    if (tables[which].put != NULL)
        return tables[which].put(table);
    for (size_t i = 0; i < watch->listed.n; i++)
        MAREY_TRY(tables[which].put_slot(table, watch->listed.all[i]));
    return MAREY_OK;
}
static marey_status make(size_t which, marey_table **out)
{
    size_t n = 0;
    while (n < MAX_COLUMNS && tables[which].columns[n].name != NULL)
        n++;
    marey_table *table;
    MAREY_TRY(marey_table_create(tables[which].name, tables[which].columns, n, &table));
    marey__stopwatch_gpu_collect();
    marey_status st = fill(table, which);
    if (st == MAREY_OK)
        st = marey_table_status(table);
    if (st == MAREY_OK)
        *out = table;
    else
        marey_table_destroy(table);
    return st;
}

marey_status marey_stopwatch_table(const char *name, marey_table **out)
{
    for (size_t i = 0; name != NULL && i < MAREY__COUNT_OF(tables); i++)
        if (strcmp(name, tables[i].name) == 0)
            return make(i, out);
    return unknown_table(name);
}
