/*
 * kernels: statistics, digests and comparisons of tensors (<marey/tensor.h>).
 *
 *     strided memory --layout--> runs of elements --formats--> float32 or float64 --kernels--> counts and sums
 *
 *   tensor_layout.c, tensor_formats.c, tensor_element.c, tensor_dtype.c   memory to numbers
 *   tensor_stats.c, tensor_digest.c, tensor_compare.c, compare_*.c        what is computed
 *   kernels_plain.c, kernels_avx2.c, kernels_avx512.c, tensor_dispatch.c  the inner loops, chosen at run time
 *   number_small.c                                                        text of floats of 16 bits and fewer
 *
 * Everything works on blocks of MAREY__BLOCK_PARTS numbers in row-major order. A block of a row-major tensor is read in
 * place, otherwise gathered onto the stack. An element has one or two parts: complex numbers, and bytes with two
 * numbers.
 *
 * Input: pointers with a layout. Output: numbers. Does not know frameworks, GPUs or files.
 */
#ifndef MAREY_TENSOR_KERNELS_INTERNAL_H
#define MAREY_TENSOR_KERNELS_INTERNAL_H

#include <fenv.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/internal.h"
#include <marey/tensor.h>

/* Numbers per block: few enough for sums in float32, and for two blocks in the L1 cache. */
enum { MAREY__BLOCK_PARTS = 4096 };

/* ---- types ---- */

enum marey__number_kind { MAREY__IS_BOOL, MAREY__IS_UNSIGNED, MAREY__IS_SIGNED, MAREY__IS_FLOAT };

struct marey__dtype {
    const char *name;
    uint8_t size;         /* bytes of an element */
    uint8_t n_parts;      /* numbers per element */
    uint8_t part_bits;    /* of one number; 4 if two share a byte */
    uint8_t kind;         /* enum marey__number_kind, of a part */
    uint8_t part;         /* enum marey_dtype of a part; a type with half bytes is its own part */
    uint8_t digits;       /* significant bits of a float, including the hidden one */
    int16_t min_exponent; /* the smallest normal number is 2 to this */
    double rel, abs;      /* torch's default tolerances */
    const char *id;       /* "F32" */
    /* In files; if numpy has no such type, it gets an unsigned integer of the same width, and the suffix names the type. */
    const char *numpy, *safetensors, *npy_suffix;
};
/* NULL for an invalid type. Lent forever. */
MAREY_PRIVATE_API const struct marey__dtype *marey__dtype_get(enum marey_dtype dtype);

/* ---- layout ---- */

/* A tensor's sizes and strides, with contiguous axes merged. */
struct marey__layout {
    uint32_t rank;
    uint64_t sizes[MAREY_MAX_RANK];
    int64_t strides[MAREY_MAX_RANK]; /* in bytes */
};
/* Like marey_tensor_check, and requires host memory. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED marey_status
marey__tensor_check_host(const struct marey_tensor *tensor);

/*
 * Numbers in a file, row-major, from byte `at`: the `data` of a tensor whose memory is MAREY__MEMORY_FILE. Comparisons
 * read them block by block, so that no further memory is needed and truncation meanwhile is an error, not a signal.
 */
enum { MAREY__MEMORY_FILE = 100 };
struct marey__tensor_file {
    int fd;
    uint64_t at;
    const char *path; /* lent */
    _Atomic int error; /* of the first failed read, -1: the file is too short; relaxed, ordered by joining */
};
static inline bool marey__tensor_is_in_file(const struct marey_tensor *tensor)
{
    return (int)tensor->memory == MAREY__MEMORY_FILE;
}
/* Like marey_tensor_check, and requires host memory or a file. */
MAREY_WARN_UNUSED marey_status marey__tensor_check_readable(const struct marey_tensor *tensor);
/* The error of reading from a file; the numbers are then 0. */
MAREY_WARN_UNUSED marey_status marey__tensor_read_status(const struct marey_tensor *tensor);

/* Blocks of one tensor, in memory or in a file. */
struct marey__tensor_view {
    const unsigned char *data;
    struct marey__tensor_file *file; /* NULL: in memory */
    const struct marey__dtype *type;
    bool is_row_major;
    struct marey__layout layout; /* if not row-major */
};
MAREY_PRIVATE_API void marey__tensor_view_of(const struct marey_tensor *tensor,
                                             struct marey__tensor_view *out);
/* Elements from index `first`: in place, or copied to `room`. */
MAREY_PRIVATE_API const void *marey__tensor_view_block(const struct marey__tensor_view *view,
                                                       uint64_t first, size_t n, void *room);

/* a - b at element `i`, rounded once to long double; returns the number of parts. Both are in host memory, of equal sizes. */
MAREY_PRIVATE_API unsigned marey__tensor_difference(const struct marey_tensor *a,
                                                    const struct marey_tensor *b, uint64_t i,
                                                    long double out[2]);

/* The index on each axis of row-major element `i`; no size is 0. */
static inline void marey__index_of(const int64_t *sizes, uint32_t n_axes, uint64_t i, uint64_t *out)
{
    for (uint32_t axis = n_axes; axis-- > 0; i /= (uint64_t)sizes[axis])
        out[axis] = i % (uint64_t)sizes[axis];
}

/* ---- floats of every width ---- */

/* Converts parts of a float type of at most 32 bits to float32; with `part_bits` 4, `n` is even. */
void marey__widen(enum marey_dtype part, const void *from, size_t n, float *to);
/* Converts parts of any type to float64, rounding integers beyond 2^53. */
MAREY_PRIVATE_API void marey__widen_to_double(enum marey_dtype part, const void *from, size_t n,
                                              double *to);
/* Their bits, shifted by marey__pattern_shift(): the sign on top, and a magnitude that counts the type's numbers. */
void marey__patterns(enum marey_dtype part, const void *from, size_t n, uint32_t *to);
unsigned marey__pattern_shift(enum marey_dtype part);
/* Rounds to a float type of less than 32 bits, to nearest even, as torch does; returns its bits. */
MAREY_PRIVATE_API uint32_t marey__narrow(enum marey_dtype part, double value);

/* Sets the standard floating-point environment: no traps, no flushing of denormals, to nearest. `saved`: the host's. */
void marey__float_enter(fenv_t *saved);
void marey__float_leave(const fenv_t *saved);

/* ---- number_small.c ---- */

/* The texts of a floating type of 16, 8 or 4 bits, by bits; `len` 0: NaN or infinite. */
struct marey__small_text {
    char text[23];
    uint8_t len;
};
/* Whether it is such a type. */
MAREY_PRIVATE_API bool marey__is_small(enum marey_dtype dtype);
/* Made by the first call, then lent forever; NULL for other types, and on out of memory. Any thread. */
MAREY_PRIVATE_API const struct marey__small_text *marey__small_texts(enum marey_dtype dtype);
/*
 * Writes part `k` of an element, without a NUL, into MAREY__NUMBER_ROOM bytes; returns the end. Floats have the fewest
 * digits that read back in their own type, or with `is_wide` as a double. Returns NULL for a non-finite number, which
 * is then in `*value`. `texts` are those of a small type.
 */
MAREY_PRIVATE_API char *marey__part_text(const struct marey__dtype *type,
                                         const struct marey__small_text *texts, const void *element,
                                         size_t k, bool is_wide, char *out, double *value);
/* The exact value of such a number. NaN for other types. */
MAREY_PRIVATE_API double marey__small_value(enum marey_dtype dtype, uint16_t bits);

/* ==== tensor_kernels ==== */

/* Compiled once per instruction set (kernels_avx512.c and others). Blocks have at most MAREY__BLOCK_PARTS. */

/* Room for a byte per number of a block, and the rest of a vector. */
enum { MAREY__BLOCK_CODES = 4096 + 64 };

/* The format of a block's numbers in memory. */
enum marey__form {
    MAREY__FORM_F32,
    MAREY__FORM_BF16,
    MAREY__FORM_F16,
    MAREY__FORM_EXPANDED, /* as float32, with the bit patterns of their own type beside them */
    MAREY__FORM_F64,
    MAREY__N_FORMS
};

struct marey__block_pair {
    const void *a, *b;
    const uint32_t *patterns_a,
        *patterns_b;   /* for MAREY__FORM_EXPANDED: sign and magnitude, in the upper bits */
    size_t n;          /* numbers */
    double abs, rel;   /* tolerances */
    uint64_t ulp;      /* shifted to the upper bits too */
    double rel_so_far; /* the largest relative difference of earlier blocks */
};

/* Sums over pairs of numbers a and b, with d = a - b. */
enum marey__sum {
    MAREY__SUM_A,
    MAREY__SUM_B,
    MAREY__SUM_ABS, /* of |d| */
    MAREY__SUM_AA,
    MAREY__SUM_BB,
    MAREY__SUM_AB,
    MAREY__SUM_DD,
    MAREY__N_SUMS
};

/* The result for a block of finite numbers whose squares fit. Elements of two parts count once. */
struct marey__block_diff {
    uint32_t n_wrong, n_unequal;
    bool beats_rel;             /* some relative difference may be larger than rel_so_far */
    double max_d, max_a, max_b; /* NaN or infinite if a number is */
    uint64_t ulp;               /* in the upper bits */
    double sums[MAREY__N_SUMS];
    double max_rel; /* set by `ratios`: the largest |a - b| / |b|; infinite if b is 0 and a is not */
};

struct marey__block_stats {
    double min, max;
    double about;        /* reference for distances */
    double sum, squares; /* of distances */
    uint32_t n_zero, n_negative;
    uint32_t n_small; /* float64: zeros and denormals */
};

/* Storage for running digests. */
struct marey__hash_state {
    _Alignas(64) unsigned char bytes[640];
};

/* The kernels for one number format; the second of two variants is for elements of two parts. */
struct marey__float_kernels {
    /* n_wrong ignores tolerances in ulps. */
    void (*compare[2])(const struct marey__block_pair *, struct marey__block_diff *);
    /* The same with sums in float64, for squares of any float32, and with tolerances in ulps. */
    void (*compare_wide[2])(const struct marey__block_pair *, struct marey__block_diff *);
    void (*ratios)(const struct marey__block_pair *, struct marey__block_diff *);
    /* Whether all bits are equal. If so, sets max_a and the sums of a and aa; those of b are the same. */
    bool (*equal)(const struct marey__block_pair *, struct marey__block_diff *);
    /*
     * Statistics of `n` numbers, at least one; expanded ones need no patterns. `counts` has 256 entries: for float32 by
     * biased exponent, for float64 by the bins of struct marey_tensor_stats, zeros in the first. False, with nothing
     * counted, if a number is not finite or squares are too large or too small.
     */
    bool (*stats)(const void *from, size_t n, struct marey__block_stats *out, uint64_t *counts);
};

struct marey__kernels {
    const char *name;
    struct marey__float_kernels floats[MAREY__N_FORMS];
    /* XXH3-128, one-shot and incremental; NULL in a build without xxHash. */
    void (*hash)(const void *bytes, size_t n, struct marey_digest *out);
    void (*hash_begin)(struct marey__hash_state *state);
    void (*hash_add)(struct marey__hash_state *state, const void *bytes, size_t n);
    void (*hash_end)(const struct marey__hash_state *state, struct marey_digest *out);
};
/* The best ones supported by this CPU. */
const struct marey__kernels *marey__kernels_get(void);
/* For tests: selects "plain", "avx2" or "avx512"; NULL: the best. False if the CPU does not support them. */
MAREY_API bool marey__kernels_force(const char *name);
/* For tests: uses these. */
void marey__kernels_use(const struct marey__kernels *kernels);

extern const struct marey__kernels marey__kernels_plain;
extern const struct marey__kernels marey__kernels_avx2;
extern const struct marey__kernels marey__kernels_avx512;

/* ==== tensor_compare ==== */

/*
 * Comparing: blocks to partial results, partial results to the whole.
 *
 * A chunk is a fixed number of blocks. The sums of a chunk are added block by block, those of the tensor chunk by
 * chunk, in order, so that any number of threads gives identical results.
 *
 * A block of floats goes to a kernel for this CPU. It assumes that all differences are finite, and none so large or
 * small that sums of squares in the type itself would lose accuracy; if not, the block is repeated by the functions of
 * compare_floats.h, which make no assumptions. Kernels find the worst difference of a block but not its element; that
 * is searched once, at the end.
 *
 * Differences and tolerances are computed in the type's own arithmetic: float32 for float32 and narrower types, float64
 * for float64, as in torch and numpy. Different types are compared in the narrower of float32 and float64 that
 * represents all numbers of both; if neither does (64-bit integers against floats; real against complex numbers), in
 * long double, number by number. Nothing is rounded before it is compared.
 */

/* Blocks per chunk, the unit of work of a thread. */
enum { MAREY__CHUNK_BLOCKS = 64 };

/* The location of a worst element: an element, or the block to search at the end. */
struct marey__where {
    uint64_t index; /* UINT64_MAX: none */
    bool is_block;  /* `index` is that of the block's first element */
};

/* The contribution of some elements to the result. */
struct marey__diff_part {
    uint64_t n_wrong, n_unequal, n_nan_a, n_nan_b, n_nan_one;
    bool is_hopeless; /* no tolerance accepts one of the elements */
    uint64_t n_finite; /* parts that are finite on both sides: the basis of sums and worst differences */
    double abs, rel; /* rel is infinite if b is 0 and a is not */
    uint64_t ulp;
    struct marey__where abs_at, rel_at, ulp_at, wrong_at;
    double max_a, max_b;
    long double sums[MAREY__N_SUMS];
};
/* Stores `value`, found at `place`, in part->NAME if it is the largest so far. */
#define MAREY__KEEP_LARGER(part, name, value, place)                                               \
    do {                                                                                           \
        if ((value) > (part)->name) {                                                              \
            (part)->name = (value);                                                                \
            (part)->name##_at = (place);                                                           \
        }                                                                                          \
    } while (0)
void marey__diff_part_init(struct marey__diff_part *part);
/* `later` follows `into` in the tensor. */
void marey__diff_part_add(struct marey__diff_part *into, const struct marey__diff_part *later);

/* A prepared comparison. */
struct marey__compare {
    struct marey__tensor_view a, b;
    enum marey_dtype common; /* the type in which parts are compared; NONE: number by number */
    bool is_mixed;           /* `common` is NONE, and a side has floats */
    enum marey__form form;   /* of blocks; EXPANDED if a side's type is not the common one */
    uint32_t n_parts;        /* per element */
    uint32_t pattern_shift;  /* of the common type, if it has at most 32 bits */
    uint32_t block_elements;
    uint64_t n; /* elements */
    struct marey_tolerance tolerance;
    const struct marey__kernels *kernels;
};

/* Compares elements from `first` up to `end`, into `part`. */
void marey__compare_chunk(const struct marey__compare *job, uint64_t first, uint64_t end,
                          struct marey__diff_part *part);
/* Searches for the worst elements where `part` has only blocks. */
void marey__compare_find(const struct marey__compare *job, struct marey__diff_part *part);

/* Compares a block of `n` integers that begins at element `first`. */
void marey__compare_integers(const struct marey__compare *job, const void *a, const void *b,
                             size_t n, uint64_t first, struct marey__diff_part *part);

#endif
