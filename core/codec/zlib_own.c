/* The checksums of zlib's format in a build without ISA-L and zlib, which unpacks nothing. */
#include "codec/zlib_stream.h"

const char *const marey__zlib_missing =
    "this build cannot unpack PNG: install libisal-dev or zlib1g-dev and build again";

uint32_t marey__adler32(const uint8_t *bytes, size_t n)
{
    enum { MODULUS = 65521, STRETCH = 5552 }; /* so many sums stay within 32 bits */
    uint32_t a = 1, b = 0;
    while (n != 0) {
        const size_t stretch = MAREY__MIN(n, (size_t)STRETCH);
        for (size_t i = 0; i < stretch; i++) {
            a += bytes[i];
            b += a;
        }
        a %= MODULUS;
        b %= MODULUS;
        bytes += stretch;
        n -= stretch;
    }
    return b << 16 | a;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): those of ISA-L and zlib write to `out`. */
bool marey__zlib_unpack(const uint8_t *bytes, size_t len, uint8_t *out, size_t n)
{
    (void)bytes, (void)len, (void)out, (void)n;
    return false;
}

uint32_t marey__crc32(uint32_t crc, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    crc = ~crc;
    for (; n != 0; n--, at++) {
        crc ^= *at;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}
