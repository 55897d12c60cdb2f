/*
 * table: typed tables (kymo/table.h), the texts in them, and the quantile sketch that statistics come from.
 */
#ifndef KYMO_TABLE_INTERNAL_H
#define KYMO_TABLE_INTERNAL_H

#include <stdbool.h>

#include "base/base_internal.h"
#include <kymo/table.h>

/* Copies of texts that stay where they are until fini. A zeroed one is empty. */
struct kymo__arena {
    struct kymo__arena_block *blocks; /* the latest first */
};

/* A copy with a NUL behind it, NULL without memory. `text` may be NULL when `len` is 0. */
KYMO_PRIVATE_API char *kymo__arena_text(struct kymo__arena *arena, const char *text, size_t len);
KYMO_PRIVATE_API void kymo__arena_fini(struct kymo__arena *arena);

/*
 * A quantile sketch of nanoseconds with a fixed relative error. Values up to 63 have a bucket each; above, every power
 * of two is cut into 64 equal buckets, so that a bucket's middle is at most 1/128 (0.8 %) away from any value in it.
 * Sketches of different threads, processes and machines add up bucket by bucket.
 *
 * A name that was called a few times only keeps the values themselves (exact, and a million names stay affordable).
 * After that each power of two that occurs has a page of 64 counters, half a kilobyte.
 */
enum {
    KYMO__SKETCH_BITS = 6,
    KYMO__SKETCH_PAGE = 1 << KYMO__SKETCH_BITS,
    KYMO__SKETCH_PAGES =
        64 - KYMO__SKETCH_BITS + 1, /* one linear page, then one for each exponent from 6 to 63 */
    KYMO__SKETCH_FEW = 5,
};

struct kymo__sketch {
    uint64_t count, sum, min, max; /* exact; `min` and `max` mean nothing while `count` is 0 */
    uint64_t **pages; /* KYMO__SKETCH_PAGES of them, each may be NULL; NULL while all are in `few` */
    uint64_t few[KYMO__SKETCH_FEW];
};

/* A zeroed sketch is an empty one. Fini leaves an empty one. */
KYMO_PRIVATE_API void kymo__sketch_fini(struct kymo__sketch *sketch);

/* Add `from` to `into`; false without memory, with `into` still a sketch of part of both. */
KYMO_PRIVATE_API KYMO_WARN_UNUSED bool kymo__sketch_merge(struct kymo__sketch *into,
                                                          const struct kymo__sketch *from);

/* The value below which the share `q` (0..1) of the values lies; 0 for an empty sketch. */
KYMO_PRIVATE_API uint64_t kymo__sketch_quantile(const struct kymo__sketch *sketch, double q);

/* The same with `n_zeros` zeros besides, which a sketch of what happened does not hold. */
KYMO_PRIVATE_API uint64_t kymo__sketch_quantile_with_zeros(const struct kymo__sketch *sketch,
                                                           uint64_t n_zeros, double q);

/* The first values, and those whose page does not exist yet. Does not touch count, sum, min and max. */
KYMO_PRIVATE_API KYMO_WARN_UNUSED bool kymo__sketch_add_slow(struct kymo__sketch *sketch,
                                                             uint64_t value);

/* The page of `value`; its place there is the six bits below the leading one. */
static inline uint32_t kymo__sketch_page_of(uint64_t value, uint32_t *bucket)
{
    if (value < KYMO__SKETCH_PAGE) {
        *bucket = (uint32_t)value;
        return 0;
    }
    const uint32_t shift = (uint32_t)(63 - __builtin_clzll(value)) - KYMO__SKETCH_BITS;
    *bucket = (uint32_t)(value >> shift) & (KYMO__SKETCH_PAGE - 1);
    return shift + 1;
}

/* Add one value; a few nanoseconds. False without memory: the value is then not in. */
static inline KYMO_WARN_UNUSED bool kymo__sketch_add(struct kymo__sketch *sketch, uint64_t value)
{
    uint32_t bucket;
    const uint32_t page = kymo__sketch_page_of(value, &bucket);
    if (KYMO_LIKELY(sketch->pages != NULL && sketch->pages[page] != NULL))
        sketch->pages[page][bucket]++;
    else if (!kymo__sketch_add_slow(sketch, value))
        return false;
    if (value < sketch->min || sketch->count == 0)
        sketch->min = value;
    if (value > sketch->max)
        sketch->max = value;
    sketch->count++;
    sketch->sum += value;
    return true;
}

#endif
