/*
 * Whether Python in other processes can be read, and the cost: an interpreter is started, read and ended. Then Python
 * processes that are already running, of any user, are tried and left alone.
 */
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "doctor/internal.h"
#include "record/internal.h"
#include "sampler/remote/internal.h"

enum {
    READ_BYTES = 2048,
    N_READS = 200,
    N_STOPS = 20,
    MOST_RUNNING = 64,
    LEAST_MS = 500,
    MOST_MS = 3000,
    MS_NS = 1000000
};

/* ---- a Python started for the test ---- */

static int be_python(void *ctx, int fd)
{
    const struct marey__python *python = ctx;
    char *argv[] = {(char *)(uintptr_t)python->path, (char *)(uintptr_t) "-S",
                    (char *)(uintptr_t) "-c", (char *)(uintptr_t) "import time; time.sleep(60)",
                    NULL};
    return marey__probe_exec(argv, fd);
}

/* Opens it once it is a Python: the program on the PATH may be a script that selects one. */
static marey_status open_python(const struct marey__doctor *doctor, pid_t pid,
                                struct marey__remote **out)
{
    const uint64_t begin_ns = marey__clock_ns(CLOCK_MONOTONIC);
    const uint64_t end_ns =
        MAREY__MIN(MAREY__MAX(doctor->deadline_ns, begin_ns + LEAST_MS * (uint64_t)MS_NS),
                   begin_ns + MOST_MS * (uint64_t)MS_NS);
    marey_status status;
    do {
        status = marey__remote_open(pid, NULL, 20, out);
    } while ((status == MAREY_EUNAVAILABLE || status == MAREY_ESTATE) &&
             marey__clock_ns(CLOCK_MONOTONIC) < end_ns &&
             nanosleep(&(struct timespec){.tv_nsec = 5 * MS_NS}, NULL) == 0);
    return status;
}

/* The minimum of many, in nanoseconds, without interference. Negative: refused. */
static double cost_of_read(struct marey__remote *remote)
{
    char bytes[READ_BYTES];
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < N_READS; i++) {
        const uint64_t begin_ns = marey__clock_ns(CLOCK_MONOTONIC);
        if (!marey__remote_read(remote, marey__remote_runtime(remote), bytes, sizeof bytes))
            return -1;
        least_ns = MAREY__MIN(least_ns, marey__clock_ns(CLOCK_MONOTONIC) - begin_ns);
    }
    return (double)least_ns;
}

static bool stop_once(pid_t pid)
{
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0)
        return false;
    const bool is_stopped = ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0 &&
                            waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WSTOPPED | __WALL) == 0;
    return ptrace(PTRACE_DETACH, pid, NULL, NULL) == 0 && is_stopped;
}

static double cost_of_stop(pid_t pid)
{
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < N_STOPS; i++) {
        const uint64_t begin_ns = marey__clock_ns(CLOCK_MONOTONIC);
        if (!stop_once(pid))
            return -1;
        least_ns = MAREY__MIN(least_ns, marey__clock_ns(CLOCK_MONOTONIC) - begin_ns);
    }
    return (double)least_ns;
}

static void report_costs(struct marey__doctor *doctor, struct marey__remote *remote, pid_t pid)
{
    const double read_ns = cost_of_read(remote), stop_ns = cost_of_stop(pid);
    if (read_ns >= 0)
        marey__doctor_amount(doctor, "cost of a read", NULL, read_ns, "ns");
    if (stop_ns >= 0)
        marey__doctor_amount(doctor, "cost of a stop", NULL, stop_ns, "ns");
    else
        marey__doctor_limited(doctor, "cost of a stop",
                              "allow ptrace in the container: docker run --cap-add=SYS_PTRACE",
                              "threads cannot be stopped here: all samples are snapshots");
}

static void report_python(struct marey__doctor *doctor, const struct marey__python *python,
                          bool is_first)
{
    struct marey__probe *probe MAREY__FREED = marey__calloc(1, sizeof *probe);
    struct marey__remote *remote = NULL;
    if (probe == NULL)
        return;
    marey__probe_start(probe, be_python, (void *)(uintptr_t)python);
    if (probe->outcome == MAREY__PROBE_RUNNING) {
        if (open_python(doctor, probe->pid, &remote) == MAREY_OK)
            marey__doctor_ok(doctor, python->command, "%s (%s) can be read from outside",
                             python->path, python->version);
        else
            marey__doctor_missing(doctor, python->command,
                                  marey__python_is_too_old(python)
                                      ? "use Python 3.10 to 3.14"
                                      : "'marey doctor --wait 5' gives it more time to start",
                                  "%s: %s", python->path, marey_last_error());
        if (remote != NULL && is_first)
            report_costs(doctor, remote, probe->pid);
        marey__remote_close(remote);
        kill(probe->pid, SIGKILL);
    }
    marey__probe_wait(probe, 1, marey__clock_ns(CLOCK_MONOTONIC) + 1000 * (uint64_t)MS_NS);
}

/* ---- running Pythons ---- */

static bool is_python_named(const char *pid)
{
    char name[32];
    return marey__read_proc(strtol(pid, NULL, 10), 0, "comm", name, sizeof name) > 0 &&
           strncmp(name, "python", 6) == 0;
}

static void report_running(struct marey__doctor *doctor)
{
    unsigned n = 0, n_read = 0;
    char why[512] = "";
    DIR *proc = opendir("/proc");
    if (proc == NULL)
        return;
    for (struct dirent *entry; n < MOST_RUNNING && (entry = readdir(proc)) != NULL;) {
        struct marey__remote *remote = NULL;
        if (!isdigit((unsigned char)entry->d_name[0]) || !is_python_named(entry->d_name))
            continue;
        const marey_status status =
            marey__remote_open((pid_t)strtol(entry->d_name, NULL, 10), NULL, 0, &remote);
        n++;
        n_read += status == MAREY_OK;
        if (status != MAREY_OK && why[0] == '\0')
            snprintf(why, sizeof why, "%s", marey_last_error());
        marey__remote_close(remote);
    }
    closedir(proc);
    if (n == 0)
        marey__doctor_off(doctor, "running Pythons", "none");
    else
        marey__doctor_limited(doctor, "running Pythons", why[0] != '\0' ? why : NULL,
                              "%u of %u can be attached to", n_read, n);
}

void marey__doctor_sampling(struct marey__doctor *doctor)
{
    bool is_first = true;
    for (size_t i = 0; i < doctor->n_pythons; i++) {
        if (doctor->pythons[i].version[0] == '\0')
            continue;
        report_python(doctor, &doctor->pythons[i], is_first);
        is_first = false;
    }
    report_running(doctor);
}
