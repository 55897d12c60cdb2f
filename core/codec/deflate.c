/*
 * A deflate stream of blocks, each in the smallest of three forms: stored, Huffman codes for single bytes, or with
 * runs. A run is one byte and copies of it at distance 1.
 *
 * Code lengths follow Shannon: the logarithm of a symbol's rarity, rounded up. That leaves some codes unused, so
 * symbols are shortened until none is left, starting with those that rounding lengthened most. The result is within 1 %
 * of Huffman's and needs no sorting.
 */
#include "codec/internal.h"

enum {
    END_OF_BLOCK = 256,
    FIRST_LENGTH = 257, /* a copy of 3 bytes */
    SHORTEST_RUN = 3,
    LENGTH_258 = 285,
    N_SYMBOLS = 286,
    MAX_BITS = 12,
    /* Minimum frequency of a symbol, so that no code is longer than MAX_BITS. */
    RAREST = 2048,
};

struct codes {
    uint32_t counts[N_SYMBOLS];
    uint8_t lengths[N_SYMBOLS];
    uint64_t n_copies;
    uint32_t words[N_SYMBOLS]; /* the code, first bit lowest, and its length from bit 16 */
};

/* ---- bits ---- */

static void put_bits(struct marey__deflate *s, uint64_t bits, uint32_t n)
{
    s->bits |= bits << s->n_bits;
    s->n_bits += n;
    for (; s->n_bits >= 8; s->n_bits -= 8, s->bits >>= 8) {
        const uint8_t byte = (uint8_t)s->bits;
        marey__buf_put(s->out, &byte, 1);
    }
}

static void put_to_byte(struct marey__deflate *s)
{
    if (s->n_bits != 0)
        put_bits(s, 0, 8 - s->n_bits);
}

/* ---- code lengths ---- */

static uint32_t log2_up(uint64_t n)
{
    return n <= 1 ? 0 : 64 - (uint32_t)__builtin_clzll(n - 1);
}

static void choose_lengths(struct codes *codes)
{
    uint64_t sum = 0, weights[N_SYMBOLS];
    for (size_t i = 0; i < N_SYMBOLS; i++)
        sum += codes->counts[i];
    const uint64_t extra = sum / RAREST + 1;
    sum = 0;
    for (size_t i = 0; i < N_SYMBOLS; i++)
        sum += weights[i] = codes->counts[i] != 0 ? codes->counts[i] + extra : 0;
    uint32_t left = 1u << MAX_BITS; /* unused codes of MAX_BITS */
    for (size_t i = 0; i < N_SYMBOLS; i++) {
        codes->lengths[i] = 0;
        if (weights[i] == 0)
            continue;
        const uint32_t length = log2_up((sum + weights[i] - 1) / weights[i]);
        codes->lengths[i] = (uint8_t)MAREY__MAX(length, 1u);
        left -= 1u << (MAX_BITS - codes->lengths[i]);
    }
    /* The first round shortens codes that are more than half a bit too long. */
    for (uint64_t root = 141; left != 0; root = 0)
        for (size_t i = 0; i < N_SYMBOLS && left != 0; i++) {
            const uint32_t length = codes->lengths[i], cost = 1u << (MAX_BITS - length);
            if (length < 2 || cost > left || (weights[i] << length) * 100 < sum * root)
                continue;
            codes->lengths[i]--;
            left -= cost;
        }
}

static uint32_t reversed(uint32_t code, uint32_t length)
{
    uint32_t result = 0;
    for (uint32_t i = 0; i < length; i++, code >>= 1)
        result = result << 1 | (code & 1);
    return result;
}

/* Codes of one length are consecutive, shorter ones first. */
static void assign_codes(struct codes *codes)
{
    uint32_t next[MAX_BITS + 1] = {0}, n_of[MAX_BITS + 1] = {0};
    for (size_t i = 0; i < N_SYMBOLS; i++)
        n_of[codes->lengths[i]]++;
    n_of[0] = 0;
    for (uint32_t length = 1; length <= MAX_BITS; length++)
        next[length] = (next[length - 1] + n_of[length - 1]) << 1;
    for (size_t i = 0; i < N_SYMBOLS; i++) {
        const uint32_t length = codes->lengths[i];
        codes->words[i] = length == 0 ? 0 : reversed(next[length]++, length) | length << 16;
    }
}

/* The size of the block's symbols in bits. */
static uint64_t size_of(const struct codes *codes)
{
    uint64_t n_bits = 0;
    for (size_t i = 0; i < N_SYMBOLS; i++)
        n_bits += (uint64_t)codes->counts[i] * codes->lengths[i];
    return n_bits;
}

/* ---- runs ---- */

/* The length of the run that begins at `at`. */
static size_t run_at(const uint8_t *bytes, size_t at, size_t n)
{
    const uint64_t eight = bytes[at] * UINT64_C(0x0101010101010101);
    size_t end = at + 1;
    uint64_t next;
    while (end + 8 <= n) {
        memcpy(&next, bytes + end, 8);
        if (next != eight)
            break;
        end += 8;
    }
    while (end < n && bytes[end] == bytes[at])
        end++;
    return end - at;
}

/* How many copies the next symbol of a run encodes: lengths without extra bits. */
static size_t next_copy(size_t left)
{
    return left >= 258 ? 258 : left >= 10 ? 10 : left;
}

static uint32_t symbol_of_copy(size_t length)
{
    return length == 258 ? LENGTH_258 : FIRST_LENGTH + (uint32_t)length - SHORTEST_RUN;
}

typedef void take_symbol(void *ctx, uint32_t symbol);

/* Passes the block as symbols, including copies. */
static inline __attribute__((always_inline)) void walk_runs(const uint8_t *bytes, size_t n,
                                                            take_symbol *take, void *ctx)
{
    for (size_t i = 0; i < n;) {
        const size_t run = run_at(bytes, i, n);
        size_t copied = 0;
        take(ctx, bytes[i]);
        while (run - 1 - copied >= SHORTEST_RUN) {
            const size_t length = next_copy(run - 1 - copied);
            take(ctx, symbol_of_copy(length));
            copied += length;
        }
        for (size_t k = copied + 1; k < run; k++)
            take(ctx, bytes[i]);
        i += run;
    }
}

static void count_symbol(void *ctx, uint32_t symbol)
{
    struct codes *codes = ctx;
    codes->counts[symbol]++;
    codes->n_copies += symbol > END_OF_BLOCK;
}

/* ---- blocks ---- */

static void count_bytes(struct codes *codes, const uint8_t *bytes, size_t n)
{
    /* Eight tables, so that runs of equal bytes do not wait for one another's stores. */
    uint16_t counts[8][256] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t eight;
        memcpy(&eight, bytes + i, sizeof eight);
        for (unsigned k = 0; k < 8; k++)
            counts[k][(uint8_t)(eight >> (8 * k))]++;
    }
    for (; i < n; i++)
        counts[0][bytes[i]]++;
    for (unsigned k = 0; k < 8; k++)
        for (size_t b = 0; b < 256; b++)
            codes->counts[b] += counts[k][b];
    codes->counts[END_OF_BLOCK] = 1;
}

/*
 * Writes the code lengths, in a code with 4 bits for each of 16 symbols: lengths 0 to 12, and three repeats, of which
 * only 18 (many zeros) is used.
 */
static void put_header(struct marey__deflate *s, const struct codes *codes)
{
    static const uint8_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1};
    size_t n = N_SYMBOLS;
    while (n > FIRST_LENGTH && codes->lengths[n - 1] == 0)
        n--;
    put_bits(s, 2u << 1, 3); /* not the last; dynamic codes */
    put_bits(s, n - 257, 5);
    put_bits(s, 0, 5); /* one distance code */
    put_bits(s, sizeof order - 4, 4);
    for (size_t i = 0; i < sizeof order; i++)
        put_bits(s, order[i] <= MAX_BITS || order[i] >= 16 ? 4 : 0, 3);
    for (size_t i = 0; i < n;) {
        size_t zeros = 0;
        while (i + zeros < n && zeros < 138 && codes->lengths[i + zeros] == 0)
            zeros++;
        if (zeros >= 11) {
            put_bits(s, reversed(15, 4), 4); /* symbol 18, the last of the sixteen */
            put_bits(s, zeros - 11, 7);
            i += zeros;
        } else {
            put_bits(s, reversed(codes->lengths[i++], 4), 4);
        }
    }
    put_bits(s, reversed(codes->n_copies != 0 ? 1 : 0, 4), 4); /* the length of the one distance */
}

struct writer {
    const struct codes *codes;
    char *p;
    uint64_t bits;
    uint32_t n_bits;
};

static inline void add_code(struct writer *w, uint32_t word)
{
    w->bits |= (uint64_t)(word & 0xffff) << w->n_bits;
    w->n_bits += word >> 16;
}

/* Moves whole bytes out; writes 8, of which few count. */
static inline void move_out(struct writer *w)
{
    const uint64_t bits = w->bits;
    memcpy(w->p, &bits, sizeof bits);
    w->p += w->n_bits >> 3;
    w->bits >>= w->n_bits & ~7u;
    w->n_bits &= 7;
}

static void write_symbol(void *ctx, uint32_t symbol)
{
    struct writer *w = ctx;
    add_code(w, w->codes->words[symbol]);
    if (symbol > END_OF_BLOCK)
        w->n_bits++; /* the distance: a one-bit code, 0 */
    move_out(w);
}

static void write_bytes(struct writer *w, const uint8_t *bytes, size_t n)
{
    const uint32_t *words = w->codes->words;
    struct writer own = *w; /* a local copy, which the output cannot alias */
    size_t i = 0;
    for (; i + 4 <= n; i += 4) { /* 7 remaining bits and 4 codes of 12 fit into 64 */
        for (size_t k = 0; k < 4; k++)
            add_code(&own, words[bytes[i + k]]);
        move_out(&own);
    }
    *w = own;
    for (; i < n; i++)
        write_symbol(w, bytes[i]);
}

static void put_coded(struct marey__deflate *s, struct codes *codes, const uint8_t *bytes, size_t n,
                      uint64_t n_bits, bool has_runs)
{
    assign_codes(codes);
    put_header(s, codes);
    const size_t before = s->out->len, room = (size_t)(n_bits / 8) + 24;
    struct writer w = {.codes = codes, .bits = s->bits, .n_bits = s->n_bits};
    char *const start = w.p = marey__buf_extend(s->out, room);
    if (w.p == NULL)
        return;
    if (has_runs)
        walk_runs(bytes, n, write_symbol, &w);
    else
        write_bytes(&w, bytes, n);
    write_symbol(&w, END_OF_BLOCK);
    s->out->len = before + (size_t)(w.p - start);
    s->bits = w.bits;
    s->n_bits = w.n_bits;
}

static void put_stored(struct marey__deflate *s, const uint8_t *bytes, size_t n)
{
    put_bits(s, 0, 3);
    put_to_byte(s);
    put_bits(s, n, 16);
    put_bits(s, ~n & 0xffff, 16);
    marey__buf_put(s->out, bytes, n);
}

/* Search for runs only if one byte makes up most of the block. */
static bool may_have_runs(const struct codes *codes, size_t n)
{
    uint32_t most = 0;
    for (size_t b = 0; b < 256; b++)
        most = MAREY__MAX(most, codes->counts[b]);
    return most > n - n / 16;
}

void marey__deflate_block(struct marey__deflate *s, const uint8_t *bytes, size_t n)
{
    MAREY_ASSERT(n <= MAREY__DEFLATE_BLOCK);
    if (n == 0)
        return;
    struct codes codes = {0};
    count_bytes(&codes, bytes, n);
    const bool has_runs = may_have_runs(&codes, n);
    if (has_runs) {
        memset(codes.counts, 0, sizeof codes.counts);
        walk_runs(bytes, n, count_symbol, &codes);
        codes.counts[END_OF_BLOCK] = 1;
    }
    choose_lengths(&codes);
    const uint64_t n_bits = size_of(&codes) + codes.n_copies;
    const uint64_t header = 1200; /* upper bound, in bits */
    if (n_bits + header < 8 * (uint64_t)n - 8 * (uint64_t)n / 64)
        put_coded(s, &codes, bytes, n, n_bits, has_runs);
    else
        put_stored(s, bytes, n);
}

void marey__deflate_bytes(struct marey__deflate *s, const void *bytes, size_t n)
{
    enum { PIECE = 1 << 15 };
    for (size_t i = 0; i < n; i += PIECE)
        marey__deflate_block(s, (const uint8_t *)bytes + i, MAREY__MIN(n - i, (size_t)PIECE));
}

void marey__deflate_finish(struct marey__deflate *s)
{
    put_bits(s, 3, 3); /* the last block, with fixed codes, */
    put_bits(s, 0, 7); /* that contains only its end */
    put_to_byte(s);
}
