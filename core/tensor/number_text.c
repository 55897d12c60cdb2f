/* Digits as text. Eight of them at a time in one register, so that there is no loop with a branch for each. */
#include <assert.h>
#include <string.h>

#include "tensor/number_shortest.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first digit is the lowest byte");

static const uint64_t tens[] = {
    1,
    10,
    100,
    1000,
    10000,
    100000,
    1000000,
    10000000,
    100000000,
    1000000000,
    10000000000,
    100000000000,
    1000000000000,
    10000000000000,
    100000000000000,
    1000000000000000,
    10000000000000000,
    100000000000000000,
    1000000000000000000,
    UINT64_C(10000000000000000000),
};

/* How many digits it has; of 0 one. */
static inline unsigned digit_count(uint64_t value)
{
    /* 1233 / 4096 is log10(2) from below, near enough for 64 bits. */
    const unsigned n = (unsigned)((64 - __builtin_clzll(value | 1)) * 1233) >> 12;
    return n + (value >= tens[n] || value == 0);
}

/* A number below 10^8 as eight bytes of 0 to 9, the first digit lowest: halves, quarters, single ones. */
static inline uint64_t eight_digits(uint32_t value)
{
    uint64_t x = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t hundreds = (x * 10486 >> 20) & UINT64_C(0x0000007f0000007f);
    x = hundreds | (x - hundreds * 100) << 16;
    uint64_t ten = (x * 103 >> 10) & UINT64_C(0x000f000f000f000f);
    return ten | (x - ten * 10) << 8;
}

#define ZEROS UINT64_C(0x3030303030303030) /* the digit, eight times */

static inline void put_word(char *out, uint64_t word)
{
    memcpy(out, &word, sizeof word);
}

/* Of eight digits, those up to the last one that is not 0. */
static inline unsigned significant(uint64_t digits)
{
    return digits == 0 ? 0 : 8 - (unsigned)__builtin_clzll(digits) / 8;
}

static char *put_exponent(char *out, int exponent)
{
    *out++ = 'e';
    *out++ = exponent < 0 ? '-' : '+';
    const unsigned n = (unsigned)(exponent < 0 ? -exponent : exponent);
    if (n >= 100)
        *out++ = (char)('0' + n / 100);
    *out++ = (char)('0' + n / 10 % 10);
    *out++ = (char)('0' + n % 10);
    return out;
}

/* Behind `digits` (24 of them, `n` that count, then zeros) stands the decimal point after `point` of them. */
static inline char *put_point(char *out, const char *digits, unsigned n, int point)
{
    if (point > 0 && point <= 16) {
        memcpy(out, digits, 16);
        out += point;
        *out++ = '.';
        memcpy(out, digits + point, 17);
        return out + ((int)n > point ? (int)n - point : 1);
    }
    if (point > -4 && point <= 0) {
        memcpy(out, "0.000", 5);
        out += 2 - point;
        memcpy(out, digits, 24);
        return out + n;
    }
    *out++ = digits[0];
    if (n > 1) {
        *out++ = '.';
        memcpy(out, digits + 1, 16);
        out += n - 1;
    }
    return put_exponent(out, point - 1);
}

static inline char *digits_text(char *out, struct kymo__decimal_digits decimal)
{
    const unsigned n = digit_count(decimal.digits);
    const uint64_t all = decimal.digits * tens[17 - n]; /* 17 digits: 1 and 8 and 8 */
    const uint64_t high = all / 100000000, middle = eight_digits((uint32_t)(high % 100000000));
    const uint64_t low = eight_digits((uint32_t)(all % 100000000));
    char digits[34];
    digits[0] = (char)('0' + high / 100000000);
    put_word(digits + 1, middle | ZEROS);
    put_word(digits + 9, low | ZEROS);
    memset(digits + 17, '0', sizeof digits - 17);
    const unsigned counted = 1 + (low != 0 ? 8 + significant(low) : significant(middle));
    return put_point(out, digits, counted, (int)n + decimal.exponent);
}

/*
 * Nine digits, in a register but for the last one: with the point between them, or zeros in front. What was just stored in
 * pieces would be slow to load again as a whole, so nothing is.
 */
static inline char *f32_digits_text(char *out, struct kymo__decimal_digits decimal)
{
    const unsigned n = digit_count(decimal.digits);
    const uint64_t all = decimal.digits * tens[9 - n];
    const uint64_t first = all / 100000000, low = eight_digits((uint32_t)(all % 100000000));
    const unsigned counted = 1 + significant(low);
    const int point = (int)n + decimal.exponent;
    const uint64_t eight = (low << 8 | first) | ZEROS;
    if (point > 0 && point < 8) {
        const uint64_t before = ((uint64_t)1 << 8 * point) - 1;
        put_word(out, (eight & before) | (uint64_t)'.' << 8 * point | (eight & ~before) << 8);
        const uint16_t last = (uint16_t)((low | ZEROS) >> 48);
        memcpy(out + 8, &last, sizeof last);
        return out + 1 + KYMO__MAX((int)counted, point + 1);
    }
    if (point > -4 && point <= 0) {
        memcpy(out, "0.000", 5);
        out += 2 - point;
        put_word(out, eight);
        out[8] = (char)('0' | low >> 56);
        return out + counted;
    }
    char digits[34];
    put_word(digits, eight);
    digits[8] = (char)('0' | low >> 56);
    memset(digits + 9, '0', sizeof digits - 9);
    return put_point(out, digits, counted, point);
}

char *kymo__f32_text(char *out, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    *out = '-';
    out += bits >> 31;
    const uint32_t fraction = bits & 0x7fffff, exponent = bits >> 23 & 0xff;
    if ((bits & 0x7fffffff) == 0) {
        memcpy(out, "0.0", 3);
        return out + 3;
    }
    const uint32_t c = exponent != 0 ? fraction | 0x800000 : fraction;
    const int32_t q = (int32_t)(exponent != 0 ? exponent : 1) - 150;
    return f32_digits_text(out, shortest_f32(c, q, fraction == 0 && exponent > 1));
}

char *kymo__f64_text(char *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    *out = '-';
    out += bits >> 63;
    const uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    const uint32_t exponent = bits >> 52 & 0x7ff;
    if (bits << 1 == 0) {
        memcpy(out, "0.0", 3);
        return out + 3;
    }
    const uint64_t c = exponent != 0 ? fraction | UINT64_C(1) << 52 : fraction;
    const int32_t q = (int32_t)(exponent != 0 ? exponent : 1) - 1075;
    return digits_text(out, shortest(c, q, fraction == 0 && exponent > 1));
}

char *kymo__binary_text(char *out, uint64_t c, int32_t q, bool is_lower_closer)
{
    return digits_text(out, shortest(c, q, is_lower_closer));
}

char *kymo__u64_text(char *out, uint64_t value)
{
    const unsigned n = digit_count(value);
    if (value < 100000000) {
        /* Leading zeros are shifted out. */
        const uint64_t digits = eight_digits((uint32_t)value) >> (64 - 8 * n);
        put_word(out, digits | ZEROS);
        return out + n;
    }
    const uint64_t high = value / 100000000;
    out = kymo__u64_text(out, high);
    put_word(out, eight_digits((uint32_t)(value % 100000000)) | ZEROS);
    return out + 8;
}

char *kymo__i64_text(char *out, int64_t value)
{
    *out = '-';
    return kymo__u64_text(out + (value < 0), value < 0 ? -(uint64_t)value : (uint64_t)value);
}
