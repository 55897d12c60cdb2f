/*
 * Finds growth. Points are taken at the ends of iterations, where a loop without leaks always holds the same memory;
 * without iterations, at even times. Warm-up is excluded: the first fifth, and imports. The line through the points
 * uses medians, so that an occasional checkpoint does not tilt it. Growth counts as a leak only if it continues to the
 * end.
 */
#include <math.h>

#include "analyze/memory/internal.h"

enum { N_SLICES = 50, LEAST_POINTS = 8, LEAST_GROWTH = 1 << 20, NS_A_SECOND = 1000000000 };

/* Theil-Sen slope, with Kendall's interval. */
bool marey__memory_line(const double *y, size_t n, struct marey__memory_line *out)
{
    const size_t n_slopes = n * (n - 1) / 2;
    double *const slopes MAREY__FREED = marey__alloc(n_slopes * sizeof *slopes);
    size_t k = 0;
    if (slopes == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            slopes[k++] = (y[j] - y[i]) / (double)(j - i);
    qsort(slopes, n_slopes, sizeof *slopes, marey__compare_f64);
    const double points = (double)n;
    const double spread = 1.96 * sqrt(points * (points - 1) * (2 * points + 5) / 18);
    const double low = floor(((double)n_slopes - spread) / 2),
                 high = ceil(((double)n_slopes + spread) / 2);
    out->slope = (slopes[(n_slopes - 1) / 2] + slopes[n_slopes / 2]) / 2;
    out->low = slopes[(size_t)fmax(low, 0)];
    out->high = slopes[(size_t)fmin(high, (double)(n_slopes - 1))];
    return true;
}

/* ---- the timestamps ---- */

struct moments {
    uint64_t ns[MAREY__LINE_POINTS];
    size_t n;
    double per; /* iterations, or seconds, between two points */
    const char *unit;
};

/* Whether a stack is in an import, whose allocations are permanent and belong to start-up. */
static bool is_import(const struct marey__memory_report *report, uint32_t stack)
{
    if (stack >= report->n_stacks)
        return false;
    for (size_t i = 0; i < report->stacks[stack].n; i++) {
        const struct marey__name *const name =
            &report->names.names[report->frames[report->stacks[stack].first + i]];
        if (memmem(name->text, name->len, "<frozen importlib", 17) != NULL)
            return true;
    }
    return false;
}

/*
 * When imports had made all but a twentieth of their allocations; the start if there were none. Blocks are sorted by
 * begin.
 */
static uint64_t end_of_imports(const struct marey__memory_report *report,
                               const struct marey__memory_pool *pool)
{
    double whole = 0, sum = 0;
    for (size_t i = 0; i < pool->n_blocks; i++)
        whole += is_import(report, pool->blocks[i].stack) ? pool->blocks[i].bytes : 0;
    for (size_t i = 0; whole > 0 && i < pool->n_blocks; i++) {
        sum += is_import(report, pool->blocks[i].stack) ? pool->blocks[i].bytes : 0;
        if (sum >= 0.95 * whole)
            return pool->blocks[i].begin_ns;
    }
    return pool->first_ns;
}

/* The first fifth is warm-up: caches fill, buffers get their sizes. */
static void choose_iterations(const struct marey__memory_pool *pool, struct moments *m)
{
    const size_t skip = MAREY__MIN(pool->iterations.n / 5, pool->iterations.n - LEAST_POINTS),
                 n = pool->iterations.n - skip, n_points = MAREY__MIN(n, (size_t)MAREY__LINE_POINTS);
    for (size_t i = 0; i < n_points; i++)
        m->ns[m->n++] = pool->iterations.at[skip + i * (n - 1) / (n_points - 1)].end_ns;
    m->per = (double)(n - 1) / (double)(n_points - 1);
    m->unit = "iteration";
}

static void choose_times(const struct marey__memory_report *report,
                         const struct marey__memory_pool *pool, struct moments *m)
{
    const uint64_t whole = pool->last_ns - pool->first_ns,
                   begin = MAREY__MAX(pool->first_ns + whole / 5, end_of_imports(report, pool));
    /* A shorter time is start-up and allows no extrapolation to a second. */
    if (whole < NS_A_SECOND || pool->last_ns - begin < NS_A_SECOND / 2)
        return;
    const double span = (double)(pool->last_ns - begin);
    for (size_t i = 0; i < N_SLICES; i++) /* without the very end, where a program frees memory */
        m->ns[m->n++] = begin + (uint64_t)(span * ((double)i + 0.5) / N_SLICES);
    m->per = span / N_SLICES / 1e9;
    m->unit = "second";
}

static void choose_moments(const struct marey__memory_report *report,
                           const struct marey__memory_pool *pool, struct moments *m)
{
    m->n = 0;
    if (pool->iterations.n >= LEAST_POINTS)
        choose_iterations(pool, m);
    else if (!pool->is_ordered && pool->last_ns > pool->first_ns)
        choose_times(report, pool, m);
}

/* The number of timestamps before `ns`. */
static size_t n_before(const struct moments *m, uint64_t ns)
{
    size_t n;
    MAREY__BISECT(n, 0, m->n, m->ns[n] < ns);
    return n;
}

/* ---- rows ---- */

/* Memory allocated at one place. */
struct grown {
    double bytes, largest;
    uint32_t where, stack; /* of its largest block */
};

/*
 * The number of points before an ending program frees its memory: excludes points in the last tenth far below the
 * maximum.
 */
static size_t n_until_teardown(const double *y, size_t n)
{
    const size_t fewest = n - n / 10;
    double most = y[0];
    for (size_t i = 1; i < n; i++)
        most = fmax(most, y[i]);
    while (n > fewest && y[n - 1] < 0.9 * most)
        n--;
    return n;
}

static double least_of(const double *y, size_t n)
{
    double least = y[0];
    for (size_t i = 1; i < n; i++)
        least = fmin(least, y[i]);
    return least;
}

/*
 * Whether `n` points grow until the end: a cache that fills and stops is flat in the last half or quarter, and
 * temporary growth returns to its floor. `blur`: possible error of the samples in a half. Returns false on out of
 * memory, also in `*is`.
 */
static bool persists(const double *y, size_t n, double slope, double blur, bool *is)
{
    const size_t half = n / 2, quarter = MAREY__MAX(n / 4, (size_t)3);
    struct marey__memory_line later, last;
    *is = false;
    if (!marey__memory_line(y + half, n - half, &later) ||
        !marey__memory_line(y + n - quarter, quarter, &last))
        return false;
    const double floors = least_of(y + half, n - half) - least_of(y, half),
                 grown = last.slope * (double)quarter;
    *is = later.low > 0 && floors + blur >= slope * (double)half / 2 &&
          grown + blur >= slope * (double)quarter / 4;
    return true;
}

static bool put_row(struct marey__memory_report *report, const struct marey__memory_pool *pool,
                    const struct moments *m, const double *y, const char *what,
                    const struct grown *grown, double deviation)
{
    marey_table *const table = report->tables[MAREY__MEMORY_GROWTH];
    struct marey__memory_line line;
    bool is_to_the_end;
    /* Iterations end before the program frees its memory. */
    const size_t n = pool->iterations.n >= LEAST_POINTS ? m->n : n_until_teardown(y, m->n);
    if (!marey__memory_line(y, n, &line) || !persists(y, n, line.slope, deviation, &is_to_the_end))
        return false;
    if (grown != NULL && line.slope <= 0)
        return true;
    /* The error of the samples at the end, as a slope. */
    const double blur = 2 * deviation / (double)(n - 1);
    line.low -= blur;
    line.high += blur;
    const double total = line.slope * (double)(n - 1);
    const double least = fmax(LEAST_GROWTH, fmax(3 * deviation, pool->peak_bytes / 50));
    MAREY__PUT_ROW(table, MAREY__MEMORY_WHOSE(pool), STRING(what), STRING(m->unit),
                   F64(line.slope / m->per), F64(line.low / m->per), F64(line.high / m->per),
                   F64(total), U64(n), TRUTH(line.low > 0 && is_to_the_end && total > least),
                   KNOWN(grown != NULL, MAREY__MEMORY_NAME(report, grown->where)));
    marey__memory_put_stack(table, report, grown != NULL ? grown->stack : MAREY__NO_STACK);
    return true;
}

/* Live bytes of one place, or of all, at each timestamp. */
static double series_of(const struct marey__memory_pool *pool, const struct moments *m,
                        uint32_t where, bool is_all, double *y)
{
    double variance = 0;
    memset(y, 0, (m->n + 1) * sizeof *y);
    for (size_t i = 0; i < pool->n_blocks; i++) {
        const struct marey__held_block *const block = &pool->blocks[i];
        if (!is_all && block->where != where)
            continue;
        const size_t from = n_before(m, block->begin_ns),
                     to = block->end_ns == MAREY__ALIVE ? m->n : n_before(m, block->end_ns);
        y[from] += block->bytes;
        y[to] -= block->bytes;
        variance += to == m->n && from < m->n ? block->variance : 0;
    }
    for (size_t i = 1; i < m->n; i++)
        y[i] += y[i - 1];
    return sqrt(variance);
}

MAREY__ORDER(by_growth, struct grown, MAREY__DOWN(bytes) MAREY__UP(where))

/*
 * Places sorted by the increase of their live memory from the first timestamp to a late one. The last one is not used:
 * an ending program may have freed everything by then.
 */
static struct grown *rank_places(const struct marey__memory_report *report,
                                 const struct marey__memory_pool *pool, const struct moments *m)
{
    struct grown *const grown = marey__calloc(report->names.n, sizeof *grown);
    if (grown == NULL)
        return NULL;
    for (size_t i = 0; i < report->names.n; i++)
        grown[i] = (struct grown){.where = (uint32_t)i, .stack = MAREY__NO_STACK};
    for (size_t i = 0; i < pool->n_blocks; i++) {
        const struct marey__held_block *const block = &pool->blocks[i];
        struct grown *const place = &grown[block->where];
        if (block->stack >= report->n_stacks)
            continue;
        const uint64_t first = m->ns[0], last = m->ns[m->n * 3 / 4];
        if (block->begin_ns <= last && last < block->end_ns)
            place->bytes += block->bytes;
        if (block->begin_ns <= first && first < block->end_ns)
            place->bytes -= block->bytes;
        if (block->bytes > place->largest) {
            place->largest = block->bytes;
            place->stack = block->stack;
        }
    }
    qsort(grown, report->names.n, sizeof *grown, by_growth);
    return grown;
}

static bool put_places(struct marey__memory_report *report, const struct marey__memory_pool *pool,
                       const struct moments *m, double *y)
{
    struct grown *const grown MAREY__FREED = rank_places(report, pool, m);
    const size_t n = MAREY__MIN(report->names.n, (size_t)report->options.n_stacks);
    bool done = grown != NULL;
    for (size_t i = 0; done && i < n && grown[i].bytes > 0; i++) {
        const double deviation = series_of(pool, m, grown[i].where, false, y);
        done = put_row(report, pool, m, y, "stack", &grown[i], deviation);
    }
    return done;
}

static bool put_resident(struct marey__memory_report *report, const struct marey__memory_pool *pool,
                         const struct moments *m, double *y)
{
    const struct marey__memory_readings *const readings = &pool->resident;
    size_t at = 0;
    if (readings->n < LEAST_POINTS)
        return true;
    for (size_t i = 0; i < m->n; i++) {
        while (at + 1 < readings->n && readings->at[at + 1].ns <= m->ns[i])
            at++;
        y[i] = readings->at[at].bytes;
    }
    return put_row(report, pool, m, y, "resident", NULL, 0);
}

bool marey__memory_put_growth(struct marey__memory_report *report,
                              const struct marey__memory_pool *pool)
{
    struct moments *const m MAREY__FREED = marey__calloc(1, sizeof *m);
    double *const y MAREY__FREED = marey__calloc(MAREY__LINE_POINTS + 1, sizeof *y);
    if (m == NULL || y == NULL)
        return false;
    choose_moments(report, pool, m);
    if (m->n < LEAST_POINTS && pool->has_segments && !pool->is_ordered)
        marey__put_note(
            report->tables[MAREY__MEMORY_NOTES],
            "%s: no growth is reported: the history has %zu iterations in %.3g s, and %d "
            "iterations or a second are needed",
            pool->device, pool->iterations.n, (double)(pool->last_ns - pool->first_ns) / 1e9,
            LEAST_POINTS);
    if (m->n < LEAST_POINTS)
        return true;
    if (pool->n_blocks != 0 &&
        !put_row(report, pool, m, y, "live", NULL, series_of(pool, m, 0, true, y)))
        return false;
    return put_resident(report, pool, m, y) &&
           (pool->n_blocks == 0 || put_places(report, pool, m, y));
}
