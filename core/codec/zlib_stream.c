/* A deflate stream with zlib's two bytes before it and its checksum behind. */
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
