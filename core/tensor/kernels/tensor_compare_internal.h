/*
 * Comparing: blocks to parts of a result, parts to the whole.
 *
 * A chunk is a fixed number of blocks. The sums of a chunk are added up block by block, those of the tensor chunk by chunk, in
 * order, so that any number of threads gives the same digits.
 *
 * A block of floats goes to a kernel for the processor at hand. It takes for granted that all differences are finite and none
 * so large or small that sums of squares in the type itself would suffer; where that turns out wrong, the block is done
 * again by marey__compare_floats32 or 64, which take nothing for granted. Kernels tell how bad the worst element of a block is, not which it is;
 * that is looked up once, at the end.
 *
 * Differences and tolerances are computed in the type's own arithmetic: in float32 for float32 and whatever is narrower, in
 * float64 for float64. This is what torch and numpy do. Two types are compared in the narrowest of float32 and float64 that
 * holds every number of both, and where neither does (64-bit integers against floats; real against complex numbers) in long double, number by
 * number. Nothing is rounded before it is compared.
 */
#ifndef MAREY_TENSOR_COMPARE_INTERNAL_H
#define MAREY_TENSOR_COMPARE_INTERNAL_H

#include "tensor/kernels/tensor_internal.h"
#include "tensor/kernels/tensor_kernels.h"

/* Blocks of a chunk: what a thread takes at a time. */
enum { MAREY__CHUNK_BLOCKS = 64 };

/* Where a worst element is: an element, or the block in which it will be looked for when all is done. */
struct marey__where {
    uint64_t index; /* UINT64_MAX: nowhere */
    bool is_block;  /* `index` is that of its first element */
};

/* What some elements add to the result. */
struct marey__diff_part {
    uint64_t n_wrong, n_unequal, n_nan_a, n_nan_b, n_nan_one;
    bool is_hopeless;  /* no tolerance accepts one of the elements */
    uint64_t n_finite; /* parts that are finite on both sides: what sums and worst are taken over */
    double abs, rel;   /* rel is infinite where b is 0 and a is not */
    uint64_t ulp;
    struct marey__where abs_at, rel_at, ulp_at, wrong_at;
    double max_a, max_b;
    long double sum_a, sum_b, sum_abs, sum_aa, sum_bb, sum_ab, sum_dd;
};
void marey__diff_part_init(struct marey__diff_part *part);
/* `later` stands behind `into` in the tensor. */
void marey__diff_part_add(struct marey__diff_part *into, const struct marey__diff_part *later);

/* What is compared, once it is settled. */
struct marey__compare {
    struct marey__tensor_view a, b;
    enum marey_dtype common; /* the type of parts in which they are compared; NONE: number by number */
    bool is_mixed;           /* `common` is NONE, and a side has floats */
    enum marey__lie lie; /* of blocks; EXPANDED where a side has another type than the common one */
    uint32_t n_parts;    /* of an element */
    uint32_t pattern_shift; /* of the common type, if it has at most 32 bits */
    uint32_t block_elements;
    uint64_t n; /* elements */
    struct marey_tolerance tolerance;
    const struct marey__kernels *kernels;
};

/* Elements from `first` up to `end`, into `part`. */
void marey__compare_chunk(const struct marey__compare *job, uint64_t first, uint64_t end,
                          struct marey__diff_part *part);
/* Look for the worst elements where `part` has blocks only. */
void marey__compare_find(const struct marey__compare *job, struct marey__diff_part *part);

/* ---- blocks of `n` elements that may be anything; they begin with element `first` ---- */
void marey__compare_floats32(const struct marey__compare *job, const float *a, const float *b,
                             const uint32_t *patterns_a, const uint32_t *patterns_b, size_t n,
                             uint64_t first, struct marey__diff_part *part);
void marey__compare_floats64(const struct marey__compare *job, const double *a, const double *b,
                             size_t n, uint64_t first, struct marey__diff_part *part);
void marey__compare_integers(const struct marey__compare *job, const void *a, const void *b,
                             size_t n, uint64_t first, struct marey__diff_part *part);
void marey__compare_mixed(const struct marey__compare *job, const unsigned char *a,
                          const unsigned char *b, size_t n, uint64_t first,
                          struct marey__diff_part *part);

/* Which of them to look for in a block. */
struct marey__wanted {
    bool wrong, abs, rel, ulp;
};
void marey__find_floats32(const struct marey__compare *job, const float *a, const float *b,
                          const uint32_t *patterns_a, const uint32_t *patterns_b, size_t n,
                          uint64_t first, struct marey__wanted *wanted,
                          struct marey__diff_part *part);
void marey__find_floats64(const struct marey__compare *job, const double *a, const double *b,
                          size_t n, uint64_t first, struct marey__wanted *wanted,
                          struct marey__diff_part *part);

#endif
