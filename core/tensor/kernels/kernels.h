/* The kernels over vectors of VECTOR_BYTES bytes, with KERNELS the name of their table. */
#include "tensor/kernels/internal.h"
#include "tensor/kernels/vector.h"

/* Prefetch distance in bytes, to hide memory latency. */
#define AHEAD 2048

/* Bytes per number. */
#define SIZE_OF(form)                                                                              \
    ((form) == MAREY__FORM_F64                                     ? 8u                            \
     : (form) == MAREY__FORM_F32 || (form) == MAREY__FORM_EXPANDED ? 4u                            \
                                                                   : 2u)

#include "tensor/kernels/count_codes.h"
#ifdef MAREY_HAVE_XXHASH
/* XXH3-128: xxHash chooses its vectors by the flags it is compiled with. */
#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= sizeof(struct marey__hash_state),
               "room for a running digest");

static void put_digest(XXH128_hash_t from, struct marey_digest *out)
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, from);
    memcpy(out->bytes, canonical.digest, sizeof out->bytes);
}

static void hash(const void *bytes, size_t n, struct marey_digest *out)
{
    put_digest(XXH3_128bits(bytes, n), out);
}

static void hash_begin(struct marey__hash_state *state)
{
    XXH3_INITSTATE((XXH3_state_t *)state);
    (void)XXH3_128bits_reset((XXH3_state_t *)state);
}

static void hash_add(struct marey__hash_state *state, const void *bytes, size_t n)
{
    (void)XXH3_128bits_update((XXH3_state_t *)state, bytes, n);
}

static void hash_end(const struct marey__hash_state *state, struct marey_digest *out)
{
    put_digest(XXH3_128bits_digest((const XXH3_state_t *)state), out);
}
#endif

/* Vectors whose sums stay in the type itself; the end of the run that begins at number i. */
#define RUN 32
#define STOP(i, n) ((i) + RUN * (size_t)(LANES) < (n) ? (i) + RUN * (size_t)(LANES) : (n))

/* X(field, NAME) of each enum marey__sum. */
#define EACH_SUM(X) X(a, A) X(b, B) X(abs, ABS) X(aa, AA) X(bb, BB) X(ab, AB) X(dd, DD)

INLINE double total(d_v x)
{
    double sum = 0;
    for (int i = 0; i < D_LANES; i++)
        sum += x[i];
    return sum;
}

/* As in store_codes. */
INLINE uint8_t code_of_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t exponent = (bits & INT64_MAX) >> 52;
    return exponent < 983 ? 0 : exponent > 983 + 63 ? 63 : (uint8_t)(exponent - 983);
}

INLINE uint8_t code_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint8_t)(bits >> 23);
}

/* ---- float64 ---- */

#define V(name) d_##name
#define LANES D_LANES
#define REAL double
#define BITS uint64_t
#define READ_VALUE(p, form) d_load(p)
#define READ(p, patterns, form) ((void)(patterns), (struct d_side){d_load(p), (d_i)d_load(p)})
#define ADD_UP_WIDE(r, a, b) d_add_up_wide(r, a, b)
#define ADD_WIDE(sum, x) ((sum) + (x))
#define CODE_OF(x) code_of_double(x)
#define SQUARES_FIT(x) ((x) == 0 || ((x) >= 0x1p-450 && (x) <= 0x1p500))
#include "tensor/kernels/compare_kernel.h"
#include "tensor/kernels/stats_kernel.h"
#undef V
#undef LANES
#undef REAL
#undef BITS
#undef READ_VALUE
#undef READ
#undef ADD_UP_WIDE
#undef ADD_WIDE
#undef CODE_OF
#undef SQUARES_FIT

/* ---- float32, and types converted to it ---- */

INLINE s_v read_value(const char *p, const int form)
{
    return form == MAREY__FORM_F16    ? s_load_f16(p)
           : form == MAREY__FORM_BF16 ? (s_v)s_load_upper(p)
                                      : s_load(p);
}

#define V(name) s_##name
#define LANES S_LANES
#define REAL float
#define BITS uint32_t
#define READ_VALUE(p, form) read_value(p, form)
#define READ(p, patterns, form)                                                                    \
    ((struct s_side){read_value(p, form), (form) == MAREY__FORM_EXPANDED ? s_load_bits(patterns)   \
                                          : (form) == MAREY__FORM_F16    ? s_load_upper(p)         \
                                                                      : (s_i)read_value(p, form)})
#define ADD_UP_WIDE(r, a, b)                                                                       \
    do {                                                                                           \
        s_add_up_wide(r, s_lower(a), s_lower(b));                                                  \
        s_add_up_wide(r, s_upper(a), s_upper(b));                                                  \
    } while (0)
#define ADD_WIDE(sum, x) ((sum) + (s_lower(x) + s_upper(x)))
#define CODE_OF(x) code_of_float((float)(x))
#define SQUARES_FIT(x) ((x) == 0 || ((x) >= 0x1p-50 && (x) <= 0x1p50))
#include "tensor/kernels/compare_kernel.h"
#include "tensor/kernels/stats_kernel.h"

/* ---- one set of functions per format, and their table ---- */

#define COMPARE(NAME, KIND, FORM, IN_PAIRS, IS_WIDE)                                               \
    static void NAME(const struct marey__block_pair *pair, struct marey__block_diff *out)          \
    {                                                                                              \
        KIND##_compare(pair, FORM, IN_PAIRS, IS_WIDE, out);                                        \
    }
#define ALL(NAME, KIND, FORM)                                                                      \
    COMPARE(NAME##_single, KIND, FORM, false, false)                                               \
    COMPARE(NAME##_pairs, KIND, FORM, true, false)                                                 \
    COMPARE(NAME##_wide, KIND, FORM, false, true)                                                  \
    COMPARE(NAME##_wide_pairs, KIND, FORM, true, true)                                             \
    static void NAME##_ratios(const struct marey__block_pair *pair, struct marey__block_diff *out) \
    {                                                                                              \
        KIND##_ratios(pair, FORM, out);                                                            \
    }                                                                                              \
    static bool NAME##_equal(const struct marey__block_pair *pair, struct marey__block_diff *out)  \
    {                                                                                              \
        return KIND##_equal(pair, FORM, out);                                                      \
    }                                                                                              \
    static bool NAME##_stats(const void *from, size_t n, struct marey__block_stats *out,           \
                             uint64_t *counts)                                                     \
    {                                                                                              \
        return KIND##_stats(from, n, FORM, out, counts);                                           \
    }
ALL(f32, s, MAREY__FORM_F32)
ALL(bf16, s, MAREY__FORM_BF16)
ALL(f16, s, MAREY__FORM_F16)
ALL(expanded, s, MAREY__FORM_EXPANDED)
ALL(f64, d, MAREY__FORM_F64)

#define ROW(NAME)                                                                                  \
    {                                                                                              \
        {NAME##_single, NAME##_pairs}, {NAME##_wide, NAME##_wide_pairs}, NAME##_ratios,            \
            NAME##_equal, NAME##_stats                                                             \
    }

const struct marey__kernels KERNELS = {
    .name = KERNELS_NAME,
    .floats = {[MAREY__FORM_F32] = ROW(f32),
               [MAREY__FORM_BF16] = ROW(bf16),
               [MAREY__FORM_F16] = ROW(f16),
               [MAREY__FORM_EXPANDED] = ROW(expanded),
               [MAREY__FORM_F64] = ROW(f64)},
#ifdef MAREY_HAVE_XXHASH
    .hash = hash,
    .hash_begin = hash_begin,
    .hash_add = hash_add,
    .hash_end = hash_end,
#endif
};
