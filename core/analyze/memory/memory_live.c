/* How much was alive over time, in as many steps as a picture has room for. */
#include <math.h>
#include <string.h>

#include "analyze/memory/internal.h"

enum { N_SLICES = 500 };

/* The slice that a moment is in. */
static size_t slice_of(const struct marey__memory_pool *pool, uint64_t ns)
{
    const uint64_t span = pool->last_ns - pool->first_ns;
    const uint64_t at = ns > pool->first_ns ? MAREY__MIN(ns - pool->first_ns, span) : 0;
    return MAREY__MIN((size_t)((double)at / (double)span * N_SLICES), (size_t)N_SLICES - 1);
}

/* The most alive in each slice, where something changes in it. */
static void put_rows(marey_table *table, const struct marey__memory_pool *pool,
                     const struct marey__memory_edge *edges, size_t n)
{
    const double width = (double)(pool->last_ns - pool->first_ns) / N_SLICES;
    for (size_t i = 0; i < n;) {
        const size_t slice = slice_of(pool, edges[i].ns);
        double most = i > 0 ? edges[i - 1].alive : 0;
        for (; i < n && slice_of(pool, edges[i].ns) == slice; i++)
            most = fmax(most, edges[i].alive);
        marey__memory_put_whose(table, pool);
        marey__memory_put_moment(table, pool, pool->first_ns + (uint64_t)(width * (double)slice),
                                 true);
        marey__put_real(table, fmax(most, 0), true);
    }
    marey__memory_put_whose(table, pool);
    marey__memory_put_moment(table, pool, pool->last_ns, true);
    marey__put_real(table, pool->end_bytes, true);
}

bool marey__memory_put_live(struct marey__memory_report *report, const struct marey__memory_pool *pool)
{
    size_t n;
    if (pool->n_blocks == 0 || pool->is_ordered || pool->last_ns <= pool->first_ns)
        return true;
    struct marey__memory_edge *const edges = marey__memory_edges(pool, &n);
    if (edges == NULL)
        return false;
    put_rows(report->tables[MAREY__MEMORY_LIVE], pool, edges, n);
    marey__free(edges);
    return true;
}
