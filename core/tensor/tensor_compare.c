/* Comparing two tensors: which arithmetic, block by block, and what the parts come to. */
#include <math.h>
#include <string.h>

#include "tensor/tensor_compare_internal.h"

/* ---- parts of a result ---- */

void kymo__diff_part_init(struct kymo__diff_part *part)
{
    *part = (struct kymo__diff_part){.first_wrong = UINT64_MAX,
                                     .abs.index = UINT64_MAX,
                                     .rel.index = UINT64_MAX,
                                     .ulp.index = UINT64_MAX};
}

void kymo__diff_part_add(struct kymo__diff_part *into, const struct kymo__diff_part *later)
{
    into->n_wrong += later->n_wrong;
    into->n_unequal += later->n_unequal;
    into->n_nan_a += later->n_nan_a;
    into->n_nan_b += later->n_nan_b;
    into->n_nan_one += later->n_nan_one;
    into->n_hopeless += later->n_hopeless;
    into->n_off_zero += later->n_off_zero;
    into->n_finite += later->n_finite;
    into->first_wrong = KYMO__MIN(into->first_wrong, later->first_wrong);
    if (later->abs.value > into->abs.value)
        into->abs = later->abs;
    if (later->rel.value > into->rel.value)
        into->rel = later->rel;
    if (later->ulp.value > into->ulp.value)
        into->ulp = later->ulp;
    into->max_a = KYMO__MAX(into->max_a, later->max_a);
    into->max_b = KYMO__MAX(into->max_b, later->max_b);
    into->sum_a += later->sum_a;
    into->sum_b += later->sum_b;
    into->sum_abs += later->sum_abs;
    into->sum_aa += later->sum_aa;
    into->sum_bb += later->sum_bb;
    into->sum_ab += later->sum_ab;
    into->sum_dd += later->sum_dd;
}

/* The least float above, in the arithmetic of the type: `value` itself was rounded, perhaps down. */
static double next_up(const struct kymo__compare *job, double value)
{
    if (job->common == KYMO_F64 || job->common == KYMO_DTYPE_NONE)
        return nextafter(value, INFINITY);
    return nextafterf((float)value, INFINITY);
}

static void finish_needs(const struct kymo__compare *job, const struct kymo__diff_part *part,
                         struct kymo_tensor_diff *out)
{
    out->needs_abs = out->needs_rel = out->needs_ulp = INFINITY;
    if (part->n_hopeless > 0)
        return;
    out->needs_abs = part->abs.value;
    out->needs_ulp = (double)part->ulp.value;
    if (part->n_off_zero == 0)
        out->needs_rel = part->rel.value > 0 ? next_up(job, part->rel.value) : 0;
}

static void finish(const struct kymo__compare *job, const struct kymo__diff_part *part,
                   struct kymo_tensor_diff *out)
{
    const long double n = (long double)part->n_finite;
    const long double norms = sqrtl(part->sum_aa) * sqrtl(part->sum_bb);
    *out = (struct kymo_tensor_diff){
        .n = job->n,
        .n_wrong = part->n_wrong,
        .n_unequal = part->n_unequal,
        .n_nan_a = part->n_nan_a,
        .n_nan_b = part->n_nan_b,
        .n_nan_one = part->n_nan_one,
        .first_wrong = part->first_wrong,
        .abs = {part->abs.value, part->abs.index},
        .rel = {part->rel.value, part->rel.index},
        .ulp = {(double)part->ulp.value, part->ulp.index},
        .mean_abs = (double)(part->sum_abs / n),
        .rmse = (double)sqrtl(part->sum_dd / n),
        .mean_a = (double)(part->sum_a / n),
        .mean_b = (double)(part->sum_b / n),
        .cosine = norms > 0 ? (double)(part->sum_ab / norms) : NAN,
        .snr_db = part->sum_dd > 0 ? (double)(10 * log10l(part->sum_bb / part->sum_dd)) : INFINITY,
        .max_a = part->max_a,
        .max_b = part->max_b,
    };
    if (part->n_finite == 0)
        out->mean_abs = out->rmse = out->mean_a = out->mean_b = NAN;
    finish_needs(job, part, out);
}

/* ---- settling what is compared ---- */

/* Of two types of floats the one with fewer digits; of a float and an integer the float. */
static enum kymo_dtype common_type(const struct kymo__dtype *a, const struct kymo__dtype *b)
{
    if (a->kind != KYMO__IS_FLOAT && b->kind != KYMO__IS_FLOAT)
        return KYMO_DTYPE_NONE;
    if (a->kind != KYMO__IS_FLOAT || b->kind != KYMO__IS_FLOAT)
        return (enum kymo_dtype)(a->kind == KYMO__IS_FLOAT ? a->part : b->part);
    return (enum kymo_dtype)(a->digits < b->digits ? a->part : b->part);
}

struct kymo_tolerance kymo_tolerance_default(enum kymo_dtype a, enum kymo_dtype b)
{
    const struct kymo__dtype *types[] = {kymo__dtype_get(a), kymo__dtype_get(b)};
    struct kymo_tolerance tolerance = {.nan_equal = 1};
    for (int i = 0; i < 2; i++)
        if (types[i] != NULL) {
            tolerance.abs = KYMO__MAX(tolerance.abs, types[i]->abs);
            tolerance.rel = KYMO__MAX(tolerance.rel, types[i]->rel);
        }
    return tolerance;
}

static kymo_status check_shapes(const struct kymo_tensor *a, const struct kymo_tensor *b)
{
    KYMO_TRY(kymo__tensor_check_host(a));
    KYMO_TRY(kymo__tensor_check_host(b));
    if (a->rank != b->rank)
        return kymo__fail(KYMO_EINVAL, "tensors of rank %u and %u cannot be compared", a->rank,
                          b->rank);
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->sizes[i] != b->sizes[i])
            return kymo__fail(KYMO_EINVAL,
                              "tensors of sizes %lld and %lld along axis %u cannot be compared",
                              (long long)a->sizes[i], (long long)b->sizes[i], i);
    const struct kymo__dtype *type_a = kymo__dtype_get(a->dtype), *type_b = kymo__dtype_get(b->dtype);
    if (type_a->n_parts != type_b->n_parts || (type_a->part_bits == 4) != (type_b->part_bits == 4))
        return kymo__fail(KYMO_EINVAL, "elements of type %s and %s cannot be compared",
                          type_a->name, type_b->name);
    return KYMO_OK;
}

static kymo_status prepare(const struct kymo_tensor *a, const struct kymo_tensor *b,
                           const struct kymo_tolerance *tolerance, struct kymo__compare *job)
{
    KYMO_TRY(check_shapes(a, b));
    if (!(tolerance->abs >= 0) || !(tolerance->rel >= 0))
        return kymo__fail(KYMO_EINVAL,
                          "a tolerance of %g absolute and %g relative; they are 0 or more",
                          tolerance->abs, tolerance->rel);
    kymo__tensor_view_of(a, &job->a);
    kymo__tensor_view_of(b, &job->b);
    job->common = common_type(job->a.type, job->b.type);
    job->n_parts = job->a.type->n_parts;
    job->block_elements = KYMO__BLOCK_PARTS / job->n_parts;
    job->n = kymo_tensor_count(a);
    job->tolerance = *tolerance;
    job->place_shift = 0;
    if (job->common != KYMO_DTYPE_NONE && job->common != KYMO_F64)
        job->place_shift = 32u - kymo__dtype_get(job->common)->part_bits;
    return KYMO_OK;
}

/* ---- blocks ---- */

/* Parts in the common type, of at most 32 bits, with their places. */
static void expand(const struct kymo__compare *job, const struct kymo__dtype *type,
                   const void *from, size_t n, float *values, int32_t *places)
{
    if (type->part == job->common) {
        kymo__widen(job->common, from, n, values);
        kymo__places(job->common, from, n, places);
        return;
    }
    for (size_t i = 0; i < n; i += 2) {
        const size_t now = KYMO__MIN(n - i, (size_t)2); /* halves of a byte come in twos */
        double wide[2];
        kymo__widen_to_double((enum kymo_dtype)type->part,
                              (const unsigned char *)from + i * type->part_bits / 8, now, wide);
        for (size_t k = i; k < i + now; k++) {
            if (job->common == KYMO_F32) {
                values[k] = (float)wide[k - i];
                kymo__places(KYMO_F32, &values[k], 1, &places[k]);
                continue;
            }
            const uint32_t raw = kymo__narrow(job->common, wide[k - i]);
            kymo__widen(job->common, &raw, 1, &values[k]);
            kymo__places(job->common, &raw, 1, &places[k]);
        }
    }
}

static void compare_narrow(const struct kymo__compare *job, const void *a, const void *b, size_t n,
                           uint64_t first, struct kymo__diff_part *part)
{
    float values_a[KYMO__BLOCK_PARTS], values_b[KYMO__BLOCK_PARTS];
    int32_t places_a[KYMO__BLOCK_PARTS], places_b[KYMO__BLOCK_PARTS];
    expand(job, job->a.type, a, n * job->n_parts, values_a, places_a);
    expand(job, job->b.type, b, n * job->n_parts, values_b, places_b);
    kymo__compare_floats32(job, values_a, values_b, places_a, places_b, n, first, part);
}

static void compare_double(const struct kymo__compare *job, const void *a, const void *b, size_t n,
                           uint64_t first, struct kymo__diff_part *part)
{
    double values_a[KYMO__BLOCK_PARTS], values_b[KYMO__BLOCK_PARTS];
    kymo__widen_to_double((enum kymo_dtype)job->a.type->part, a, n * job->n_parts, values_a);
    kymo__widen_to_double((enum kymo_dtype)job->b.type->part, b, n * job->n_parts, values_b);
    kymo__compare_floats64(job, values_a, values_b, n, first, part);
}

/* Elements whose bytes differ. Of two types, none is as the other. */
static void count_bits(const struct kymo__compare *job, const unsigned char *a,
                       const unsigned char *b, size_t n, uint64_t first, struct kymo__diff_part *part)
{
    const size_t size = job->a.type->size;
    const bool same_type = job->a.type == job->b.type;
    part->n_wrong = 0;
    part->first_wrong = UINT64_MAX;
    if (same_type && memcmp(a, b, n * size) == 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (!same_type || memcmp(a + i * size, b + i * size, size) != 0) {
            part->n_wrong++;
            part->first_wrong = KYMO__MIN(part->first_wrong, first + i);
        }
}

static void compare_block(const struct kymo__compare *job, const void *a, const void *b, size_t n,
                          uint64_t first, struct kymo__diff_part *part)
{
    if (job->common == KYMO_DTYPE_NONE)
        kymo__compare_integers(job, a, b, n, first, part);
    else if (job->common == KYMO_F64)
        compare_double(job, a, b, n, first, part);
    else
        compare_narrow(job, a, b, n, first, part);
    if (job->tolerance.bitwise)
        count_bits(job, a, b, n, first, part);
}

static void compare_chunk(const struct kymo__compare *job, uint64_t first, uint64_t end,
                          struct kymo__diff_part *part)
{
    unsigned char room_a[KYMO__BLOCK_PARTS * 8], room_b[KYMO__BLOCK_PARTS * 8];
    kymo__diff_part_init(part);
    while (first < end) {
        const size_t n = (size_t)KYMO__MIN(end - first, (uint64_t)job->block_elements);
        const void *a = kymo__tensor_view_block(&job->a, first, n, room_a);
        const void *b = kymo__tensor_view_block(&job->b, first, n, room_b);
        struct kymo__diff_part block;
        kymo__diff_part_init(&block);
        compare_block(job, a, b, n, first, &block);
        kymo__diff_part_add(part, &block);
        first += n;
    }
}

kymo_status kymo_tensor_compare_with(const struct kymo_tensor *a, const struct kymo_tensor *b,
                                     const struct kymo_tolerance *tolerance, uint32_t n_threads,
                                     struct kymo_tensor_diff *out)
{
    struct kymo__compare job;
    KYMO_TRY(prepare(a, b, tolerance, &job));
    (void)n_threads;
    fenv_t saved;
    kymo__float_enter(&saved);
    struct kymo__diff_part whole, chunk;
    kymo__diff_part_init(&whole);
    const uint64_t step = (uint64_t)job.block_elements * KYMO__CHUNK_BLOCKS;
    for (uint64_t first = 0; first < job.n; first += step) {
        compare_chunk(&job, first, KYMO__MIN(first + step, job.n), &chunk);
        kymo__diff_part_add(&whole, &chunk);
    }
    finish(&job, &whole, out);
    kymo__float_leave(&saved);
    return KYMO_OK;
}

kymo_status kymo_tensor_compare(const struct kymo_tensor *a, const struct kymo_tensor *b,
                                const struct kymo_tolerance *tolerance, struct kymo_tensor_diff *out)
{
    return kymo_tensor_compare_with(a, b, tolerance, 1, out);
}
