/*
 * table: typed tables (marey/table.h), the texts in them, and the quantile sketch that statistics come from.
 */
#ifndef MAREY_TABLE_INTERNAL_H
#define MAREY_TABLE_INTERNAL_H

#include <stdbool.h>
#include <stdio.h>

#include "base/base_internal.h"
#include <marey/table.h>

/* Copies of texts that stay where they are until fini. A zeroed one is empty. */
struct marey__arena {
    struct marey__arena_block *blocks; /* the latest first */
};

/* A copy with a NUL behind it, NULL without memory. `text` may be NULL when `len` is 0. */
MAREY_PRIVATE_API char *marey__arena_text(struct marey__arena *arena, const char *text, size_t len);
MAREY_PRIVATE_API void marey__arena_fini(struct marey__arena *arena);

/*
 * A quantile sketch of nanoseconds, or of any other whole numbers, with a fixed relative error. Values up to 63 have a bucket each; above, every power
 * of two is cut into 64 equal buckets, so that a bucket's middle is at most 1/128 (0.8 %) away from any value in it.
 * Sketches of different threads, processes and machines add up bucket by bucket.
 *
 * A name that was called a few times only keeps the values themselves (exact, and a million names stay affordable).
 * After that each power of two that occurs has a page of 64 counters, half a kilobyte.
 *
 * One thread adds. Others may merge from a sketch meanwhile: they see each value or do not see it yet.
 */
enum {
    MAREY__SKETCH_BITS = 6,
    MAREY__SKETCH_PAGE = 1 << MAREY__SKETCH_BITS,
    MAREY__SKETCH_PAGES =
        64 - MAREY__SKETCH_BITS + 1, /* one linear page, then one for each exponent from 6 to 63 */
    MAREY__SKETCH_FEW = 5,
};

struct marey__sketch {
    uint64_t count;         /* release; loaded with acquire. Exact, as are the next three */
    uint64_t sum, min, max; /* relaxed; `min` and `max` mean nothing while `count` is 0 */
    uint64_t **pages; /* MAREY__SKETCH_PAGES of them, each may be NULL; NULL while all are in `few`. Release, acquire */
    uint64_t few[MAREY__SKETCH_FEW];
};

/* A zeroed sketch is an empty one. Fini leaves an empty one. */
MAREY_PRIVATE_API void marey__sketch_fini(struct marey__sketch *sketch);

/* Add `from` to `into`; false without memory, with `into` still a sketch of part of both. `into` is the caller's alone. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED bool marey__sketch_merge(struct marey__sketch *into,
                                                             const struct marey__sketch *from);

/* The value below which the share `q` (0..1) of the values lies; 0 for an empty sketch. */
MAREY_PRIVATE_API uint64_t marey__sketch_quantile(const struct marey__sketch *sketch, double q);

/* The same with `n_zeros` zeros besides, which a sketch of what happened does not hold. */
MAREY_PRIVATE_API uint64_t marey__sketch_quantile_with_zeros(const struct marey__sketch *sketch,
                                                             uint64_t n_zeros, double q);

/* Each value, or the middle of each bucket, with how many there are; in no order. */
typedef void marey__sketch_visitor(void *ctx, uint64_t value, uint64_t count);
MAREY_PRIVATE_API void marey__sketch_visit(const struct marey__sketch *sketch,
                                           marey__sketch_visitor *visitor, void *ctx);

/* The first values, and those whose page does not exist yet. Does not touch count, sum, min and max. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED bool marey__sketch_add_slow(struct marey__sketch *sketch,
                                                                uint64_t value);

/*
 * Add `n` values of which only the sum is known: each counts as their mean. With an `n` of 0 it is the sum that grows,
 * of values that are in already. False without memory.
 */
MAREY_PRIVATE_API MAREY_WARN_UNUSED bool marey__sketch_add_sum(struct marey__sketch *sketch,
                                                               uint64_t sum, uint64_t n);

/* Make room for pages in an empty sketch, so that it never keeps a few values by themselves. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED bool marey__sketch_reserve(struct marey__sketch *sketch);

/* The page of `value`; its place there is the six bits below the leading one. */
static inline uint32_t marey__sketch_page_of(uint64_t value, uint32_t *bucket)
{
    if (value < MAREY__SKETCH_PAGE) {
        *bucket = (uint32_t)value;
        return 0;
    }
    const uint32_t shift = (uint32_t)(63 - __builtin_clzll(value)) - MAREY__SKETCH_BITS;
    *bucket = (uint32_t)(value >> shift) & (MAREY__SKETCH_PAGE - 1);
    return shift + 1;
}

/* Add one value; a few nanoseconds. False without memory: the value is then not in. */
static inline MAREY_WARN_UNUSED bool marey__sketch_add(struct marey__sketch *sketch, uint64_t value)
{
    uint32_t bucket;
    const uint32_t page = marey__sketch_page_of(value, &bucket);
    const uint64_t count = sketch->count;
    if (MAREY_LIKELY(sketch->pages != NULL && sketch->pages[page] != NULL)) {
        uint64_t *const counter = &sketch->pages[page][bucket];
        __atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
    } else if (!marey__sketch_add_slow(sketch, value)) {
        return false;
    }
    if (value < sketch->min || count == 0)
        __atomic_store_n(&sketch->min, value, __ATOMIC_RELAXED);
    if (value > sketch->max)
        __atomic_store_n(&sketch->max, value, __ATOMIC_RELAXED);
    __atomic_store_n(&sketch->sum, sketch->sum + value, __ATOMIC_RELAXED);
    /* Release: meets the acquire in marey__sketch_merge(), which then finds the few values or the pages. */
    __atomic_store_n(&sketch->count, count + 1, __ATOMIC_RELEASE);
    return true;
}

/*
 * The same of a sketch that nobody merges from meanwhile and for which no room was reserved, once its page for the value is
 * there; false, with nothing changed, when it is not.
 */
static inline bool marey__sketch_add_known(struct marey__sketch *sketch, uint64_t value)
{
    uint32_t bucket;
    const uint32_t page = marey__sketch_page_of(value, &bucket);
    uint64_t *const *const pages = sketch->pages;
    if (MAREY_UNLIKELY(pages == NULL || pages[page] == NULL))
        return false;
    pages[page][bucket]++;
    /* One that has pages has values: they are made for the sixth. */
    if (MAREY_UNLIKELY(value < sketch->min))
        sketch->min = value;
    if (MAREY_UNLIKELY(value > sketch->max))
        sketch->max = value;
    sketch->sum += value;
    sketch->count++;
    return true;
}

/* ---- text_units.c: numbers as people read them ---- */

/* Three digits that count and a unit: "1.23 ms". With `unit` ("ns", "us", "ms", "s") the bare number in that unit. */
MAREY_PRIVATE_API void marey__text_duration(struct marey__buf *buf, double ns, const char *unit);
/* "950", "1.20 M". */
MAREY_PRIVATE_API void marey__text_amount(struct marey__buf *buf, double n);
/* "2.10 MB". */
MAREY_PRIVATE_API void marey__text_bytes(struct marey__buf *buf, double n);
/* "12.3 %". */
MAREY_PRIVATE_API void marey__text_share(struct marey__buf *buf, double share);
/* "1 thread", "2 threads"; past ten thousand "1.20 M events". `thing` takes an s, or an es behind an s. */
MAREY_PRIVATE_API void marey__text_count_of(struct marey__buf *buf, uint64_t n, const char *thing);

/*
 * A name or other text from outside, escaped for a terminal (marey_text_escape), and when it is wider than `width`
 * (0: no limit) its middle replaced by "...". Returns its width in columns.
 */
MAREY_PRIVATE_API size_t marey__text_put(struct marey__buf *buf, const char *text, size_t len,
                                         size_t width);

/* Hand the buffer to the stream and empty it. MAREY_ENOMEM when it had failed, MAREY_EIO when the stream refuses. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED marey_status marey__buf_to_stream(struct marey__buf *buf,
                                                                      FILE *out);

/* By the name of a column that the table has. */
static inline struct marey_cell marey__cell_of(const marey_table *table, size_t row,
                                               const char *column)
{
    return marey_table_cell(table, row, (size_t)marey_table_find(table, column));
}

#endif
