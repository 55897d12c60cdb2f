/* Escapes of JSON strings. Whatever is wrong with them gives some text; no string is refused. */
#include <string.h>

#include "codec/codec_internal.h"

enum { REPLACEMENT = 0xfffd };

static void put_utf8(struct marey__buf *buf, uint32_t c)
{
    char bytes[4];
    size_t n = 0;
    if (c < 0x80) {
        bytes[n++] = (char)c;
    } else if (c < 0x800) {
        bytes[n++] = (char)(0xc0 | c >> 6);
        bytes[n++] = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        bytes[n++] = (char)(0xe0 | c >> 12);
        bytes[n++] = (char)(0x80 | (c >> 6 & 0x3f));
        bytes[n++] = (char)(0x80 | (c & 0x3f));
    } else {
        bytes[n++] = (char)(0xf0 | c >> 18);
        bytes[n++] = (char)(0x80 | (c >> 12 & 0x3f));
        bytes[n++] = (char)(0x80 | (c >> 6 & 0x3f));
        bytes[n++] = (char)(0x80 | (c & 0x3f));
    }
    marey__buf_put(buf, bytes, n);
}

static bool read_hex4(const char *p, const char *end, uint32_t *out)
{
    if (end - p < 4)
        return false;
    *out = 0;
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        const int letter = (c | 0x20) - 'a';
        if (c >= '0' && c <= '9')
            *out = *out << 4 | (uint32_t)(c - '0');
        else if (letter >= 0 && letter < 6)
            *out = *out << 4 | (uint32_t)(letter + 10);
        else
            return false;
    }
    return true;
}

/* Behind "\u". A half of a pair that stands alone becomes U+FFFD; digits that are none leave the letter. */
static const char *decode_unicode(struct marey__buf *buf, const char *p, const char *end)
{
    uint32_t c, low;
    if (!read_hex4(p, end, &c)) {
        marey__buf_put(buf, "u", 1);
        return p;
    }
    p += 4;
    const bool is_high = c >= 0xd800 && c < 0xdc00;
    if (is_high && end - p >= 2 && p[0] == '\\' && p[1] == 'u' && read_hex4(p + 2, end, &low) &&
        low >= 0xdc00 && low < 0xe000) {
        put_utf8(buf, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
        return p + 6;
    }
    put_utf8(buf, c >= 0xd800 && c < 0xe000 ? REPLACEMENT : c);
    return p;
}

void marey__json_decode(struct marey__buf *buf, const char *text, size_t len)
{
    static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
    if (len == 0)
        return;
    const char *p = text, *end = text + len;
    while (p < end) {
        const char *escape = memchr(p, '\\', (size_t)(end - p));
        if (escape == NULL || escape + 1 == end)
            break;
        marey__buf_put(buf, p, (size_t)(escape - p));
        const char c = escape[1];
        p = escape + 2;
        const char *letter = c != '\0' ? strchr(letters, c) : NULL;
        if (c == 'u')
            p = decode_unicode(buf, p, end);
        else
            marey__buf_put(buf, letter != NULL ? &meanings[letter - letters] : &c, 1);
    }
    marey__buf_put(buf, p, (size_t)(end - p));
}
