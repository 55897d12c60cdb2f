/* Blocks of floats that may be anything, in C that any processor takes: what the fast kernels leave, and their judge. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "tensor/kernels/internal.h"

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

#include "tensor/kernels/compare_floats.h"

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

#include "tensor/kernels/compare_floats.h"

#undef REAL
#undef BITS
#undef FN

/* ---- numbers of two types that float64 does not hold; places are counted in float64 ---- */

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

void marey__compare_floats32(const struct marey__compare *job, const float *a, const float *b,
                             const uint32_t *patterns_a, const uint32_t *patterns_b, size_t n,
                             uint64_t first, struct marey__diff_part *part)
{
    f32_block(job, a, b, patterns_a, patterns_b, n, first, part);
}

void marey__compare_floats64(const struct marey__compare *job, const double *a, const double *b,
                             size_t n, uint64_t first, struct marey__diff_part *part)
{
    f64_block(job, a, b, NULL, NULL, n, first, part);
}

void marey__find_floats32(const struct marey__compare *job, const float *a, const float *b,
                          const uint32_t *patterns_a, const uint32_t *patterns_b, size_t n,
                          uint64_t first, struct marey__wanted *wanted, struct marey__diff_part *part)
{
    f32_find(job, a, b, patterns_a, patterns_b, n, first, wanted, part);
}

void marey__find_floats64(const struct marey__compare *job, const double *a, const double *b,
                          size_t n, uint64_t first, struct marey__wanted *wanted,
                          struct marey__diff_part *part)
{
    f64_find(job, a, b, NULL, NULL, n, first, wanted, part);
}

/* Part `k` of an element, exactly. A real number has an imaginary part of 0. */
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

void marey__compare_mixed(const struct marey__compare *job, const unsigned char *a,
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
