/*
 * Kernel data of the process's threads: their ids in our pid namespace, and their names.
 *
 * From 3.11 on a thread state has the id. Before, it has only the pthread, which in glibc and musl points to a struct
 * that contains the id at an offset found once by searching for a known id. Both are ids in the process's own pid
 * namespace, which differ from ours for a container; /proc/PID/task/TID/status has both.
 */
#include <dirent.h>
#include <unistd.h>

#include "sampler/remote/internal.h"

enum { TIDS_MAX = 65536, PTHREAD_BYTES = 2304, GLIBC_TID = 720, AGAIN_NS = 10000000, NO = 0 };

/* The id in the process's own pid namespace; 0 if it cannot be read. */
static pid_t inner_of(pid_t pid, pid_t tid)
{
    char text[4096];
    marey__read_proc(pid, tid, "status", text, sizeof text);
    const uint64_t number = marey__status_innermost_pid(text);
    return number <= INT32_MAX ? (pid_t)number : 0;
}

/* Lists all threads again; rate-limited. */
static void list_tids(struct marey__remote *remote)
{
    struct marey__remote_threads *const threads = &remote->threads;
    const pid_t pid = remote->process.pid;
    char path[64];
    const uint64_t now_ns = marey__remote_now_ns();
    if (threads->n_tids > 0 && now_ns - threads->listed_ns < AGAIN_NS)
        return;
    threads->listed_ns = now_ns;
    const bool is_other = inner_of(pid, pid) != pid; /* another pid namespace */
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *const folder = opendir(path);
    threads->n_tids = 0;
    if (folder == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        uint64_t tid;
        if (!marey__parse_number(entry->d_name, strlen(entry->d_name), &tid) || tid > INT32_MAX ||
            threads->n_tids >= TIDS_MAX ||
            !marey__grow(&threads->tids, &threads->tids_cap, threads->n_tids + 1,
                         sizeof *threads->tids))
            continue;
        const pid_t inner = is_other ? inner_of(pid, (pid_t)tid) : (pid_t)tid;
        threads->tids[threads->n_tids++] = (struct marey__remote_tid){inner, (pid_t)tid};
    }
    closedir(folder);
}

static pid_t lookup(const struct marey__remote_threads *threads, pid_t inner)
{
    for (size_t i = 0; i < threads->n_tids; i++)
        if (threads->tids[i].inner == inner)
            return threads->tids[i].outer;
    return NO;
}

static pid_t outer_of(struct marey__remote *remote, uint64_t inner)
{
    if (inner == 0 || inner > INT32_MAX)
        return NO;
    pid_t outer = lookup(&remote->threads, (pid_t)inner);
    if (outer == NO) {
        list_tids(remote);
        outer = lookup(&remote->threads, (pid_t)inner);
    }
    /* A forked child whose Python has not updated its id has one thread, this one. */
    if (outer == NO && remote->threads.n_tids == 1)
        return remote->threads.tids[0].outer;
    return outer;
}

/* The offset of the id in the pthread's struct. */
static uint32_t find_tid_offset(struct marey__remote *remote, uint64_t pthread)
{
    uint8_t bytes[PTHREAD_BYTES];
    uint32_t found = MAREY__REMOTE_ABSENT;
    size_t n = sizeof bytes;
    while (n >= 256 && !marey__remote_read(remote, pthread, bytes, n)) /* it may end with its mapping */
        n -= 64;
    if (n < 256)
        return MAREY__REMOTE_ABSENT;
    list_tids(remote);
    for (uint32_t at = 0; at + 4 <= n; at += 4) {
        const uint32_t value = marey__remote_u32(bytes, at);
        const bool is_tid =
            value != 0 && value <= INT32_MAX && lookup(&remote->threads, (pid_t)value) != NO;
        if (is_tid && at == GLIBC_TID)
            return at;
        if (is_tid && found == MAREY__REMOTE_ABSENT)
            found = at;
    }
    return found;
}

pid_t marey__remote_tid(struct marey__remote *remote, const void *thread_state_bytes)
{
    const struct marey__remote_layout *const layout = &remote->layout;
    struct marey__remote_threads *const threads = &remote->threads;
    if (layout->thread.native_thread_id != MAREY__REMOTE_ABSENT)
        return outer_of(remote,
                        marey__remote_u64(thread_state_bytes, layout->thread.native_thread_id));
    const uint64_t pthread = marey__remote_u64(thread_state_bytes, layout->thread.thread_id);
    uint32_t tid;
    if (pthread == 0)
        return NO;
    if (threads->tid_offset == 0)
        threads->tid_offset = find_tid_offset(remote, pthread);
    if (threads->tid_offset == MAREY__REMOTE_ABSENT ||
        !marey__remote_read(remote, pthread + threads->tid_offset, &tid, sizeof tid))
        return NO;
    return outer_of(remote, tid);
}

size_t marey__remote_thread_name(struct marey__remote *remote, pid_t tid, uint64_t thread_state,
                                 char *to, size_t cap)
{
    char text[64];
    uint64_t ident;
    if (thread_state != 0 &&
        marey__remote_read_u64(remote, thread_state + remote->layout.thread.thread_id, &ident)) {
        const char *const name = marey__remote_python_name(remote, ident);
        if (name != NULL && name[0] != '\0')
            return marey__utf8_copy(name, strlen(name), to, cap);
    }
    size_t len = marey__read_proc(remote->process.pid, tid, "comm", text, sizeof text);
    while (len > 0 && text[len - 1] == '\n')
        len--;
    return marey__utf8_copy(text, len, to, cap);
}
