/*
 * Looking for characters, sixteen at a time where the processor can. Each function reads on until it finds what it looks
 * for: behind the bytes must stand two quotes, at which all of them stop, an escape in front of them included, and
 * KYMO__SCAN_PADDING bytes in all.
 */
#ifndef KYMO_JSON_CHARS_H
#define KYMO_JSON_CHARS_H

#include <stdbool.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Blanks and commas: these may be missing, double or left over, so nothing depends on them. */
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

#if defined(__SSE2__)

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

/* The next blank, comma, quote or closing bracket or brace: what ends a number. */
static inline const char *json_find_delimiter(const char *p)
{
    const __m128i bit = _mm_set1_epi8(0x20), space = _mm_set1_epi8(' '), close = _mm_set1_epi8('}');
    const __m128i comma = _mm_set1_epi8(','), quote = _mm_set1_epi8('"');
    for (;; p += 16) {
        const __m128i x = _mm_loadu_si128((const __m128i *)p);
        /* Blanks are the bytes up to a space, so that the smaller of the two is the byte itself. */
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

/* Behind an opening quote: the closing one, or `end` or further when there is none before it. */
static inline const char *json_end_of_string(const char *p, const char *end, bool *has_escapes)
{
    for (p = json_find_quote(p); *p == '\\' && p < end; p = json_find_quote(p + 2))
        *has_escapes = true;
    return p;
}

#endif
