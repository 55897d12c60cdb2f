/* The order of execution, and what differs first in it. */
#include <stdlib.h>
#include <string.h>

#include "tensor/diff/internal.h"

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/*
 * A gradient may be added where its tensor is, long before it is computed: so the phase goes before the order of adding.
 */
static int by_execution(const void *pa, const void *pb)
{
    const struct marey__diff_result *a = pa, *b = pb;
    int order = compare_u64(a->step, b->step);
    if (order == 0)
        order = compare_u64(a->phase_order, b->phase_order);
    if (order == 0)
        order = compare_u64(a->order, b->order);
    if (order == 0)
        order = (a->rank > b->rank) - (a->rank < b->rank);
    return order;
}

const struct marey__diff_result *marey__diff_first(const struct marey_diff *diff)
{
    for (size_t i = 0; i < diff->n; i++)
        if (marey__diff_counts(diff, diff->results[i].status))
            return &diff->results[i];
    return NULL;
}

static void tell_what_was_compared(struct marey_diff *diff)
{
    size_t n_digests = 0, n_stats = 0;
    for (size_t i = 0; i < diff->n; i++) {
        const struct marey__diff_result *result = &diff->results[i];
        n_digests += result->basis == MAREY__BY_DIGEST && result->status == MAREY_DIFF_DIFFERENT;
        n_stats += result->basis == MAREY__BY_STATS;
    }
    if (n_digests != 0)
        marey__diff_warn(
            diff,
            "values that differ of which digests alone were kept, so that it is not known by how "
            "much: %zu",
            n_digests);
    if (n_stats != 0)
        marey__diff_warn(
            diff,
            "values of which statistics alone were kept, and equal ones do not prove equal "
            "numbers: %zu",
            n_stats);
    if (diff->n_reported > diff->n_by_status[MAREY_DIFF_UNKNOWN])
        return;
    if (diff->n_by_status[MAREY_DIFF_UNKNOWN] > 5)
        marey__diff_warn(diff, "values besides these that could not be compared: %zu",
                         diff->n_by_status[MAREY_DIFF_UNKNOWN] - 5);
}

static void tell_names(struct marey_diff *diff)
{
    if (diff->n_renamed != 0)
        marey__diff_warn(diff, "values that were paired by their order, under different paths: %zu",
                         diff->n_renamed);
    if (diff->options.allow_missing && diff->n_by_status[MAREY_DIFF_MISSING] != 0)
        marey__diff_warn(diff, "values that only B has, which was allowed: %zu",
                         diff->n_by_status[MAREY_DIFF_MISSING]);
    if (diff->options.allow_extra && diff->n_by_status[MAREY_DIFF_EXTRA] != 0)
        marey__diff_warn(diff, "values that only A has, which was allowed: %zu",
                         diff->n_by_status[MAREY_DIFF_EXTRA]);
}

marey_status marey__diff_conclude(struct marey_diff *diff)
{
    if (diff->n != 0)
        qsort(diff->results, diff->n, sizeof *diff->results, by_execution);
    tell_what_was_compared(diff);
    tell_names(diff);
    MAREY_TRY(marey__diff_tables(diff));
    MAREY_TRY(marey__diff_operations(diff));
    return marey_table_status(diff->tables[MAREY__DIFF_WARNINGS]);
}
