/* What blocks CALLS and SAMPLES have in common: a payload of entries, each a tag, numbers and texts. */
#include <zstd.h>

#include "read/internal.h"

bool marey__unpack_payload(const struct marey__block *block, const uint8_t *packed,
                           struct marey__buf *raw)
{
    raw->len = 0;
    if ((block->flags & MAREY__FLAG_ZSTD) == 0) {
        marey__buf_put(raw, packed, block->packed_len);
        return !raw->failed;
    }
    if (block->raw_len == 0 || !marey__packing_is_sound(block->raw_len, block->packed_len))
        return true;
    char *into = marey__buf_extend(raw, block->raw_len);
    if (into == NULL)
        return false;
    const size_t n = ZSTD_decompress(into, block->raw_len, packed, block->packed_len);
    raw->len = ZSTD_isError(n) ? 0 : n;
    return true;
}

bool marey__take_number(const uint8_t **at, const uint8_t *end, uint64_t *number)
{
    *number = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        const uint8_t byte = *(*at)++;
        if (shift == 63 && byte > 1)
            return false;
        *number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

bool marey__take_text(const uint8_t **at, const uint8_t *end, const char **text, size_t *len)
{
    uint64_t n;
    if (!marey__take_number(at, end, &n) || n > (uint64_t)(end - *at))
        return false;
    *text = (const char *)*at;
    *len = (size_t)n;
    *at += n;
    return true;
}
