/*
 * Why a process may not be read, and the command that helps. The kernel returns only EPERM, so its checks are repeated
 * here: the owner, Yama, capabilities, seccomp filters, namespaces.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/remote/internal.h"

enum { CAP_PTRACE = 19 };

static bool is_descendant(pid_t pid)
{
    for (int steps = 0; pid > 1 && steps < 64; steps++) {
        struct marey__process_stat stat;
        if (pid == getpid())
            return true;
        if (!marey__read_process_stat(pid, 0, &stat))
            return false;
        pid = (pid_t)stat.parent;
    }
    return false;
}

/* Whether both are in the same user namespace; if that is not visible, assume so. */
static bool shares_user_namespace(pid_t pid)
{
    char path[64];
    struct stat own, other;
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    return stat("/proc/self/ns/user", &own) != 0 || stat(path, &other) != 0 ||
           own.st_ino == other.st_ino;
}

bool marey__permission_look(pid_t pid, struct marey__permission *out)
{
    char path[64], text[4096];
    struct stat status;
    uint64_t scope;
    *out = (struct marey__permission){.pid = pid, .own_uid = geteuid(), .yama = -1};
    marey__read_text("/proc/self/status", text, sizeof text);
    out->own_capabilities = marey__status_number(text, "\nCapEff:", 16);
    out->is_filtered = marey__status_number(text, "\nSeccomp:", 10) != 0;
    const size_t len = marey__read_text("/proc/sys/kernel/yama/ptrace_scope", text, sizeof text);
    if (marey__parse_number(text, len, &scope) && scope <= 3)
        out->yama = (int)scope;
    if (marey__read_proc(pid, 0, "status", text, sizeof text) == 0)
        return false;
    out->uid = (uid_t)marey__status_number(text, "\nUid:", 10);
    out->capabilities = marey__status_number(text, "\nCapPrm:", 16);
    out->tracer = (pid_t)marey__status_number(text, "\nTracerPid:", 10);
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    /* The kernel assigns the folder to root if the program is not dumpable. */
    out->is_undumpable = stat(path, &status) == 0 && status.st_uid != out->uid && status.st_uid == 0;
    out->is_descendant = is_descendant(pid);
    out->is_other_user_namespace = !shares_user_namespace(pid);
    return true;
}

/* The current command line if it reads a process: the advice is to repeat it. */
static const char *own_command(char *out, size_t size)
{
    static const char *const commands[] = {"attach", "stacks", "top", "watch", "run"};
    const size_t len = marey__read_text("/proc/self/cmdline", out, size);
    const char *const program = marey__base_name(out);
    const char *const word = out + strlen(out) + 1;
    for (size_t i = 0; i < MAREY__COUNT_OF(commands) && strcmp(program, "marey") == 0; i++)
        if ((size_t)(word - out) < len && strcmp(word, commands[i]) == 0)
            return commands[i];
    return commands[0];
}

void marey__permission_explain(const struct marey__permission *p, char *out, size_t size)
{
    char typed[4096], again[64];
    const char *const command = own_command(typed, sizeof typed);
    if (strcmp(command, "run") == 0)
        snprintf(again, sizeof again, "sudo marey run ...");
    else
        snprintf(again, sizeof again, "sudo marey %s %d", command, (int)p->pid);
    const bool may_trace = (p->own_capabilities >> CAP_PTRACE & 1) != 0;
    const int pid = (int)p->pid;
    if (p->yama == 3)
        snprintf(out, size,
                 "kernel.yama.ptrace_scope is 3: no process may attach until the machine is "
                 "booted with another value in /etc/sysctl.d");
    else if (p->is_other_user_namespace)
        snprintf(out, size,
                 "process %d is in another user namespace, as in a rootless container: run "
                 "`%s` outside of it, or run marey inside",
                 pid, again);
    else if (!may_trace && p->uid != p->own_uid && p->own_uid != 0 && p->uid == 0)
        snprintf(out, size, "process %d belongs to root and marey runs as uid %u: run `%s`", pid,
                 (unsigned)p->own_uid, again);
    else if (!may_trace && p->uid != p->own_uid && p->own_uid != 0)
        snprintf(
            out,
            size, "process %d belongs to the user with uid %u and marey runs as uid %u: run `%s`, or `sudo -u '#%u' marey %s %d`",
            pid, (unsigned)p->uid, (unsigned)p->own_uid, again, (unsigned)p->uid, command, pid);
    else if (!may_trace && p->yama == 2)
        snprintf(out, size, "kernel.yama.ptrace_scope is 2: only root may attach; run `%s`", again);
    else if (!may_trace && p->yama == 1 && !p->is_descendant)
        snprintf(out, size,
                 "kernel.yama.ptrace_scope is 1 and process %d was not started by marey: run "
                 "`%s`, or `sudo sysctl kernel.yama.ptrace_scope=0`, or call "
                 "marey.allow_attach() in the program, or start it by `marey run --sample`",
                 pid, again);
    else if (!may_trace && p->is_undumpable)
        snprintf(out, size,
                 "process %d is not dumpable (setuid, capabilities or PR_SET_DUMPABLE): run `%s`",
                 pid, again);
    else if (!may_trace && (p->own_uid == 0 || (p->capabilities & ~p->own_capabilities) != 0))
        snprintf(out, size,
                 "process %d has capabilities that marey lacks; reading it needs "
                 "CAP_SYS_PTRACE: in Docker start the container with `--cap-add=SYS_PTRACE`, in "
                 "Kubernetes add SYS_PTRACE to "
                 "securityContext.capabilities.add, elsewhere run `%s`",
                 pid, again);
    else if (p->is_filtered)
        snprintf(out, size,
                 "a seccomp filter blocks reading process %d: in Docker start the container with "
                 "`--cap-add=SYS_PTRACE`, or with `--security-opt seccomp=unconfined`",
                 pid);
    else
        snprintf(out, size, "the kernel does not let marey read process %d: run `%s`", pid, again);
}

marey_status marey__remote_explain_denial(pid_t pid)
{
    struct marey__permission permission;
    char sentence[512];
    if (!marey__permission_look(pid, &permission))
        return marey__fail(MAREY_EIO, "there is no process %d", (int)pid);
    marey__permission_explain(&permission, sentence, sizeof sentence);
    return marey__fail(MAREY_EIO, "%s", sentence);
}
