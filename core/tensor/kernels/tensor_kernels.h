/*
 * What is compiled once for each kind of processor: kernels_avx512.c, kernels_avx2.c, kernels_plain.c, the same code over
 * vectors of different widths. They see blocks of at most MAREY__BLOCK_PARTS numbers.
 */
#ifndef MAREY_TENSOR_KERNELS_H
#define MAREY_TENSOR_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <marey/tensor.h>

/* Room for a byte for each number of a block, and for the rest of a vector. */
enum { MAREY__BLOCK_CODES = 4096 + 64 };

/* How the numbers of a block lie in memory. */
enum marey__lie {
    MAREY__LIE_F32,
    MAREY__LIE_BF16,
    MAREY__LIE_F16,
    MAREY__LIE_EXPANDED, /* as float32, with the patterns of their own type beside them */
    MAREY__LIE_F64,
    MAREY__N_LIES
};

struct marey__block_pair {
    const void *a, *b;
    const uint32_t *patterns_a,
        *patterns_b;   /* of MAREY__LIE_EXPANDED: sign and magnitude, in the upper bits */
    size_t n;          /* numbers */
    double abs, rel;   /* tolerances */
    uint64_t ulp;      /* in the upper bits too */
    double rel_so_far; /* the largest relative difference of earlier blocks */
};

/*
 * What a block gives when all its numbers are finite, and their squares neither too large nor too small; the maxima tell.
 * Elements of two parts count once.
 */
struct marey__block_diff {
    uint32_t n_wrong, n_unequal;
    bool beats_rel; /* somewhere the relative difference may be larger than rel_so_far */
    double max_d, max_a, max_b; /* NaN or infinite when a number is */
    uint64_t ulp;               /* in the upper bits */
    double sum_a, sum_b, sum_abs, sum_aa, sum_bb, sum_ab, sum_dd;
    double max_rel; /* by `ratios`: the largest |a - b| / |b|; infinite where b is 0 and a is not */
};

struct marey__block_stats {
    double min, max;
    double about;        /* the number from which distances are taken */
    double sum, squares; /* of distances */
    uint32_t n_zero, n_negative;
    uint32_t n_small; /* float64: zeroes and denormal numbers */
};

/* Room for running digests. */
struct marey__hash_state {
    _Alignas(64) unsigned char bytes[640];
};

struct marey__kernels {
    const char *name;
    /* By how they lie, and whether elements have two parts; n_wrong leaves tolerances in places out of account. */
    void (*compare[MAREY__N_LIES][2])(const struct marey__block_pair *, struct marey__block_diff *);
    /* The same with sums in float64, for squares of any float32, and with tolerances in places. */
    void (*compare_wide[MAREY__N_LIES][2])(const struct marey__block_pair *,
                                           struct marey__block_diff *);
    void (*ratios[MAREY__N_LIES])(const struct marey__block_pair *, struct marey__block_diff *);
    /* Whether all bits are equal. If so max_a, sum_a and sum_aa are given, and those of b are the same. */
    bool (*equal[MAREY__N_LIES])(const struct marey__block_pair *, struct marey__block_diff *);
    /*
     * Statistics of `n` numbers, at least one; those that lie expanded need no patterns. `counts` has 256 numbers: of float32
     * they count by the exponent with its bias, of float64 by the bins of struct marey_tensor_stats, zeroes in the first. False,
     * and nothing is counted, when a number is not finite or squares are too large or too small.
     */
    bool (*stats[MAREY__N_LIES])(const void *from, size_t n, struct marey__block_stats *out,
                                 uint64_t *counts);
    /* XXH3-128, at once and piece by piece; NULL in a build without xxHash. */
    void (*hash)(const void *bytes, size_t n, struct marey_digest *out);
    void (*hash_begin)(struct marey__hash_state *state);
    void (*hash_add)(struct marey__hash_state *state, const void *bytes, size_t n);
    void (*hash_end)(const struct marey__hash_state *state, struct marey_digest *out);
};
/* The best that this processor takes. */
const struct marey__kernels *marey__kernels_get(void);
/* Tests: those named "plain", "avx2" or "avx512"; NULL: the best again. False where the processor does not take them. */
MAREY_API bool marey__kernels_force(const char *name);
/* Tests: these. */
void marey__kernels_use(const struct marey__kernels *kernels);

extern const struct marey__kernels marey__kernels_plain;
extern const struct marey__kernels marey__kernels_avx2;
extern const struct marey__kernels marey__kernels_avx512;

#endif
