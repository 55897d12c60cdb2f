/*
 * Counters of the whole process tree, ten times a second: how many of its threads run and how many wait for a CPU core,
 * which cores they may use, what the kernel takes from them (involuntary switches, page faults from disk, swap, a limit of
 * the cgroup), what they read, their resident memory, and the anonymous memory of the largest process: without files that
 * are mapped, and without pages that several processes share.
 *
 * Rates come from counts of the kernel, so nothing between two readings is missed. A thread costs some 10 us to read:
 * where all of them would cost more than a thousandth of a core, readings become rarer.
 */
#include <dirent.h>
#include <sched.h>
#include <unistd.h>

#include "sampler/loop/internal.h"

static const uint64_t interval_ns = 100000000;
enum { SHARE_OF_TIME = 1000, LIMITS_S = 5 };

/* Counts so far of one thread; of a process what its threads do not have. */
struct thread_counts {
    uint32_t tid;
    uint64_t run_ns, wait_ns, switches;
};
struct marey__system_counters {
    struct thread_counts *threads;
    size_t n_threads, threads_cap;
    struct marey__key_map map;
    struct process_counts {
        uint32_t pid;
        uint64_t faults, bytes_read, swap;
    } * processes;
    size_t n_processes, processes_cap;
    struct marey__key_map process_map;
    uint64_t due_ns, last_ns, limits_ns, throttled_us, io_stall_us;
    double cores;                      /* that may be used */
    double quota;                      /* of the cgroup, in cores; 0: none */
    char group[512];                   /* the folder of the cgroup with CPU limits; "" */
    double group_bytes, machine_bytes; /* of memory; 0: no limit */
    char memory_group[512];
};

/* ---- limits ---- */

/* The number after `key` in a file; `fallback` where there is none. */
static uint64_t number_in(const char *folder, const char *file, const char *key, uint64_t fallback)
{
    char path[600], text[4096];
    unsigned long long value;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    marey__read_text(path, text, sizeof text);
    const char *const at = strstr(text, key);
    return at != NULL && sscanf(at + strlen(key), "%llu", &value) == 1 ? value : fallback;
}

/* The quota of a cgroup in cores, of version 2 or 1; 0: none. */
static double quota_of(const char *folder)
{
    char path[600], text[128];
    unsigned long long quota = 0, period = 0;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    marey__read_text(path, text, sizeof text);
    if (sscanf(text, "%llu %llu", &quota, &period) != 2) {
        quota = number_in(folder, "cpu.cfs_quota_us", "", 0); /* -1: none */
        period = number_in(folder, "cpu.cfs_period_us", "", 0);
    }
    return period != 0 && quota < (uint64_t)INT64_MAX ? (double)quota / (double)period : 0;
}

/* Version 2 or 1; "max" and numbers larger than any memory are none. */
static double memory_limit_of(const char *folder)
{
    uint64_t bytes = number_in(folder, "memory.max", "", 0);
    if (bytes == 0)
        bytes = number_in(folder, "memory.limit_in_bytes", "", 0);
    return bytes < (uint64_t)INT64_MAX / 2 ? (double)bytes : 0;
}

/* The cgroup that a process is in, and those above it: the lowest limit, and its folder. */
static double find_lowest(pid_t pid, double (*limit_of)(const char *folder), char group[512])
{
    static const char *const kinds[][2] = {{"\n0::", "/sys/fs/cgroup"},
                                           {":cpu,cpuacct:", "/sys/fs/cgroup/cpu"},
                                           {":cpu:", "/sys/fs/cgroup/cpu"},
                                           {":memory:", "/sys/fs/cgroup/memory"}};
    const char *const root = getenv("MAREY_CGROUP_ROOT"); /* of tests, instead of all mounts */
    char text[4096] = "\n";
    double lowest = 0;
    marey__read_proc(pid, 0, "cgroup", text + 1, sizeof text - 1);
    group[0] = '\0';
    for (size_t i = 0; i < MAREY__COUNT_OF(kinds); i++) {
        char folder[512];
        const char *const at = strstr(text, kinds[i][0]);
        if (at == NULL)
            continue;
        const char *const path = at + strlen(kinds[i][0]);
        const char *const mount = root != NULL ? root : kinds[i][1];
        int n = snprintf(folder, sizeof folder, "%s%.*s", mount, (int)strcspn(path, "\n"), path);
        for (; n >= (int)strlen(mount) && n < (int)sizeof folder; n--) {
            if (folder[n] != '/' && folder[n] != '\0')
                continue;
            folder[n] = '\0';
            const double limit = limit_of(folder);
            if (limit > 0 && (lowest == 0 || limit < lowest)) {
                lowest = limit;
                snprintf(group, sizeof folder, "%s", folder);
            }
        }
    }
    return lowest;
}

/* CPU time that the cgroup was refused, summed over cores, in us. */
static uint64_t throttled_us(const struct marey__system_counters *c)
{
    if (c->group[0] == '\0')
        return 0;
    const uint64_t v1_ns = number_in(c->group, "cpu.stat", "throttled_time ", 0);
    return v1_ns != 0 ? v1_ns / 1000 : number_in(c->group, "cpu.stat", "throttled_usec ", 0);
}

static void find_cores(struct marey__system_counters *c, pid_t pid)
{
    cpu_set_t allowed;
    c->cores = sched_getaffinity(pid, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : c->cores;
    if (c->quota > 0 && c->quota < c->cores)
        c->cores = c->quota;
}

/* ---- reading ---- */

static double since(uint64_t *before, uint64_t now)
{
    const double more = now > *before ? (double)(now - *before) : 0;
    *before = now;
    return more;
}

static void read_thread(struct marey__system_counters *c, struct process_counts *process, pid_t tid,
                        double *sums)
{
    char text[4096];
    unsigned long long run_ns = 0, wait_ns = 0;
    const uint32_t key = (uint32_t)tid;
    const pid_t pid = (pid_t)process->pid;
    marey__read_proc(pid, tid, "schedstat", text, sizeof text);
    if (sscanf(text, "%llu %llu", &run_ns, &wait_ns) != 2)
        return;
    const uint32_t number = MAREY__MAP_NUMBER(&c->map, c->threads, c->n_threads, c->threads_cap, key);
    if (number == 0)
        return;
    struct thread_counts *const thread = &c->threads[number - 1];
    const bool has_run = run_ns != thread->run_ns || wait_ns != thread->wait_ns;
    if (run_ns < thread->run_ns) /* another thread with its number */
        *thread = (struct thread_counts){.tid = key};
    sums[MAREY__SYSTEM_THREADS]++;
    sums[MAREY__SYSTEM_RUNNING] += since(&thread->run_ns, run_ns);
    sums[MAREY__SYSTEM_WAITING] += since(&thread->wait_ns, wait_ns);
    if (!has_run)
        return;
    marey__read_proc(pid, tid, "status", text, sizeof text);
    sums[MAREY__SYSTEM_SWITCHES] +=
        since(&thread->switches, marey__status_number(text, "\nnonvoluntary_ctxt_switches:", 10));
    if (tid == pid)
        process->swap = marey__status_number(text, "\nVmSwap:", 10) * 1024;
}

static void read_process(struct marey__system_counters *c, pid_t pid, double *sums)
{
    char path[64], text[1024];
    unsigned long long faults = 0, pages = 0, shared = 0;
    const uint32_t key = (uint32_t)pid;
    const uint32_t number =
        MAREY__MAP_NUMBER(&c->process_map, c->processes, c->n_processes, c->processes_cap, key);
    if (number == 0)
        return;
    struct process_counts *const process = &c->processes[number - 1];
    marey__read_proc(pid, 0, "stat", text, sizeof text);
    const char *const after = strrchr(text, ')');
    if (after == NULL || sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %llu", &faults) != 1)
        return;
    marey__read_proc(pid, 0, "statm", text, sizeof text);
    if (sscanf(text, "%*u %llu %llu", &pages, &shared) != 2 || pages < shared)
        pages = shared = 0;
    const double page = (double)sysconf(_SC_PAGESIZE), anonymous = (double)(pages - shared) * page;
    sums[MAREY__SYSTEM_PROCESSES]++;
    sums[MAREY__SYSTEM_RESIDENT] += (double)pages * page;
    sums[MAREY__SYSTEM_ANONYMOUS] = MAREY__MAX(sums[MAREY__SYSTEM_ANONYMOUS], anonymous);
    sums[MAREY__SYSTEM_FAULTS] += since(&process->faults, faults);
    marey__read_proc(pid, 0, "io", text, sizeof text);
    sums[MAREY__SYSTEM_BYTES_READ] +=
        since(&process->bytes_read, marey__status_number(text, "\nread_bytes:", 10));
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *const tasks = opendir(path);
    if (tasks == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        uint64_t tid;
        if (marey__parse_number(entry->d_name, strlen(entry->d_name), &tid))
            read_thread(c, process, (pid_t)tid, sums);
    }
    closedir(tasks);
    sums[MAREY__SYSTEM_SWAP] += (double)process->swap;
}

/* ---- memory ---- */

static void find_memory_limit(struct marey__system_counters *c, const struct marey__family *family)
{
    size_t i = 0; /* a process that is there */
    while (i + 1 < family->n && family->members[i].kind == MAREY__MEMBER_ENDED)
        i++;
    c->machine_bytes = (double)number_in("/proc", "meminfo", "MemTotal:", 0) * 1024;
    c->group_bytes = find_lowest(family->members[i].pid, memory_limit_of, c->memory_group);
    if (c->group_bytes >= c->machine_bytes)
        c->group_bytes = 0;
}

/* What all processes below the limit use, without pages of files. */
static double used_below_limit(const struct marey__system_counters *c)
{
    if (c->group_bytes == 0)
        return c->machine_bytes - (double)number_in("/proc", "meminfo", "MemAvailable:", 0) * 1024;
    const char *const group = c->memory_group, *const file = "memory.stat";
    return (double)(number_in(group, file, "total_rss ", number_in(group, file, "anon ", 0)) +
                    number_in(group, file, "total_shmem ", number_in(group, file, "shmem ", 0)));
}

/*
 * Resident minus shared memory, plus the shared memory of the process with most of it. That is too much where a forked
 * process still has the pages of its parent, or files are mapped: near the limit, the kernel's own count bounds it.
 */
static double read_unique(const struct marey__system_counters *c, const struct marey__family *family)
{
    const double limit = c->group_bytes != 0 ? c->group_bytes : c->machine_bytes, near = 0.9;
    unsigned long long sum = 0, most_shared = 0;
    for (size_t i = 0; i < family->n; i++) {
        char text[128] = "";
        unsigned long long resident, shared;
        if (family->members[i].kind != MAREY__MEMBER_ENDED)
            marey__read_proc(family->members[i].pid, 0, "statm", text, sizeof text);
        if (sscanf(text, "%*u %llu %llu", &resident, &shared) != 2 || shared > resident)
            continue;
        sum += resident - shared;
        most_shared = MAREY__MAX(most_shared, shared);
    }
    const double bytes = (double)(sum + most_shared) * (double)sysconf(_SC_PAGESIZE);
    return bytes > near * limit ? MAREY__MIN(bytes, used_below_limit(c)) : bytes;
}

static marey_status put_all(struct marey__system_counters *c, struct marey__samples_log *log,
                            uint64_t now_ns, double *sums)
{
    const double ns = (double)(now_ns - c->last_ns);
    const uint64_t stall_us = number_in("/proc/pressure", "io", "total=", 0);
    sums[MAREY__SYSTEM_RUNNING] /= ns;
    sums[MAREY__SYSTEM_WAITING] /= ns;
    sums[MAREY__SYSTEM_SWITCHES] /= ns * 1e-9;
    sums[MAREY__SYSTEM_FAULTS] /= ns * 1e-9;
    sums[MAREY__SYSTEM_BYTES_READ] /= ns * 1e-9;
    sums[MAREY__SYSTEM_IO_STALL] = since(&c->io_stall_us, stall_us) * 1e3 / ns;
    sums[MAREY__SYSTEM_THROTTLED] = since(&c->throttled_us, throttled_us(c)) * 1e3 / ns;
    sums[MAREY__SYSTEM_CORES] = c->cores;
    sums[MAREY__SYSTEM_GROUP_LIMIT] = c->group_bytes;
    sums[MAREY__SYSTEM_MACHINE_MEMORY] = c->machine_bytes;
    return marey__samples_log_counters(log, now_ns, sums);
}

marey_status marey__system_counters_read(struct marey__system_counters *c,
                                         const struct marey__family *family,
                                         struct marey__samples_log *log, uint64_t now_ns)
{
    double sums[MAREY__SYSTEM_COUNTERS] = {0};
    if (now_ns < c->due_ns || family->n == 0)
        return MAREY_OK;
    const uint64_t begin_ns = marey__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const bool is_first = c->last_ns == 0;
    if (is_first || now_ns - c->limits_ns > LIMITS_S * UINT64_C(1000000000)) {
        c->limits_ns = now_ns;
        c->quota = find_lowest(getpid(), quota_of, c->group);
        find_memory_limit(c, family);
    }
    find_cores(c, family->members[0].pid);
    for (size_t i = 0; i < family->n; i++)
        if (family->members[i].kind != MAREY__MEMBER_ENDED)
            read_process(c, family->members[i].pid, sums);
    sums[MAREY__SYSTEM_UNIQUE] = read_unique(c, family);
    marey_status status = MAREY_OK;
    if (is_first) { /* counts of the machine and of earlier runs in the cgroup are not ours */
        c->io_stall_us = number_in("/proc/pressure", "io", "total=", 0);
        c->throttled_us = throttled_us(c);
    } else if (sums[MAREY__SYSTEM_PROCESSES] > 0) {
        status = put_all(c, log, now_ns, sums);
    }
    c->last_ns = now_ns;
    const uint64_t cost_ns = marey__clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
    c->due_ns = now_ns + MAREY__MAX(interval_ns, cost_ns * SHARE_OF_TIME);
    return status;
}

struct marey__system_counters *marey__system_counters_create(void)
{
    return marey__calloc(1, sizeof(struct marey__system_counters));
}

void marey__system_counters_destroy(struct marey__system_counters *c)
{
    if (c == NULL)
        return;
    marey__key_map_fini(&c->map);
    marey__key_map_fini(&c->process_map);
    MAREY__FREE_ALL(c->threads, c->processes, c);
}
