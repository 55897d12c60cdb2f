/*
 * Output files of commands. The data go into a new file beside the old one, which replaces it once it is complete: a
 * wrong option, a full disk or ctrl-C leaves the old file as it was.
 *
 *     a new file, or our own      a file without a name, which the kernel removes when we are killed; at the end it
 *                                 gets the name FILE.PID.tmp, then rename
 *     a file with several names,
 *     of another owner, or in a
 *     folder we may not write to  a file without a name, copied over it at the end: it stays the same file
 *     pipes, devices, sockets     written to directly
 *     -, /dev/stdout, /dev/fd/N   the descriptor that is open already; a regular file there is not truncated
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/cli.h"

/* A file being written. */
struct output {
    const char *path; /* as given */
    int fd;           /* written to */
    int target;       /* DIRECT, RENAMED, or the descriptor to copy to */
    bool has_name;    /* RENAMED: it is called `temporary`; else it gets that name at the end */
    char final[PATH_MAX], temporary[PATH_MAX];
};
enum { DIRECT = -1, RENAMED = -2 };

/* ---- interruption ---- */

static char unfinished[PATH_MAX]; /* the handler removes it; "": none */

static void remove_unfinished(int sig)
{
    unlink(unfinished);
    raise(sig); /* SA_RESETHAND has restored the default */
}

/* Removes `path` if a signal ends us; "" cancels that. */
static void remove_on_signals(const char *path)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction now, ours = {.sa_handler = remove_unfinished, .sa_flags = (int)SA_RESETHAND};
    memccpy(unfinished, path, '\0', sizeof unfinished);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (sigaction(signals[i], NULL, &now) != 0)
            continue;
        if (path[0] != '\0' && now.sa_handler == SIG_DFL)
            sigaction(signals[i], &ours, NULL);
        else if (path[0] == '\0' && now.sa_handler == remove_unfinished)
            signal(signals[i], SIG_DFL);
    }
}

/* ---- opening ---- */

/* The open descriptor that `path` names; -1 for an ordinary path. */
static int descriptor_of(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const size_t len = strlen(folders[i]);
        char *end;
        if (strncmp(path, folders[i], len) != 0 || path[len] < '0' || path[len] > '9')
            continue;
        const long number = strtol(path + len, &end, 10);
        if (*end == '\0' && number <= INT_MAX)
            return (int)number;
    }
    return -1;
}

static bool open_descriptor(struct output *out, int number)
{
    fflush(stdout); /* so that earlier output precedes it */
    out->fd = fcntl(number, F_DUPFD_CLOEXEC, 3);
    return out->fd >= 0;
}

/* Opens a new file in the folder of the old one, with its permissions; follows symlinks. */
static bool open_beside(struct output *out, const struct stat *old)
{
    if (realpath(out->path, out->final) == NULL)
        snprintf(out->final, sizeof out->final, "%s", out->path);
    if (snprintf(out->temporary, sizeof out->temporary, "%s.%ld.tmp", out->final, (long)getpid()) >=
        (int)sizeof out->temporary) {
        errno = ENAMETOOLONG;
        return false;
    }
    char folder[PATH_MAX];
    strcpy(folder, out->final);
    out->target = RENAMED;
    out->fd = access("/proc/self/fd", X_OK) == 0 /* give_name() needs it */
                  ? open(dirname(folder), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666)
                  : -1;
    out->has_name = out->fd < 0;
    unlink(out->temporary); /* of an earlier process with our pid */
    if (out->has_name) {    /* some file systems do not support unnamed files */
        out->fd = open(out->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (out->fd < 0)
            return false;
    }
    remove_on_signals(out->temporary);
    if (old != NULL) /* some file systems have no permissions */
        (void)!fchmod(out->fd, old->st_mode & 07777);
    return true;
}

/* Opens an unnamed file; `out->target` is the file to copy it to. */
static bool open_apart(struct output *out)
{
    out->target = open(out->path, O_WRONLY | O_CLOEXEC);
    if (out->target < 0)
        return false;
    FILE *const file = tmpfile();
    out->fd = file != NULL ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 3) : -1;
    if (file != NULL)
        fclose(file);
    if (out->fd < 0)
        close(out->target);
    return out->fd >= 0;
}

static bool open_output(struct output *out, const char *path)
{
    struct stat old;
    const int number = descriptor_of(path);
    *out = (struct output){.path = path, .fd = -1, .target = DIRECT};
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes becomes an error of write(2), like a full disk */
    if (number >= 0)
        return open_descriptor(out, number);
    const bool is_there = stat(path, &old) == 0;
    if (is_there && !S_ISREG(old.st_mode)) {
        out->fd = open(path, O_WRONLY | O_CLOEXEC);
        return out->fd >= 0;
    }
    /* Writing must be permitted: a rename would replace even a read-only file. */
    if (is_there && access(path, W_OK) != 0)
        return false;
    if (is_there && (old.st_nlink > 1 || old.st_uid != geteuid()))
        return open_apart(out);
    return open_beside(out, is_there ? &old : NULL) ||
           (is_there && (errno == EACCES || errno == EPERM || errno == EROFS) && open_apart(out));
}

/* ---- closing ---- */

static bool copy_to_target(const struct output *out)
{
    off_t at = 0;
    struct stat st;
    if (fstat(out->fd, &st) != 0 || ftruncate(out->target, 0) != 0)
        return false;
    while (at < st.st_size) {
        const ssize_t n = sendfile(out->target, out->fd, &at, (size_t)(st.st_size - at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
    }
    return true;
}

/* Links the file as `temporary` first, because rename() replaces an existing file and linkat() does not. */
static bool give_name(const struct output *out)
{
    char open_file[64];
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", out->fd);
    return out->has_name ||
           linkat(AT_FDCWD, open_file, AT_FDCWD, out->temporary, AT_SYMLINK_FOLLOW) == 0;
}

static void print_written(const struct output *out, const char *next)
{
    struct stat st;
    char quoted[4096], bytes[32];
    if (out->target != DIRECT && fstat(out->fd, &st) == 0)
        cli_say("wrote %s (%s); %s", cli_quote(out->path, quoted, sizeof quoted),
                marey_text_number((double)st.st_size, MAREY_UNIT_BYTES, bytes, sizeof bytes), next);
}

/* Moves the file into place if `status` is fine, else keeps the old one. Returns the exit status. */
static int close_output(struct output *out, int status, const char *next)
{
    bool is_fine = status != CLI_FINE || out->target < 0 || copy_to_target(out);
    if (is_fine && status == CLI_FINE && next != NULL)
        print_written(out, next);
    if (out->target == RENAMED && is_fine && status == CLI_FINE)
        is_fine = give_name(out);
    /* Some file systems report a full disk only on close. */
    is_fine &= close(out->fd) == 0 || status != CLI_FINE;
    if (out->target >= 0)
        is_fine &= close(out->target) == 0;
    if (out->target == RENAMED && is_fine && status == CLI_FINE)
        is_fine = rename(out->temporary, out->final) == 0;
    if (!is_fine)
        status = cli_fail("cannot write %s: %s", out->path, strerror(errno));
    if (out->target == RENAMED) {
        if (status != CLI_FINE)
            unlink(out->temporary);
        remove_on_signals("");
    }
    return status;
}

/* ---- writers ---- */

int cli_write_file(const char *path, marey_status (*write)(void *ctx, int fd), void *ctx,
                   const char *next)
{
    struct output out;
    if (!open_output(&out, path))
        return cli_fail("cannot write %s: %s", path, strerror(errno));
    const int status =
        write(ctx, out.fd) == MAREY_OK ? CLI_FINE : cli_fail("%s: %s", path, marey_last_error());
    return close_output(&out, status, next);
}

int cli_print_file(const char *path, int (*print)(void *ctx, FILE *out), void *ctx, const char *next)
{
    struct output out;
    if (path == NULL || strcmp(path, "-") == 0)
        return print(ctx, stdout);
    if (!open_output(&out, path))
        return cli_fail("cannot write %s: %s", path, strerror(errno));
    FILE *const file = fdopen(dup(out.fd), "w");
    if (file == NULL)
        return close_output(&out, cli_fail("cannot write %s: %s", path, strerror(errno)), NULL);
    int status = print(ctx, file);
    if (fclose(file) != 0 && status == CLI_FINE)
        status = cli_fail("cannot write %s: %s", path, strerror(errno));
    return close_output(&out, status, next);
}
