/*
 * Whether a thread of another process is running, and what it waits for.
 *
 *   schedstat   time on a CPU, time in the run queue, number of time slices: "123456 789 42"
 *   syscall     "running", or the number and arguments of the blocking system call, stack pointer and program counter
 *   stat        the letter after the last ')', if `syscall` is not readable
 *
 * `schedstat` is four times as cheap as the others. While its third number is unchanged, a sleeping thread stays
 * asleep, so the others are read only when it changes. The first number of a running thread does not change between two
 * kernel ticks, so it means nothing alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "sampler/loop/internal.h"

/* A thread that just ran is assumed to keep running for this long, much less than a tick. */
enum { FRESH_NS = 200000 };

void marey__thread_files_init(struct marey__thread_files *files)
{
    files->schedstat_fd = files->syscall_fd = -1;
}

static void close_kept(int *fd, int *n_spare)
{
    if (*fd >= 0) {
        close(*fd);
        ++*n_spare;
    }
    *fd = -1;
}

void marey__thread_files_fini(struct marey__thread_files *files, int *n_spare)
{
    close_kept(&files->schedstat_fd, n_spare);
    close_kept(&files->syscall_fd, n_spare);
}

/* Reads a file of a thread, NUL-terminated; 0 if it does not exist. Keeps it open if `n_spare` permits. */
static size_t read_kept(int *kept, pid_t pid, pid_t tid, const char *name, int *n_spare, char *out,
                        size_t size)
{
    int fd = *kept;
    if (fd < 0) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return 0;
    }
    const ssize_t n = pread(fd, out, size - 1, 0);
    if (*kept < 0) {
        if (n_spare != NULL && *n_spare > 0) {
            --*n_spare;
            *kept = fd;
        } else {
            close(fd);
        }
    }
    out[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

static bool parse_schedstat(const char *text, size_t len, uint64_t *run_ns, uint64_t *slices)
{
    const char *end = memchr(text, '\0', len + 1), *last = strrchr(text, ' ');
    return last != NULL && marey__parse_number(text, (size_t)(end - text), run_ns) &&
           marey__parse_number(last + 1, (size_t)(end - last - 1), slices);
}

static bool look_at_syscall(const char *text, struct marey__thread_state *state)
{
    state->sp = state->pc = 0;
    if (strncmp(text, "running", 7) == 0) {
        state->is_running = true;
        state->call = -1;
        return true;
    }
    long long call;
    unsigned long long first = 0, sp = 0, pc = 0;
    const int n = sscanf(text, "%lld %llx %*x %*x %*x %*x %*x %llx %llx", &call, &first, &sp, &pc);
    if (n < 1)
        return false;
    if (n == 4) {
        state->sp = sp;
        state->pc = pc;
    }
    state->is_running = false;
    state->call = call;
    state->place = call >= 0 ? first : 0;
    return true;
}

void marey__thread_look(struct marey__thread_files *files, pid_t pid, pid_t tid, int *n_spare,
                        struct marey__thread_state *state)
{
    const uint64_t now = marey__clock_ns(CLOCK_MONOTONIC);
    if (state->is_known && state->is_running && now - state->looked_ns < FRESH_NS)
        return;
    char text[512];
    const size_t len =
        read_kept(&files->schedstat_fd, pid, tid, "schedstat", n_spare, text, sizeof text);
    uint64_t run_ns = 0, slices = 0;
    const bool has_counts = len > 0 && parse_schedstat(text, len, &run_ns, &slices);
    const bool is_as_it_was = has_counts && state->is_known && run_ns == state->run_ns &&
                              slices == state->slices && slices != 0;
    state->looked_ns = now;
    state->has_slept = is_as_it_was && !state->is_running;
    if (is_as_it_was)
        return;
    state->run_ns = run_ns;
    state->slices = slices;
    state->is_known = false;
    state->place = 0;
    if (read_kept(&files->syscall_fd, pid, tid, "syscall", n_spare, text, sizeof text) > 0)
        state->is_known = look_at_syscall(text, state);
    if (!state->is_known) {
        struct marey__process_stat stat;
        state->is_known = marey__read_process_stat(pid, tid, &stat);
        state->is_gone = !state->is_known || stat.state == 'Z' || stat.state == 'X';
        state->is_running = state->is_known && stat.state == 'R';
        state->call = -1;
        state->sp = state->pc = 0;
    }
}

bool marey__thread_has_not_run(const struct marey__thread_files *files, pid_t pid, pid_t tid,
                               const struct marey__thread_state *state)
{
    char text[128];
    int fd = files->schedstat_fd;
    uint64_t run_ns, slices;
    const size_t len = read_kept(&fd, pid, tid, "schedstat", NULL, text, sizeof text);
    return state->is_known && !state->is_running && state->slices != 0 && len > 0 &&
           parse_schedstat(text, len, &run_ns, &slices) && run_ns == state->run_ns &&
           slices == state->slices;
}
