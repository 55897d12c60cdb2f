/* Files of torch about memory: which kind one is, and a report of several. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "analyze/memory/internal.h"

/* Whether the first bytes are a pickle's of protocol 2 to 5. */
static bool is_pickle(const char *path)
{
    unsigned char first[2] = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const bool done = read(fd, first, sizeof first) == (ssize_t)sizeof first;
    close(fd);
    return done && first[0] == 0x80 && first[1] >= 2 && first[1] <= 5;
}

static bool ends_in(const char *path, const char *ending)
{
    const size_t len = strlen(path), n = strlen(ending);
    return len >= n && strcmp(path + len - n, ending) == 0;
}

static bool is_trace(const char *path)
{
    return ends_in(path, ".json") || ends_in(path, ".json.gz");
}

bool marey__memory_is_file(const char *path)
{
    return is_pickle(path) || is_trace(path);
}

marey_status marey__memory_read_file(struct marey__memory_report *report, const char *path)
{
    if (is_pickle(path))
        return marey__memory_read_snapshot(report, path);
    if (is_trace(path))
        return marey__memory_read_trace(report, path);
    if (access(path, R_OK) != 0)
        return marey__fail_errno("read %s", path);
    return marey__fail(
        MAREY_EFORMAT,
        "%s is neither a snapshot of torch's CUDA allocator (a pickle) nor a trace of "
        "torch.profiler (.json, .json.gz)",
        path);
}
