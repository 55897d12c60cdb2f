/*
 * fault_stop_calls RECORDING: print how many system calls the calling thread makes in marey_stop(), as a tracer counts
 * them between two calls that nothing else makes. 77: tracing is not permitted here.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sequence.h"

enum { MARK = SYS_getsid, REFUSED = 77 };

static void record(const char *path)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(REFUSED);
    raise(SIGSTOP);
    sequence_start(path, "");
    sequence_ranges(1000);
    syscall(MARK, 0);
    marey_stop();
    syscall(MARK, 0);
    _exit(0);
}

/* The number of the system call at which `child` stopped, on its way in or out. */
static long call_of(pid_t child)
{
#ifdef __x86_64__
    struct user_regs_struct regs;
    return ptrace(PTRACE_GETREGS, child, NULL, &regs) == 0 ? (long)regs.orig_rax : -1;
#else
    struct __ptrace_syscall_info info;
    return ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) > 0 ? (long)info.entry.nr : -1;
#endif
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    const pid_t child = fork();
    if (child == 0)
        record(argv[1]);
    int status, n_marks = 0;
    long n_stops = 0;
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status))
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
    for (long signal = 0; n_marks < 4; n_stops += n_marks >= 2 && n_marks < 4 && signal == 0) {
        ptrace(PTRACE_SYSCALL, child, NULL, (void *)signal);
        if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
            return 1;
        signal = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
        n_marks += signal == 0 && call_of(child) == MARK;
    }
    printf("%ld\n", n_stops / 2);
    return 0;
}
