/*
 * How often each byte occurs in a block. Numbers of a tensor have few different exponents: each of them is counted by
 * comparing whole vectors, from the largest down, and the few numbers far below it one by one.
 */

typedef uint8_t b_v __attribute__((vector_size(B_BYTES)));

/* Exponents counted by vectors. */
enum { MAX_PASSES = 14 };

INLINE uint32_t sum_bytes(b_v x)
{
    uint8_t bytes[B_BYTES];
    uint32_t sum = 0;
    memcpy(bytes, &x, sizeof bytes);
    for (size_t i = 0; i < B_BYTES; i++)
        sum += bytes[i];
    return sum;
}

INLINE uint32_t count_code(const uint8_t *codes, size_t n, uint8_t code)
{
    uint32_t sum = 0;
    const b_v wanted = (b_v){0} + code;
    for (size_t i = 0; i < n;) {
        b_v counts = {0};
        /* No more than 255 vectors, for a byte counts no further. */
        for (const size_t end = n - i > 255 * B_BYTES ? i + 255 * B_BYTES : n; i < end; i += B_BYTES) {
            b_v x;
            memcpy(&x, codes + i, sizeof x);
            counts -= (b_v)(x == wanted);
        }
        sum += sum_bytes(counts);
    }
    return sum;
}

static void count_one_by_one(const uint8_t *codes, size_t n, uint32_t *counts)
{
    /* Four tables: a count that is stored cannot be read again at once. */
    uint32_t tables[4][256] = {{0}};
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++)
            tables[k][codes[i + k]]++;
    for (; i < n; i++)
        tables[0][codes[i]]++;
    for (size_t code = 0; code < 256; code++)
        counts[code] = tables[0][code] + tables[1][code] + tables[2][code] + tables[3][code];
}

INLINE uint8_t largest_code(const uint8_t *codes, size_t n)
{
    uint8_t most = 0;
    b_v largest = {0};
    for (size_t i = 0; i < n; i += B_BYTES) {
        b_v x;
        memcpy(&x, codes + i, sizeof x);
        const b_v above = (b_v)(x > largest);
        largest = (x & above) | (largest & ~above);
    }
    uint8_t bytes[B_BYTES];
    memcpy(bytes, &largest, sizeof bytes);
    for (size_t i = 0; i < B_BYTES; i++)
        most = bytes[i] > most ? bytes[i] : most;
    return most;
}

/* The codes below `limit` that are not 0, of which there are few. */
INLINE void count_below(const uint8_t *codes, size_t n, uint8_t limit, uint32_t *counts)
{
    for (size_t i = 0; i < n; i += B_BYTES) {
        b_v x;
        memcpy(&x, codes + i, sizeof x);
        const b_v found = (b_v)(x < (b_v){0} + limit) & (b_v)(x != (b_v){0});
        uint64_t words[B_BYTES / 8], any = 0;
        memcpy(words, &found, sizeof words);
        for (size_t k = 0; k < B_BYTES / 8; k++)
            any |= words[k];
        for (size_t k = i; any != 0 && k < i + B_BYTES; k++)
            if (codes[k] < limit && codes[k] != 0)
                counts[codes[k]]++;
    }
}

static void count_codes(uint8_t *codes, size_t n, uint32_t *counts)
{
    /* Zeroes fill the last vector, and are taken off their count. */
    const size_t whole = (n + B_BYTES - 1) / B_BYTES * B_BYTES;
    memset(codes + n, 0, whole - n);
    memset(counts, 0, 256 * sizeof *counts);
    counts[0] = count_code(codes, whole, 0);
    uint32_t left = (uint32_t)(whole - counts[0]);
    counts[0] -= (uint32_t)(whole - n);
    uint32_t code = largest_code(codes, whole);
    for (int i = 0; i < MAX_PASSES && left > n / 128 && code > 0; i++, code--) {
        counts[code] = count_code(codes, whole, (uint8_t)code);
        left -= counts[code];
    }
    if (left > n / 16)
        count_one_by_one(codes, n, counts);
    else if (left > 0)
        count_below(codes, whole, (uint8_t)(code + 1), counts);
}
