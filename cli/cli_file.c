/* Files that commands write. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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

const char *cli_page_next(void)
{
    return kymo_page_is_plain()
               ? "open it in a browser; it has tables alone, because this kymo was "
                 "built without Node"
               : "open it in a browser; it needs nothing else";
}
