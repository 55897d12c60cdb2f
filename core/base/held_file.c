/*
 * Files that stay open inside the user's program. The program may close its standard streams, close every descriptor it
 * does not know (os.closerange) and reuse the number, or limit file sizes. Our descriptors therefore have high numbers,
 * each is compared with its file before use or close, and exceeding the size limit is an error rather than the end of
 * the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/internal.h"

enum { HIGH = 101, LOWEST = 3 };

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

int marey__raise_fd(int fd)
{
    struct stat low, moved;
    if (fd < 0 || fd >= HIGH)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH);
    if (high < 0 && errno == EBADF)
        return -1; /* the program is closing all descriptors right now */
    if (high < 0 && fd >= LOWEST)
        return fd;
    if (high < 0) /* RLIMIT_NOFILE is below that */
        high = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST);
    const int error = errno;
    if (high < 0 || (fstat(fd, &low) == 0 && fstat(high, &moved) == 0 && is_same(&low, &moved)))
        close(fd);
    errno = error;
    return high;
}

int marey__open_at(int folder, const char *path, int flags, mode_t mode)
{
    return marey__raise_fd(openat(folder, path, flags | O_CLOEXEC, mode));
}

bool marey__held_set(struct marey__held_file *file, int fd)
{
    struct stat st;
    file->fd = fd;
    if (fd < 0 || fstat(fd, &st) != 0)
        return false;
    file->device = st.st_dev;
    file->inode = st.st_ino;
    return true;
}

bool marey__held_is_ours(const struct marey__held_file *file, struct stat *st)
{
    return file->fd >= 0 && fstat(file->fd, st) == 0 && st->st_dev == file->device &&
           st->st_ino == file->inode;
}

bool marey__held_reopen(struct marey__held_file *file, const char *path, int flags)
{
    enum { TRIES = 3 }; /* another thread may still be closing descriptors */
    for (int i = 0; i < TRIES; i++) {
        struct stat st, named;
        const int fd = marey__open_at(AT_FDCWD, path, flags | O_NOFOLLOW | O_NONBLOCK, 0);
        if (fd < 0 || fstat(fd, &st) != 0)
            continue;
        if (st.st_dev == file->device && st.st_ino == file->inode) {
            file->fd = fd;
            return true;
        }
        if (lstat(path, &named) == 0 && is_same(&st, &named)) {
            close(fd);
            return false;
        }
    }
    return false;
}

int marey__held_fd(const struct marey__held_file *file)
{
    struct stat st;
    if (marey__held_is_ours(file, &st))
        return file->fd;
    errno = EBADF;
    return -1;
}

bool marey__held_write(const struct marey__held_file *file, const void *bytes, size_t len)
{
    const int fd = marey__held_fd(file);
    return fd >= 0 && marey__write_all(fd, bytes, len);
}

void marey__held_close(struct marey__held_file *file)
{
    struct stat st;
    if (marey__held_is_ours(file, &st))
        close(file->fd);
    file->fd = -1;
}

/* ---- RLIMIT_FSIZE: its signal would end the program ---- */

void marey__size_limit_begin(sigset_t *before)
{
    sigset_t limit;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit, before);
}

void marey__size_limit_end(const sigset_t *before)
{
    const int error = errno;
    sigset_t limit;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    if (error == EFBIG && sigismember(before, SIGXFSZ) == 0)
        sigtimedwait(&limit, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, before, NULL);
    errno = error;
}
