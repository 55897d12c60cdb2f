/* Sets of times without overlaps, from events that repeat, or run on several threads at once. */
#include "analyze/energy/internal.h"

bool marey__time_set_add(struct marey__time_set *set, uint64_t begin_ns, uint64_t end_ns)
{
    if (end_ns <= begin_ns)
        return true;
    /* A range is recorded at its end, after the ranges within it, which it replaces. */
    while (set->n > 0 && set->parts[set->n - 1].begin_ns >= begin_ns &&
           set->parts[set->n - 1].end_ns <= end_ns)
        set->n--;
    if (set->n > 0 && set->parts[set->n - 1].begin_ns <= begin_ns &&
        set->parts[set->n - 1].end_ns >= begin_ns) {
        set->parts[set->n - 1].end_ns = MAREY__MAX(set->parts[set->n - 1].end_ns, end_ns);
        return true;
    }
    return MAREY__PUSH(set->parts, set->n, set->cap, (struct marey__interval){begin_ns, end_ns});
}

bool marey__time_set_unite(struct marey__time_set *into, const struct marey__time_set *from)
{
    for (size_t i = 0; i < from->n; i++)
        if (!marey__time_set_add(into, from->parts[i].begin_ns, from->parts[i].end_ns))
            return false;
    return true;
}

bool marey__time_set_add_between(struct marey__time_set *into, const struct marey__time_set *whole,
                                 const struct marey__time_set *holes)
{
    size_t hole = 0;
    for (size_t i = 0; i < whole->n; i++) {
        uint64_t at_ns = whole->parts[i].begin_ns;
        const uint64_t end_ns = whole->parts[i].end_ns;
        for (; hole < holes->n && holes->parts[hole].begin_ns < end_ns; hole++) {
            const struct marey__interval *const h = &holes->parts[hole];
            if (h->begin_ns > at_ns && !marey__time_set_add(into, at_ns, h->begin_ns))
                return false;
            at_ns = MAREY__MAX(at_ns, h->end_ns);
            if (h->end_ns > end_ns)
                break; /* continues in the next part */
        }
        if (!marey__time_set_add(into, at_ns, end_ns))
            return false;
    }
    return true;
}

bool marey__time_set_settle(struct marey__time_set *set)
{
    return marey__intervals_unite(set->parts, &set->n);
}

void marey__time_set_fini(struct marey__time_set *set)
{
    marey__free(set->parts);
    *set = (struct marey__time_set){0};
}
