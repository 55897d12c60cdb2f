/* Text in XML. */
#include "present/draw/internal.h"

/* What stands for a byte of valid UTF-8; NULL: itself. */
static const char *escape_of(unsigned char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    case '\t':
    case '\n':
        return NULL;
    default:
        return c < 0x20 ? "\xef\xbf\xbd" : NULL;
    }
}

/* U+FFFE and U+FFFF are characters of UTF-8 and none of XML. */
static bool is_no_character(const char *text, size_t left)
{
    return left >= 3 && (unsigned char)text[0] == 0xef && (unsigned char)text[1] == 0xbf &&
           (unsigned char)text[2] >= 0xbe;
}

void marey__xml_put(struct marey__buf *buf, const char *text, size_t len)
{
    struct marey__buf valid = {0};
    marey__utf8_put(&valid, text, len);
    for (size_t i = 0; i < valid.len; i++) {
        const char *escape = escape_of((unsigned char)valid.data[i]);
        if (is_no_character(valid.data + i, valid.len - i)) {
            marey__buf_puts(buf, "\xef\xbf\xbd");
            i += 2;
        } else if (escape != NULL) {
            marey__buf_puts(buf, escape);
        } else {
            marey__buf_put(buf, &valid.data[i], 1);
        }
    }
    buf->failed |= valid.failed;
    marey__buf_fini(&valid);
}
