/* zlib's format unpacked by zlib, and its checksums, in builds without ISA-L. */
#include <zlib.h>

#include "codec/internal.h"
#include "codec/zlib_memory.h"

bool marey__zlib_unpack(const uint8_t *bytes, size_t len, uint8_t *out, size_t n)
{
    z_stream stream = {.zalloc = marey__zlib_take, .zfree = marey__zlib_give};
    int result = inflateInit(&stream);
    while (result == Z_OK) {
        const uInt n_in = (uInt)MAREY__MIN(len, (size_t)1 << 30);
        const uInt n_out = (uInt)MAREY__MIN(n, (size_t)1 << 30);
        stream.next_in = (Bytef *)bytes;
        stream.avail_in = n_in;
        stream.next_out = out;
        stream.avail_out = n_out;
        result = inflate(&stream, Z_NO_FLUSH);
        bytes += n_in - stream.avail_in;
        len -= n_in - stream.avail_in;
        out += n_out - stream.avail_out;
        n -= n_out - stream.avail_out;
    }
    inflateEnd(&stream);
    return result == Z_STREAM_END && n == 0;
}

uint32_t marey__crc32(uint32_t crc, const void *bytes, size_t n)
{
    return (uint32_t)crc32_z(crc, bytes, n);
}

uint32_t marey__adler32(const uint8_t *bytes, size_t n)
{
    return (uint32_t)adler32_z(1, bytes, n);
}
