/*
 * Child processes for operations that may crash or hang, such as a broken driver or an interpreter waiting for a dead
 * file server. Children write lines to a pipe. All are awaited at once, until one deadline; those that have not ended
 * by then are killed, with everything they started.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/internal.h"
#include "record/internal.h"

/* ---- in the child ---- */

/* The parent's handlers and standard streams are unsuitable here. */
static void settle_child(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL,  SIGFPE,  SIGABRT, SIGTRAP,
                                  SIGSYS,  SIGINT, SIGTERM, SIGPIPE, SIGALRM, SIGCHLD};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; i < MAREY__COUNT_OF(signals); i++)
        signal(signals[i], SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* With a limit of one byte the kernel writes no core file, nor starts a core collector. */
    setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1});
    const int null = open("/dev/null", O_RDWR);
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
}

/* The pipe must not be one of the three streams that are replaced. */
static int move_high(int fd)
{
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (high >= 0)
        close(fd);
    return high;
}

static _Noreturn void be_child(marey__probe_work *work, void *ctx, int fd)
{
    const int high = move_high(fd);
    settle_child();
    _exit(high >= 0 ? work(ctx, high) : 127);
}

int marey__probe_exec(char *const *argv, int fd)
{
    static const char *const unwanted[] = {"MAREY", "MAREY_OPTIONS", "MAREY_BOOT_SAID"};
    for (size_t i = 0; i < MAREY__COUNT_OF(unwanted); i++)
        unsetenv(unwanted[i]);
    if (dup2(fd, STDOUT_FILENO) >= 0)
        execv(argv[0], argv);
    return 126;
}

/* ---- in the parent ---- */

void marey__probe_start(struct marey__probe *probe, marey__probe_work *work, void *ctx)
{
    int ends[2];
    probe->outcome = MAREY__PROBE_FAILED;
    probe->fd = -1;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        probe->code = errno;
        return;
    }
    probe->pid = fork();
    if (probe->pid == 0)
        be_child(work, ctx, ends[1]);
    probe->code = errno;
    close(ends[1]);
    if (probe->pid < 0) {
        close(ends[0]);
        return;
    }
    setpgid(probe->pid, probe->pid); /* in both processes, as either may run first */
    probe->fd = ends[0];
    probe->outcome = MAREY__PROBE_RUNNING;
}

/* Reads available output. False at the end of the stream. */
static bool take(struct marey__probe *probe)
{
    char dropped[4096];
    const size_t room = sizeof probe->text - 1 - probe->len;
    const ssize_t n = read(probe->fd, room > 0 ? probe->text + probe->len : dropped,
                           room > 0 ? room : sizeof dropped);
    if (n > 0 && room > 0)
        probe->len += (size_t)n;
    return n > 0 || (n < 0 && errno == EINTR);
}

static int left_ms(uint64_t deadline_ns)
{
    const uint64_t now = marey__clock_ns(CLOCK_MONOTONIC);
    return now < deadline_ns ? (int)((deadline_ns - now) / 1000000u) + 1 : 0;
}

/* Whether it has ended, waiting briefly for one that closed its pipe. It is not reaped yet. */
static bool has_ended(const struct marey__probe *probe, uint64_t deadline_ns)
{
    for (;;) {
        siginfo_t info = {0};
        const int got = waitid(P_PID, (id_t)probe->pid, &info, WEXITED | WNOHANG | WNOWAIT);
        if ((got == 0 && info.si_pid == probe->pid) || (got < 0 && errno == ECHILD))
            return true;
        if (left_ms(deadline_ns) == 0)
            return false;
        usleep(1000);
    }
}

/* If the host ignores SIGCHLD, the status is unavailable; then assume success. */
static void reap(struct marey__probe *probe)
{
    int status = 0;
    pid_t got;
    do
        got = waitpid(probe->pid, &status, 0);
    while (got < 0 && errno == EINTR);
    const bool crashed = got > 0 && WIFSIGNALED(status);
    probe->code = got < 0 ? 0 : crashed ? WTERMSIG(status) : WEXITSTATUS(status);
    if (probe->outcome != MAREY__PROBE_HUNG)
        probe->outcome = crashed ? MAREY__PROBE_CRASHED : MAREY__PROBE_DONE;
}

static void finish(struct marey__probe *probe, bool at_end, uint64_t deadline_ns)
{
    if (!at_end || !has_ended(probe, deadline_ns))
        probe->outcome = MAREY__PROBE_HUNG;
    /* Also kills what it left running. It is not reaped yet, so the number of its group is still valid. */
    kill(-probe->pid, SIGKILL);
    reap(probe);
    close(probe->fd);
    probe->text[probe->len] = '\0';
}

enum { MAX_AT_ONCE = 8 };

void marey__probe_wait(struct marey__probe *probes, size_t n, uint64_t deadline_ns)
{
    MAREY_ASSERT(n <= MAX_AT_ONCE);
    struct pollfd fds[MAX_AT_ONCE];
    for (size_t running = n; running > 0;) {
        running = 0;
        for (size_t i = 0; i < n; i++) {
            const bool runs = probes[i].outcome == MAREY__PROBE_RUNNING;
            fds[i] = (struct pollfd){.fd = runs ? probes[i].fd : -1, .events = POLLIN};
            running += runs;
        }
        const int wait_ms = left_ms(deadline_ns);
        if (running == 0 || wait_ms == 0 || (poll(fds, n, wait_ms) < 0 && errno != EINTR))
            break;
        for (size_t i = 0; i < n; i++)
            if (fds[i].fd >= 0 && fds[i].revents != 0 && !take(&probes[i]))
                finish(&probes[i], true, deadline_ns);
    }
    for (size_t i = 0; i < n; i++)
        if (probes[i].outcome == MAREY__PROBE_RUNNING)
            finish(&probes[i], false, deadline_ns);
}

const char *marey__probe_trouble(const struct marey__probe *probe, char *into, size_t size)
{
    switch (probe->outcome) {
    case MAREY__PROBE_DONE:
        if (probe->code == 0)
            return NULL;
        snprintf(into, size, "it ended with status %d", probe->code);
        break;
    case MAREY__PROBE_CRASHED:
        snprintf(into, size, "it crashed (%s)", strsignal(probe->code));
        break;
    case MAREY__PROBE_RUNNING:
    case MAREY__PROBE_HUNG:
        snprintf(into, size, "it did not answer in time");
        break;
    case MAREY__PROBE_FAILED:
        snprintf(into, size, "no process could be started for it (%s)", strerror(probe->code));
        break;
    }
    return into;
}

bool marey__probe_number(const struct marey__probe *probe, const char *key, uint64_t *out)
{
    char text[32];
    return MAREY__PROBE_FIELD(probe, key, text) && marey__parse_number(text, strlen(text), out);
}

bool marey__find_program(const char *name, char *path, size_t size)
{
    const char *list = getenv("PATH");
    for (const char *at = list != NULL ? list : "/usr/bin:/bin"; at != NULL;) {
        const size_t len = strcspn(at, ":");
        const int n = len > 0 ? snprintf(path, size, "%.*s/%s", (int)len, at, name)
                              : snprintf(path, size, "./%s", name);
        if (n > 0 && (size_t)n < size && access(path, X_OK) == 0)
            return true;
        at = at[len] == ':' ? at + len + 1 : NULL;
    }
    return false;
}
