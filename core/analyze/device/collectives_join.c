/*
 * An operation that is started and waited for later is two ranges of the host with one number in their group, the bytes
 * told with the first (docs/formats/recording.md). It is one call, from the begin of the one to the end of the other.
 */
#include <stdlib.h>

#include "analyze/device/internal.h"

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static bool is_numbered(const struct marey__collective_call *call)
{
    return call->is_on_host && call->what.sequence != UINT64_MAX && call->what.group != 0;
}

static int compare_operation(const struct marey__collective_call *x,
                             const struct marey__collective_call *y)
{
    if (x->what.group != y->what.group)
        return compare(x->what.group, y->what.group);
    if (x->what.what != y->what.what)
        return compare(x->what.what, y->what.what);
    return compare(x->what.sequence, y->what.sequence);
}

static int by_operation(const void *a, const void *b)
{
    const struct marey__collective_call *x = *(struct marey__collective_call *const *)a,
                                        *y = *(struct marey__collective_call *const *)b;
    const int order = compare_operation(x, y);
    return order != 0 ? order : compare(x->begin_ns, y->begin_ns);
}

static bool is_wait_for(const struct marey__collective_call *call,
                        const struct marey__collective_call *start)
{
    return compare_operation(call, start) == 0 && call->site != start->site &&
           call->what.bytes_in == 0 && call->what.bytes_out == 0;
}

/* The others move up. */
static void drop_joined(struct marey__work_set *set)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n_collectives; i++)
        if (!set->collectives[i].is_joined)
            set->collectives[n++] = set->collectives[i];
    set->n_collectives = n;
}

bool marey__collectives_join(struct marey__work_set *set)
{
    struct marey__collective_call **calls = marey__calloc(set->n_collectives + 1, sizeof *calls);
    size_t n = 0;
    if (calls == NULL)
        return false;
    for (size_t i = 0; i < set->n_collectives; i++)
        if (is_numbered(&set->collectives[i]))
            calls[n++] = &set->collectives[i];
    qsort(calls, n, sizeof *calls, by_operation);
    struct marey__collective_call *start = n > 0 ? calls[0] : NULL;
    for (size_t i = 1; i < n; i++) {
        if (is_wait_for(calls[i], start)) {
            start->end_ns = MAREY__MAX(start->end_ns, calls[i]->end_ns);
            calls[i]->is_joined = true;
        } else {
            start = calls[i];
        }
    }
    marey__free(calls);
    drop_joined(set);
    return true;
}
