/*
 * The sweep. Intervals come in order of begin, so the only state is the end of each active class: no sorted ends and no
 * counters. Time advances to the next begin, past at most three ends of classes, and each section within a window is
 * added to the atom of the classes active in it.
 */
#include "analyze/device/internal.h"

/* ---- intervals ---- */

MAREY__ORDER_RUNS(interval_is_before, struct marey__interval, MAREY__UP(begin_ns))

bool marey__intervals_unite(struct marey__interval *intervals, size_t *n)
{
    if (!marey__sort_runs(intervals, *n, sizeof *intervals, interval_is_before))
        return false;
    size_t n_out = 0;
    for (size_t i = 0; i < *n; i++) {
        const struct marey__interval in = intervals[i];
        if (in.begin_ns >= in.end_ns)
            continue;
        if (n_out > 0 && in.begin_ns <= intervals[n_out - 1].end_ns)
            intervals[n_out - 1].end_ns = MAREY__MAX(intervals[n_out - 1].end_ns, in.end_ns);
        else
            intervals[n_out++] = in;
    }
    *n = n_out;
    return true;
}

uint64_t marey__intervals_length(const struct marey__interval *intervals, size_t n)
{
    uint64_t length = 0;
    for (size_t i = 0; i < n; i++)
        length += intervals[i].end_ns - intervals[i].begin_ns;
    return length;
}

/* ---- the sweep ---- */

void marey__sweep_begin(struct marey__sweep *sweep, const struct marey__interval *windows,
                        size_t n_windows)
{
    *sweep = (struct marey__sweep){.windows = windows, .n_windows = n_windows};
}

/* The time of [from, to) within the windows from number `i` on. */
static uint64_t within(const struct marey__sweep *sweep, size_t i, uint64_t from, uint64_t to)
{
    uint64_t length = 0;
    for (; i < sweep->n_windows && sweep->windows[i].begin_ns < to; i++) {
        const uint64_t begin = MAREY__MAX(from, sweep->windows[i].begin_ns);
        const uint64_t end = MAREY__MIN(to, sweep->windows[i].end_ns);
        length += end > begin ? end - begin : 0;
    }
    return length;
}

/* Advance time to `to_ns`. */
static void go_on(struct marey__sweep *sweep, uint64_t to_ns)
{
    while (sweep->now_ns < to_ns) {
        const uint64_t now = sweep->now_ns;
        uint64_t next = to_ns;
        size_t atom = 0;
        for (size_t c = 0; c < MAREY__N_CLASSES; c++)
            if (sweep->until_ns[c] > now) {
                atom |= (size_t)1 << c;
                next = MAREY__MIN(next, sweep->until_ns[c]);
            }
        while (sweep->window < sweep->n_windows && sweep->windows[sweep->window].end_ns <= now)
            sweep->window++;
        sweep->atoms.ns[atom] += within(sweep, sweep->window, now, next);
        sweep->now_ns = next;
    }
}

void marey__sweep_add(struct marey__sweep *sweep, uint64_t begin_ns, uint64_t end_ns, uint8_t class)
{
    if (class == MAREY__IGNORED || begin_ns >= end_ns)
        return;
    go_on(sweep, begin_ns);
    for (size_t c = 0; c < MAREY__N_CLASSES; c++)
        if ((class & 1u << c) != 0)
            sweep->until_ns[c] = MAREY__MAX(sweep->until_ns[c], end_ns);
    while (sweep->window < sweep->n_windows && sweep->windows[sweep->window].end_ns <= begin_ns)
        sweep->window++;
    const uint64_t duration = within(sweep, sweep->window, begin_ns, end_ns);
    sweep->atoms.sum_of_durations_ns += duration;
    sweep->atoms.n_work += duration != 0;
}

void marey__sweep_finish(struct marey__sweep *sweep)
{
    const size_t n = sweep->n_windows;
    go_on(sweep, n > 0 ? sweep->windows[n - 1].end_ns : 0);
}
