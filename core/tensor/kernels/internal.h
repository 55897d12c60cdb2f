/*
 * kernels: statistics, digests and comparisons of tensors (<marey/tensor.h>).
 *
 *     strided memory --layout--> runs of elements --formats--> float32 or float64 --kernels--> counts and sums
 *
 *   tensor_layout.c, tensor_formats.c, tensor_element.c, tensor_dtype.c   memory to numbers
 *   tensor_stats.c, tensor_digest.c, tensor_compare.c, compare_*.c        what is computed
 *   kernels_plain.c, kernels_avx2.c, kernels_avx512.c, tensor_dispatch.c  the inner loops, chosen at run time
 *
 * Everything works on blocks of MAREY__BLOCK_PARTS numbers in row-major order. A block is read in place when the tensor
 * is row-major and gathered onto the stack otherwise. An element has one part or two: complex numbers, and bytes that
 * hold two numbers.
 *
 * Input: pointers with a layout. Output: numbers. Knows no file and no framework.
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

/* Numbers of a block: small enough for sums in float32, and for two blocks in the nearest cache. */
enum { MAREY__BLOCK_PARTS = 4096 };

/* ---- types ---- */

enum marey__number_kind { MAREY__IS_BOOL, MAREY__IS_UNSIGNED, MAREY__IS_SIGNED, MAREY__IS_FLOAT };

struct marey__dtype {
    const char *name;
    uint8_t size;         /* bytes of an element */
    uint8_t n_parts;      /* numbers in it */
    uint8_t part_bits;    /* of one of them; 4 where two share a byte */
    uint8_t kind;         /* enum marey__number_kind, of a part */
    uint8_t part;         /* enum marey_dtype of a part; a type with halves of bytes is its own */
    uint8_t digits;       /* significant bits of a float, the hidden one counted */
    int16_t min_exponent; /* 2 to it is the least normal number */
    double rel, abs;      /* torch's default tolerances */
    const char *id;       /* "F32" */
    /* In files; numpy has an unsigned integer of the width, and the suffix names the type, where it has no such type. */
    const char *numpy, *safetensors, *npy_suffix;
};
/* NULL for a number that is not a type. Lent for ever. */
MAREY_PRIVATE_API const struct marey__dtype *marey__dtype_get(enum marey_dtype dtype);

/* ---- layout ---- */

/* What a tensor's sizes and strides come down to, once axes that run on in one another are joined. */
struct marey__layout {
    uint32_t rank;
    uint64_t sizes[MAREY_MAX_RANK];
    int64_t strides[MAREY_MAX_RANK]; /* in bytes */
};
/* As marey_tensor_check, and of what lies in the host's memory. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED marey_status
marey__tensor_check_host(const struct marey_tensor *tensor);

/*
 * Numbers in a file, row-major, from byte `at` on: the `data` of a tensor whose memory is MAREY__MEMORY_FILE. Comparisons read them
 * block by block, so that no more memory is taken and a file that is truncated meanwhile is an error, not a signal.
 */
enum { MAREY__MEMORY_FILE = 100 };
struct marey__tensor_file {
    int fd;
    uint64_t at;
    const char *path; /* lent */
    _Atomic int error; /* of the first read that failed, -1: the file is too short; relaxed, joins order it */
};
static inline bool marey__tensor_is_in_file(const struct marey_tensor *tensor)
{
    return (int)tensor->memory == MAREY__MEMORY_FILE;
}
/* As marey_tensor_check, and of what lies in the host's memory or in a file. */
MAREY_WARN_UNUSED marey_status marey__tensor_check_readable(const struct marey_tensor *tensor);
/* The error of reading the numbers from a file, which are then 0. */
MAREY_WARN_UNUSED marey_status marey__tensor_read_status(const struct marey_tensor *tensor);

/* Blocks of one tensor, in memory or in a file. */
struct marey__tensor_view {
    const unsigned char *data;
    struct marey__tensor_file *file; /* NULL: in memory */
    const struct marey__dtype *type;
    bool is_row_major;
    struct marey__layout layout; /* of what is not */
};
MAREY_PRIVATE_API void marey__tensor_view_of(const struct marey_tensor *tensor,
                                             struct marey__tensor_view *out);
/* Elements from number `first` on: in place, or copied to `room`. */
MAREY_PRIVATE_API const void *marey__tensor_view_block(const struct marey__tensor_view *view,
                                                       uint64_t first, size_t n, void *room);

/* a - b of element `i`, rounded to long double once; returns how many parts. Both on the host, of equal sizes. */
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

/* Parts of a float type of at most 32 bits, as float32; of `part_bits` 4, `n` is even. */
void marey__widen(enum marey_dtype part, const void *from, size_t n, float *to);
/* Parts of any type as float64, rounded where they are integers beyond 2^53. */
MAREY_PRIVATE_API void marey__widen_to_double(enum marey_dtype part, const void *from, size_t n,
                                              double *to);
/* Their bits, shifted by marey__pattern_shift(): the sign on top, and a magnitude that counts the type's numbers. */
void marey__patterns(enum marey_dtype part, const void *from, size_t n, uint32_t *to);
unsigned marey__pattern_shift(enum marey_dtype part);
/* Round to a float type of less than 32 bits, to nearest and even, as torch does; its bits. */
MAREY_PRIVATE_API uint32_t marey__narrow(enum marey_dtype part, double value);

/* The floating-point unit as C knows it: no traps, no flushing of denormals, to nearest. `saved` takes the host's. */
void marey__float_enter(fenv_t *saved);
void marey__float_leave(const fenv_t *saved);

/* ---- number_small.c ---- */

/* All texts of a floating type of 16, 8 or 4 bits, by their bits; a `len` of 0: NaN or infinite. */
struct marey__small_text {
    char text[23];
    uint8_t len;
};
/* Whether it is such a type. */
MAREY_PRIVATE_API bool marey__is_small(enum marey_dtype dtype);
/* Made with the first call, then lent for ever; NULL for other types, and on out of memory. Any thread. */
MAREY_PRIVATE_API const struct marey__small_text *marey__small_texts(enum marey_dtype dtype);
/*
 * The text of part `k` of an element, without a NUL, in MAREY__NUMBER_ROOM bytes; its end. Floats have the fewest digits that
 * give the same number in their own type, or with `is_wide` as a double. NULL for one that is not finite, which is `*value`.
 * `texts` are those of a small type.
 */
MAREY_PRIVATE_API char *marey__part_text(const struct marey__dtype *type,
                                         const struct marey__small_text *texts, const void *element,
                                         size_t k, bool is_wide, char *out, double *value);
/* The value of such a number, exactly. NaN for other types. */
MAREY_PRIVATE_API double marey__small_value(enum marey_dtype dtype, uint16_t bits);

/* ==== tensor_kernels ==== */

/* Compiled once per kind of processor (kernels_avx512.c and others) for its vectors. Blocks have at most MAREY__BLOCK_PARTS. */

/* Room for a byte for each number of a block, and for the rest of a vector. */
enum { MAREY__BLOCK_CODES = 4096 + 64 };

/* The form of the numbers of a block in memory. */
enum marey__form {
    MAREY__FORM_F32,
    MAREY__FORM_BF16,
    MAREY__FORM_F16,
    MAREY__FORM_EXPANDED, /* as float32, with the patterns of their own type beside them */
    MAREY__FORM_F64,
    MAREY__N_FORMS
};

struct marey__block_pair {
    const void *a, *b;
    const uint32_t *patterns_a,
        *patterns_b;   /* of MAREY__FORM_EXPANDED: sign and magnitude, in the upper bits */
    size_t n;          /* numbers */
    double abs, rel;   /* tolerances */
    uint64_t ulp;      /* in the upper bits too */
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
    bool beats_rel; /* somewhere the relative difference may be larger than rel_so_far */
    double max_d, max_a, max_b; /* NaN or infinite when a number is */
    uint64_t ulp;               /* in the upper bits */
    double sums[MAREY__N_SUMS];
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

/* The kernels for numbers of one form; of two variants the second is for elements of two parts. */
struct marey__float_kernels {
    /* n_wrong leaves tolerances in places out of account. */
    void (*compare[2])(const struct marey__block_pair *, struct marey__block_diff *);
    /* The same with sums in float64, for squares of any float32, and with tolerances in places. */
    void (*compare_wide[2])(const struct marey__block_pair *, struct marey__block_diff *);
    void (*ratios)(const struct marey__block_pair *, struct marey__block_diff *);
    /* Whether all bits are equal. If so max_a and the sums of a and aa are given, and those of b are the same. */
    bool (*equal)(const struct marey__block_pair *, struct marey__block_diff *);
    /*
     * Statistics of `n` numbers, at least one; expanded ones need no patterns. `counts` has 256 numbers: of float32
     * they count by the exponent with its bias, of float64 by the bins of struct marey_tensor_stats, zeroes in the first. False,
     * and nothing is counted, when a number is not finite or squares are too large or too small.
     */
    bool (*stats)(const void *from, size_t n, struct marey__block_stats *out, uint64_t *counts);
};

struct marey__kernels {
    const char *name;
    struct marey__float_kernels floats[MAREY__N_FORMS];
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

/* ==== tensor_compare ==== */

/*
 * Comparing: blocks to parts of a result, parts to the whole.
 *
 * A chunk is a fixed number of blocks. The sums of a chunk are added up block by block, those of the tensor chunk by chunk, in
 * order, so that any number of threads gives the same digits.
 *
 * A block of floats goes to a kernel for the processor at hand. It takes for granted that all differences are finite and none
 * so large or small that sums of squares in the type itself would suffer; where that turns out wrong, the block is done
 * again by the functions of compare_floats.h, which take nothing for granted. Kernels find the worst difference of a block, not its element;
 * that is searched once, at the end.
 *
 * Differences and tolerances are computed in the type's own arithmetic: in float32 for float32 and whatever is narrower, in
 * float64 for float64. This is what torch and numpy do. Two types are compared in the narrowest of float32 and float64 that
 * holds every number of both, and where neither does (64-bit integers against floats; real against complex numbers) in long double, number by
 * number. Nothing is rounded before it is compared.
 */

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
    long double sums[MAREY__N_SUMS];
};
/* Keep `value`, found at `place`, in part->NAME if it is the largest so far. */
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

/* What is compared, once it is settled. */
struct marey__compare {
    struct marey__tensor_view a, b;
    enum marey_dtype common; /* the type of parts in which they are compared; NONE: number by number */
    bool is_mixed;           /* `common` is NONE, and a side has floats */
    enum marey__form form; /* of blocks; EXPANDED where a side has another type than the common one */
    uint32_t n_parts;      /* of an element */
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

/* A block of `n` integers that begins with element `first`. */
void marey__compare_integers(const struct marey__compare *job, const void *a, const void *b,
                             size_t n, uint64_t first, struct marey__diff_part *part);

#endif
