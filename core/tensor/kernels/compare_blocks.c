/*
 * Compares block by block into the result of a chunk: first with a kernel, then exactly if its result requires that.
 */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "tensor/kernels/internal.h"

/* Which of the worst elements to search for in a block. */
struct wanted {
    bool wrong, abs, rel, ulp;
};

/* ---- float32 and narrower types ---- */

#define REAL float
#define WIDE double
#define BITS uint32_t
#define FN(name) f32_##name

static float f32_abs(float x)
{
    return fabsf(x);
}

static uint32_t f32_pattern(const float *values, const uint32_t *patterns, size_t i)
{
    (void)values;
    /* cppcheck confuses the two inclusions below, and takes the second one's NULL for this. */
    /* cppcheck-suppress ctunullpointer */
    return patterns[i];
}

#include "tensor/kernels/compare_floats.h"

#undef REAL
#undef WIDE
#undef BITS
#undef FN

/* ---- float64: sums of squares need a larger exponent range than its own ---- */

#define REAL double
#define WIDE long double
#define BITS uint64_t
#define FN(name) f64_##name

static double f64_abs(double x)
{
    return fabs(x);
}

static uint64_t f64_pattern(const double *values, const uint64_t *patterns, size_t i)
{
    uint64_t bits;
    (void)patterns;
    memcpy(&bits, &values[i], sizeof bits);
    return bits;
}

#include "tensor/kernels/compare_floats.h"

#undef REAL
#undef BITS
#undef FN

/* ---- numbers of two types that float64 cannot represent; ulps are counted in float64 ---- */

static_assert(LDBL_MANT_DIG >= 64, "long double holds 64-bit integers and float64");

#define REAL long double
#define BITS uint64_t
#define FN(name) mixed_##name
#define NO_FIND

static long double mixed_abs(long double x)
{
    return fabsl(x);
}

static uint64_t mixed_pattern(const long double *values, const uint64_t *patterns, size_t i)
{
    const double nearest = (double)values[i];
    return f64_pattern(&nearest, patterns, 0);
}

#include "tensor/kernels/compare_floats.h"

/* ---- parts in the common type ---- */

struct expanded {
    float values_a[MAREY__BLOCK_PARTS], values_b[MAREY__BLOCK_PARTS];
    uint32_t patterns_a[MAREY__BLOCK_PARTS], patterns_b[MAREY__BLOCK_PARTS];
};

/* Expands parts to the common type, which has at most 32 bits and represents all of them. */
static void expand_side(const struct marey__compare *job, const struct marey__dtype *type,
                        const unsigned char *from, size_t n, float *values, uint32_t *patterns)
{
    double wide[64];
    const enum marey_dtype part = (enum marey_dtype)type->part;
    if (type->kind == MAREY__IS_FLOAT) {
        marey__widen(part, from, n, values);
    } else {
        for (size_t done = 0; done < n; done += MAREY__COUNT_OF(wide)) {
            const size_t now = MAREY__MIN(n - done, MAREY__COUNT_OF(wide));
            marey__widen_to_double(part, from + done * type->part_bits / 8, now, wide);
            for (size_t i = 0; i < now; i++)
                values[done + i] = (float)wide[i];
        }
    }
    if (part == job->common)
        marey__patterns(part, from, n, patterns);
    else
        marey__patterns(MAREY_F32, values, n, patterns);
}

static void expand(const struct marey__compare *job, const void *a, const void *b, size_t n,
                   struct expanded *out)
{
    expand_side(job, job->a.type, a, n * job->n_parts, out->values_a, out->patterns_a);
    expand_side(job, job->b.type, b, n * job->n_parts, out->values_b, out->patterns_b);
}

struct doubles {
    double a[MAREY__BLOCK_PARTS], b[MAREY__BLOCK_PARTS];
};

static void widen(const struct marey__compare *job, const void *a, const void *b, size_t n_parts,
                  struct doubles *out)
{
    marey__widen_to_double((enum marey_dtype)job->a.type->part, a, n_parts, out->a);
    marey__widen_to_double((enum marey_dtype)job->b.type->part, b, n_parts, out->b);
}

/* ---- exact functions ---- */

/* Part `k` of an element, exactly. The imaginary part of a real number is 0. */
static long double part_at(const struct marey__dtype *type, const unsigned char *element, unsigned k)
{
    double parts[2] = {0};
    uint64_t natural;
    int64_t integer;
    switch ((enum marey_dtype)type->part) {
    case MAREY_U64:
        memcpy(&natural, element, sizeof natural);
        return k == 0 ? (long double)natural : 0;
    case MAREY_I64:
        memcpy(&integer, element, sizeof integer);
        return k == 0 ? (long double)integer : 0;
    default:
        marey__widen_to_double((enum marey_dtype)type->part, element, type->n_parts, parts);
        return parts[k];
    }
}

static void carefully_mixed(const struct marey__compare *job, const unsigned char *a,
                            const unsigned char *b, size_t n, uint64_t first,
                            struct marey__diff_part *part)
{
    enum { SOME = 128 };
    long double values_a[SOME * 2], values_b[SOME * 2];
    for (size_t done = 0, now; done < n; done += now) {
        now = MAREY__MIN(n - done, (size_t)SOME);
        for (size_t i = 0; i < now * job->n_parts; i++) {
            const size_t element = done + i / job->n_parts;
            const unsigned k = (unsigned)(i % job->n_parts);
            values_a[i] = part_at(job->a.type, a + element * job->a.type->size, k);
            values_b[i] = part_at(job->b.type, b + element * job->b.type->size, k);
        }
        mixed_block(job, values_a, values_b, NULL, NULL, now, first + done, part);
    }
}

/* Compares; with `wanted`, searches for these in a block that a kernel has compared. */
static void exactly_32(const struct marey__compare *job, const void *a, const void *b, size_t n,
                       uint64_t first, struct wanted *wanted, struct marey__diff_part *part)
{
    struct expanded e;
    expand(job, a, b, n, &e);
    if (wanted != NULL)
        f32_find(job, e.values_a, e.values_b, e.patterns_a, e.patterns_b, n, first, wanted, part);
    else
        f32_block(job, e.values_a, e.values_b, e.patterns_a, e.patterns_b, n, first, part);
}

/* The same in the common type. */
static void exactly(const struct marey__compare *job, const void *a, const void *b, size_t n,
                    uint64_t first, struct wanted *wanted, struct marey__diff_part *part)
{
    struct doubles d;
    if (job->common != MAREY_F64) {
        exactly_32(job, a, b, n, first, wanted, part);
        return;
    }
    widen(job, a, b, n * job->n_parts, &d);
    if (wanted != NULL)
        f64_find(job, d.a, d.b, NULL, NULL, n, first, wanted, part);
    else
        f64_block(job, d.a, d.b, NULL, NULL, n, first, part);
}

static void carefully(const struct marey__compare *job, const void *a, const void *b, size_t n,
                      uint64_t first, struct marey__diff_part *part)
{
    struct marey__diff_part block;
    marey__diff_part_init(&block);
    if (job->is_mixed)
        carefully_mixed(job, a, b, n, first, &block);
    else if (job->common == MAREY_DTYPE_NONE)
        marey__compare_integers(job, a, b, n, first, &block);
    else
        exactly(job, a, b, n, first, NULL, &block);
    marey__diff_part_add(part, &block);
}

/* ---- finding the element ---- */

static bool is_in(struct marey__where where, uint64_t first)
{
    return where.is_block && where.index == first;
}

static void find_in_block(const struct marey__compare *job, uint64_t first,
                          struct marey__diff_part *part)
{
    unsigned char room_a[MAREY__BLOCK_PARTS * 8], room_b[MAREY__BLOCK_PARTS * 8];
    const size_t n = (size_t)MAREY__MIN(job->n - first, (uint64_t)job->block_elements);
    const void *a = marey__tensor_view_block(&job->a, first, n, room_a);
    const void *b = marey__tensor_view_block(&job->b, first, n, room_b);
    struct wanted wanted = {is_in(part->wrong_at, first), is_in(part->abs_at, first),
                            is_in(part->rel_at, first), is_in(part->ulp_at, first)};
    exactly(job, a, b, n, first, &wanted, part);
}

void marey__compare_find(const struct marey__compare *job, struct marey__diff_part *part)
{
    struct marey__where *const places[] = {&part->wrong_at, &part->abs_at, &part->rel_at,
                                           &part->ulp_at};
    for (size_t i = 0; i < MAREY__COUNT_OF(places); i++)
        if (places[i]->is_block)
            find_in_block(job, places[i]->index, part);
}

/* ---- by kernels ---- */

/* Whether squares of numbers up to `most`, and their sums, are accurate in the type itself. */
static bool squares_fit(enum marey__form form, double most)
{
    return form == MAREY__FORM_F64 ? most == 0 || (most >= 0x1p-450 && most <= 0x1p500)
                                   : most == 0 || (most >= 0x1p-56 && most <= 0x1p56);
}

static void add_block(const struct marey__block_diff *block, size_t n_parts, uint64_t first,
                      uint32_t pattern_shift, struct marey__diff_part *part)
{
    const struct marey__where here = {first, true};
    if (block->n_wrong > 0 && part->n_wrong == 0)
        part->wrong_at = here;
    part->n_wrong += block->n_wrong;
    part->n_unequal += block->n_unequal;
    part->n_finite += n_parts;
    MAREY__KEEP_LARGER(part, abs, block->max_d, here);
    MAREY__KEEP_LARGER(part, ulp, block->ulp >> pattern_shift, here);
    part->max_a = MAREY__MAX(part->max_a, block->max_a);
    part->max_b = MAREY__MAX(part->max_b, block->max_b);
    for (size_t k = 0; k < MAREY__N_SUMS; k++)
        part->sums[k] += block->sums[k];
}

/* Adds a block without a difference; false if it has one. */
static bool add_equal(const struct marey__compare *job, const struct marey__block_pair *pair,
                      struct marey__diff_part *part)
{
    struct marey__block_diff block;
    if (!job->kernels->floats[job->form].equal(pair, &block) || !squares_fit(job->form, block.max_a))
        return false;
    part->n_finite += pair->n;
    part->max_a = MAREY__MAX(part->max_a, block.max_a);
    part->max_b = MAREY__MAX(part->max_b, block.max_a);
    part->sums[MAREY__SUM_A] += block.sums[MAREY__SUM_A];
    part->sums[MAREY__SUM_B] += block.sums[MAREY__SUM_A];
    part->sums[MAREY__SUM_AA] += block.sums[MAREY__SUM_AA];
    part->sums[MAREY__SUM_BB] += block.sums[MAREY__SUM_AA];
    part->sums[MAREY__SUM_AB] += block.sums[MAREY__SUM_AA];
    return true;
}

/* One element with a non-finite side; same results as one() of compare_floats.h. */
static void compare_nonfinite(const struct marey__compare *job, float a, float b,
                              struct marey__diff_part *part)
{
    const bool nan_a = isnan(a), nan_b = isnan(b);
    const bool is_equal = nan_a || nan_b ? nan_a && nan_b : a == b;
    const bool is_wrong = !is_equal || (nan_a && !job->tolerance.nan_equal);
    part->n_nan_a += nan_a;
    part->n_nan_b += nan_b;
    part->n_nan_one += nan_a != nan_b;
    part->n_unequal += !is_equal;
    part->n_wrong += is_wrong;
    part->is_hopeless |= is_wrong;
    if (!nan_a)
        part->max_a = MAREY__MAX(part->max_a, (double)fabsf(a));
    if (!nan_b)
        part->max_b = MAREY__MAX(part->max_b, (double)fabsf(b));
}

/*
 * Compares the non-finite elements of a block of single parts, and replaces them by zeros for the kernels. Returns how
 * many. A wrong one records only the block, because an earlier finite one may be wrong too.
 */
static size_t take_out(const struct marey__compare *job, struct expanded *e, size_t n,
                       uint64_t first, struct marey__diff_part *part)
{
    struct marey__diff_part out;
    size_t n_out = 0;
    marey__diff_part_init(&out);
    for (size_t i = 0; i < n; i++) {
        /* 0 times a non-finite number is NaN. */
        if (e->values_a[i] * 0 + e->values_b[i] * 0 == 0)
            continue;
        compare_nonfinite(job, e->values_a[i], e->values_b[i], &out);
        e->values_a[i] = e->values_b[i] = 0;
        e->patterns_a[i] = e->patterns_b[i] = 0;
        n_out++;
    }
    if (out.n_wrong > 0)
        out.wrong_at = (struct marey__where){first, true};
    marey__diff_part_add(part, &out);
    return n_out;
}

/* False if the block needs the exact functions. `*is_equal` predicts whether the next block is equal. */
static bool add_by_kernels(const struct marey__compare *job, struct marey__block_pair *pair,
                           uint64_t first, bool *is_equal, struct marey__diff_part *part)
{
    const struct marey__float_kernels *kernels = &job->kernels->floats[job->form];
    const int in_pairs = job->n_parts == 2;
    struct marey__block_diff block;
    if (*is_equal && add_equal(job, pair, part))
        return true;
    pair->rel_so_far = part->rel;
    kernels->compare[in_pairs](pair, &block);
    *is_equal = block.n_unequal == 0 && job->form != MAREY__FORM_EXPANDED;
    if (!isfinite(block.max_d))
        return false;
    if (!squares_fit(job->form, block.max_a) || !squares_fit(job->form, block.max_b) ||
        !squares_fit(job->form, block.max_d)) {
        if (job->form == MAREY__FORM_F64)
            return false;
        kernels->compare_wide[in_pairs](pair, &block);
    } else if (pair->ulp > 0 && block.n_wrong > 0) {
        kernels->compare_wide[in_pairs](pair, &block);
    }
    add_block(&block, pair->n, first, job->pattern_shift, part);
    if (block.beats_rel && !isinf(part->rel)) {
        kernels->ratios(pair, &block);
        const struct marey__where here = {first, true};
        MAREY__KEEP_LARGER(part, rel, block.max_rel, here);
    }
    return true;
}

/* The same pair, expanded. */
static struct marey__block_pair pair_of(const struct marey__block_pair *pair,
                                        const struct expanded *e)
{
    struct marey__block_pair inner = *pair;
    inner.a = e->values_a;
    inner.b = e->values_b;
    inner.patterns_a = e->patterns_a;
    inner.patterns_b = e->patterns_b;
    return inner;
}

/* A block of single parts, some of them non-finite. */
static bool add_cleaned(const struct marey__compare *job, const struct marey__block_pair *pair,
                        uint64_t first, struct marey__diff_part *part)
{
    if (job->n_parts != 1 || job->common == MAREY_F64 || job->common == MAREY_DTYPE_NONE)
        return false;
    struct expanded e;
    expand(job, pair->a, pair->b, pair->n, &e);
    const size_t n_out = take_out(job, &e, pair->n, first, part);
    struct marey__block_pair inner = pair_of(pair, &e);
    struct marey__compare clean = *job;
    clean.form = MAREY__FORM_EXPANDED;
    bool is_equal = false;
    if (!add_by_kernels(&clean, &inner, first, &is_equal, part)) {
        struct marey__diff_part block;
        marey__diff_part_init(&block);
        f32_block(job, e.values_a, e.values_b, e.patterns_a, e.patterns_b, pair->n, first, &block);
        marey__diff_part_add(part, &block);
    }
    part->n_finite -= n_out;
    return true;
}

static bool add_expanded(const struct marey__compare *job, struct marey__block_pair *pair,
                         uint64_t first, bool *is_equal, struct marey__diff_part *part)
{
    struct expanded e;
    expand(job, pair->a, pair->b, pair->n / job->n_parts, &e);
    struct marey__block_pair inner = pair_of(pair, &e);
    return add_by_kernels(job, &inner, first, is_equal, part);
}

static bool add_rounded_64(const struct marey__compare *job, struct marey__block_pair *pair,
                           uint64_t first, bool *is_equal, struct marey__diff_part *part)
{
    struct doubles d;
    widen(job, pair->a, pair->b, pair->n, &d);
    struct marey__block_pair inner = *pair;
    inner.a = d.a;
    inner.b = d.b;
    return add_by_kernels(job, &inner, first, is_equal, part);
}

static bool add_fast(const struct marey__compare *job, struct marey__block_pair *pair,
                     uint64_t first, bool *is_equal, struct marey__diff_part *part)
{
    if (job->common == MAREY_DTYPE_NONE)
        return false;
    if (job->form == MAREY__FORM_EXPANDED)
        return add_expanded(job, pair, first, is_equal, part);
    if (job->common == MAREY_F64 && job->a.type->part != job->b.type->part)
        return add_rounded_64(job, pair, first, is_equal, part);
    return add_by_kernels(job, pair, first, is_equal, part);
}

/* ---- bits ---- */

/* Counts elements whose bytes differ; of different types, all do. */
static void count_bits(const struct marey__compare *job, const unsigned char *a,
                       const unsigned char *b, size_t n, uint64_t first,
                       struct marey__diff_part *part)
{
    const size_t size = job->a.type->size;
    const bool same_type = job->a.type == job->b.type;
    if (same_type && memcmp(a, b, n * size) == 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (!same_type || memcmp(a + i * size, b + i * size, size) != 0) {
            part->n_wrong++;
            part->wrong_at.index = MAREY__MIN(part->wrong_at.index, first + i);
        }
}

/* ---- chunks ---- */

/* A tolerance in ulps, shifted as in the kernels. */
static uint64_t shifted(const struct marey__compare *job)
{
    const uint64_t ulp = job->tolerance.ulp;
    if (job->common == MAREY_F64)
        return ulp;
    return ulp > UINT32_MAX >> job->pattern_shift ? UINT32_MAX : ulp << job->pattern_shift;
}

void marey__compare_chunk(const struct marey__compare *job, uint64_t first, uint64_t end,
                          struct marey__diff_part *part)
{
    unsigned char room_a[MAREY__BLOCK_PARTS * 8], room_b[MAREY__BLOCK_PARTS * 8];
    struct marey__diff_part bits;
    marey__diff_part_init(part);
    marey__diff_part_init(&bits);
    bool is_equal = job->form != MAREY__FORM_EXPANDED;
    for (size_t n; first < end; first += n) {
        n = (size_t)MAREY__MIN(end - first, (uint64_t)job->block_elements);
        const void *a = marey__tensor_view_block(&job->a, first, n, room_a);
        const void *b = marey__tensor_view_block(&job->b, first, n, room_b);
        struct marey__block_pair pair = {.a = a,
                                         .b = b,
                                         .n = n * job->n_parts,
                                         .abs = job->tolerance.abs,
                                         .rel = job->tolerance.rel,
                                         .ulp = shifted(job)};
        if (!add_fast(job, &pair, first, &is_equal, part) && !add_cleaned(job, &pair, first, part))
            carefully(job, a, b, n, first, part);
        if (job->tolerance.bitwise)
            count_bits(job, a, b, n, first, &bits);
    }
    if (job->tolerance.bitwise) {
        part->n_wrong = bits.n_wrong;
        part->wrong_at = bits.wrong_at;
    }
}

/* ---- one element ---- */

unsigned marey__tensor_difference(const struct marey_tensor *a, const struct marey_tensor *b,
                                  uint64_t i, long double out[2])
{
    struct marey__tensor_view view_a, view_b;
    unsigned char room_a[16], room_b[16];
    marey__tensor_view_of(a, &view_a);
    marey__tensor_view_of(b, &view_b);
    const unsigned char *element_a = marey__tensor_view_block(&view_a, i, 1, room_a);
    const unsigned char *element_b = marey__tensor_view_block(&view_b, i, 1, room_b);
    for (unsigned k = 0; k < 2; k++)
        out[k] = part_at(view_a.type, element_a, k) - part_at(view_b.type, element_b, k);
    return MAREY__MAX(view_a.type->n_parts, view_b.type->n_parts);
}
