/* Escapes of JSON strings. */
#include "codec/internal.h"

enum { REPLACEMENT = 0xfffd };

static bool read_hex4(const char *p, const char *end, uint32_t *out)
{
    if (end - p < 4)
        return false;
    *out = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned digit = marey__hex_value(p[i]);
        if (digit == 16)
            return false;
        *out = *out << 4 | digit;
    }
    return true;
}

/* After "\u". Returns the position after it, NULL if the four digits are missing. */
static const char *decode_unicode(struct marey__buf *buf, const char *p, const char *end,
                                  unsigned rules)
{
    uint32_t c, low;
    if (!read_hex4(p, end, &c))
        return NULL;
    p += 4;
    const bool is_high = c >= 0xd800 && c < 0xdc00;
    if (is_high && end - p >= 2 && p[0] == '\\' && p[1] == 'u' && read_hex4(p + 2, end, &low) &&
        low >= 0xdc00 && low < 0xe000) {
        marey__utf8_put_char(buf, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
        return p + 6;
    }
    const bool is_half = c >= 0xd800 && c < 0xe000 && (rules & MAREY__JSON_SURROGATES) == 0;
    marey__utf8_put_char(buf, is_half ? REPLACEMENT : c);
    return p;
}

bool marey__json_decode(struct marey__buf *buf, const char *text, size_t len, unsigned rules)
{
    static const char letters[] = "bfnrt\"\\/", meanings[] = "\b\f\n\r\t\"\\/";
    if (len == 0)
        return true;
    const char *p = text, *end = text + len, *escape;
    while (p < end && (escape = memchr(p, '\\', (size_t)(end - p))) != NULL && escape + 1 < end) {
        marey__buf_put(buf, p, (size_t)(escape - p));
        const char c = escape[1];
        const char *letter = c != '\0' ? strchr(letters, c) : NULL;
        p = c == 'u' ? decode_unicode(buf, escape + 2, end, rules) : NULL;
        if (p == NULL) {
            if (letter == NULL && (rules & MAREY__JSON_STRICT) != 0)
                return false;
            marey__buf_put(buf, letter != NULL ? &meanings[letter - letters] : &c, 1);
            p = escape + 2;
        }
    }
    marey__buf_put(buf, p, (size_t)(end - p));
    return true;
}
