/* Blocks of integers, exactly: 64-bit integers and their differences do not fit a float. */
#include <math.h>
#include <string.h>

#include "tensor/kernels/internal.h"

/* Represents every int64, every uint64 and their differences. */
__extension__ typedef __int128 wide_int;

#define READ(TYPE)                                                                                 \
    do {                                                                                           \
        TYPE x;                                                                                    \
        memcpy(&x, bytes + i * sizeof x, sizeof x);                                                \
        return x;                                                                                  \
    } while (0)

static wide_int integer_at(enum marey_dtype part, const unsigned char *bytes, size_t i)
{
    const int half = part == MAREY_U4X2 || part == MAREY_I4X2
                         ? (i % 2 == 0 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4)
                         : 0;
    switch (part) {
    case MAREY_BOOL:
        return bytes[i] != 0;
    case MAREY_U4X2:
        return half;
    case MAREY_I4X2:
        return (half ^ 8) - 8;
    case MAREY_U8:
        READ(uint8_t);
    case MAREY_I8:
        READ(int8_t);
    case MAREY_U16:
        READ(uint16_t);
    case MAREY_I16:
        READ(int16_t);
    case MAREY_U32:
        READ(uint32_t);
    case MAREY_I32:
        READ(int32_t);
    case MAREY_U64:
        READ(uint64_t);
    default:
        READ(int64_t);
    }
}

static wide_int magnitude(wide_int x)
{
    return x < 0 ? -x : x;
}

/* Whether `distance` is within the tolerance, which may be rounded down to an integer without loss. */
static bool is_allowed(const struct marey_tolerance *tolerance, wide_int distance, wide_int reference)
{
    const double allowed = tolerance->abs + tolerance->rel * (double)reference;
    return distance == 0 ||
           (distance <= (wide_int)UINT64_MAX && (uint64_t)distance <= tolerance->ulp) ||
           allowed >= 0x1p65 || distance <= (wide_int)floor(allowed);
}

static void keep_worst(wide_int distance, wide_int reference, uint64_t index,
                       struct marey__diff_part *part)
{
    const uint64_t places = (uint64_t)MAREY__MIN(distance, (wide_int)UINT64_MAX);
    const double relative = reference != 0 ? (double)distance / (double)reference : INFINITY;
    const struct marey__where here = {index, false};
    MAREY__KEEP_LARGER(part, ulp, places, here);
    MAREY__KEEP_LARGER(part, abs, (double)distance, here);
    MAREY__KEEP_LARGER(part, rel, relative, here);
}

static void add(double sums[MAREY__N_SUMS], double a, double b, double distance)
{
    sums[MAREY__SUM_A] += a;
    sums[MAREY__SUM_B] += b;
    sums[MAREY__SUM_ABS] += distance;
    sums[MAREY__SUM_AA] += a * a;
    sums[MAREY__SUM_BB] += b * b;
    sums[MAREY__SUM_AB] += a * b;
    sums[MAREY__SUM_DD] += distance * distance;
}

void marey__compare_integers(const struct marey__compare *job, const void *a, const void *b,
                             size_t n, uint64_t first, struct marey__diff_part *part)
{
    const enum marey_dtype type_a = job->a.type->part, type_b = job->b.type->part;
    double sums[MAREY__N_SUMS] = {0};
    for (size_t i = 0; i < n; i++) {
        bool is_wrong = false, is_unequal = false;
        for (size_t k = i * job->n_parts; k < (i + 1) * job->n_parts; k++) {
            const wide_int x = integer_at(type_a, a, k), y = integer_at(type_b, b, k);
            const wide_int distance = magnitude(x - y), reference = magnitude(y);
            add(sums, (double)x, (double)y, (double)distance);
            part->max_a = MAREY__MAX(part->max_a, (double)magnitude(x));
            part->max_b = MAREY__MAX(part->max_b, (double)reference);
            if (distance == 0)
                continue;
            is_unequal = true;
            is_wrong |= !is_allowed(&job->tolerance, distance, reference);
            keep_worst(distance, reference, first + i, part);
        }
        part->n_unequal += is_unequal;
        part->n_wrong += is_wrong;
        if (is_wrong && part->wrong_at.index == UINT64_MAX)
            part->wrong_at.index = first + i;
    }
    part->n_finite += n * job->n_parts;
    for (size_t k = 0; k < MAREY__N_SUMS; k++)
        part->sums[k] += sums[k];
}
