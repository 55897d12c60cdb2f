/* Base64: 3 bytes become 4 characters, two characters per table lookup. */
#include "codec/internal.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

enum { N_PAIRS = 1 << 12 };

/* The two characters for each 12-bit value. */
static void fill_pairs(char (*pairs)[2])
{
    for (unsigned i = 0; i < N_PAIRS; i++) {
        pairs[i][0] = letters[i >> 6];
        pairs[i][1] = letters[i & 63];
    }
}

static char *put_last(char *p, const uint8_t *bytes, size_t n)
{
    const unsigned first = bytes[0], second = n > 1 ? bytes[1] : 0;
    *p++ = letters[first >> 2];
    *p++ = letters[(first & 3) << 4 | second >> 4];
    *p++ = n > 1 ? letters[(second & 15) << 2] : '=';
    *p++ = '=';
    return p;
}

void marey__base64_put(struct marey__buf *out, const uint8_t *bytes, size_t n)
{
    char pairs[N_PAIRS][2];
    char *p = marey__buf_extend(out, (n + 2) / 3 * 4);
    if (p == NULL)
        return;
    fill_pairs(pairs);
    for (; n >= 3; n -= 3, bytes += 3, p += 4) {
        const unsigned bits = (unsigned)bytes[0] << 16 | (unsigned)bytes[1] << 8 | bytes[2];
        memcpy(p, pairs[bits >> 12], 2);
        memcpy(p + 2, pairs[bits & (N_PAIRS - 1)], 2);
    }
    if (n != 0)
        put_last(p, bytes, n);
}
