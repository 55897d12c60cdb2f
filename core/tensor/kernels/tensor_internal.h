/*
 * tensor: what stands behind marey/tensor.h.
 *
 *     strided memory --layout--> runs of elements --formats--> float32 or float64 --kernels--> counts and sums
 *
 * Everything goes by blocks of MAREY__BLOCK_PARTS numbers in row-major order. A block is read where it lies when the tensor
 * is row-major, and is gathered onto the stack otherwise. An element has one part, or two: complex numbers and bytes
 * with two numbers in them.
 */
#ifndef MAREY_TENSOR_INTERNAL_H
#define MAREY_TENSOR_INTERNAL_H

#include <fenv.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/base_internal.h"
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
};
/* NULL for what is none. Lent for ever. */
MAREY_PRIVATE_API const struct marey__dtype *marey__dtype_get(enum marey_dtype dtype);

/* ---- layout ---- */

/* What a tensor's sizes and strides come down to, once axes that run on in one another are joined. */
struct marey__layout {
    uint32_t rank;
    uint64_t sizes[MAREY_MAX_RANK];
    int64_t strides[MAREY_MAX_RANK]; /* in bytes */
};
void marey__layout_of(const struct marey_tensor *tensor, struct marey__layout *out);
/* Copy `n` elements of `size` bytes from row-major number `first` on. */
void marey__layout_copy(const struct marey__layout *layout, const void *data, size_t size,
                        uint64_t first, uint64_t n, void *out);
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

/* Blocks of one tensor, wherever they lie. */
struct marey__tensor_view {
    const unsigned char *data;
    struct marey__tensor_file *file; /* NULL: in memory */
    const struct marey__dtype *type;
    bool is_row_major;
    struct marey__layout layout; /* of what is not */
};
MAREY_PRIVATE_API void marey__tensor_view_of(const struct marey_tensor *tensor,
                                             struct marey__tensor_view *out);
/* Elements from number `first` on: where they lie, or copied to `room`. */
MAREY_PRIVATE_API const void *marey__tensor_view_block(const struct marey__tensor_view *view,
                                                       uint64_t first, size_t n, void *room);

/*
 * a - b of element `i`, of any two types, rounded to long double once: both parts of complex numbers and of bytes with two
 * numbers. How many parts there are. Both on the host, and of equal sizes.
 */
MAREY_PRIVATE_API unsigned marey__tensor_difference(const struct marey_tensor *a,
                                                    const struct marey_tensor *b, uint64_t i,
                                                    long double out[2]);

/* ---- floats of every width ---- */

/* Parts of a float type of at most 32 bits, as float32; of `part_bits` 4, `n` is even. */
void marey__widen(enum marey_dtype part, const void *from, size_t n, float *to);
/* Parts of any type as float64, rounded where they are integers beyond 2^53. */
MAREY_PRIVATE_API void marey__widen_to_double(enum marey_dtype part, const void *from, size_t n,
                                              double *to);
/*
 * Their bits, shifted left by marey__pattern_shift() so that the sign is the upper one: the magnitude below it counts the
 * numbers of the type up from 0.
 */
void marey__patterns(enum marey_dtype part, const void *from, size_t n, uint32_t *to);
unsigned marey__pattern_shift(enum marey_dtype part);
/* Round to a float type of less than 32 bits, to nearest and even, as torch does; its bits. */
MAREY_PRIVATE_API uint32_t marey__narrow(enum marey_dtype part, double value);

/*
 * The floating-point unit as C knows it, whatever the host has set: no traps, no flushing of denormals, to nearest. `saved`
 * takes what was.
 */
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
/* Made with the first call, then lent for ever; NULL for other types, and without memory. Any thread. */
MAREY_PRIVATE_API const struct marey__small_text *marey__small_texts(enum marey_dtype dtype);
/* The value of such a number, exactly. NaN for other types. */
MAREY_PRIVATE_API double marey__small_value(enum marey_dtype dtype, uint16_t bits);

#endif
