/* Access to a running process: its mappings, memory, files by its own paths, and registers of its threads. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <sys/user.h>
#elif defined(__aarch64__)
#include <asm/ptrace.h>
#endif

#include "sampler/unwind/internal.h"

struct process {
    pid_t pid;
    int root; /* of its file system; -1: use ours */
};

static bool maps(void *self, struct marey__buf *to)
{
    const struct process *const process = self;
    return marey__remote_maps_text(process->pid, to) && to->len > 0 && !to->failed;
}

static bool memory(void *self, uint64_t at, void *to, size_t n_bytes)
{
    const struct process *const process = self;
    const struct iovec ours = {to, n_bytes};
    const struct iovec theirs = {(void *)(uintptr_t)at, n_bytes};
    return process_vm_readv(process->pid, &ours, 1, &theirs, 1, 0) == (ssize_t)n_bytes;
}

/* Does not block on a FIFO nor acquire a terminal, and symlinks stay within the target's root. */
static int open_in_root(const struct process *process, const char *path, int more_flags)
{
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | more_flags;
    if (path[0] != '/')
        return -1;
    if (process->root < 0)
        return open(path, flags);
    const struct open_how how = {.flags = (uint64_t)flags, .resolve = RESOLVE_IN_ROOT};
    const long fd = syscall(SYS_openat2, process->root, path, &how, sizeof how);
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
        return (int)fd;
    return openat(process->root, path + strspn(path, "/"), flags); /* before Linux 5.6 */
}

static int open_path(void *self, const char *path)
{
    return open_in_root(self, path, 0);
}

/* Opens the mapping itself, which works for deleted files too but requires privileges; else its path. */
static int open_map(void *self, const struct marey__remote_map *map)
{
    const struct process *const process = self;
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/map_files/%llx-%llx", (int)process->pid,
             (unsigned long long)map->begin, (unsigned long long)map->end);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd >= 0 || map->is_deleted ? fd : open_path(self, map->path);
}

/* Whether `fd` is a regular file owned by root or by the process's user, given the text of /proc/PID/status. */
static bool is_trusted(int fd, const char *status)
{
    struct stat about;
    unsigned real, effective;
    const char *const line = strstr(status, "\nUid:");
    return fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && line != NULL &&
           sscanf(line, " Uid: %u %u", &real, &effective) == 2 &&
           (about.st_uid == 0 || about.st_uid == real || about.st_uid == effective);
}

/* JIT compilers write /tmp/perf-PID.map, with the PID they see. Trusted only if owned by the target's user or root. */
static int open_perf_map(void *self)
{
    const struct process *const process = self;
    char path[64], status[4096];
    const size_t len = marey__read_proc(process->pid, 0, "status", status, sizeof status);
    const uint64_t inner = marey__status_innermost_pid(status);
    snprintf(path, sizeof path, "/tmp/perf-%llu.map",
             (unsigned long long)(inner != 0 ? inner : (uint64_t)process->pid));
    const int fd = len > 0 ? open_in_root(process, path, O_NOFOLLOW) : -1;
    if (fd < 0 || is_trusted(fd, status))
        return fd;
    close(fd);
    return -1;
}

static void source_close(void *self)
{
    struct process *const process = self;
    if (process->root >= 0)
        close(process->root);
    marey__free(process);
}

marey_status marey__unwind_source_open(pid_t pid, struct marey__unwind_source *out)
{
    char path[64];
    struct process *const process = marey__alloc(sizeof *process);
    MAREY__TRY_MEMORY(process != NULL);
    snprintf(path, sizeof path, "/proc/%d/root", (int)pid);
    *process = (struct process){.pid = pid, .root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)};
    *out = (struct marey__unwind_source){.maps = maps,
                                         .memory = memory,
                                         .open_map = open_map,
                                         .open_path = open_path,
                                         .open_perf_map = open_perf_map,
                                         .close = source_close,
                                         .self = process};
    return MAREY_OK;
}

/* ---- registers ---- */

bool marey__unwind_registers(pid_t tid, struct marey__unwind_input *input)
{
#if defined(__x86_64__)
    struct user_regs_struct regs;
    struct iovec all = {&regs, sizeof regs};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &all) != 0 || all.iov_len < sizeof regs)
        return false;
    const uint64_t by_number[MAREY__UNWIND_REGISTERS] = {
        regs.rax, regs.rdx, regs.rcx, regs.rbx, regs.rsi, regs.rdi, regs.rbp, regs.rsp, regs.r8,
        regs.r9,  regs.r10, regs.r11, regs.r12, regs.r13, regs.r14, regs.r15, regs.rip};
    memcpy(input->registers, by_number, sizeof by_number);
    return true;
#elif defined(__aarch64__)
    struct user_pt_regs regs;
    struct iovec all = {&regs, sizeof regs};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &all) != 0 || all.iov_len < sizeof regs)
        return false;
    memcpy(input->registers, regs.regs, 31 * sizeof regs.regs[0]);
    input->registers[MAREY__UNWIND_SP] = regs.sp;
    input->registers[MAREY__UNWIND_PC] = regs.pc;
    return true;
#else
    (void)tid, (void)input;
    return false;
#endif
}
