/* A file in memory. An empty page lies behind it, so that a reader of text finds a zero where the text ends. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dumpfile/dumpfile_internal.h"

static kymo_status map_fd(int fd, const char *path, struct kymo__map *out)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return kymo__fail_errno("look at %s", path);
    if (!S_ISREG(about.st_mode))
        return kymo__fail(KYMO_EFORMAT, "%s is no regular file", path);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), len = (size_t)about.st_size;
    const size_t mapped = (len / page + 2) * page;
    char *const room = mmap(NULL, mapped, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return kymo__fail_errno("find room for %s", path);
    if (len > 0 && mmap(room, len, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
        const kymo_status status = kymo__fail_errno("map %s", path);
        munmap(room, mapped);
        return status;
    }
    *out = (struct kymo__map){.data = room, .len = len, .mapped = mapped};
    return KYMO_OK;
}

kymo_status kymo__map_open(const char *path, struct kymo__map *out)
{
    /* Not to wait for whoever writes a pipe, before it is known to be one. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return kymo__fail_errno("open %s", path);
    const kymo_status status = map_fd(fd, path, out);
    close(fd);
    return status;
}

void kymo__map_close(struct kymo__map *map)
{
    if (map->data != NULL)
        munmap(map->data, map->mapped);
    *map = (struct kymo__map){0};
}
