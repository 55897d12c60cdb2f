/* Files of `marey artifacts`: whole or not there at all. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

#include "artifacts.h"

const char *artifacts_name(const struct artifacts *job, const char *name, char *into, size_t size)
{
    snprintf(into, size, "rank%" PRId64 "_%s", job->rank, name);
    return into;
}

struct file {
    char *path, *hidden; /* its name in the end, and until then */
    marey_status (*write)(void *ctx, int fd);
    void *ctx;
    const int *error; /* an errno that `write` met itself; NULL, or 0: marey_last_error() has what failed */
};

static const char *why(const struct file *file)
{
    return file->error != NULL && *file->error != 0 ? strerror(*file->error) : marey_last_error();
}

/* A file without a name, which the kernel takes away when we are killed; where there is none, one with a hidden name. */
static int open_hidden(const struct artifacts *job, const struct file *file, bool *has_name)
{
    const int fd = open(job->directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    *has_name = fd < 0;
    return fd >= 0 ? fd : open(file->hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

/* A hidden name, for rename() replaces what is there and linkat() does not. */
static bool give_name(int fd, const char *hidden)
{
    char open_file[64];
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", fd);
    unlink(hidden); /* of an earlier process with our number */
    return linkat(AT_FDCWD, open_file, AT_FDCWD, hidden, AT_SYMLINK_FOLLOW) == 0;
}

static int write_and_rename(const struct artifacts *job, const struct file *file)
{
    bool has_name;
    const int fd = open_hidden(job, file, &has_name);
    if (fd < 0)
        return cli_fail("cannot write %s: %s", file->path, strerror(errno));
    const marey_status status = file->write(file->ctx, fd);
    int failed = status == MAREY_OK ? CLI_FINE : cli_fail("%s: %s", file->path, why(file));
    if (failed == CLI_FINE && !has_name && !give_name(fd, file->hidden))
        failed = cli_fail("cannot write %s: %s", file->path, strerror(errno));
    /* Some file systems report a full disk only here. */
    if (close(fd) != 0 && failed == CLI_FINE)
        failed = cli_fail("cannot write %s: %s", file->path, strerror(errno));
    if (failed == CLI_FINE && rename(file->hidden, file->path) != 0)
        failed = cli_fail("cannot write %s: %s", file->path, strerror(errno));
    if (failed != CLI_FINE)
        unlink(file->hidden);
    else
        puts(file->path);
    return failed;
}

static int write_file(const struct artifacts *job, const char *name, struct file file)
{
    int status = CLI_BAD;
    if (asprintf(&file.path, "%s/%s", job->directory, name) < 0 ||
        asprintf(&file.hidden, "%s/.%s.%ld", job->directory, name, (long)getpid()) < 0)
        cli_fail("out of memory");
    else
        status = write_and_rename(job, &file);
    free(file.path);
    free(file.hidden);
    return status;
}

int artifacts_write(const struct artifacts *job, const char *name,
                    marey_status (*write)(void *ctx, int fd), void *ctx)
{
    return write_file(job, name, (struct file){.write = write, .ctx = ctx});
}

/* ---- streams ---- */

struct printing {
    marey_status (*print)(void *ctx, FILE *out);
    void *ctx;
    int error;
};

static marey_status print_to_fd(void *ctx, int fd)
{
    struct printing *printing = ctx;
    const int own = dup(fd);
    FILE *out = own >= 0 ? fdopen(own, "w") : NULL;
    if (out == NULL) {
        printing->error = errno;
        if (own >= 0)
            close(own);
        return MAREY_EIO;
    }
    const marey_status status = printing->print(printing->ctx, out);
    if (fclose(out) == 0 || status != MAREY_OK)
        return status;
    printing->error = errno;
    return MAREY_EIO;
}

int artifacts_print_plain(const struct artifacts *job, const char *name,
                          marey_status (*print)(void *ctx, FILE *out), void *ctx)
{
    struct printing printing = {.print = print, .ctx = ctx};
    return write_file(
        job, name, (struct file){.write = print_to_fd, .ctx = &printing, .error = &printing.error});
}

int artifacts_print(const struct artifacts *job, const char *name,
                    marey_status (*print)(void *ctx, FILE *out), void *ctx)
{
    char ranked[NAME_MAX];
    return artifacts_print_plain(job, artifacts_name(job, name, ranked, sizeof ranked), print, ctx);
}
