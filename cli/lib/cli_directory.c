/* A directory that is to become a recording: checking its content, and emptying it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/cli.h"

/* Other programs write a meta.json too; ours identifies itself in the first line. */
static bool is_our_meta(int dir_fd)
{
    char text[128] = "";
    const int fd = openat(dir_fd, "meta.json", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 && (strstr(text, "\"marey recording\"") != NULL ||
                     strstr(text, "\"kymo recording\"") != NULL); /* the name up to November 2026 */
}

static bool is_like(const char *name, const char *begin, const char *end)
{
    return strncmp(name, begin, strlen(begin)) == 0 && cli_ends_with(name, end, strlen(end));
}

/* A file with a name that libmarey uses. A directory or symlink of that name is not ours. */
static bool is_our_file(int dir_fd, const char *name)
{
    struct stat st;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT; /* a pool whose process has just ended */
    if (!S_ISREG(st.st_mode))
        return false;
    if (strcmp(name, "meta.json") == 0)
        return is_our_meta(dir_fd);
    return cli_ends_with(name, ".klog", 5) || cli_ends_with(name, ".krun", 5) ||
           cli_ends_with(name, ".pool", 5) || is_like(name, "energy-", ".lock");
}

/* Calls `each` for the entries of `dir` until it returns false. Returns how many there were, or -1. */
typedef bool visit_entry(int dir_fd, const char *name, void *ctx);
static int for_entries(const char *path, visit_entry *each, void *ctx)
{
    DIR *dir = opendir(path);
    int n = 0;
    if (dir == NULL)
        return -1;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        n++;
        if (!each(dirfd(dir), entry->d_name, ctx))
            break;
    }
    closedir(dir);
    return n;
}

struct entries {
    int n;
    bool has_foreign;
};

static bool note_entry(int dir_fd, const char *name, void *ctx)
{
    struct entries *entries = ctx;
    /* Another rank has just created the directory and is about to rename this file to meta.json. */
    if (is_like(name, "meta.json.", ".new"))
        return true;
    entries->n++;
    entries->has_foreign = !is_our_file(dir_fd, name);
    return !entries->has_foreign;
}

enum cli_existing cli_look_at(const char *path)
{
    struct stat st;
    struct entries entries = {0};
    if (stat(path, &st) != 0)
        return CLI_IS_NOTHING;
    if (!S_ISDIR(st.st_mode))
        return CLI_IS_NO_DIR;
    if (for_entries(path, note_entry, &entries) < 0 || entries.has_foreign)
        return CLI_IS_OTHER_DIR;
    return entries.n == 0 ? CLI_IS_EMPTY : CLI_IS_RECORDING;
}

static bool remove_entry(int dir_fd, const char *name, void *ctx)
{
    return !(*(bool *)ctx = unlinkat(dir_fd, name, 0) != 0 && errno != ENOENT);
}

bool cli_may_hold_recording(const char *path, const char *quoted)
{
    const enum cli_existing existing = cli_look_at(path);
    if (existing == CLI_IS_NO_DIR)
        cli_fail("%s exists and is not a directory; choose another name with -o", quoted);
    else if (existing == CLI_IS_OTHER_DIR)
        cli_fail("%s is not empty and holds more than a recording; choose another name with -o",
                 quoted);
    return existing != CLI_IS_NO_DIR && existing != CLI_IS_OTHER_DIR;
}

/* Called only for recordings: directories in which every file is ours. */
bool cli_empty_recording(const char *path)
{
    bool failed = false;
    return for_entries(path, remove_entry, &failed) >= 0 && !failed;
}
