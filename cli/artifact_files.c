/* Files of `kymo artifacts`: whole or not there at all. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "artifacts.h"

const char *artifacts_name(const struct artifacts *job, const char *name, char *into, size_t size)
{
    snprintf(into, size, "rank%" PRId64 "_%s", job->rank, name);
    return into;
}

/* Under `hidden`, then called `path`. */
static int write_and_rename(const char *hidden, const char *path,
                            kymo_status (*write)(void *ctx, int fd), void *ctx)
{
    const int fd = open(hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return cli_fail("cannot write %s: %s", path, strerror(errno));
    const kymo_status status = write(ctx, fd);
    int failed = status == KYMO_OK ? CLI_FINE : cli_fail("%s: %s", path, kymo_last_error());
    /* Some file systems tell of a full disk only here. */
    if (close(fd) != 0 && failed == CLI_FINE)
        failed = cli_fail("cannot write %s: %s", path, strerror(errno));
    if (failed == CLI_FINE && rename(hidden, path) != 0)
        failed = cli_fail("cannot write %s: %s", path, strerror(errno));
    if (failed != CLI_FINE)
        unlink(hidden);
    else
        puts(path);
    return failed;
}

int artifacts_write(const struct artifacts *job, const char *name,
                    kymo_status (*write)(void *ctx, int fd), void *ctx)
{
    char *path = NULL, *hidden = NULL;
    int status = CLI_BAD;
    if (asprintf(&path, "%s/%s", job->directory, name) < 0 ||
        asprintf(&hidden, "%s/.%s.%ld", job->directory, name, (long)getpid()) < 0)
        cli_fail("no memory for a file name");
    else
        status = write_and_rename(hidden, path, write, ctx);
    free(path);
    free(hidden);
    return status;
}

struct printing {
    kymo_status (*print)(void *ctx, FILE *out);
    void *ctx;
};

static kymo_status print_to_fd(void *ctx, int fd)
{
    const struct printing *printing = ctx;
    const int own = dup(fd);
    FILE *out = own >= 0 ? fdopen(own, "w") : NULL;
    if (out == NULL) {
        if (own >= 0)
            close(own);
        return KYMO_EIO;
    }
    kymo_status status = printing->print(printing->ctx, out);
    if (fclose(out) != 0 && status == KYMO_OK)
        status = KYMO_EIO;
    return status;
}

int artifacts_print_plain(const struct artifacts *job, const char *name,
                          kymo_status (*print)(void *ctx, FILE *out), void *ctx)
{
    struct printing printing = {print, ctx};
    return artifacts_write(job, name, print_to_fd, &printing);
}

int artifacts_print(const struct artifacts *job, const char *name,
                    kymo_status (*print)(void *ctx, FILE *out), void *ctx)
{
    char ranked[NAME_MAX];
    return artifacts_print_plain(job, artifacts_name(job, name, ranked, sizeof ranked), print, ctx);
}
