/*
 * Parsers of text from the kernel and other programs: /proc, cgroups, mounts, `ldconfig -p`, answers of children. The
 * text is untrusted and may be truncated or empty. Every function takes a text and its length and never reads past it;
 * every output has a size.
 */
#include <errno.h>

#include "doctor/internal.h"

/* The next line, with `*len` excluding the newline; NULL if there is none. Advances `*at`. */
static const char *next_line(const char *text, size_t text_len, size_t *at, size_t *len)
{
    if (*at >= text_len)
        return NULL;
    const char *line = text + *at;
    const char *end = memchr(line, '\n', text_len - *at);
    *len = end != NULL ? (size_t)(end - line) : text_len - *at;
    *at += *len + 1;
    return line;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Copies without surrounding blanks, truncated to `size`. */
static void copy_trimmed(const char *text, size_t len, char *out, size_t size)
{
    while (len > 0 && is_blank(text[0])) {
        text++;
        len--;
    }
    while (len > 0 && is_blank(text[len - 1]))
        len--;
    const size_t kept = MAREY__MIN(len, size - 1);
    memcpy(out, text, kept);
    out[kept] = '\0';
}

/* The offset of the value in a line "key : value" or "key=value"; 0 for another key. */
static size_t value_offset(const char *line, size_t len, const char *key)
{
    size_t at = strlen(key);
    if (len <= at || memcmp(line, key, at) != 0)
        return 0;
    while (at < len && is_blank(line[at]))
        at++;
    return at < len && (line[at] == ':' || line[at] == '=') ? at + 1 : 0;
}

bool marey__parse_field(const char *text, size_t len, const char *key, char *out, size_t size)
{
    size_t at = 0, line_len;
    for (const char *line; (line = next_line(text, len, &at, &line_len)) != NULL;) {
        const size_t offset = value_offset(line, line_len, key);
        if (offset == 0)
            continue;
        copy_trimmed(line + offset, line_len - offset, out, size);
        return true;
    }
    return false;
}

bool marey__parse_hex_field(const char *text, size_t len, const char *key, uint64_t *out)
{
    char value[32], *end;
    if (!marey__parse_field(text, len, key, value, sizeof value) ||
        strspn(value, "0123456789abcdefABCDEF") != strlen(value) || value[0] == '\0')
        return false;
    errno = 0;
    const uint64_t number = strtoull(value, &end, 16);
    if (errno != 0 || *end != '\0')
        return false;
    *out = number;
    return true;
}

/* ---- mounts ---- */

/* The next word of a line; returns its length, 0 at the end. Advances `*at`. */
static size_t next_word(const char *line, size_t len, size_t *at, const char **word)
{
    while (*at < len && is_blank(line[*at]))
        (*at)++;
    const size_t from = *at;
    while (*at < len && !is_blank(line[*at]))
        (*at)++;
    *word = line + from;
    return *at - from;
}

static bool is_octal(const char *text, size_t len)
{
    return len >= 4 && text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' &&
           text[2] <= '7' && text[3] >= '0' && text[3] <= '7';
}

/* A path as in mounts, with \040 for a space. False if it does not fit. */
static bool unescape(const char *text, size_t len, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < len; n++) {
        if (n + 1 >= size)
            return false;
        const bool escaped = is_octal(text + i, len - i);
        out[n] =
            escaped
                ? (char)((text[i + 1] - '0') << 6 | (text[i + 2] - '0') << 3 | (text[i + 3] - '0'))
                : text[i];
        i += escaped ? 4 : 1;
    }
    out[n] = '\0';
    return true;
}

static bool holds(const char *point, const char *path)
{
    const size_t len = strlen(point);
    if (len == 0 || point[0] != '/')
        return false;
    if (len == 1)
        return path[0] == '/';
    return strncmp(point, path, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

bool marey__parse_mount(const char *text, size_t len, const char *path, struct marey__mount *out)
{
    size_t at = 0, line_len, longest = 0;
    char point[PATH_MAX];
    for (const char *line; (line = next_line(text, len, &at, &line_len)) != NULL;) {
        size_t word_at = 0, n;
        const char *word;
        next_word(line, line_len, &word_at, &word); /* the device */
        n = next_word(line, line_len, &word_at, &word);
        if (n == 0 || !unescape(word, n, point, sizeof point) || !holds(point, path) ||
            strlen(point) < longest)
            continue;
        longest = strlen(point);
        memcpy(out->point, point, longest + 1);
        n = next_word(line, line_len, &word_at, &word);
        copy_trimmed(word, n, out->type, sizeof out->type);
        n = next_word(line, line_len, &word_at, &word);
        copy_trimmed(word, n, out->options, sizeof out->options);
    }
    return longest > 0;
}

/* Whether `word` is in a comma-separated list. */
static bool has_word(const char *list, size_t len, const char *word)
{
    const size_t word_len = strlen(word);
    for (size_t at = 0; at <= len;) {
        const char *comma = memchr(list + at, ',', len - at);
        const size_t n = comma != NULL ? (size_t)(comma - list) - at : len - at;
        if (n == word_len && memcmp(list + at, word, n) == 0)
            return true;
        at += n + 1;
    }
    return false;
}

bool marey__mount_has(const struct marey__mount *mount, const char *word)
{
    return has_word(mount->options, strlen(mount->options), word);
}

/* ---- cgroups ---- */

bool marey__parse_cgroup(const char *text, size_t len, const char *controller, char *out, size_t size)
{
    size_t at = 0, line_len;
    for (const char *line; (line = next_line(text, len, &at, &line_len)) != NULL;) {
        /* "4:cpu,cpuacct:/path"; version 2 has no controllers: "0::/path". The path may contain colons. */
        const char *first = memchr(line, ':', line_len);
        if (first == NULL)
            continue;
        const char *names = first + 1;
        const size_t left = line_len - (size_t)(names - line);
        const char *second = memchr(names, ':', left);
        if (second == NULL)
            continue;
        const size_t names_len = (size_t)(second - names), path_len = left - names_len - 1;
        const bool fits =
            controller[0] == '\0' ? names_len == 0 : has_word(names, names_len, controller);
        if (!fits || path_len == 0 || path_len >= size || second[1] != '/')
            continue;
        memcpy(out, second + 1, path_len);
        out[path_len] = '\0';
        return true;
    }
    return false;
}

bool marey__parse_cpu_max(const char *text, size_t len, double *out)
{
    size_t at = 0;
    uint64_t quota, period;
    const char *word;
    size_t n = next_word(text, len, &at, &word);
    if (!marey__parse_number(word, n, &quota))
        return false;
    n = next_word(text, len, &at, &word);
    if (!marey__parse_number(word, n, &period) || period == 0 || quota == 0)
        return false;
    *out = (double)quota / (double)period;
    return true;
}

/* ---- ldconfig ---- */

bool marey__parse_ldconfig(const char *text, size_t len, size_t *at, const char *name, char *path,
                           size_t size)
{
    size_t line_len;
    for (const char *line; (line = next_line(text, len, at, &line_len)) != NULL;) {
        size_t word_at = 0;
        const char *word;
        const size_t n = next_word(line, line_len, &word_at, &word);
        if (n != strlen(name) || memcmp(word, name, n) != 0)
            continue;
        const char *arrow = memmem(line, line_len, "=> ", 3);
        if (arrow == NULL)
            continue;
        const size_t path_len = line_len - (size_t)(arrow + 3 - line);
        if (path_len == 0 || path_len >= size || arrow[3] != '/')
            continue;
        memcpy(path, arrow + 3, path_len);
        path[path_len] = '\0';
        return true;
    }
    return false;
}
