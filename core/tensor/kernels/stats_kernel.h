/*
 * Statistics of a block, for one kind of vector; uses the same definitions as compare_kernel.h.
 *
 *   V(store_codes)   stores the exponents of a vector, a byte each
 *   CODE_OF(x)       the same of one number
 *   SQUARES_FIT(x)   whether squares of numbers up to x are accurate in the type itself
 */

struct V(stats) {
    V(v) min, max, sum, squares;
    d_v wide_sum, wide_squares;
    uint32_t n_negative, n_zero, n_small;
};

INLINE void V(stats_flush)(struct V(stats) * r)
{
    r->wide_sum = ADD_WIDE(r->wide_sum, r->sum);
    r->wide_squares = ADD_WIDE(r->wide_squares, r->squares);
    r->sum = r->squares = V(set)(0);
}

INLINE void V(stats_step)(struct V(stats) * r, V(v) x, V(v) about, uint32_t lanes, uint8_t *codes)
{
    const V(i) size = V(magnitude)((V(i))x);
    const V(v) distance = x - about;
    const uint32_t zero = V(lanes)(V(is_zero)(size)) & lanes;
    V(store_codes)(codes, (V(i))x);
    r->min = V(lesser_of)(r->min, x);
    r->max = V(greater_of)(r->max, x);
    r->sum += distance;
    r->squares = V(sum_product)(distance, distance, r->squares);
    r->n_zero += (uint32_t)__builtin_popcount(zero);
    r->n_negative += (uint32_t)__builtin_popcount(V(lanes)(V(is_negative)((V(i))x)) & lanes & ~zero);
    if (sizeof(REAL) == 8) { /* its bytes do not distinguish denormals from other small numbers */
        const V(mask) small = V(is_negative)(size - V(set_bits)((BITS)(UINT64_C(1) << 52)));
        r->n_small += (uint32_t)__builtin_popcount(V(lanes)(small) & lanes);
    }
}

INLINE void V(stats_finish)(const struct V(stats) * r, struct marey__block_stats *out)
{
    REAL min = r->min[0], max = r->max[0];
    for (int i = 1; i < LANES; i++) {
        min = r->min[i] < min ? r->min[i] : min;
        max = r->max[i] > max ? r->max[i] : max;
    }
    out->min = (double)min;
    out->max = (double)max;
    out->sum = total(r->wide_sum);
    out->squares = total(r->wide_squares);
    out->n_zero = r->n_zero;
    out->n_negative = r->n_negative;
    out->n_small = r->n_small;
}

INLINE bool V(stats)(const void *from, size_t n, const int form, struct marey__block_stats *out,
                     uint64_t *counts)
{
    const size_t size = SIZE_OF(form);
    const char *p = from;
    uint8_t codes[MAREY__BLOCK_CODES] __attribute__((aligned(64)));
    /* The last vector is padded with the first number, whose distance is 0. */
    unsigned char rest[LANES * sizeof(REAL)];
    for (size_t i = 0; i < LANES; i++)
        memcpy(rest + i * size, p, size);
    const V(v) about = READ_VALUE((const char *)rest, form);
    struct V(stats) r;
    memset(&r, 0, sizeof r);
    r.min = r.max = about;
    size_t i = 0;
    while (i + LANES <= n) {
        for (const size_t stop = STOP(i, n); i + LANES <= stop; i += LANES) {
            __builtin_prefetch(p + i * size + AHEAD);
            V(stats_step)
            (&r, READ_VALUE(p + i * size, form), about, (1u << LANES) - 1, codes + i);
        }
        V(stats_flush)(&r);
    }
    if (i < n) {
        memcpy(rest, p + i * size, (n - i) * size);
        V(stats_step)
        (&r, READ_VALUE((const char *)rest, form), about, (1u << (n - i)) - 1, codes + i);
    }
    out->about = (double)about[0];
    V(stats_flush)(&r);
    V(stats_finish)(&r, out);
    const double most = -out->min > out->max ? -out->min : out->max;
    /* If a number is not finite, neither are the sums. */
    if (!__builtin_isfinite(out->sum) || !__builtin_isfinite(out->squares) || !SQUARES_FIT(most))
        return false;
    count_codes(codes, n, CODE_OF(most), out->n_zero, p + n * size, counts);
    return true;
}
