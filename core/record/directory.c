/* The directory NAME.kymo and its meta.json, written once by whoever creates it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "record/record_internal.h"

static void describe(struct kymo__buf *out, const char *command)
{
    struct timespec now;
    struct tm utc;
    char when[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    char cwd[PATH_MAX];
    kymo__buf_printf(out, "{\n  \"format\": \"kymo recording\",\n  \"format_version\": %d,\n",
                     KYMO__LOG_VERSION);
    kymo__buf_printf(out, "  \"kymo_version\": \"%s\",\n  \"created\": \"%s\",\n  \"command\": ",
                     KYMO_VERSION, when);
    kymo__json_put(out, command, strlen(command));
    kymo__buf_puts(out, ",\n  \"directory\": ");
    if (getcwd(cwd, sizeof cwd) == NULL)
        cwd[0] = '\0';
    kymo__json_put(out, cwd, strlen(cwd));
    kymo__buf_puts(out, "\n}\n");
}

static kymo_status write_file(const char *path, const char *command)
{
    const int fd = kymo__open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd < 0)
        return kymo__fail_errno("create %s", path);
    struct kymo__buf text = {0};
    describe(&text, command);
    const bool ok = !text.failed && kymo__write_all(fd, text.data, text.len);
    const kymo_status st = ok ? KYMO_OK : kymo__fail_errno("write %s", path);
    kymo__buf_fini(&text);
    close(fd);
    return st;
}

/*
 * Several ranks may be here at once: the first to give its file the name has written it, and whoever sees the name sees
 * the whole file. Where the file system has no links, a rename does; then the last one counts, and they say the same.
 */
static kymo_status write_meta(const char *path, const char *command)
{
    char file[PATH_MAX + 16], own[PATH_MAX + 48];
    snprintf(file, sizeof file, "%s/meta.json", path);
    if (access(file, F_OK) == 0)
        return KYMO_OK;
    snprintf(own, sizeof own, "%s.%016" PRIx64 ".new", file, kymo__identity_random());
    kymo_status st = write_file(own, command);
    if (st == KYMO_OK && link(own, file) != 0 && errno != EEXIST && rename(own, file) != 0)
        st = kymo__fail_errno("create %s", file);
    unlink(own);
    return st;
}

kymo_status kymo_recording_create(const char *path, const char *command)
{
    if (path == NULL || path[0] == '\0')
        return kymo__fail(KYMO_EINVAL, "a recording needs a path");
    const bool is_new = mkdir(path, 0755) == 0;
    if (!is_new && errno != EEXIST)
        return kymo__fail_errno("create the recording %s", path);
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return kymo__fail(KYMO_EIO, "the recording %s is not a directory; choose another path", path);
    if (access(path, W_OK | X_OK) != 0)
        return kymo__fail_errno("write into the recording %s", path);
    const kymo_status status = write_meta(path, command);
    if (status != KYMO_OK && is_new)
        rmdir(path); /* refused where another rank is at it */
    return status;
}

kymo_status kymo__recording_create_own(const char *path)
{
    struct kymo__buf command = {0};
    kymo__identity_command(&command);
    kymo__buf_put(&command, "", 1);
    const kymo_status st = kymo_recording_create(path, command.failed ? "" : command.data);
    kymo__buf_fini(&command);
    return st;
}
