/* Files that commands write. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

/* Pipes and devices are not ours to remove. */
static void remove_partial(const char *path, int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        unlink(path);
}

static void tell_written(const char *path, int fd, const char *next)
{
    struct stat st;
    char quoted[4096];
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        cli_say("wrote %s (%.1f %s); %s", cli_quote(path, quoted, sizeof quoted),
                (double)st.st_size / (st.st_size < 100000 ? 1e3 : 1e6),
                st.st_size < 100000 ? "kB" : "MB", next);
}

int cli_write_file(const char *path, kymo_status (*write)(void *ctx, int fd), void *ctx,
                   const char *next)
{
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error to tell, like a full disk */
    if (strcmp(path, "-") == 0)
        return write(ctx, STDOUT_FILENO) == KYMO_OK ? CLI_FINE : cli_fail("%s", kymo_last_error());
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return cli_fail("cannot write %s: %s", path, strerror(errno));
    if (write(ctx, fd) != KYMO_OK) {
        cli_fail("%s: %s", path, kymo_last_error());
        remove_partial(path, fd);
        close(fd);
        return CLI_BAD;
    }
    if (next != NULL)
        tell_written(path, fd, next);
    /* Some file systems tell of a full disk only here. */
    if (close(fd) != 0) {
        unlink(path);
        return cli_fail("cannot write %s: %s", path, strerror(errno));
    }
    return CLI_FINE;
}

/* What the file is to be called while it is written, and the file that a link leads to; false when there is no room. */
static bool name_new_file(const char *path, char *final, char *temporary)
{
    if (realpath(path, final) == NULL && snprintf(final, PATH_MAX, "%s", path) >= PATH_MAX)
        return false;
    return snprintf(temporary, PATH_MAX, "%s.XXXXXX", final) < PATH_MAX;
}

static mode_t mode_of_new_file(bool is_there, const struct stat *st)
{
    const mode_t mask = umask(0);
    umask(mask);
    return is_there ? st->st_mode & 07777 : 0666 & ~mask;
}

int cli_replace_file(const char *path, kymo_status (*write)(void *ctx, int fd), void *ctx,
                     const char *next)
{
    char final[PATH_MAX], temporary[PATH_MAX];
    struct stat st;
    const bool is_there = stat(path, &st) == 0;
    /* Pipes and devices have nothing to lose, and nothing can take their place. */
    if (strcmp(path, "-") == 0 || (is_there && !S_ISREG(st.st_mode)))
        return cli_write_file(path, write, ctx, next);
    if (!name_new_file(path, final, temporary))
        return cli_fail("cannot write %s: %s", path, strerror(ENAMETOOLONG));
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error to tell, like a full disk */
    const int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return cli_fail("cannot write %s: %s", path, strerror(errno));
    int status = CLI_FINE;
    if (write(ctx, fd) != KYMO_OK)
        status = cli_fail("%s: %s", path, kymo_last_error());
    if (status == CLI_FINE && next != NULL)
        tell_written(path, fd, next);
    const bool is_kept = status == CLI_FINE && fchmod(fd, mode_of_new_file(is_there, &st)) == 0;
    /* Some file systems tell of a full disk only here. */
    if ((close(fd) != 0 || !is_kept || rename(temporary, final) != 0) && status == CLI_FINE)
        status = cli_fail("cannot write %s: %s", path, strerror(errno));
    if (status != CLI_FINE)
        unlink(temporary);
    return status;
}

const char *cli_page_next(void)
{
    return kymo_page_is_plain()
               ? "open it in a browser; it has tables alone, because this kymo was "
                 "built without Node"
               : "open it in a browser; it needs nothing else";
}
