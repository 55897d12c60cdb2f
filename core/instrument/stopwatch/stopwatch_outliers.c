/*
 * Iterations far above the rest. The rest is told by the median of the iterations that are kept and the median of the
 * distances from it, which a few stalls do not move. An iteration is one of them when it is more than LIMIT such
 * deviations above the median (scaled so that they are standard deviations where noise is normal) and at least a fifth
 * longer: a name whose times hardly vary has no outliers of a few nanoseconds.
 */
#include <string.h>

#include "instrument/stopwatch/internal.h"

enum {
    LIMIT = 6,
    MOST = 20,
    FEWEST = 8
}; /* of a name at most 20; from fewer than 8 iterations none */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_size);
    return n % 2 != 0 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

struct outlier {
    uint64_t index;
    double value;
};

static int by_value_down(const void *a, const void *b)
{
    const double x = ((const struct outlier *)a)->value, y = ((const struct outlier *)b)->value;
    return (x < y) - (x > y);
}

/* The median, and above what a value is an outlier. `values` is moved about. */
static double limit_of(double *values, size_t n, double *median)
{
    *median = median_of(values, n);
    for (size_t i = 0; i < n; i++)
        values[i] = values[i] > *median ? values[i] - *median : *median - values[i];
    return MAREY__MAX(*median + LIMIT * 1.4826 * median_of(values, n), *median * 1.2);
}

/* The worst first; how many. */
static size_t worst_of(const struct marey__stopwatch_periods *periods, uint64_t first, double limit,
                       struct outlier *worst)
{
    size_t n = 0;
    for (uint64_t i = first; i < marey__stopwatch_state.n_measured; i++) {
        const double value = marey__stopwatch_periods_at(periods, i);
        if (value <= limit || (n == MOST && value <= worst[MOST - 1].value))
            continue;
        n = MAREY__MIN(n, (size_t)MOST - 1);
        worst[n++] = (struct outlier){i, value};
        qsort(worst, n, sizeof *worst, by_value_down);
    }
    return n;
}

/* `values` has room for MAREY__WATCH_SERIES. */
static void put_of(marey_table *table, const char *name, size_t len,
                   const struct marey__stopwatch_periods *periods, double scale, double *values)
{
    const struct marey__stopwatch_state *const watch = &marey__stopwatch_state;
    const uint64_t first = marey__stopwatch_series_first(periods);
    const size_t n = (size_t)(watch->n_measured - first);
    struct outlier worst[MOST];
    double median;
    if (n < FEWEST || periods->sum.sketch.count == 0)
        return;
    for (size_t i = 0; i < n; i++)
        values[i] = marey__stopwatch_periods_at(periods, first + i);
    const double limit = limit_of(values, n, &median);
    if (median == 0) /* it runs now and then only */
        return;
    const size_t n_worst = worst_of(periods, first, limit, worst);
    for (size_t i = 0; i < n_worst; i++) {
        marey_table_u64(table, marey__stopwatch_first_number() + worst[i].index);
        marey_table_text(table, name, len);
        marey_table_u64(table, (uint64_t)(worst[i].value * scale + 0.5));
        marey_table_u64(table, (uint64_t)(median * scale + 0.5));
        marey_table_f64(table, worst[i].value / median);
    }
}

marey_status marey__stopwatch_put_outliers(marey_table *table, double tick_ns)
{
    double *const values = marey__calloc(MAREY__WATCH_SERIES, sizeof *values);
    MAREY__TRY_MEMORY(values != NULL);
    put_of(table, MAREY__WATCH_WHOLE, strlen(MAREY__WATCH_WHOLE), &marey__stopwatch_state.whole, 1,
           values);
    for (size_t i = 0; i < marey__stopwatch_state.listed.n; i++) {
        const struct marey__stopwatch_slot *const slot = marey__stopwatch_state.listed.all[i];
        size_t len;
        const char *const name = marey_site_name(slot->id, &len);
        put_of(table, name, len, &slot->periods, tick_ns, values);
    }
    marey__free(values);
    return MAREY_OK;
}
