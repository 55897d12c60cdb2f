/* Blocks of floats that may be anything, in C that any processor takes: what the fast kernels leave, and their judge. */
#include <math.h>
#include <string.h>

#include "tensor/tensor_compare_internal.h"

/* ---- float32 and what is narrower ---- */

#define REAL float
#define WIDE double
#define PLACE int32_t
#define FN(name) f32_##name

static float f32_abs(float x)
{
    return fabsf(x);
}

static uint32_t f32_apart(int32_t a, int32_t b)
{
    return a > b ? (uint32_t)a - (uint32_t)b : (uint32_t)b - (uint32_t)a;
}

static int32_t f32_place(const float *values, const int32_t *places, size_t i)
{
    (void)values;
    return places[i];
}

#include "tensor/compare_floats.h"

#undef REAL
#undef WIDE
#undef PLACE
#undef FN

/* ---- float64: sums of squares need a wider exponent than its own ---- */

#define REAL double
#define WIDE long double
#define PLACE int64_t
#define FN(name) f64_##name

static double f64_abs(double x)
{
    return fabs(x);
}

static uint64_t f64_apart(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static int64_t f64_place(const double *values, const int64_t *places, size_t i)
{
    int64_t bits;
    (void)places;
    memcpy(&bits, &values[i], sizeof bits);
    return bits < 0 ? -(bits & INT64_MAX) : bits;
}

#include "tensor/compare_floats.h"

void kymo__compare_floats32(const struct kymo__compare *job, const float *a, const float *b,
                            const int32_t *places_a, const int32_t *places_b, size_t n,
                            uint64_t first, struct kymo__diff_part *part)
{
    f32_block(job, a, b, places_a, places_b, n, first, part);
}

void kymo__compare_floats64(const struct kymo__compare *job, const double *a, const double *b,
                            size_t n, uint64_t first, struct kymo__diff_part *part)
{
    f64_block(job, a, b, NULL, NULL, n, first, part);
}
