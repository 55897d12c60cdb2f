/*
 * Decimal numbers as doubles: the nearest one, always.
 *
 * Digits become an integer w and a power of ten. Where both are exact doubles, one operation rounds right. Else w times the
 * leading 128 bits of the power is looked at, as Eisel and Lemire do: the true product lies at most two units of
 * its 128th bit above, and unless that could change how it is rounded, it is rounded. What is left (a number in
 * ten thousand millions, subnormal ones, over 19 digits) goes to strtod.
 */
#include <stdio.h>
#include <string.h>

#include "tensor/dumpfile/dumpfile_internal.h"
#include "tensor/kernels/number_text.h"

enum { MAX_DIGITS = 19 }; /* any so many fit into 64 bits */

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Whether eight bytes are digits, and the number that they are. */
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
    for (; is_digit(*p); p++)
        *digits = *digits * 10 + (uint64_t)(*p - '0');
    return p;
}

static const char *take_exponent(const char *p, int64_t *exponent)
{
    const bool is_negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    if (!is_digit(*p))
        return NULL;
    int64_t value = 0;
    for (; is_digit(*p); p++)
        value = value < 1000000 ? value * 10 + (*p - '0') : value;
    *exponent += is_negative ? -value : value;
    return p;
}

/* Powers of ten that a double holds exactly. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { EXACT_POWER = 22 };

/* digits * 10^exponent, not 0; false where it cannot be told from here. */
static bool by_product(uint64_t digits, int64_t exponent, double *out)
{
    if (exponent < MAREY__POWER_MIN || exponent > 308)
        return false;
    const int shift = __builtin_clzll(digits);
    const struct marey__power *const power = &marey__powers()[exponent - MAREY__POWER_MIN];
    const uint64_t w = digits << shift;
    const unsigned __int128 low = (unsigned __int128)w * power->low;
    const unsigned __int128 product = (unsigned __int128)w * power->high + (uint64_t)(low >> 64);
    /* 53 bits, one that rounds, and the rest: 74 of them, or 73 where the first bit is 0. */
    const int is_high = (int)(product >> 127);
    const int n_rest = 73 + is_high;
    const unsigned __int128 one = 1, mask = (one << n_rest) - 1, rest = product & mask;
    if (rest == 0 || rest >= mask - 1)
        return false;
    uint64_t mantissa = (uint64_t)(product >> n_rest); /* 54 bits */
    mantissa = (mantissa + (mantissa & 1)) >> 1; /* the rest is not 0, so that no half is one */
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
 * A number as strtod takes it in every locale: without a point, with an exponent that stands for it. 767 digits tell any
 * double from a half; of those beyond the kept ones a single one stands for all.
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

/* The nearest double to digits * 10^exponent; false where it cannot be told from here. */
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

/* So many digits are at most UINT64_MAX. */
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
        p = take_exponent(p + 1, &exponent_of_text);
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
    while (is_digit(*end) || *end == '.')
        end++;
    if ((*end | 0x20) == 'e')
        take_exponent(end + 1, &exponent);
    write_plain(plain, first, end, exponent);
    const float value = strtof(plain, NULL);
    return is_negative ? -value : value;
}
