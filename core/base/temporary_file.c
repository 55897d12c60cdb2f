/* Unnamed temporary files, and files that replace another when complete. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/internal.h"

static int open_nameless(const char *folder)
{
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || snprintf(path, sizeof path, "%s/marey-XXXXXX", folder) >= (int)sizeof path)
        return fd;
    fd = mkostemp(path, O_CLOEXEC); /* some file systems do not support unnamed files */
    if (fd >= 0)
        unlink(path);
    return fd;
}

marey_status marey__temporary_open(const char *folder, int *fd)
{
    const char *const given = getenv("TMPDIR");
    /* By default on disk rather than in memory. */
    const char *const folders[] = {folder, given != NULL ? given : "/var/tmp", "/tmp"};
    int opened = -1;
    for (size_t i = folder == NULL; i < MAREY__COUNT_OF(folders) && opened < 0; i++)
        opened = open_nameless(folders[i]);
    if (opened < 0)
        return marey__fail_errno("make a temporary file in %s (TMPDIR names another folder)",
                                 folders[1]);
    *fd = opened;
    return MAREY_OK;
}

/* Uses the permissions of `old`, or those of a new file if it is NULL. */
static int open_beside(const char *path, const struct stat *old, char *temporary, size_t size)
{
    char final[PATH_MAX];
    if (snprintf(temporary, size, "%s.XXXXXX", realpath(path, final) != NULL ? final : path) >=
        (int)size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int fd = mkostemp(temporary, O_CLOEXEC);
    const mode_t mask = umask(0);
    umask(mask);
    if (fd >= 0) /* some file systems have no permissions */
        (void)!fchmod(fd, old != NULL ? old->st_mode & 07777 : 0666 & ~mask);
    return fd;
}

marey_status marey__replace_file(const char *path, const void *bytes, size_t len)
{
    char temporary[PATH_MAX + 8], final[PATH_MAX];
    struct stat old;
    const bool is_there = stat(path, &old) == 0;
    const bool is_renamed = !is_there || S_ISREG(old.st_mode); /* never replace a device */
    const int fd = is_renamed
                       ? open_beside(path, is_there ? &old : NULL, temporary, sizeof temporary)
                       : open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return marey__fail_errno("write %s", path);
    marey_status status = MAREY_OK;
    if (!marey__write_all(fd, bytes, len))
        status = marey__fail_errno("write %s", path);
    if (close(fd) != 0 && status == MAREY_OK)
        status = marey__fail_errno("write %s", path);
    if (status == MAREY_OK && is_renamed &&
        rename(temporary, is_there && realpath(path, final) != NULL ? final : path) != 0)
        status = marey__fail_errno("write %s", path);
    if (status != MAREY_OK && is_renamed)
        unlink(temporary);
    return status;
}
