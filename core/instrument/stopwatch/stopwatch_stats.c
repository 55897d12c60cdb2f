/* Sums to statistics. */
#include <string.h>

#include "instrument/stopwatch/internal.h"

static double load(const double *value)
{
    double out;
    __atomic_load(value, &out, __ATOMIC_RELAXED);
    return out;
}

/*
 * Converts squares of distances to another shift: (x - b) = (x - a) + (a - b). The sums were read one by one while the
 * owner may have added a value, whose effect is negligible.
 */
bool marey__stopwatch_sum_merge(struct marey__stopwatch_sum *into,
                                const struct marey__stopwatch_sum *from)
{
    const double count = (double)__atomic_load_n(&from->sketch.count, __ATOMIC_ACQUIRE);
    const double sum = (double)__atomic_load_n(&from->sketch.sum, __ATOMIC_RELAXED);
    const double shift = load(&from->shift);
    if (count == 0)
        return true;
    if (into->sketch.count == 0)
        into->shift = shift;
    const double apart = shift - into->shift;
    into->squares += load(&from->squares) + 2 * apart * (sum - count * shift) + count * apart * apart;
    into->self += __atomic_load_n(&from->self, __ATOMIC_RELAXED);
    return marey__sketch_merge(&into->sketch, &from->sketch);
}

bool marey__stopwatch_cell_merge(struct marey__stopwatch_sum *into,
                                 const struct marey__stopwatch_cell *cell)
{
    const uint64_t latest = __atomic_load_n(&cell->latest, __ATOMIC_RELAXED);
    if (latest == 0)
        return true;
    return marey__stopwatch_sum_merge(into, &cell->sum) &&
           marey__sketch_add_slow(&into->sketch, latest - 1);
}

void marey__stopwatch_sum_clear(struct marey__stopwatch_sum *sum)
{
    marey__sketch_fini(&sum->sketch);
    sum->shift = sum->squares = 0;
    sum->self = 0;
}

/* Newton's method from half the exponent, so that libmarey does not link libm for one function. */
double marey__stopwatch_square_root(double x)
{
    uint64_t bits;
    double root;
    if (!(x > 0))
        return 0;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits >> 1) + (UINT64_C(1023) << 51);
    memcpy(&root, &bits, sizeof root);
    for (int i = 0; i < 6; i++) /* each doubles the correct digits */
        root = (root + x / root) / 2;
    return root;
}

static double deviation(const struct marey__stopwatch_sum *sum, double n_zeros)
{
    const double n = (double)sum->sketch.count + n_zeros;
    if (n < 2)
        return 0;
    const double distances = (double)sum->sketch.sum - n * sum->shift;
    const double squares = sum->squares + n_zeros * sum->shift * sum->shift;
    const double variance = (squares - distances * distances / n) / (n - 1);
    return marey__stopwatch_square_root(variance);
}

void marey__stopwatch_stats_of(const struct marey__stopwatch_sum *sum, uint64_t n_zeros,
                               double scale, struct marey__stopwatch_stats *out)
{
    const struct marey__sketch *const sketch = &sum->sketch;
    const double n = (double)(sketch->count + n_zeros);
    *out = (struct marey__stopwatch_stats){.count = sketch->count + n_zeros};
    if (out->count == 0)
        return;
    out->total = (double)sketch->sum * scale;
    out->mean = out->total / n;
    out->std = deviation(sum, (double)n_zeros) * scale;
    out->min = n_zeros > 0 ? 0 : (double)sketch->min * scale;
    out->max = sketch->count > 0 ? (double)sketch->max * scale : 0;
    out->p50 = (double)marey__sketch_quantile_with_zeros(sketch, n_zeros, 0.50) * scale;
    out->p90 = (double)marey__sketch_quantile_with_zeros(sketch, n_zeros, 0.90) * scale;
    out->p99 = (double)marey__sketch_quantile_with_zeros(sketch, n_zeros, 0.99) * scale;
    out->self = (double)sum->self * scale;
}

/* Updates only if the new value is ten times as accurate, so that consecutive tables agree. */
void marey__stopwatch_know_tick(void)
{
    struct marey__stopwatch_state *const watch = &marey__stopwatch_state;
    enum { ENOUGH_NS = 200000, BETTER = 10 }; /* accurate to about 1e-4; after a second to 1e-7 */
    struct marey__moment now;
    if (!watch->is_tsc) {
        watch->tick_ns = 1;
        return;
    }
    do
        marey__clock_moment(true, &now);
    while (now.monotonic_ns - watch->begun.monotonic_ns < ENOUGH_NS);
    const uint64_t baseline_ns = now.monotonic_ns - watch->begun.monotonic_ns;
    if (baseline_ns / BETTER >= watch->tick_baseline_ns) {
        watch->tick_ns = (double)baseline_ns / (double)(now.tick - watch->begun.tick);
        watch->tick_baseline_ns = baseline_ns;
    }
}
