/* A growing byte buffer, and three encodings of text: UTF-8, JSON, and escaped for a terminal. */
#include <errno.h>
#include <unistd.h>

#include "base/internal.h"

void marey__buf_fini(struct marey__buf *buf)
{
    marey__free(buf->data);
    *buf = (struct marey__buf){0};
}

void *marey__buf_extend(struct marey__buf *buf, size_t len)
{
    if (MAREY_UNLIKELY(buf->failed || (len > buf->cap - buf->len &&
                                       (len > SIZE_MAX - buf->len ||
                                        !marey__grow(&buf->data, &buf->cap, buf->len + len, 1))))) {
        buf->failed = true;
        return NULL;
    }
    char *at = buf->data + buf->len;
    buf->len += len;
    return at;
}

void marey__buf_put(struct marey__buf *buf, const void *bytes, size_t len)
{
    if (len == 0)
        return;
    void *at = marey__buf_extend(buf, len);
    if (at != NULL)
        memcpy(at, bytes, len);
}

void marey__buf_puts(struct marey__buf *buf, const char *text)
{
    marey__buf_put(buf, text, strlen(text));
}

void marey__buf_put_u64(struct marey__buf *buf, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    marey__buf_put(buf, digits + at, sizeof digits - at);
}

void marey__buf_put_i64(struct marey__buf *buf, int64_t value)
{
    if (value < 0)
        marey__buf_put(buf, "-", 1);
    marey__buf_put_u64(buf, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void marey__buf_put_leb128(struct marey__buf *buf, uint64_t value)
{
    uint8_t out[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        out[n++] = (uint8_t)(value | 0x80);
    out[n++] = (uint8_t)value;
    marey__buf_put(buf, out, n);
}

bool marey__take_leb128(const uint8_t **at, const uint8_t *end, uint64_t *number)
{
    *number = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        const uint8_t byte = *(*at)++;
        if (shift == 63 && byte > 1)
            return false;
        *number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

void marey__buf_printf(struct marey__buf *buf, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char small[256];
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(small, sizeof small, fmt, args);
    if (n >= 0 && (size_t)n < sizeof small) {
        marey__buf_put(buf, small, (size_t)n);
    } else if (n >= 0) {
        char *at = marey__buf_extend(buf, (size_t)n + 1);
        if (at != NULL) {
            vsnprintf(at, (size_t)n + 1, fmt, again);
            buf->len--;
        }
    }
    va_end(again);
    va_end(args);
}

size_t marey__utf8_length(const char *text, size_t len)
{
    const unsigned char *const s = (const unsigned char *)text;
    static const struct {
        unsigned char lead_lo, lead_hi, second_lo, second_hi, n;
    } forms[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t f = 0; f < MAREY__COUNT_OF(forms); f++) {
        if (s[0] < forms[f].lead_lo || s[0] > forms[f].lead_hi)
            continue;
        const size_t n = forms[f].n;
        if (n == 1)
            return 1;
        if (len < n || s[1] < forms[f].second_lo || s[1] > forms[f].second_hi)
            return 0;
        for (size_t i = 2; i < n; i++)
            if ((s[i] & 0xc0) != 0x80)
                return 0;
        return n;
    }
    return 0;
}

void marey__append(char *out, size_t size, size_t *len, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(out + *len, size - *len, fmt, args);
    va_end(args);
    if (n > 0)
        *len = MAREY__MIN(*len + (size_t)n, size - 1);
}

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void marey__utf8_put(struct marey__buf *buf, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t plain = i;
        while (plain < len && (unsigned char)text[plain] < 0x80)
            plain++;
        marey__buf_put(buf, text + i, plain - i);
        i = plain;
        if (i == len)
            break;
        const size_t n = marey__utf8_length(text + i, len - i);
        if (n == 0)
            marey__buf_puts(buf, REPLACEMENT);
        else
            marey__buf_put(buf, text + i, n);
        i += n == 0 ? 1 : n;
    }
}

void marey__utf8_put_char(struct marey__buf *buf, uint32_t c)
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

size_t marey__utf8_copy(const char *text, size_t len, char *to, size_t cap)
{
    struct marey__buf valid MAREY__FINALLY(marey__buf_fini) = {0};
    size_t n = 0;
    marey__utf8_put(&valid, text, len);
    while (!valid.failed && n < valid.len) {
        const size_t step = marey__utf8_length(valid.data + n, valid.len - n);
        if (step == 0 || n + step >= cap)
            break;
        n += step;
    }
    if (n > 0)
        memcpy(to, valid.data, n);
    if (cap > 0)
        to[n] = '\0';
    return n;
}

void marey__json_put(struct marey__buf *buf, const char *text, size_t len)
{
    marey__buf_puts(buf, "\"");
    for (size_t i = 0; i < len;) {
        const unsigned char c = (unsigned char)text[i];
        const size_t n = marey__utf8_length(text + i, len - i);
        if (n == 0)
            marey__buf_puts(buf, "\\ufffd");
        else if (c == '"' || c == '\\')
            marey__buf_printf(buf, "\\%c", c);
        else if (c == '\n')
            marey__buf_puts(buf, "\\n");
        else if (c < 0x20 || c == 0x7f)
            marey__buf_printf(buf, "\\u%04x", c);
        else
            marey__buf_put(buf, text + i, n);
        i += n == 0 ? 1 : n;
    }
    marey__buf_puts(buf, "\"");
}

/* Characters that a terminal interprets or reorders: C0 and C1 controls, DEL, line separators, direction marks. */
static bool is_unsafe(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* Decodes a well-formed sequence of `n` bytes. Unsafe characters have at most 3. */
static uint32_t decode(const char *text, size_t n)
{
    const unsigned char *const s = (const unsigned char *)text;
    return n == 1   ? s[0]
           : n == 2 ? (uint32_t)(s[0] & 0x1f) << 6 | (s[1] & 0x3f)
           : n == 3 ? (uint32_t)(s[0] & 0x0f) << 12 | (uint32_t)(s[1] & 0x3f) << 6 | (s[2] & 0x3f)
                    : UINT32_MAX;
}

/* Writes the first character of `text`, escaped for a terminal, into `spelled`. Returns the bytes of `text` consumed. */
static size_t spell(const char *text, size_t len, char spelled[8])
{
    const size_t n = marey__utf8_length(text, len);
    const uint32_t c = n != 0 ? decode(text, n) : 0;
    if (n == 0)
        snprintf(spelled, 8, REPLACEMENT);
    else if (c == '\n' || c == '\t')
        snprintf(spelled, 8, c == '\n' ? "\\n" : "\\t");
    else if (is_unsafe(c))
        snprintf(spelled, 8, c < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)c);
    else
        memcpy(mempcpy(spelled, text, n), "", 1);
    return n != 0 ? n : 1;
}

size_t marey_text_escape(const char *text, size_t len, char *into, size_t size)
{
    size_t used = 0, needed = 0;
    for (size_t i = 0; i < len;) {
        char spelled[8];
        i += spell(text + i, len - i, spelled);
        const size_t n = strlen(spelled);
        if (used == needed && size > n && used < size - n) { /* otherwise truncated here */
            memcpy(into + used, spelled, n);
            used += n;
        }
        needed += n;
    }
    if (size != 0)
        into[used] = '\0';
    return needed;
}

ssize_t marey__read_all(int fd, void *to, size_t len, off_t at)
{
    size_t done = 0;
    while (done < len) {
        char *const next = (char *)to + done;
        const ssize_t n =
            at < 0 ? read(fd, next, len - done) : pread(fd, next, len - done, at + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

static bool write_all(int fd, const char *at, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (n == 0)
                errno = ENOSPC;
            return false;
        }
        at += n;
        len -= (size_t)n;
    }
    return true;
}

bool marey__write_all(int fd, const void *bytes, size_t len)
{
    sigset_t before;
    marey__size_limit_begin(&before);
    const bool is_written = write_all(fd, bytes, len);
    marey__size_limit_end(&before);
    return is_written;
}

size_t marey__phase_prefix(const char *text, size_t len)
{
    static const char *const prefixes[] = {"marey:", "kymo:"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        const size_t n = strlen(prefixes[i]);
        if (len > n && memcmp(text, prefixes[i], n) == 0)
            return n;
    }
    return 0;
}
