/*
 * Pass 1 over a log: everything but the words. Blocks of words are only counted and used for the clock, so this runs at
 * the speed of reading and checksumming; memory grows only with names and threads.
 *
 * A log without an END block belongs to a process that still runs, or that died where no other process could finalize
 * the log. Its last words are in the pool. Chunks move from the pool to the log, so the pool is copied first and the
 * log then read to its end: no chunk is missed, and duplicates are recognized by (lane, sequence).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "read/internal.h"

/* Read blocks up to the current end of the file. */
static marey_status take_blocks(struct marey__log_scan *scan)
{
    struct stat st;
    if (scan->log->fd < 0) {
        if (fstat(scan->reader.fd, &st) != 0)
            return marey__fail_errno("look at %s", scan->reader.path);
        scan->reader.size = (uint64_t)st.st_size;
    }
    for (;;) {
        struct marey__block block;
        const uint8_t *packed;
        bool done;
        MAREY_TRY(marey__block_reader_next(&scan->reader, &block, &packed, &done));
        if (done)
            return MAREY_OK;
        scan->n_blocks++;
        if (block.version > MAREY__LOG_VERSION)
            scan->newest = MAREY__MAX(scan->newest, block.version);
        else if (!marey__log_take_block(scan, &block, packed))
            return marey__no_memory();
    }
}

/* ---- the pool of a log that is not finalized ---- */

static marey_status take_pool(struct marey__log_scan *scan)
{
    struct marey__pool_copy *pool = &scan->log->pool;
    if (scan->pool == NULL || scan->pool[0] == '\0')
        return MAREY_OK;
    const uint64_t id = scan->pool_id != NULL ? strtoull(scan->pool_id, NULL, 16) : 0;
    MAREY_TRY(marey__pool_copy(pool, scan->pool, id, &scan->reader));
    return take_blocks(scan);
}

static marey_status count_pool(struct marey__log_scan *scan)
{
    const struct marey__pool_copy *pool = &scan->log->pool;
    for (size_t i = 0; i < pool->n_chunks; i++) {
        const struct marey__pool_chunk *chunk = &pool->chunks[i];
        const bool is_beyond = chunk->lane >= MAREY__MAX_LANES;
        const struct marey__log_lane *lane =
            is_beyond ? NULL : marey__sparse_get(&scan->log->lanes, chunk->lane, sizeof *lane);
        if (!is_beyond && (lane == NULL || !lane->is_known) &&
            !marey__log_name_lane(scan, chunk->lane, chunk->kind, chunk->tid, chunk->thread_name,
                                  strlen(chunk->thread_name)))
            return marey__no_memory();
        const struct marey__piece piece = {
            .at = i,
            .first_tick = chunk->base_tick,
            .lane = chunk->lane,
            .sequence = chunk->sequence,
            .n_words = (uint32_t)chunk->n_words & INT32_MAX,
            .is_in_pool = true,
        };
        MAREY__TRY_MEMORY(marey__log_count_words(scan, &piece, chunk->last_tick, chunk->n_events));
    }
    if (pool->n_lost > scan->loss.n_events)
        scan->loss =
            (struct marey__loss_entry){pool->n_lost, pool->lost_first_tick, pool->lost_last_tick};
    return MAREY_OK;
}

/* The owner of a log holds a lock on it while it lives. */
static bool owner_lives(int fd)
{
    if (flock(fd, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK;
    flock(fd, LOCK_UN);
    return false;
}

/* ---- the whole log ---- */

static void warn_of_damage(const struct marey__log_scan *scan)
{
    const char *path = scan->reader.path;
    const uint64_t size = scan->reader.size, at = scan->reader.offset;
    if (scan->newest != 0)
        marey__warn(
            scan->warnings,
            "%s was written by a later version of marey, in format %u; this version reads formats "
            "up to %d and skipped the rest. Read it with that version or a later one.",
            path, scan->newest, MAREY__LOG_VERSION);
    if (!scan->has_log)
        marey__warn_damage(scan->warnings, "%s is missing the block that describes its process.",
                           path);
    if (scan->n_moments == 0 && scan->has_words)
        marey__warn(scan->warnings, "%s has no clock readings; its times may be wrong.", path);
    if (strcmp(scan->log->info.end, "running") == 0)
        return;
    /* A partial block at the end of an unfinalized log is an interrupted write; its words are still in the pool. */
    if (!scan->has_end && scan->log->pool.is_found)
        return;
    if (scan->reader.torn != NULL && at < size)
        marey__warn_damage(scan->warnings,
                           "%s is damaged at byte %" PRIu64 ": %s; the last %" PRIu64
                           " bytes were not read.",
                           path, at, scan->reader.torn, size - at);
    else if (!scan->has_end && scan->pool != NULL && scan->pool[0] != '\0')
        marey__warn_damage(
            scan->warnings,
            "%s has no end, and the pool with its last events is missing: the log was "
            "truncated, or copied without its pool.",
            path);
}

/* Infer how a process ended whose log does not record it. */
static const char *guess_end(const struct marey__log_scan *scan)
{
    if (owner_lives(scan->reader.fd))
        return "running";
    return scan->log->pool.is_broken ? "write failed" : "unclosed";
}

/* Note why writing the log stopped, and when. */
static void note_failure(struct marey__log_scan *scan)
{
    const struct marey__log_file *log = scan->log;
    const char *why = scan->failure != NULL       ? scan->failure
                      : log->pool.failure != NULL ? log->pool.failure
                                                  : "";
    const uint64_t tick =
        scan->failed_tick != NULL ? strtoull(scan->failed_tick, NULL, 10) : log->pool.broken_tick;
    if (strcmp(log->info.end, "write failed") != 0)
        return;
    marey__buf_puts(&scan->notes, scan->notes.len != 0 ? "\n" : "");
    marey__buf_puts(&scan->notes, "recording stopped");
    if (tick != 0 && scan->n_moments != 0)
        marey__buf_printf(&scan->notes, " %.3f s after the start",
                          ((double)marey__clock_map_ns(&log->clock, tick) -
                           (double)scan->moments[0].monotonic_ns) /
                              1e9);
    marey__buf_printf(&scan->notes, "%s%s; all later events are missing",
                      why[0] != '\0' ? ": " : "", why);
}

static bool is_cut(const struct marey__log_scan *scan)
{
    return !scan->has_end && !scan->log->pool.is_found && strcmp(scan->log->info.end, "running") != 0;
}

/*
 * Saves memory, as there may be thousands of logs. A log with a single lane is visited sequentially and needs no
 * pieces.
 */
static void trim_pieces(struct marey__log_file *log)
{
    const size_t n = log->info.n_lanes > 1 ? log->n_pieces : 0;
    struct marey__piece *const trimmed =
        n != 0 ? marey__realloc(log->pieces, n * sizeof *trimmed) : NULL;
    if (n == 0)
        marey__free(log->pieces);
    if (n == 0 || trimmed != NULL)
        log->pieces = trimmed;
    log->n_pieces = n;
}

static marey_status finish_info(struct marey__log_scan *scan)
{
    struct marey__log_file *log = scan->log;
    struct marey_process *info = &log->info;
    if (scan->n_moments != 0) {
        info->start_unix_ns = scan->moments[0].realtime_ns;
        info->mono_to_unix_ns =
            (int64_t)(scan->moments[0].realtime_ns - scan->moments[0].monotonic_ns);
        const uint64_t end_ns = scan->moments[scan->n_moments - 1].monotonic_ns;
        if (end_ns > scan->moments[0].monotonic_ns)
            info->open_ns = end_ns - scan->moments[0].monotonic_ns;
    }
    MAREY_TRY(marey__clock_map_build(&log->clock, scan->moments, scan->n_moments, scan->tick_hz));
    info->is_cut = is_cut(scan);
    if (scan->has_words) {
        info->first_ns = marey__clock_map_ns(&log->clock, scan->first_tick);
        info->last_ns = marey__clock_map_ns(&log->clock, scan->last_tick);
    }
    if (info->n_events == 0 || info->n_words == 0)
        info->n_events = scan->n_events;
    marey__loss_add(&scan->loss, &scan->beyond);
    if (scan->beyond.n_events != 0)
        marey__buf_printf(&scan->notes,
                          "%s%" PRIu64 " events left out: only the first %d threads are read",
                          scan->notes.len != 0 ? "\n" : "", scan->beyond.n_events, MAREY__MAX_LANES);
    if (scan->loss.n_events != 0) {
        info->lost_events = scan->loss.n_events;
        info->lost_first_ns = marey__clock_map_ns(&log->clock, scan->loss.first_tick);
        info->lost_last_ns = marey__clock_map_ns(&log->clock, scan->loss.last_tick);
    }
    note_failure(scan);
    if (scan->notes.len != 0)
        info->note = marey__log_text(log->texts, scan->notes.data, scan->notes.len);
    MAREY__TRY_MEMORY(info->note != NULL && !scan->notes.failed && !scan->warnings->failed);
    trim_pieces(log);
    log->size = scan->reader.size;
    info->log_bytes = log->size - log->start;
    return MAREY_OK;
}

static marey_status scan_log(struct marey__log_scan *scan)
{
    struct marey__block first;
    if (pread(scan->reader.fd, &first, sizeof first, (off_t)scan->log->start) !=
            (ssize_t)sizeof first ||
        !marey__is_block_magic(first.magic))
        return marey__fail(MAREY_EFORMAT, "%s is not a marey log", scan->reader.path);
    MAREY_TRY(take_blocks(scan));
    if (!scan->has_end)
        MAREY_TRY(take_pool(scan));
    if (scan->n_blocks == 0)
        return marey__fail(MAREY_EFORMAT, "%s is damaged: %s", scan->reader.path,
                           scan->reader.torn != NULL ? scan->reader.torn
                                                     : "it contains no complete block");
    if (!scan->has_log && !scan->has_words && scan->newest != 0)
        return marey__fail(
            MAREY_EFORMAT,
            "%s is in format %u, and this marey reads formats up to %d: read it with "
            "the version that wrote it, or a later one",
            scan->reader.path, scan->newest, MAREY__LOG_VERSION);
    if (!scan->has_end)
        scan->log->info.end = guess_end(scan);
    MAREY_TRY(count_pool(scan));
    warn_of_damage(scan);
    return finish_info(scan);
}

static marey_status open_file(const char *path, int *out, uint64_t *size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC |
                                  O_NONBLOCK); /* O_NONBLOCK: opening a named pipe must not wait */
    if (fd < 0)
        return marey__fail_errno("open %s", path);
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return marey__fail(MAREY_EFORMAT, "%s is not a regular file", path);
    }
    *out = fd;
    *size = (uint64_t)st.st_size;
    return MAREY_OK;
}

/* Pass 1 over `reader`'s bytes; the other members of `log` are set. */
static marey_status scan_bytes(struct marey__log_file *log, int fd, const char *path, uint64_t size,
                               size_t most_kept, struct marey__warnings *warnings)
{
    struct marey__log_scan scan = {.log = log, .warnings = warnings};
    marey__block_reader_init(&scan.reader, fd, path, size);
    if (size <= most_kept) {
        scan.reader.read_ahead = most_kept;
        scan.reader.window = marey__alloc_large(size);
        scan.reader.window_cap = scan.reader.window != NULL ? size : 0;
    }
    scan.reader.offset = log->start;
    scan.reader.warnings = warnings;
    log->info.log_path = marey__log_text(log->texts, path, strlen(path));
    const marey_status status = log->info.log_path == NULL ? marey__no_memory() : scan_log(&scan);
    if (size <= most_kept && scan.has_end && scan.reader.window_at == 0 &&
        scan.reader.window_len == log->size) {
        log->bytes = scan.reader.window;
        scan.reader.window = NULL;
    }
    marey__block_reader_fini(&scan.reader);
    marey__sparse_fini(&scan.next_sequence);
    marey__buf_fini(&scan.notes);
    marey__buf_fini(&scan.raw);
    marey__arena_fini(&scan.texts);
    marey__free(scan.moments);
    if (status != MAREY_OK)
        marey__log_file_fini(log);
    return status;
}

static void init(struct marey__log_file *log, struct marey__log_texts *texts, int fd, uint64_t start)
{
    *log = (struct marey__log_file){.fd = fd, .start = start, .texts = texts};
    marey__log_info_init(&log->info);
}

size_t marey__log_file_most_kept(size_t n)
{
    /* The logs of a job with many ranks are read again from disk, to limit memory per rank. */
    enum { MOST_LOGS = 64, MOST_BYTES = 32 << 20 };
    return n == 0 || n > MOST_LOGS ? 0 : MOST_BYTES / n;
}

marey_status marey__log_file_open(struct marey__log_file *log, const char *path,
                                  struct marey__log_texts *texts, size_t most_kept,
                                  struct marey__warnings *warnings)
{
    init(log, texts, -1, 0);
    int fd = -1;
    uint64_t size = 0;
    MAREY_TRY(open_file(path, &fd, &size));
    const marey_status status = scan_bytes(log, fd, path, size, most_kept, warnings);
    close(fd);
    return status;
}

marey_status marey__log_file_open_part(struct marey__log_file *log, struct marey__log_texts *texts,
                                       const char *name, int fd, const struct marey__log_part *part,
                                       struct marey__warnings *warnings)
{
    init(log, texts, fd, part->at);
    return scan_bytes(log, fd, name, part->at + part->size, 0, warnings);
}

marey_status marey__log_file_acquire(const struct marey__log_file *log,
                                     struct marey__block_reader *reader)
{
    const bool is_kept = log->bytes != NULL;
    const int fd = log->fd >= 0 || is_kept
                       ? log->fd
                       : open(log->info.log_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && !is_kept)
        return marey__fail_errno("open %s", log->info.log_path);
    marey__block_reader_init(reader, fd, log->info.log_path, log->size);
    reader->offset = log->start;
    if (is_kept) {
        reader->window = log->bytes;
        reader->window_len = (size_t)log->size;
        reader->is_lent = true;
    }
    return MAREY_OK;
}

void marey__log_file_release(const struct marey__log_file *log, struct marey__block_reader *reader)
{
    if (log->fd < 0 && reader->fd >= 0)
        close(reader->fd);
    marey__block_reader_fini(reader);
}

void marey__log_file_fini(struct marey__log_file *log)
{
    marey__free(log->bytes);
    marey__site_table_release(log->sites);
    marey__sparse_fini(&log->lanes);
    marey__clock_map_fini(&log->clock);
    marey__pool_copy_fini(&log->pool);
    marey__free(log->pieces);
    for (size_t i = 0; i < MAREY__N_PAYLOADS; i++)
        marey__free(log->payloads[i].offsets);
}
