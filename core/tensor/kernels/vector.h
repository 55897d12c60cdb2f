/*
 * Vectors of VECTOR_BYTES bytes: 64 with AVX-512 (F, BW, DQ, VL), 32 with AVX2, FMA and F16C, 16 on any CPU. They use
 * the vector extension of gcc and clang, so that + - * / & | ^ work on them; intrinsics are used where the extension
 * has no operator or compilers generate slower code.
 */
#include <string.h>
#if VECTOR_BYTES > 16
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))
/* Defines a function that is one expression. */
#define VALUE(TYPE, NAME, PARAMETERS, ...)                                                         \
    INLINE TYPE NAME PARAMETERS                                                                    \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }

enum { S_LANES = VECTOR_BYTES / 4, D_LANES = VECTOR_BYTES / 8 };

/* The instruction `op` for floats, integers and unsigned integers of this width; MASK: the variant that returns a mask. */
#if VECTOR_BYTES == 64
#define INSTRUCTION(op, type, width, end) _mm512_##op##type##width##end
#define REGISTER(x) ((__m512i)(x))
#else
#define INSTRUCTION(op, type, width, end) _mm256_##op##type##width##end
#define REGISTER(x) ((__m256i)(x))
#endif
#define EXPANDED(op, type, width, end) INSTRUCTION(op, type, width, end)
#define FLOATS(op) EXPANDED(op, _p, FLOAT, )
#define FLOATS_MASK(op) EXPANDED(op, _p, FLOAT, _mask)
#define INTEGERS(op) EXPANDED(op, _epi, WIDTH, )
#define INTEGERS_MASK(op) EXPANDED(op, _epi, WIDTH, _mask)
#define UNSIGNED(op) EXPANDED(op, _epu, WIDTH, )
#define UNSIGNED_MASK(op) EXPANDED(op, _epu, WIDTH, _mask)

#define V(name) s_##name
#define REAL float
#define BITS uint32_t
#define WIDTH 32
#define FLOAT s
#include "tensor/kernels/vector_lanes.h"
#undef V
#undef REAL
#undef BITS
#undef WIDTH
#undef FLOAT

#define V(name) d_##name
#define REAL double
#define BITS uint64_t
#define WIDTH 64
#define FLOAT d
#include "tensor/kernels/vector_lanes.h"
#undef V
#undef REAL
#undef BITS

typedef uint8_t b_v __attribute__((vector_size(VECTOR_BYTES)));

VALUE(s_i, s_load_bits, (const void *p), (s_i)s_load(p))
VALUE(b_v, b_set, (uint8_t x), x - (b_v){0})
VALUE(b_v, b_load, (const uint8_t *p), (b_v)s_load(p))

/*
 * The functions that depend on the instruction set:
 *
 *   s_load_upper      halves of 16 bits into the upper half of each lane
 *   s_load_f16        float16 to float32
 *   s_lower, s_upper  half of a vector, widened
 *   s_store_codes     exponents, a byte each; the sign is cut off
 *   d_store_codes     exponents: 0 below 2 to the -39, 63 from 2 to the 23
 *   b_count           increments the lanes that match
 *   b_total           the sum of the lanes
 *   b_within          a bit for each byte from 1 up to `limit`
 */
#if VECTOR_BYTES == 64

VALUE(s_i, s_load_upper, (const void *p), (s_i)_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)) << 16)
VALUE(s_v, s_load_f16, (const void *p), _mm512_cvtph_ps(_mm256_loadu_si256(p)))
VALUE(d_v, s_lower, (s_v x), _mm512_cvtps_pd(_mm512_castps512_ps256(x)))
VALUE(d_v, s_upper, (s_v x), _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)))
INLINE void s_store_codes(uint8_t *p, s_i x)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8((__m512i)(x >> 23)));
}
INLINE void d_store_codes(uint8_t *p, d_i x)
{
    const __m512i exponent = (__m512i)((d_magnitude(x) >> 52) - d_set_bits(983));
    const __m512i code =
        _mm512_min_epi64(_mm512_max_epi64(exponent, _mm512_setzero_si512()), _mm512_set1_epi64(63));
    _mm_storel_epi64((__m128i *)p, _mm512_cvtepi64_epi8(code));
}
VALUE(b_v, b_count, (b_v counts, b_v x, b_v wanted),
      (b_v)_mm512_mask_sub_epi8((__m512i)counts, _mm512_cmpeq_epi8_mask((__m512i)x, (__m512i)wanted),
                                (__m512i)counts, _mm512_set1_epi8(-1)))
VALUE(uint32_t, b_total, (b_v counts),
      (uint32_t)_mm512_reduce_add_epi64(_mm512_sad_epu8((__m512i)counts, _mm512_setzero_si512())))
VALUE(uint64_t, b_within, (b_v x, uint8_t limit),
      _mm512_mask_cmple_epu8_mask(_mm512_test_epi8_mask((__m512i)x, (__m512i)x), (__m512i)x,
                                  (__m512i)b_set(limit)))

#elif VECTOR_BYTES == 32

VALUE(s_i, s_load_upper, (const void *p), (s_i)_mm256_cvtepu16_epi32(_mm_loadu_si128(p)) << 16)
VALUE(s_v, s_load_f16, (const void *p), _mm256_cvtph_ps(_mm_loadu_si128(p)))
VALUE(d_v, s_lower, (s_v x), _mm256_cvtps_pd(_mm256_castps256_ps128(x)))
VALUE(d_v, s_upper, (s_v x), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)))
INLINE void s_store_codes(uint8_t *p, s_i x)
{
    const __m256i exponent = (__m256i)(s_magnitude(x) >> 23);
    const __m128i words =
        _mm_packus_epi32(_mm256_castsi256_si128(exponent), _mm256_extracti128_si256(exponent, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packus_epi16(words, words));
}
INLINE void d_store_codes(uint8_t *p, d_i x)
{
    /* The upper halves of the lanes contain the exponents. */
    const __m256i upper_halves = _mm256_setr_epi32(1, 3, 5, 7, 1, 3, 5, 7);
    const __m128i upper =
        _mm256_castsi256_si128(_mm256_permutevar8x32_epi32((__m256i)d_magnitude(x), upper_halves));
    const __m128i exponent = _mm_sub_epi32(_mm_srli_epi32(upper, 20), _mm_set1_epi32(983));
    const __m128i code =
        _mm_min_epi32(_mm_max_epi32(exponent, _mm_setzero_si128()), _mm_set1_epi32(63));
    const __m128i words = _mm_packus_epi32(code, code);
    const int bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    memcpy(p, &bytes, sizeof bytes);
}
VALUE(b_v, b_count, (b_v counts, b_v x, b_v wanted), counts - (b_v)(x == wanted))
INLINE uint32_t b_total(b_v counts)
{
    const d_i sums = (d_i)_mm256_sad_epu8((__m256i)counts, _mm256_setzero_si256());
    return (uint32_t)(sums[0] + sums[1] + sums[2] + sums[3]);
}
VALUE(uint64_t, b_within, (b_v x, uint8_t limit),
      (uint32_t)_mm256_movemask_epi8((__m256i)((x != b_set(0)) & (x <= b_set(limit)))))

#else

INLINE s_i s_load_upper(const void *p)
{
    uint16_t x[S_LANES];
    memcpy(x, p, sizeof x);
    return (s_i){x[0], x[1], x[2], x[3]} << 16;
}
INLINE s_v s_load_f16(const void *p)
{
    /* Infinities and NaN get the largest exponent; all others are moved to float32's position, and scaled. */
    const s_i upper = s_load_upper(p), magnitude = s_magnitude(upper) >> 3;
    const s_i scaled = (s_i)((s_v)magnitude * s_set(0x1p112f));
    return (s_v)((upper & s_set_bits(0x80000000)) |
                 s_choose(s_above(magnitude, s_set_bits(0x0f7fffff)),
                          magnitude | s_set_bits(0x7f800000), scaled));
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
VALUE(b_v, b_count, (b_v counts, b_v x, b_v wanted), counts - (b_v)(x == wanted))
INLINE uint32_t b_total(b_v counts)
{
    uint32_t sum = 0;
    for (int i = 0; i < VECTOR_BYTES; i++)
        sum += counts[i];
    return sum;
}
INLINE uint64_t b_within(b_v x, uint8_t limit)
{
    uint64_t lanes = 0;
    for (int i = 0; i < VECTOR_BYTES; i++)
        lanes |= (uint64_t)(x[i] != 0 && x[i] <= limit) << i;
    return lanes;
}

#endif
