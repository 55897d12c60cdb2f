/* Statistics in one pass: blocks are summed about a number of their own, so that a large mean does not swamp the spread. */
#include <math.h>
#include <string.h>

#include "tensor/tensor_internal.h"

/* What is finite so far. */
struct moments {
    uint64_t n;
    long double mean, m2; /* m2: the sum of squared distances from the mean */
};

/* Chan, Golub and LeVeque: two sets of numbers, each with its mean and m2, as one. */
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

static unsigned bin_of(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    return (unsigned)KYMO__MIN(KYMO__MAX(exponent + 40, 0), KYMO_STATS_BINS - 1);
}

static void count(double x, double least_normal, struct kymo_tensor_stats *out)
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
                        struct kymo_tensor_stats *out)
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

static void finish(const struct moments *moments, struct kymo_tensor_stats *out)
{
    if (moments->n == 0) {
        out->min = out->max = out->mean = out->std = out->l2 = NAN;
        return;
    }
    const long double n = (long double)moments->n, m2 = KYMO__MAX(moments->m2, 0.0L);
    out->mean = (double)moments->mean;
    out->std = (double)sqrtl(m2 / n);
    out->l2 = (double)sqrtl(m2 + n * moments->mean * moments->mean);
}

kymo_status kymo_tensor_stats_get(const struct kymo_tensor *tensor, struct kymo_tensor_stats *out)
{
    KYMO_TRY(kymo__tensor_check_host(tensor));
    struct kymo__tensor_view view;
    kymo__tensor_view_of(tensor, &view);
    const struct kymo__dtype *type = view.type;
    const uint64_t n = kymo_tensor_count(tensor);
    const size_t step = KYMO__BLOCK_PARTS / type->n_parts;
    const double least = type->kind == KYMO__IS_FLOAT ? ldexp(1, type->min_exponent) : 0;
    struct moments moments = {0};
    fenv_t saved;
    kymo__float_enter(&saved);
    *out = (struct kymo_tensor_stats){.n = n * type->n_parts, .min = INFINITY, .max = -INFINITY};
    for (uint64_t first = 0; first < n; first += step) {
        unsigned char room[KYMO__BLOCK_PARTS * 8];
        double values[KYMO__BLOCK_PARTS];
        const size_t now = (size_t)KYMO__MIN(n - first, (uint64_t)step);
        const void *block = kymo__tensor_view_block(&view, first, now, room);
        kymo__widen_to_double((enum kymo_dtype)type->part, block, now * type->n_parts, values);
        count_block(values, now * type->n_parts, least, &moments, out);
    }
    finish(&moments, out);
    kymo__float_leave(&saved);
    return KYMO_OK;
}
