/*
 * The results of several processes as one. Bytes come from another process: all of them are checked before any is added,
 * so that a damaged part changes nothing.
 */
#include <math.h>
#include <string.h>

#include "instrument/stopwatch/internal.h"
#include <marey/stopwatch.h>

/* One name over the ranks. */
struct merged_name {
    char *name; /* owned */
    size_t len;
    struct marey__spread intervals, iterations;
    uint64_t n_ranks;             /* in which it occurred */
    double least, most, of_means; /* of the ranks' means per iteration; their sum */
    int64_t slowest;              /* the rank of `most` */
};

struct marey_stopwatch_merged {
    struct merged_name *names; /* in the order in which they came */
    size_t n, cap;
};

marey_status marey_stopwatch_merged_create(marey_stopwatch_merged **out)
{
    marey_stopwatch_merged *merged = marey__calloc(1, sizeof *merged);
    MAREY__TRY_MEMORY(merged != NULL);
    *out = merged;
    return MAREY_OK;
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
    marey__free(merged->names);
    marey__free(merged);
}

/* ---- reading ---- */

struct input {
    const unsigned char *at, *end;
    bool is_short;
};

static void take(struct input *in, void *out, size_t len)
{
    if ((size_t)(in->end - in->at) < len) {
        in->is_short = true;
        in->at = in->end;
        memset(out, 0, len);
        return;
    }
    memcpy(out, in->at, len);
    in->at += len;
}

static uint32_t take_u32(struct input *in)
{
    unsigned char b[4];
    take(in, b, sizeof b);
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint64_t take_u64(struct input *in)
{
    const uint64_t low = take_u32(in);
    return low | (uint64_t)take_u32(in) << 32;
}

static double take_f64(struct input *in)
{
    const uint64_t bits = take_u64(in);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool is_duration(double ns)
{
    return ns >= 0 && isfinite(ns);
}

/* The points, each key above the one before, counts that add up. */
static bool take_points(struct input *in, struct marey__spread *out)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < out->cap; i++) {
        const struct marey__point point = {.key = take_u32(in), .count = take_u64(in)};
        if (in->is_short || point.key > MAREY__POINT_MAX_KEY || point.count == 0 ||
            (i > 0 && point.key <= out->points[i - 1].key) ||
            __builtin_add_overflow(sum, point.count, &sum))
            return false;
        out->points[i] = point;
        out->n = i + 1;
    }
    return sum == out->count;
}

/* A spread; the caller finishes it, whatever is returned. False when the bytes are none. `*status` for lack of memory. */
static bool take_spread(struct input *in, struct marey__spread *out, marey_status *status)
{
    *out = (struct marey__spread){.count = take_u64(in),
                                  .total = take_f64(in),
                                  .m2 = take_f64(in),
                                  .min = take_f64(in),
                                  .max = take_f64(in)};
    const size_t n = take_u32(in);
    if (in->is_short || !is_duration(out->total) || !is_duration(out->m2) ||
        !is_duration(out->min) || !is_duration(out->max) || out->min > out->max ||
        n > (size_t)(in->end - in->at) / MAREY__PACK_POINT)
        return false;
    out->points = marey__calloc(n + 1, sizeof *out->points);
    if (out->points == NULL) {
        *status = marey__no_memory();
        return false;
    }
    out->cap = n;
    return take_points(in, out);
}

/* ---- adding ---- */

/* The entry of a name, made if need be. Ranks have their names in much the same order, so `hint` is tried first. */
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
    if (copy == NULL ||
        !marey__grow(&merged->names, &merged->cap, merged->n + 1, sizeof *merged->names)) {
        marey__free(copy);
        return NULL;
    }
    merged->names[merged->n] = (struct merged_name){.name = copy, .len = len};
    return &merged->names[merged->n++];
}

/* One rank's share in a name. False without memory. */
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

/* One name of the part; added to `merged` unless that is NULL. False when the bytes are none, or for `*status`. */
static bool take_name(struct input *in, size_t number, int64_t rank, marey_stopwatch_merged *merged,
                      marey_status *status)
{
    struct marey__spread intervals = {0}, iterations = {0};
    const size_t len = take_u32(in);
    bool ok = !in->is_short && len <= (size_t)(in->end - in->at);
    if (ok) {
        const char *text = (const char *)in->at;
        in->at += len;
        ok = take_spread(in, &intervals, status) && take_spread(in, &iterations, status);
        if (ok && merged != NULL) {
            struct merged_name *name = name_get(merged, text, len, number);
            ok = name != NULL && name_add(name, rank, &intervals, &iterations);
            if (!ok)
                *status = marey__no_memory();
        }
    }
    marey__spread_fini(&intervals);
    marey__spread_fini(&iterations);
    return ok;
}

/* Read all of it; into nothing, to see whether it can be read, or into `merged`. */
static marey_status read_part(const void *data, size_t len, marey_stopwatch_merged *merged)
{
    static const char magic[] = MAREY__PACK_MAGIC;
    struct input in = {.at = data, .end = (const unsigned char *)data + len};
    if (len < MAREY__PACK_HEAD || memcmp(data, magic, sizeof magic - 1) != 0)
        return marey__fail(MAREY_EFORMAT, "these %zu bytes are no results of a stopwatch", len);
    in.at += sizeof magic - 1;
    const size_t n = take_u32(&in);
    const int64_t rank = (int64_t)take_u64(&in);
    take_u64(&in); /* how many iterations were measured: each name says it as well */
    marey_status status = MAREY_OK;
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = take_name(&in, i, rank, merged, &status);
    if (status != MAREY_OK)
        return status;
    if (!ok || in.at != in.end)
        return marey__fail(MAREY_EFORMAT, "the results of rank %lld are damaged at byte %zu of %zu",
                           (long long)rank, len - (size_t)(in.end - in.at), len);
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
    marey_table_f64(table, name->least);
    marey_table_f64(table, mean);
    marey_table_f64(table, name->most);
    marey_table_i64(table, name->slowest);
    marey_table_f64(table, mean > 0 ? name->most / mean - 1 : 0);
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
    marey_table_u64(table, name->n_ranks);
    marey_table_u64(table, spread->count);
    marey_table_f64(table, spread->total);
    marey_table_f64(table, marey__spread_mean(spread));
    marey_table_f64(table, marey__spread_std(spread));
    marey_table_f64(table, spread->min);
    marey_table_f64(table, marey__spread_quantile(spread, 0.5));
    marey_table_f64(table, marey__spread_quantile(spread, 0.9));
    marey_table_f64(table, marey__spread_quantile(spread, 0.99));
    marey_table_f64(table, spread->max);
}

static void put_intervals(marey_table *table, const struct merged_name *name)
{
    put_spread(table, name, &name->intervals);
}

static void put_iterations(marey_table *table, const struct merged_name *name)
{
    put_spread(table, name, &name->iterations);
}

static const struct {
    const char *name;
    const struct marey_column *columns;
    size_t n_columns;
    void (*put)(marey_table *table, const struct merged_name *name);
} tables[] = {
    {"ranks", ranks_columns, MAREY__COUNT_OF(ranks_columns), put_ranks},
    {"intervals", spread_columns, MAREY__COUNT_OF(spread_columns), put_intervals},
    {"iterations", spread_columns, MAREY__COUNT_OF(spread_columns), put_iterations},
};

marey_status marey_stopwatch_merged_table(const marey_stopwatch_merged *merged, const char *name,
                                          marey_table **out)
{
    size_t t = 0;
    while (t < MAREY__COUNT_OF(tables) && strcmp(tables[t].name, name) != 0)
        t++;
    if (t == MAREY__COUNT_OF(tables))
        return marey__fail(MAREY_EINVAL,
                           "merged results have no table %s; there are ranks, intervals and "
                           "iterations",
                           name);
    marey_table *table;
    MAREY_TRY(marey_table_create(name, tables[t].columns, tables[t].n_columns, &table));
    for (size_t i = 0; i < merged->n; i++)
        tables[t].put(table, &merged->names[i]);
    const marey_status status = marey_table_status(table);
    if (status != MAREY_OK)
        marey_table_destroy(table);
    else
        *out = table;
    return status;
}
