/*
 * Statistics in one pass: each block is summed relative to a number in it, so that a large mean does not cancel.
 */
#include <math.h>
#include <string.h>

#include "tensor/kernels/internal.h"

/* Moments of the finite numbers so far. */
struct moments {
    uint64_t n;
    long double mean, m2; /* m2: the sum of squared distances from the mean */
};

/* Merges two sets of numbers, each with mean and m2 (Chan, Golub and LeVeque). */
static void merge_moments(struct moments *into, const struct moments *other)
{
    if (other->n == 0)
        return;
    const long double n = (long double)(into->n + other->n);
    const long double step = other->mean - into->mean;
    into->mean += step * (long double)other->n / n;
    into->m2 += other->m2 + step * step * (long double)into->n * (long double)other->n / n;
    into->n += other->n;
}

/* ---- exact functions, for blocks with any values ---- */

static unsigned bin_of(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    return (unsigned)MAREY__MIN(MAREY__MAX(exponent + 40, 0), MAREY_STATS_BINS - 1);
}

static void count(double x, double least_normal, struct marey_tensor_stats *out)
{
    const double size = fabs(x);
    out->n_nan += isnan(x) != 0;
    out->n_pos_inf += isinf(x) && x > 0;
    out->n_neg_inf += isinf(x) && x < 0;
    out->n_zero += x == 0;
    out->n_negative += x < 0;
    if (!isfinite(x))
        return;
    out->min = x < out->min ? x : out->min;
    out->max = x > out->max ? x : out->max;
    if (x != 0) {
        out->n_denormal += size < least_normal;
        out->histogram[bin_of(size)]++;
    }
}

static void count_block(const double *x, size_t n, double least_normal, struct moments *moments,
                        struct marey_tensor_stats *out)
{
    struct moments block = {0};
    const double about = isfinite(x[0]) ? x[0] : 0;
    long double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        count(x[i], least_normal, out);
        if (isfinite(x[i])) {
            const long double distance = (long double)x[i] - about;
            sum += distance;
            squares += distance * distance;
            block.n++;
        }
    }
    if (block.n > 0) {
        block.mean = about + sum / (long double)block.n;
        block.m2 = squares - sum * sum / (long double)block.n;
    }
    merge_moments(moments, &block);
}

/* ---- by kernels ---- */

/* Counts of the kernels so far. */
struct counts {
    uint64_t by_code[256], n_zero, n_small;
};

/* Counts a block with a kernel; false, with nothing counted, if that is impossible. */
static bool count_fast(enum marey__form form, const void *block, size_t n, struct moments *moments,
                       struct counts *counts, struct marey_tensor_stats *out)
{
    struct marey__block_stats b;
    if (!marey__kernels_get()->floats[form].stats(block, n, &b, counts->by_code))
        return false;
    const long double count = (long double)n;
    const struct moments these = {n, b.about + b.sum / count, b.squares - b.sum * b.sum / count};
    merge_moments(moments, &these);
    counts->n_zero += b.n_zero;
    counts->n_small += b.n_small;
    out->n_negative += b.n_negative;
    out->min = MAREY__MIN(out->min, b.min);
    out->max = MAREY__MAX(out->max, b.max);
    return true;
}

/* Adds the kernels' counts after all blocks. */
static void add_counts(const struct marey__dtype *type, enum marey__form form,
                       struct counts *counts, struct marey_tensor_stats *out)
{
    const bool is_double = form == MAREY__FORM_F64;
    /* For float64 the codes are the bins; for float32 they are exponents, of which 127 is that of 1. */
    const int bias = is_double ? 0 : 127 - 40;
    const int least_normal = is_double ? 0 : 127 + type->min_exponent;
    counts->by_code[0] -= counts->n_zero;
    for (int code = 0; code < 256; code++) {
        const uint64_t n = counts->by_code[code];
        out->histogram[MAREY__MIN(MAREY__MAX(code - bias, 0), MAREY_STATS_BINS - 1)] += n;
        out->n_denormal += code < least_normal ? n : 0;
    }
    if (is_double)
        out->n_denormal += counts->n_small - counts->n_zero;
    out->n_zero += counts->n_zero;
}

/* The form in which kernels get a type: unchanged, or widened to float32 or float64. */
static enum marey__form form_of(const struct marey__dtype *type)
{
    switch (type->part) {
    case MAREY_F16:
        return MAREY__FORM_F16;
    case MAREY_BF16:
        return MAREY__FORM_BF16;
    case MAREY_F32:
        return MAREY__FORM_F32;
    default:
        return type->kind == MAREY__IS_FLOAT && type->part_bits <= 8 ? MAREY__FORM_EXPANDED
                                                                     : MAREY__FORM_F64;
    }
}

static void count_elements(const struct marey__dtype *type, enum marey__form form,
                           const void *block, size_t n, struct moments *moments,
                           struct counts *counts, struct marey_tensor_stats *out)
{
    const enum marey_dtype part = (enum marey_dtype)type->part;
    double values[MAREY__BLOCK_PARTS];
    if (form == MAREY__FORM_EXPANDED) {
        float narrow[MAREY__BLOCK_PARTS];
        marey__widen(part, block, n, narrow);
        if (count_fast(form, narrow, n, moments, counts, out))
            return;
    } else if ((form != MAREY__FORM_F64 || part == MAREY_F64) &&
               count_fast(form, block, n, moments, counts, out)) {
        return;
    }
    marey__widen_to_double(part, block, n, values);
    if (form != MAREY__FORM_F64 || part == MAREY_F64 ||
        !count_fast(form, values, n, moments, counts, out))
        count_block(values, n, ldexp(1, type->min_exponent), moments, out);
}

static void finish(const struct moments *moments, struct marey_tensor_stats *out)
{
    if (moments->n == 0) {
        out->min = out->max = out->mean = out->std = out->l2 = NAN;
        return;
    }
    const long double n = (long double)moments->n, m2 = MAREY__MAX(moments->m2, 0.0L);
    out->mean = (double)moments->mean;
    out->std = (double)sqrtl(m2 / n);
    out->l2 = (double)sqrtl(m2 + n * moments->mean * moments->mean);
}

marey_status marey_tensor_stats_get(const struct marey_tensor *tensor, struct marey_tensor_stats *out)
{
    MAREY_TRY(marey__tensor_check_host(tensor));
    struct marey__tensor_view view;
    marey__tensor_view_of(tensor, &view);
    const struct marey__dtype *type = view.type;
    const uint64_t n = marey_tensor_count(tensor);
    const size_t step = MAREY__BLOCK_PARTS / type->n_parts;
    const enum marey__form form = form_of(type);
    struct moments moments = {0};
    struct counts counts = {{0}, 0, 0};
    fenv_t saved;
    marey__float_enter(&saved);
    *out = (struct marey_tensor_stats){.n = n * type->n_parts, .min = INFINITY, .max = -INFINITY};
    for (uint64_t first = 0; first < n; first += step) {
        unsigned char room[MAREY__BLOCK_PARTS * 8];
        const size_t now = (size_t)MAREY__MIN(n - first, (uint64_t)step);
        const void *block = marey__tensor_view_block(&view, first, now, room);
        count_elements(type, form, block, now * type->n_parts, &moments, &counts, out);
    }
    add_counts(type, form, &counts, out);
    finish(&moments, out);
    marey__float_leave(&saved);
    return MAREY_OK;
}
