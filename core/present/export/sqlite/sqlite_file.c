/*
 * The file that SQLite writes. marey_export gets a descriptor, but SQLite needs a path, so it uses a file system
 * ("VFS") with a single unnamed file: any path leads to our descriptor.
 *
 *   an empty regular file    is reopened for reading and writing through /proc; rows go directly into it
 *   anything else            (a pipe, a device, a file in the middle) gets a copy of a temporary file at the end
 *
 * No other process sees the partial database, so locks are not needed; a failed export is discarded, so there is
 * nothing to roll back: journals are off, and opening one finds no such file.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "present/export/sqlite/internal.h"

/* ---- the open file ---- */

struct handle {
    sqlite3_file base;
    struct marey__db_file *file;
};

static struct marey__db_file *file_of(sqlite3_file *base)
{
    return ((struct handle *)base)->file;
}

/* The opener closes the file; sector size and capabilities do not matter: all return 0. */
static int on_nothing(sqlite3_file *base)
{
    (void)base;
    return SQLITE_OK;
}

static int on_read(sqlite3_file *base, void *bytes, int len, sqlite3_int64 at)
{
    size_t done = 0;
    while (done < (size_t)len) {
        const ssize_t n =
            pread(file_of(base)->fd, (char *)bytes + done, (size_t)len - done, at + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return SQLITE_IOERR_READ;
        if (n == 0) { /* the library requires zeros beyond the end */
            memset((char *)bytes + done, 0, (size_t)len - done);
            return SQLITE_IOERR_SHORT_READ;
        }
        done += (size_t)n;
    }
    return SQLITE_OK;
}

static int on_write(sqlite3_file *base, const void *bytes, int len, sqlite3_int64 at)
{
    struct marey__db_file *file = file_of(base);
    for (size_t done = 0; done < (size_t)len;) {
        const ssize_t n =
            pwrite(file->fd, (const char *)bytes + done, (size_t)len - done, at + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            file->error = file->error != 0 ? file->error : errno;
            return SQLITE_IOERR_WRITE;
        }
        done += (size_t)n;
    }
    return SQLITE_OK;
}

static int on_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    return ftruncate(file_of(base)->fd, size) == 0 ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

static int on_size(sqlite3_file *base, sqlite3_int64 *size)
{
    struct stat st;
    if (fstat(file_of(base)->fd, &st) != 0)
        return SQLITE_IOERR_FSTAT;
    *size = st.st_size;
    return SQLITE_OK;
}

/* The file is private, and need not survive a crash. */
static int on_sync_or_lock(sqlite3_file *base, int how)
{
    (void)base, (void)how;
    return SQLITE_OK;
}

static int on_check_lock(sqlite3_file *base, int *is_locked)
{
    (void)base;
    *is_locked = 0;
    return SQLITE_OK;
}

static int on_control(sqlite3_file *base, int what, void *arg)
{
    (void)base, (void)what, (void)arg;
    return SQLITE_NOTFOUND;
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = on_nothing,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync_or_lock,
    .xFileSize = on_size,
    .xLock = on_sync_or_lock,
    .xUnlock = on_sync_or_lock,
    .xCheckReservedLock = on_check_lock,
    .xFileControl = on_control,
    .xSectorSize = on_nothing,
    .xDeviceCharacteristics = on_nothing,
};

/* ---- the file system around it ---- */

static int on_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags, int *out_flags)
{
    (void)path;
    base->pMethods = NULL;
    if ((flags & SQLITE_OPEN_MAIN_DB) == 0)
        return SQLITE_CANTOPEN;
    ((struct handle *)base)->file = vfs->pAppData;
    base->pMethods = &methods;
    if (out_flags != NULL)
        *out_flags = flags;
    return SQLITE_OK;
}

/* No path exists below a file, so no journal is found. */
static int on_full_path(sqlite3_vfs *vfs, const char *path, int cap, char *full)
{
    (void)vfs;
    snprintf(full, (size_t)cap, "/dev/null/%s", path);
    return SQLITE_OK;
}

/*
 * The system's VFS, except for opening. Names are global in a process and exports may run in parallel, so each has its
 * own.
 */
static marey_status register_vfs(struct marey__db_file *file)
{
    const sqlite3_vfs *const unix_vfs = sqlite3_vfs_find("unix");
    if (unix_vfs == NULL)
        return marey__fail(MAREY_EUNAVAILABLE, "this SQLite has no file system");
    snprintf(file->vfs_name, sizeof file->vfs_name, "marey-%p", (void *)file);
    file->vfs = *unix_vfs;
    file->vfs.szOsFile = sizeof(struct handle);
    file->vfs.zName = file->vfs_name;
    file->vfs.pAppData = file;
    file->vfs.xOpen = on_open;
    file->vfs.xFullPathname = on_full_path;
    return sqlite3_vfs_register(&file->vfs, 0) == SQLITE_OK ? MAREY_OK : marey__no_memory();
}

/* ---- choice of descriptor ---- */

/*
 * SQLite treats a -journal or -wal beside a database as part of it. One left by another program belongs to the replaced
 * file, and would be replayed into ours.
 */
static marey_status refuse_leftovers(const char *proc_path)
{
    static const char *const endings[] = {"-journal", "-wal"};
    char path[4096 + 16];
    const ssize_t len = readlink(proc_path, path, 4096);
    for (size_t i = 0; len > 0 && i < MAREY__COUNT_OF(endings); i++) {
        struct stat st;
        snprintf(path + len, sizeof path - (size_t)len, "%s", endings[i]);
        if (stat(path, &st) == 0 && st.st_size > 0)
            return marey__fail(
                MAREY_ESTATE,
                "%s is left from an earlier database of that name and would spoil the new one; "
                "remove it, or choose another name",
                path);
    }
    return MAREY_OK;
}

/* Whether the database can grow in `target` itself: an empty regular file that is not opened for appending. */
static bool is_empty_file(int target)
{
    struct stat st;
    return fstat(target, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0 &&
           lseek(target, 0, SEEK_CUR) == 0 && (fcntl(target, F_GETFL) & O_APPEND) == 0;
}

marey_status marey__db_file_init(struct marey__db_file *file, int target)
{
    *file = (struct marey__db_file){.fd = -1, .target = target};
    marey_status status = MAREY_OK;
    if (is_empty_file(target)) {
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", target);
        status = refuse_leftovers(path);
        if (status == MAREY_OK)
            file->fd = open(path, O_RDWR | O_CLOEXEC);
    }
    if (status == MAREY_OK && file->fd < 0) {
        status = marey__temporary_open(NULL, &file->fd);
        file->is_temporary = true;
    }
    if (status == MAREY_OK)
        status = register_vfs(file);
    if (status != MAREY_OK && file->fd >= 0) {
        close(file->fd);
        file->fd = -1;
    }
    return status;
}

void marey__db_file_fini(struct marey__db_file *file)
{
    sqlite3_vfs_unregister(&file->vfs);
    close(file->fd);
    file->fd = -1;
}

marey_status marey__db_file_deliver(const struct marey__db_file *file, struct marey__out *out)
{
    if (!file->is_temporary) {
        lseek(file->target, 0, SEEK_END);
        return MAREY_OK;
    }
    return marey__temporary_copy(file->fd, out);
}
