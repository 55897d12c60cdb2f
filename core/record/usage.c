/* Reading counters at both ends of an interval, and summing the differences. */
#include <assert.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "record/internal.h"

/* ---- the machine: the first line of /proc/stat, in ticks ---- */

bool marey__parse_machine_ticks(const char *text, size_t len, uint64_t *out)
{
    /* "cpu user nice system idle iowait irq softirq steal ..."; user and nice include guests. */
    uint64_t ticks[7];
    if (len < 4 || memcmp(text, "cpu ", 4) != 0 ||
        marey__parse_numbers(text + 4, len - 4, ticks, MAREY__COUNT_OF(ticks)) <
            MAREY__COUNT_OF(ticks))
        return false;
    *out = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
    return true;
}

static bool read_machine(uint64_t *cpu_ns)
{
    char text[256]; /* the line we want comes first */
    uint64_t ticks;
    const size_t len = marey__read_text("/proc/stat", text, sizeof text);
    if (!marey__parse_machine_ticks(text, len, &ticks))
        return false;
    *cpu_ns = ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
    return true;
}

/* ---- memory: the second number of /proc/self/statm, in pages ---- */

static bool read_rss(int64_t *bytes)
{
    char text[128];
    uint64_t pages[2];
    const size_t len = marey__read_text("/proc/self/statm", text, sizeof text);
    if (marey__parse_numbers(text, len, pages, 2) < 2)
        return false;
    *bytes = (int64_t)(pages[1] * (uint64_t)sysconf(_SC_PAGESIZE));
    return true;
}

static void read_faults(struct marey__usage *out)
{
    struct rusage r;
    if (getrusage(RUSAGE_THREAD, &r) != 0)
        memset(&r, 0, sizeof r);
    out->n_minor_faults = (uint64_t)r.ru_minflt;
    out->n_major_faults = (uint64_t)r.ru_majflt;
    out->n_switches = (uint64_t)r.ru_nvcsw;
    out->n_switches_involuntary = (uint64_t)r.ru_nivcsw;
}

/* ---- reading at both ends ---- */

static void read_files(uint32_t mask, struct marey__usage *out)
{
    if ((mask & MAREY_USAGE_MACHINE_CPU) != 0) {
        if (!read_machine(&out->machine_cpu_ns))
            out->machine_cpu_ns = 0;
        out->machine_wall_ns = marey__clock_ns(CLOCK_MONOTONIC);
    }
    if ((mask & MAREY_USAGE_RSS) != 0 && !read_rss(&out->rss_bytes))
        out->rss_bytes = 0;
}

static void read_tree(uint32_t mask, struct marey__usage *out)
{
    if ((mask & MAREY_USAGE_TREE_CPU) == 0)
        return;
    out->tree_cpu_ns = marey__tree_cpu_ns();
    out->tree_wall_ns = marey__clock_ns(CLOCK_MONOTONIC);
}

void marey__usage_begin(uint32_t mask, struct marey__usage *out)
{
    read_files(mask, out);
    read_tree(mask, out);
    if ((mask & MAREY_USAGE_FAULTS) != 0)
        read_faults(out);
    if ((mask & MAREY_USAGE_PROCESS_CPU) != 0)
        out->process_cpu_ns = marey__clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if ((mask & MAREY_USAGE_THREAD_CPU) != 0)
        out->thread_cpu_ns = marey__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    out->wall_ns = marey__clock_ns(CLOCK_MONOTONIC);
}

void marey__usage_end(uint32_t mask, struct marey__usage *out)
{
    out->wall_ns = marey__clock_ns(CLOCK_MONOTONIC);
    if ((mask & MAREY_USAGE_THREAD_CPU) != 0)
        out->thread_cpu_ns = marey__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if ((mask & MAREY_USAGE_PROCESS_CPU) != 0)
        out->process_cpu_ns = marey__clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if ((mask & MAREY_USAGE_FAULTS) != 0)
        read_faults(out);
    read_tree(mask, out);
    read_files(mask, out);
}

/* All counters as an array; the last one, resident memory, is signed and may shrink. */
enum { N_COUNTERS = sizeof(struct marey__usage) / sizeof(uint64_t) };
static_assert(offsetof(struct marey__usage, rss_bytes) == (N_COUNTERS - 1) * sizeof(uint64_t),
              "last");

void marey__usage_add(struct marey__usage *sum, const struct marey__usage *begin,
                      const struct marey__usage *end)
{
    uint64_t from[N_COUNTERS], to[N_COUNTERS];
    struct marey__usage difference;
    memcpy(from, begin, sizeof from);
    memcpy(to, end, sizeof to);
    for (size_t i = 0; i < N_COUNTERS; i++)
        to[i] = to[i] > from[i] || i == N_COUNTERS - 1 ? to[i] - from[i] : 0;
    memcpy(&difference, to, sizeof to);
    marey__usage_merge(sum, &difference);
}

void marey__usage_merge(struct marey__usage *sum, const struct marey__usage *other)
{
    uint64_t into[N_COUNTERS], more[N_COUNTERS];
    memcpy(into, sum, sizeof into);
    memcpy(more, other, sizeof more);
    for (size_t i = 0; i < N_COUNTERS; i++)
        into[i] += more[i];
    memcpy(sum, into, sizeof into);
}

/* ---- available counters ---- */

/* Whether /proc exists and is that of our pid namespace, so that its pids are ours. */
static bool has_own_proc(void)
{
    char link[32];
    uint64_t pid;
    const ssize_t len = readlink("/proc/self", link, sizeof link);
    return len > 0 && marey__parse_number(link, (size_t)len, &pid) && pid == (uint64_t)getpid();
}

marey_status marey__usage_check(uint32_t mask)
{
    uint64_t ns;
    int64_t bytes;
    if ((mask & ~(uint32_t)MAREY__USAGE_ALL) != 0)
        return marey__fail(MAREY_EINVAL, "%#x is not a kind of usage; see enum marey_stopwatch_usage",
                           mask & ~(uint32_t)MAREY__USAGE_ALL);
    if ((mask & MAREY_USAGE_TREE_CPU) != 0 && !has_own_proc())
        return marey__fail(
            MAREY_EUNAVAILABLE,
            "the CPU time of descendants cannot be read: /proc belongs to another PID "
            "namespace; mount this one's, or measure only this process");
    if ((mask & MAREY_USAGE_MACHINE_CPU) != 0 && !read_machine(&ns))
        return marey__fail(
            MAREY_EUNAVAILABLE,
            "the machine's CPU time cannot be read: /proc/stat is missing or invalid; measure "
            "only this process");
    if ((mask & MAREY_USAGE_RSS) != 0 && !read_rss(&bytes))
        return marey__fail(MAREY_EUNAVAILABLE,
                           "the resident memory cannot be read: /proc/self/statm is missing or "
                           "invalid; mount /proc");
    return MAREY_OK;
}
