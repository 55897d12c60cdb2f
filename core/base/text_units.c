/* Numbers and texts as people read them. Plain ASCII, so that LANG=C shows it too. */
#include <inttypes.h>
#include <string.h>

#include "base/internal.h"

struct unit {
    const char *name;
    double size;
};

/* Three digits that count: 1.23, 12.3, 123. `limit` is where the next unit takes over. */
static void put_three_digits(struct marey__buf *buf, double value, const char *unit)
{
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    marey__buf_printf(buf, "%.*f %s", decimals, value, unit);
}

/*
 * In the largest unit that leaves at least one before the point; of the smallest only whole ones.
 */
static void put_in_units(struct marey__buf *buf, double value, const struct unit *units, size_t n)
{
    size_t u = 0;
    while (u + 1 < n && value >= units[u + 1].size * 0.9995)
        u++;
    if (u == 0)
        marey__buf_printf(buf, "%.0f %s", value, units[0].name);
    else
        put_three_digits(buf, value / units[u].size, units[u].name);
}

void marey__text_duration(struct marey__buf *buf, double ns, const char *unit)
{
    static const struct unit units[] = {{"ns", 1},  {"us", 1e3},        {"ms", 1e6},
                                        {"s", 1e9}, {"min", 60e9 * 10}, {"h", 3600e9 * 2}};
    static const struct unit fixed[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    if (unit == NULL) {
        /*
         * Minutes take over at ten of them and hours at two: people read 95 s and 90 min more
         * easily.
         */
        if (ns >= units[4].size)
            put_three_digits(buf, ns / (ns >= units[5].size ? 3600e9 : 60e9),
                             ns >= units[5].size ? "h" : "min");
        else
            put_in_units(buf, ns, units, 4);
        return;
    }
    for (size_t u = 0; u < MAREY__COUNT_OF(fixed); u++)
        if (strcmp(unit, fixed[u].name) == 0)
            marey__buf_printf(buf, "%.*f", u == 0 ? 0 : u == 3 ? 6 : 3, ns / fixed[u].size);
}

void marey__text_amount(struct marey__buf *buf, double n)
{
    static const struct unit units[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}};
    if (n < 10000)
        marey__buf_printf(buf, "%.0f", n);
    else
        put_in_units(buf, n, units, MAREY__COUNT_OF(units));
}

void marey__text_bytes(struct marey__buf *buf, double n)
{
    static const struct unit units[] = {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
    marey__buf_puts(buf, n < 0 ? "-" : "");
    put_in_units(buf, n < 0 ? -n : n, units, MAREY__COUNT_OF(units));
}

void marey__text_share(struct marey__buf *buf, double share)
{
    const double percent = share * 100;
    marey__buf_printf(buf, "%.*f %%",
                      percent < 0.995 && percent > 0 ? 2
                      : percent < 99.95              ? 1
                                                     : 0,
                      percent);
}

void marey__text_count_of(struct marey__buf *buf, uint64_t n, const char *thing)
{
    const size_t len = strlen(thing);
    const char *plural = len != 0 && thing[len - 1] == 's' ? "es" : "s";
    marey__text_amount(buf, (double)n);
    marey__buf_printf(buf, " %s%s", thing, n == 1 ? "" : plural);
}

/* ---- texts from outside ---- */

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t width_of(const char *text, size_t len)
{
    size_t width = 0;
    for (size_t i = 0; i < len; i++)
        width += !is_continuation(text[i]);
    return width;
}

/* The length in bytes of the first `n` characters. */
static size_t bytes_of(const char *text, size_t len, size_t n)
{
    size_t i = 0;
    while (i < len && (n > 0 || is_continuation(text[i])))
        n -= !is_continuation(text[i++]);
    return i;
}

static void put_cut(struct marey__buf *buf, const struct marey__buf *text, size_t full, size_t width)
{
    const char *dots = "...";
    const size_t kept = width > 3 ? width - 3 : 0;
    const size_t head = (kept + 1) / 2, tail = kept - head;
    const size_t tail_at = bytes_of(text->data, text->len, full - tail);
    marey__buf_put(buf, text->data, bytes_of(text->data, text->len, head));
    marey__buf_put(buf, dots, MAREY__MIN(width, (size_t)3));
    marey__buf_put(buf, text->data + tail_at, text->len - tail_at);
}

size_t marey__text_put(struct marey__buf *buf, const char *text, size_t len, size_t width)
{
    struct marey__buf escaped = {0};
    /* Nobody reads a name of a megabyte: what cannot be shown needs no escaping either. */
    enum { LONGEST = 4096 };
    len = MAREY__MIN(len, (size_t)LONGEST);
    const size_t needed = marey_text_escape(text, len, NULL, 0) + 1;
    char *const room = marey__buf_extend(&escaped, needed);
    if (room != NULL) {
        marey_text_escape(text, len, room, needed);
        escaped.len--; /* the NUL */
    }
    buf->failed |= escaped.failed;
    size_t full = width_of(escaped.data, escaped.len);
    if (width != 0 && full > width) {
        put_cut(buf, &escaped, full, width);
        full = width;
    } else {
        marey__buf_put(buf, escaped.data, escaped.len);
    }
    marey__buf_fini(&escaped);
    return full;
}

marey_status marey__buf_to_stream(struct marey__buf *buf, FILE *out)
{
    MAREY__TRY_MEMORY(!buf->failed);
    if (buf->len != 0 && fwrite(buf->data, 1, buf->len, out) != buf->len)
        return marey__fail_errno("write a table");
    buf->len = 0;
    return MAREY_OK;
}
