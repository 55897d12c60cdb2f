/*
 * Numbers as files write them. A time of 1712195495505582.988 microseconds has more digits than a double holds, so
 * integers are made of the digits themselves.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codec/codec_internal.h"

/* Digits with a decimal point taken out: `digits` times ten to the power of `exponent`. */
struct decimal {
    bool is_negative;
    uint64_t digits;
    int64_t exponent;
};

enum { MAX_EXPONENT = 1000000 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Add digits from `p` on; those that no longer fit move the exponent instead, and are too small to matter. */
static const char *take_digits(struct decimal *d, const char *p, const char *end, bool is_fraction)
{
    for (; p < end && is_digit(*p); p++) {
        const uint64_t digit = (uint64_t)(*p - '0');
        if (d->digits <= (UINT64_MAX - 9) / 10) {
            d->digits = d->digits * 10 + digit;
            d->exponent -= is_fraction;
        } else {
            d->exponent += !is_fraction;
        }
    }
    return p;
}

static const char *take_exponent(struct decimal *d, const char *p, const char *end)
{
    bool is_negative = false;
    int64_t exponent = 0;
    if (p < end && (*p == '-' || *p == '+'))
        is_negative = *p++ == '-';
    if (p == end)
        return NULL;
    for (; p < end && is_digit(*p); p++)
        exponent = exponent < MAX_EXPONENT ? exponent * 10 + (*p - '0') : exponent;
    d->exponent += is_negative ? -exponent : exponent;
    return p;
}

static bool read_decimal(const char *p, const char *end, struct decimal *d)
{
    *d = (struct decimal){0};
    if (p < end && (*p == '-' || *p == '+'))
        d->is_negative = *p++ == '-';
    const char *first = p;
    p = take_digits(d, p, end, false);
    size_t n_digits = (size_t)(p - first);
    if (p < end && *p == '.') {
        first = ++p;
        p = take_digits(d, p, end, true);
        n_digits += (size_t)(p - first);
    }
    if (n_digits == 0)
        return false;
    if (p < end && (*p | 0x20) == 'e')
        p = take_exponent(d, p + 1, end);
    return p == end;
}

bool marey__decimal(const char *text, size_t len, int scale, int64_t *out)
{
    struct decimal d;
    if (!read_decimal(text, text + len, &d))
        return false;
    d.exponent += scale;
    while (d.exponent < -1 && d.digits > 0) {
        d.digits /= 10;
        d.exponent++;
    }
    if (d.exponent == -1)
        d.digits = d.digits / 10 + (d.digits % 10 >= 5); /* the last one rounds */
    for (; d.exponent > 0 && d.digits > 0 && d.digits <= INT64_MAX; d.exponent--)
        d.digits = d.digits <= INT64_MAX / 10 ? d.digits * 10 : UINT64_MAX;
    if (d.digits > INT64_MAX)
        return false;
    *out = d.is_negative ? -(int64_t)d.digits : (int64_t)d.digits;
    return true;
}

static bool read_word(const char *text, size_t len, double *out)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {
        {"NaN", NAN},      {"nan", NAN},        {"Infinity", INFINITY}, {"-Infinity", -INFINITY},
        {"inf", INFINITY}, {"-inf", -INFINITY}, {"-nan", NAN},          {"-NaN", NAN}};
    for (size_t i = 0; i < MAREY__COUNT_OF(words); i++)
        if (strlen(words[i].word) == len && memcmp(words[i].word, text, len) == 0) {
            *out = words[i].value;
            return true;
        }
    return false;
}

/* Powers of ten that a double holds exactly. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

bool marey__decimal_double(const char *text, size_t len, double *out)
{
    struct decimal d;
    if (!read_decimal(text, text + len, &d))
        return read_word(text, len, out);
    /* Both are exact, so their product or quotient is the nearest double. */
    const int64_t exponent = d.exponent, max = (int64_t)MAREY__COUNT_OF(powers) - 1;
    double value;
    if (d.digits < UINT64_C(1) << 53 && exponent >= -max && exponent <= max) {
        value = exponent < 0 ? (double)d.digits / powers[-exponent]
                             : (double)d.digits * powers[exponent];
    } else {
        char plain[64]; /* without a point, which a locale may write otherwise */
        snprintf(plain, sizeof plain, "%llue%lld", (unsigned long long)d.digits, (long long)exponent);
        value = strtod(plain, NULL);
    }
    *out = d.is_negative ? -value : value;
    return true;
}
