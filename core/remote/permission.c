/* Why a process may not be read, and what to type. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "remote/remote_internal.h"

kymo_status kymo__remote_explain_denial(pid_t pid)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (stat(path, &status) != 0)
        return kymo__fail(KYMO_EIO, "there is no process %d", (int)pid);
    return kymo__fail(KYMO_EIO, "process %d may not be read", (int)pid);
}
