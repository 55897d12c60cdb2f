/*
 * Numbers as the shortest decimal text that reads back to them in their own type, written as Python's repr() would: 0.1,
 * 1e-05, 16777216.0. No locale has a say.
 *
 *   number_powers.c ── powers of ten to 128 bits, computed once
 *   number_shortest.h ── a number as the fewest decimal digits
 *   number_text.c ── digits as text; integers
 */
#ifndef MAREY_NUMBER_TEXT_H
#define MAREY_NUMBER_TEXT_H

#include <stdatomic.h>

#include "base/base_internal.h"

/* Bytes that each of these may write, none of them a NUL. They return the end of the text. */
enum { MAREY__NUMBER_ROOM = 40 };
/* Of finite numbers. */
MAREY_PRIVATE_API char *marey__f32_text(char *out, float value);
MAREY_PRIVATE_API char *marey__f64_text(char *out, double value);
MAREY_PRIVATE_API char *marey__i64_text(char *out, int64_t value);
MAREY_PRIVATE_API char *marey__u64_text(char *out, uint64_t value);

/* ---- shared by the files above ---- */

/* The 128 leading bits of 10^n, the rest cut off. */
struct marey__power {
    uint64_t high, low;
};
enum { MAREY__POWER_MIN = -342, MAREY__POWER_MAX = 324, MAREY__POWER_EXACT = 55 };
MAREY_PRIVATE_API extern struct marey__power marey__power_table[MAREY__POWER_MAX - MAREY__POWER_MIN + 1];
MAREY_PRIVATE_API extern _Atomic bool marey__has_powers; /* set with release when the table is made */
MAREY_PRIVATE_API void marey__powers_make(void);

/* What follows from the exponent of a float32 as it stands in its bits, 1 to 254. */
struct marey__f32_power {
    uint64_t power;
    int32_t k;
    uint32_t shift;
};
MAREY_PRIVATE_API extern struct marey__f32_power marey__f32_powers[256];

static inline bool marey__powers_are_made(void)
{
    /* Acquire: meets the release in number_powers.c, so that the tables are seen whole. */
    return atomic_load_explicit(&marey__has_powers, memory_order_acquire);
}

/* By n - MAREY__POWER_MIN; made with the first call. Exact for n from 0 to MAREY__POWER_EXACT. Any thread. */
static inline const struct marey__power *marey__powers(void)
{
    if (MAREY_UNLIKELY(!marey__powers_are_made()))
        marey__powers_make();
    return marey__power_table;
}

/* floor(log2(10^n)); right for |n| up to 1233. */
static inline int32_t marey__log2_of_power(int32_t n)
{
    return (int32_t)((n * (int64_t)1741647) >> 19);
}

/* c * 2^q as text, where neighbours of the number are one unit of `c` away; shortest() of number_shortest.h has more. */
char *marey__binary_text(char *out, uint64_t c, int32_t q, bool is_lower_closer);

#endif
