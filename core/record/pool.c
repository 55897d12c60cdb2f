/*
 * The pool: a file mapped shared, divided into chunks. Addresses are reserved for the whole budget at once; blocks of
 * the file are allocated (and their pages touched) a few at a time, so that a store never hits a missing page or a full
 * disk. If the recording's file system cannot guarantee that, the file goes to /dev/shm, and failing that the pool is
 * anonymous memory: unwritten events are then lost when the process dies, and the recording has a note about it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "record/internal.h"

enum { FIRST_BYTES = 2u << 20, GROW_BYTES = 4u << 20 };

#define MAGIC_EXT4 0xef53
#define MAGIC_XFS 0x58465342
#define MAGIC_TMPFS 0x01021994

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static void set_budget(struct marey__pool *pool, uint64_t bytes)
{
    pool->bytes = bytes / MAREY__CHUNK_BYTES * MAREY__CHUNK_BYTES;
    pool->n_max = (uint32_t)(pool->bytes / MAREY__CHUNK_BYTES) - 1;
}

/* File systems where allocated blocks of a shared mapping are really reserved. */
static bool is_dependable(int fd)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0)
        return false;
    const unsigned long type = (unsigned long)fs.f_type;
    return type == MAGIC_EXT4 || type == MAGIC_XFS || type == MAGIC_TMPFS;
}

static bool allocate_blocks(struct marey__pool *pool, size_t from, size_t len)
{
    struct stat st;
    if (!marey__held_is_ours(&pool->file, &st) && !marey__held_reopen(&pool->file, pool->path, O_RDWR))
        return false;
    sigset_t before;
    marey__size_limit_begin(&before);
    const bool is_done = fallocate(pool->file.fd, 0, (off_t)from, (off_t)len) == 0;
    marey__size_limit_end(&before);
    return is_done;
}

/* Allocates blocks and memory for `n` slots from `first` on. */
static bool allocate_slots(struct marey__pool *pool, uint32_t first, uint32_t n)
{
    const size_t from = (size_t)first * MAREY__CHUNK_BYTES, len = (size_t)n * MAREY__CHUNK_BYTES;
    if (pool->file.fd >= 0 && !allocate_blocks(pool, from, len))
        return false;
    char *at = (char *)pool->head + from;
    if (madvise(at, len, MADV_POPULATE_WRITE) != 0) /* not supported before Linux 5.14 */
        for (size_t i = 0; i < len; i += 4096)
            __atomic_fetch_or((uint8_t *)at + i, 0, __ATOMIC_RELAXED);
    return true;
}

/* The budget is a hole in the file; only allocated blocks take space. A file-size limit also limits the pool. */
static bool set_size(struct marey__pool *pool)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < pool->bytes) {
        if (limit.rlim_cur < FIRST_BYTES) {
            errno = EFBIG;
            return false;
        }
        set_budget(pool, limit.rlim_cur);
    }
    return ftruncate(pool->file.fd, (off_t)pool->bytes) == 0 &&
           fallocate(pool->file.fd, 0, 0, FIRST_BYTES) == 0;
}

static bool open_file(struct marey__pool *pool, const char *path)
{
    if (snprintf(pool->path, sizeof pool->path, "%s", path) >= (int)sizeof pool->path)
        return false;
    const int fd = marey__open_at(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (marey__held_set(&pool->file, fd) && is_dependable(fd) && set_size(pool))
        return true;
    const int error = errno;
    if (fd >= 0)
        unlink(path);
    marey__held_close(&pool->file);
    errno = error;
    return false;
}

static void choose_place(struct marey__pool *pool, enum marey__pool_place place,
                         const char *log_path, struct marey__buf *note)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s.pool", log_path);
    if ((place == MAREY__POOL_AUTO || place == MAREY__POOL_IN_DIR) && open_file(pool, path))
        return;
    snprintf(path, sizeof path, "/dev/shm/marey-%s.pool", marey__base_name(log_path));
    if (place != MAREY__POOL_ANONYMOUS && open_file(pool, path))
        return;
    pool->path[0] = '\0';
    marey__buf_printf(
        note,
        "not kill-safe: the pool is plain memory, because neither the recording's file system nor "
        "/dev/shm can hold it; events not yet written are lost if the process is killed");
}

static void *map_pool(struct marey__pool *pool)
{
    const int flags = pool->file.fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *at = mmap(NULL, pool->bytes, PROT_READ | PROT_WRITE, flags, pool->file.fd, 0);
    if (at != MAP_FAILED)
        madvise(at, pool->bytes, MADV_DONTFORK); /* a child must never write into its parent's chunks */
    return at;
}

marey_status marey__pool_create(struct marey__pool *pool, const struct marey__settings *s,
                                const struct marey__log *log, struct marey__buf *note)
{
    pool->file.fd = -1;
    pool->path[0] = '\0';
    pool->id = marey__identity_random();
    set_budget(pool, MAREY__MAX(s->pool_bytes, (uint64_t)FIRST_BYTES));
    pthread_mutex_init(&pool->grow_lock, NULL);
    choose_place(pool, s->pool_place, log->path, note);
    if (!marey__queue_init(&pool->free, pool->n_max) || !marey__queue_init(&pool->full, pool->n_max)) {
        marey__pool_retire(pool, false);
        return marey__no_memory();
    }
    void *at = map_pool(pool);
    if (at == MAP_FAILED) {
        const marey_status st =
            marey__fail_errno("map a pool of %llu bytes", (unsigned long long)pool->bytes);
        marey__pool_retire(pool, false);
        return st;
    }
    __atomic_store_n(&pool->head, (struct marey__pool_head *)at, __ATOMIC_RELEASE);
    if (!allocate_slots(pool, 0, FIRST_BYTES / MAREY__CHUNK_BYTES)) {
        const marey_status st = marey__fail_errno("allocate the pool %s", pool->path);
        marey__pool_retire(pool, false);
        return st;
    }
    *pool->head = (struct marey__pool_head){.version = MAREY__LOG_VERSION,
                                            .chunk_bytes = MAREY__CHUNK_BYTES,
                                            .id = pool->id,
                                            .log_inode = (uint64_t)log->file.inode,
                                            .n_chunks = FIRST_BYTES / MAREY__CHUNK_BYTES - 1};
    __atomic_store_n(&pool->head->magic, MAREY__POOL_MAGIC, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < pool->head->n_chunks; i++)
        marey__queue_put(&pool->free, i);
    return MAREY_OK;
}

/* Growing takes a millisecond or two. Waiting that long for another thread's growth beats losing events; not longer. */
static bool lock_to_grow(struct marey__pool *pool)
{
    enum { PATIENCE_NS = 100000000 };
    if (pthread_mutex_trylock(&pool->grow_lock) == 0)
        return true;
    const struct timespec deadline = marey__clock_after(CLOCK_REALTIME, PATIENCE_NS);
    return pthread_mutex_timedlock(&pool->grow_lock, &deadline) == 0;
}

bool marey__pool_can_grow(const struct marey__pool *pool)
{
    return __atomic_load_n(&pool->head->n_chunks, __ATOMIC_RELAXED) <
           __atomic_load_n(&pool->n_max, __ATOMIC_RELAXED);
}

bool marey__pool_grow(struct marey__pool *pool, uint32_t enough)
{
    if (!marey__pool_can_grow(pool) || !lock_to_grow(pool))
        return false;
    if (marey__queue_length(&pool->free) >= enough) { /* another thread did it */
        pthread_mutex_unlock(&pool->grow_lock);
        return true;
    }
    const uint32_t have = pool->head->n_chunks;
    const uint32_t more = MAREY__MIN(pool->n_max - have, GROW_BYTES / MAREY__CHUNK_BYTES);
    const bool grown = more > 0 && allocate_slots(pool, have + 1, more);
    if (grown) {
        __atomic_store_n(&pool->head->n_chunks, have + more, __ATOMIC_RELEASE);
        for (uint32_t i = have; i < have + more; i++)
            marey__queue_put(&pool->free, i);
    } else if (more > 0) {
        /* No room: this is the final size. Retrying for every event that finds no chunk would be slow. */
        __atomic_store_n(&pool->n_max, have, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&pool->grow_lock);
    return grown;
}

struct marey__chunk_head *marey__pool_chunk(const struct marey__pool *pool, uint32_t number)
{
    return (struct marey__chunk_head *)((char *)pool->head +
                                        (size_t)(number + 1) * MAREY__CHUNK_BYTES);
}

uint32_t marey__pool_number(const struct marey__pool *pool, const struct marey__chunk_head *chunk)
{
    return (uint32_t)(((const char *)chunk - (const char *)pool->head) / MAREY__CHUNK_BYTES) - 1;
}

void marey__pool_retire(struct marey__pool *pool, bool keep_file)
{
    if (pool->head != NULL) /* if it fails, the file stays mapped, which is as safe */
        (void)mmap(pool->head, pool->bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (pool->file.fd >= 0 && !keep_file)
        unlink(pool->path);
    marey__held_close(&pool->file);
    marey__queue_fini(&pool->free);
    marey__queue_fini(&pool->full);
    /* A thread may be counting a lost event right now, in what is now anonymous memory. */
    __atomic_store_n(&pool->head, NULL, __ATOMIC_RELEASE);
    pool->bytes = pool->n_max = 0;
    pool->path[0] = '\0';
}

uint64_t marey__pool_n_events_waiting(const struct marey__pool *pool)
{
    uint64_t n = 0;
    const uint32_t n_chunks = __atomic_load_n(&pool->head->n_chunks, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n_chunks; i++) {
        const struct marey__chunk_head *chunk = marey__pool_chunk(pool, i);
        if (__atomic_load_n(&chunk->state, __ATOMIC_ACQUIRE) == MAREY__CHUNK_FULL)
            n += marey__chunk_extent(chunk).n_events;
    }
    return n;
}
