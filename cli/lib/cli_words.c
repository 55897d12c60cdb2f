/* Messages and strings: for stderr, for the shell, for display. */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/cli.h"

/* Messages contain foreign arguments and names: escape control characters. */
int cli_fail(const char *fmt, ...)
{
    char raw[8192], text[8192];
    va_list args;
    va_start(args, fmt);
    vsnprintf(raw, sizeof raw, fmt, args);
    va_end(args);
    marey_text_escape(raw, strlen(raw), text, sizeof text);
    fprintf(stderr, "marey: %s\n", text);
    return CLI_BAD;
}

int cli_status(marey_status status)
{
    return status == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

void cli_say_left_out(uint64_t n, const char *thing, const char *why)
{
    if (n != 0)
        cli_say("left out %" PRIu64 " %s%s: %s", n, thing, n == 1 ? "" : "s", why);
}

/* ---- suggesting a word ---- */

#define WORD_MAX 32

/* The edit distance between `a` and `b`; long words count as distant. */
static size_t distance(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    size_t row[WORD_MAX + 1];
    if (n > WORD_MAX || m > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            const size_t moved = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = moved < replaced ? moved : replaced;
        }
    }
    return row[m];
}

const char *cli_nearest(const char *word, const void *words, size_t n, size_t stride)
{
    const char *nearest = NULL;
    size_t best = strlen(word) / 2 + 1; /* at least half of it must match */
    for (size_t i = 0; i < n; i++) {
        const char *candidate = *(const char *const *)((const char *)words + i * stride);
        const size_t d = distance(word, candidate);
        if (d < best) {
            best = d;
            nearest = candidate;
        }
    }
    return nearest;
}

/* ---- for the shell and for display ---- */

/* $'...': escapes control characters in a form that the shell decodes. */
static const char *quote_bytes(const char *path, char *into)
{
    char *p = stpcpy(into, "$'");
    for (const char *c = path; *c != '\0'; c++) {
        if (*c >= ' ' && *c <= '~' && *c != '\'' && *c != '\\')
            *p++ = *c;
        else
            p += sprintf(p, "\\x%02x", (unsigned char)*c);
    }
    stpcpy(p, "'");
    return into;
}

const char *cli_quote(const char *path, char *into, size_t size)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=:,@%";
    const size_t len = strlen(path);
    if ((len > 0 && strspn(path, plain) == len) || len * 4 + 4 > size) {
        marey_text_escape(path, len, into, size);
        return into;
    }
    if (marey_text_escape(path, len, into, size) != len || memcmp(path, into, len) != 0)
        return quote_bytes(path, into);
    char *p = into;
    *p++ = '\'';
    for (const char *c = path; *c != '\0'; c++) {
        if (*c == '\'')
            p = stpcpy(p, "'\\''");
        else
            *p++ = *c;
    }
    *p++ = '\'';
    *p = '\0';
    return into;
}

const char *cli_short_path(const char *path)
{
    char cwd[PATH_MAX];
    const size_t len = getcwd(cwd, sizeof cwd) != NULL ? strlen(cwd) : 0;
    return len > 1 && strncmp(path, cwd, len) == 0 && path[len] == '/' ? path + len + 1 : path;
}

void cli_append(char *into, size_t size, const char *separator, const char *text)
{
    const size_t len = strlen(into);
    snprintf(into + len, size - len, "%s%s", len == 0 ? "" : separator, text);
}

const char *cli_next_word(const char **at, size_t *len)
{
    const char *const word = *at + strspn(*at, " ");
    *len = strcspn(word, " ");
    *at = word + *len;
    return *len != 0 ? word : NULL;
}

bool cli_ends_with(const char *text, const char *end, size_t len)
{
    const size_t n = strlen(text);
    return n >= len && memcmp(text + n - len, end, len) == 0;
}

const char *cli_env(const char *name)
{
    const char *const value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* The length of the one of `extensions` at the end of `name` (`len` bytes), unless it is the whole name; 0: none. */
static size_t find_extension(const char *name, size_t len, const char *extensions)
{
    size_t n;
    for (const char *word; (word = cli_next_word(&extensions, &n)) != NULL;)
        if (len > n && memcmp(name + len - n, word, n) == 0)
            return n;
    return 0;
}

const char *cli_stem(const char *path, char *into, size_t size, const char *otherwise)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    size_t start = len;
    while (start > 0 && path[start - 1] != '/')
        start--;
    path += start;
    len -= start;
    for (size_t n = 1; n != 0; len -= n) {
        n = find_extension(path, len, ".marey .kymo .klog .gz");
        for (size_t i = 0; n == 0 && marey_import_format_at(i) != NULL; i++)
            n = find_extension(path, len, marey_import_format_at(i)->extensions);
    }
    const bool is_name = strspn(path, "./") < len;
    snprintf(into, size, "%.*s", is_name ? (int)len : (int)strlen(otherwise),
             is_name ? path : otherwise);
    return into;
}

const char *cli_count(uint64_t n, char *into, size_t size)
{
    if (n < 1000)
        snprintf(into, size, "%llu", (unsigned long long)n);
    else if (n < 1000000)
        snprintf(into, size, "%llu,%03llu", (unsigned long long)(n / 1000),
                 (unsigned long long)(n % 1000));
    else if (n < 1000000000)
        snprintf(into, size, "%.1f million", (double)n / 1e6);
    else
        snprintf(into, size, "%.1f billion", (double)n / 1e9);
    return into;
}

/* ---- progress ---- */

void cli_progress(void *ctx, double share)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\rmarey: %s %3.0f %%", (const char *)ctx, share * 100);
}

void cli_progress_end(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

/* ---- properties of the terminal ---- */

bool cli_wants_color(FILE *out, const char *choice)
{
    if (strcmp(choice, "auto") != 0)
        return strcmp(choice, "always") == 0;
    const char *const term = getenv("TERM");
    return isatty(fileno(out)) && cli_env("NO_COLOR") == NULL && term != NULL &&
           strcmp(term, "dumb") != 0;
}

uint32_t cli_terminal_width(FILE *out)
{
    struct winsize size;
    if (!isatty(fileno(out)))
        return 0;
    return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 80;
}
