/*
 * Sixteen float32 or eight float64 at a time, by AVX-512. What vector_avx2.h and vector_plain.h do by other means:
 *
 *   s_v, s_i, s_mask   float32: values, patterns of bits, one truth for each lane; d_... the same of float64
 *   S_LANES, D_LANES   how many
 *   B_BYTES            bytes of a vector
 */
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

enum { S_LANES = 16, D_LANES = 8 };
#define B_BYTES 64

typedef __m512 s_v;
typedef __m512i s_i;
typedef __mmask16 s_mask;
typedef __m512d d_v;
typedef __m512i d_i;
typedef __mmask8 d_mask;

/* ---- float32 ---- */

INLINE s_v s_set(float x)
{
    return _mm512_set1_ps(x);
}
INLINE s_i s_set_bits(uint32_t x)
{
    return _mm512_set1_epi32((int)x);
}
INLINE s_v s_load(const void *p)
{
    return _mm512_loadu_ps(p);
}
INLINE s_i s_load_bits(const void *p)
{
    return _mm512_loadu_si512(p);
}
/* Halves of 16 bits into the upper half of each lane. */
INLINE s_i s_load_upper(const void *p)
{
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16);
}
INLINE s_v s_load_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(p));
}
INLINE void s_store(float *p, s_v x)
{
    _mm512_storeu_ps(p, x);
}
INLINE void s_store_bits(uint32_t *p, s_i x)
{
    _mm512_storeu_si512(p, x);
}
INLINE s_i s_bits(s_v x)
{
    return _mm512_castps_si512(x);
}
INLINE s_v s_values(s_i x)
{
    return _mm512_castsi512_ps(x);
}
INLINE s_v s_add(s_v a, s_v b)
{
    return _mm512_add_ps(a, b);
}
INLINE s_v s_sub(s_v a, s_v b)
{
    return _mm512_sub_ps(a, b);
}
INLINE s_v s_mul(s_v a, s_v b)
{
    return _mm512_mul_ps(a, b);
}
INLINE s_v s_div(s_v a, s_v b)
{
    return _mm512_div_ps(a, b);
}
/* a * b + c; how often it is rounded is left to the processor. */
INLINE s_v s_sum_product(s_v a, s_v b, s_v c)
{
    return _mm512_fmadd_ps(a, b, c);
}
/* a - b * c, with the right sign: rounded once, or a little too much. */
INLINE s_v s_excess(s_v a, s_v b, s_v c)
{
    return _mm512_fnmadd_ps(b, c, a);
}
INLINE s_mask s_greater(s_v a, s_v b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}
INLINE s_v s_lesser_of(s_v a, s_v b)
{
    return _mm512_min_ps(a, b);
}
INLINE s_v s_greater_of(s_v a, s_v b)
{
    return _mm512_max_ps(a, b);
}
INLINE s_i s_magnitude(s_i x)
{
    return _mm512_and_si512(x, _mm512_set1_epi32(0x7fffffff));
}
INLINE s_i s_max(s_i a, s_i b)
{
    return _mm512_max_epu32(a, b);
}
INLINE s_mask s_above(s_i a, s_i b)
{
    return _mm512_cmpgt_epu32_mask(a, b);
}
INLINE s_mask s_is_zero(s_i x)
{
    return _mm512_testn_epi32_mask(x, x);
}
INLINE s_mask s_is_negative(s_i x)
{
    return _mm512_movepi32_mask(x);
}
/* How many numbers lie between two patterns, and one; their magnitudes are known already. */
INLINE s_i s_apart(s_i a, s_i b, s_i magnitude_a, s_i magnitude_b)
{
    const s_mask across = _mm512_movepi32_mask(_mm512_xor_si512(a, b));
    const s_i same_side = _mm512_abs_epi32(_mm512_sub_epi32(magnitude_a, magnitude_b));
    return _mm512_mask_add_epi32(same_side, across, magnitude_a, magnitude_b);
}
INLINE s_i s_differing(s_i a, s_i b, s_i so_far)
{
    return _mm512_ternarylogic_epi32(a, b, so_far, 0xbe);
}
/* 0 where the mask is set. */
INLINE s_i s_unless(s_mask mask, s_i x)
{
    return _mm512_maskz_mov_epi32((s_mask)~mask, x);
}
INLINE s_mask s_and(s_mask a, s_mask b)
{
    return a & b;
}
/* A bit for each lane. */
INLINE uint32_t s_lanes(s_mask m)
{
    return m;
}
/* Exponents, a byte each; the sign is cut off. */
INLINE void s_store_codes(uint8_t *p, s_i x)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(_mm512_srli_epi32(x, 23)));
}
INLINE d_v s_lower(s_v x)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}
INLINE d_v s_upper(s_v x)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}

/* ---- float64 ---- */

INLINE d_v d_set(double x)
{
    return _mm512_set1_pd(x);
}
INLINE d_i d_set_bits(uint64_t x)
{
    return _mm512_set1_epi64((long long)x);
}
INLINE d_v d_load(const void *p)
{
    return _mm512_loadu_pd(p);
}
INLINE void d_store(double *p, d_v x)
{
    _mm512_storeu_pd(p, x);
}
INLINE void d_store_bits(uint64_t *p, d_i x)
{
    _mm512_storeu_si512(p, x);
}
INLINE d_i d_bits(d_v x)
{
    return _mm512_castpd_si512(x);
}
INLINE d_v d_values(d_i x)
{
    return _mm512_castsi512_pd(x);
}
INLINE d_v d_add(d_v a, d_v b)
{
    return _mm512_add_pd(a, b);
}
INLINE d_v d_sub(d_v a, d_v b)
{
    return _mm512_sub_pd(a, b);
}
INLINE d_v d_mul(d_v a, d_v b)
{
    return _mm512_mul_pd(a, b);
}
INLINE d_v d_div(d_v a, d_v b)
{
    return _mm512_div_pd(a, b);
}
INLINE d_v d_sum_product(d_v a, d_v b, d_v c)
{
    return _mm512_fmadd_pd(a, b, c);
}
INLINE d_v d_excess(d_v a, d_v b, d_v c)
{
    return _mm512_fnmadd_pd(b, c, a);
}
INLINE d_mask d_greater(d_v a, d_v b)
{
    return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ);
}
INLINE d_v d_lesser_of(d_v a, d_v b)
{
    return _mm512_min_pd(a, b);
}
INLINE d_v d_greater_of(d_v a, d_v b)
{
    return _mm512_max_pd(a, b);
}
INLINE d_i d_magnitude(d_i x)
{
    return _mm512_and_si512(x, _mm512_set1_epi64(0x7fffffffffffffff));
}
INLINE d_i d_max(d_i a, d_i b)
{
    return _mm512_max_epu64(a, b);
}
INLINE d_mask d_above(d_i a, d_i b)
{
    return _mm512_cmpgt_epu64_mask(a, b);
}
INLINE d_mask d_is_zero(d_i x)
{
    return _mm512_testn_epi64_mask(x, x);
}
INLINE d_mask d_is_negative(d_i x)
{
    return _mm512_movepi64_mask(x);
}
INLINE d_i d_apart(d_i a, d_i b, d_i magnitude_a, d_i magnitude_b)
{
    const d_mask across = _mm512_movepi64_mask(_mm512_xor_si512(a, b));
    const d_i same_side = _mm512_abs_epi64(_mm512_sub_epi64(magnitude_a, magnitude_b));
    return _mm512_mask_add_epi64(same_side, across, magnitude_a, magnitude_b);
}
INLINE d_i d_differing(d_i a, d_i b, d_i so_far)
{
    return s_differing(a, b, so_far);
}
INLINE d_i d_unless(d_mask mask, d_i x)
{
    return _mm512_maskz_mov_epi64((d_mask)~mask, x);
}
INLINE d_mask d_and(d_mask a, d_mask b)
{
    return a & b;
}
INLINE uint32_t d_lanes(d_mask m)
{
    return m;
}
/* 0 for what is below 2 to the -39, 63 for 2 to the 23 and all above. */
INLINE void d_store_codes(uint8_t *p, d_i x)
{
    const d_i exponent =
        _mm512_sub_epi64(_mm512_srli_epi64(d_magnitude(x), 52), _mm512_set1_epi64(983));
    const d_i code =
        _mm512_min_epi64(_mm512_max_epi64(exponent, _mm512_setzero_si512()), _mm512_set1_epi64(63));
    _mm_storel_epi64((__m128i *)p, _mm512_cvtepi64_epi8(code));
}

/* ---- bytes ---- */

typedef __m512i b_v;

INLINE b_v b_set(uint8_t x)
{
    return _mm512_set1_epi8((char)x);
}
INLINE b_v b_load(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}
/* One more in the lanes that are as wanted. */
INLINE b_v b_count(b_v counts, b_v x, b_v wanted)
{
    return _mm512_mask_sub_epi8(counts, _mm512_cmpeq_epi8_mask(x, wanted), counts,
                                _mm512_set1_epi8(-1));
}
INLINE uint32_t b_total(b_v counts)
{
    return (uint32_t)_mm512_reduce_add_epi64(_mm512_sad_epu8(counts, _mm512_setzero_si512()));
}
/* A bit for each byte from 1 up to `limit`. */
INLINE uint64_t b_within(b_v x, uint8_t limit)
{
    return _mm512_mask_cmple_epu8_mask(_mm512_test_epi8_mask(x, x), x, b_set(limit));
}
