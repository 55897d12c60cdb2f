/*
 * marey/tensor.h: tensor descriptors, with statistics, digests and comparisons of their elements.
 *
 *     const int64_t sizes[] = {2, 3};
 *     const struct marey_tensor t = {.data = x, .dtype = MAREY_F32, .rank = 2, .sizes = sizes};
 *     struct marey_tensor_stats stats;
 *     marey_tensor_stats_get(&t, &stats);
 *
 * A descriptor is lent for the call and owns nothing. All functions work on host memory, in one pass, in the calling thread,
 * with constant extra memory. Any thread; not from signal handlers.
 */
#ifndef MAREY_TENSOR_H
#define MAREY_TENSOR_H

#include <marey/base.h>

MAREY_BEGIN_C

/* Element types. Files contain these numbers: only append. */
enum marey_dtype {
    MAREY_DTYPE_NONE = 0,
    MAREY_BOOL, /* a byte; non-zero is true */
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
    MAREY_F4_E2M1X2, /* two elements per byte, the first in the low half; sizes count bytes */
    MAREY_I4X2,      /* the same for signed 4-bit integers */
    MAREY_U4X2,
    MAREY_N_DTYPES
};

enum { MAREY_MAX_RANK = 64 };

/* Memory of the elements; DLPack's numbers, and 0 is the host too. */
enum marey_memory { MAREY_MEMORY_HOST = 0, MAREY_MEMORY_CPU = 1, MAREY_MEMORY_CUDA = 2 };

struct marey_tensor {
    const void *data; /* the first element; NULL: no elements */
    enum marey_dtype dtype;
    uint32_t rank;          /* 0: one element */
    const int64_t *sizes;   /* rank of them */
    const int64_t *strides; /* in elements, 0 and negative ones too; NULL: row-major */
    enum marey_memory memory;
    int32_t device;   /* of CUDA memory */
    uintptr_t stream; /* CUDA: the stream that produces the data; 0: the default stream */
};

/* ---- types ---- */

/* As torch calls it: "float32", "float8_e4m3fn", "int4x2"; "?": unknown. Static. */
MAREY_API const char *marey_dtype_name(enum marey_dtype dtype);
/* By any common name: "float32", "torch.float32", "F32", "<f4", "bf16"; MAREY_DTYPE_NONE: unknown. */
MAREY_API enum marey_dtype marey_dtype_find(const char *name);
/* Bytes per element; 0: unknown type. */
MAREY_API size_t marey_dtype_size(enum marey_dtype dtype);

/*
 * MAREY_EINVAL: invalid type, rank, sizes or strides, or a product beyond 63 bits. The functions that return a status also
 * check it.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_tensor_check(const struct marey_tensor *tensor);
/* Number of elements; 1 for rank 0. The tensor must be valid. */
MAREY_API uint64_t marey_tensor_count(const struct marey_tensor *tensor);
/* Bytes of a row-major copy: elements times their size. */
MAREY_API uint64_t marey_tensor_bytes(const struct marey_tensor *tensor);
MAREY_API int marey_tensor_is_row_major(const struct marey_tensor *tensor);
/* Copy the elements in row-major order to `out`, marey_tensor_bytes() bytes. Only host memory. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_tensor_gather(const struct marey_tensor *tensor,
                                                             void *out);
/* Element number `i` in row-major order, as a string that parses back to it: "0.1", "NaN", "(1,-2)"; at most 64 bytes. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_tensor_element(const struct marey_tensor *tensor,
                                                              uint64_t i, char *out, size_t size);

/* ---- statistics ---- */

enum { MAREY_STATS_BINS = 64 };

/* Complex numbers count as two real ones. min to l2 ignore NaN and infinities, and are NaN without finite elements. */
struct marey_tensor_stats {
    uint64_t n, n_nan, n_pos_inf, n_neg_inf, n_zero, n_denormal, n_negative;
    double min, max, mean, std, l2; /* population std */
    /*
     * Magnitudes of finite non-zero elements by powers of two: bin i holds 2^(i-40) <= |x| < 2^(i-39); the first and last
     * bin include all smaller and larger ones.
     */
    uint64_t histogram[MAREY_STATS_BINS];
};
MAREY_API MAREY_WARN_UNUSED marey_status marey_tensor_stats_get(const struct marey_tensor *tensor,
                                                                struct marey_tensor_stats *out);

/* ---- digests ---- */

/* Bytes of row-major data per block digest. */
#define MAREY_DIGEST_BLOCK ((uint64_t)1 << 20)

/*
 * 128-bit digest of the bytes in order: XXH3-128 of the block, or, with several blocks, of the blocks' digests (16 bytes
 * each, in order). Canonical byte order, as printed in hexadecimal. Does not include dtype and sizes.
 */
struct marey_digest {
    uint8_t bytes[16];
};
/*
 * `blocks` (NULL: none) receives marey_digest_blocks() digests. MAREY_EUNAVAILABLE in a build without xxHash.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_tensor_digest(const struct marey_tensor *tensor,
                                                             struct marey_digest *out,
                                                             struct marey_digest *blocks);
MAREY_API uint64_t marey_digest_blocks(uint64_t n_bytes);

/* ---- comparisons ---- */

/*
 * Two elements agree if they are equal, if |a - b| <= abs + rel * |b|, or if they are at most `ulp` representable numbers
 * apart. A NaN agrees only with a NaN, and only if `nan_equal`; an infinity only with itself. -0 and +0 agree, except with
 * `bitwise`, which only checks for equal bits. Complex numbers, and bytes with two numbers, agree if both parts do. Integers
 * are compared exactly; floats in float64, or in float32 if they are narrower, as torch does.
 *
 * Different types are compared in the narrower of float32 and float64 that represents all numbers of both; `ulp` counts in
 * that type. 64-bit integers against floats, and real against complex numbers, are compared exactly; `ulp` then counts in
 * float64, and different numbers are at least 1 apart. No number is rounded before the comparison.
 */
struct marey_tolerance {
    double abs, rel;
    uint64_t ulp;
    uint32_t nan_equal, bitwise;
};
/* Defaults of torch.testing.assert_close for two types, with NaNs equal: abs and rel of the coarser type. */
MAREY_API struct marey_tolerance marey_tolerance_default(enum marey_dtype a, enum marey_dtype b);

/* The worst element by one measure; `value` 0 and `index` UINT64_MAX: none differs. */
struct marey_worst {
    double value;
    uint64_t index; /* in row-major order */
};

struct marey_tensor_diff {
    uint64_t n, n_wrong; /* elements; elements that do not agree */
    uint64_t n_unequal;  /* elements that are not equal, without tolerance; NaN equals NaN here */
    uint64_t n_nan_a, n_nan_b, n_nan_one; /* NaNs; elements with a NaN on only one side */
    uint64_t first_wrong;                 /* UINT64_MAX: none */
    /* Over elements that are finite on both sides. rel: |a - b| / |b|, infinite where only b is 0. */
    struct marey_worst abs, rel, ulp;
    double mean_abs, rmse, mean_a, mean_b; /* over the same elements */
    double cosine;                         /* NaN if a side is all zeros */
    double snr_db; /* power of b over power of the difference; infinite without a difference */
    double max_a, max_b; /* the largest magnitudes */
    /* The smallest tolerance that would pass, each without the others; infinite: none would. */
    double needs_abs, needs_rel, needs_ulp;
};

/*
 * Compare `a` (new) with `b` (reference), element by element, both on the host. MAREY_EINVAL: different sizes, or only one
 * type has two numbers per byte.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_tensor_compare(const struct marey_tensor *a,
                                                              const struct marey_tensor *b,
                                                              const struct marey_tolerance *tolerance,
                                                              struct marey_tensor_diff *out);
/* The same with up to `n_threads` threads (0: one per core); the result does not depend on the number of threads. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_tensor_compare_with(
    const struct marey_tensor *a, const struct marey_tensor *b,
    const struct marey_tolerance *tolerance, uint32_t n_threads, struct marey_tensor_diff *out);

MAREY_END_C
#endif
