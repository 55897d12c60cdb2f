/*
 * Values to bytes and back, by one set of functions for both ways: each takes the place of a value and writes what is
 * there, or reads into it, so that what is written and what is read cannot differ. After a failure nothing more is
 * done. What is read is checked: a count of things may not be more than the bytes that are left could hold.
 */
#ifndef MAREY_ARCHIVE_H
#define MAREY_ARCHIVE_H

#include <string.h>

#include "analyze/summary/summary_bytes.h"

struct archive {
    struct marey__buf *out; /* NULL: we read */
    const uint8_t *at, *end;
    bool is_bad, has_no_memory;
    struct marey__merge *merge;
    struct marey__lender *lender;
    struct marey_lane_info *lanes; /* read: all of them */
    size_t n_lanes;
    const struct marey_lane_info *last_lane; /* written: rows of a lane follow one another */
    size_t next_lane;
};

static inline bool has_failed(const struct archive *a)
{
    return a->is_bad || a->has_no_memory;
}

static inline bool reads(const struct archive *a)
{
    return a->out == NULL;
}

/* ---- values ---- */

static inline void read_u64(struct archive *a, uint64_t *value)
{
    uint64_t result = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
        if (a->at == a->end)
            break;
        const uint8_t byte = *a->at++;
        if (shift == 63 && byte > 1)
            break;
        result |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *value = result;
            return;
        }
    }
    a->is_bad = true;
}

static inline void u64(struct archive *a, uint64_t *value)
{
    if (has_failed(a))
        return;
    if (reads(a))
        read_u64(a, value);
    else
        marey__buf_put_leb128(a->out, *value);
}

/* Below `limit`. */
static inline void number(struct archive *a, uint32_t *value, uint64_t limit)
{
    uint64_t wide = *value;
    u64(a, &wide);
    a->is_bad |= !has_failed(a) && wide >= limit;
    if (!has_failed(a))
        *value = (uint32_t)wide;
}

static inline void u32(struct archive *a, uint32_t *value)
{
    number(a, value, UINT64_C(1) << 32);
}

/* A number of something, or MAREY__NO_NAME. */
static inline void number_or_none(struct archive *a, uint32_t *value, uint64_t limit)
{
    uint32_t above = *value + 1;
    number(a, &above, limit + 1);
    *value = above - 1;
}

static inline void i64(struct archive *a, int64_t *value)
{
    uint64_t bits = (uint64_t)*value;
    u64(a, &bits);
    *value = (int64_t)bits;
}

static inline void i32(struct archive *a, int32_t *value)
{
    uint32_t bits = (uint32_t)*value;
    u32(a, &bits);
    *value = (int32_t)bits;
}

static inline void flag(struct archive *a, bool *value)
{
    uint32_t bit = *value;
    number(a, &bit, 2);
    *value = bit != 0;
}

static inline void raw(struct archive *a, void *bytes, size_t len)
{
    if (has_failed(a))
        return;
    if (!reads(a))
        marey__buf_put(a->out, bytes, len);
    else if ((size_t)(a->end - a->at) < len)
        a->is_bad = true;
    else {
        memcpy(bytes, a->at, len);
        a->at += len;
    }
}

static inline void f64(struct archive *a, double *value)
{
    raw(a, value, sizeof *value);
}

/* How many come, each of `least` bytes or more. */
static inline void count(struct archive *a, size_t *n, size_t least)
{
    uint64_t wide = *n;
    u64(a, &wide);
    if (reads(a) && !has_failed(a) && wide > (size_t)(a->end - a->at) / least)
        a->is_bad = true;
    *n = has_failed(a) ? 0 : (size_t)wide;
}

static inline void bytes(struct archive *a, const char **text, size_t *len)
{
    count(a, len, 1);
    if (has_failed(a))
        return;
    if (!reads(a)) {
        marey__buf_put(a->out, *text, *len);
        return;
    }
    *text = marey__arena_text(&a->lender->texts, (const char *)a->at, *len);
    a->has_no_memory |= *text == NULL;
    a->at += *len;
}

static inline void text(struct archive *a, const char **text)
{
    size_t len = reads(a) ? 0 : strlen(*text);
    bytes(a, text, &len);
}

/* The rows of a list, zeroed when they are to be read. */
static inline void rows(struct archive *a, void *array, size_t *n, size_t *cap, size_t size,
                        size_t least)
{
    size_t wanted = *n;
    char *elements;
    count(a, &wanted, least);
    if (!reads(a) || has_failed(a))
        return;
    a->has_no_memory |= !marey__grow(array, cap, wanted, size);
    if (has_failed(a))
        return;
    memcpy(&elements, array, sizeof elements);
    if (wanted != 0)
        memset(elements, 0, wanted * size);
    *n = wanted;
}
#define ROWS(a, list, n, cap, least) rows((a), &(list), &(n), &(cap), sizeof *(list), (least))

/* As many as there are names at most. */
static inline void rows_by_name(struct archive *a, void *array, size_t *n, size_t *cap, size_t size,
                                size_t least)
{
    rows(a, array, n, cap, size, least);
    a->is_bad |= *n > a->merge->names.n;
}
#define ROWS_BY_NAME(a, list, n, cap, least)                                                       \
    rows_by_name((a), &(list), &(n), &(cap), sizeof *(list), (least))

#endif
