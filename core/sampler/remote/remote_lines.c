/*
 * Line tables of 3.10, and of 3.11 and later, decoded once into runs of equal lines. Decoding stops at a fault.
 */
#include "sampler/remote/internal.h"

struct cursor {
    const uint8_t *at, *end;
};

struct runs {
    struct marey__remote_line_run *runs;
    size_t n, cap;
    bool failed;
};

static void put(struct runs *runs, uint64_t begin, int64_t line)
{
    const uint32_t known = line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
    struct marey__remote_line_run *const last = runs->n > 0 ? &runs->runs[runs->n - 1] : NULL;
    if (runs->failed || begin > UINT32_MAX || (last != NULL && last->line == known))
        return;
    if (last != NULL && last->begin == begin) { /* the previous one was empty */
        last->line = known;
        return;
    }
    runs->failed = !MAREY__PUSH(runs->runs, runs->n, runs->cap,
                                (struct marey__remote_line_run){(uint32_t)begin, known});
}

/* 3.10: pairs of the entry's length and the signed line delta; -128 means no line. */
static void decode_linetable(struct cursor in, int64_t line, struct runs *out)
{
    uint64_t address = 0;
    for (; in.end - in.at >= 2; in.at += 2) {
        const int step = (int8_t)in.at[1];
        if (step != -128)
            line += step;
        if (in.at[0] != 0)
            put(out, address, step == -128 ? 0 : line);
        address += in.at[0];
    }
    put(out, address, 0);
}

static uint64_t take_varint(struct cursor *in)
{
    uint64_t value = 0;
    for (unsigned shift = 0; in->at < in->end; shift += 6) {
        const uint8_t byte = *in->at++;
        if (shift < 60)
            value |= (uint64_t)(byte & 63) << shift;
        if ((byte & 64) == 0)
            break;
    }
    return value;
}

static int64_t take_signed_varint(struct cursor *in)
{
    const uint64_t value = take_varint(in);
    return (value & 1) != 0 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* From 3.11 on: entries with a kind and a length in two-byte units, then data by kind. */
static void decode_locations(struct cursor in, int64_t line, struct runs *out)
{
    uint64_t address = 0;
    while (in.at < in.end) {
        const uint8_t head = *in.at++;
        const unsigned kind = head >> 3 & 15;
        bool has_line = true;
        if (kind == 15) {
            has_line = false;
        } else if (kind == 14 || kind == 13) {
            const int64_t step = take_signed_varint(&in);
            /* Unsigned, so that an invalid sum cannot overflow. */
            line = (int64_t)((uint64_t)line + (uint64_t)step);
        } else if (kind >= 10) {
            line = (int64_t)((uint64_t)line + (kind - 10));
        }
        put(out, address, has_line ? line : 0);
        address += 2 * ((head & 7u) + 1);
        /* Skips columns; only the first byte of an entry has its highest bit set. */
        while (in.at < in.end && (*in.at & 128) == 0)
            in.at++;
    }
    put(out, address, 0);
}

bool marey__remote_lines_decode(enum marey__remote_line_format format, const uint8_t *table,
                                size_t len, uint32_t first_line,
                                struct marey__remote_line_run **out, size_t *n)
{
    const struct cursor in = {table, table + len};
    struct runs runs = {0};
    if (format == MAREY__REMOTE_LINES_LINETABLE)
        decode_linetable(in, first_line, &runs);
    else
        decode_locations(in, first_line, &runs);
    if (runs.failed) {
        marey__free(runs.runs);
        return false;
    }
    *out = runs.runs;
    *n = runs.n;
    return true;
}

uint32_t marey__remote_lines_at(const struct marey__remote_line_run *runs, size_t n, uint32_t offset)
{
    size_t at;
    MAREY__BISECT(at, 0, n, runs[at].begin <= offset);
    return at > 0 ? runs[at - 1].line : 0;
}
