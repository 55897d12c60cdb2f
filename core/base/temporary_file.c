/* Files without a name, for what need not outlive the process or must not. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base_internal.h"

static int open_nameless(const char *folder)
{
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || snprintf(path, sizeof path, "%s/kymo-XXXXXX", folder) >= (int)sizeof path)
        return fd;
    fd = mkostemp(path, O_CLOEXEC); /* not every file system has nameless files */
    if (fd >= 0)
        unlink(path);
    return fd;
}

kymo_status kymo__temporary_open_in(const char *folder, int *fd)
{
    const char *const given = getenv("TMPDIR");
    /* On a disk rather than in memory where nothing is said about it. */
    const char *const folders[] = {folder, given != NULL ? given : "/var/tmp", "/tmp"};
    int opened = -1;
    for (size_t i = folder == NULL; i < KYMO__COUNT_OF(folders) && opened < 0; i++)
        opened = open_nameless(folders[i]);
    if (opened < 0)
        return kymo__fail_errno("make a temporary file in %s (TMPDIR names another folder)",
                                folders[1]);
    *fd = opened;
    return KYMO_OK;
}

kymo_status kymo__temporary_open(int *fd)
{
    return kymo__temporary_open_in(NULL, fd);
}
