/* Eight float32 or four float64 at a time, by AVX2, FMA and F16C; vector_avx512.h says what each function is for. */
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { S_LANES = 8, D_LANES = 4 };
#define B_BYTES 32

typedef __m256 s_v;
typedef __m256i s_i;
typedef __m256 s_mask; /* all bits of a lane, or none */
typedef __m256d d_v;
typedef __m256i d_i;
typedef __m256d d_mask;

/* ---- float32 ---- */

INLINE s_v s_set(float x)
{
    return _mm256_set1_ps(x);
}
INLINE s_i s_set_bits(uint32_t x)
{
    return _mm256_set1_epi32((int)x);
}
INLINE s_v s_load(const void *p)
{
    return _mm256_loadu_ps(p);
}
INLINE s_i s_load_bits(const void *p)
{
    return _mm256_loadu_si256(p);
}
INLINE s_i s_load_upper(const void *p)
{
    return _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16);
}
INLINE s_v s_load_f16(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(p));
}
INLINE void s_store(float *p, s_v x)
{
    _mm256_storeu_ps(p, x);
}
INLINE void s_store_bits(uint32_t *p, s_i x)
{
    _mm256_storeu_si256((__m256i *)p, x);
}
INLINE s_i s_bits(s_v x)
{
    return _mm256_castps_si256(x);
}
INLINE s_v s_values(s_i x)
{
    return _mm256_castsi256_ps(x);
}
INLINE s_v s_add(s_v a, s_v b)
{
    return _mm256_add_ps(a, b);
}
INLINE s_v s_sub(s_v a, s_v b)
{
    return _mm256_sub_ps(a, b);
}
INLINE s_v s_mul(s_v a, s_v b)
{
    return _mm256_mul_ps(a, b);
}
INLINE s_v s_div(s_v a, s_v b)
{
    return _mm256_div_ps(a, b);
}
INLINE s_v s_sum_product(s_v a, s_v b, s_v c)
{
    return _mm256_fmadd_ps(a, b, c);
}
INLINE s_v s_excess(s_v a, s_v b, s_v c)
{
    return _mm256_fnmadd_ps(b, c, a);
}
INLINE s_mask s_greater(s_v a, s_v b)
{
    return _mm256_cmp_ps(a, b, _CMP_GT_OQ);
}
INLINE s_v s_lesser_of(s_v a, s_v b)
{
    return _mm256_min_ps(a, b);
}
INLINE s_v s_greater_of(s_v a, s_v b)
{
    return _mm256_max_ps(a, b);
}
INLINE s_i s_magnitude(s_i x)
{
    return _mm256_and_si256(x, _mm256_set1_epi32(0x7fffffff));
}
INLINE s_i s_max(s_i a, s_i b)
{
    return _mm256_max_epu32(a, b);
}
INLINE s_mask s_above(s_i a, s_i b)
{
    /* a > b where the greater of the two is not b */
    return s_values(
        _mm256_xor_si256(_mm256_cmpeq_epi32(_mm256_max_epu32(a, b), b), _mm256_set1_epi32(-1)));
}
INLINE s_mask s_is_zero(s_i x)
{
    return s_values(_mm256_cmpeq_epi32(x, _mm256_setzero_si256()));
}
INLINE s_mask s_is_negative(s_i x)
{
    return s_values(_mm256_srai_epi32(x, 31));
}
INLINE s_i s_apart(s_i a, s_i b, s_i magnitude_a, s_i magnitude_b)
{
    const s_v across = s_values(_mm256_xor_si256(a, b));
    const s_i same_side = _mm256_abs_epi32(_mm256_sub_epi32(magnitude_a, magnitude_b));
    const s_i through_zero = _mm256_add_epi32(magnitude_a, magnitude_b);
    return s_bits(_mm256_blendv_ps(s_values(same_side), s_values(through_zero), across));
}
INLINE s_i s_differing(s_i a, s_i b, s_i so_far)
{
    return _mm256_or_si256(so_far, _mm256_xor_si256(a, b));
}
INLINE s_i s_unless(s_mask mask, s_i x)
{
    return _mm256_andnot_si256(s_bits(mask), x);
}
INLINE s_mask s_and(s_mask a, s_mask b)
{
    return _mm256_and_ps(a, b);
}
INLINE uint32_t s_lanes(s_mask m)
{
    return (uint32_t)_mm256_movemask_ps(m);
}
INLINE void s_store_codes(uint8_t *p, s_i x)
{
    const s_i exponent = _mm256_srli_epi32(s_magnitude(x), 23);
    const __m128i words =
        _mm_packus_epi32(_mm256_castsi256_si128(exponent), _mm256_extracti128_si256(exponent, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packus_epi16(words, words));
}
INLINE d_v s_lower(s_v x)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}
INLINE d_v s_upper(s_v x)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}

/* ---- float64 ---- */

INLINE d_v d_set(double x)
{
    return _mm256_set1_pd(x);
}
INLINE d_i d_set_bits(uint64_t x)
{
    return _mm256_set1_epi64x((long long)x);
}
INLINE d_v d_load(const void *p)
{
    return _mm256_loadu_pd(p);
}
INLINE void d_store(double *p, d_v x)
{
    _mm256_storeu_pd(p, x);
}
INLINE void d_store_bits(uint64_t *p, d_i x)
{
    _mm256_storeu_si256((__m256i *)p, x);
}
INLINE d_i d_bits(d_v x)
{
    return _mm256_castpd_si256(x);
}
INLINE d_v d_values(d_i x)
{
    return _mm256_castsi256_pd(x);
}
INLINE d_v d_add(d_v a, d_v b)
{
    return _mm256_add_pd(a, b);
}
INLINE d_v d_sub(d_v a, d_v b)
{
    return _mm256_sub_pd(a, b);
}
INLINE d_v d_mul(d_v a, d_v b)
{
    return _mm256_mul_pd(a, b);
}
INLINE d_v d_div(d_v a, d_v b)
{
    return _mm256_div_pd(a, b);
}
INLINE d_v d_sum_product(d_v a, d_v b, d_v c)
{
    return _mm256_fmadd_pd(a, b, c);
}
INLINE d_v d_excess(d_v a, d_v b, d_v c)
{
    return _mm256_fnmadd_pd(b, c, a);
}
INLINE d_mask d_greater(d_v a, d_v b)
{
    return _mm256_cmp_pd(a, b, _CMP_GT_OQ);
}
INLINE d_v d_lesser_of(d_v a, d_v b)
{
    return _mm256_min_pd(a, b);
}
INLINE d_v d_greater_of(d_v a, d_v b)
{
    return _mm256_max_pd(a, b);
}
INLINE d_i d_magnitude(d_i x)
{
    return _mm256_and_si256(x, _mm256_set1_epi64x(0x7fffffffffffffff));
}
INLINE d_mask d_above(d_i a, d_i b)
{
    /* There is no comparison without signs: with the upper bit turned over they come out the same. */
    const d_i top = _mm256_set1_epi64x(INT64_MIN);
    return d_values(_mm256_cmpgt_epi64(_mm256_xor_si256(a, top), _mm256_xor_si256(b, top)));
}
INLINE d_i d_max(d_i a, d_i b)
{
    return d_bits(_mm256_blendv_pd(d_values(b), d_values(a), d_above(a, b)));
}
INLINE d_mask d_is_zero(d_i x)
{
    return d_values(_mm256_cmpeq_epi64(x, _mm256_setzero_si256()));
}
INLINE d_mask d_is_negative(d_i x)
{
    return d_values(_mm256_cmpgt_epi64(_mm256_setzero_si256(), x));
}
INLINE d_i d_apart(d_i a, d_i b, d_i magnitude_a, d_i magnitude_b)
{
    const d_v across = d_values(_mm256_xor_si256(a, b));
    const d_i ahead = _mm256_sub_epi64(magnitude_a, magnitude_b),
              behind = _mm256_sub_epi64(magnitude_b, magnitude_a);
    const d_v same_side = _mm256_blendv_pd(d_values(ahead), d_values(behind), d_values(ahead));
    const d_i through_zero = _mm256_add_epi64(magnitude_a, magnitude_b);
    return d_bits(_mm256_blendv_pd(same_side, d_values(through_zero), across));
}
INLINE d_i d_differing(d_i a, d_i b, d_i so_far)
{
    return s_differing(a, b, so_far);
}
INLINE d_i d_unless(d_mask mask, d_i x)
{
    return _mm256_andnot_si256(d_bits(mask), x);
}
INLINE d_mask d_and(d_mask a, d_mask b)
{
    return _mm256_and_pd(a, b);
}
INLINE uint32_t d_lanes(d_mask m)
{
    return (uint32_t)_mm256_movemask_pd(m);
}
INLINE void d_store_codes(uint8_t *p, d_i x)
{
    /* The upper halves of the lanes hold the exponents. */
    const d_i order = _mm256_setr_epi32(1, 3, 5, 7, 1, 3, 5, 7);
    const __m128i upper = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(d_magnitude(x), order));
    const __m128i exponent = _mm_sub_epi32(_mm_srli_epi32(upper, 20), _mm_set1_epi32(983));
    const __m128i code =
        _mm_min_epi32(_mm_max_epi32(exponent, _mm_setzero_si128()), _mm_set1_epi32(63));
    const __m128i words = _mm_packus_epi32(code, code);
    const int bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    memcpy(p, &bytes, sizeof bytes);
}

/* ---- bytes ---- */

typedef __m256i b_v;

INLINE b_v b_set(uint8_t x)
{
    return _mm256_set1_epi8((char)x);
}
INLINE b_v b_load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
INLINE b_v b_count(b_v counts, b_v x, b_v wanted)
{
    return _mm256_sub_epi8(counts, _mm256_cmpeq_epi8(x, wanted));
}
INLINE uint32_t b_total(b_v counts)
{
    const __m256i sums = _mm256_sad_epu8(counts, _mm256_setzero_si256());
    const __m128i two =
        _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    return (uint32_t)(_mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 2));
}
INLINE uint64_t b_within(b_v x, uint8_t limit)
{
    const __m256i below = _mm256_cmpeq_epi8(_mm256_min_epu8(x, b_set(limit)), x);
    return (uint32_t)_mm256_movemask_epi8(_mm256_andnot_si256(_mm256_cmpeq_epi8(x, b_set(0)), below));
}
