/*
 * Pass 1 over a log: everything but the words. Blocks of words are only counted and put on the clock, so this runs at
 * the speed of reading and check-summing; what is kept grows with names and threads.
 *
 * A log without an END block belongs to a process that still runs, or died where nobody could seal it. Its latest
 * words are in the pool. Chunks go from the pool to the log, so the pool is copied first and the log read to its end
 * after that: nothing falls between the two, and what comes twice is known by its (lane, sequence).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "read/read_internal.h"

struct scan {
    struct kymo__log_file *log;
    struct kymo__warnings *warnings;
    struct kymo__block_reader reader;
    struct kymo__sparse next_sequence; /* uint64_t by lane */
    struct kymo__clock_entry *moments;
    size_t n_moments, moments_cap;
    struct kymo__buf notes, raw;
    const char *pool; /* NULL: not said */
    uint64_t tick_hz;
    uint64_t n_blocks, first_tick, last_tick;
    bool has_log, has_words, has_end, has_newer;
    struct kymo__loss_entry loss;
};

static kymo_status no_memory(const struct scan *scan)
{
    return kymo__fail(KYMO_ENOMEM, "no memory to read %s", scan->reader.path);
}

/* ---- key/value texts ---- */

enum field_type { FIELD_TEXT, FIELD_I64, FIELD_I32, FIELD_U64 };

static const struct field {
    const char *key;
    enum field_type type;
    size_t offset; /* in struct kymo_process */
} fields[] = {
    {KYMO__KEY_PID, FIELD_I64, offsetof(struct kymo_process, pid)},
    {KYMO__KEY_PPID, FIELD_I64, offsetof(struct kymo_process, ppid)},
    {KYMO__KEY_RANK, FIELD_I32, offsetof(struct kymo_process, rank)},
    {KYMO__KEY_WORLD, FIELD_I32, offsetof(struct kymo_process, world_size)},
    {KYMO__KEY_LOCAL_RANK, FIELD_I32, offsetof(struct kymo_process, local_rank)},
    {KYMO__KEY_HOST, FIELD_TEXT, offsetof(struct kymo_process, host)},
    {KYMO__KEY_COMMAND, FIELD_TEXT, offsetof(struct kymo_process, command)},
    {KYMO__KEY_RUN_ID, FIELD_TEXT, offsetof(struct kymo_process, run_id)},
    {KYMO__KEY_CLOCK, FIELD_TEXT, offsetof(struct kymo_process, clock)},
    {KYMO__KEY_END, FIELD_TEXT, offsetof(struct kymo_process, end)},
    {KYMO__KEY_FLUSH_CPU, FIELD_U64, offsetof(struct kymo_process, flush_cpu_ns)},
};

static int64_t to_number(const char *text, size_t len)
{
    char digits[32] = {0};
    memcpy(digits, text, KYMO__MIN(len, sizeof digits - 1));
    return strtoll(digits, NULL, 10);
}

static bool set_field(struct kymo__log_file *log, const struct field *field, const char *value, size_t len)
{
    char *at = (char *)&log->info + field->offset;
    const int64_t number = field->type == FIELD_TEXT ? 0 : to_number(value, len);
    switch (field->type) {
    case FIELD_TEXT: {
        const char *kept = kymo__arena_text(&log->texts, value, len);
        if (kept == NULL)
            return false;
        memcpy(at, &kept, sizeof kept);
        break;
    }
    case FIELD_I32:
        *(int32_t *)at = number < INT32_MIN || number > INT32_MAX ? -1 : (int32_t)number;
        break;
    case FIELD_U64:
        *(uint64_t *)at = number < 0 ? 0 : (uint64_t)number;
        break;
    case FIELD_I64:
        *(int64_t *)at = number;
        break;
    }
    return true;
}

static bool key_is(const char *key, size_t len, const char *name)
{
    return strlen(name) == len && memcmp(key, name, len) == 0;
}

static bool take_pair(struct scan *scan, const char *key, size_t key_len, const char *value, size_t len)
{
    for (size_t f = 0; f < KYMO__COUNT_OF(fields); f++)
        if (key_is(key, key_len, fields[f].key))
            return set_field(scan->log, &fields[f], value, len);
    if (key_is(key, key_len, KYMO__KEY_TICK_HZ))
        scan->tick_hz = (uint64_t)KYMO__MAX(to_number(value, len), 0);
    else if (key_is(key, key_len, KYMO__KEY_EVENT_COST))
        scan->log->info.event_cost_ns = (double)KYMO__MAX(to_number(value, len), 0) / 1000;
    else if (key_is(key, key_len, KYMO__KEY_POOL))
        return (scan->pool = kymo__arena_text(&scan->log->texts, value, len)) != NULL;
    else if (key_is(key, key_len, KYMO__KEY_NOTE)) {
        if (scan->notes.len != 0)
            kymo__buf_puts(&scan->notes, "\n");
        kymo__buf_put(&scan->notes, value, len);
        return !scan->notes.failed;
    }
    return true; /* a key of a later version */
}

static bool take_pairs(struct scan *scan, const char *at, size_t len)
{
    while (len >= 8) {
        uint32_t lengths[2];
        memcpy(lengths, at, sizeof lengths);
        at += 8;
        len -= 8;
        if (lengths[0] > len || lengths[1] > len - lengths[0])
            return true;
        if (!take_pair(scan, at, lengths[0], at + lengths[0], lengths[1]))
            return false;
        at += lengths[0] + lengths[1];
        len -= lengths[0] + lengths[1];
    }
    return true;
}

/* ---- sites and lanes ---- */

static bool take_site(struct scan *scan, const struct kymo__site_entry *entry, const char *texts)
{
    if (entry->id == 0 || entry->id >= KYMO__MAX_SITES)
        return true;
    struct kymo__log_file *log = scan->log;
    struct kymo_site_info *site = kymo__sparse_make(&log->sites, entry->id, sizeof *site);
    if (site == NULL)
        return false;
    if (site->name != NULL)
        return true; /* a site is said again after a fork; the first saying holds */
    const uint32_t lengths[4] = {entry->name_len, entry->category_len, entry->domain_len, entry->file_len};
    const char *kept[4];
    for (size_t t = 0; t < 4; t++) {
        kept[t] = lengths[t] == 0 ? "" : kymo__arena_text(&log->texts, texts, lengths[t]);
        if (kept[t] == NULL)
            return false;
        texts += lengths[t];
    }
    *site = (struct kymo_site_info){.name = kept[0], .category = kept[1], .domain = kept[2], .file = kept[3],
                                    .name_len = entry->name_len, .line = entry->line, .color = entry->color};
    log->info.n_sites = KYMO__MAX(log->info.n_sites, entry->id);
    return true;
}

static bool take_sites(struct scan *scan, const char *at, size_t len)
{
    while (len >= sizeof(struct kymo__site_entry)) {
        struct kymo__site_entry entry;
        memcpy(&entry, at, sizeof entry);
        at += sizeof entry;
        len -= sizeof entry;
        const uint64_t texts = (uint64_t)entry.name_len + entry.category_len + entry.domain_len + entry.file_len;
        if (texts > len)
            return true;
        if (!take_site(scan, &entry, at))
            return false;
        const size_t step = (size_t)KYMO__MIN((texts + 3) & ~UINT64_C(3), (uint64_t)len);
        at += step;
        len -= step;
    }
    return true;
}

/* The lane, made when new; NULL without memory. `number` is below KYMO__MAX_LANES. */
static struct kymo__log_lane *make_lane(struct scan *scan, uint32_t number)
{
    struct kymo__log_file *log = scan->log;
    struct kymo__log_lane *lane = kymo__sparse_make(&log->lanes, number, sizeof *lane);
    if (lane != NULL && !lane->is_known) {
        *lane = (struct kymo__log_lane){.info = {.lane = number, .name = ""}, .is_known = true};
        log->info.n_lanes = KYMO__MAX(log->info.n_lanes, number + 1);
    }
    return lane;
}

static bool name_lane(struct scan *scan, uint32_t number, int64_t tid, const char *name, size_t len)
{
    struct kymo__log_lane *lane = make_lane(scan, number);
    if (lane == NULL)
        return false;
    lane->info.tid = tid;
    if (len != 0)
        lane->info.name = kymo__arena_text(&scan->log->texts, name, len);
    return lane->info.name != NULL;
}

static bool take_lane(struct scan *scan, uint32_t number, const char *at, size_t len)
{
    struct kymo__lane_entry entry;
    if (number >= KYMO__MAX_LANES || len < sizeof entry)
        return true;
    memcpy(&entry, at, sizeof entry);
    const size_t name_len = KYMO__MIN((size_t)entry.name_len, len - sizeof entry);
    return name_lane(scan, number, entry.tid, at + sizeof entry, name_len);
}

/* ---- words, clocks, loss ---- */

/* Count the words of (lane, sequence) unless they came before. */
static bool count_words(struct scan *scan, uint32_t lane, uint32_t sequence, uint64_t n_words,
                        uint64_t first_tick, uint64_t last_tick)
{
    if (lane >= KYMO__MAX_LANES || n_words == 0)
        return true;
    uint64_t *next = kymo__sparse_make(&scan->next_sequence, lane, sizeof *next);
    if (next == NULL || make_lane(scan, lane) == NULL)
        return false;
    int gap;
    if (!kymo__sequence_is_new(sequence, next, &gap))
        return true;
    scan->log->info.n_events += n_words;
    last_tick = KYMO__MAX(first_tick, last_tick);
    scan->first_tick = scan->has_words ? KYMO__MIN(scan->first_tick, first_tick) : first_tick;
    scan->last_tick = scan->has_words ? KYMO__MAX(scan->last_tick, last_tick) : last_tick;
    scan->has_words = true;
    return true;
}

static bool take_moments(struct scan *scan, const char *at, size_t len)
{
    const size_t n = len / sizeof(struct kymo__clock_entry);
    if (n == 0)
        return true;
    if (!kymo__grow(&scan->moments, &scan->moments_cap, scan->n_moments + n, sizeof *scan->moments))
        return false;
    memcpy(scan->moments + scan->n_moments, at, n * sizeof *scan->moments);
    scan->n_moments += n;
    return true;
}

static bool take_loss(struct scan *scan, const char *at, size_t len)
{
    if (len >= sizeof scan->loss)
        memcpy(&scan->loss, at, sizeof scan->loss);
    return true;
}

/* ---- blocks ---- */

/* The payload of a block that holds no words, unpacked into scan->raw when it is packed. False without memory. */
static bool unpack_payload(struct scan *scan, const struct kymo__block *block, const uint8_t *packed,
                           const char **payload, size_t *len)
{
    *payload = (const char *)packed;
    *len = block->packed_len;
    if ((block->flags & KYMO__FLAG_ZSTD) == 0)
        return true;
    *len = 0;
    /* A frame can claim thousands of times its size; names and texts never shrink that far. */
    if (block->raw_len == 0 || block->raw_len > 4096 + 256 * (uint64_t)block->packed_len)
        return true;
    scan->raw.len = 0;
    char *raw = kymo__buf_extend(&scan->raw, block->raw_len);
    if (raw == NULL)
        return false;
    const size_t n = ZSTD_decompress(raw, block->raw_len, packed, block->packed_len);
    *payload = raw;
    *len = ZSTD_isError(n) ? 0 : n;
    return true;
}

static bool take_block(struct scan *scan, const struct kymo__block *block, const uint8_t *packed)
{
    const char *at;
    size_t len;
    if (block->type == KYMO__BLOCK_WORDS)
        return block->raw_len > KYMO__MAX_WORDS_BYTES ||
               count_words(scan, block->lane, block->sequence, block->raw_len / 8, block->first_tick,
                           block->last_tick);
    if (!unpack_payload(scan, block, packed, &at, &len))
        return false;
    switch (block->type) {
    case KYMO__BLOCK_LOG:
        scan->has_log = true;
        return take_pairs(scan, at, len);
    case KYMO__BLOCK_END:
        scan->has_end = true;
        return take_pairs(scan, at, len);
    case KYMO__BLOCK_SITES:
        return take_sites(scan, at, len);
    case KYMO__BLOCK_LANE:
        return take_lane(scan, block->lane, at, len);
    case KYMO__BLOCK_CLOCK:
        return take_moments(scan, at, len);
    case KYMO__BLOCK_LOSS:
        return take_loss(scan, at, len);
    default:
        return true; /* a type of a later version */
    }
}

/* Read blocks up to the end of the file as it is now. */
static kymo_status take_blocks(struct scan *scan)
{
    struct stat st;
    if (fstat(scan->reader.fd, &st) != 0)
        return kymo__fail_errno("look at %s", scan->reader.path);
    scan->reader.size = (uint64_t)st.st_size;
    for (;;) {
        struct kymo__block block;
        const uint8_t *packed;
        bool done;
        KYMO_TRY(kymo__block_reader_next(&scan->reader, &block, &packed, &done));
        if (done)
            return KYMO_OK;
        scan->n_blocks++;
        if (block.version > KYMO__LOG_VERSION)
            scan->has_newer = true;
        else if (!take_block(scan, &block, packed))
            return no_memory(scan);
    }
}

/* ---- the pool of a log that nobody has sealed ---- */

static kymo_status take_pool(struct scan *scan)
{
    struct kymo__pool_copy *pool = &scan->log->pool;
    if (scan->pool == NULL || scan->pool[0] == '\0')
        return KYMO_OK;
    KYMO_TRY(kymo__pool_copy(pool, scan->pool, scan->reader.path));
    return take_blocks(scan);
}

static kymo_status count_pool(struct scan *scan)
{
    const struct kymo__pool_copy *pool = &scan->log->pool;
    for (size_t i = 0; i < pool->n_chunks; i++) {
        const struct kymo__pool_chunk *chunk = &pool->chunks[i];
        const struct kymo__log_lane *lane = kymo__sparse_get(&scan->log->lanes, chunk->lane, sizeof *lane);
        if ((lane == NULL || !lane->is_known) &&
            !name_lane(scan, chunk->lane, chunk->tid, chunk->thread_name, strlen(chunk->thread_name)))
            return no_memory(scan);
        if (!count_words(scan, chunk->lane, chunk->sequence, chunk->n_words, chunk->base_tick, chunk->last_tick))
            return no_memory(scan);
    }
    if (pool->n_lost > scan->loss.n_events)
        scan->loss = (struct kymo__loss_entry){pool->n_lost, pool->lost_first_tick, pool->lost_last_tick};
    return KYMO_OK;
}

/* The owner of a log holds a lock on it for as long as it lives. */
static bool owner_lives(int fd)
{
    if (flock(fd, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK;
    flock(fd, LOCK_UN);
    return false;
}

/* ---- the whole ---- */

static void tell_damage(const struct scan *scan)
{
    const char *path = scan->reader.path;
    const uint64_t size = scan->reader.size, at = scan->reader.offset;
    if (scan->has_newer)
        kymo__warn(scan->warnings, "%s was written by a later version of kymo; part of it was skipped.", path);
    if (!scan->has_log)
        kymo__warn(scan->warnings, "%s has lost the block that describes its process.", path);
    if (scan->n_moments == 0 && scan->has_words)
        kymo__warn(scan->warnings, "%s has no clock readings; its times may be wrong.", path);
    if (scan->reader.torn == NULL || at >= size || strcmp(scan->log->info.end, "running") == 0)
        return;
    /* Half a block at the end of an unsealed log is a write that was cut short; its words are still in the pool. */
    if (!scan->has_end && scan->log->pool.n_chunks != 0)
        return;
    kymo__warn(scan->warnings, "%s is damaged at byte %" PRIu64 ": %s; the last %" PRIu64
               " bytes were not read.", path, at, scan->reader.torn, size - at);
}

static kymo_status finish_info(struct scan *scan)
{
    struct kymo__log_file *log = scan->log;
    struct kymo_process *info = &log->info;
    if (scan->n_moments != 0) {
        info->start_unix_ns = scan->moments[0].realtime_ns;
        info->mono_to_unix_ns = (int64_t)(scan->moments[0].realtime_ns - scan->moments[0].monotonic_ns);
    }
    KYMO_TRY(kymo__clock_map_build(&log->clock, scan->moments, scan->n_moments, scan->tick_hz));
    if (scan->has_words) {
        info->first_ns = kymo__clock_map_ns(&log->clock, scan->first_tick);
        info->last_ns = kymo__clock_map_ns(&log->clock, scan->last_tick);
    }
    if (scan->loss.n_events != 0) {
        info->lost_events = scan->loss.n_events;
        info->lost_first_ns = kymo__clock_map_ns(&log->clock, scan->loss.first_tick);
        info->lost_last_ns = kymo__clock_map_ns(&log->clock, scan->loss.last_tick);
    }
    if (scan->notes.len != 0)
        info->note = kymo__arena_text(&log->texts, scan->notes.data, scan->notes.len);
    if (info->note == NULL || scan->warnings->failed)
        return no_memory(scan);
    info->log_bytes = log->size = scan->reader.size;
    return KYMO_OK;
}

static kymo_status scan_log(struct scan *scan)
{
    struct kymo__block first;
    if (pread(scan->reader.fd, &first, sizeof first, 0) != (ssize_t)sizeof first ||
        first.magic != KYMO__BLOCK_MAGIC)
        return kymo__fail(KYMO_EFORMAT, "%s is not a log of kymo", scan->reader.path);
    KYMO_TRY(take_blocks(scan));
    if (!scan->has_end)
        KYMO_TRY(take_pool(scan));
    if (scan->n_blocks == 0)
        return kymo__fail(KYMO_EFORMAT, "%s is damaged: %s", scan->reader.path,
                          scan->reader.torn != NULL ? scan->reader.torn : "no whole block is in it");
    if (!scan->has_end)
        scan->log->info.end = owner_lives(scan->reader.fd) ? "running" : "killed";
    KYMO_TRY(count_pool(scan));
    tell_damage(scan);
    return finish_info(scan);
}

static kymo_status open_file(const char *path, int *out, uint64_t *size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* or a named pipe would keep us for ever */
    if (fd < 0)
        return kymo__fail_errno("open %s", path);
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return kymo__fail(KYMO_EFORMAT, "%s is not a regular file", path);
    }
    *out = fd;
    *size = (uint64_t)st.st_size;
    return KYMO_OK;
}

kymo_status kymo__log_file_open(struct kymo__log_file *log, const char *path, struct kymo__warnings *warnings)
{
    *log = (struct kymo__log_file){
        .info = {.rank = -1, .world_size = -1, .local_rank = -1, .host = "", .command = "", .run_id = "",
                 .end = "", .clock = "", .note = ""},
    };
    int fd = -1;
    uint64_t size = 0;
    KYMO_TRY(open_file(path, &fd, &size));
    struct scan scan = {.log = log, .warnings = warnings};
    kymo__block_reader_init(&scan.reader, fd, path, size);
    scan.reader.warnings = warnings;
    log->info.log_path = kymo__arena_text(&log->texts, path, strlen(path));
    const kymo_status status = log->info.log_path == NULL ? no_memory(&scan) : scan_log(&scan);
    kymo__block_reader_fini(&scan.reader);
    kymo__sparse_fini(&scan.next_sequence);
    kymo__buf_fini(&scan.notes);
    kymo__buf_fini(&scan.raw);
    kymo__free(scan.moments);
    close(fd);
    if (status != KYMO_OK)
        kymo__log_file_fini(log);
    return status;
}

void kymo__log_file_fini(struct kymo__log_file *log)
{
    kymo__sparse_fini(&log->sites);
    kymo__sparse_fini(&log->lanes);
    kymo__clock_map_fini(&log->clock);
    kymo__pool_copy_fini(&log->pool);
    kymo__arena_fini(&log->texts);
}
