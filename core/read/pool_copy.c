/*
 * Copies the chunks of a pool into memory whose owner still runs, or died where the log cannot be finalized.
 *
 * The owner may write meanwhile. A chunk's words end at the first zero word, and a record's header is stored last, so
 * everything copied up to there is complete. The head, read before and after copying, shows whether a chunk was
 * recycled meanwhile; its former words are in the log by then.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "read/internal.h"
#include "record/internal.h"

/* A pool is at most the memory budget in the options; a larger file is not searched further. */
#define MAX_POOL_BYTES (UINT64_C(4) << 30)

struct pool_file {
    int fd;
    uint64_t n_slots;
};

static bool read_at(int fd, void *to, size_t len, uint64_t offset)
{
    return marey__read_all(fd, to, len, (off_t)offset) == (ssize_t)len;
}

/* Open `path` if it is the pool of the log with `id` and `inode` (0: any); false otherwise. */
static bool open_pool(const char *path, uint64_t id, uint64_t inode, struct pool_file *pool,
                      struct marey__pool_copy *copy)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    struct stat st;
    struct marey__pool_head head;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > MAX_POOL_BYTES ||
        !read_at(fd, &head, sizeof head, 0) || !marey__is_pool_magic(head.magic) ||
        head.version != MAREY__LOG_VERSION || head.chunk_bytes != MAREY__CHUNK_BYTES ||
        head.id != id || (inode != 0 && id != 0 && head.log_inode != inode)) {
        close(fd);
        return false;
    }
    const uint64_t n_whole = (uint64_t)st.st_size / MAREY__CHUNK_BYTES;
    pool->fd = fd;
    pool->n_slots = n_whole == 0 ? 0 : MAREY__MIN((uint64_t)head.n_chunks, n_whole - 1);
    copy->is_found = true;
    copy->is_broken = head.is_broken != 0;
    copy->broken_tick = head.broken_tick;
    copy->failure = marey__strndup(head.failure, strnlen(head.failure, sizeof head.failure));
    copy->n_lost = head.n_lost;
    copy->lost_first_tick = head.lost_first_tick;
    copy->lost_last_tick = head.lost_last_tick;
    return true;
}

/*
 * The pool is beside the log, even if the recording was moved or copied, or else at the path in the log. In the second
 * case the log must not be a copy, because the pool belongs to the original, which continues without it.
 */
static bool find_pool(const char *path, uint64_t id, const struct marey__block_reader *log,
                      struct pool_file *pool, struct marey__pool_copy *copy)
{
    struct stat st;
    const char *name = strrchr(path, '/');
    const char *folder_end = strrchr(log->path, '/');
    const size_t folder_len = folder_end == NULL ? 0 : (size_t)(folder_end - log->path) + 1;
    struct marey__buf beside MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_put(&beside, log->path, folder_len);
    marey__buf_puts(&beside, name == NULL ? path : name + 1);
    marey__buf_put(&beside, "", 1);
    const bool found = !beside.failed && open_pool(beside.data, id, 0, pool, copy);
    return found ||
           (fstat(log->fd, &st) == 0 && open_pool(path, id, (uint64_t)st.st_ino, pool, copy));
}

static marey_status add_chunk(struct marey__pool_copy *copy, const struct marey__chunk_head *head)
{
    const struct marey__extent extent = marey__chunk_extent(head);
    const uint64_t *const words = (const uint64_t *)(head + 1);
    const size_t n = extent.n_words;
    if (n == 0)
        return MAREY_OK;
    MAREY__TRY_MEMORY(
        marey__grow(&copy->words, &copy->words_cap, copy->n_words + n, sizeof *words) &&
        marey__grow(&copy->chunks, &copy->chunks_cap, copy->n_chunks + 1, sizeof *copy->chunks));
    struct marey__pool_chunk *chunk = &copy->chunks[copy->n_chunks++];
    *chunk = (struct marey__pool_chunk){
        .lane = head->lane,
        .sequence = head->sequence,
        .kind = head->kind,
        .tid = head->tid,
        .base_tick = head->base_tick,
        .last_tick = head->base_tick + extent.last_ticks,
        .first_word = copy->n_words,
        .n_words = n,
        .n_events = extent.n_events,
    };
    memcpy(chunk->thread_name, head->thread_name, sizeof head->thread_name);
    memcpy(copy->words + copy->n_words, words, n * sizeof *words);
    copy->n_words += n;
    return MAREY_OK;
}

static bool same_chunk(const struct marey__chunk_head *a, const struct marey__chunk_head *b)
{
    return a->state != MAREY__CHUNK_FREE && b->state != MAREY__CHUNK_FREE && a->lane == b->lane &&
           a->sequence == b->sequence && a->base_tick == b->base_tick;
}

/* `slot` is a buffer of one chunk. */
static marey_status copy_chunks(struct marey__pool_copy *copy, const struct pool_file *pool,
                                struct marey__chunk_head *slot)
{
    for (uint64_t i = 1; i <= pool->n_slots; i++) {
        struct marey__chunk_head after;
        const uint64_t offset = i * MAREY__CHUNK_BYTES;
        if (!read_at(pool->fd, slot, MAREY__CHUNK_BYTES, offset) ||
            !read_at(pool->fd, &after, sizeof after, offset))
            continue;
        if (same_chunk(slot, &after))
            MAREY_TRY(add_chunk(copy, slot));
    }
    return MAREY_OK;
}

MAREY__ORDER(by_lane_and_sequence, struct marey__pool_chunk, MAREY__UP(lane) MAREY__UP(sequence))

marey_status marey__pool_copy(struct marey__pool_copy *copy, const char *path, uint64_t id,
                              const struct marey__block_reader *log)
{
    struct pool_file pool;
    if (!find_pool(path, id, log, &pool, copy))
        return MAREY_OK;
    struct marey__chunk_head *slot MAREY__FREED = marey__alloc(MAREY__CHUNK_BYTES);
    const marey_status status = slot == NULL ? marey__no_memory() : copy_chunks(copy, &pool, slot);
    close(pool.fd);
    if (status == MAREY_OK && copy->n_chunks != 0)
        qsort(copy->chunks, copy->n_chunks, sizeof *copy->chunks, by_lane_and_sequence);
    return status;
}

void marey__pool_copy_fini(struct marey__pool_copy *copy)
{
    MAREY__FREE_ALL(copy->chunks, copy->words, copy->failure);
    *copy = (struct marey__pool_copy){0};
}
