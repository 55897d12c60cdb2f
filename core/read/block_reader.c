/*
 * One block after the other, each checked against its checksum, through a window of the file.
 *
 * The file is read with pread rather than mapped: a file that somebody cuts off meanwhile then
 * gives a short read instead of a signal. After damage the next whole block is looked for at every
 * multiple of eight bytes.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "read/read_internal.h"

enum { READ_AHEAD = 256 << 10 };

void kymo__block_reader_init(struct kymo__block_reader *reader, int fd, const char *path,
                             uint64_t size)
{
    /*
     * A hostile file may hold a header every 48 bytes, each asking for a checksum over megabytes.
     */
    *reader = (struct kymo__block_reader){
        .fd = fd,
        .path = path,
        .size = size,
        .read_ahead = READ_AHEAD,
        .resync_left = 4 * KYMO__MIN(size, UINT64_MAX / 8) + KYMO__BLOCK_MAX,
    };
}

void kymo__block_reader_fini(struct kymo__block_reader *reader)
{
    kymo__free(reader->window);
    *reader = (struct kymo__block_reader){.fd = -1};
}

static kymo_status fill_window(struct kymo__block_reader *reader, uint64_t offset, size_t len)
{
    if (!kymo__grow(&reader->window, &reader->window_cap, len, 1))
        return kymo__fail(KYMO_ENOMEM, "no memory for %zu bytes of %s", len, reader->path);
    reader->window_at = offset;
    reader->window_len = 0;
    while (reader->window_len < len) {
        const ssize_t n = pread(reader->fd, reader->window + reader->window_len,
                                len - reader->window_len, (off_t)(offset + reader->window_len));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return kymo__fail_errno("read %s at byte %" PRIu64, reader->path, offset);
        if (n == 0) {
            reader->size = offset + reader->window_len; /* it was cut off since it was opened */
            break;
        }
        reader->window_len += (size_t)n;
    }
    return KYMO_OK;
}

/* Lend `len` bytes from `offset` on; NULL in `*bytes` when the file ends before. */
static kymo_status view(struct kymo__block_reader *reader, uint64_t offset, size_t len,
                        const char **bytes)
{
    *bytes = NULL;
    if (offset > reader->size || len > reader->size - offset)
        return KYMO_OK;
    if (offset < reader->window_at || offset + len > reader->window_at + reader->window_len) {
        const uint64_t rest = reader->size - offset;
        const size_t want = KYMO__MAX(len, (size_t)KYMO__MIN(rest, (uint64_t)reader->read_ahead));
        KYMO_TRY(fill_window(reader, offset, want));
        if (reader->window_len < len)
            return KYMO_OK;
    }
    *bytes = reader->window + (offset - reader->window_at);
    return KYMO_OK;
}

static uint32_t block_checksum(const struct kymo__block *block, const char *packed)
{
    struct kymo__block bare = *block;
    bare.crc = 0;
    const uint32_t crc = kymo__crc32c(0, &bare, sizeof bare);
    return kymo__crc32c(crc, packed, block->packed_len);
}

/*
 * Look at the block at `offset`. `*reason` is NULL when it is whole, else says in a few words what
 * is wrong.
 */
static kymo_status check_block(struct kymo__block_reader *reader, uint64_t offset,
                               struct kymo__block *block, const uint8_t **packed, const char **reason)
{
    const char *bytes;
    KYMO_TRY(view(reader, offset, sizeof *block, &bytes));
    *reason = "it ends in the middle of a block";
    if (bytes == NULL)
        return KYMO_OK;
    memcpy(block, bytes, sizeof *block);
    *reason = "no block begins there";
    if (block->magic != KYMO__BLOCK_MAGIC)
        return KYMO_OK;
    *reason = "the block there has an impossible length";
    if (block->packed_len > KYMO__BLOCK_MAX || block->raw_len > KYMO__BLOCK_MAX)
        return KYMO_OK;
    KYMO_TRY(view(reader, offset, sizeof *block + block->packed_len, &bytes));
    *reason = "the block there runs past the end of the file";
    if (bytes == NULL)
        return KYMO_OK;
    const char *payload = bytes + sizeof *block;
    *reason = "the checksum of the block there does not match";
    if (block_checksum(block, payload) != block->crc)
        return KYMO_OK;
    *packed = (const uint8_t *)payload;
    *reason = NULL;
    return KYMO_OK;
}

static uint64_t end_of_block(uint64_t offset, const struct kymo__block *block)
{
    return offset + sizeof *block + (((uint64_t)block->packed_len + 7) & ~UINT64_C(7));
}

/* Whether a whole block begins at `offset`; what the check costs is taken from the allowance. */
static kymo_status is_whole(struct kymo__block_reader *reader, uint64_t offset, bool *whole)
{
    struct kymo__block block = {0};
    const uint8_t *packed;
    const char *reason;
    KYMO_TRY(check_block(reader, offset, &block, &packed, &reason));
    const uint64_t cost = sizeof block + (block.packed_len <= KYMO__BLOCK_MAX ? block.packed_len : 0);
    reader->resync_left -= KYMO__MIN(reader->resync_left, cost);
    *whole = reason == NULL;
    return KYMO_OK;
}

/* Find the first whole block behind `*offset`; the end of the file when there is none. */
static kymo_status resynchronise(struct kymo__block_reader *reader, uint64_t *offset)
{
    uint64_t at = (*offset | 7) + 1;
    while (at + sizeof(struct kymo__block) <= reader->size && reader->resync_left > 0) {
        const char *bytes;
        KYMO_TRY(view(reader, at, sizeof(uint32_t), &bytes));
        uint32_t magic = 0;
        if (bytes != NULL)
            memcpy(&magic, bytes, sizeof magic);
        bool whole = false;
        if (magic == KYMO__BLOCK_MAGIC)
            KYMO_TRY(is_whole(reader, at, &whole));
        if (whole) {
            *offset = at;
            return KYMO_OK;
        }
        at += 8;
    }
    *offset = reader->size;
    return KYMO_OK;
}

kymo_status kymo__block_reader_next(struct kymo__block_reader *reader, struct kymo__block *block,
                                    const uint8_t **packed, bool *done)
{
    *done = true;
    while (reader->offset < reader->size) {
        const char *reason;
        const uint64_t at = reader->offset;
        KYMO_TRY(check_block(reader, at, block, packed, &reason));
        if (reason == NULL) {
            reader->offset = end_of_block(at, block);
            *done = false;
            return KYMO_OK;
        }
        uint64_t next = at;
        KYMO_TRY(resynchronise(reader, &next));
        reader->torn = reason;
        if (next >= reader->size)
            return KYMO_OK;
        kymo__warn_damage(reader->warnings,
                          "%s is damaged at byte %" PRIu64 ": %s; %" PRIu64 " bytes were skipped.",
                          reader->path, at, reason, next - at);
        reader->torn = NULL;
        reader->offset = next;
    }
    return KYMO_OK;
}
