/*
 * CPU time of this process and its descendants, as one counter that never decreases.
 *
 *     this process          CLOCK_PROCESS_CPUTIME_ID
 *   + each descendant       its CPU clock: one system call, nanoseconds; a zombie's still works
 *   + ended children        RUSAGE_CHILDREN: when a child is waited for, its time moves there, with its own ended children's
 *   + ended grandchildren   fields 16 and 17 of their parent's /proc/PID/stat, in ticks of 10 ms
 *
 * A process that ends moves from one row to another. To count it exactly once, the destination row is read first: a
 * process that moved earlier is in it; one that moved later is missing among the clocks, and then everything is read
 * again.
 *
 * Descendants are added only when a process starts. The kernel reports the last pid (/proc/loadavg): if it is unchanged
 * there are no new ones, otherwise only the pids in between are probed. A pid is assigned slightly before its process
 * becomes visible, so pids are probed again for a while. All of /proc is scanned only at first, after the pids wrap
 * around, and where /proc/loadavg is not the kernel's.
 *
 * Time that was seen once is never lost: a process that ends without being waited for (SIGCHLD ignored, or by another
 * process) keeps its last seen time. A descendant counts as long as it lives, even if its parent ended and it was
 * reparented.
 */
#include <dirent.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "record/internal.h"

#define SETTLE_NS 200000000u /* after this time a pid has a process or never will */
#define STATS_NS 10000000u   /* one tick: a grandchild may start and end unnoticed in it */

enum {
    MAX_PROBES = 16384, /* pids probed one by one; beyond that, scanning /proc is cheaper */
    UNSETTLED = 64,     /* how many of the last pids may be invisible when /proc is scanned */
    MAX_ROUNDS = 8,
    N_STRANGERS = 512,
};

struct process {
    uint64_t pid, parent, start_time;
    clockid_t clock;
    uint64_t cpu_ns;    /* when last seen */
    uint64_t reaped_ns; /* of its ended children, as reported by the kernel */
    uint64_t gone_ns;   /* of its ended children, when last seen */
};

static struct {
    pthread_mutex_t lock; /* guards all of it */
    struct process *list; /* parents before their children */
    size_t n, n_cap;
    bool is_started, can_watch;
    bool is_short;              /* out of memory for a process: /proc is scanned again */
    uint64_t last_pid;          /* the last pid when the list was last updated */
    uint64_t settled_pid;       /* no process up to this pid can still appear */
    uint64_t mark_pid, mark_ns; /* pid and time of a mark: settled SETTLE_NS later */
    uint64_t strangers[N_STRANGERS]; /* processes that are not descendants, each at its pid modulo the size */
    bool are_stats_due;              /* processes started since stats were read */
    uint64_t stats_ns;               /* when stats were read */
    uint64_t own_cpu_ns;
    uint64_t reaped_ns; /* RUSAGE_CHILDREN */
    uint64_t gone_ns;   /* of children that ended since the last read, when last seen */
    uint64_t ended_ns;  /* of ended children, and of those that another process waited for */
    uint64_t highest_ns, n_scans;
} tree = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool marey__parse_last_pid(const char *text, size_t len, uint64_t *out)
{
    /* "0.20 0.18 0.12 1/80 11206": the last of five words. */
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' '))
        len--;
    const char *const blank = memrchr(text, ' ', len);
    if (blank == NULL || memchr(text, '/', (size_t)(blank - text)) == NULL)
        return false;
    const size_t at = (size_t)(blank + 1 - text);
    return marey__parse_numbers(text + at, len - at, out, 1) == 1 && *out > 0 && *out <= INT32_MAX;
}

/* 0 if unknown. */
static uint64_t read_last_pid(void)
{
    char text[128];
    uint64_t pid;
    const size_t len = marey__read_text("/proc/loadavg", text, sizeof text);
    return marey__parse_last_pid(text, len, &pid) ? pid : 0;
}

/* Containers may replace the file, with an unreliable last number. */
static bool is_kernels_own(const char *path)
{
    struct statfs fs;
    return statfs(path, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* ---- members of the tree ---- */

static struct process *find(uint64_t pid)
{
    for (size_t i = 0; i < tree.n; i++)
        if (tree.list[i].pid == pid)
            return &tree.list[i];
    return NULL;
}

static bool is_in_tree(uint64_t pid)
{
    return pid == (uint64_t)getpid() || find(pid) != NULL;
}

static bool make_room(void *array, size_t *n_cap, size_t want, size_t size)
{
    const bool has_room = marey__grow(array, n_cap, want, size);
    tree.is_short |= !has_room;
    return has_room;
}

/* Adds the process if its parent is in the list. True if it is new. */
static bool admit(uint64_t pid, const struct marey__process_stat *stat)
{
    clockid_t clock;
    if (is_in_tree(pid) || !is_in_tree(stat->parent) || clock_getcpuclockid((pid_t)pid, &clock) != 0 ||
        !make_room(&tree.list, &tree.n_cap, tree.n + 1, sizeof *tree.list))
        return false;
    tree.list[tree.n++] = (struct process){
        .pid = pid, .parent = stat->parent, .start_time = stat->start_time, .clock = clock};
    return true;
}

static void probe(uint64_t pid)
{
    clockid_t clock;
    struct marey__process_stat stat;
    uint64_t *const stranger = &tree.strangers[pid % N_STRANGERS];
    /* Most pids belong to threads and to processes that ended: the clock answers that at a tenth of the cost of the file. */
    if (*stranger == pid || is_in_tree(pid) || clock_getcpuclockid((pid_t)pid, &clock) != 0 ||
        !marey__read_process_stat((int64_t)pid, 0, &stat))
        return;
    if (!is_in_tree(stat.parent))
        *stranger = pid;
    else
        admit(pid, &stat);
}

struct candidate {
    uint64_t pid;
    struct marey__process_stat stat;
};

static size_t list_candidates(struct candidate **out)
{
    size_t n = 0, n_cap = 0;
    uint64_t pid;
    DIR *dir = opendir("/proc");
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        struct candidate c;
        if (!marey__parse_number(e->d_name, strlen(e->d_name), &pid) ||
            !marey__read_process_stat((int64_t)pid, 0, &c.stat))
            continue;
        if (!make_room(out, &n_cap, n + 1, sizeof **out))
            break;
        c.pid = pid;
        (*out)[n++] = c;
    }
    if (dir != NULL)
        closedir(dir);
    return n;
}

/* Scans all of /proc. A child may have a lower pid than its parent, so repeat until none is new. */
static void scan(void)
{
    struct candidate *candidates = NULL;
    tree.is_short = false;
    const size_t n = list_candidates(&candidates);
    for (bool is_new = true; is_new;) {
        is_new = false;
        for (size_t i = 0; i < n; i++)
            is_new |= admit(candidates[i].pid, &candidates[i].stat);
    }
    marey__free(candidates);
    tree.n_scans++;
}

static void settle(uint64_t last)
{
    const uint64_t now = marey__clock_ns(CLOCK_MONOTONIC);
    if (now - tree.mark_ns < SETTLE_NS)
        return;
    tree.settled_pid = tree.mark_pid;
    tree.mark_pid = last;
    tree.mark_ns = now;
}

/* Probes the pids assigned since the last update. True if one of them was a descendant's: that one has ended. */
static bool probe_until(uint64_t last)
{
    bool is_reused = false;
    for (uint64_t pid = tree.settled_pid + 1; pid <= last; pid++) {
        is_reused |= pid > tree.last_pid && find(pid) != NULL;
        probe(pid);
    }
    settle(last);
    return is_reused;
}

/* Adds new descendants. True if known pids may now belong to other processes. */
static bool find_new(void)
{
    bool is_doubtful = false;
    if (!tree.is_started) {
        tree.is_started = true;
        tree.can_watch = is_kernels_own("/proc/loadavg");
        tree.mark_ns = marey__clock_ns(CLOCK_MONOTONIC);
    }
    const uint64_t last = tree.can_watch ? read_last_pid() : 0;
    tree.are_stats_due |= last == 0 || last != tree.last_pid;
    if (last == 0 || tree.n_scans == 0 || tree.is_short || last < tree.last_pid ||
        last - tree.settled_pid > MAX_PROBES) {
        scan();
        memset(tree.strangers, 0, sizeof tree.strangers);
        tree.settled_pid = last > UNSETTLED ? last - UNSETTLED : 0;
        tree.mark_pid = last;
        is_doubtful = true;
    } else if (last != tree.settled_pid) {
        is_doubtful = probe_until(last);
    }
    tree.last_pid = last;
    return is_doubtful;
}

/* ---- their CPU time ---- */

static uint64_t ended_children_ns(const struct process *p)
{
    return MAREY__MAX(p->reaped_ns, p->gone_ns);
}

/* The process ended: its last seen time goes to its parent, whose own counter includes it after waiting. */
static void drop(size_t i)
{
    const struct process p = tree.list[i];
    memmove(&tree.list[i], &tree.list[i + 1], (tree.n - i - 1) * sizeof *tree.list);
    tree.n--;
    struct process *const parent = find(p.parent);
    uint64_t *const into = p.parent == (uint64_t)getpid() ? &tree.gone_ns
                           : parent != NULL               ? &parent->gone_ns
                                                          : &tree.ended_ns;
    *into += p.cpu_ns + ended_children_ns(&p);
}

static uint64_t ns_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

static uint64_t read_reaped_ns(void)
{
    struct rusage r;
    const uint64_t ns =
        getrusage(RUSAGE_CHILDREN, &r) == 0 ? ns_of(r.ru_utime) + ns_of(r.ru_stime) : 0;
    return MAREY__MAX(ns, tree.reaped_ns);
}

/* Updates times of ended grandchildren, new parents, reused pids. From last to first. */
static void read_stats(void)
{
    const uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    for (size_t i = tree.n; i-- > 0;) {
        struct process *const p = &tree.list[i];
        struct marey__process_stat stat;
        if (!marey__read_process_stat((int64_t)p->pid, 0, &stat))
            continue; /* its clock shows whether it ended */
        if (stat.start_time == p->start_time) {
            p->parent = stat.parent;
            p->reaped_ns = MAREY__MAX(p->reaped_ns, stat.reaped_ticks * tick_ns);
            continue;
        }
        const uint64_t pid = p->pid;
        drop(i);
        admit(pid, &stat);
    }
}

/* True if all are alive. Children come before their parents, who then inherit their time. */
static bool read_clocks(void)
{
    bool is_whole = true;
    for (size_t i = tree.n; i-- > 0;) {
        struct timespec t;
        if (clock_gettime(tree.list[i].clock, &t) == 0) {
            tree.list[i].cpu_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
        } else {
            drop(i);
            is_whole = false;
        }
    }
    tree.own_cpu_ns = marey__clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    return is_whole;
}

static void sample(bool is_doubtful)
{
    const uint64_t now = marey__clock_ns(CLOCK_MONOTONIC);
    bool want_stats = is_doubtful || (tree.are_stats_due && now - tree.stats_ns >= STATS_NS);
    for (int round = 0; round < MAX_ROUNDS; round++) {
        tree.reaped_ns = read_reaped_ns();
        if (want_stats) {
            read_stats();
            tree.stats_ns = now;
            tree.are_stats_due = false;
        }
        if (read_clocks())
            return;
        want_stats = true;
    }
}

static uint64_t total_ns(void)
{
    uint64_t ns = tree.own_cpu_ns + tree.ended_ns;
    for (size_t i = 0; i < tree.n; i++)
        ns += tree.list[i].cpu_ns + ended_children_ns(&tree.list[i]);
    return ns;
}

uint64_t marey__tree_cpu_ns(void)
{
    MAREY__HOLD(&tree.lock);
    const uint64_t reaped_before = tree.reaped_ns;
    sample(find_new());
    /* The kernel's increase for children we waited for; it adds nothing for one that ended without being waited for. */
    tree.ended_ns += MAREY__MAX(tree.reaped_ns - reaped_before, tree.gone_ns);
    tree.gone_ns = 0;
    tree.highest_ns = MAREY__MAX(tree.highest_ns, total_ns());
    return tree.highest_ns;
}

size_t marey__tree_n_processes(void)
{
    MAREY__HOLD(&tree.lock);
    return tree.n;
}

uint64_t marey__tree_n_scans(void)
{
    MAREY__HOLD(&tree.lock);
    return tree.n_scans;
}

void marey__tree_after_fork(void)
{
    /* The list may be half-changed, so it is abandoned rather than freed. */
    memset(&tree, 0, sizeof tree);
    pthread_mutex_init(&tree.lock, NULL);
}
