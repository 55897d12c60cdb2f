/* Directories and files: created as needed, renamed when complete, claimed by one process at a time. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "instrument/dump/internal.h"

enum { FILE_BUFFER = 1 << 20 };

marey_status marey__dump_make_folders(const char *path)
{
    char part[PATH_MAX];
    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part)
        return marey__fail(MAREY_EINVAL, "the path of the dump is too long: %.100s...", path);
    for (char *slash = part;;) {
        slash = strchr(slash + 1, '/');
        if (slash != NULL)
            *slash = '\0';
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return marey__fail_errno("create the directory %s for dumps", part);
        if (slash == NULL)
            break;
        *slash = '/';
    }
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return marey__fail(MAREY_EIO, "cannot dump into %s: it is not a directory", path);
    return MAREY_OK;
}

static int open_child(int parent, const char *name)
{
    if (mkdirat(parent, name, 0755) != 0 && errno != EEXIST)
        return -1;
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static marey_status fail_to_open(int parent, const char *dir, const char *below, const char *name)
{
    struct stat st;
    const int error = errno;
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
        return marey__fail(
            MAREY_EIO,
            "cannot dump into %s/%s: '%s' is a symbolic link, which is not followed; "
            "remove it",
            dir, below, name);
    errno = error;
    return marey__fail_errno("open the folder %s/%s of the dump", dir, below);
}

marey_status marey__dump_open_below(const char *dir, const char *below, struct marey__held_file *out)
{
    char parts[PATH_MAX];
    MAREY_TRY(marey__dump_make_folders(dir));
    if (snprintf(parts, sizeof parts, "%s", below) >= (int)sizeof parts)
        return marey__fail(MAREY_EINVAL, "the path of the dump is too long: %.100s...", below);
    int folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return marey__fail_errno("open the folder %s of the dump", dir);
    char *rest = NULL;
    for (const char *name = strtok_r(parts, "/", &rest); name != NULL;
         name = strtok_r(NULL, "/", &rest)) {
        const int child = open_child(folder, name);
        const marey_status st = child >= 0 ? MAREY_OK : fail_to_open(folder, dir, below, name);
        close(folder);
        MAREY_TRY(st);
        folder = child;
    }
    return marey__held_set(out, marey__raise_fd(folder))
               ? MAREY_OK
               : marey__fail_errno("open the folder %s of the dump", dir);
}

/* ---- a file that gets its name when it is complete ---- */

static void note_errno(struct marey__dump_file *file, const char *verb)
{
    if (file->status != MAREY_OK)
        return;
    file->status = marey__fail_errno("%s %s of a dump", verb, file->name.data);
}

void marey__dump_file_begin(struct marey__dump_file *file, const struct marey__held_file *folder,
                            const char *name, bool durable)
{
    *file = (struct marey__dump_file){.folder = folder, .held.fd = -1, .durable = durable};
    marey__buf_put(&file->name, name, strlen(name) + 1);
    marey__buf_printf(&file->temporary, ".%.200s.%" PRIu64 ".new", name, (uint64_t)getpid());
    marey__buf_put(&file->temporary, "", 1);
    if (file->name.failed || file->temporary.failed) {
        file->status = marey__no_memory();
        return;
    }
    if (!marey__held_set(&file->held, marey__open_at(marey__held_fd(folder), file->temporary.data,
                                                     O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644)))
        note_errno(file, "create");
}

static void write_now(struct marey__dump_file *file, const void *bytes, size_t len)
{
    if (file->status == MAREY_OK && !marey__held_write(&file->held, bytes, len))
        note_errno(file, "write");
}

static void flush(struct marey__dump_file *file)
{
    write_now(file, file->buf.data, file->buf.len);
    file->buf.len = 0;
}

void marey__dump_file_put(struct marey__dump_file *file, const void *bytes, size_t len)
{
    if (file->status != MAREY_OK)
        return;
    if (file->buf.len + len > FILE_BUFFER)
        flush(file);
    if (len >= FILE_BUFFER) {
        write_now(file, bytes, len);
        return;
    }
    marey__buf_put(&file->buf, bytes, len);
    if (file->buf.failed)
        file->status = marey__no_memory();
}

bool marey__dump_file_sink(void *file, const char *text, size_t len)
{
    marey__dump_file_put(file, text, len);
    return ((struct marey__dump_file *)file)->status == MAREY_OK;
}

marey_status marey__dump_file_end(struct marey__dump_file *file, bool keep)
{
    if (keep)
        flush(file);
    if (keep && file->status == MAREY_OK && file->durable && fdatasync(file->held.fd) != 0)
        note_errno(file, "write");
    const bool is_created = file->held.fd >= 0;
    marey__held_close(&file->held);
    const int folder = marey__held_fd(file->folder);
    if (keep && file->status == MAREY_OK &&
        renameat(folder, file->temporary.data, folder, file->name.data) != 0)
        note_errno(file, "give its name to");
    if (is_created && (!keep || file->status != MAREY_OK))
        unlinkat(folder, file->temporary.data, 0);
    const marey_status st = file->status;
    marey__buf_fini(&file->name);
    marey__buf_fini(&file->temporary);
    marey__buf_fini(&file->buf);
    return st;
}

/* ---- claiming a folder ---- */

/* Opens and locks; -1 with `*is_taken` if another process has it, or without on another failure. */
static int try_claim(int folder, const char *name, bool *is_taken)
{
    struct stat mine, there;
    *is_taken = false;
    for (;;) {
        const int fd = marey__open_at(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0644);
        if (fd < 0)
            return -1;
        if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            *is_taken = errno == EWOULDBLOCK;
            close(fd);
            return -1;
        }
        /* The previous owner may have removed the name in between. */
        if (fstat(fd, &mine) == 0 && fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
            mine.st_ino == there.st_ino)
            return fd;
        close(fd);
    }
}

static void claim_name(char *out, size_t size, int64_t rank)
{
    if (rank >= 0)
        snprintf(out, size, ".rank-%" PRId64 ".lock", rank);
    else
        snprintf(out, size, ".lock");
}

void marey__dump_claim(struct marey__dump_claim *claim, const struct marey__held_file *folder,
                       int64_t rank)
{
    char name[48];
    if (claim->is_made && claim->rank == rank)
        return;
    marey__dump_unclaim(claim);
    claim_name(name, sizeof name, rank);
    marey__held_set(&claim->lock, try_claim(marey__held_fd(folder), name, &claim->is_taken));
    claim->is_made = true;
    claim->rank = rank;
    const int copy = claim->lock.fd >= 0 ? fcntl(marey__held_fd(folder), F_DUPFD_CLOEXEC, 0) : -1;
    marey__held_set(&claim->folder, marey__raise_fd(copy));
}

void marey__dump_unclaim(struct marey__dump_claim *claim)
{
    char name[48];
    claim_name(name, sizeof name, claim->rank);
    struct stat st;
    if (claim->is_made && marey__held_is_ours(&claim->folder, &st))
        unlinkat(claim->folder.fd, name, 0);
    marey__dump_claim_forget(claim);
}

void marey__dump_claim_forget(struct marey__dump_claim *claim)
{
    if (claim->is_made) {
        marey__held_close(&claim->lock);
        marey__held_close(&claim->folder);
    }
    *claim = (struct marey__dump_claim){0};
}

/* ---- files of an earlier run ---- */

DIR *marey__dump_list_folder(int folder, const char *name)
{
    const int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *const dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL && fd >= 0)
        close(fd);
    return dir;
}

void marey__dump_empty_folder(int folder, const char *name, const char *prefix)
{
    DIR *const dir = marey__dump_list_folder(folder, name);
    if (dir == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            unlinkat(dirfd(dir), entry->d_name, 0); /* folders refuse, "." and ".." too */
    closedir(dir);
}

void marey__dump_replacing(const struct marey__dump_place *place, int folder, const char *name)
{
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_size == 0)
        return;
    const struct timespec *const began = &place->began;
    if (st.st_mtim.tv_sec < began->tv_sec ||
        (st.st_mtim.tv_sec == began->tv_sec && st.st_mtim.tv_nsec < began->tv_nsec))
        marey__say("%s holds steps of an earlier run; those with the same numbers are replaced",
                   place->dir);
}
