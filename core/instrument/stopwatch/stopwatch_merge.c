/*
 * Results passed between processes: packed, read and merged. docs/formats/stopwatch.md describes the bytes. They come
 * from other processes: everything is checked before anything is added, so that a damaged part changes nothing.
 */
#include <math.h>
#include <string.h>

#include "instrument/stopwatch/internal.h"

/* ---- the bytes, little-endian ---- */

#define MAGIC "mareyW1\n"
struct packed_head {
    char magic[8];
    uint32_t n_names;
    int64_t rank;
    uint64_t n_measured;
} __attribute__((packed));
struct packed_spread {
    uint64_t count;
    double total, m2, min, max;
    uint32_t n_points;
} __attribute__((packed));
static_assert(sizeof(struct packed_head) == 28 && sizeof(struct packed_spread) == 44 &&
                  sizeof(struct marey__point) == 12,
              "as docs/formats/stopwatch.md has it");

/* ---- durations, in a form that can be merged ---- */

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

struct collected {
    struct marey__spread spread;
    double scale;
    bool failed;
};

static void collect(void *ctx, uint64_t value, uint64_t count)
{
    struct collected *const c = ctx;
    const struct marey__point point = {marey__point_key((double)value * c->scale), count};
    c->failed |= !MAREY__PUSH(c->spread.points, c->spread.n, c->spread.cap, point);
}

MAREY__ORDER(by_key, struct marey__point, MAREY__UP(key))

/* Sorts points and merges those with equal keys. Returns how many values they represent. */
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
    /* Another thread may have added to its sketch during the merge: use the count of the points. */
    out->count = order_points(out);
    out->total = stats.total;
    out->m2 = out->count > 1 ? stats.std * stats.std * (double)(out->count - 1) : 0;
    out->min = stats.min;
    out->max = stats.max;
    return true;
}

/* Merges two lists of points into `out`, which has room. Returns how many, 0 if a count overflows. */
static size_t merge_points(const struct marey__spread *a, const struct marey__spread *b,
                           struct marey__point *out)
{
    size_t i = 0, k = 0, n = 0;
    while (i < a->n || k < b->n) {
        const bool has_a = i < a->n && (k == b->n || a->points[i].key <= b->points[k].key);
        const bool has_b = k < b->n && (i == a->n || b->points[k].key <= a->points[i].key);
        const uint64_t from_a = has_a ? a->points[i].count : 0;
        const uint64_t from_b = has_b ? b->points[k].count : 0;
        uint64_t count;
        if (__builtin_add_overflow(from_a, from_b, &count))
            return 0;
        out[n++] = (struct marey__point){has_a ? a->points[i].key : b->points[k].key, count};
        i += has_a;
        k += has_b;
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

double marey__spread_mean(const struct marey__spread *spread)
{
    return spread->count != 0 ? spread->total / (double)spread->count : 0;
}

/* The sample standard deviation; 0 for one value. */
double marey__spread_std(const struct marey__spread *spread)
{
    return spread->count > 1 ? marey__stopwatch_square_root(spread->m2 / (double)(spread->count - 1))
                             : 0;
}

double marey__spread_quantile(const struct marey__spread *spread, double q)
{
    /* The nearest rank, as in marey__sketch_quantile(). */
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

/* ---- writing ---- */

/* Writes a sum and `n_zeros` zeros. False on out of memory. */
static bool put_sum(struct marey__buf *out, const struct marey__stopwatch_sum *sum,
                    uint64_t n_zeros, double scale)
{
    struct marey__spread spread MAREY__FINALLY(marey__spread_fini) = {0};
    if (!marey__spread_of(sum, n_zeros, scale, &spread))
        return false;
    const struct packed_spread packed = {.count = spread.count,
                                         .total = spread.total,
                                         .m2 = spread.m2,
                                         .min = spread.min,
                                         .max = spread.max,
                                         .n_points = (uint32_t)spread.n};
    marey__buf_put(out, &packed, sizeof packed);
    marey__buf_put(out, spread.points, spread.n * sizeof *spread.points);
    return true;
}

static bool put_name(struct marey__buf *out, const char *name, size_t len)
{
    const uint32_t len32 = (uint32_t)len;
    marey__buf_put(out, &len32, sizeof len32);
    marey__buf_put(out, name, len);
    return len <= UINT32_MAX;
}

/* Caller holds the lock, here and below. */
static bool put_slot(struct marey__buf *out, const struct marey__stopwatch_slot *slot)
{
    size_t len;
    const char *const name = marey_site_name(slot->id, &len);
    struct marey__stopwatch_sum sum MAREY__FINALLY(marey__stopwatch_sum_clear) = {0};
    uint64_t n_threads;
    const struct marey__stopwatch_sum *const periods = &slot->periods.sum;
    const struct marey__stopwatch_state *const watch = &marey__stopwatch_state;
    return put_name(out, name, len) && marey__stopwatch_sum_of_threads(slot, &sum, &n_threads) &&
           put_sum(out, &sum, 0, watch->tick_ns) &&
           put_sum(out, periods, watch->n_measured - periods->sketch.count, watch->tick_ns);
}

static bool put_results(struct marey__buf *out, int64_t rank)
{
    static const struct marey__stopwatch_sum nothing;
    const struct marey__stopwatch_state *const watch = &marey__stopwatch_state;
    const bool has_whole = watch->n_measured > 0;
    marey__stopwatch_know_tick();
    const struct packed_head head = {.magic = MAGIC,
                                     .n_names = (uint32_t)(watch->listed.n + has_whole),
                                     .rank = rank,
                                     .n_measured = watch->n_measured};
    marey__buf_put(out, &head, sizeof head);
    if (has_whole && (!put_name(out, MAREY__STOPWATCH_WHOLE, strlen(MAREY__STOPWATCH_WHOLE)) ||
                      !put_sum(out, &nothing, 0, 1) || !put_sum(out, &watch->whole.sum, 0, 1)))
        return false;
    for (size_t i = 0; i < watch->listed.n; i++)
        if (!put_slot(out, watch->listed.all[i]))
            return false;
    return !out->failed;
}

marey_status marey_stopwatch_pack(int64_t rank, void **data, size_t *len)
{
    struct marey__buf out MAREY__FINALLY(marey__buf_fini) = {0};
    MAREY__STOPWATCH_HOLD();
    MAREY__TRY_MEMORY(put_results(&out, rank));
    *data = out.data;
    *len = out.len;
    out.data = NULL; /* now owned by the caller */
    return MAREY_OK;
}

/* ---- reading ---- */

struct input {
    const unsigned char *at, *end;
};

static bool take(struct input *in, void *out, size_t len)
{
    if ((size_t)(in->end - in->at) < len) {
        in->at = in->end;
        return false;
    }
    memcpy(out, in->at, len);
    in->at += len;
    return true;
}

static bool is_duration(double ns)
{
    return ns >= 0 && isfinite(ns);
}

/* Reads the points: ascending keys, counts that add up. */
static bool take_points(struct input *in, struct marey__spread *out)
{
    uint64_t sum = 0;
    if (!take(in, out->points, out->n * sizeof *out->points))
        return false;
    for (size_t i = 0; i < out->n; i++) {
        const struct marey__point *const point = &out->points[i];
        if (point->key > MAREY__POINT_MAX_KEY || point->count == 0 ||
            (i > 0 && point->key <= point[-1].key) || __builtin_add_overflow(sum, point->count, &sum))
            return false;
    }
    return sum == out->count;
}

/* Reads a spread, which the caller must fini in any case. False for invalid bytes, or with `*status` on out of memory. */
static bool take_spread(struct input *in, struct marey__spread *out, marey_status *status)
{
    struct packed_spread packed;
    if (!take(in, &packed, sizeof packed) || !is_duration(packed.total) || !is_duration(packed.m2) ||
        !is_duration(packed.min) || !is_duration(packed.max) || packed.min > packed.max ||
        packed.n_points > (size_t)(in->end - in->at) / sizeof(struct marey__point))
        return false;
    *out = (struct marey__spread){.count = packed.count,
                                  .total = packed.total,
                                  .m2 = packed.m2,
                                  .min = packed.min,
                                  .max = packed.max,
                                  .n = packed.n_points,
                                  .cap = packed.n_points};
    out->points = marey__calloc(out->cap + 1, sizeof *out->points);
    if (out->points == NULL) {
        *status = marey__no_memory();
        return false;
    }
    return take_points(in, out);
}

/* ---- adding ---- */

/* One name over all ranks. */
struct merged_name {
    char *name; /* owned */
    size_t len;
    struct marey__spread intervals, iterations;
    uint64_t n_ranks;             /* that have it */
    double least, most, of_means; /* minimum, maximum and sum of the ranks' means per iteration */
    int64_t slowest;              /* the rank with `most` */
};

struct marey_stopwatch_merged {
    struct merged_name *names; /* in insertion order */
    size_t n, cap;
};

marey_status marey_stopwatch_merged_create(marey_stopwatch_merged **out)
{
    *out = marey__calloc(1, sizeof **out);
    return *out != NULL ? MAREY_OK : marey__no_memory();
}

void marey_stopwatch_merged_destroy(marey_stopwatch_merged *merged)
{
    if (merged == NULL)
        return;
    for (size_t i = 0; i < merged->n; i++) {
        marey__spread_fini(&merged->names[i].intervals);
        marey__spread_fini(&merged->names[i].iterations);
        marey__free(merged->names[i].name);
    }
    MAREY__FREE_ALL(merged->names, merged);
}

/* The entry of a name, created if missing. Ranks have similar orders of names, so `hint` is tried first. */
static struct merged_name *name_get(marey_stopwatch_merged *merged, const char *name, size_t len,
                                    size_t hint)
{
    for (size_t i = 0; i <= merged->n; i++) {
        const size_t k = i == 0 ? hint : i - 1;
        if (k < merged->n && merged->names[k].len == len &&
            memcmp(merged->names[k].name, name, len) == 0)
            return &merged->names[k];
    }
    char *copy = marey__strndup(name, len);
    if (copy == NULL || !MAREY__PUSH(merged->names, merged->n, merged->cap,
                                     (struct merged_name){.name = copy, .len = len})) {
        marey__free(copy);
        return NULL;
    }
    return &merged->names[merged->n - 1];
}

/* Adds one rank's results for a name. False on out of memory. */
static bool name_add(struct merged_name *name, int64_t rank, const struct marey__spread *intervals,
                     const struct marey__spread *iterations)
{
    if (!marey__spread_merge(&name->intervals, intervals) ||
        !marey__spread_merge(&name->iterations, iterations))
        return false;
    if (iterations->count == 0)
        return true;
    const double mean = marey__spread_mean(iterations);
    if (name->n_ranks == 0 || mean < name->least)
        name->least = mean;
    if (name->n_ranks == 0 || mean > name->most) {
        name->most = mean;
        name->slowest = rank;
    }
    name->of_means += mean;
    name->n_ranks++;
    return true;
}

/* Reads one name of the part; adds it unless `merged` is NULL. False for invalid bytes, or because of `*status`. */
static bool take_name(struct input *in, size_t number, int64_t rank, marey_stopwatch_merged *merged,
                      marey_status *status)
{
    struct marey__spread intervals MAREY__FINALLY(marey__spread_fini) = {0};
    struct marey__spread iterations MAREY__FINALLY(marey__spread_fini) = {0};
    uint32_t len;
    if (!take(in, &len, sizeof len) || len > (size_t)(in->end - in->at))
        return false;
    const char *const text = (const char *)in->at;
    in->at += len;
    if (!take_spread(in, &intervals, status) || !take_spread(in, &iterations, status))
        return false;
    if (merged == NULL)
        return true;
    struct merged_name *const name = name_get(merged, text, len, number);
    if (name != NULL && name_add(name, rank, &intervals, &iterations))
        return true;
    *status = marey__no_memory();
    return false;
}

/* Reads everything: with `merged` NULL only to validate it. */
static marey_status read_part(const void *data, size_t len, marey_stopwatch_merged *merged)
{
    struct input in = {.at = data, .end = (const unsigned char *)data + len};
    struct packed_head head;
    if (!take(&in, &head, sizeof head) || memcmp(head.magic, MAGIC, sizeof head.magic) != 0)
        return marey__fail(MAREY_EFORMAT, "these %zu bytes are not results of a stopwatch", len);
    marey_status status = MAREY_OK;
    bool ok = true;
    for (size_t i = 0; ok && i < head.n_names; i++)
        ok = take_name(&in, i, head.rank, merged, &status);
    if (status != MAREY_OK)
        return status;
    if (!ok || in.at != in.end)
        return marey__fail(MAREY_EFORMAT, "the results of rank %lld are damaged at byte %zu of %zu",
                           (long long)head.rank, len - (size_t)(in.end - in.at), len);
    return MAREY_OK;
}

marey_status marey_stopwatch_merged_add(marey_stopwatch_merged *merged, const void *data, size_t len)
{
    MAREY_TRY(read_part(data, len, NULL));
    return read_part(data, len, merged);
}

/* ---- tables ---- */

static const struct marey_column ranks_columns[] = {
    {"name", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"ranks", NULL, MAREY_TYPE_U64, MAREY_UNIT_COUNT},
    {"min_ns", "min", MAREY_TYPE_F64, MAREY_UNIT_NS},
    {"mean_ns", "mean", MAREY_TYPE_F64, MAREY_UNIT_NS},
    {"max_ns", "max", MAREY_TYPE_F64, MAREY_UNIT_NS},
    {"slowest_rank", "slowest", MAREY_TYPE_I64, MAREY_UNIT_NONE},
    {"imbalance", NULL, MAREY_TYPE_F64, MAREY_UNIT_SHARE},
};

static void put_ranks(marey_table *table, const struct merged_name *name)
{
    if (name->n_ranks == 0)
        return;
    const double mean = name->of_means / (double)name->n_ranks;
    marey_table_text(table, name->name, name->len);
    marey_table_u64(table, name->n_ranks);
    MAREY__PUT_REALS(table, name->least, mean, name->most);
    marey_table_i64(table, name->slowest);
    MAREY__PUT_REALS(table, mean > 0 ? name->most / mean - 1 : 0);
}

static const struct marey_column spread_columns[] = {
    {"name", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"ranks", NULL, MAREY_TYPE_U64, MAREY_UNIT_COUNT},
    {"count", NULL, MAREY_TYPE_U64, MAREY_UNIT_COUNT},
    {"total_ns", "total", MAREY_TYPE_F64, MAREY_UNIT_NS},
    {"mean_ns", "mean", MAREY_TYPE_F64, MAREY_UNIT_NS},
    {"std_ns", "std", MAREY_TYPE_F64, MAREY_UNIT_NS},
    {"min_ns", "min", MAREY_TYPE_F64, MAREY_UNIT_NS},
    {"p50_ns", "p50", MAREY_TYPE_F64, MAREY_UNIT_NS},
    {"p90_ns", "p90", MAREY_TYPE_F64, MAREY_UNIT_NS},
    {"p99_ns", "p99", MAREY_TYPE_F64, MAREY_UNIT_NS},
    {"max_ns", "max", MAREY_TYPE_F64, MAREY_UNIT_NS},
};

static void put_spread(marey_table *table, const struct merged_name *name,
                       const struct marey__spread *spread)
{
    marey_table_text(table, name->name, name->len);
    MAREY__PUT_COUNTS(table, name->n_ranks, spread->count);
    MAREY__PUT_REALS(table, spread->total, marey__spread_mean(spread), marey__spread_std(spread),
                     spread->min, marey__spread_quantile(spread, 0.5),
                     marey__spread_quantile(spread, 0.9), marey__spread_quantile(spread, 0.99),
                     spread->max);
}

marey_status marey_stopwatch_merged_table(const marey_stopwatch_merged *merged, const char *name,
                                          marey_table **out)
{
    const bool is_ranks = strcmp(name, "ranks") == 0, is_intervals = strcmp(name, "intervals") == 0;
    if (!is_ranks && !is_intervals && strcmp(name, "iterations") != 0)
        return marey__fail(MAREY_EINVAL,
                           "merged results have no table %s; there are ranks, intervals and "
                           "iterations",
                           name);
    marey_table *table;
    MAREY_TRY(marey_table_create(
        name, is_ranks ? ranks_columns : spread_columns,
        is_ranks ? MAREY__COUNT_OF(ranks_columns) : MAREY__COUNT_OF(spread_columns), &table));
    for (size_t i = 0; i < merged->n; i++) {
        const struct merged_name *const of = &merged->names[i];
        if (is_ranks)
            put_ranks(table, of);
        else
            put_spread(table, of, is_intervals ? &of->intervals : &of->iterations);
    }
    const marey_status status = marey_table_status(table);
    if (status != MAREY_OK)
        marey_table_destroy(table);
    else
        *out = table;
    return status;
}
