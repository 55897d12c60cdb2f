/*
 * Comparing: blocks to parts of a result, parts to the whole.
 *
 * A chunk is a fixed number of blocks. The sums of a chunk are added up block by block, those of the tensor chunk by chunk, in
 * order, so that any number of threads gives the same digits.
 *
 * A block of floats goes to a kernel for the processor at hand. It takes for granted that all differences are finite and none
 * so large or small that sums of squares in the type itself would suffer; where that turns out wrong, the block is done
 * again by kymo__compare_floats, which takes nothing for granted.
 *
 * Differences and tolerances are computed in the type's own arithmetic: in float32 for float32 and whatever is narrower, in
 * float64 for float64. This is what torch and numpy do.
 */
#ifndef KYMO_TENSOR_COMPARE_INTERNAL_H
#define KYMO_TENSOR_COMPARE_INTERNAL_H

#include "tensor/tensor_internal.h"

enum { KYMO__CHUNK_BLOCKS = 64 };

struct kymo__worst_float {
    double value;
    uint64_t index;
};

struct kymo__worst_places {
    uint64_t value; /* numbers of the type between the two, and one */
    uint64_t index;
};

/* What some elements add to the result. Indices are those of the whole tensor. */
struct kymo__diff_part {
    uint64_t n_wrong, n_unequal, n_nan_a, n_nan_b, n_nan_one;
    uint64_t n_hopeless; /* elements that no tolerance can mend */
    uint64_t n_off_zero; /* elements that no relative tolerance can mend: b is 0 and a is not */
    uint64_t n_finite; /* parts that are finite on both sides: what sums and worst are taken over */
    uint64_t first_wrong;
    struct kymo__worst_float abs, rel;
    struct kymo__worst_places ulp;
    double max_a, max_b;
    long double sum_a, sum_b, sum_abs, sum_aa, sum_bb, sum_ab, sum_dd;
};
void kymo__diff_part_init(struct kymo__diff_part *part);
/* `later` stands behind `into` in the tensor. */
void kymo__diff_part_add(struct kymo__diff_part *into, const struct kymo__diff_part *later);

/* What is compared, once it is settled. */
struct kymo__compare {
    struct kymo__tensor_view a, b;
    enum kymo_dtype common; /* the type of parts in which they are compared; NONE: integers, as they are */
    uint32_t n_parts;     /* of an element */
    uint32_t place_shift; /* places of narrow types stand in the upper bits */
    uint32_t block_elements;
    uint64_t n; /* elements */
    struct kymo_tolerance tolerance;
};

/* Two blocks of `n` elements from number `first` on, into `part`. */
void kymo__compare_floats32(const struct kymo__compare *job, const float *a, const float *b,
                            const int32_t *places_a, const int32_t *places_b, size_t n,
                            uint64_t first, struct kymo__diff_part *part);
void kymo__compare_floats64(const struct kymo__compare *job, const double *a, const double *b,
                            size_t n, uint64_t first, struct kymo__diff_part *part);
void kymo__compare_integers(const struct kymo__compare *job, const void *a, const void *b, size_t n,
                            uint64_t first, struct kymo__diff_part *part);

#endif
