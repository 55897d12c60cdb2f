/*
 * Where the logs of one recording go: files of a directory, or one file without a name. Of the latter nothing is left
 * whatever becomes of this process. Each log is written to a file of its own first, as its length is not known and other
 * threads write others, and then copied behind those that are there: a log is a small part of what its trace was.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "import/sink_internal.h"

struct kymo__log_store {
    const char *directory; /* NULL: temporary */
    pthread_mutex_t lock;  /* guards what follows */
    int fd;
    uint64_t size;
    struct kymo__log_part *parts;
    size_t n_parts, parts_cap;
};

static kymo_status make_store(struct kymo__log_store **out)
{
    struct kymo__log_store *store = kymo__calloc(1, sizeof *store);
    if (store == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory to import");
    store->fd = -1;
    pthread_mutex_init(&store->lock, NULL);
    *out = store;
    return KYMO_OK;
}

kymo_status kymo__log_store_open_directory(const char *directory, struct kymo__log_store **out)
{
    KYMO_TRY(make_store(out));
    (*out)->directory = directory;
    return KYMO_OK;
}

kymo_status kymo__log_store_open_temporary(struct kymo__log_store **out)
{
    int fd;
    KYMO_TRY(kymo__temporary_open(&fd));
    const kymo_status status = make_store(out);
    if (status == KYMO_OK)
        (*out)->fd = fd;
    else
        close(fd);
    return status;
}

void kymo__log_store_close(struct kymo__log_store *store)
{
    if (store == NULL)
        return;
    if (store->fd >= 0)
        close(store->fd);
    pthread_mutex_destroy(&store->lock);
    kymo__free(store->parts);
    kymo__free(store);
}

kymo_status kymo__log_store_begin(struct kymo__log_store *store, const char *name,
                                  struct kymo__log *log)
{
    if (store->directory != NULL)
        return kymo__log_create(log, store->directory, name);
    int fd;
    KYMO_TRY(kymo__temporary_open(&fd));
    kymo__log_adopt(log, fd, 0);
    memcpy(log->path, "in a temporary file", sizeof "in a temporary file");
    return KYMO_OK;
}

/* Copy `size` bytes from the begin of one file to `at` of another. */
static kymo_status copy_file(int from, int to, uint64_t at, uint64_t size)
{
    enum { BYTES = 256 << 10 };
    char *bytes = kymo__alloc(BYTES);
    if (bytes == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory to import");
    kymo_status status = KYMO_OK;
    for (uint64_t done = 0; done < size && status == KYMO_OK;) {
        const ssize_t n =
            pread(from, bytes, (size_t)KYMO__MIN(size - done, (uint64_t)BYTES), (off_t)done);
        ssize_t written = 0;
        while (written < n) {
            const ssize_t some =
                pwrite(to, bytes + written, (size_t)(n - written), (off_t)(at + done) + written);
            if (some < 0 && errno != EINTR)
                break;
            written += KYMO__MAX(some, 0);
        }
        if (n <= 0 || written < n)
            status = kymo__fail_errno("write a temporary recording (TMPDIR names another folder)");
        done += (uint64_t)KYMO__MAX(n, 0);
    }
    kymo__free(bytes);
    return status;
}

/* Each log has its place before it is copied, so that several are copied at a time. */
static kymo_status add_part(struct kymo__log_store *store, uint64_t size, uint64_t *at)
{
    pthread_mutex_lock(&store->lock);
    const bool fits =
        kymo__grow(&store->parts, &store->parts_cap, store->n_parts + 1, sizeof *store->parts);
    *at = store->size;
    if (fits) {
        store->parts[store->n_parts++] = (struct kymo__log_part){.at = *at, .size = size};
        store->size += size;
    }
    pthread_mutex_unlock(&store->lock);
    return fits ? KYMO_OK : kymo__fail(KYMO_ENOMEM, "no memory to import");
}

kymo_status kymo__log_store_end(struct kymo__log_store *store, struct kymo__log *log,
                                kymo_status status)
{
    uint64_t at;
    if (status == KYMO_OK && store->directory == NULL) {
        status = add_part(store, log->size, &at);
        if (status == KYMO_OK)
            status = copy_file(log->fd, store->fd, at, log->size);
    }
    kymo__log_close(log);
    return status;
}

kymo_status kymo__log_store_read(struct kymo__log_store *store, const char *name, kymo_recording **out)
{
    KYMO_ASSERT(store->directory == NULL);
    KYMO_TRY(kymo__recording_open_parts(name, store->fd, store->parts, store->n_parts, out));
    store->fd = -1; /* the recording's now */
    return KYMO_OK;
}
