/* A deflate stream with what zlib and gzip put before it and behind. */
#include "codec/internal.h"

void marey__zlib_pack(struct marey__buf *out, const uint8_t *bytes, size_t n)
{
    const uint32_t sum = marey__adler32(bytes, n);
    const uint8_t head[2] = {0x78, 0x01};
    const uint8_t tail[4] = {(uint8_t)(sum >> 24), (uint8_t)(sum >> 16), (uint8_t)(sum >> 8),
                             (uint8_t)sum};
    marey__buf_put(out, head, sizeof head);
    marey__deflate_all(out, bytes, n, MAREY__DEFLATE_QUICK);
    marey__buf_put(out, tail, sizeof tail);
}

void marey__gzip_pack(struct marey__buf *out, const void *bytes, size_t n)
{
    /* Deflate; no flags, no time, no level, no system: equal bytes give equal files. */
    static const uint8_t head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};
    const uint32_t sum = marey__crc32(0, bytes, n);
    uint8_t tail[8];
    for (size_t i = 0; i < 4; i++) {
        tail[i] = (uint8_t)(sum >> (8 * i));
        tail[4 + i] = (uint8_t)((uint64_t)n >> (8 * i));
    }
    marey__buf_put(out, head, sizeof head);
    marey__deflate_all(out, bytes, n, MAREY__DEFLATE_SMALL);
    marey__buf_put(out, tail, sizeof tail);
}
