/* How durations are spread, in a form that is added up without knowing whose they were. See stopwatch_merge.h. */
#include <string.h>

#include "instrument/stopwatch/internal.h"

uint32_t marey__point_key(double ns)
{
    const float value = (float)ns;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> MAREY__POINT_SHIFT;
}

double marey__point_value(uint32_t key)
{
    if (key == 0)
        return 0;
    const uint32_t bits = key << MAREY__POINT_SHIFT | 1u << (MAREY__POINT_SHIFT - 1);
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

void marey__spread_fini(struct marey__spread *spread)
{
    marey__free(spread->points);
    *spread = (struct marey__spread){0};
}

/* ---- of a sum ---- */

struct collected {
    struct marey__spread spread;
    double scale;
    bool failed;
};

static void collect(void *ctx, uint64_t value, uint64_t count)
{
    struct collected *const c = ctx;
    struct marey__spread *const s = &c->spread;
    if (!marey__grow(&s->points, &s->cap, s->n + 1, sizeof *s->points)) {
        c->failed = true;
        return;
    }
    s->points[s->n++] =
        (struct marey__point){.key = marey__point_key((double)value * c->scale), .count = count};
}

static int by_key(const void *a, const void *b)
{
    const uint32_t x = ((const struct marey__point *)a)->key;
    const uint32_t y = ((const struct marey__point *)b)->key;
    return (x > y) - (x < y);
}

/* Sort them, and make one of those that share a key. Returns how many values they stand for. */
static uint64_t order_points(struct marey__spread *s)
{
    uint64_t count = 0;
    size_t n = 0;
    if (s->n > 0)
        qsort(s->points, s->n, sizeof *s->points, by_key);
    for (size_t i = 0; i < s->n; i++) {
        count += s->points[i].count;
        if (n > 0 && s->points[n - 1].key == s->points[i].key)
            s->points[n - 1].count += s->points[i].count;
        else
            s->points[n++] = s->points[i];
    }
    s->n = n;
    return count;
}

bool marey__spread_of(const struct marey__stopwatch_sum *sum, uint64_t n_zeros, double scale,
                      struct marey__spread *out)
{
    struct collected c = {.scale = scale};
    struct marey__stopwatch_stats stats;
    marey__stopwatch_stats_of(sum, n_zeros, scale, &stats);
    if (n_zeros > 0)
        collect(&c, 0, n_zeros);
    marey__sketch_visit(&sum->sketch, collect, &c);
    if (c.failed) {
        marey__spread_fini(&c.spread);
        return false;
    }
    *out = c.spread;
    /* Another thread may have added to its sketch while it was merged: the points decide. */
    out->count = order_points(out);
    out->total = stats.total;
    out->m2 = out->count > 1 ? stats.std * stats.std * (double)(out->count - 1) : 0;
    out->min = stats.min;
    out->max = stats.max;
    return true;
}

/* ---- two as one ---- */

/* Both lists of points as one, into `out`, which has room. Returns how many, 0 when a count overflows. */
static size_t merge_points(const struct marey__spread *a, const struct marey__spread *b,
                           struct marey__point *out)
{
    size_t i = 0, k = 0, n = 0;
    while (i < a->n || k < b->n) {
        const bool has_a = i < a->n && (k == b->n || a->points[i].key <= b->points[k].key);
        const bool has_b = k < b->n && (i == a->n || b->points[k].key <= a->points[i].key);
        const uint64_t from_a = has_a ? a->points[i].count : 0;
        const uint64_t from_b = has_b ? b->points[k].count : 0;
        out[n].key = has_a ? a->points[i].key : b->points[k].key;
        if (__builtin_add_overflow(from_a, from_b, &out[n].count))
            return 0;
        i += has_a;
        k += has_b;
        n++;
    }
    return n;
}

bool marey__spread_merge(struct marey__spread *into, const struct marey__spread *from)
{
    uint64_t count;
    if (from->count == 0)
        return true;
    if (__builtin_add_overflow(into->count, from->count, &count))
        return false;
    struct marey__point *points = marey__calloc(into->n + from->n, sizeof *points);
    const size_t n = points != NULL ? merge_points(into, from, points) : 0;
    if (n == 0) {
        marey__free(points);
        return false;
    }
    const double na = (double)into->count, nb = (double)from->count;
    const double apart = marey__spread_mean(from) - marey__spread_mean(into);
    into->m2 += from->m2 + apart * apart * (na * nb / (na + nb));
    into->min = into->count == 0 ? from->min : MAREY__MIN(into->min, from->min);
    into->max = MAREY__MAX(into->max, from->max);
    into->total += from->total;
    into->count = count;
    marey__free(into->points);
    into->points = points;
    into->n = into->cap = n;
    return true;
}

/* ---- statistics ---- */

double marey__spread_mean(const struct marey__spread *spread)
{
    return spread->count != 0 ? spread->total / (double)spread->count : 0;
}

/* As for a sample; 0 of one value. */
double marey__spread_std(const struct marey__spread *spread)
{
    return spread->count > 1 ? marey__stopwatch_square_root(spread->m2 / (double)(spread->count - 1))
                             : 0;
}

double marey__spread_quantile(const struct marey__spread *spread, double q)
{
    /* The nearest rank, as marey__sketch_quantile() has it. */
    const double rank = q * (double)spread->count;
    double below = 0;
    for (size_t i = 0; i < spread->n; i++) {
        below += (double)spread->points[i].count;
        if (below >= rank) {
            const double value = MAREY__MAX(marey__point_value(spread->points[i].key), spread->min);
            return MAREY__MIN(value, spread->max);
        }
    }
    return spread->max;
}
