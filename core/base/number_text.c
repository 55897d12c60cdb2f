/* Digits as text, eight at a time in one register, without a loop that branches per digit. */
#include <assert.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/number_shortest.h"

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

/* The number of digits. Shortest decimals of doubles have 15 to 17, unless they are denormal. */
static inline unsigned digit_count(uint64_t value)
{
    unsigned n = 17;
    while (value < tens[n - 1])
        n--;
    return n;
}

#ifdef __SSE2__

/* A number below 10^8 as eight bytes of 0 to 9, first digit lowest: split into halves, quarters, digits. */
static inline uint64_t eight_digits(uint32_t value)
{
    const uint32_t high = value / 10000, low = value - high * 10000;
    const __m128i halves = _mm_cvtsi32_si128((int)(high | low << 16));
    /* Divide each of two 16-bit numbers by 100, with the remainder beside it; then each of four by 10. */
    const __m128i hundreds = _mm_srli_epi16(_mm_mulhi_epu16(halves, _mm_set1_epi16(5243)), 3);
    const __m128i rests = _mm_sub_epi16(halves, _mm_mullo_epi16(hundreds, _mm_set1_epi16(100)));
    const __m128i quarters = _mm_unpacklo_epi16(hundreds, rests);
    const __m128i tens_of = _mm_srli_epi16(_mm_mullo_epi16(quarters, _mm_set1_epi16(103)), 10);
    const __m128i ones = _mm_sub_epi16(quarters, _mm_mullo_epi16(tens_of, _mm_set1_epi16(10)));
    const __m128i digits = _mm_or_si128(tens_of, _mm_slli_epi16(ones, 8));
    return (uint64_t)_mm_cvtsi128_si64(digits);
}

#else

/* A number below 10^8 as eight bytes of 0 to 9, first digit lowest: split into halves, quarters, digits. */
static inline uint64_t eight_digits(uint32_t value)
{
    uint64_t x = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t hundreds = (x * 10486 >> 20) & UINT64_C(0x0000007f0000007f);
    x = hundreds | (x - hundreds * 100) << 16;
    uint64_t ten = (x * 103 >> 10) & UINT64_C(0x000f000f000f000f);
    return ten | (x - ten * 10) << 8;
}

#endif

#define ZEROS UINT64_C(0x3030303030303030) /* the digit, eight times */

static inline void put_word(char *out, uint64_t word)
{
    memcpy(out, &word, sizeof word);
}

/* For eight digits, not all 0: the number up to the last nonzero one, and the number of leading zeros. */
static inline unsigned significant(uint64_t digits)
{
    return 8 - (unsigned)__builtin_ctzll(__builtin_bswap64(digits)) / 8;
}

static inline unsigned zeros_in_front(uint64_t digits)
{
    return (unsigned)__builtin_ctzll(digits) / 8;
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

/* Inserts the decimal point after `point` of `digits` (24 bytes: `n` significant ones, then zeros). */
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

static inline char *digits_text(char *out, struct marey__decimal_digits decimal)
{
    const unsigned n = digit_count(decimal.digits);
    const uint64_t all = decimal.digits * tens[17 - n]; /* 17 digits: 1 + 8 + 8 */
    const uint64_t high = all / 100000000, middle = eight_digits((uint32_t)(high % 100000000));
    const uint64_t low = eight_digits((uint32_t)(all % 100000000));
    char digits[34];
    digits[0] = (char)('0' + high / 100000000);
    put_word(digits + 1, middle | ZEROS);
    put_word(digits + 9, low | ZEROS);
    memset(digits + 17, '0', sizeof digits - 17);
    const unsigned counted = low != 0      ? 9 + significant(low)
                             : middle != 0 ? 1 + significant(middle)
                                           : 1;
    return put_point(out, digits, counted, (int)n + decimal.exponent);
}

/* For large and small exponents, through memory. */
static __attribute__((noinline)) char *put_far(char *out, uint64_t eight, char last, unsigned n,
                                               int point)
{
    char digits[34];
    put_word(digits, eight);
    digits[8] = last;
    memset(digits + 9, '0', sizeof digits - 9);
    return put_point(out, digits, n, point);
}

/*
 * Up to nine digits, all but the last in a register: with the point between them, or leading zeros. Avoids storing
 * pieces and loading them as a whole, which would stall store forwarding.
 */
static inline char *f32_digits_text(char *out, struct marey__decimal_digits decimal)
{
    enum { EIGHT_DIGITS = 100000000 };
    const bool is_nine = decimal.digits >= EIGHT_DIGITS; /* then the first is 1: c is below 2^24 */
    const uint64_t low = eight_digits((uint32_t)decimal.digits - (is_nine ? EIGHT_DIGITS : 0));
    const unsigned n_zeros = is_nine ? 0 : zeros_in_front(low);
    uint64_t eight = is_nine ? low << 8 | 1 : low >> 8 * n_zeros;
    const uint64_t last = is_nine ? low >> 56 : 0;
    const unsigned counted = last != 0 ? 9 : significant(eight);
    const int point = 8 + is_nine - (int)n_zeros + decimal.exponent;
    eight |= ZEROS;
    if (point > 0 && point < 8) {
        const uint64_t before = ((uint64_t)1 << 8 * point) - 1;
        put_word(out, (eight & before) | (uint64_t)'.' << 8 * point | (eight & ~before) << 8);
        const uint16_t rest = (uint16_t)(eight >> 56 | (last | '0') << 8);
        memcpy(out + 8, &rest, sizeof rest);
        return out + 1 + MAREY__MAX((int)counted, point + 1);
    }
    if (MAREY_UNLIKELY(point <= -4 || point > 0))
        return put_far(out, eight, (char)('0' | last), counted, point);
    put_word(out, UINT64_C(0x3030303030302e30)); /* 0.000000 */
    out += 2 - point;
    put_word(out, eight);
    out[8] = (char)('0' | last);
    return out + counted;
}

/* Zero, powers of two, denormals; also the first call. */
static __attribute__((noinline)) char *f32_text_rare(char *out, uint32_t bits)
{
    const uint32_t fraction = bits & 0x7fffff, exponent = bits >> 23 & 0xff;
    if (fraction == 0 && exponent == 0) {
        memcpy(out, "0.0", 3);
        return out + 3;
    }
    const uint32_t c = exponent != 0 ? fraction | 0x800000 : fraction;
    const int32_t q = (int32_t)(exponent != 0 ? exponent : 1) - 150;
    return digits_text(out, shortest(c, q, fraction == 0 && exponent > 1));
}

char *marey__f32_text(char *out, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    *out = '-';
    out += bits >> 31;
    const uint32_t fraction = bits & 0x7fffff, exponent = bits >> 23 & 0xff;
    if (MAREY_UNLIKELY(fraction == 0 || exponent == 0 || !marey__powers_are_made()))
        return f32_text_rare(out, bits);
    return f32_digits_text(out, shortest_f32(fraction | 0x800000, &marey__f32_powers[exponent]));
}

char *marey__f64_text(char *out, double value)
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

char *marey__binary_text(char *out, uint64_t c, int32_t q, bool is_lower_closer)
{
    return digits_text(out, shortest(c, q, is_lower_closer));
}

/* Below 10^8. */
static inline char *put_small(char *out, uint32_t value)
{
    const uint64_t digits = eight_digits(value);
    const unsigned n_zeros = zeros_in_front(digits | UINT64_C(1) << 56); /* 0 has a digit */
    put_word(out, (digits | ZEROS) >> 8 * n_zeros);
    return out + 8 - n_zeros;
}

char *marey__u64_text(char *out, uint64_t value)
{
    enum { EIGHT_DIGITS = 100000000 };
    if (value < EIGHT_DIGITS)
        return put_small(out, (uint32_t)value);
    const uint64_t high = value / EIGHT_DIGITS;
    if (high < EIGHT_DIGITS) {
        out = put_small(out, (uint32_t)high);
    } else {
        out = put_small(out, (uint32_t)(high / EIGHT_DIGITS));
        put_word(out, eight_digits((uint32_t)(high % EIGHT_DIGITS)) | ZEROS);
        out += 8;
    }
    put_word(out, eight_digits((uint32_t)(value % EIGHT_DIGITS)) | ZEROS);
    return out + 8;
}

char *marey__i64_text(char *out, int64_t value)
{
    *out = '-';
    return marey__u64_text(out + (value < 0), value < 0 ? -(uint64_t)value : (uint64_t)value);
}
