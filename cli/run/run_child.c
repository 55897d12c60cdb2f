/*
 * The program under `marey run`: started in our process group, so that the terminal treats both as one, and awaited.
 *
 * There are no signal handlers: forwarded signals are blocked and received in one place. The kernel sends signals from
 * the terminal (ctrl-C) to the whole group, including the program, so forwarding would duplicate them. A signal sent to
 * us by kill(2) is meant for the program.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run/run.h"

static const int passed_on[] = {
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGALRM, SIGWINCH, SIGPWR, SIGIO,
};

static void signals_to_take(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof passed_on[0]; i++)
        sigaddset(set, passed_on[i]);
}

/* posix_spawn reports a failed exec, and does not copy our address space. */
static int spawn(char *const *program, const sigset_t *mask, pid_t *pid)
{
    extern char **environ;
    posix_spawnattr_t attr;
    int error = posix_spawnattr_init(&attr);
    if (error != 0)
        return error;
    posix_spawnattr_setsigmask(&attr, mask);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    /* The program gets the inherited SIGPIPE disposition. Nothing is written meanwhile. */
    signal(SIGPIPE, cli_inherited_sigpipe);
    error = posix_spawnp(pid, program[0], NULL, &attr, program, environ);
    signal(SIGPIPE, SIG_DFL);
    posix_spawnattr_destroy(&attr);
    return error;
}

/*
 * Whether the program has ended. Does not reap: a sampler in another thread stops the program briefly, and waitpid
 * would consume its notifications.
 */
static bool has_ended(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != pid)
        return false;
    return info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
}

static uint64_t to_ns(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void wait_and_pass_signals(pid_t pid, const sigset_t *taken, struct run_end *end)
{
    for (;;) {
        siginfo_t info;
        struct rusage used;
        const int sig = sigwaitinfo(taken, &info);
        if (sig == SIGCHLD) {
            if (has_ended(pid) && wait4(pid, &end->wait_status, 0, &used) == pid) {
                end->cpu_ns = to_ns(used.ru_utime) + to_ns(used.ru_stime);
                return;
            }
        } else if (sig > 0 && info.si_code <= 0) { /* from a process, not the kernel */
            kill(pid, sig);
        }
    }
}

static void do_nothing(int sig)
{
    (void)sig;
}

int run_child(char *const *program, struct run_end *end, run_started *started, void *ctx)
{
    const struct sigaction handled = {.sa_handler = do_nothing, .sa_flags = SA_NOCLDSTOP};
    sigset_t taken, before;
    pid_t pid;
    signals_to_take(&taken);
    /* If SIGCHLD was left ignored, the program's end would go unnoticed. Its default action discards it too:
       resetting it loses a pending signal. */
    sigaction(SIGCHLD, &handled, NULL);
    sigprocmask(SIG_BLOCK, &taken, &before);
    const uint64_t start_ns = now_ns();
    const int error = spawn(program, &before, &pid);
    if (error == 0 && started != NULL)
        started(ctx, pid);
    if (error == 0)
        wait_and_pass_signals(pid, &taken, end);
    end->wall_ns = now_ns() - start_ns;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return error;
}

int run_pass_on(int wait_status)
{
    if (WIFEXITED(wait_status))
        return WEXITSTATUS(wait_status);
    const int sig = WTERMSIG(wait_status);
    sigset_t only;
    /* The program has dumped its core; ours would be in the way. */
    prctl(PR_SET_DUMPABLE, 0);
    signal(sig, SIG_DFL);
    sigemptyset(&only);
    sigaddset(&only, sig);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    raise(sig);
    return 128 + sig;
}
