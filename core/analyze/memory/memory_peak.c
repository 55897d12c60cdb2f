/* The peak, live memory at the peak, and live memory over time. */
#include <math.h>

#include "analyze/memory/internal.h"

/* One change of live memory. */
struct edge {
    uint64_t ns;
    double bytes, alive; /* alive: afterwards */
};

/* At equal timestamps, releases come first. */
MAREY__ORDER(by_time, struct edge, MAREY__UP(ns) MAREY__UP(bytes))

MAREY__ORDER(by_begin, struct marey__held_block, MAREY__UP(begin_ns))

MAREY__ORDER(spans_by_begin, struct marey__held_span, MAREY__UP(begin_ns))

/* All changes in order of time; the caller frees them. NULL on out of memory, and without blocks. */
static struct edge *edges_of(const struct marey__memory_pool *pool, size_t *n)
{
    struct edge *const edges =
        pool->n_blocks != 0 ? marey__alloc(2 * pool->n_blocks * sizeof *edges) : NULL;
    *n = 0;
    if (edges == NULL)
        return NULL;
    for (size_t i = 0; i < pool->n_blocks; i++) {
        const struct marey__held_block *const block = &pool->blocks[i];
        edges[(*n)++] = (struct edge){block->begin_ns, block->bytes, 0};
        if (block->end_ns != MAREY__ALIVE)
            edges[(*n)++] = (struct edge){block->end_ns, -block->bytes, 0};
    }
    qsort(edges, *n, sizeof *edges, by_time);
    double alive = 0;
    for (size_t i = 0; i < *n; i++)
        edges[i].alive = alive += edges[i].bytes;
    return edges;
}

static bool is_alive(const struct marey__held_block *block, uint64_t ns)
{
    return block->begin_ns <= ns && ns < block->end_ns;
}

bool marey__memory_find_peak(struct marey__memory_pool *pool)
{
    size_t n;
    double variance = 0;
    if (pool->n_blocks == 0)
        return true;
    qsort(pool->blocks, pool->n_blocks, sizeof *pool->blocks, by_begin);
    if (pool->phases.n != 0)
        qsort(pool->phases.at, pool->phases.n, sizeof *pool->phases.at, spans_by_begin);
    struct edge *const edges MAREY__FREED = edges_of(pool, &n);
    if (edges == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        if (edges[i].alive > pool->peak_bytes) {
            pool->peak_bytes = edges[i].alive;
            pool->peak_ns = edges[i].ns;
        }
    pool->end_bytes = fmax(edges[n - 1].alive, 0);
    for (size_t i = 0; i < pool->n_blocks; i++)
        variance += is_alive(&pool->blocks[i], pool->peak_ns) ? pool->blocks[i].variance : 0;
    pool->peak_plus_minus = 2 * sqrt(variance);
    return true;
}

/* ---- phases ---- */

struct phase {
    uint64_t count;
    double peak, resident;
};

/* The maximum between two timestamps. Phases may be nested. */
static double highest(const struct edge *edges, size_t n, uint64_t begin_ns, uint64_t end_ns)
{
    size_t at;
    MAREY__BISECT(at, 0, n, edges[at].ns <= begin_ns);
    double most = at > 0 ? edges[at - 1].alive : 0;
    for (; at < n && edges[at].ns <= end_ns; at++)
        most = fmax(most, edges[at].alive);
    return most;
}

static double highest_reading(const struct marey__memory_readings *readings, size_t *at,
                              uint64_t begin_ns, uint64_t end_ns)
{
    double most = 0;
    while (*at < readings->n && readings->at[*at].ns < begin_ns)
        (*at)++;
    for (size_t i = *at; i < readings->n && readings->at[i].ns <= end_ns; i++)
        most = fmax(most, readings->at[i].bytes);
    return most;
}

static void put_phase_rows(struct marey__memory_report *report,
                           const struct marey__memory_pool *pool, const struct phase *phases)
{
    marey_table *const table = report->tables[MAREY__MEMORY_PHASES];
    for (uint32_t name = 0; name < report->names.n; name++) {
        if (phases[name].count == 0)
            continue;
        MAREY__PUT_ROW(table, MAREY__MEMORY_WHOSE(pool), MAREY__MEMORY_NAME(report, name),
                       U64(phases[name].count), KNOWN(pool->n_blocks != 0, FINITE(phases[name].peak)),
                       KNOWN(phases[name].resident > 0, FINITE(phases[name].resident)));
    }
}

bool marey__memory_put_phases(struct marey__memory_report *report,
                              const struct marey__memory_pool *pool)
{
    size_t n, reading = 0;
    if (pool->phases.n == 0)
        return true;
    struct phase *const phases MAREY__FREED = marey__calloc(report->names.n, sizeof *phases);
    struct edge *const edges MAREY__FREED = edges_of(pool, &n);
    if (phases == NULL || (edges == NULL && pool->n_blocks != 0))
        return false;
    for (size_t i = 0; i < pool->phases.n; i++) {
        const struct marey__held_span *const span = &pool->phases.at[i];
        struct phase *const phase = &phases[span->name];
        phase->count++;
        phase->peak = fmax(phase->peak, highest(edges, n, span->begin_ns, span->end_ns));
        phase->resident = fmax(phase->resident, highest_reading(&pool->resident, &reading,
                                                                span->begin_ns, span->end_ns));
    }
    put_phase_rows(report, pool, phases);
    return true;
}

/* ---- live memory at the peak ---- */

struct group {
    uint32_t key;   /* a name; the last element: unknown */
    uint32_t stack; /* of its largest block */
    double largest;
    double bytes, count, variance;
};

MAREY__ORDER(by_bytes, struct group, MAREY__DOWN(bytes) MAREY__UP(key))

static bool matches(const struct marey__memory_report *report, uint32_t stack)
{
    if (report->options.filter == NULL)
        return true;
    if (stack >= report->n_stacks)
        return false;
    const struct marey__memory_stack *const s = &report->stacks[stack];
    for (size_t i = 0; i < s->n; i++) {
        const struct marey__name *const name = &report->names.names[report->frames[s->first + i]];
        if (marey__name_matches(report->options.filter, name->text, name->len))
            return true;
    }
    return false;
}

/* Blocks alive at the peak, grouped by one of their names, or none. The caller frees them; NULL on out of memory. */
static struct group *group_by(const struct marey__memory_report *report,
                              const struct marey__memory_pool *pool, size_t field, bool is_filtered)
{
    const size_t n = report->names.n;
    struct group *const groups = marey__calloc(n + 1, sizeof *groups);
    if (groups == NULL)
        return NULL;
    for (size_t i = 0; i <= n; i++)
        groups[i].key = i < n ? (uint32_t)i : UINT32_MAX;
    for (size_t i = 0; i < pool->n_blocks; i++) {
        const struct marey__held_block *const block = &pool->blocks[i];
        uint32_t key;
        memcpy(&key, (const char *)block + field, sizeof key);
        if (!is_alive(block, pool->peak_ns) || (is_filtered && !matches(report, block->stack)))
            continue;
        struct group *const group = &groups[key < n ? key : n];
        if (group->count == 0 || block->bytes > group->largest) {
            group->largest = block->bytes;
            group->stack = block->stack;
        }
        group->bytes += block->bytes;
        group->count += block->count;
        group->variance += block->variance;
    }
    qsort(groups, n + 1, sizeof *groups, by_bytes);
    return groups;
}

static bool put_names(struct marey__memory_report *report, const struct marey__memory_pool *pool,
                      enum marey__memory_table which, size_t field)
{
    marey_table *const table = report->tables[which];
    struct group *const groups MAREY__FREED = group_by(report, pool, field, false);
    if (groups == NULL)
        return false;
    /* A table with only "unknown" is useless. */
    const bool is_known =
        report->names.n != 0 && (groups[0].key != UINT32_MAX || groups[1].bytes > 0);
    for (size_t i = 0; is_known && i <= report->names.n && groups[i].bytes > 0; i++) {
        const bool has_name = groups[i].key != UINT32_MAX;
        MAREY__PUT_ROW(table, MAREY__MEMORY_WHOSE(pool),
                       has_name ? MAREY__MEMORY_NAME(report, groups[i].key) : STRING("(unknown)"),
                       FINITE(groups[i].bytes), F64(groups[i].bytes / pool->peak_bytes),
                       U64((uint64_t)(groups[i].count + 0.5)));
    }
    return true;
}

static bool put_stacks(struct marey__memory_report *report, const struct marey__memory_pool *pool)
{
    marey_table *const table = report->tables[MAREY__MEMORY_STACKS];
    struct group *const groups MAREY__FREED =
        group_by(report, pool, offsetof(struct marey__held_block, where), true);
    if (groups == NULL)
        return false;
    for (size_t i = 0; i < report->names.n && groups[i].bytes > 0 && i < report->options.n_stacks;
         i++) {
        MAREY__PUT_ROW(table, MAREY__MEMORY_WHOSE(pool), FINITE(groups[i].bytes),
                       KNOWN(groups[i].variance > 0, FINITE(2 * sqrt(groups[i].variance))),
                       F64(groups[i].bytes / pool->peak_bytes),
                       U64((uint64_t)(groups[i].count + 0.5)),
                       MAREY__MEMORY_NAME(report, groups[i].key));
        marey__memory_put_stack(table, report, groups[i].stack);
    }
    return true;
}

bool marey__memory_put_alive(struct marey__memory_report *report,
                             const struct marey__memory_pool *pool)
{
    return pool->peak_bytes <= 0 || (put_names(report, pool, MAREY__MEMORY_CATEGORIES,
                                               offsetof(struct marey__held_block, category)) &&
                                     put_names(report, pool, MAREY__MEMORY_MODULES,
                                               offsetof(struct marey__held_block, module)) &&
                                     put_stacks(report, pool));
}

/* ---- over time, in as many steps as a chart can show ---- */

enum { N_SLICES = 500 };

/* The slice that contains a timestamp. */
static size_t slice_of(const struct marey__memory_pool *pool, uint64_t ns)
{
    const uint64_t span = pool->last_ns - pool->first_ns;
    const uint64_t at = ns > pool->first_ns ? MAREY__MIN(ns - pool->first_ns, span) : 0;
    return MAREY__MIN((size_t)((double)at / (double)span * N_SLICES), (size_t)N_SLICES - 1);
}

/* The maximum of each slice with a change. */
static void put_rows(marey_table *table, const struct marey__memory_pool *pool,
                     const struct edge *edges, size_t n)
{
    const double width = (double)(pool->last_ns - pool->first_ns) / N_SLICES;
    for (size_t i = 0; i < n;) {
        const size_t slice = slice_of(pool, edges[i].ns);
        double most = i > 0 ? edges[i - 1].alive : 0;
        for (; i < n && slice_of(pool, edges[i].ns) == slice; i++)
            most = fmax(most, edges[i].alive);
        const uint64_t at_ns = pool->first_ns + (uint64_t)(width * (double)slice);
        MAREY__PUT_ROW(table, MAREY__MEMORY_WHOSE(pool), marey__memory_moment(pool, at_ns, true),
                       FINITE(fmax(most, 0)));
    }
    MAREY__PUT_ROW(table, MAREY__MEMORY_WHOSE(pool),
                   marey__memory_moment(pool, pool->last_ns, true), FINITE(pool->end_bytes));
}

bool marey__memory_put_live(struct marey__memory_report *report, const struct marey__memory_pool *pool)
{
    size_t n;
    if (pool->n_blocks == 0 || pool->is_ordered || pool->last_ns <= pool->first_ns)
        return true;
    struct edge *const edges MAREY__FREED = edges_of(pool, &n);
    if (edges == NULL)
        return false;
    put_rows(report->tables[MAREY__MEMORY_LIVE], pool, edges, n);
    return true;
}
