/*
 * Counts how often each byte occurs in a block. Tensors have few exponents: frequent ones are counted by comparing
 * whole vectors, rare ones one by one.
 */

/* Codes counted per pass, and the maximum of passes. */
enum { PER_PASS = 5, MAX_PASSES = 4 };

/* Counts the codes from `top` down in `n` bytes (whole vectors). Returns the number counted. Prefetches memory at `ahead`. */
static uint32_t count_some(const uint8_t *codes, size_t n, uint8_t top, const char *ahead,
                           uint64_t *counts)
{
    const b_v v0 = b_set(top), v1 = b_set((uint8_t)(top - 1)), v2 = b_set((uint8_t)(top - 2)),
              v3 = b_set((uint8_t)(top - 3)), v4 = b_set((uint8_t)(top - 4));
    uint32_t sum = 0;
    for (size_t i = 0; i < n;) {
        b_v n0 = b_set(0), n1 = n0, n2 = n0, n3 = n0, n4 = n0;
        /* At most 128 vectors, because byte counters overflow at 255. */
        for (const size_t stop = i + 128 * VECTOR_BYTES < n ? i + 128 * VECTOR_BYTES : n; i < stop;
             i += VECTOR_BYTES) {
            const b_v x = b_load(codes + i);
            __builtin_prefetch(ahead + 2 * i);
            __builtin_prefetch(ahead + 2 * i + 64);
            n0 = b_count(n0, x, v0);
            n1 = b_count(n1, x, v1);
            n2 = b_count(n2, x, v2);
            n3 = b_count(n3, x, v3);
            n4 = b_count(n4, x, v4);
        }
        const uint32_t found[PER_PASS] = {b_total(n0), b_total(n1), b_total(n2), b_total(n3),
                                          b_total(n4)};
        for (int k = 0; k < PER_PASS; k++) {
            counts[top - k] += found[k];
            sum += found[k];
        }
    }
    return sum;
}

/* Counts the codes from 1 to `limit`, which are frequent. */
static uint32_t count_one_by_one(const uint8_t *codes, size_t n, uint8_t limit, uint64_t *counts)
{
    /* Four tables: a counter that was just stored cannot be loaded again immediately. */
    uint32_t tables[4][256] = {{0}}, sum = 0;
    for (size_t i = 0; i < n; i += 4)
        for (size_t k = 0; k < 4; k++)
            tables[k][codes[i + k]]++;
    for (uint32_t code = 1; code <= limit; code++) {
        const uint32_t found = tables[0][code] + tables[1][code] + tables[2][code] + tables[3][code];
        counts[code] += found;
        sum += found;
    }
    return sum;
}

/* The same for infrequent codes. */
static uint32_t count_few(const uint8_t *codes, size_t n, uint8_t limit, uint64_t *counts)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i += VECTOR_BYTES)
        for (uint64_t lanes = b_within(b_load(codes + i), limit); lanes != 0; lanes &= lanes - 1) {
            counts[codes[i + (size_t)__builtin_ctzll(lanes)]]++;
            sum++;
        }
    return sum;
}

/* `most` is the largest of `n` codes, and at least `n_zero` are 0; there is room after them to fill a vector.
   Prefetches `next`, because memory would be idle meanwhile. */
static void count_codes(uint8_t *codes, size_t n, uint8_t most, uint32_t n_zero, const char *next,
                        uint64_t *counts)
{
    const size_t whole = (n + VECTOR_BYTES - 1) / VECTOR_BYTES * VECTOR_BYTES;
    memset(codes + n, 0, whole - n);
    uint32_t sum = 0;
    int top = most;
    for (int i = 0; i < MAX_PASSES && top > PER_PASS && n - n_zero - sum > n / 128;
         i++, top -= PER_PASS)
        sum += count_some(codes, whole, (uint8_t)top, next + (size_t)i * 2 * n, counts);
    if (n - n_zero - sum > n / 16)
        sum += count_one_by_one(codes, whole, (uint8_t)top, counts);
    else if (n - n_zero - sum > 0)
        sum += count_few(codes, whole, (uint8_t)top, counts);
    counts[0] += n - sum;
}
