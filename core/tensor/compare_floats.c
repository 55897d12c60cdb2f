/* Blocks of floats that may be anything, in C that any processor takes: what the fast kernels leave, and their judge. */
#include <math.h>
#include <string.h>

#include "tensor/tensor_compare_internal.h"

/* ---- float32 and what is narrower ---- */

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
    /* cppcheck takes both inclusions below for one, and so the second one's NULL for this. */
    /* cppcheck-suppress ctunullpointer */
    return patterns[i];
}

#include "tensor/compare_floats.h"

#undef REAL
#undef WIDE
#undef BITS
#undef FN

/* ---- float64: sums of squares need a wider exponent than its own ---- */

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

#include "tensor/compare_floats.h"

void kymo__compare_floats32(const struct kymo__compare *job, const float *a, const float *b,
                            const uint32_t *patterns_a, const uint32_t *patterns_b, size_t n,
                            uint64_t first, struct kymo__diff_part *part)
{
    f32_block(job, a, b, patterns_a, patterns_b, n, first, part);
}

void kymo__compare_floats64(const struct kymo__compare *job, const double *a, const double *b,
                            size_t n, uint64_t first, struct kymo__diff_part *part)
{
    f64_block(job, a, b, NULL, NULL, n, first, part);
}

void kymo__find_floats32(const struct kymo__compare *job, const float *a, const float *b,
                         const uint32_t *patterns_a, const uint32_t *patterns_b, size_t n,
                         uint64_t first, struct kymo__wanted *wanted, struct kymo__diff_part *part)
{
    f32_find(job, a, b, patterns_a, patterns_b, n, first, wanted, part);
}

void kymo__find_floats64(const struct kymo__compare *job, const double *a, const double *b, size_t n,
                         uint64_t first, struct kymo__wanted *wanted, struct kymo__diff_part *part)
{
    f64_find(job, a, b, NULL, NULL, n, first, wanted, part);
}
