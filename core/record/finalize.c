/*
 * Finalizing: a process died with words in its pool. The next process that gets the lock on its log appends them,
 * writes how the process ended, and deletes the pool. Finalizing twice, or dying in the middle, is harmless: chunks
 * carry (lane, sequence), and those already in the log are skipped.
 *
 * Logs are found through their pools: a directory may have thousands of logs but hardly any pools.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/internal.h"
#include "record/internal.h"

/* The result of walking the log's blocks. */
struct survey {
    uint64_t size; /* whole blocks from the start */
    bool has_end;
    bool has_failed; /* the walk ended for a reason outside the log: do not truncate the log */
    uint32_t *next_sequence; /* by lane: one past its last chunk in the log */
    size_t n_lanes, cap_lanes;
    char boot_id[64];
    int64_t pid;
    uint64_t start_time, pid_ns;
    uint64_t pool_id; /* 0: not recorded */
    bool is_tsc;
};

/* Lanes past the readers' limit are skipped: at worst they are written twice, which is harmless. */
static bool note_lane(struct survey *s, uint32_t lane, uint32_t sequence)
{
    enum { MAX_LANES = 1 << 20 };
    if (lane >= MAX_LANES)
        return true;
    if (!marey__grow(&s->next_sequence, &s->cap_lanes, lane + 1, sizeof *s->next_sequence))
        return false;
    for (; s->n_lanes <= lane; s->n_lanes++)
        s->next_sequence[s->n_lanes] = 0;
    s->next_sequence[lane] = MAREY__MAX(s->next_sequence[lane], sequence + 1);
    return true;
}

static void take_text(struct survey *s, const char *key, size_t key_len, const char *value, size_t len)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)MAREY__MIN(len, sizeof text - 1), value);
    if (marey__text_is(key, key_len, MAREY__KEY_BOOT_ID))
        snprintf(s->boot_id, sizeof s->boot_id, "%s", text);
    else if (marey__text_is(key, key_len, MAREY__KEY_PID))
        s->pid = strtoll(text, NULL, 10);
    else if (marey__text_is(key, key_len, MAREY__KEY_START_TIME))
        s->start_time = strtoull(text, NULL, 10);
    else if (marey__text_is(key, key_len, MAREY__KEY_PID_NS))
        s->pid_ns = strtoull(text, NULL, 10);
    else if (marey__text_is(key, key_len, MAREY__KEY_POOL_ID))
        s->pool_id = strtoull(text, NULL, 16);
    else if (marey__text_is(key, key_len, MAREY__KEY_CLOCK))
        s->is_tsc = strcmp(text, "tsc") == 0;
}

static void take_texts(struct survey *s, const char *bytes, size_t len)
{
    while (len >= 8) {
        uint32_t lens[2];
        memcpy(lens, bytes, sizeof lens);
        if (lens[0] > len - 8 || lens[1] > len - 8 - lens[0])
            return;
        take_text(s, bytes + 8, lens[0], bytes + 8 + lens[0], lens[1]);
        bytes += 8 + (size_t)lens[0] + lens[1];
        len -= 8 + (size_t)lens[0] + lens[1];
    }
}

static bool survey_bytes(struct survey *s, int fd, void *to, size_t len, uint64_t at)
{
    const ssize_t n = pread(fd, to, len, (off_t)at);
    s->has_failed = s->has_failed || n < 0;
    return n == (ssize_t)len;
}

/* Reads one block at `s->size`; false at the end of the whole blocks. `bytes` is reused between blocks. */
static bool survey_block(struct survey *s, int fd, struct marey__buf *bytes)
{
    struct marey__block block;
    if (!survey_bytes(s, fd, &block, sizeof block, s->size) ||
        !marey__is_block_magic(block.magic) || block.packed_len > MAREY__BLOCK_MAX)
        return false;
    bytes->len = 0;
    char *payload = marey__buf_extend(bytes, (size_t)block.packed_len + 8);
    s->has_failed = s->has_failed || payload == NULL;
    if (payload == NULL || !survey_bytes(s, fd, payload, block.packed_len, s->size + sizeof block))
        return false;
    const uint32_t crc = block.crc;
    block.crc = 0;
    if (marey__crc32c(marey__crc32c(0, &block, sizeof block), payload, block.packed_len) != crc)
        return false;
    if (block.type == MAREY__BLOCK_WORDS && !note_lane(s, block.lane, block.sequence)) {
        s->has_failed = true;
        return false;
    }
    if (block.type == MAREY__BLOCK_LOG)
        take_texts(s, payload, block.packed_len);
    s->has_end = s->has_end || block.type == MAREY__BLOCK_END;
    s->size += sizeof block + ((block.packed_len + 7u) & ~7u);
    return true;
}

/* Reads only the first block, which has the location of the pool, or all blocks. */
static bool survey_log(struct survey *s, int fd, bool all)
{
    struct marey__buf bytes MAREY__FINALLY(marey__buf_fini) = {0};
    const bool is_log = survey_block(s, fd, &bytes);
    while (is_log && all && survey_block(s, fd, &bytes))
        ;
    return is_log;
}

/* ---- whether the owner is alive ---- */

/* Whether process `pid` has the pool mapped; true if /proc does not permit to read that. */
static bool maps_pool(int64_t pid, const char *pool_path, ino_t inode)
{
    char path[64];
    const char *const name = strrchr(pool_path, '/');
    snprintf(path, sizeof path, "/proc/%" PRId64 "/maps", pid);
    FILE *const maps = fopen(path, "re");
    if (maps == NULL)
        return errno != ENOENT;
    char *line = NULL;
    size_t cap = 0;
    bool is_found = false;
    while (!is_found && getline(&line, &cap, maps) > 0) {
        unsigned long long number;
        is_found = sscanf(line, "%*s %*s %*s %*s %llu", &number) == 1 && number == inode &&
                   strstr(line, name) != NULL;
    }
    free(line);
    fclose(maps);
    return is_found;
}

/*
 * The owner holds a lock on its log, unless the program closed that descriptor. A child made by a raw clone() inherits
 * the lock and may outlive the owner. So in our pid namespace the owner's pid decides, elsewhere the lock. A process
 * that called exec() keeps its pid but not the pool.
 */
static bool owner_is_dead(const struct survey *s, int log_fd, const char *pool_path, ino_t pool_inode)
{
    char boot[64];
    marey__identity_boot_id(boot, sizeof boot);
    const bool is_of_here = strcmp(boot, s->boot_id) == 0 &&
                            s->pid_ns == marey__identity_pid_namespace() && s->start_time != 0;
    if (is_of_here && marey__identity_start_time(s->pid) != s->start_time)
        return true;
    if (is_of_here && maps_pool(s->pid, pool_path, pool_inode))
        return false;
    return flock(log_fd, LOCK_EX | LOCK_NB) == 0;
}

/* ---- the pool of a dead process ---- */

struct dead_pool {
    const struct marey__pool_head *head;
    size_t bytes;
    uint32_t n_chunks;
};

static bool map_dead_pool(int fd, struct dead_pool *pool)
{
    struct stat st;
    void *at = MAP_FAILED;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)MAREY__CHUNK_BYTES)
        at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return false;
    *pool = (struct dead_pool){.head = at, .bytes = (size_t)st.st_size};
    if (!marey__is_pool_magic(pool->head->magic) || pool->head->chunk_bytes != MAREY__CHUNK_BYTES) {
        munmap(at, pool->bytes);
        return false;
    }
    const uint32_t fit = (uint32_t)(pool->bytes / MAREY__CHUNK_BYTES) - 1;
    pool->n_chunks = MAREY__MIN(pool->head->n_chunks, fit);
    return true;
}

/* For pointers. */
#define BY(field) MAREY__UP_BY((*x)->field, (*y)->field)
MAREY__ORDER(by_lane_and_sequence, struct marey__chunk_head *const, BY(lane) BY(sequence))

static marey_status append_chunks(struct marey__log *log, const struct survey *s,
                                  const struct dead_pool *pool)
{
    const struct marey__chunk_head **const chunks MAREY__FREED =
        marey__calloc(pool->n_chunks + 1, sizeof *chunks);
    marey__packer *packer = marey__packer_create();
    marey_status st = MAREY_OK;
    if (chunks == NULL || packer == NULL) {
        marey__packer_destroy(packer);
        return marey__no_memory();
    }
    size_t n = 0;
    for (uint32_t i = 0; i < pool->n_chunks; i++) {
        const struct marey__chunk_head *const chunk =
            (const void *)((const char *)pool->head + (size_t)(i + 1) * MAREY__CHUNK_BYTES);
        const bool is_known =
            chunk->lane < s->n_lanes && chunk->sequence < s->next_sequence[chunk->lane];
        if (chunk->state != MAREY__CHUNK_FREE && !is_known)
            chunks[n++] = chunk;
    }
    if (n > 0)
        qsort(chunks, n, sizeof *chunks, by_lane_and_sequence);
    size_t n_events;
    for (size_t i = 0; st == MAREY_OK && i < n; i++)
        st = marey__log_append_chunk(log, packer, chunks[i], &n_events);
    marey__packer_destroy(packer);
    return st;
}

/* In the same boot of the same machine the clocks still run: add one more clock sample, for a better rate. */
static marey_status append_present(struct marey__log *log, const struct survey *s)
{
    char boot[64];
    marey__identity_boot_id(boot, sizeof boot);
    if (boot[0] == '\0' || strcmp(boot, s->boot_id) != 0)
        return MAREY_OK;
    return marey__log_append_moment(log, s->is_tsc);
}

static marey_status append_ending(struct marey__log *log, const struct survey *s,
                                  const struct dead_pool *pool)
{
    struct marey__buf texts MAREY__FINALLY(marey__buf_fini) = {0};
    marey__texts_put_end(&texts, "unclosed", pool->head);
    MAREY_TRY(append_chunks(log, s, pool));
    MAREY_TRY(marey__log_append_loss(log, pool->head));
    MAREY_TRY(append_present(log, s));
    return marey__log_append_texts(log, MAREY__BLOCK_END, &texts);
}

/*
 * The offset to continue writing at. A block that was being written when the process died is overwritten. Other
 * incomplete data is damage, perhaps with intact blocks after it: it stays, and readers skip it.
 */
static uint64_t find_end(int fd, uint64_t whole)
{
    struct stat st;
    struct marey__block block;
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size < whole + sizeof block ||
        pread(fd, &block, sizeof block, (off_t)whole) != (ssize_t)sizeof block)
        return whole;
    const uint64_t behind = (uint64_t)st.st_size - whole - sizeof block;
    if (marey__is_block_magic(block.magic) && block.packed_len <= MAREY__BLOCK_MAX &&
        block.packed_len > behind)
        return whole;
    return ((uint64_t)st.st_size + 7) & ~UINT64_C(7);
}

static marey_status finish_log(int fd, const char *path, const struct survey *s,
                               const struct dead_pool *pool)
{
    struct marey__log log;
    if (s->has_end)
        return MAREY_OK;
    const uint64_t end = find_end(fd, s->size);
    if (ftruncate(fd, (off_t)end) != 0)
        return marey__fail_errno("finalize log %s", path);
    marey__log_adopt(&log, fd, end);
    snprintf(log.path, sizeof log.path, "%s", path);
    for (size_t lane = 0; lane < s->n_lanes; lane++)
        if (s->next_sequence[lane] > 0)
            (void)marey__log_lane_is_new(&log, (uint32_t)lane);
    const marey_status st = append_ending(&log, s, pool);
    log.file.fd = -1; /* owned by the caller */
    marey__log_close(&log);
    return st;
}

static marey_status finalize_from(int log_fd, const char *path, int pool_fd, const char *pool_path)
{
    struct survey s = {0};
    struct dead_pool pool;
    if (!map_dead_pool(pool_fd, &pool))
        return marey__fail(
            MAREY_EFORMAT,
            "the pool %s is damaged or unreadable; the last events of its log are missing",
            pool_path);
    survey_log(&s, log_fd, true);
    const marey_status st =
        s.has_failed
            ? marey__fail(MAREY_EIO, "cannot finalize %s: reading it failed, or memory is out", path)
            : finish_log(log_fd, path, &s, &pool);
    munmap((void *)(uintptr_t)pool.head, pool.bytes);
    if (st == MAREY_OK)
        unlink(pool_path);
    marey__free(s.next_sequence);
    return st;
}

/*
 * The owner is dead, though we may not hold the lock on its log. Finalizers exclude each other by a lock on the pool,
 * which the owner never takes.
 */
static marey_status finalize_dead(int log_fd, const char *path, int pool_fd, const char *pool_path,
                                  bool is_abandoned)
{
    struct stat log, pool;
    if (flock(pool_fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return MAREY_OK; /* another process finalizes it */
    /* An owner that was alive when we opened both files may since have written its log, deleted its pool and exited. */
    if (fstat(log_fd, &log) != 0 || fstat(pool_fd, &pool) != 0 || pool.st_nlink == 0 ||
        (is_abandoned && log.st_size != 0))
        return MAREY_OK;
    if (!is_abandoned)
        return finalize_from(log_fd, path, pool_fd, pool_path);
    /* The process died before its first event: nothing to keep. */
    unlink(path);
    unlink(pool_path);
    return MAREY_OK;
}

/* Both files must belong to one user, who is the current one, or we are root: do not join files that others placed there. */
static bool owners_agree(const struct stat *log, const struct stat *pool)
{
    const uid_t self = geteuid();
    return S_ISREG(log->st_mode) && S_ISREG(pool->st_mode) && (log->st_uid == self || self == 0) &&
           (pool->st_uid == log->st_uid || pool->st_uid == self);
}

/* Whether the log was created before the pool, the order in which a process creates them; a copy of the log is newer. */
static bool is_created_before(int log_fd, int pool_fd)
{
    struct statx log, pool;
    if (statx(log_fd, "", AT_EMPTY_PATH, STATX_BTIME, &log) != 0 ||
        statx(pool_fd, "", AT_EMPTY_PATH, STATX_BTIME, &pool) != 0 ||
        (log.stx_mask & pool.stx_mask & STATX_BTIME) == 0)
        return false;
    return log.stx_btime.tv_sec != pool.stx_btime.tv_sec
               ? log.stx_btime.tv_sec < pool.stx_btime.tv_sec
               : log.stx_btime.tv_nsec <= pool.stx_btime.tv_nsec;
}

/*
 * Whether the pool belongs to this log rather than to the original of a copied log. A pool in the log's directory was
 * copied with it; one in /dev/shm is identified by its log's inode. Pools of earlier versions have neither id nor
 * inode: the creation time decides, and if that is unknown, the reader reads the pool without finalizing. A damaged
 * pool belongs to the log in its directory.
 */
static bool is_pool_of(int log_fd, int pool_fd, bool is_beside, const struct survey *s,
                       const struct stat *log)
{
    struct marey__pool_head head;
    if (pread(pool_fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        !marey__is_pool_magic(head.magic))
        return is_beside;
    if (log->st_size != 0 && head.id != s->pool_id)
        return false;
    return is_beside || (head.id == 0 ? is_created_before(log_fd, pool_fd)
                                      : head.log_inode == (uint64_t)log->st_ino);
}

static marey_status finalize_pair(int fd, const char *path, int pool_fd, const char *pool,
                                  bool is_beside)
{
    struct stat log_st, pool_st;
    struct survey first = {0};
    marey_status status = MAREY_OK;
    if (fstat(fd, &log_st) != 0 || fstat(pool_fd, &pool_st) != 0 || !owners_agree(&log_st, &pool_st))
        return MAREY_OK;
    const bool is_log = survey_log(&first, fd, false);
    /* A process locks its log before it creates its pool, so an empty, unlocked log beside a pool is abandoned. */
    const bool is_abandoned = !is_log && log_st.st_size == 0;
    if ((is_log || is_abandoned) && is_pool_of(fd, pool_fd, is_beside, &first, &log_st) &&
        owner_is_dead(&first, fd, pool, pool_st.st_ino))
        status = finalize_dead(fd, path, pool_fd, pool, is_abandoned);
    marey__free(first.next_sequence);
    return status;
}

/* Finalizes the log `path` from its pool unless its owner is alive. Skips files that cannot be opened. */
static marey_status finalize_log(const char *path, const char *pool, bool is_beside)
{
    marey_status status = MAREY_OK;
    const int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return MAREY_OK; /* the reader reads the pool without finalizing */
    const int pool_fd = open(pool, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (pool_fd >= 0) {
        status = finalize_pair(fd, path, pool_fd, pool, is_beside);
        close(pool_fd);
    }
    close(fd);
    return status;
}

/* ---- files of instruments ---- */

enum { MAX_CLEANERS = 4 };
static marey__finalize_cleaner *cleaners[MAX_CLEANERS]; /* do not change after loading */
static size_t n_cleaners;

void marey__finalize_add_cleaner(marey__finalize_cleaner *clean)
{
    MAREY_ASSERT(n_cleaners < MAX_CLEANERS);
    cleaners[n_cleaners++] = clean;
}

/* Finalizes the logs of the recording `path` whose pools are in `folder`, named PREFIX plus the log's name. */
static marey_status finalize_folder(const char *path, const char *folder, const char *prefix)
{
    DIR *const dir = opendir(folder);
    if (dir == NULL)
        return marey__fail_errno("read %s", folder);
    const bool is_beside = prefix[0] == '\0';
    const size_t prefix_len = strlen(prefix);
    marey_status st = MAREY_OK;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char log[PATH_MAX], pool[PATH_MAX];
        const char *const name = entry->d_name;
        if (snprintf(pool, sizeof pool, "%s/%s", folder, name) >= (int)sizeof pool)
            continue;
        for (size_t i = 0; is_beside && i < n_cleaners; i++)
            cleaners[i](pool, name);
        if (strncmp(name, prefix, prefix_len) != 0 ||
            !marey__ends_with(name, strlen(name), ".klog.pool") ||
            snprintf(log, sizeof log, "%s/%.*s", path, (int)(strlen(name) - prefix_len - 5),
                     name + prefix_len) >= (int)sizeof log)
            continue;
        const marey_status one = finalize_log(log, pool, is_beside);
        st = st != MAREY_OK ? st : one;
    }
    closedir(dir);
    return st;
}

marey_status marey_recording_finalize(const char *path)
{
    const marey_status st = finalize_folder(path, path, "");
    if (st != MAREY_OK || access("/dev/shm", F_OK) != 0)
        return st;
    const marey_status in_shm = finalize_folder(path, "/dev/shm", "marey-");
    const marey_status of_old = finalize_folder(path, "/dev/shm", MAREY__OLD_SHM);
    return in_shm != MAREY_OK ? in_shm : of_old;
}
