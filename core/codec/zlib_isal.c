/* zlib's format unpacked by ISA-L, and its checksums. */
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include "codec/internal.h"

bool marey__zlib_unpack(const uint8_t *bytes, size_t len, uint8_t *out, size_t n)
{
    struct inflate_state *state = marey__calloc(1, sizeof *state);
    bool is_done = false;
    if (state == NULL)
        return false;
    isal_inflate_init(state);
    state->crc_flag = ISAL_ZLIB;
    for (;;) {
        const uint32_t n_in = (uint32_t)MAREY__MIN(len, (size_t)1 << 30);
        const uint32_t n_out = (uint32_t)MAREY__MIN(n, (size_t)1 << 30);
        state->next_in = (uint8_t *)bytes;
        state->avail_in = n_in;
        state->next_out = out;
        state->avail_out = n_out;
        const int result = isal_inflate(state);
        const size_t took = (size_t)(state->next_in - bytes), made = (size_t)(state->next_out - out);
        bytes += took;
        len -= took;
        out += made;
        n -= made;
        is_done = result >= 0 && state->block_state == ISAL_BLOCK_FINISH;
        if (result < 0 || is_done || (took == 0 && made == 0))
            break;
    }
    marey__free(state);
    return is_done && n == 0;
}

uint32_t marey__crc32(uint32_t crc, const void *bytes, size_t n)
{
    return crc32_gzip_refl(crc, bytes, n);
}

uint32_t marey__adler32(const uint8_t *bytes, size_t n)
{
    return isal_adler32(1, bytes, n);
}
