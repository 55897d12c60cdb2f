/* The directory NAME.marey and its meta.json, written once by its creator. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "record/internal.h"

static void describe(struct marey__buf *out, const char *command)
{
    struct timespec now;
    struct tm utc;
    char when[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    char cwd[PATH_MAX];
    marey__buf_printf(out, "{\n  \"format\": \"marey recording\",\n  \"format_version\": %d,\n",
                      MAREY__LOG_VERSION);
    marey__buf_printf(out, "  \"marey_version\": \"%s\",\n  \"created\": \"%s\",\n  \"command\": ",
                      MAREY_VERSION, when);
    marey__json_put(out, command, strlen(command));
    marey__buf_puts(out, ",\n  \"directory\": ");
    if (getcwd(cwd, sizeof cwd) == NULL)
        cwd[0] = '\0';
    marey__json_put(out, cwd, strlen(cwd));
    marey__buf_puts(out, "\n}\n");
}

static marey_status write_file(const char *path, const char *command)
{
    const int fd = marey__open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd < 0)
        return marey__fail_errno("create %s", path);
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    describe(&text, command);
    const bool ok = !text.failed && marey__write_all(fd, text.data, text.len);
    const marey_status st = ok ? MAREY_OK : marey__fail_errno("write %s", path);
    close(fd);
    return st;
}

/*
 * Several ranks may do this at once. Each writes a file of its own and links it to the final name: the first one wins,
 * and a process that sees the name sees a complete file. Without hard links we rename; the last one then wins, with
 * equal content.
 */
static marey_status write_meta(const char *path, const char *command)
{
    char file[PATH_MAX + 16], own[PATH_MAX + 48];
    snprintf(file, sizeof file, "%s/meta.json", path);
    if (access(file, F_OK) == 0)
        return MAREY_OK;
    snprintf(own, sizeof own, "%s.%016" PRIx64 ".new", file, marey__identity_random());
    marey_status st = write_file(own, command);
    if (st == MAREY_OK && link(own, file) != 0 && errno != EEXIST && rename(own, file) != 0)
        st = marey__fail_errno("create %s", file);
    unlink(own);
    return st;
}

marey_status marey_recording_create(const char *path, const char *command)
{
    if (path == NULL || path[0] == '\0')
        return marey__fail(MAREY_EINVAL, "a recording needs a path");
    const bool is_new = mkdir(path, 0755) == 0;
    if (!is_new && errno != EEXIST)
        return marey__fail_errno("create the recording %s", path);
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return marey__fail(MAREY_EIO, "the recording %s is not a directory; choose another path",
                           path);
    if (access(path, W_OK | X_OK) != 0)
        return marey__fail_errno("write into the recording %s", path);
    const marey_status status = write_meta(path, command);
    if (status != MAREY_OK && is_new)
        rmdir(path); /* fails if another rank is using it */
    return status;
}

marey_status marey__recording_create_own(const char *path)
{
    struct marey__buf command MAREY__FINALLY(marey__buf_fini) = {0};
    marey__identity_command(&command);
    marey__buf_put(&command, "", 1);
    return marey_recording_create(path, command.failed ? "" : command.data);
}
