/*
 * Why a thread is blocked, in words. A recording stores a code: the call in the low byte, the kind of its descriptor in
 * the next. Codes are the same on every CPU architecture, so system call numbers stay in this file. They are stored in
 * recordings: new ones may be added, none may change.
 */
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/unwind/internal.h"

/* By code: the enumerator and the text. */
#define CALLS(X)                                                                                   \
    X(1, FUTEX, "futex")                                                                           \
    X(2, POLL, "poll")                                                                             \
    X(3, SELECT, "select")                                                                         \
    X(4, EPOLL, "epoll")                                                                           \
    X(5, SLEEP, "sleep")                                                                           \
    X(6, READ, "read")                                                                             \
    X(7, WRITE, "write")                                                                           \
    X(8, RECEIVE, "receive")                                                                       \
    X(9, SEND, "send")                                                                             \
    X(10, ACCEPT, "accept")                                                                        \
    X(11, CONNECT, "connect")                                                                      \
    X(12, IOCTL, "ioctl")                                                                          \
    X(13, CHILD, "wait for a child")                                                               \
    X(14, SYNC, "sync to disk")                                                                    \
    X(15, OPEN, "open a file")                                                                     \
    X(16, FILES, "file system")                                                                    \
    X(17, FAULT, "page fault")                                                                     \
    X(18, LOCK, "file lock")                                                                       \
    X(19, SIGNAL, "wait for a signal")                                                             \
    X(20, SEMAPHORE, "semaphore")                                                                  \
    X(21, URING, "io_uring")                                                                       \
    X(22, MAPPING, "memory mapping")                                                               \
    X(23, COPY, "copy between files")                                                              \
    X(24, DISK, "disk")                                                                            \
    X(25, NETWORK_FILES, "network file system")                                                    \
    X(26, STOPPED, "stopped")                                                                      \
    X(27, RESTARTED, "interrupted wait")
#define ENUMERATOR(code, name, text) name = code,
enum { CALLS(ENUMERATOR) OTHER = 255 }; /* OTHER: the system call number is in the upper half */

/* System calls by code; whether the first argument is a descriptor. */
static const struct call {
    uint8_t code;
    bool has_descriptor;
    uint8_t n;
    int16_t numbers[5];
} calls[] = {
#define CALL(code, has_descriptor, ...)                                                            \
    {                                                                                              \
        code, has_descriptor, sizeof((int[]){__VA_ARGS__}) / sizeof(int),                          \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
    CALL(FUTEX, false, SYS_futex),
    CALL(POLL, false, SYS_ppoll),
    CALL(SELECT, false, SYS_pselect6),
    CALL(EPOLL, false, SYS_epoll_pwait),
    CALL(SLEEP, false, SYS_nanosleep, SYS_clock_nanosleep),
    CALL(READ, true, SYS_read, SYS_pread64, SYS_readv, SYS_preadv),
    CALL(WRITE, true, SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev),
    CALL(RECEIVE, true, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg),
    CALL(SEND, true, SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_sendfile),
    CALL(ACCEPT, true, SYS_accept, SYS_accept4),
    CALL(CONNECT, true, SYS_connect),
    CALL(IOCTL, true, SYS_ioctl),
    CALL(CHILD, false, SYS_wait4, SYS_waitid),
    CALL(SYNC, false, SYS_fsync, SYS_fdatasync, SYS_msync),
    CALL(OPEN, false, SYS_openat),
    CALL(FILES, true, SYS_getdents64, SYS_fstat, SYS_close),
    CALL(FILES, false, SYS_unlinkat),
    CALL(LOCK, true, SYS_flock),
    CALL(SIGNAL, false, SYS_rt_sigtimedwait, SYS_rt_sigsuspend),
    CALL(SEMAPHORE, false, SYS_semtimedop, SYS_semop),
    CALL(URING, false, SYS_io_uring_enter, SYS_io_getevents),
    CALL(MAPPING, false, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_madvise),
    CALL(COPY, true, SYS_copy_file_range, SYS_splice),
    CALL(RESTARTED, false, SYS_restart_syscall), /* a sleep, poll or futex with a timeout, after a stop */
#ifdef SYS_poll                                  /* older names that newer processors do not have */
    CALL(POLL, false, SYS_poll),
    CALL(SELECT, false, SYS_select),
    CALL(EPOLL, false, SYS_epoll_wait),
    CALL(SIGNAL, false, SYS_pause),
    CALL(OPEN, false, SYS_open),
    CALL(FILES, false, SYS_stat, SYS_unlink),
#endif
#ifdef SYS_epoll_pwait2
    CALL(EPOLL, false, SYS_epoll_pwait2),
#endif
#ifdef SYS_futex_waitv
    CALL(FUTEX, false, SYS_futex_waitv),
#endif
#ifdef SYS_newfstatat
    CALL(FILES, false, SYS_newfstatat),
#endif
};

/* The kind of a descriptor by its link in /proc/PID/fd; codes as above. The first match wins. */
static const struct target {
    const char *link; /* prefix */
    const char *name;
    uint8_t code;
} targets[] = {
    {"socket:", "socket", 1},
    {"pipe:", "pipe", 2},
    {"anon_inode:[eventfd", "eventfd", 3},
    {"anon_inode:[eventpoll", "epoll", 4},
    {"anon_inode:[timerfd", "timer", 5},
    {"anon_inode:", "kernel object", 6},
    {"/dev/nvidia", "nvidia", 7},
    {"/dev/kfd", "amdgpu", 8},
    {"/dev/dri", "gpu", 9},
    {"/dev/infiniband", "infiniband", 10},
    {"/dev/pts/", "terminal", 11},
    {"/dev/tty", "terminal", 11},
    {"/dev/shm/", "shared memory", 12},
    {"/memfd:", "shared memory", 12},
    {"/dev/", "device", 13},
    {"/", "file", 14},
};

/* Prefixes of kernel functions that threads sleep in, for when the system call is unreadable. */
static const struct {
    uint8_t code, target;
    const char *functions;
} sleeps[] = {
    {FUTEX, 0, "futex_"},
    {SLEEP, 0, "do_nanosleep hrtimer_nanosleep common_nsleep"},
    {EPOLL, 0, "ep_poll do_epoll"},
    {SELECT, 0, "do_select"},
    {POLL, 0, "do_sys_poll do_poll poll_schedule"},
    {READ, 2, "pipe_read pipe_wait_readable anon_pipe_read"},
    {WRITE, 2, "pipe_write anon_pipe_write"},
    {RECEIVE, 1, "skb_wait_for_more_packets __skb_wait_for_more_packets unix_stream_read"},
    {RECEIVE, 1, "unix_stream_data_wait sk_wait_data wait_woken"},
    {ACCEPT, 1, "inet_csk_accept"},
    {READ, 11, "n_tty_read"},
    {CHILD, 0, "do_wait"},
    {READ, 3, "eventfd_read"},
    {NETWORK_FILES, 0, "rpc_wait nfs_"},
    {DISK, 0, "folio_wait io_schedule wait_on_page"},
    {SYNC, 0, "jbd2_"},
    {STOPPED, 0, "do_signal_stop ptrace_stop"},
};

static uint32_t with_target(uint32_t code, const char *link)
{
    for (size_t i = 0; link != NULL && i < MAREY__COUNT_OF(targets); i++)
        if (strncmp(link, targets[i].link, strlen(targets[i].link)) == 0)
            return code | (uint32_t)targets[i].code << 8;
    return code;
}

/* The call of "NUMBER 0xARGUMENT ...", NULL for one without a name. */
static const struct call *call_of(const char *text, uint64_t *number)
{
    if (!marey__parse_number(text, strlen(text), number))
        return NULL;
    for (size_t i = 0; i < MAREY__COUNT_OF(calls); i++)
        for (size_t k = 0; k < calls[i].n; k++)
            if (*number == (uint64_t)calls[i].numbers[k])
                return &calls[i];
    return NULL;
}

uint32_t marey__wait_parse(const char *text, const char *link)
{
    uint64_t number;
    if (strncmp(text, "-1 ", 3) == 0) /* blocked outside a system call: by a page fault */
        return FAULT;
    if (text[0] < '0' || text[0] > '9') /* "running", or empty */
        return 0;
    const struct call *const call = call_of(text, &number);
    if (call == NULL)
        return OTHER | (uint32_t)MAREY__MIN(number, UINT16_MAX) << 16;
    return call->has_descriptor ? with_target(call->code, link) : call->code;
}

static uint32_t by_wchan(pid_t pid, pid_t tid)
{
    char text[128];
    if (marey__read_proc(pid, tid, "wchan", text, sizeof text) == 0)
        return 0;
    for (size_t i = 0; i < MAREY__COUNT_OF(sleeps); i++)
        for (const char *at = sleeps[i].functions; *at != '\0'; at += strcspn(at, " ")) {
            at += strspn(at, " ");
            if (strncmp(text, at, strcspn(at, " ")) == 0)
                return sleeps[i].code | (uint32_t)sleeps[i].target << 8;
        }
    return 0;
}

static void read_link(pid_t pid, const char *text, char *link, size_t cap)
{
    char path[64];
    uint64_t number;
    unsigned long long descriptor;
    const struct call *const call = call_of(text, &number);
    link[0] = '\0';
    if (call == NULL || !call->has_descriptor || sscanf(text, "%*u 0x%llx", &descriptor) != 1 ||
        descriptor > INT32_MAX)
        return;
    snprintf(path, sizeof path, "/proc/%d/fd/%llu", (int)pid, descriptor);
    const ssize_t n = readlink(path, link, cap - 1);
    link[n > 0 ? n : 0] = '\0';
}

uint32_t marey__wait_reason_by(pid_t pid, pid_t tid, int syscall_fd)
{
    char text[256], link[64];
    const ssize_t n = syscall_fd >= 0 ? pread(syscall_fd, text, sizeof text - 1, 0) : -1;
    if (n <= 0)
        return by_wchan(pid, tid);
    text[n] = '\0';
    read_link(pid, text, link, sizeof link);
    const uint32_t wait = marey__wait_parse(text, link);
    const uint32_t slept = wait == RESTARTED ? by_wchan(pid, tid) : 0; /* which call it was */
    return slept != 0 ? slept : wait;
}

uint32_t marey__wait_stopped(void)
{
    return STOPPED;
}

bool marey__is_stopped(pid_t pid)
{
    struct marey__process_stat stat;
    return marey__read_process_stat(pid, 0, &stat) && stat.state == 'T';
}

uint32_t marey__wait_reason(pid_t pid, pid_t tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const uint32_t wait = marey__wait_reason_by(pid, tid, fd);
    if (fd >= 0)
        close(fd);
    return wait;
}

const char *marey__wait_text(uint32_t wait, char *to, size_t cap)
{
#define TEXT(code, name, text) [code] = text,
    static const char *const texts[OTHER + 1] = {CALLS(TEXT)};
    const char *const call = texts[wait & 255], *target = NULL;
    if (wait == 0)
        return "";
    for (size_t i = 0; i < MAREY__COUNT_OF(targets); i++)
        if (targets[i].code == (wait >> 8 & 255))
            target = targets[i].name;
    if (call == NULL)
        snprintf(to, cap, "system call %u", (unsigned)(wait >> 16));
    else if (target != NULL)
        snprintf(to, cap, "%s %s", call, target);
    else
        return call;
    return to;
}
