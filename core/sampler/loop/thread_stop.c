/*
 * Stops one thread briefly.
 *
 * PTRACE_SEIZE and PTRACE_INTERRUPT send no signal, and if we die the kernel resumes the thread. Instead of the
 * requested stop there may be: a signal on its way to the thread, which PTRACE_DETACH delivers; a stop of the whole
 * process (SIGSTOP, ctrl-Z), which persists after PTRACE_DETACH; its exit. A thread that does not stop (it waits for a
 * disk, say) cannot be detached until it does: it is remembered, and checked in each round.
 *
 * We wait for the stop in the kernel, which wakes us on the CPU core that the thread has just left; sleeping instead
 * would leave the thread stopped for milliseconds when cores are scarce. A signal of ours ends a wait that takes too
 * long.
 *
 * Stop and go must come from the same thread, the tracer.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/loop/internal.h"

enum {
    N_SPINS = 24, /* a thread on another core stops within some microseconds */
};

/* ---- the signal that ends a wait ---- */

static pthread_once_t signal_once = PTHREAD_ONCE_INIT;
static int wake_signal; /* 0: none available. Stored once, before any use */

static void do_nothing(int sig)
{
    (void)sig;
}

static void choose_signal(void)
{
    struct sigaction now, ours = {.sa_handler = do_nothing}; /* no SA_RESTART: it must interrupt */
    for (int sig = SIGRTMAX - 2; sig > SIGRTMIN && wake_signal == 0; sig--)
        if (sigaction(sig, NULL, &now) == 0 && now.sa_handler == SIG_DFL &&
            sigaction(sig, &ours, NULL) == 0)
            wake_signal = sig;
}

/*
 * Sends a signal to this thread after the patience, and repeatedly after that, in case the first comes before the wait.
 */
static bool set_timer(struct marey__stops *stops, bool is_on)
{
    if (!stops->has_timer) {
        pthread_once(&signal_once, choose_signal);
        struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = wake_signal};
        event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
        if (wake_signal == 0 || timer_create(CLOCK_MONOTONIC, &event, &stops->timer) != 0)
            return false;
        sigset_t ours;
        sigemptyset(&ours);
        sigaddset(&ours, wake_signal);
        pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
        stops->has_timer = true;
    }
    const struct timespec span = {.tv_nsec = is_on ? stops->patience_ns : 0};
    return timer_settime(stops->timer, 0,
                         &(struct itimerspec){.it_value = span, .it_interval = span}, NULL) == 0;
}

/* ---- stopping ---- */

/* Raises our priority, if permitted, while a thread is stopped: being preempted would cost milliseconds. */
static void raise_priority(struct marey__stops *stops)
{
    const struct sched_param first = {.sched_priority = 1};
    if (stops->has_no_priority || stops->is_raised)
        return;
    stops->policy = sched_getscheduler(0);
    const int policy = stops->policy & ~SCHED_RESET_ON_FORK;
    const bool is_ordinary = policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE;
    stops->is_raised =
        is_ordinary && sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0;
    stops->has_no_priority = !stops->is_raised;
}

/*
 * The flag stays: clearing SCHED_RESET_ON_FORK requires CAP_SYS_NICE, which processes with RLIMIT_RTPRIO may lack. If
 * the priority cannot be lowered, it is not raised again.
 */
static void drop_priority(struct marey__stops *stops)
{
    const struct sched_param none = {0};
    if (!stops->is_raised)
        return;
    stops->is_raised = sched_setscheduler(0, stops->policy | SCHED_RESET_ON_FORK, &none) != 0;
    stops->has_no_priority = stops->is_raised;
}

/* Whether the thread is stopped, whichever of our threads was notified. */
static bool is_stopped(pid_t tid)
{
    unsigned long message;
    return ptrace(PTRACE_GETEVENTMSG, tid, NULL, &message) == 0;
}

/* The signal that a stopped thread was about to receive, if we were not notified. */
static int signal_of(pid_t tid)
{
    siginfo_t info;
    const bool is_known = ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) == 0;
    return is_known && info.si_code >> 8 != PTRACE_EVENT_STOP ? info.si_signo : 0;
}

/* Whether the thread is the main thread of a process that we started. */
static bool is_child_of_ours(pid_t tid)
{
    char text[1024];
    marey__read_proc(tid, 0, "status", text, sizeof text);
    return marey__status_number(text, "\nTgid:", 10) == (uint64_t)tid &&
           marey__status_number(text, "\nPPid:", 10) == (uint64_t)getpid();
}

/* The thread exited while traced, and is a zombie. The exit status of our child is left for the thread that waits for it. */
static void detach(pid_t tid)
{
    int status;
    if (!is_child_of_ours(tid))
        (void)waitpid(tid, &status, __WALL | WNOHANG);
}

/*
 * The state of an interrupted thread. `*sig` gets the signal that it was about to receive, or 0. Another of our threads
 * may wait for the program and be notified of the stop instead; hence is_stopped.
 */
static enum marey__stopped ask(pid_t tid, bool shall_wait, int *sig)
{
    siginfo_t info = {.si_pid = 0};
    const int got = waitid(P_PID, (id_t)tid, &info, WSTOPPED | __WALL | (shall_wait ? 0 : WNOHANG));
    if (got == 0 && info.si_pid == tid) {
        *sig = info.si_status >> 8 == 0 ? info.si_status : 0;
        return MAREY__STOPPED;
    }
    if (got == 0 || errno == EINTR) {
        if (got == 0 || !is_stopped(tid))
            return MAREY__STOP_LATE;
        *sig = signal_of(tid);
        return MAREY__STOPPED;
    }
    detach(tid);
    return MAREY__STOP_GONE;
}

static enum marey__stopped await(struct marey__stops *stops, pid_t tid)
{
    for (int n = 0; n < N_SPINS; n++) {
        const enum marey__stopped answer = ask(tid, false, &stops->signal);
        if (answer != MAREY__STOP_LATE)
            return answer;
        stops->begin_ns = marey__clock_ns(CLOCK_MONOTONIC); /* it was running until now */
    }
    if (!set_timer(stops, true))
        return MAREY__STOP_LATE;
    const enum marey__stopped answer = ask(tid, true, &stops->signal);
    stops->begin_ns = marey__clock_ns(CLOCK_MONOTONIC);
    (void)set_timer(stops, false);
    return answer;
}

enum marey__stopped marey__thread_stop(struct marey__stops *stops, pid_t tid)
{
    /* Make room first: a late thread must be remembered. */
    if (!marey__grow(&stops->late, &stops->late_cap, stops->n_late + 1, sizeof *stops->late))
        return MAREY__STOP_FAILED;
    for (size_t i = 0; i < stops->n_late; i++)
        if (stops->late[i].tid == tid)
            return MAREY__STOP_FAILED;
    stops->signal = 0;
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
        return errno == ESRCH ? MAREY__STOP_GONE : MAREY__STOP_FAILED;
    raise_priority(stops);
    stops->begin_ns = marey__clock_ns(CLOCK_MONOTONIC);
    enum marey__stopped answer = MAREY__STOP_GONE;
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0)
        answer = await(stops, tid);
    else
        ptrace(PTRACE_DETACH, tid, NULL, NULL); /* it has exited: nothing to resume */
    if (answer == MAREY__STOP_LATE)
        stops->late[stops->n_late++].tid = tid;
    if (answer != MAREY__STOPPED)
        drop_priority(stops);
    return answer;
}

uint64_t marey__thread_resume(struct marey__stops *stops, pid_t tid)
{
    ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)stops->signal);
    const uint64_t stood_ns = marey__clock_ns(CLOCK_MONOTONIC) - stops->begin_ns;
    drop_priority(stops);
    return stood_ns;
}

/* Whether nothing is left to do for it. */
static bool resume_late(pid_t tid)
{
    int sig = 0;
    enum marey__stopped answer = ask(tid, false, &sig);
    if (answer == MAREY__STOP_LATE && is_stopped(tid)) {
        answer = MAREY__STOPPED;
        sig = signal_of(tid);
    }
    if (answer == MAREY__STOPPED)
        ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)sig);
    return answer != MAREY__STOP_LATE;
}

void marey__stops_resume_late(struct marey__stops *stops, bool is_last)
{
    /* When the tracing thread exits, the kernel detaches the rest; a second allows an orderly end. */
    for (unsigned n = 0; n < 1000 && stops->n_late > 0; n++) {
        size_t kept = 0;
        for (size_t i = 0; i < stops->n_late; i++)
            if (!resume_late(stops->late[i].tid))
                stops->late[kept++] = stops->late[i];
        stops->n_late = kept;
        if (!is_last)
            return;
        if (kept > 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

void marey__stops_fini(struct marey__stops *stops)
{
    marey__stops_resume_late(stops, true);
    if (stops->has_timer)
        timer_delete(stops->timer);
    marey__free(stops->late);
    *stops = (struct marey__stops){0};
}
