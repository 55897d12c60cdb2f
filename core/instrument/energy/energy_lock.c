/*
 * One process per machine measures for a recording. A lock on a file in the recording's folder selects it; the kernel
 * releases the lock when its owner dies, and the next process to try gets it. The owner removes the file at the end; so
 * a process that got a lock checks whether the file still has its name, and otherwise tries again.
 *
 * Each waiting process also appends a line with the GPUs it may use: the owner measures those of all.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "instrument/energy/internal.h"

/* "=1,2" is the variable's value, "*" means it is not set. A newline ends the line; no valid CUDA list contains one. */
static void sign_in(int fd)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    char line[4096];
    const int len = visible != NULL
                        ? snprintf(line, sizeof line, "=%.*s\n", (int)strcspn(visible, "\n"), visible)
                        : snprintf(line, sizeof line, "*\n");
    if (len < (int)sizeof line && !marey__write_all(fd, line, (size_t)len))
        errno = 0; /* a full disk: then only the owner's devices are measured */
}

static bool open_file(struct marey__energy_lock *lock, const char *folder)
{
    char host[128];
    struct stat st;
    if (marey__held_is_ours(&lock->file, &st)) /* the program may have closed it */
        return true;
    marey__identity_host(host, sizeof host);
    if (snprintf(lock->path, sizeof lock->path, "%s/energy-%s.lock", folder, host) >=
        (int)sizeof lock->path)
        return false;
    if (!marey__held_set(&lock->file,
                         marey__open_at(AT_FDCWD, lock->path,
                                        O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0644)))
        return false;
    sign_in(lock->file.fd);
    return true;
}

static bool still_has_its_name(const struct marey__energy_lock *lock)
{
    struct stat named, ours;
    return stat(lock->path, &named) == 0 && marey__held_is_ours(&lock->file, &ours) &&
           named.st_dev == ours.st_dev && named.st_ino == ours.st_ino;
}

enum marey__energy_turn marey__energy_lock_try(struct marey__energy_lock *lock, const char *folder)
{
    enum { TRIES = 4 };
    for (int i = 0; i < TRIES; i++) {
        if (!open_file(lock, folder))
            return MAREY__TURN_NEVER;
        if (flock(lock->file.fd, LOCK_EX | LOCK_NB) != 0)
            return errno == EWOULDBLOCK || errno == EINTR ? MAREY__TURN_LATER : MAREY__TURN_NEVER;
        if (still_has_its_name(lock))
            return MAREY__TURN_OURS;
        marey__held_close(&lock->file);
    }
    return MAREY__TURN_LATER;
}

void marey__energy_lock_release(struct marey__energy_lock *lock)
{
    struct stat st;
    if (marey__held_is_ours(&lock->file, &st) && flock(lock->file.fd, LOCK_EX | LOCK_NB) == 0 &&
        still_has_its_name(lock))
        unlink(lock->path);
    marey__held_close(&lock->file);
}

bool marey__energy_lock_next(const struct marey__energy_lock *lock, size_t *at, char *out,
                             size_t size, bool *is_set)
{
    struct stat st;
    const ssize_t n =
        marey__held_is_ours(&lock->file, &st) ? pread(lock->file.fd, out, size - 1, (off_t)*at) : -1;
    out[n > 0 ? n : 0] = '\0';
    const size_t len = strcspn(out, "\n");
    if (n <= 0 || out[len] != '\n') /* lines are appended by one write each */
        return false;
    *at += len + 1;
    out[len] = '\0';
    *is_set = out[0] == '=';
    memmove(out, out + (len > 0), len + (len == 0));
    return true;
}

/* Only this machine's "energy-HOST.lock": flock() may not work across a network. */
static bool is_energy_lock(const char *name)
{
    char host[128], expected[sizeof host + 16];
    if (strncmp(name, "energy-", 7) != 0)
        return false;
    marey__identity_host(host, sizeof host);
    snprintf(expected, sizeof expected, "energy-%s.lock", host);
    return strcmp(name, expected) == 0;
}

/* Whether all lines have the format of sign_in(): "*" or "=LIST". */
static bool has_our_lines(int fd)
{
    struct stat st;
    char text[4096];
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return false;
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        if (*line != '=' && strncmp(line, "*\n", 2) != 0)
            return false;
        if (strchr(line, '\n') == NULL)
            return n == sizeof text - 1;
    }
    return true;
}

/* Removes the lock file of a killed process. Checks its lines, because a file of the user may have such a name. */
void marey__energy_lock_clean(const char *path, const char *name)
{
    if (!is_energy_lock(name))
        return;
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && has_our_lines(fd) && flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlink(path);
    if (fd >= 0)
        close(fd);
}
