/*
 * Decimal numbers in files: as integers, computed from the digits, because a time of 1712195495505582.988 microseconds
 * has more digits than a double holds; and as the nearest double, always.
 *
 * For a double, the digits become an integer w and a power of ten. If both are exact doubles, one operation rounds
 * correctly. Otherwise w is multiplied by the leading 128 bits of the power (Eisel and Lemire): the true product is at
 * most two units of its 128th bit larger, and it is rounded unless that could change the result. The remaining cases
 * (one number in ten billion, subnormals, more than 19 digits) go to strtod.
 */
#include <math.h>

#include "codec/internal.h"

enum { MAX_DIGITS = 19 }; /* these always fit into 64 bits */

/* Whether eight bytes are digits, and their value. */
static inline bool all_digits(uint64_t word)
{
    return ((word & UINT64_C(0xf0f0f0f0f0f0f0f0)) |
            ((word + UINT64_C(0x0606060606060606)) & UINT64_C(0xf0f0f0f0f0f0f0f0)) >> 4) ==
           UINT64_C(0x3333333333333333);
}

static inline uint32_t eight_digits(uint64_t word)
{
    word = (word & UINT64_C(0x0f0f0f0f0f0f0f0f)) * 2561 >> 8;
    word = (word & UINT64_C(0x00ff00ff00ff00ff)) * 6553601 >> 16;
    return (uint32_t)((word & UINT64_C(0x0000ffff0000ffff)) * UINT64_C(42949672960001) >> 32);
}

static inline const char *take_digits(const char *p, uint64_t *digits)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    while (all_digits(word)) {
        *digits = *digits * 100000000 + eight_digits(word);
        p += 8;
        memcpy(&word, p, sizeof word);
    }
    for (; marey__is_digit(*p); p++)
        *digits = *digits * 10 + (uint64_t)(*p - '0');
    return p;
}

/* Parses an exponent after the "e", up to `end` (NULL: up to a byte that is not a digit). NULL if there are no digits. */
static const char *take_exponent(const char *p, const char *end, int64_t *exponent)
{
    const bool has_sign = p != end && (*p == '-' || *p == '+'), is_negative = has_sign && *p == '-';
    const char *const first = p + has_sign;
    int64_t value = 0;
    for (p = first; p != end && marey__is_digit(*p); p++)
        value = value < 1000000 ? value * 10 + (*p - '0') : value;
    *exponent += is_negative ? -value : value;
    return p > first ? p : NULL;
}

/* Powers of ten that are exact doubles. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { EXACT_POWER = 22 };

/* digits * 10^exponent, not 0; false if undecided. */
static bool by_product(uint64_t digits, int64_t exponent, double *out)
{
    if (exponent < MAREY__POWER_MIN || exponent > 308)
        return false;
    const int shift = __builtin_clzll(digits);
    const struct marey__power *const power = &marey__powers()[exponent - MAREY__POWER_MIN];
    const uint64_t w = digits << shift;
    const unsigned __int128 low = (unsigned __int128)w * power->low;
    const unsigned __int128 product = (unsigned __int128)w * power->high + (uint64_t)(low >> 64);
    /* 53 bits, a rounding bit, and the rest: 74 bits, or 73 if the first bit is 0. */
    const int is_high = (int)(product >> 127);
    const int n_rest = 73 + is_high;
    const unsigned __int128 one = 1, mask = (one << n_rest) - 1, rest = product & mask;
    if (rest == 0 || rest >= mask - 1)
        return false;
    uint64_t mantissa = (uint64_t)(product >> n_rest); /* 54 bits */
    mantissa = (mantissa + (mantissa & 1)) >> 1;       /* the rest is not 0, so there are no ties */
    int64_t binary = marey__log2_of_power((int32_t)exponent) + 63 - shift + is_high + 1023;
    if (mantissa >> 53 != 0) {
        mantissa >>= 1;
        binary++;
    }
    if (binary <= 0 || binary >= 2047)
        return false;
    const uint64_t bits = (uint64_t)binary << 52 | (mantissa & ((UINT64_C(1) << 52) - 1));
    memcpy(out, &bits, sizeof *out);
    return true;
}

enum { KEPT_DIGITS = 800, PLAIN_ROOM = KEPT_DIGITS + 32 };

/*
 * Rewrites a number for strtod in any locale: without a point, which an exponent replaces. 767 digits decide between
 * any two doubles; a single digit stands for those beyond.
 */
static void write_plain(char *plain, const char *text, const char *end, int64_t exponent)
{
    size_t n = 0;
    bool is_fraction = false, is_more = false;
    for (const char *p = text; p < end; p++) {
        if (*p == '.') {
            is_fraction = true;
        } else if (n < KEPT_DIGITS) {
            exponent -= is_fraction;
            plain[n] = *p;
            n += n > 0 || *p != '0';
        } else {
            exponent += !is_fraction;
            is_more |= *p != '0';
        }
    }
    if (is_more) {
        plain[n++] = '1';
        exponent--;
    }
    snprintf(plain + n, PLAIN_ROOM - n, n > 0 ? "e%lld" : "0", (long long)exponent);
}

static double by_library(const char *text, const char *end, int64_t exponent)
{
    char plain[PLAIN_ROOM];
    write_plain(plain, text, end, exponent);
    return strtod(plain, NULL);
}

/* The nearest double to digits * 10^exponent; false if strtod has to decide. */
static inline bool value_of(uint64_t digits, int64_t exponent, double *out)
{
    if (digits < UINT64_C(1) << 53) {
        if (exponent >= -EXACT_POWER && exponent <= 0) {
            *out = (double)digits / powers[-exponent];
            return true;
        }
        if (digits == 0 || (exponent > 0 && exponent <= EXACT_POWER)) {
            *out = (double)digits * powers[digits == 0 ? 0 : exponent];
            return true;
        }
    }
    return by_product(digits, exponent, out);
}

/* Whether the digits are at most UINT64_MAX. */
static bool fits(const char *digits, size_t n)
{
    return n <= MAX_DIGITS || (n == MAX_DIGITS + 1 && memcmp(digits, "18446744073709551615", n) <= 0);
}

static size_t zeros_in_front(const char *text)
{
    size_t n = 0;
    for (; *text == '0' || *text == '.'; text++)
        n += *text == '0';
    return n;
}

const char *marey__number_read(const char *p, struct marey__number *out)
{
    out->is_negative = *p == '-';
    p += out->is_negative;
    const char *const first = p;
    uint64_t digits = 0;
    p = take_digits(p, &digits);
    if (p == first || (*first == '0' && p - first > 1))
        return NULL;
    size_t n_digits = (size_t)(p - first);
    int64_t exponent = 0, exponent_of_text = 0;
    out->is_integer = *p != '.' && (*p | 0x20) != 'e' && fits(first, n_digits);
    if (*p == '.') {
        const char *const point = p++;
        p = take_digits(p, &digits);
        if (p == point + 1)
            return NULL;
        exponent = point + 1 - p;
        n_digits += (size_t)(p - point - 1);
    }
    const char *const end_of_digits = p;
    if ((*p | 0x20) == 'e') {
        p = take_exponent(p + 1, NULL, &exponent_of_text);
        if (p == NULL)
            return NULL;
        exponent += exponent_of_text;
    }
    out->digits = digits;
    if (MAREY_UNLIKELY(n_digits > MAX_DIGITS))
        n_digits -= zeros_in_front(first);
    double value;
    if (n_digits > MAX_DIGITS || !value_of(digits, exponent, &value))
        value = by_library(first, end_of_digits, exponent_of_text);
    out->value = out->is_negative ? -value : value;
    return p;
}

float marey__number_read_f32(const char *p)
{
    char plain[PLAIN_ROOM];
    const bool is_negative = *p == '-';
    const char *const first = p + is_negative;
    const char *end = first;
    int64_t exponent = 0;
    while (marey__is_digit(*end) || *end == '.')
        end++;
    if ((*end | 0x20) == 'e')
        (void)take_exponent(end + 1, NULL, &exponent);
    write_plain(plain, first, end, exponent);
    const float value = strtof(plain, NULL);
    return is_negative ? -value : value;
}

/* ---- numbers in sloppy notation: 007, .5, 1., +1 ---- */

/* `digits` times ten to the power of `exponent`. */
struct decimal {
    bool is_negative;
    bool is_long; /* not all digits fit into `digits` */
    uint64_t digits;
    int64_t exponent;
    const char *first, *end; /* the digits as written, including the point */
    int64_t written;         /* the exponent as written */
};

/* Adds digits from `p` on; those that no longer fit, too small to matter, change the exponent instead. */
static const char *add_digits(struct decimal *d, const char *p, const char *end, bool is_fraction)
{
    for (; p < end && marey__is_digit(*p); p++) {
        const uint64_t digit = (uint64_t)(*p - '0');
        if (d->digits <= (UINT64_MAX - 9) / 10) {
            d->digits = d->digits * 10 + digit;
            d->exponent -= is_fraction;
        } else {
            d->exponent += !is_fraction;
            d->is_long = true;
        }
    }
    return p;
}

static bool read_decimal(const char *p, const char *end, struct decimal *d)
{
    *d = (struct decimal){0};
    if (p < end && (*p == '-' || *p == '+'))
        d->is_negative = *p++ == '-';
    d->first = p;
    p = add_digits(d, p, end, false);
    const bool has_point = p < end && *p == '.';
    if (has_point)
        p = add_digits(d, p + 1, end, true);
    d->end = p;
    if (p == d->first + has_point)
        return false;
    if (p < end && (*p | 0x20) == 'e')
        p = take_exponent(p + 1, end, &d->written);
    d->exponent += d->written;
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
        d.digits = d.digits / 10 + (d.digits % 10 >= 5); /* round by the last digit */
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

bool marey__decimal_double(const char *text, size_t len, double *out)
{
    struct decimal d;
    double value;
    if (!read_decimal(text, text + len, &d))
        return read_word(text, len, out);
    if (d.is_long || !value_of(d.digits, d.exponent, &value))
        value = by_library(d.first, d.end, d.written);
    *out = d.is_negative ? -value : value;
    return true;
}
