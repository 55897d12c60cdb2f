/*
 * Four float32 or two float64 at a time, in the vector extension of C that gcc and clang have, for any processor;
 * vector_avx512.h says what each function is for.
 */
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { S_LANES = 4, D_LANES = 2 };
#define B_BYTES 16

typedef float s_v __attribute__((vector_size(16)));
typedef uint32_t s_i __attribute__((vector_size(16)));
typedef int32_t s_mask __attribute__((vector_size(16))); /* all bits of a lane, or none */
typedef double d_v __attribute__((vector_size(16)));
typedef uint64_t d_i __attribute__((vector_size(16)));
typedef int64_t d_mask __attribute__((vector_size(16)));

/* ---- float32 ---- */

INLINE s_v s_set(float x)
{
    return (s_v){x, x, x, x};
}
INLINE s_i s_set_bits(uint32_t x)
{
    return (s_i){x, x, x, x};
}
INLINE s_v s_load(const void *p)
{
    s_v x;
    memcpy(&x, p, sizeof x);
    return x;
}
INLINE s_i s_load_bits(const void *p)
{
    s_i x;
    memcpy(&x, p, sizeof x);
    return x;
}
INLINE s_i s_load_upper(const void *p)
{
    uint16_t x[4];
    memcpy(x, p, sizeof x);
    return (s_i){x[0], x[1], x[2], x[3]} << 16;
}
INLINE void s_store(float *p, s_v x)
{
    memcpy(p, &x, sizeof x);
}
INLINE void s_store_bits(uint32_t *p, s_i x)
{
    memcpy(p, &x, sizeof x);
}
INLINE s_i s_bits(s_v x)
{
    return (s_i)x;
}
INLINE s_v s_values(s_i x)
{
    return (s_v)x;
}
INLINE s_v s_add(s_v a, s_v b)
{
    return a + b;
}
INLINE s_v s_sub(s_v a, s_v b)
{
    return a - b;
}
INLINE s_v s_mul(s_v a, s_v b)
{
    return a * b;
}
INLINE s_v s_div(s_v a, s_v b)
{
    return a / b;
}
INLINE s_v s_sum_product(s_v a, s_v b, s_v c)
{
    return a * b + c;
}
INLINE s_v s_excess(s_v a, s_v b, s_v c)
{
    /* Rounded twice: what is taken away is made smaller by more than that can amount to. */
    return a - b * c * s_set(1 - 0x1p-21f);
}
INLINE s_i s_choose(s_mask mask, s_i a, s_i b)
{
    return b ^ ((a ^ b) & (s_i)mask);
}
INLINE s_mask s_greater(s_v a, s_v b)
{
    return a > b;
}
INLINE s_v s_lesser_of(s_v a, s_v b)
{
    return s_values(s_choose(a < b, s_bits(a), s_bits(b)));
}
INLINE s_v s_greater_of(s_v a, s_v b)
{
    return s_values(s_choose(a > b, s_bits(a), s_bits(b)));
}
INLINE s_i s_magnitude(s_i x)
{
    return x & s_set_bits(0x7fffffff);
}
INLINE s_mask s_above(s_i a, s_i b)
{
    return a > b;
}
INLINE s_i s_max(s_i a, s_i b)
{
    return s_choose(s_above(a, b), a, b);
}
INLINE s_mask s_is_zero(s_i x)
{
    return x == s_set_bits(0);
}
INLINE s_mask s_is_negative(s_i x)
{
    return (s_mask)x < (s_mask)s_set_bits(0);
}
INLINE s_i s_apart(s_i a, s_i b, s_i magnitude_a, s_i magnitude_b)
{
    const s_i ahead = magnitude_a - magnitude_b, behind = magnitude_b - magnitude_a;
    const s_i same_side = s_choose(s_above(magnitude_a, magnitude_b), ahead, behind);
    return s_choose(s_is_negative(a ^ b), magnitude_a + magnitude_b, same_side);
}
INLINE s_i s_differing(s_i a, s_i b, s_i so_far)
{
    return so_far | (a ^ b);
}
INLINE s_i s_unless(s_mask mask, s_i x)
{
    return x & ~(s_i)mask;
}
INLINE s_mask s_and(s_mask a, s_mask b)
{
    return a & b;
}
INLINE uint32_t s_lanes(s_mask m)
{
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < S_LANES; i++)
        lanes |= (uint32_t)(m[i] & 1) << i;
    return lanes;
}
INLINE s_v s_load_f16(const void *p)
{
    /* Infinities and NaN get the largest exponent; all others are moved to where float32 has them, and scaled. */
    const s_i upper = s_load_upper(p), sign = upper & s_set_bits(0x80000000),
              rest = s_magnitude(upper) >> 3;
    const s_i special = rest | s_set_bits(0x7f800000);
    const s_i scaled = s_bits(s_values(rest) * s_set(0x1p112f));
    return s_values(sign | s_choose(s_above(rest, s_set_bits(0x0f7fffff)), special, scaled));
}

/* ---- float64 ---- */

INLINE d_v d_set(double x)
{
    return (d_v){x, x};
}
INLINE d_i d_set_bits(uint64_t x)
{
    return (d_i){x, x};
}
INLINE d_v d_load(const void *p)
{
    d_v x;
    memcpy(&x, p, sizeof x);
    return x;
}
INLINE void d_store(double *p, d_v x)
{
    memcpy(p, &x, sizeof x);
}
INLINE void d_store_bits(uint64_t *p, d_i x)
{
    memcpy(p, &x, sizeof x);
}
INLINE d_i d_bits(d_v x)
{
    return (d_i)x;
}
INLINE d_v d_values(d_i x)
{
    return (d_v)x;
}
INLINE d_v d_add(d_v a, d_v b)
{
    return a + b;
}
INLINE d_v d_sub(d_v a, d_v b)
{
    return a - b;
}
INLINE d_v d_mul(d_v a, d_v b)
{
    return a * b;
}
INLINE d_v d_div(d_v a, d_v b)
{
    return a / b;
}
INLINE d_v d_sum_product(d_v a, d_v b, d_v c)
{
    return a * b + c;
}
INLINE d_v d_excess(d_v a, d_v b, d_v c)
{
    /* Rounded twice: what is taken away is made smaller by more than that can amount to. */
    return a - b * c * d_set(1 - 0x1p-50);
}
INLINE d_i d_choose(d_mask mask, d_i a, d_i b)
{
    return b ^ ((a ^ b) & (d_i)mask);
}
INLINE d_mask d_greater(d_v a, d_v b)
{
    return a > b;
}
INLINE d_v d_lesser_of(d_v a, d_v b)
{
    return d_values(d_choose(a < b, d_bits(a), d_bits(b)));
}
INLINE d_v d_greater_of(d_v a, d_v b)
{
    return d_values(d_choose(a > b, d_bits(a), d_bits(b)));
}
INLINE d_i d_magnitude(d_i x)
{
    return x & d_set_bits(INT64_MAX);
}
INLINE d_mask d_above(d_i a, d_i b)
{
    return a > b;
}
INLINE d_i d_max(d_i a, d_i b)
{
    return d_choose(d_above(a, b), a, b);
}
INLINE d_mask d_is_zero(d_i x)
{
    return x == d_set_bits(0);
}
INLINE d_mask d_is_negative(d_i x)
{
    return (d_mask)x < (d_mask)d_set_bits(0);
}
INLINE d_i d_apart(d_i a, d_i b, d_i magnitude_a, d_i magnitude_b)
{
    const d_i ahead = magnitude_a - magnitude_b, behind = magnitude_b - magnitude_a;
    const d_i same_side = d_choose(d_above(magnitude_a, magnitude_b), ahead, behind);
    return d_choose(d_is_negative(a ^ b), magnitude_a + magnitude_b, same_side);
}
INLINE d_i d_differing(d_i a, d_i b, d_i so_far)
{
    return so_far | (a ^ b);
}
INLINE d_i d_unless(d_mask mask, d_i x)
{
    return x & ~(d_i)mask;
}
INLINE d_mask d_and(d_mask a, d_mask b)
{
    return a & b;
}
INLINE uint32_t d_lanes(d_mask m)
{
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < D_LANES; i++)
        lanes |= (uint32_t)(m[i] & 1) << i;
    return lanes;
}
INLINE d_v s_lower(s_v x)
{
    return (d_v){x[0], x[1]};
}
INLINE d_v s_upper(s_v x)
{
    return (d_v){x[2], x[3]};
}
INLINE void s_store_codes(uint8_t *p, s_i x)
{
    for (int i = 0; i < S_LANES; i++)
        p[i] = (uint8_t)(x[i] >> 23);
}
INLINE void d_store_codes(uint8_t *p, d_i x)
{
    for (int i = 0; i < D_LANES; i++) {
        const uint64_t exponent = d_magnitude(x)[i] >> 52;
        p[i] = exponent < 983 ? 0 : exponent > 983 + 63 ? 63 : (uint8_t)(exponent - 983);
    }
}

/* ---- bytes ---- */

typedef uint8_t b_v __attribute__((vector_size(B_BYTES)));

INLINE b_v b_set(uint8_t x)
{
    return (b_v){0} + x;
}
INLINE b_v b_load(const uint8_t *p)
{
    b_v x;
    memcpy(&x, p, sizeof x);
    return x;
}
INLINE b_v b_count(b_v counts, b_v x, b_v wanted)
{
    return counts - (b_v)(x == wanted);
}
INLINE uint32_t b_total(b_v counts)
{
    uint32_t sum = 0;
    for (int i = 0; i < B_BYTES; i++)
        sum += counts[i];
    return sum;
}
INLINE uint64_t b_within(b_v x, uint8_t limit)
{
    uint64_t lanes = 0;
    for (int i = 0; i < B_BYTES; i++)
        lanes |= (uint64_t)(x[i] != 0 && x[i] <= limit) << i;
    return lanes;
}
