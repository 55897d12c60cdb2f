/*
 * Ranks that a run has more than once, and hosts whose clocks disagree.
 *
 * Two logs of a rank in one run can be: copies of one log (the same process), a rank that was restarted (one after the
 * other), a process that the rank started and that inherited its rank through the environment (not a duplicate), or two
 * processes with the same rank by mistake (at the same time).
 */
#include "read/internal.h"

enum { MAX_LISTED = 5 };

enum duplicate { DUPLICATE_NONE, DUPLICATE_COPY, DUPLICATE_RESTART, DUPLICATE_BESIDE };

static bool is_same_process(const struct marey_process *a, const struct marey_process *b)
{
    return a->pid == b->pid && strcmp(a->host, b->host) == 0 && a->start_time == b->start_time &&
           a->start_unix_ns == b->start_unix_ns;
}

/* Both have the same rank and run; `a` starts first. */
static enum duplicate compare(const struct marey__run_rank *a, const struct marey__run_rank *b)
{
    if (is_same_process(a->process, b->process))
        return DUPLICATE_COPY;
    const bool is_same_host = strcmp(a->process->host, b->process->host) == 0;
    if (is_same_host && (a->process->pid == b->process->ppid || a->process->ppid == b->process->pid))
        return DUPLICATE_NONE;
    if (b->begin_ns >= a->end_ns)
        return DUPLICATE_RESTART;
    /* A process within the other's lifetime was likely started by it, unless both have the same parent. */
    const bool is_within = b->end_ns <= a->end_ns && a->process->ppid != b->process->ppid;
    return is_same_host && is_within ? DUPLICATE_NONE : DUPLICATE_BESIDE;
}

static const char *file_of(const struct marey_process *process)
{
    return marey__base_name(process->log_path);
}

static void warn_duplicate(const struct marey__run_rank *a, const struct marey__run_rank *b,
                           enum duplicate duplicate, struct marey__warnings *warnings)
{
    const struct marey_process *x = a->process, *y = b->process;
    if (duplicate == DUPLICATE_COPY)
        marey__warn(warnings,
                    "%s and %s are logs of the same process, rank %d, which is counted twice: "
                    "remove one of the two files.",
                    file_of(x), file_of(y), x->rank);
    else if (duplicate == DUPLICATE_RESTART)
        marey__warn(warnings,
                    "Rank %d was restarted: process %" PRId64 " on %s ended before process %" PRId64
                    " on %s began. Its figures include both.",
                    x->rank, x->pid, x->host, y->pid, y->host);
    else
        marey__warn(warnings,
                    "Two processes ran as rank %d at the same time, %" PRId64 " on %s and %" PRId64
                    " on %s: both are counted. Check the ranks that the launcher assigns, or "
                    "remove %s or %s.",
                    x->rank, x->pid, x->host, y->pid, y->host, file_of(x), file_of(y));
}

void marey__check_duplicate_ranks(const struct marey__run_rank *ranks, size_t n,
                                  struct marey__warnings *warnings)
{
    static const char *const words[] = {
        [DUPLICATE_COPY] = "have two copies of a log",
        [DUPLICATE_RESTART] = "were restarted",
        [DUPLICATE_BESIDE] = "had two processes at the same time",
    };
    size_t n_found[DUPLICATE_BESIDE + 1] = {0};
    for (size_t i = 1; i < n; i++) {
        const struct marey__run_rank *a = &ranks[i - 1], *b = &ranks[i];
        if (a->process->rank != b->process->rank || a->run[0] == '\0' || strcmp(a->run, b->run) != 0)
            continue;
        const enum duplicate duplicate = compare(a, b);
        if (duplicate != DUPLICATE_NONE && n_found[duplicate]++ < MAX_LISTED)
            warn_duplicate(a, b, duplicate, warnings);
    }
    for (enum duplicate duplicate = DUPLICATE_COPY; duplicate <= DUPLICATE_BESIDE; duplicate++)
        if (n_found[duplicate] > MAX_LISTED)
            marey__warn(warnings, "%zu more ranks %s.", n_found[duplicate] - MAX_LISTED,
                        words[duplicate]);
}

/* ---- clocks ---- */

/* When the ranks of a host ran, by its clock. */
struct host_time {
    const char *host;
    uint64_t begin_ns, end_ns;
};

MAREY__ORDER(by_host, struct host_time, MAREY__UP_BY(strcmp(x->host, y->host), 0))

MAREY__ORDER(by_begin, struct host_time,
             MAREY__UP(begin_ns) MAREY__UP_BY(strcmp(x->host, y->host), 0))

/* Merge to one entry per host, sorted by start; returns how many. */
static size_t join_hosts(struct host_time *hosts, size_t n)
{
    size_t n_hosts = 0;
    qsort(hosts, n, sizeof *hosts, by_host);
    for (size_t i = 0; i < n; i++) {
        struct host_time *last = n_hosts != 0 ? &hosts[n_hosts - 1] : NULL;
        if (last == NULL || strcmp(last->host, hosts[i].host) != 0) {
            hosts[n_hosts++] = hosts[i];
            continue;
        }
        last->begin_ns = MAREY__MIN(last->begin_ns, hosts[i].begin_ns);
        last->end_ns = MAREY__MAX(last->end_ns, hosts[i].end_ns);
    }
    qsort(hosts, n_hosts, sizeof *hosts, by_begin);
    return n_hosts;
}

static void warn_clock(const struct host_time *typical, const struct host_time *host,
                       struct marey__warnings *warnings)
{
    const bool is_later = host->begin_ns > typical->begin_ns;
    const uint64_t apart_ns =
        is_later ? host->begin_ns - typical->begin_ns : typical->begin_ns - host->begin_ns;
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    marey__text_duration(&text, (double)apart_ns, NULL);
    marey__buf_put(&text, "", 1);
    warnings->failed |= text.failed;
    if (!text.failed)
        marey__warn(
            warnings,
            "By their clocks, the ranks on %s began %s %s those on %s, and none ran at the same "
            "time, although they belong to one run: the clocks of the two hosts differ, or the "
            "ranks ran one after another. Times within a rank are valid; timestamps of different "
            "hosts are comparable only if their clocks agree (chrony, NTP).",
            host->host, text.data, is_later ? "after" : "before", typical->host);
}

/* Warn about hosts of one run that do not overlap with the majority. */
static void check_run(struct host_time *hosts, size_t n, struct marey__warnings *warnings)
{
    const uint64_t least_ns = 1000000000; /* a rank may start this long after another has ended */
    const size_t n_hosts = join_hosts(hosts, n);
    size_t n_found = 0;
    /* The host that overlaps with most others. */
    size_t typical = n_hosts / 2, most = 0;
    for (size_t i = 0; i < n_hosts; i++) {
        size_t n_beside = 0;
        for (size_t k = 0; k < n_hosts && n_hosts <= 4096; k++)
            n_beside += hosts[k].begin_ns <= hosts[i].end_ns && hosts[i].begin_ns <= hosts[k].end_ns;
        if (n_beside > most) {
            most = n_beside;
            typical = i;
        }
    }
    for (size_t i = 0; i < n_hosts; i++) {
        const bool is_apart = hosts[i].begin_ns > hosts[typical].end_ns + least_ns ||
                              hosts[typical].begin_ns > hosts[i].end_ns + least_ns;
        if (is_apart && n_found++ < MAX_LISTED)
            warn_clock(&hosts[typical], &hosts[i], warnings);
    }
    if (n_found > MAX_LISTED)
        marey__warn(warnings, "The clocks of %zu more hosts differ.", n_found - MAX_LISTED);
}

void marey__check_clocks(const struct marey__run_rank *ranks, size_t n,
                         struct marey__warnings *warnings)
{
    struct host_time *hosts MAREY__FREED = marey__calloc(n + 1, sizeof *hosts);
    if (hosts == NULL) {
        warnings->failed = true;
        return;
    }
    for (size_t from = 0, to = 0; from < n; from = to) {
        size_t n_of_run = 0;
        for (; to < n && strcmp(ranks[to].joined, ranks[from].joined) == 0; to++)
            if (ranks[to].process->last_ns != 0)
                hosts[n_of_run++] = (struct host_time){ranks[to].process->host, ranks[to].begin_ns,
                                                       ranks[to].end_ns};
        /* Runs of one rank each may be separate runs, one after another. */
        if (n_of_run > 1 && ranks[from].joined[0] != '\0')
            check_run(hosts, n_of_run, warnings);
    }
}
