/*
 * Files in memory, read rather than mapped: truncating a mapped one would raise SIGBUS. Zeros follow a text.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensor/dumpfile/internal.h"

enum { PIECE = 4 << 20 };

static marey_status open_regular(const char *path, int *fd, struct stat *about)
{
    /* O_NONBLOCK: opening a FIFO would wait for a writer. */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return marey__fail_errno("open %s", path);
    marey_status status = MAREY_OK;
    if (fstat(*fd, about) != 0)
        status = marey__fail_errno("look at %s", path);
    else if (!S_ISREG(about->st_mode))
        status = marey__fail(MAREY_EFORMAT, "%s is not a regular file", path);
    if (status != MAREY_OK)
        close(*fd);
    return status;
}

static marey_status read_at(int fd, const char *path, uint64_t at, char *into, size_t n)
{
    while (n > 0) {
        const ssize_t got = pread(fd, into, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return marey__fail_errno("read %s", path);
        if (got == 0)
            return marey__fail(MAREY_EFORMAT,
                               "%s was truncated to %" PRIu64 " bytes while it was read", path, at);
        into += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return MAREY_OK;
}

/* Reads piece by piece; text only up to the first zero byte. */
static marey_status read_pieces(int fd, const char *path, bool is_text, struct marey__map *map)
{
    for (size_t at = 0, n; at < map->len; at += n) {
        n = MAREY__MIN(map->len - at, (size_t)PIECE);
        MAREY_TRY(read_at(fd, path, at, map->data + at, n));
        const char *const zero = is_text ? memchr(map->data + at, '\0', n) : NULL;
        if (zero != NULL)
            map->len = (size_t)(zero - map->data) + 1;
    }
    return MAREY_OK;
}

static marey_status read_file(int fd, const char *path, size_t len, bool is_text,
                              struct marey__map *out)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped = (len / page + 2) * page;
    char *const room = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return marey__fail_errno("find room for %s", path);
    *out = (struct marey__map){.data = room, .len = len, .mapped = mapped};
    const marey_status status = read_pieces(fd, path, is_text, out);
    if (status != MAREY_OK)
        marey__map_close(out);
    return status;
}

static marey_status read_path(const char *path, bool is_text, struct marey__map *out)
{
    struct stat about;
    int fd;
    MAREY_TRY(open_regular(path, &fd, &about));
    const marey_status status = read_file(fd, path, (size_t)about.st_size, is_text, out);
    close(fd);
    return status;
}

marey_status marey__map_open(const char *path, struct marey__map *out)
{
    return read_path(path, false, out);
}

marey_status marey__map_text(const char *path, struct marey__map *out)
{
    return read_path(path, true, out);
}

void marey__map_close(struct marey__map *map)
{
    if (map->data != NULL)
        munmap(map->data, map->mapped);
    *map = (struct marey__map){0};
}

/* ---- files of numbers ---- */

marey_status marey__numbers_open(const char *path, size_t n_head, struct marey__numbers_file *file,
                                 struct marey__map *head)
{
    struct stat about;
    int fd;
    MAREY_TRY(open_regular(path, &fd, &about));
    *file = (struct marey__numbers_file){.path = path,
                                         .dev = (uint64_t)about.st_dev,
                                         .ino = (uint64_t)about.st_ino,
                                         .len = (uint64_t)about.st_size};
    const marey_status status =
        n_head != 0 ? read_file(fd, path, (size_t)MAREY__MIN(file->len, n_head), false, head)
                    : MAREY_OK;
    close(fd);
    return status;
}

marey_status marey__numbers_reopen(const struct marey__numbers_file *file, int *fd)
{
    struct stat about;
    MAREY_TRY(open_regular(file->path, fd, &about));
    if (file->dev == (uint64_t)about.st_dev && file->ino == (uint64_t)about.st_ino)
        return MAREY_OK;
    close(*fd);
    return marey__fail(MAREY_EFORMAT, "%s was replaced while it was read", file->path);
}

marey_status marey__numbers_load(const struct marey__numbers_file *file, uint64_t at, void *into,
                                 uint64_t n)
{
    int fd;
    MAREY_TRY(marey__numbers_reopen(file, &fd));
    const marey_status status = read_at(fd, file->path, at, into, (size_t)n);
    close(fd);
    return status;
}
