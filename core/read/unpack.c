/*
 * Bytes to words. A block of n words is stored as eight planes of n bytes: five with the bytes of
 * each word's step in time, three with those of its kind and id. Put together again, a word's eight
 * bytes are
 *
 *      bits 63..40  kind and id  |  bits 39..0  ticks since the word before
 *
 * which, rotated left by 24, is a word whose upper 40 bits only need a running sum. The sum is
 * modulo 2^64, that is modulo 2^40 in those bits, like the writer's differences. So all words,
 * including payloads, are restored exactly.
 */
#include <zstd.h>

#include "read/internal.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define TAG_MASK UINT64_C(0xffffff)
#define KIND_MASK 0xf00000u
static_assert(MAREY_KIND_RECORD == 15, "a record has all bits of the kind set");

static uint64_t rotate_left_24(uint64_t x)
{
    return x << 24 | x >> 40;
}

/* One word at a time, from word `i` on; `sum` is the running sum so far. */
static bool unpack_tail(const uint8_t *planes, uint64_t *words, size_t i, size_t n, uint64_t sum)
{
    bool has_records = false;
    for (; i < n; i++) {
        uint64_t x = 0;
        for (size_t p = 0; p < 8; p++)
            x |= (uint64_t)planes[p * n + i] << (8 * p);
        x = rotate_left_24(x);
        sum += x & ~TAG_MASK;
        words[i] = sum | (x & TAG_MASK);
        has_records |= (x & KIND_MASK) == KIND_MASK;
    }
    return has_records;
}

#ifdef __SSE2__

/*
 * Everything in registers: the loops below have constant bounds and must be unrolled, also without
 * -O3.
 */
#define UNROLL _Pragma("GCC unroll 8")

/*
 * Sixteen words: transpose 8 planes of 16 bytes into 8 pairs of words, out[k] = words 2k and 2k +
 * 1.
 */
static inline void transpose(const uint8_t *planes, size_t n, __m128i out[8])
{
    __m128i row[8], pairs[8], quads[8];
    UNROLL
    for (size_t p = 0; p < 8; p++)
        row[p] = _mm_loadu_si128((const __m128i *)(planes + p * n));
    UNROLL
    for (size_t k = 0; k < 4; k++) {
        pairs[k] = _mm_unpacklo_epi8(row[2 * k], row[2 * k + 1]);     /* words 0 to 7 */
        pairs[k + 4] = _mm_unpackhi_epi8(row[2 * k], row[2 * k + 1]); /* words 8 to 15 */
    }
    UNROLL
    for (size_t half = 0; half < 8; half += 4)
        UNROLL
    for (size_t k = 0; k < 2; k++) {
        quads[half + 2 * k] = _mm_unpacklo_epi16(pairs[half + 2 * k], pairs[half + 2 * k + 1]);
        quads[half + 2 * k + 1] = _mm_unpackhi_epi16(pairs[half + 2 * k], pairs[half + 2 * k + 1]);
    }
    UNROLL
    for (size_t half = 0; half < 8; half += 4) {
        out[half] = _mm_unpacklo_epi32(quads[half], quads[half + 2]);
        out[half + 1] = _mm_unpackhi_epi32(quads[half], quads[half + 2]);
        out[half + 2] = _mm_unpacklo_epi32(quads[half + 1], quads[half + 3]);
        out[half + 3] = _mm_unpackhi_epi32(quads[half + 1], quads[half + 3]);
    }
}

bool marey__unpack_words(const uint8_t *planes, uint64_t *words, size_t n)
{
    const __m128i tags = _mm_set1_epi64x((long long)TAG_MASK);
    const __m128i kinds = _mm_set1_epi64x(KIND_MASK);
    __m128i sum = _mm_setzero_si128(); /* the same in both halves */
    __m128i records = _mm_setzero_si128();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i pairs[8];
        transpose(planes + i, n, pairs);
        UNROLL
        for (size_t k = 0; k < 8; k++) {
            const __m128i x =
                _mm_or_si128(_mm_slli_epi64(pairs[k], 24), _mm_srli_epi64(pairs[k], 40));
            const __m128i step = _mm_andnot_si128(tags, x);
            /* The upper half also gets the lower one's step. */
            const __m128i steps = _mm_add_epi64(step, _mm_slli_si128(step, 8));
            const __m128i now = _mm_add_epi64(sum, steps);
            _mm_storeu_si128((__m128i *)(words + i + 2 * k),
                             _mm_or_si128(now, _mm_and_si128(tags, x)));
            sum = _mm_unpackhi_epi64(now, now);
            const __m128i kind = _mm_and_si128(x, kinds);
            records = _mm_or_si128(records, _mm_and_si128(_mm_cmpeq_epi32(kind, kinds), kinds));
        }
    }
    const __m128i none = _mm_cmpeq_epi32(records, _mm_setzero_si128());
    const bool has_records = _mm_movemask_epi8(none) != 0xffff;
    const uint64_t sum_so_far = (uint64_t)_mm_cvtsi128_si64(sum);
    return unpack_tail(planes, words, i, n, sum_so_far) || has_records;
}

#else

bool marey__unpack_words(const uint8_t *planes, uint64_t *words, size_t n)
{
    return unpack_tail(planes, words, 0, n, 0);
}

#endif

bool marey__words_have_records(const uint64_t *words, size_t n)
{
    bool has_records = false;
    for (size_t i = 0; i < n; i++)
        has_records |= (words[i] & KIND_MASK) == KIND_MASK;
    return has_records;
}

/* ---- blocks ---- */

bool marey__unpacker_init(struct marey__unpacker *unpacker)
{
    unpacker->zstd = ZSTD_createDCtx();
    unpacker->planes = marey__alloc(MAREY__MAX_WORDS_BYTES);
    return unpacker->zstd != NULL && unpacker->planes != NULL;
}

void marey__unpacker_fini(struct marey__unpacker *unpacker)
{
    ZSTD_freeDCtx(unpacker->zstd);
    marey__free(unpacker->planes);
    *unpacker = (struct marey__unpacker){0};
}

bool marey__unpack_block(struct marey__unpacker *unpacker, const struct marey__block *block,
                         const uint8_t *packed, uint64_t *words, bool *may_have_records)
{
    const uint8_t *raw = packed;
    const size_t n = block->raw_len / 8;
    if ((block->flags & MAREY__FLAG_ZSTD) != 0) {
        const size_t got = ZSTD_decompressDCtx(unpacker->zstd, unpacker->planes, block->raw_len,
                                               packed, block->packed_len);
        if (ZSTD_isError(got) || got != block->raw_len)
            return false;
        raw = unpacker->planes;
    } else if (block->packed_len != block->raw_len) {
        return false;
    }
    if ((block->flags & MAREY__FLAG_PLANES) != 0) {
        *may_have_records = marey__unpack_words(raw, words, n);
    } else {
        memcpy(words, raw, n * sizeof *words);
        *may_have_records = marey__words_have_records(words, n);
    }
    return true;
}
