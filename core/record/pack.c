/*
 * Words to bytes. A word's ticks become the difference to the previous word, then the eight bytes of all words are
 * stored in planes: first the lowest byte of every difference, and so on. High planes are nearly constant, low ones
 * noisy, and zstd compresses them better separately: some 1.6 bytes per event instead of 4.8 for raw words.
 *
 *   plane 0..4: bytes of (ticks[i] - ticks[i-1]) mod 2^40, low to high      plane 5..7: kind and id, low to high
 */
#include <string.h>
#include <zstd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "record/internal.h"

enum { MAX_WORDS = MAREY__CHUNK_WORDS, MAX_BYTES = MAX_WORDS * 8 };

struct marey__packer {
    ZSTD_CCtx *zstd;
    size_t cap;
    uint64_t mixed[MAX_WORDS + 8]; /* differences and tags, before the split into planes */
    unsigned char planes[MAX_BYTES];
    unsigned char packed[];
};

marey__packer *marey__packer_create(void)
{
    const size_t cap = ZSTD_compressBound(MAX_BYTES);
    marey__packer *p = marey__alloc(sizeof *p + cap);
    if (p == NULL)
        return NULL;
    p->cap = cap;
    p->zstd = ZSTD_createCCtx();
    if (p->zstd == NULL) {
        marey__free(p);
        return NULL;
    }
    ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, 1);
    ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 0);
    return p;
}

void marey__packer_destroy(marey__packer *p)
{
    if (p == NULL)
        return;
    ZSTD_freeCCtx(p->zstd);
    marey__free(p);
}

static void mix_words(uint64_t *restrict out, const uint64_t *restrict words, size_t n)
{
    uint64_t before = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t ticks = words[i] >> 24;
        out[i] = ((ticks - before) & 0xffffffffffu) | words[i] << 40;
        before = ticks;
    }
}

#ifdef __SSE2__
/* Eight words to eight bytes in each plane, by interleaving bytes three times. */
static void lay_out_8(unsigned char *planes, size_t stride, const uint64_t *v)
{
    const __m128i w01 = _mm_loadu_si128((const __m128i *)(v + 0)),
                  w23 = _mm_loadu_si128((const __m128i *)(v + 2));
    const __m128i w45 = _mm_loadu_si128((const __m128i *)(v + 4)),
                  w67 = _mm_loadu_si128((const __m128i *)(v + 6));
    const __m128i e0 = _mm_unpacklo_epi8(w01, w23), o0 = _mm_unpackhi_epi8(w01, w23);
    const __m128i e1 = _mm_unpacklo_epi8(w45, w67), o1 = _mm_unpackhi_epi8(w45, w67);
    const __m128i a0 = _mm_unpacklo_epi8(e0, o0), a1 = _mm_unpackhi_epi8(e0, o0);
    const __m128i b0 = _mm_unpacklo_epi8(e1, o1), b1 = _mm_unpackhi_epi8(e1, o1);
    const __m128i rows[4] = {_mm_unpacklo_epi32(a0, b0), _mm_unpackhi_epi32(a0, b0),
                             _mm_unpacklo_epi32(a1, b1), _mm_unpackhi_epi32(a1, b1)};
    for (size_t r = 0; r < 4; r++) {
        _mm_storel_epi64((__m128i *)(planes + 2 * r * stride), rows[r]);
        _mm_storel_epi64((__m128i *)(planes + (2 * r + 1) * stride),
                         _mm_unpackhi_epi64(rows[r], rows[r]));
    }
}
#else
static void lay_out_8(unsigned char *planes, size_t stride, const uint64_t *v)
{
    for (size_t plane = 0; plane < 8; plane++)
        for (size_t i = 0; i < 8; i++)
            planes[plane * stride + i] = (unsigned char)(v[i] >> (8 * plane));
}
#endif

static void lay_out(unsigned char *planes, const uint64_t *mixed, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        lay_out_8(planes + i, n, mixed + i);
    for (; i < n; i++)
        for (size_t plane = 0; plane < 8; plane++)
            planes[plane * n + i] = (unsigned char)(mixed[i] >> (8 * plane));
}

const void *marey__pack_words(marey__packer *p, const uint64_t *words, size_t n,
                              struct marey__block *block)
{
    MAREY_ASSERT(n <= MAX_WORDS);
    mix_words(p->mixed, words, n);
    lay_out(p->planes, p->mixed, n);
    block->raw_len = (uint32_t)(n * 8);
    block->flags = MAREY__FLAG_PLANES;
    const size_t packed = ZSTD_compress2(p->zstd, p->packed, p->cap, p->planes, n * 8);
    if (ZSTD_isError(packed) || packed >= n * 8) {
        block->packed_len = block->raw_len;
        return p->planes;
    }
    block->flags |= MAREY__FLAG_ZSTD;
    block->packed_len = (uint32_t)packed;
    return p->packed;
}

/* ---- content of a chunk ---- */

/* Acquire: pairs with the release in marey__lane_store(). */
static inline uint64_t load_word(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* An event in one word: neither the terminating zero nor a longer record. */
static inline bool is_plain(uint64_t word)
{
    return marey_word_kind(word) - 1 < MAREY_KIND_RECORD - 1;
}

/*
 * The end of the plain words from `n` on, give or take three: nearly all are plain, and checking one at a time takes
 * 1.5 times as long.
 */
static size_t skip_plain(const uint64_t *words, size_t n)
{
    while (n + 4 <= MAREY__CHUNK_WORDS && is_plain(load_word(&words[n])) &&
           is_plain(load_word(&words[n + 1])) && is_plain(load_word(&words[n + 2])) &&
           is_plain(load_word(&words[n + 3])))
        n += 4;
    return n;
}

/* The end time of a record; most have no duration. */
static uint64_t end_ticks(const uint64_t *record, size_t length)
{
    const bool is_work = marey_record_type_of(record[0]) == MAREY_RECORD_GPU && length > 2;
    return marey_word_ticks(record[0]) + (is_work ? record[2] : 0);
}

struct marey__extent marey__chunk_extent(const struct marey__chunk_head *chunk)
{
    const uint64_t *words = (const uint64_t *)(chunk + 1);
    size_t n = 0, n_not_events = 0, last = 0;
    uint64_t longest = 0;
    while (n < MAREY__CHUNK_WORDS) {
        const size_t plain_end = skip_plain(words, n);
        if (plain_end > n)
            last = plain_end - 1;
        n = plain_end;
        if (n == MAREY__CHUNK_WORDS)
            break;
        const uint64_t word = load_word(&words[n]);
        const bool is_record = marey_word_kind(word) == MAREY_KIND_RECORD;
        const size_t length = is_record ? marey_record_length(word) : 1;
        if (word == 0 || length == 0 || length > MAREY__CHUNK_WORDS - n)
            break;
        if (is_record)
            longest = MAREY__MAX(longest, end_ticks(words + n, length));
        n_not_events += length - 1 + (is_record && marey_record_type_of(word) == MAREY_RECORD_GAP);
        last = n;
        n += length;
    }
    const uint64_t last_ticks = n > 0 ? marey_word_ticks(load_word(&words[last])) : 0;
    return (struct marey__extent){
        .n_words = n, .n_events = n - n_not_events, .last_ticks = MAREY__MAX(last_ticks, longest)};
}
