/* CRC-32C with the CPU's instruction, or with tables (eight bytes at a time) where it is missing. */
#include "base/internal.h"

static uint32_t tables[8][256];

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = (c & 1) ? (c >> 1) ^ 0x82f63b78u : c >> 1;
        tables[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int t = 1; t < 8; t++)
            tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 0xff];
}

static uint32_t crc_by_tables(uint32_t crc, const unsigned char *p, size_t len)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_tables);
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        v ^= crc;
        crc = 0;
        for (int t = 0; t < 8; t++)
            crc ^= tables[7 - t][(v >> (8 * t)) & 0xff];
    }
    for (; len > 0; p++, len--)
        crc = (crc >> 8) ^ tables[0][(crc ^ *p) & 0xff];
    return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc_by_hardware(uint32_t crc,
                                                                  const unsigned char *p, size_t len)
{
    uint64_t c = crc;
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        c = __builtin_ia32_crc32di(c, v);
    }
    for (; len > 0; p++, len--)
        c = __builtin_ia32_crc32qi((uint32_t)c, *p);
    return (uint32_t)c;
}
#endif

uint32_t marey__crc32c(uint32_t crc, const void *bytes, size_t len)
{
#ifdef __x86_64__
    if (MAREY_LIKELY(__builtin_cpu_supports("sse4.2")))
        return ~crc_by_hardware(~crc, bytes, len);
#endif
    return ~crc_by_tables(~crc, bytes, len);
}
