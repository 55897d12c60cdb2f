/* Opening a process: its identity, the location of its Python, and the layout. */
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "sampler/remote/internal.h"

enum { FRAMES_TRIED = 64, YOUNG_MS = 500 };

/* ---- checking a layout against the process ---- */

/* Checks for an interpreter, a thread state that points back to it, and code in its frames: a unique structure. */
static marey_status prove(struct marey__remote *remote)
{
    const struct marey__remote_layout *const layout = &remote->layout;
    const int pid = (int)remote->process.pid;
    uint64_t interpreter, thread, back;
    struct marey__remote_frame frames[FRAMES_TRIED];
    bool is_whole;
    if (marey__remote_interpreters(remote, &interpreter, 1) == 0 ||
        marey__remote_thread_states(remote, interpreter, &thread, 1) == 0)
        return marey__fail(MAREY_ESTATE, "Python in process %d is still starting, or ends", pid);
    if (!marey__remote_read_u64(remote, thread + layout->thread.interpreter, &back) ||
        back != interpreter)
        return marey__fail(
            MAREY_ESTATE,
            "Python %u.%u in process %d: the thread state at %#llx does not point back to its "
            "interpreter",
            layout->version >> 24, layout->version >> 16 & 255, pid, (unsigned long long)thread);
    const size_t n = marey__remote_stack(remote, thread, frames, FRAMES_TRIED, &is_whole);
    for (size_t i = 0; i < n; i++)
        if (marey__remote_code(remote, frames[i].code) != NULL)
            return MAREY_OK;
    return n == 0 ? MAREY_OK
                  : marey__fail(MAREY_ESTATE,
                                "Python %u.%u in process %d: its frames lead to no code object",
                                layout->version >> 24, layout->version >> 16 & 255, pid);
}

marey_status marey__remote_fail_too_old(const struct marey__remote *remote, uint32_t version)
{
    return marey__fail(MAREY_EUNAVAILABLE,
                       "cannot sample process %d: Python %u.%u is not supported; 3.10 to 3.14 are",
                       (int)remote->process.pid, version >> 24, version >> 16 & 255);
}

/* Finds a layout for the version and checks it against the process. */
static marey_status choose_layout(struct marey__remote *remote, uint32_t version)
{
    if (!marey__remote_layout_fixed(version, &remote->layout)) {
        if (version != 0 && version < MAREY__REMOTE_OLDEST)
            return marey__remote_fail_too_old(remote, version);
        MAREY_TRY(marey__remote_layout_described(remote, &remote->layout));
    }
    remote->process.python_version = remote->layout.version;
    return prove(remote);
}

/* ---- opening ---- */

static struct marey__remote *create(pid_t pid)
{
    struct marey__remote *const remote = marey__calloc(1, sizeof *remote);
    if (remote == NULL)
        return NULL;
    remote->mem_fd = -1;
    remote->process.pid = pid;
    remote->memory = (struct marey__remote_memory){marey__remote_process_spans, remote};
    return remote;
}

void marey__remote_close(struct marey__remote *remote)
{
    if (remote == NULL)
        return;
    marey__remote_codes_fini(&remote->codes);
    marey__remote_threads_fini(&remote->threads);
    if (remote->mem_fd >= 0)
        close(remote->mem_fd);
    marey__free(remote);
}

/*
 * Tested by reading an unmapped address, which fails with a different error if reading is not permitted: mappings may
 * be visible without that permission (Yama). A seccomp filter may leave only /proc/PID/mem.
 */
static marey_status may_read(struct marey__remote *remote)
{
    const int pid = (int)remote->process.pid;
    char byte, path[64];
    const struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)8, 1};
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT)
        return MAREY_OK;
    if (errno == ESRCH)
        return marey__fail(MAREY_EIO, "there is no process %d", pid);
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    remote->mem_fd = remote->mem_fd < 0 ? open(path, O_RDONLY | O_CLOEXEC) : remote->mem_fd;
    return remote->mem_fd >= 0 ? MAREY_OK : marey__remote_explain_denial(pid);
}

static marey_status try_once(struct marey__remote *remote, const struct marey__remote *parent)
{
    /* In a forked child everything has the same address as in its parent, unless it called exec. */
    if (parent != NULL) {
        remote->found = parent->found;
        remote->layout = parent->layout;
        remote->process.python_version = parent->process.python_version;
        if (prove(remote) == MAREY_OK)
            return MAREY_OK;
        marey__remote_codes_fini(&remote->codes);
    }
    MAREY_TRY(marey__remote_find(remote, &remote->found));
    return choose_layout(remote, remote->found.version);
}

/* Milliseconds since the process started; a very new one may still call exec. */
static bool is_young(const struct marey__remote *remote)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    const uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    const uint64_t began = remote->process.start_time * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
    return ms < began + YOUNG_MS;
}

marey_status marey__remote_open(pid_t pid, const struct marey__remote *parent, unsigned patience_ms,
                                struct marey__remote **out)
{
    struct marey__remote *const remote = create(pid);
    marey_status status;
    MAREY__TRY_MEMORY(remote != NULL);
    for (unsigned waited_ms = 0;; waited_ms++) {
        status = marey__remote_process_fill(remote)
                     ? may_read(remote)
                     : marey__fail(MAREY_EIO, "there is no process %d", (int)pid);
        if (status == MAREY_OK)
            status = try_once(remote, parent);
        if (status == MAREY_EUNAVAILABLE && is_young(remote))
            status = MAREY_ESTATE;
        if (status != MAREY_ESTATE || waited_ms >= patience_ms)
            break;
        marey__remote_codes_fini(&remote->codes);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (status == MAREY_OK)
        *out = remote;
    else
        marey__remote_close(remote);
    return status;
}

marey_status marey__remote_open_program(pid_t pid, struct marey__remote **out)
{
    struct marey__remote *const remote = create(pid);
    MAREY__TRY_MEMORY(remote != NULL);
    const marey_status status = marey__remote_process_fill(remote)
                                    ? may_read(remote)
                                    : marey__fail(MAREY_EIO, "there is no process %d", (int)pid);
    if (status == MAREY_OK)
        *out = remote;
    else
        marey__remote_close(remote);
    return status;
}

marey_status marey__remote_open_image(const struct marey__remote_memory *memory, uint64_t runtime,
                                      uint32_t version, struct marey__remote **out)
{
    struct marey__remote *const remote = create(0);
    MAREY__TRY_MEMORY(remote != NULL);
    remote->memory = *memory;
    remote->process.rank = remote->process.worker = -1;
    remote->found = (struct marey__remote_found){.runtime = runtime, .version = version};
    const marey_status status = choose_layout(remote, version);
    if (status == MAREY_OK)
        *out = remote;
    else
        marey__remote_close(remote);
    return status;
}

const struct marey__remote_layout *marey__remote_layout(const struct marey__remote *remote)
{
    return &remote->layout;
}

uint64_t marey__remote_runtime(const struct marey__remote *remote)
{
    return remote->found.runtime;
}

const struct marey__remote_process *marey__remote_process(const struct marey__remote *remote)
{
    return &remote->process;
}
