/*
 * Comparing a block, for one kind of vector. Included with
 *
 *   V(name)       a type or function of the vectors: s_name of float32, d_name of float64
 *   LANES         numbers per vector
 *   REAL, BITS    the type of a number, and an unsigned integer of its width
 *   READ          loads a struct V(side)
 *   ADD_UP_WIDE   adds products of two vectors to sums in float64
 *   ADD_WIDE      adds a vector to a sum in float64
 *
 * Sums in float32 are added to sums in float64 after RUN vectors, before rounding errors accumulate.
 */

/* The numbers of one side: values, and bit patterns of their own type. */
struct V(side) {
    V(v) value;
    V(i) pattern;
};

/* State carried from vector to vector. */
struct V(running) {
    V(i) max_d, max_a, max_b, ulp;
    V(v) excess;
    uint32_t n_wrong, n_unequal;
    V(v) a, b, abs, aa, bb, ab, dd;
    d_v wide_a, wide_b, wide_abs, wide_aa, wide_bb, wide_ab, wide_dd;
};

/* Adds the sums in the type itself to the wide sums. */
INLINE void V(flush)(struct V(running) * r)
{
#define FLUSH(sum, SUM)                                                                            \
    r->wide_##sum = ADD_WIDE(r->wide_##sum, r->sum);                                               \
    r->sum = V(set)(0);
    EACH_SUM(FLUSH)
#undef FLUSH
}

struct V(limits) {
    V(v) abs, rel, rel_so_far;
    V(i) ulp;
};

INLINE void V(add_up)(struct V(running) * r, V(v) a, V(v) b, V(v) d, V(v) distance)
{
    r->a += a;
    r->b += b;
    r->abs += distance;
    r->aa = V(sum_product)(a, a, r->aa);
    r->bb = V(sum_product)(b, b, r->bb);
    r->ab = V(sum_product)(a, b, r->ab);
    r->dd = V(sum_product)(d, d, r->dd);
}

INLINE void V(add_up_wide)(struct V(running) * r, d_v a, d_v b)
{
    const d_v d = a - b;
    r->wide_a += a;
    r->wide_b += b;
    r->wide_abs += (d_v)d_magnitude((d_i)d);
    r->wide_aa = d_sum_product(a, a, r->wide_aa);
    r->wide_bb = d_sum_product(b, b, r->wide_bb);
    r->wide_ab = d_sum_product(a, b, r->wide_ab);
    r->wide_dd = d_sum_product(d, d, r->wide_dd);
}

/* Elements of two parts count if either is set. */
INLINE uint32_t V(count)(uint32_t lanes, const bool in_pairs)
{
    return (uint32_t)__builtin_popcount(in_pairs ? (lanes | lanes >> 1) & 0x5555 : lanes);
}

INLINE void V(step)(struct V(running) * r, const struct V(limits) * limits, struct V(side) a,
                    struct V(side) b, const int form, const bool in_pairs, const bool is_wide)
{
    const V(v) d = a.value - b.value;
    const V(i) size_d = V(magnitude)((V(i))d), size_a = V(magnitude)((V(i))a.value),
               size_b = V(magnitude)((V(i))b.value);
    const V(v) distance = (V(v))size_d, reference = (V(v))size_b;
    r->max_d = V(max)(r->max_d, size_d);
    r->max_a = V(max)(r->max_a, size_a);
    r->max_b = V(max)(r->max_b, size_b);
    const bool own_patterns = form == MAREY__FORM_F16 || form == MAREY__FORM_EXPANDED;
    const V(i) apart = own_patterns ? V(apart)(a.pattern, b.pattern, V(magnitude)(a.pattern),
                                               V(magnitude)(b.pattern))
                                    : V(apart)(a.pattern, b.pattern, size_a, size_b);
    r->ulp = V(max)(r->ulp, apart);
    const V(v) allowed = limits->abs + limits->rel * reference;
    V(mask) wrong = V(greater)(distance, allowed);
    if (is_wide)
        wrong = wrong & V(above)(apart, limits->ulp);
    r->n_wrong += V(count)(V(lanes)(wrong), in_pairs);
    r->n_unequal += V(count)(V(lanes)(V(is_zero)(apart)) ^ ((1u << LANES) - 1), in_pairs);
    r->excess = V(greater_of)(r->excess, V(excess)(distance, limits->rel_so_far, reference));
    if (is_wide)
        ADD_UP_WIDE(r, a.value, b.value);
    else
        V(add_up)(r, a.value, b.value, d, distance);
}

INLINE BITS V(largest)(V(i) x)
{
    BITS most = 0;
    for (int i = 0; i < LANES; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

INLINE double V(largest_value)(V(i) x)
{
    const BITS bits = V(largest)(x);
    REAL value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

INLINE void V(finish)(const struct V(running) * r, struct marey__block_diff *out)
{
    out->n_wrong = r->n_wrong;
    out->n_unequal = r->n_unequal;
    out->beats_rel = V(lanes)(V(greater)(r->excess, V(set)(0))) != 0;
    out->max_d = V(largest_value)(r->max_d);
    out->max_a = V(largest_value)(r->max_a);
    out->max_b = V(largest_value)(r->max_b);
    out->ulp = V(largest)(r->ulp);
#define FINISH(sum, SUM) out->sums[MAREY__SUM_##SUM] = total(r->wide_##sum);
    EACH_SUM(FINISH)
#undef FINISH
}

/* The last numbers of a block, padded with zeros: these are equal, agree, and add nothing. */
struct V(rest) {
    REAL a[LANES], b[LANES];
    uint32_t patterns_a[LANES], patterns_b[LANES];
};

INLINE void V(take_rest)(const struct marey__block_pair *pair, size_t from, const int form,
                         struct V(rest) * rest)
{
    const size_t size = SIZE_OF(form), n = pair->n - from;
    memset(rest, 0, sizeof *rest);
    memcpy(rest->a, (const char *)pair->a + from * size, n * size);
    memcpy(rest->b, (const char *)pair->b + from * size, n * size);
    if (form == MAREY__FORM_EXPANDED) {
        memcpy(rest->patterns_a, pair->patterns_a + from, n * sizeof *rest->patterns_a);
        memcpy(rest->patterns_b, pair->patterns_b + from, n * sizeof *rest->patterns_b);
    }
}

INLINE void V(compare)(const struct marey__block_pair *pair, const int form, const bool in_pairs,
                       const bool is_wide, struct marey__block_diff *out)
{
    const size_t size = SIZE_OF(form);
    const char *a = pair->a, *b = pair->b;
    const uint32_t *patterns_a = pair->patterns_a, *patterns_b = pair->patterns_b;
    const struct V(limits) limits = {V(set)((REAL)pair->abs), V(set)((REAL)pair->rel),
                                     V(set)((REAL)pair->rel_so_far), V(set_bits)((BITS)pair->ulp)};
    struct V(running) r;
    memset(&r, 0, sizeof r);
    size_t i = 0;
    while (i + LANES <= pair->n) {
        for (const size_t stop = STOP(i, pair->n); i + LANES <= stop; i += LANES) {
            __builtin_prefetch(a + i * size + AHEAD);
            __builtin_prefetch(b + i * size + AHEAD);
            V(step)
            (&r, &limits, READ(a + i * size, patterns_a + i, form),
             READ(b + i * size, patterns_b + i, form), form, in_pairs, is_wide);
        }
        V(flush)(&r);
    }
    if (i < pair->n) {
        struct V(rest) rest;
        V(take_rest)(pair, i, form, &rest);
        V(step)
        (&r, &limits, READ((const char *)rest.a, rest.patterns_a, form),
         READ((const char *)rest.b, rest.patterns_b, form), form, in_pairs, is_wide);
    }
    V(flush)(&r);
    V(finish)(&r, out);
}

/* ---- relative differences: a second pass, over the few blocks that may have a larger one ---- */

/* Infinite if b is 0 and a is not; 0 / 0 would be NaN, whose bits are larger than all others. */
INLINE V(i) V(rel_step)(V(i) most, V(v) a, V(v) b)
{
    const V(i) distance = V(magnitude)((V(i))(a - b)), reference = V(magnitude)((V(i))b);
    const V(i) ratio = (V(i))((V(v))distance / (V(v))reference);
    return V(max)(most, V(choose)(V(is_zero)(distance), distance, ratio));
}

INLINE void V(ratios)(const struct marey__block_pair *pair, const int form,
                      struct marey__block_diff *out)
{
    const size_t size = SIZE_OF(form);
    const char *a = pair->a, *b = pair->b;
    V(i) most = V(set_bits)(0);
    size_t i = 0;
    for (; i + LANES <= pair->n; i += LANES)
        most = V(rel_step)(most, READ_VALUE(a + i * size, form), READ_VALUE(b + i * size, form));
    if (i < pair->n) {
        struct V(rest) rest;
        V(take_rest)(pair, i, form, &rest);
        most = V(rel_step)(most, READ_VALUE((const char *)rest.a, form),
                           READ_VALUE((const char *)rest.b, form));
    }
    out->max_rel = V(largest_value)(most);
}

/* ---- bitwise equal blocks ---- */

struct V(equal) {
    V(i) differing, most;
    V(v) sum, squares;
    d_v wide_sum, wide_squares;
};

INLINE void V(equal_flush)(struct V(equal) * r)
{
    r->wide_sum = ADD_WIDE(r->wide_sum, r->sum);
    r->wide_squares = ADD_WIDE(r->wide_squares, r->squares);
    r->sum = r->squares = V(set)(0);
}

INLINE void V(equal_step)(struct V(equal) * r, V(v) a, V(v) b)
{
    r->differing |= (V(i))a ^ (V(i))b;
    r->most = V(max)(r->most, V(magnitude)((V(i))a));
    r->sum += a;
    r->squares = V(sum_product)(a, a, r->squares);
}

INLINE bool V(equal)(const struct marey__block_pair *pair, const int form,
                     struct marey__block_diff *out)
{
    const size_t size = SIZE_OF(form);
    const char *a = pair->a, *b = pair->b;
    struct V(equal) r;
    memset(&r, 0, sizeof r);
    size_t i = 0;
    while (i + LANES <= pair->n) {
        for (const size_t stop = STOP(i, pair->n); i + LANES <= stop; i += LANES) {
            __builtin_prefetch(a + i * size + AHEAD);
            __builtin_prefetch(b + i * size + AHEAD);
            V(equal_step)(&r, READ_VALUE(a + i * size, form), READ_VALUE(b + i * size, form));
        }
        V(equal_flush)(&r);
    }
    if (i < pair->n) {
        struct V(rest) rest;
        V(take_rest)(pair, i, form, &rest);
        V(equal_step)
        (&r, READ_VALUE((const char *)rest.a, form), READ_VALUE((const char *)rest.b, form));
    }
    V(equal_flush)(&r);
    out->max_a = V(largest_value)(r.most);
    out->sums[MAREY__SUM_A] = total(r.wide_sum);
    out->sums[MAREY__SUM_AA] = total(r.wide_squares);
    return V(largest)(r.differing) == 0;
}
