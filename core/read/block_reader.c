/*
 * Reads blocks one after another through a window of the file and checks each checksum.
 *
 * Uses pread instead of mmap, so that a file truncated meanwhile gives a short read instead of a
 * signal. After damage, searches for the next intact block at every multiple of eight bytes.
 */
#include "read/internal.h"

enum { READ_AHEAD = 256 << 10 };

void marey__block_reader_init(struct marey__block_reader *reader, int fd, const char *path,
                              uint64_t size)
{
    /*
     * Limits the cost of a hostile file with a header every 48 bytes, each requiring a checksum
     * over megabytes.
     */
    *reader = (struct marey__block_reader){
        .fd = fd,
        .path = path,
        .size = size,
        .read_ahead = READ_AHEAD,
        .resync_left = 4 * MAREY__MIN(size, UINT64_MAX / 8) + MAREY__BLOCK_MAX,
    };
}

void marey__block_reader_fini(struct marey__block_reader *reader)
{
    if (!reader->is_lent)
        marey__free(reader->window);
    *reader = (struct marey__block_reader){.fd = -1};
}

static marey_status fill_window(struct marey__block_reader *reader, uint64_t offset, size_t len)
{
    MAREY__TRY_MEMORY(marey__grow(&reader->window, &reader->window_cap, len, 1));
    const ssize_t n = marey__read_all(reader->fd, reader->window, len, (off_t)offset);
    reader->window_at = offset;
    reader->window_len = (size_t)MAREY__MAX(n, 0);
    if (n < 0)
        return marey__fail_errno("read %s at byte %" PRIu64, reader->path, offset);
    if (reader->window_len < len)
        reader->size = offset + reader->window_len; /* truncated since it was opened */
    return MAREY_OK;
}

/* Return `len` bytes at `offset`, owned by the reader; `*bytes` is NULL if the file ends before. */
static marey_status view(struct marey__block_reader *reader, uint64_t offset, size_t len,
                         const char **bytes)
{
    *bytes = NULL;
    if (offset > reader->size || len > reader->size - offset)
        return MAREY_OK;
    if (offset < reader->window_at || offset + len > reader->window_at + reader->window_len) {
        const uint64_t rest = reader->size - offset;
        const size_t want = MAREY__MAX(len, (size_t)MAREY__MIN(rest, (uint64_t)reader->read_ahead));
        MAREY_TRY(fill_window(reader, offset, want));
        if (reader->window_len < len)
            return MAREY_OK;
    }
    *bytes = reader->window + (offset - reader->window_at);
    return MAREY_OK;
}

static uint32_t block_checksum(const struct marey__block *block, const char *packed)
{
    struct marey__block bare = *block;
    bare.crc = 0;
    const uint32_t crc = marey__crc32c(0, &bare, sizeof bare);
    return marey__crc32c(crc, packed, block->packed_len);
}

/*
 * Check the block at `offset`. `*reason` is NULL if it is intact, else a short description of the
 * damage.
 */
static marey_status check_block(struct marey__block_reader *reader, uint64_t offset,
                                struct marey__block *block, const uint8_t **packed,
                                const char **reason)
{
    const char *bytes;
    MAREY_TRY(view(reader, offset, sizeof *block, &bytes));
    *reason = "it ends in the middle of a block";
    if (bytes == NULL)
        return MAREY_OK;
    memcpy(block, bytes, sizeof *block);
    *reason = "no block begins there";
    if (!marey__is_block_magic(block->magic))
        return MAREY_OK;
    *reason = "the block there has an impossible length";
    if (block->packed_len > MAREY__BLOCK_MAX || block->raw_len > MAREY__BLOCK_MAX)
        return MAREY_OK;
    MAREY_TRY(view(reader, offset, sizeof *block + block->packed_len, &bytes));
    *reason = "the block there runs past the end of the file";
    if (bytes == NULL)
        return MAREY_OK;
    const char *payload = bytes + sizeof *block;
    *reason = "the checksum of the block there does not match";
    if (block_checksum(block, payload) != block->crc)
        return MAREY_OK;
    *packed = (const uint8_t *)payload;
    *reason = NULL;
    return MAREY_OK;
}

/* Whether an intact block begins at `offset`. The bytes read are subtracted from resync_left. */
static marey_status is_whole(struct marey__block_reader *reader, uint64_t offset, bool *whole)
{
    struct marey__block block = {0};
    const uint8_t *packed;
    const char *reason;
    MAREY_TRY(check_block(reader, offset, &block, &packed, &reason));
    const uint64_t cost =
        sizeof block + (block.packed_len <= MAREY__BLOCK_MAX ? block.packed_len : 0);
    reader->resync_left -= MAREY__MIN(reader->resync_left, cost);
    *whole = reason == NULL;
    return MAREY_OK;
}

/* Find the first intact block after `*offset`, or the end of the file. */
static marey_status resynchronise(struct marey__block_reader *reader, uint64_t *offset)
{
    uint64_t at = (*offset | 7) + 1;
    while (at + sizeof(struct marey__block) <= reader->size && reader->resync_left > 0) {
        const char *bytes;
        MAREY_TRY(view(reader, at, sizeof(uint32_t), &bytes));
        uint32_t magic = 0;
        if (bytes != NULL)
            memcpy(&magic, bytes, sizeof magic);
        bool whole = false;
        if (marey__is_block_magic(magic))
            MAREY_TRY(is_whole(reader, at, &whole));
        if (whole) {
            *offset = at;
            return MAREY_OK;
        }
        at += 8;
    }
    *offset = reader->size;
    return MAREY_OK;
}

marey_status marey__block_reader_next(struct marey__block_reader *reader,
                                      struct marey__block *block, const uint8_t **packed, bool *done)
{
    *done = true;
    while (reader->offset < reader->size) {
        const char *reason;
        const uint64_t at = reader->offset;
        MAREY_TRY(check_block(reader, at, block, packed, &reason));
        if (reason == NULL) {
            reader->offset = at + marey__block_bytes(block);
            *done = false;
            return MAREY_OK;
        }
        uint64_t next = at;
        MAREY_TRY(resynchronise(reader, &next));
        reader->torn = reason;
        if (next >= reader->size)
            return MAREY_OK;
        marey__warn_damage(reader->warnings,
                           "%s is damaged at byte %" PRIu64 ": %s; %" PRIu64 " bytes were skipped.",
                           reader->path, at, reason, next - at);
        reader->torn = NULL;
        reader->offset = next;
    }
    return MAREY_OK;
}
