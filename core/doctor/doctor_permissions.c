/*
 * Permissions: reading the memory of a process, counting events. Tried rather than only looked up, because a
 * container's filter may refuse what the settings allow.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "doctor/internal.h"

enum { CAP_PTRACE = 19, CAP_ADMIN = 21, CAP_PERF = 38 };

struct rights {
    uint64_t capabilities;
    bool is_filtered; /* by seccomp */
    int yama;         /* kernel.yama.ptrace_scope; -1: no Yama */
};

static void find_rights(struct rights *rights)
{
    char text[4096], field[16];
    size_t len = marey__read_text("/proc/self/status", text, sizeof text);
    *rights = (struct rights){.yama = -1};
    if (!marey__parse_hex_field(text, len, "CapEff", &rights->capabilities))
        rights->capabilities = 0;
    rights->is_filtered =
        marey__parse_field(text, len, "Seccomp", field, sizeof field) && strcmp(field, "0") != 0;
    uint64_t scope;
    len = marey__read_text("/proc/sys/kernel/yama/ptrace_scope", text, sizeof text);
    if (marey__parse_number(text, len, &scope) && scope <= 3)
        rights->yama = (int)scope;
}

static bool has_capability(const struct rights *rights, int bit)
{
    return (rights->capabilities >> bit & 1) != 0;
}

/* ---- the memory of another process ---- */

static const uint64_t secret = UINT64_C(0x6d726579); /* at the same address in parent and child */

static int read_other(pid_t pid)
{
    uint64_t copy = 0;
    struct iovec here = {&copy, sizeof copy}, there = {(void *)(uintptr_t)&secret, sizeof secret};
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof copy && copy == secret)
        return 0;
    return errno != 0 ? errno : EIO;
}

/* The child reads its parent, because to it that is an unrelated process, not a child. */
static int read_parent(void *ctx, int fd)
{
    errno = 0;
    dprintf(fd, "read=%d\n", read_other(*(const pid_t *)ctx));
    return 0;
}

/* Stays alive until the parent closes its end or exits. */
static int wait_for_reader(void *ctx, int fd)
{
    char byte;
    (void)fd;
    return read(*(const int *)ctx, &byte, 1) < 0;
}

static const char *ptrace_advice(const struct rights *rights)
{
    if (rights->yama == 3)
        return "kernel.yama.ptrace_scope is 3, which only a reboot without it changes";
    if (rights->yama > 0 && !has_capability(rights, CAP_PTRACE))
        return "set kernel.yama.ptrace_scope=0, or run as root";
    if (rights->is_filtered)
        return "the container forbids it: docker run --cap-add=SYS_PTRACE";
    return "run as the same user as the program, or as root";
}

static void report_yama(struct marey__doctor *doctor, const struct rights *rights)
{
    static const char *const words[] = {"0: any process of the same user",
                                        "1: only one's own children", "2: only root", "3: nobody"};
    if (rights->yama < 0)
        marey__doctor_off(doctor, "ptrace_scope", "this kernel has no yama");
    else
        marey__doctor_add(doctor, "ptrace_scope",
                          rights->yama == 0 || has_capability(rights, CAP_PTRACE)
                              ? MAREY__STATE_OK
                              : MAREY__STATE_LIMITED,
                          NULL, "%s", words[rights->yama]);
}

static void report_memory(struct marey__doctor *doctor, const char *thing, int error,
                          const struct rights *rights)
{
    if (error == 0)
        marey__doctor_ok(doctor, thing, "allowed");
    else
        marey__doctor_missing(doctor, thing, ptrace_advice(rights), "refused: %s", strerror(error));
}

static void report_reading(struct marey__doctor *doctor, const struct rights *rights)
{
    struct marey__probe reader = {0}, target = {0};
    const pid_t self = getpid();
    uint64_t number = EIO;
    int ends[2];
    marey__probe_start(&reader, read_parent, (void *)(uintptr_t)&self);
    marey__probe_wait(&reader, 1, doctor->deadline_ns);
    if (!marey__probe_number(&reader, "read", &number))
        number = EIO;

    if (pipe(ends) != 0)
        return;
    marey__probe_start(&target, wait_for_reader, &ends[0]);
    errno = 0;
    const int error = target.outcome == MAREY__PROBE_RUNNING ? read_other(target.pid) : target.code;
    if (write(ends[1], "", 1) < 0) {
        /* Then the wait below ends it. */
    }
    marey__probe_wait(&target, 1, doctor->deadline_ns);
    close(ends[0]);
    close(ends[1]);
    report_memory(doctor, "memory of a child", error, rights);
    report_memory(doctor, "memory of others", (int)number, rights);
}

/* ---- perf events ---- */

static int try_perf(uint32_t type, uint64_t config)
{
    struct perf_event_attr attr = {.type = type,
                                   .size = sizeof attr,
                                   .config = config,
                                   .disabled = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    const long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    if (fd < 0)
        return errno;
    close((int)fd);
    return 0;
}

static const char *perf_advice(int error, const struct rights *rights)
{
    if (error == ENOENT || error == ENODEV || error == EOPNOTSUPP)
        return "the hypervisor offers no performance counters: choose a machine that does, or do "
               "without";
    if (rights->is_filtered)
        return "the container forbids it: docker run --cap-add=PERFMON, with a seccomp profile "
               "that allows it";
    return "set kernel.perf_event_paranoid=1 or lower, or give CAP_PERFMON";
}

static void report_perf(struct marey__doctor *doctor, const struct rights *rights)
{
    char text[32];
    static const struct {
        const char *thing;
        uint32_t type;
        uint64_t config;
    } events[] = {{"perf events", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
                  {"hardware counters", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES}};
    const size_t len = marey__read_line("/proc/sys/kernel/perf_event_paranoid", text, sizeof text);
    for (size_t i = 0; i < MAREY__COUNT_OF(events); i++) {
        const int error = try_perf(events[i].type, events[i].config);
        if (error == 0)
            marey__doctor_ok(doctor, events[i].thing, "allowed (perf_event_paranoid %s)",
                             len > 0 ? text : "unknown");
        else
            marey__doctor_missing(doctor, events[i].thing, perf_advice(error, rights),
                                  "refused: %s (perf_event_paranoid %s)", strerror(error),
                                  len > 0 ? text : "unknown");
    }
}

/* ---- limits ---- */

static void report_limit(struct marey__doctor *doctor, const char *thing, int resource,
                         const char *unit, double least, const char *advice)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0)
        return;
    const bool is_low = limit.rlim_cur != RLIM_INFINITY && (double)limit.rlim_cur < least;
    if (limit.rlim_cur == RLIM_INFINITY)
        marey__doctor_ok(doctor, thing, "no limit");
    else
        marey__doctor_amount(doctor, thing, is_low ? advice : NULL, (double)limit.rlim_cur, unit);
}

static void report_capabilities(struct marey__doctor *doctor, const struct rights *rights)
{
    const bool ptrace = has_capability(rights, CAP_PTRACE), perf = has_capability(rights, CAP_PERF),
               admin = has_capability(rights, CAP_ADMIN);
    if (ptrace || perf || admin)
        marey__doctor_ok(doctor, "capabilities", "%s%s%s", ptrace ? "SYS_PTRACE " : "",
                         perf ? "PERFMON " : "", admin ? "SYS_ADMIN" : "");
    else
        marey__doctor_off(doctor, "capabilities", "none of SYS_PTRACE, PERFMON, SYS_ADMIN");
}

void marey__doctor_permissions(struct marey__doctor *doctor)
{
    struct rights rights;
    find_rights(&rights);
    report_reading(doctor, &rights);
    report_yama(doctor, &rights);
    report_capabilities(doctor, &rights);
    marey__doctor_ok(doctor, "seccomp", "%s",
                     rights.is_filtered ? "a filter is on, as in most containers" : "no filter");
    report_perf(doctor, &rights);
    report_limit(doctor, "locked memory", RLIMIT_MEMLOCK, "bytes", 65536,
                 "raise it for perf buffers: ulimit -l 1024");
    report_limit(doctor, "open files", RLIMIT_NOFILE, "count", 256,
                 "raise it: ulimit -n 4096; reading a recording of many ranks opens many logs");
}
