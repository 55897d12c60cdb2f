/*
 * usage: what was used besides time between two instants: processor time of a thread, of the process, of the process with
 * its descendants, of the machine; page faults, context switches, resident memory.
 *
 *     struct marey__usage begin, end, sum = {0};
 *     marey__usage_begin(mask, &begin); ... marey__usage_end(mask, &end);
 *     marey__usage_add(&sum, &begin, &end);
 *     marey__usage_processors(sum.process_cpu_ns, sum.wall_ns)      1.0: one processor, all the time
 *
 * Processor times are counters of the kernel in nanoseconds, read at the instant itself, so that an interval of
 * microseconds is as true as one of hours. The machine's alone counts in ticks of 10 ms. Each counter has the time of day
 * at which it was read beside it; what reading one of them costs falls into none of the others.
 *
 *   usage.c        reading, adding
 *   usage_tree.c   which processes descend from this one, and what they have used, ended ones included
 */
#ifndef MAREY_USAGE_INTERNAL_H
#define MAREY_USAGE_INTERNAL_H

#include "base/base_internal.h"
#include <marey/stopwatch.h>

#define MAREY__USAGE_ALL                                                                           \
    (MAREY_USAGE_THREAD_CPU | MAREY_USAGE_PROCESS_CPU | MAREY_USAGE_TREE_CPU |                     \
     MAREY_USAGE_MACHINE_CPU | MAREY_USAGE_FAULTS | MAREY_USAGE_RSS)

/* Counters at an instant, or sums of their differences. What the mask does not name stays as it was. */
struct marey__usage {
    uint64_t wall_ns, thread_cpu_ns, process_cpu_ns;
    uint64_t tree_wall_ns, tree_cpu_ns;
    uint64_t machine_wall_ns, machine_cpu_ns;
    uint64_t n_minor_faults, n_major_faults; /* of the thread; a major one waited for a disk */
    uint64_t n_switches,
        n_switches_involuntary; /* of the thread; the second are not among the first */
    int64_t rss_bytes;
};

/*
 * Whether all that `mask` (enum marey_stopwatch_usage) names can be read here: MAREY_EINVAL for a bit that is none,
 * MAREY_EUNAVAILABLE where /proc lacks or hides something, with a sentence. Any thread; some 20 us.
 */
MAREY_WARN_UNUSED marey_status marey__usage_check(uint32_t mask);

/*
 * Read the counters at the begin or the end of an interval: costly ones first at the begin and last at the end. A counter
 * that cannot be read reads 0. Any thread; the tree takes a lock, the rest none. Nothing is allocated but for a process
 * that is new in the tree. Not for signal handlers.
 */
void marey__usage_begin(uint32_t mask, struct marey__usage *out);
void marey__usage_end(uint32_t mask, struct marey__usage *out);

/* sum += end - begin, counter by counter; one that went back adds nothing, except rss_bytes, which is signed. */
void marey__usage_add(struct marey__usage *sum, const struct marey__usage *begin,
                      const struct marey__usage *end);
/* sum += other: sums of several threads. */
void marey__usage_merge(struct marey__usage *sum, const struct marey__usage *other);

/* Busy processors on average; 0 where no time has passed. */
static inline double marey__usage_processors(uint64_t cpu_ns, uint64_t wall_ns)
{
    return wall_ns > 0 ? (double)cpu_ns / (double)wall_ns : 0;
}

/* In a forked child, which has no descendants yet and whose parent's other threads may have held the lock. */
void marey__usage_after_fork(void);

/* ---- usage_tree.c ---- */

/*
 * Processor time of this process and of those that descend from it, alive or ended, since they began: a counter that never
 * goes back. Two reads differ by what was used between them: descendants that began or ended meanwhile included.
 */
uint64_t marey__tree_cpu_ns(void);
/* The last number of /proc/loadavg, and the busy ticks of the first line of /proc/stat; false for another text. */
bool marey__parse_last_pid(const char *text, size_t len, uint64_t *out);
bool marey__parse_machine_ticks(const char *text, size_t len, uint64_t *out);
/* Descendants that are known by now, for tests. */
size_t marey__tree_n_processes(void);
/* How often all of /proc was looked through, for tests. */
uint64_t marey__tree_n_scans(void);
void marey__tree_after_fork(void);

#endif
