/* A deflate stream with what zlib and gzip put before it and behind. */
#include "codec/zlib_stream.h"

#include "codec/deflate.h"

void kymo__zlib_pack(struct kymo__buf *out, const uint8_t *bytes, size_t n)
{
    const uint32_t sum = kymo__adler32(bytes, n);
    const uint8_t head[2] = {0x78, 0x01};
    const uint8_t tail[4] = {(uint8_t)(sum >> 24), (uint8_t)(sum >> 16), (uint8_t)(sum >> 8),
                             (uint8_t)sum};
    kymo__buf_put(out, head, sizeof head);
    kymo__deflate_all(out, bytes, n, KYMO__DEFLATE_QUICK);
    kymo__buf_put(out, tail, sizeof tail);
}

void kymo__gzip_pack(struct kymo__buf *out, const void *bytes, size_t n)
{
    /* Deflate; no flags, no time, no level, no system: equal bytes give equal files. */
    static const uint8_t head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};
    const uint32_t sum = kymo__crc32(0, bytes, n);
    uint8_t tail[8];
    for (size_t i = 0; i < 4; i++) {
        tail[i] = (uint8_t)(sum >> (8 * i));
        tail[4 + i] = (uint8_t)((uint64_t)n >> (8 * i));
    }
    kymo__buf_put(out, head, sizeof head);
    kymo__deflate_all(out, bytes, n, KYMO__DEFLATE_SMALL);
    kymo__buf_put(out, tail, sizeof tail);
}
