/*
 * Numbers and strings for display: the one place that chooses units and digits. Plain ASCII, for LANG=C too.
 */
#include <math.h>
#include <time.h>

#include "base/internal.h"

struct unit {
    const char *name;
    double size;
};

/* The decimals for three significant digits: 1.23, 12.3, 123. */
static int decimals_of(double value)
{
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

/* Uses the largest unit in which the value is at least one; no decimals in the smallest unit. */
static void put_in_units(struct marey__buf *buf, double value, const struct unit *units, size_t n)
{
    size_t u = 0;
    while (u + 1 < n && value >= units[u + 1].size * 0.9995)
        u++;
    const double scaled = value / units[u].size;
    marey__buf_printf(buf, "%.*f %s", u == 0 ? 0 : decimals_of(scaled), scaled, units[u].name);
}

void marey__text_duration(struct marey__buf *buf, double ns, const char *unit)
{
    static const struct unit units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    static const struct unit minutes[] = {{"", 0}, {"min", 60e9}}, hours[] = {{"", 0}, {"h", 3600e9}};
    /* Minutes start at ten and hours at two: 95 s and 90 min are easier to read. */
    if (unit == NULL && ns >= 600e9)
        put_in_units(buf, ns, ns >= 7200e9 ? hours : minutes, 2);
    else if (unit == NULL)
        put_in_units(buf, ns, units, MAREY__COUNT_OF(units));
    for (size_t u = 0; unit != NULL && u < MAREY__COUNT_OF(units); u++)
        if (strcmp(unit, units[u].name) == 0)
            marey__buf_printf(buf, "%.*f", u == 0 ? 0 : u == 3 ? 6 : 3, ns / units[u].size);
}

void marey__text_amount(struct marey__buf *buf, double n)
{
    static const struct unit units[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}};
    if (n < 10000)
        marey__buf_printf(buf, "%.0f", n);
    else
        put_in_units(buf, n, units, MAREY__COUNT_OF(units));
}

void marey__text_rate(struct marey__buf *buf, double rate, const char *thing)
{
    if (rate < 10000)
        marey__buf_printf(buf, "%.*f", decimals_of(rate), rate);
    else
        marey__text_amount(buf, rate);
    marey__buf_printf(buf, " %s/s", thing);
}

void marey__text_bytes(struct marey__buf *buf, double n)
{
    static const struct unit units[] = {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
    marey__buf_puts(buf, n < 0 ? "-" : "");
    put_in_units(buf, fabs(n), units, MAREY__COUNT_OF(units));
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

void marey__text_real(struct marey__buf *buf, double value)
{
    const double size = fabs(value);
    if (size < 1e15 && (size >= 1000 || value == floor(value)))
        marey__buf_printf(buf, "%.0f", value);
    else
        marey__buf_printf(buf, size > 0.999 && size < 1 ? "%.6g" : "%.4g", value);
}

void marey__text_joules(struct marey__buf *buf, double joules)
{
    static const struct unit units[] = {{"J", 1}, {"kJ", 1e3}, {"MJ", 1e6}};
    size_t u = 0;
    while (u + 1 < MAREY__COUNT_OF(units) && joules >= units[u + 1].size * 0.99995)
        u++;
    marey__text_real(buf, joules / units[u].size);
    marey__buf_printf(buf, " %s", units[u].name);
}

void marey__text_count_of(struct marey__buf *buf, uint64_t n, const char *thing)
{
    const size_t len = strlen(thing);
    const char *plural = len != 0 && thing[len - 1] == 's' ? "es" : "s";
    marey__text_amount(buf, (double)n);
    marey__buf_printf(buf, " %s%s", thing, n == 1 ? "" : plural);
}

static void put_date(struct marey__buf *buf, double unix_ns)
{
    const time_t seconds = (time_t)(unix_ns / 1e9);
    struct tm tm;
    char text[40];
    if (localtime_r(&seconds, &tm) != NULL &&
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) != 0)
        marey__buf_puts(buf, text);
}

void marey__text_in_unit(struct marey__buf *buf, double value, enum marey_unit unit)
{
    if (unit == MAREY_UNIT_NS)
        marey__text_duration(buf, value, NULL);
    else if (unit == MAREY_UNIT_SHARE)
        marey__text_share(buf, value);
    else if (unit == MAREY_UNIT_BYTES)
        marey__text_bytes(buf, value);
    else if (unit == MAREY_UNIT_UNIX_NS)
        put_date(buf, value);
    else
        marey__text_real(buf, value);
}

const char *marey_text_number(double value, enum marey_unit unit, char *into, size_t size)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    marey__text_in_unit(&text, value, unit);
    snprintf(into, size, "%.*s", text.failed ? 0 : (int)text.len, text.data);
    return into;
}

/* ---- foreign strings ---- */

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
    struct marey__buf escaped MAREY__FINALLY(marey__buf_fini) = {0};
    /* Limit the work for absurdly long names: the rest is not displayed anyway. */
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
