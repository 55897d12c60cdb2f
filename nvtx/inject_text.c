/* Names as strings: their varying part, and wide characters. */
#include <ctype.h>
#include <string.h>

#include "inject.h"

/* ", seq = 7": a word and an equals sign surrounded by blanks. `at` is the comma. */
static bool is_argument(const char *at, const char *end)
{
    const char *p = at + 2;
    if (end - at < 5 || at[1] != ' ')
        return false;
    while (p < end && (isalnum((unsigned char)*p) || *p == '_'))
        p++;
    return p > at + 2 && end - p >= 3 && p[0] == ' ' && p[1] == '=' && p[2] == ' ';
}

size_t inject_text_cut(const char *text, size_t len)
{
    const char *const end = text + len;
    for (const char *at = text; (at = memchr(at, ',', (size_t)(end - at))) != NULL; at++)
        if (is_argument(at, end))
            return (size_t)(at - text);
    return len;
}

/* Encodes `c`; invalid characters become U+FFFD. */
static size_t encode(uint32_t c, char into[4])
{
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        c = 0xfffd;
    if (c < 0x80) {
        into[0] = (char)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        into[i] = (char)(0x80 | (c & 0x3f));
    into[0] = (char)((0xf00 >> n) | c);
    return n;
}

void inject_text_narrow(const wchar_t *wide, char into[INJECT_TEXT_MAX])
{
    size_t len = 0;
    for (; wide != NULL && *wide != L'\0'; wide++) {
        char bytes[4];
        const size_t n = encode((uint32_t)*wide, bytes);
        if (len + n >= INJECT_TEXT_MAX)
            break;
        memcpy(into + len, bytes, n);
        len += n;
    }
    into[len] = '\0';
}

size_t inject_text_fold(const char *text, size_t len, char into[INJECT_TEXT_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < len && n < INJECT_TEXT_MAX - 1; i++) {
        const bool is_digit = isdigit((unsigned char)text[i]);
        if (!is_digit)
            into[n++] = text[i];
        else if (i == 0 || !isdigit((unsigned char)text[i - 1]))
            into[n++] = '#';
    }
    into[n] = '\0';
    return n;
}
