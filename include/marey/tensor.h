/*
 * marey/tensor.h: tensors as plain data, and what can be asked of their numbers: statistics, digests, comparisons.
 *
 *     const int64_t sizes[] = {2, 3};
 *     const struct marey_tensor t = {.data = x, .dtype = MAREY_F32, .rank = 2, .sizes = sizes};
 *     struct marey_tensor_stats stats;
 *     marey_tensor_stats_get(&t, &stats);
 *
 * A descriptor is lent for the call and owns nothing. Everything here works on host memory, in one pass, in the calling
 * thread, without memory that grows with the tensor; any thread, but not from signal handlers.
 */
#ifndef MAREY_TENSOR_H
#define MAREY_TENSOR_H

#include <marey/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The types of elements. Their numbers are in files: never changed, only added to. */
enum marey_dtype {
    MAREY_DTYPE_NONE = 0,
    MAREY_BOOL, /* a byte; anything but 0 is true */
    MAREY_U8,
    MAREY_I8,
    MAREY_U16,
    MAREY_I16,
    MAREY_U32,
    MAREY_I32,
    MAREY_U64,
    MAREY_I64,
    MAREY_F16,
    MAREY_BF16,
    MAREY_F32,
    MAREY_F64,
    MAREY_C32, /* two F16 */
    MAREY_C64,
    MAREY_C128,
    MAREY_F8_E4M3FN,
    MAREY_F8_E5M2,
    MAREY_F8_E4M3FNUZ,
    MAREY_F8_E5M2FNUZ,
    MAREY_F8_E8M0FNU,
    MAREY_F4_E2M1X2, /* a byte with two of them, the first in its low half; sizes count bytes */
    MAREY_I4X2,      /* the same of signed 4-bit integers */
    MAREY_U4X2,
    MAREY_N_DTYPES
};

enum { MAREY_MAX_RANK = 64 };

/* Where the elements lie; the numbers are DLPack's, and 0 is the host too. */
enum marey_memory { MAREY_MEMORY_HOST = 0, MAREY_MEMORY_CPU = 1, MAREY_MEMORY_CUDA = 2 };

struct marey_tensor {
    const void *data; /* the first element; NULL where there are none */
    enum marey_dtype dtype;
    uint32_t rank;          /* 0: one element */
    const int64_t *sizes;   /* rank of them */
    const int64_t *strides; /* in elements, 0 and negative ones too; NULL: row-major */
    enum marey_memory memory;
    int32_t device;   /* of CUDA memory */
    uintptr_t stream; /* CUDA: the stream whose work so far makes the data; 0: the default stream */
};

/* ---- types ---- */

/* As torch calls it: "float32", "float8_e4m3fn", "int4x2"; "?" for what is none. Lent for ever. */
MAREY_API const char *marey_dtype_name(enum marey_dtype dtype);
/* By any name that is in use: "float32", "torch.float32", "F32", "<f4", "bf16"; MAREY_DTYPE_NONE for what is none. */
MAREY_API enum marey_dtype marey_dtype_find(const char *name);
/* Bytes of an element; 0 for what is none. */
MAREY_API size_t marey_dtype_size(enum marey_dtype dtype);

/*
 * MAREY_EINVAL with a sentence when it is none that can be read: type, rank, sizes, strides, a product beyond 63 bits.
 * What follows checks it too.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_tensor_check(const struct marey_tensor *tensor);
/* Elements; 1 of rank 0. Of a tensor that is checked. */
MAREY_API uint64_t marey_tensor_count(const struct marey_tensor *tensor);
/* Elements times their size: what a row-major copy takes. */
MAREY_API uint64_t marey_tensor_bytes(const struct marey_tensor *tensor);
MAREY_API int marey_tensor_is_row_major(const struct marey_tensor *tensor);
/* Copy the elements in row-major order to `out`, marey_tensor_bytes() of them. Only host memory. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_tensor_gather(const struct marey_tensor *tensor,
                                                             void *out);
/* Element number `i` in row-major order as the text that reads back to it: "0.1", "NaN", "(1,-2)"; at most 64 bytes. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_tensor_element(const struct marey_tensor *tensor,
                                                              uint64_t i, char *out, size_t size);

/* ---- statistics ---- */

enum { MAREY_STATS_BINS = 64 };

/* Of real numbers; of complex ones, of their parts. Min to L2 leave out NaN and infinities, and are NaN of nothing. */
struct marey_tensor_stats {
    uint64_t n, n_nan, n_pos_inf, n_neg_inf, n_zero, n_denormal, n_negative;
    double min, max, mean, std, l2; /* std of the population */
    /*
     * Magnitudes of what is finite and not zero, by powers of two: bin i holds 2^(i-40) <= |x| < 2^(i-39), the first and
     * the last all beyond.
     */
    uint64_t histogram[MAREY_STATS_BINS];
};
MAREY_API MAREY_WARN_UNUSED marey_status marey_tensor_stats_get(const struct marey_tensor *tensor,
                                                                struct marey_tensor_stats *out);

/* ---- digests ---- */

/* Bytes of row-major data that have a digest of their own. */
#define MAREY_DIGEST_BLOCK ((uint64_t)1 << 20)

/*
 * 128 bits that depend on the order of bytes: XXH3-128 of each block, and of the blocks' digests (16 bytes each, as
 * printed, in order) where there are several. Canonical: as hexadecimal digits they read in this order. dtype and sizes
 * are not in it.
 */
struct marey_digest {
    uint8_t bytes[16];
};
/*
 * `blocks` (NULL: not asked for) takes marey_digest_blocks() digests. MAREY_EUNAVAILABLE in a build without xxHash.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_tensor_digest(const struct marey_tensor *tensor,
                                                             struct marey_digest *out,
                                                             struct marey_digest *blocks);
MAREY_API uint64_t marey_digest_blocks(uint64_t n_bytes);

/* ---- comparisons ---- */

/*
 * Two elements agree when |a - b| <= abs + rel * |b|, or when they are at most `ulp` representable numbers apart, or are
 * equal. A NaN agrees with a NaN if `nan_equal`, and with nothing else; an infinity only with itself; -0 and +0 agree
 * unless `bitwise`, which asks for equal bits and no more. Complex numbers agree when both parts do, and so do bytes with two
 * numbers. Integers are compared as integers, exactly; floats in float64 or, if they are narrower, in float32, as torch
 * does.
 *
 * Two types are compared in the narrowest of float32 and float64 that holds every number of both, and `ulp` counts the numbers
 * of that type. 64-bit integers against floats, and real against complex numbers, are compared exactly; `ulp` then
 * counts in float64, and numbers that differ are 1 apart at least. No number is rounded before it is compared.
 */
struct marey_tolerance {
    double abs, rel;
    uint64_t ulp;
    uint32_t nan_equal, bitwise;
};
/* What torch.testing.assert_close takes for two types, with NaNs equal: abs and rel of the coarser one. */
MAREY_API struct marey_tolerance marey_tolerance_default(enum marey_dtype a, enum marey_dtype b);

/* The worst element by one measure; `value` 0 and `index` UINT64_MAX where none differs. */
struct marey_worst {
    double value;
    uint64_t index; /* in row-major order */
};

struct marey_tensor_diff {
    uint64_t n, n_wrong; /* elements; those that do not agree */
    uint64_t n_unequal;  /* those that are not equal, whatever the tolerance; NaN equals NaN here */
    uint64_t n_nan_a, n_nan_b, n_nan_one; /* NaNs; elements where just one side has one */
    uint64_t first_wrong;                 /* UINT64_MAX: none */
    /* Over elements that are finite on both sides. rel: |a - b| / |b|, infinite where only b is 0. */
    struct marey_worst abs, rel, ulp;
    double mean_abs, rmse, mean_a, mean_b; /* over the same */
    double cosine;                         /* NaN where a side is all zeroes */
    double snr_db;       /* b's power over that of the difference; infinite where there is none */
    double max_a, max_b; /* the largest magnitudes */
    /* The least tolerances that would pass, each by itself; infinite where none would. */
    double needs_abs, needs_rel, needs_ulp;
};

/*
 * Compare `a`, the new one, with `b`, the reference, element by element. MAREY_EINVAL for different sizes, and for bytes with
 * two numbers against a type without. Both on the host.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_tensor_compare(const struct marey_tensor *a,
                                                              const struct marey_tensor *b,
                                                              const struct marey_tolerance *tolerance,
                                                              struct marey_tensor_diff *out);
/* The same with up to `n_threads` threads (0: as many as there are cores); results equal those of one thread. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_tensor_compare_with(
    const struct marey_tensor *a, const struct marey_tensor *b,
    const struct marey_tolerance *tolerance, uint32_t n_threads, struct marey_tensor_diff *out);

#ifdef __cplusplus
}
#endif
#endif
