/*
 * Allows processes of the same user to attach. Under Yama (kernel.yama.ptrace_scope 1) a process may name the tracer;
 * without Yama any may attach.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/types.h>

#include "base/internal.h"
#include <marey/switchboard.h>

/* The allowed pid as prctl takes it; 0: none. Written by marey_allow_attach, read by a forked child. */
static _Atomic unsigned long allowed;

/* The permission applies to one process and not to its children, such as workers of data loaders. */
static void allow_again(void)
{
    const unsigned long who = atomic_load_explicit(&allowed, memory_order_relaxed);
    if (who != 0)
        prctl(PR_SET_PTRACER, who, 0, 0, 0);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, allow_again);
}

/* kernel.yama.ptrace_scope; -1 without Yama. */
static int yama_scope(void)
{
    char text[16];
    uint64_t scope;
    const size_t len = marey__read_text("/proc/sys/kernel/yama/ptrace_scope", text, sizeof text);
    return marey__parse_number(text, len, &scope) && scope <= 3 ? (int)scope : -1;
}

marey_status marey_allow_attach(int64_t pid)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const unsigned long who = pid == 0 ? PR_SET_PTRACER_ANY : (unsigned long)pid;
    if (pid < 0 || pid > INT32_MAX)
        return marey__fail(MAREY_EINVAL,
                           "%lld is not a process id; 0 allows any process of this user",
                           (long long)pid);
    pthread_once(&once, watch_forks);
    const bool is_allowed = prctl(PR_SET_PTRACER, who, 0, 0, 0) == 0;
    const int error = errno, scope = yama_scope();
    if (scope >= 2)
        return marey__fail(MAREY_EUNAVAILABLE,
                           "kernel.yama.ptrace_scope is %d here, so no process can allow others to "
                           "attach; %s",
                           scope,
                           scope == 2 ? "attach as root" : "only a reboot without it changes that");
    if (!is_allowed && scope >= 0 && error == EINVAL)
        return marey__fail(MAREY_EINVAL, "there is no process %lld to allow", (long long)pid);
    if (!is_allowed && scope >= 0) {
        errno = error;
        return marey__fail_errno("allow others to attach");
    }
    atomic_store_explicit(&allowed, who, memory_order_relaxed);
    return MAREY_OK;
}
