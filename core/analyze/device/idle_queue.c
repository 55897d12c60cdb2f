/*
 * Full launch queues: a stream takes some launches ahead, and then the call blocks until work begins. Launches count from
 * the begin of their call to that of their first work.
 */
#include <stdlib.h>

#include "analyze/device/internal.h"

/* A launch joins or leaves the queue of a stream. */
struct turn {
    uint64_t ns;
    uint32_t lane;
    int32_t change;
};

static int by_lane(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    if (x->lane != y->lane)
        return x->lane > y->lane ? 1 : -1;
    if (x->ns != y->ns)
        return x->ns > y->ns ? 1 : -1;
    return x->change - y->change;
}

/* A launch may have much work, as a graph does: the first counts. Returns how many turns there are. */
static size_t list_turns(const struct marey__work_set *set, const struct marey__device_work *device,
                         struct turn *turns, uint8_t *is_seen)
{
    size_t n = 0;
    for (size_t i = 0; i < device->n_work; i++) {
        const struct marey__work *work = &device->work[i];
        if (work->launch == MAREY__NO_INDEX || is_seen[work->launch])
            continue;
        is_seen[work->launch] = 1;
        turns[n++] = (struct turn){set->launches[work->launch].begin_ns, work->lane, 1};
        turns[n++] = (struct turn){work->begin_ns, work->lane, -1};
    }
    return n;
}

/* The times in which a queue was full, of one stream after the other; how many. */
static size_t list_full(const struct turn *turns, size_t n, struct marey__interval *full)
{
    int64_t length = 0;
    uint64_t since_ns = 0;
    size_t n_full = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || turns[i].lane != turns[i - 1].lane)
            length = 0;
        const bool was_full = length >= MAREY__LAUNCH_QUEUE;
        length += turns[i].change;
        const bool is_full = length >= MAREY__LAUNCH_QUEUE;
        if (is_full && !was_full)
            since_ns = turns[i].ns;
        if (!is_full && was_full && turns[i].ns > since_ns)
            full[n_full++] = (struct marey__interval){since_ns, turns[i].ns};
    }
    return n_full;
}

bool marey__idle_find_full(const struct marey__work_set *set, const struct marey__device_work *device,
                           struct marey__interval **out, size_t *n_out)
{
    *out = NULL;
    *n_out = 0;
    if (device->n_work < MAREY__LAUNCH_QUEUE)
        return true;
    struct turn *turns = marey__calloc(device->n_work, 2 * sizeof *turns);
    uint8_t *is_seen = marey__calloc(set->n_launches + 1, 1);
    struct marey__interval *full = marey__calloc(device->n_work, sizeof *full);
    bool is_made = turns != NULL && is_seen != NULL && full != NULL;
    if (is_made) {
        const size_t n = list_turns(set, device, turns, is_seen);
        qsort(turns, n, sizeof *turns, by_lane);
        *n_out = list_full(turns, n, full);
        is_made = marey__intervals_unite(full, n_out);
    }
    if (is_made)
        *out = full;
    else
        marey__free(full);
    marey__free(turns);
    marey__free(is_seen);
    return is_made;
}
