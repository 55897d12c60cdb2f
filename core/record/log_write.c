/*
 * The log file: each block is appended by one write under one lock. A failed write is truncated: no torn blocks.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "record/internal.h"

enum { OPEN_FLAGS = O_RDWR | O_APPEND };

static bool create_file(const struct marey__log *log, struct marey__held_file *file)
{
    if (!marey__held_set(file,
                         marey__open_at(AT_FDCWD, log->path, OPEN_FLAGS | O_CREAT | O_EXCL, 0644)))
        return false;
    flock(file->fd, LOCK_EX | LOCK_NB); /* held while we live; the next process to get it may finalize */
    return true;
}

marey_status marey__log_create(struct marey__log *log, const char *dir, const char *name)
{
    *log = (struct marey__log){.file.fd = -1};
    pthread_mutex_init(&log->lock, NULL);
    if (snprintf(log->path, sizeof log->path, "%s/%s", dir, name) >= (int)sizeof log->path)
        return marey__fail(MAREY_EINVAL, "the path of the recording %s is too long", dir);
    if (!create_file(log, &log->file))
        return marey__fail_errno("create log %s", log->path);
    log->is_created = true;
    return MAREY_OK;
}

void marey__log_adopt(struct marey__log *log, int fd, uint64_t size)
{
    *log = (struct marey__log){.size = size};
    marey__held_set(&log->file, fd);
    pthread_mutex_init(&log->lock, NULL);
}

void marey__log_close(struct marey__log *log)
{
    marey__held_close(&log->file);
    marey__buf_fini(&log->sites);
    marey__free(log->lane_headers_written);
    log->lane_headers_written = NULL;
    log->n_lane_headers = 0;
}

bool marey__log_lane_is_new(struct marey__log *log, uint32_t lane)
{
    enum { MOST = 1 << 20 };
    const size_t before = log->n_lane_headers;
    if (lane >= MOST || !marey__grow(&log->lane_headers_written, &log->n_lane_headers,
                                     (size_t)lane + 1, sizeof *log->lane_headers_written))
        return true;
    memset(log->lane_headers_written + before, 0, log->n_lane_headers - before);
    const bool is_new = !log->lane_headers_written[lane];
    log->lane_headers_written[lane] = true;
    return is_new;
}

bool marey__log_is_broken(const struct marey__log *log)
{
    return __atomic_load_n(&log->is_broken, __ATOMIC_ACQUIRE);
}

uint64_t marey__log_size(struct marey__log *log)
{
    MAREY__HOLD(&log->lock);
    return log->size;
}

/* Writes the parts in order, with one system call unless the kernel splits it. */
static bool write_parts(int fd, struct iovec *parts, int n)
{
    while (n > 0) {
        ssize_t done = writev(fd, parts, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        while (n > 0 && (size_t)done >= parts->iov_len) {
            done -= (ssize_t)parts->iov_len;
            parts++;
            n--;
        }
        if (n > 0) {
            parts->iov_base = (char *)parts->iov_base + done;
            parts->iov_len -= (size_t)done;
        }
    }
    return true;
}

/* ---- the file may be deleted or its descriptor closed ---- */

static bool copy_whole_blocks(const struct marey__log *log, int to)
{
    enum { PIECE = 1 << 16 };
    char *const piece = marey__alloc(PIECE);
    uint64_t at = 0;
    while (piece != NULL && at < log->size) {
        const ssize_t n =
            pread(log->file.fd, piece, (size_t)MAREY__MIN(log->size - at, PIECE), (off_t)at);
        if (n <= 0 || !marey__write_all(to, piece, (size_t)n))
            break;
        at += (uint64_t)n;
    }
    marey__free(piece);
    return at == log->size;
}

/* The recording was deleted. We still have the file open, so write it again under its name. */
static marey_status create_again(struct marey__log *log)
{
    char folder[PATH_MAX];
    struct marey__held_file anew = {.fd = -1};
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(log->path, '/') - log->path), log->path);
    MAREY_TRY(marey__recording_create_own(folder));
    if (!create_file(log, &anew))
        return marey__fail_errno("create log %s once more, after it was deleted", log->path);
    if (!copy_whole_blocks(log, anew.fd)) {
        const marey_status st =
            marey__fail_errno("write log %s once more, after it was deleted", log->path);
        unlink(log->path);
        marey__held_close(&anew);
        return st;
    }
    marey__held_close(&log->file);
    log->file = anew;
    if (log == &marey__record.log && marey__record.pool.head != NULL)
        marey__record.pool.head->log_inode = (uint64_t)anew.inode;
    return MAREY_OK;
}

/* Checks that the descriptor is the log's: the program may have closed it and reused the number. */
static marey_status hold_file(struct marey__log *log, bool *is_created_again)
{
    struct stat st;
    if (log->file.fd < 0)
        return marey__fail(MAREY_ESTATE, "log %s is closed", log->path);
    if (!marey__held_is_ours(&log->file, &st)) {
        if (!marey__held_reopen(&log->file, log->path, OPEN_FLAGS) ||
            !marey__held_is_ours(&log->file, &st) || (uint64_t)st.st_size != log->size)
            return marey__fail(
                MAREY_EIO,
                "the program closed the descriptor of log %s, and the file cannot be "
                "opened again as it was",
                log->path);
        flock(log->file.fd, LOCK_EX | LOCK_NB);
    }
    *is_created_again = log->is_created && st.st_nlink == 0;
    return *is_created_again ? create_again(log) : MAREY_OK;
}

static marey_status write_failure(const struct marey__log *log)
{
    const char *advice = errno == ENOSPC || errno == EDQUOT
                             ? "; make room, or record to another file system"
                         : errno == EFBIG ? "; raise the limit on the size of files (ulimit -f)"
                                          : "";
    char reason[128];
    return marey__fail(MAREY_EIO, "cannot write log %s: %s%s", log->path,
                       strerror_r(errno, reason, sizeof reason), advice);
}

/* Caller holds the lock. */
static marey_status write_block(struct marey__log *log, struct iovec *parts, int n,
                                bool *is_created_again)
{
    MAREY_TRY(hold_file(log, is_created_again));
    sigset_t before;
    marey__size_limit_begin(&before);
    const bool is_written = write_parts(log->file.fd, parts, n);
    marey__size_limit_end(&before);
    if (is_written)
        return MAREY_OK;
    const marey_status st = write_failure(log);
    if (ftruncate(log->file.fd, (off_t)log->size) != 0)
        errno = 0; /* a reader detects the torn block by its checksum */
    return st;
}

static void report_created_again(struct marey__log *log)
{
    char sentence[PATH_MAX + 200];
    struct marey__buf texts MAREY__FINALLY(marey__buf_fini) = {0};
    snprintf(sentence, sizeof sentence,
             "log %s was deleted while the program runs; it is written again. If the program is "
             "killed, its last events may be missing",
             log->path);
    marey__say_always("%s", sentence);
    marey__texts_put(&texts, MAREY__KEY_NOTE, sentence);
    (void)marey__log_append_texts(log, MAREY__BLOCK_LOG,
                                  &texts); /* already reported; the next block fails as well */
}

marey_status marey__log_append(struct marey__log *log, struct marey__block *block,
                               const void *bytes, size_t len)
{
    static const char zeros[8];
    block->magic = MAREY__BLOCK_MAGIC;
    block->version = MAREY__LOG_VERSION;
    block->packed_len = (uint32_t)len;
    if (block->raw_len == 0)
        block->raw_len = (uint32_t)len;
    block->crc = 0;
    block->crc = marey__crc32c(marey__crc32c(0, block, sizeof *block), bytes, len);
    const size_t pad = -len & 7;
    struct iovec parts[] = {
        {block, sizeof *block}, {(void *)(uintptr_t)bytes, len}, {(void *)(uintptr_t)zeros, pad}};
    bool is_created_again = false;

    pthread_mutex_lock(&log->lock);
    const marey_status st = log->is_broken ? marey__fail(MAREY_EIO, "%s", log->failure)
                                           : write_block(log, parts, 3, &is_created_again);
    if (st == MAREY_OK) {
        if (block->type == MAREY__BLOCK_WORDS) {
            log->last_words_at = log->size;
            log->last_words =
                (struct marey__loss_entry){block->n_events, block->first_tick, block->last_tick};
        }
        log->size += sizeof *block + len + pad;
    } else if (!log->is_broken && st != MAREY_ESTATE) {
        snprintf(log->failure, sizeof log->failure, "%s", marey_last_error());
        __atomic_store_n(&log->is_broken, true,
                         __ATOMIC_RELEASE); /* pairs with the acquire in marey__log_is_broken() */
    }
    pthread_mutex_unlock(&log->lock);
    if (is_created_again && st == MAREY_OK)
        report_created_again(log);
    return st;
}

marey_status marey__log_append_texts(struct marey__log *log, enum marey__block_type type,
                                     const struct marey__buf *texts)
{
    MAREY__TRY_MEMORY(!texts->failed);
    struct marey__block block = {.type = (uint8_t)type};
    return marey__log_append(log, &block, texts->data, texts->len);
}

marey_status marey__log_append_moment(struct marey__log *log, bool is_tsc)
{
    struct marey__moment now;
    marey__clock_moment(is_tsc, &now);
    const struct marey__clock_entry entry = {now.tick, now.monotonic_ns, now.realtime_ns,
                                             now.width_ns};
    struct marey__block block = {
        .type = MAREY__BLOCK_CLOCK, .first_tick = now.tick, .last_tick = now.tick};
    return marey__log_append(log, &block, &entry, sizeof entry);
}

static marey_status append_lane(struct marey__log *log, uint32_t lane, uint32_t kind, int64_t tid,
                                const char *name, size_t len)
{
    struct {
        struct marey__lane_entry entry;
        char name[MAREY__THREAD_NAME_MAX];
    } bytes = {.entry = {.tid = tid, .kind = kind, .name_len = (uint32_t)len}};
    memcpy(bytes.name, name, len);
    struct marey__block block = {.type = MAREY__BLOCK_LANE, .lane = lane};
    return marey__log_append(log, &block, &bytes, sizeof bytes.entry + len);
}

/* A log being finalized belongs to another process, in which the threads were named. */
marey_status marey__log_append_lane(struct marey__log *log, const struct marey__chunk_head *chunk)
{
    char name[MAREY__THREAD_NAME_MAX];
    size_t len = 0;
    if (log == &marey__record.log && chunk->kind == MAREY_LANE_THREAD)
        len = marey__thread_name(chunk->tid, name);
    if (len == 0) {
        len = strnlen(chunk->thread_name, sizeof chunk->thread_name);
        memcpy(name, chunk->thread_name, len);
    }
    return append_lane(log, chunk->lane, chunk->kind, chunk->tid, name, len);
}

marey_status marey__log_append_thread(struct marey__log *log, uint32_t lane, int64_t tid)
{
    char name[MAREY__THREAD_NAME_MAX];
    return append_lane(log, lane, MAREY_LANE_THREAD, tid, name, marey__thread_name(tid, name));
}

marey_status marey__log_append_loss(struct marey__log *log, const struct marey__pool_head *pool)
{
    const struct marey__loss_entry entry = {
        .n_events = __atomic_load_n(&pool->n_lost, __ATOMIC_RELAXED),
        .first_tick = __atomic_load_n(&pool->lost_first_tick, __ATOMIC_RELAXED),
        .last_tick = __atomic_load_n(&pool->lost_last_tick, __ATOMIC_RELAXED)};
    if (entry.n_events == 0)
        return MAREY_OK;
    struct marey__block block = {.type = MAREY__BLOCK_LOSS};
    return marey__log_append(log, &block, &entry, sizeof entry);
}

static void texts_put_n(struct marey__buf *texts, const char *key, const char *value, size_t len)
{
    const uint32_t lens[2] = {(uint32_t)strlen(key), (uint32_t)len};
    marey__buf_put(texts, lens, sizeof lens);
    marey__buf_puts(texts, key);
    marey__buf_put(texts, value, len);
}

void marey__texts_put_end(struct marey__buf *texts, const char *how,
                          const struct marey__pool_head *pool)
{
    const bool is_broken = __atomic_load_n(&pool->is_broken, __ATOMIC_ACQUIRE) != 0;
    marey__texts_put(texts, MAREY__KEY_END, is_broken ? "write failed" : how);
    if (!is_broken || pool->broken_tick == 0)
        return;
    texts_put_n(texts, MAREY__KEY_FAILURE, pool->failure,
                strnlen(pool->failure, sizeof pool->failure));
    marey__texts_printf(texts, MAREY__KEY_FAILED_TICK, "%" PRIu64, pool->broken_tick);
}

void marey__log_try_again(struct marey__log *log)
{
    __atomic_store_n(&log->is_broken, false, __ATOMIC_RELEASE);
}

bool marey__log_drop_last_words(struct marey__log *log, struct marey__loss_entry *lost)
{
    bool is_created_again = false;
    MAREY__HOLD(&log->lock);
    const bool done = log->last_words_at != 0 && hold_file(log, &is_created_again) == MAREY_OK &&
                      !is_created_again && ftruncate(log->file.fd, (off_t)log->last_words_at) == 0;
    if (done) {
        *lost = log->last_words;
        log->size = log->last_words_at;
        log->last_words_at = 0;
    }
    return done;
}

marey_status marey__log_append_chunk(struct marey__log *log, marey__packer *packer,
                                     const struct marey__chunk_head *chunk, size_t *n_events)
{
    const struct marey__extent extent = marey__chunk_extent(chunk);
    *n_events = extent.n_events;
    if (extent.n_words == 0)
        return MAREY_OK;
    /* Not only before the thread's first chunk: a flight recorder may have dropped that. */
    if (marey__log_lane_is_new(log, chunk->lane))
        MAREY_TRY(marey__log_append_lane(log, chunk));
    struct marey__block block = {.type = MAREY__BLOCK_WORDS,
                                 .lane = chunk->lane,
                                 .sequence = chunk->sequence,
                                 .first_tick = chunk->base_tick,
                                 .last_tick = chunk->base_tick + extent.last_ticks,
                                 .n_events = (uint32_t)extent.n_events};
    const void *bytes =
        marey__pack_words(packer, (const uint64_t *)(chunk + 1), extent.n_words, &block);
    return marey__log_append(log, &block, bytes, block.packed_len);
}

void marey__texts_put(struct marey__buf *texts, const char *key, const char *value)
{
    texts_put_n(texts, key, value, strlen(value));
}

void marey__texts_printf(struct marey__buf *texts, const char *key, const char *fmt, ...)
{
    char value[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(value, sizeof value, fmt, args);
    va_end(args);
    marey__texts_put(texts, key, value);
}

void marey__site_put(struct marey__buf *out, const struct marey__site *site)
{
    static const char zeros[4];
    const struct marey__site_entry entry = {.id = site->id,
                                            .line = site->line,
                                            .color = site->color,
                                            .name_len = site->name_len,
                                            .category_len = (uint32_t)strlen(site->category),
                                            .domain_len = (uint32_t)strlen(site->domain),
                                            .file_len = (uint32_t)strlen(site->file)};
    marey__buf_put(out, &entry, sizeof entry);
    marey__buf_put(out, site->name, entry.name_len);
    marey__buf_put(out, site->category, entry.category_len);
    marey__buf_put(out, site->domain, entry.domain_len);
    marey__buf_put(out, site->file, entry.file_len);
    marey__buf_put(out, zeros, -out->len & 3);
}
