/*
 * The logs of a recording being created, in one unnamed file, so that nothing is left behind however this process ends.
 * It is read directly, or its logs become files of a directory once all are complete. Each log is first written to a
 * file of its own, because its length is unknown and other threads write others, and then appended to the common file.
 * A log is much smaller than its trace.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "import/sink/internal.h"

struct marey__log_store {
    const char *folder;   /* for unnamed files, borrowed; NULL: the folder of temporary files */
    pthread_mutex_t lock; /* guards the members below */
    int fd;
    uint64_t size;
    struct marey__log_part *parts;
    const char **names; /* file names of the parts */
    struct marey__arena texts;
    size_t n_parts, parts_cap, names_cap;
};

marey_status marey__log_store_open(const char *folder, struct marey__log_store **out)
{
    int fd;
    MAREY_TRY(marey__temporary_open(folder, &fd));
    struct marey__log_store *store = marey__calloc(1, sizeof *store);
    if (store == NULL) {
        close(fd);
        return marey__no_memory();
    }
    store->folder = folder;
    store->fd = fd;
    pthread_mutex_init(&store->lock, NULL);
    *out = store;
    return MAREY_OK;
}

void marey__log_store_close(struct marey__log_store *store)
{
    if (store == NULL)
        return;
    if (store->fd >= 0)
        close(store->fd);
    marey__arena_fini(&store->texts);
    pthread_mutex_destroy(&store->lock);
    MAREY__FREE_ALL(store->names, store->parts, store);
}

/* ---- logs in ---- */

marey_status marey__log_store_begin(struct marey__log_store *store, struct marey__log *log)
{
    static const char path[] = "in a temporary file";
    int fd;
    MAREY_TRY(marey__temporary_open(store->folder, &fd));
    marey__log_adopt(log, fd, 0);
    memcpy(log->path, path, sizeof path);
    return MAREY_OK;
}

static bool write_all_at(int fd, const char *bytes, size_t n, uint64_t at)
{
    while (n != 0) {
        const ssize_t some = pwrite(fd, bytes, n, (off_t)at);
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            return false;
        bytes += some;
        n -= (size_t)some;
        at += (uint64_t)some;
    }
    return true;
}

/* Copy `size` bytes from `from_at` of one file to `to_at` of another, called `name` in messages. */
static marey_status copy_bytes(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t size,
                               const char *name)
{
    enum { BYTES = 256 << 10 };
    char *bytes MAREY__FREED = marey__alloc(BYTES);
    MAREY__TRY_MEMORY(bytes != NULL);
    marey_status status = MAREY_OK;
    for (uint64_t done = 0; done < size && status == MAREY_OK;) {
        const size_t want = (size_t)MAREY__MIN(size - done, (uint64_t)BYTES);
        const ssize_t n = pread(from, bytes, want, (off_t)(from_at + done));
        if (n <= 0 || !write_all_at(to, bytes, (size_t)n, to_at + done))
            status = marey__fail_errno("write %s", name);
        done += (uint64_t)MAREY__MAX(n, 0);
    }
    return status;
}

/* Space is reserved before copying, so that several threads copy in parallel. */
static marey_status add_part(struct marey__log_store *store, const char *name, uint64_t size,
                             uint64_t *at)
{
    MAREY__HOLD(&store->lock);
    const char *const copy = marey__arena_text(&store->texts, name, strlen(name));
    const bool fits =
        copy != NULL &&
        marey__grow(&store->parts, &store->parts_cap, store->n_parts + 1, sizeof *store->parts) &&
        marey__grow(&store->names, &store->names_cap, store->n_parts + 1, sizeof(char *));
    *at = store->size;
    if (fits) {
        store->names[store->n_parts] = copy;
        store->parts[store->n_parts++] = (struct marey__log_part){.at = *at, .size = size};
        store->size += size;
    }
    return fits ? MAREY_OK : marey__no_memory();
}

marey_status marey__log_store_end(struct marey__log_store *store, const char *name,
                                  struct marey__log *log, marey_status status)
{
    uint64_t at = 0;
    if (status == MAREY_OK)
        status = add_part(store, name, log->size, &at);
    if (status == MAREY_OK)
        status = copy_bytes(log->file.fd, 0, store->fd, at, log->size,
                            "a temporary recording (TMPDIR names another folder)");
    marey__log_close(log);
    return status;
}

/* ---- logs out ---- */

marey_status marey__log_store_read(struct marey__log_store *store, const char *name,
                                   marey_recording **out)
{
    MAREY_TRY(marey__recording_open_parts(name, store->fd, store->parts, store->n_parts, out));
    store->fd = -1; /* now owned by the recording */
    return MAREY_OK;
}

static marey_status save_log(const struct marey__log_store *store, size_t i, const char *directory)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", directory, store->names[i]) >= (int)sizeof path)
        return marey__fail(MAREY_EINVAL, "the path of the recording %s is too long", directory);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return marey__fail_errno("create log %s", path);
    marey_status status =
        copy_bytes(store->fd, store->parts[i].at, fd, 0, store->parts[i].size, path);
    if (close(fd) != 0 && status == MAREY_OK)
        status = marey__fail_errno("write log %s", path);
    return status;
}

marey_status marey__log_store_save(const struct marey__log_store *store, const char *directory)
{
    for (size_t i = 0; i < store->n_parts; i++)
        MAREY_TRY(save_log(store, i, directory));
    return MAREY_OK;
}
