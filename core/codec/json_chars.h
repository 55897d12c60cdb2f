/*
 * Searching for characters, sixteen at a time with SSE2. Each function reads until it finds a match: the bytes must be
 * followed by two quotes, which stop all of them even after an escape, and MAREY__JSON_PADDING bytes in all.
 */
#ifndef MAREY_JSON_CHARS_H
#define MAREY_JSON_CHARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__SSE2__) && !defined(MAREY_NO_SIMD)
#include <emmintrin.h>
#endif

/* Blanks and commas: commas may be missing, doubled or left over, so nothing depends on them. */
static inline bool json_is_blank(char c)
{
    return c == ' ' || c == '\n' || c == ',' || c == '\t' || c == '\r';
}

static inline const char *json_skip_blanks(const char *p)
{
    while (json_is_blank(*p))
        p++;
    return p;
}

static inline const char *json_skip_spaces(const char *p)
{
    while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

#if defined(__SSE2__) && !defined(MAREY_NO_SIMD)

/* The next quote or backslash. */
static inline const char *json_find_quote(const char *p)
{
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
    for (;; p += 16) {
        const __m128i x = _mm_loadu_si128((const __m128i *)p);
        const unsigned found = (unsigned)_mm_movemask_epi8(
            _mm_or_si128(_mm_cmpeq_epi8(x, quote), _mm_cmpeq_epi8(x, backslash)));
        if (found != 0)
            return p + __builtin_ctz(found);
    }
}

/* The next quote, bracket or brace. */
static inline const char *json_find_bracket(const char *p)
{
    /* A bracket and a brace differ in one bit: 5b and 7b open, 5d and 7d close. */
    const __m128i bit = _mm_set1_epi8(0x20);
    const __m128i open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}'), quote = _mm_set1_epi8('"');
    for (;; p += 16) {
        const __m128i x = _mm_loadu_si128((const __m128i *)p);
        const __m128i brace = _mm_or_si128(x, bit);
        const __m128i is_either =
            _mm_or_si128(_mm_cmpeq_epi8(brace, open), _mm_cmpeq_epi8(brace, close));
        const unsigned found =
            (unsigned)_mm_movemask_epi8(_mm_or_si128(is_either, _mm_cmpeq_epi8(x, quote)));
        if (found != 0)
            return p + __builtin_ctz(found);
    }
}

/* The next blank, comma, quote or closing bracket or brace: the end of a number. */
static inline const char *json_find_delimiter(const char *p)
{
    const __m128i bit = _mm_set1_epi8(0x20), space = _mm_set1_epi8(' '), close = _mm_set1_epi8('}');
    const __m128i comma = _mm_set1_epi8(','), quote = _mm_set1_epi8('"');
    for (;; p += 16) {
        const __m128i x = _mm_loadu_si128((const __m128i *)p);
        /* Blanks are bytes up to a space, so the minimum with a space is the byte itself. */
        const __m128i is_blank = _mm_cmpeq_epi8(_mm_min_epu8(x, space), x);
        const __m128i is_close = _mm_cmpeq_epi8(_mm_or_si128(x, bit), close);
        const __m128i is_other = _mm_or_si128(_mm_cmpeq_epi8(x, comma), _mm_cmpeq_epi8(x, quote));
        const unsigned found =
            (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(is_blank, is_close), is_other));
        if (found != 0)
            return p + __builtin_ctz(found);
    }
}

#else

static inline const char *json_find_delimiter(const char *p)
{
    while ((unsigned char)*p > ' ' && *p != ',' && *p != '"' && (*p | 0x20) != '}')
        p++;
    return p;
}

static inline const char *json_find_quote(const char *p)
{
    while (*p != '"' && *p != '\\')
        p++;
    return p;
}

static inline const char *json_find_bracket(const char *p)
{
    while (*p != '"' && (*p | 0x20) != '{' && (*p | 0x20) != '}')
        p++;
    return p;
}

#endif

/* After an opening quote: the closing one, or `end` or later if there is none. */
static inline const char *json_end_of_string(const char *p, const char *end, bool *has_escapes)
{
    for (p = json_find_quote(p); *p == '\\' && p < end; p = json_find_quote(p + 2))
        *has_escapes = true;
    return p;
}

/*
 * Skips to the bracket that closes the last of `n_open` open ones; `p` is not in a string. Returns the position after
 * it, or NULL if it is not before `end`.
 */
static inline const char *json_close_by_steps(const char *p, const char *end, uint64_t n_open)
{
    bool has_escapes = false;
    do {
        p = json_find_bracket(p);
        if (*p == '"' && p < end)
            p = json_end_of_string(p + 1, end, &has_escapes);
        if (p >= end)
            return NULL;
        if (*p == '{' || *p == '[')
            n_open++;
        else if (*p != '"')
            n_open--;
        p++;
    } while (n_open > 0);
    return p;
}

#if defined(__SSE2__) && !defined(MAREY_NO_SIMD)

/* One bit for each of 64 bytes. */
struct json_block {
    uint64_t quotes, escapes, opens, closes;
};

static inline struct json_block json_look_at(const char *p)
{
    const __m128i bit = _mm_set1_epi8(0x20), quote = _mm_set1_epi8('"'), escape = _mm_set1_epi8('\\');
    const __m128i open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}');
    struct json_block block = {0};
    for (unsigned i = 0; i < 64; i += 16) {
        const __m128i x = _mm_loadu_si128((const __m128i *)(p + i));
        const __m128i brace = _mm_or_si128(x, bit);
        block.quotes |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, quote)) << i;
        block.escapes |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, escape)) << i;
        block.opens |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(brace, open)) << i;
        block.closes |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(brace, close)) << i;
    }
    return block;
}

/* Prefix xor: each bit becomes the parity of itself and all lower ones, 1 between quotes. */
static inline uint64_t json_between(uint64_t quotes)
{
    for (unsigned n = 1; n < 64; n *= 2)
        quotes ^= quotes << n;
    return quotes;
}

/*
 * `p` is at an opening bracket. Returns the position after its closing one, or NULL if there is none before `end`.
 * Works on whole blocks, without a branch per string; at an escape it continues step by step.
 */
static inline const char *json_skip_nested(const char *p, const char *end)
{
    uint64_t in_string = 0; /* all ones if the block begins inside a string */
    uint64_t n_open = 0;
    for (; p < end; p += 64) {
        const struct json_block block = json_look_at(p);
        if (block.escapes != 0) {
            bool has_escapes = false;
            if (in_string != 0)
                p = json_end_of_string(p, end, &has_escapes) + 1;
            return p <= end ? json_close_by_steps(p, end, n_open) : NULL;
        }
        const uint64_t between = json_between(block.quotes) ^ in_string;
        in_string = (uint64_t)((int64_t)between >> 63);
        uint64_t brackets = (block.opens | block.closes) & ~between;
        for (; brackets != 0; brackets &= brackets - 1) {
            const unsigned i = (unsigned)__builtin_ctzll(brackets);
            n_open += (block.opens >> i & 1) * 2 - 1;
            if (n_open == 0)
                return p + i < end ? p + i + 1 : NULL;
        }
    }
    return NULL;
}

#else

static inline const char *json_skip_nested(const char *p, const char *end)
{
    return json_close_by_steps(p, end, 0);
}

#endif

#endif
