/*
 * container: the bytes of dumps, as docs/formats/dump.md describes them, for writers.
 *
 *   dump_names.c                  paths as names, names of files
 *   headers_write.c               headers; the caller writes the data
 *   json_tensor.c                 a tensor as nested lists
 *   manifest_write.c              the lines of a manifest
 *
 * Input: names and tensors. Output: bytes appended to a marey__buf, whose `failed` reports out of memory. Opens no
 * file, has no state; any thread.
 */
#ifndef MAREY_TENSOR_CONTAINER_INTERNAL_H
#define MAREY_TENSOR_CONTAINER_INTERNAL_H

#include "base/internal.h"
#include <marey/dump.h>
#include <marey/dumpfile.h>
#include <marey/image.h>

static inline bool marey__is_image(enum marey_dump_type type)
{
    return type == MAREY_DUMP_IMAGE_RGB || type == MAREY_DUMP_IMAGE_BGR || type == MAREY_DUMP_IMAGE_I;
}
static inline enum marey_image_type marey__image_type(enum marey_dump_type type)
{
    return type == MAREY_DUMP_IMAGE_RGB   ? MAREY_IMAGE_RGB
           : type == MAREY_DUMP_IMAGE_BGR ? MAREY_IMAGE_BGR
                                          : MAREY_IMAGE_GREY;
}

/* ---- dump_names.c ---- */

/* The unique name of a path: keys joined by dots, positions as [3], odd bytes as %2E; of gradients it begins with %grad. */
MAREY_PRIVATE_API void marey__name_put(struct marey__buf *out, enum marey_dump_tree tree,
                                       const struct marey_dump_part *parts, size_t n_parts);
/* The same as ACCV-Lab names files: positions are numbers between dots, and the tree is not in it. */
MAREY_PRIVATE_API void marey__name_put_dotted(struct marey__buf *out,
                                              const struct marey_dump_part *parts, size_t n_parts);

/* A path that owns its keys. */
struct marey__path {
    struct marey_dump_part *parts;
    size_t n_parts;
    enum marey_dump_tree tree;
    char *keys; /* what `parts` point into; each key ends with a NUL */
};
/* The path of a name. MAREY_EFORMAT for a text that is not a name; MAREY_ENOMEM. `out` is untouched then. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED marey_status marey__name_parse(const char *name, size_t len,
                                                                   struct marey__path *out);
MAREY_PRIVATE_API void marey__path_fini(struct marey__path *path);

/* -1 for other characters. */
MAREY_PRIVATE_API int marey__hex_digit(char c);

enum { MAREY__FILE_NAME_MAX = 180 };
/* A file name for a value: not empty, hidden or with a slash, at most MAREY__FILE_NAME_MAX bytes and `suffix`. */
MAREY_PRIVATE_API void marey__file_name_put(struct marey__buf *out, const char *name, size_t len,
                                            const char *suffix);
/* The begin of the names of a step's files: "step-00000012.rank-3"; rank -1: none, pid 0: none. */
MAREY_PRIVATE_API void marey__step_name_put(struct marey__buf *out, uint64_t step, int64_t rank,
                                            uint64_t pid);

/* ---- headers_write.c ---- */

/* The header of a .npy, in front of marey_tensor_bytes() of row-major data; always a multiple of 64 bytes. */
MAREY_PRIVATE_API void marey__npy_header_put(struct marey__buf *out,
                                             const struct marey_tensor *tensor);
/* ".npy"; for a type that numpy does not have ".bf16.npy". Lent for ever. */
MAREY_PRIVATE_API const char *marey__npy_suffix(enum marey_dtype dtype);

enum {
    MAREY__SAFETENSORS_PAGE = 4096,
    MAREY__SAFETENSORS_ALIGN = 64,
    MAREY__SAFETENSORS_LARGE = 1 << 20, /* such a tensor begins at a page */
};

/* A file in the making: entries are added in the order of their data. A zeroed one is empty. */
struct marey__safetensors {
    struct marey__buf entries;
    uint64_t n_bytes; /* of data: the end of the latest entry */
    uint64_t n_pads;
};
/* Where the tensor's data go, counted from the start of the data; an entry fills the gap before it. */
MAREY_PRIVATE_API uint64_t marey__safetensors_add(struct marey__safetensors *file, const char *name,
                                                  size_t len, const struct marey_tensor *tensor);
/* Append length, header and blanks up to `data_start` (0: a multiple of 4096). MAREY_EINVAL: too long. `rank` -1: none. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED marey_status
marey__safetensors_head_put(struct marey__buf *out, const struct marey__safetensors *file,
                            uint64_t step, int64_t rank, uint64_t data_start);
MAREY_PRIVATE_API void marey__safetensors_fini(struct marey__safetensors *file);
/* What a file of one tensor has before the data: of a .npy, a .safetensors with its name, or nothing. `rank` -1: none. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED marey_status marey__form_head_put(
    struct marey__buf *out, const struct marey_tensor *tensor, enum marey_dump_type form,
    const char *name, size_t len, uint64_t step, int64_t rank);

/* ---- json_tensor.c ---- */

struct marey__json_style {
    uint32_t level; /* nesting: two blanks each before its lines, but the first */
    /* Byte for byte what Python's json.dumps(tensor.tolist(), indent=2) gives: each number on its own line, those of narrow
     * types with the digits of the double that Python makes of them, and NaN, Infinity and -Infinity without quotes. */
    bool is_python;
};

/* Takes text; false ends the writing. */
typedef bool marey__text_sink(void *ctx, const char *text, size_t len);

/*
 * Write a row-major tensor in host memory as nested lists, a line for each innermost one; of rank 0 as one value. Numbers
 * have the fewest digits that give the same number in their own type.
 * Booleans are true and false; a complex number and a byte of two packed ones are lists of two. MAREY_EIO with no sentence
 * of its own where the sink refused; MAREY_EINVAL for a tensor that cannot be read, MAREY_ENOMEM.
 */
MAREY_PRIVATE_API MAREY_WARN_UNUSED marey_status
marey__json_tensor_write(const struct marey_tensor *tensor, const struct marey__json_style *style,
                         marey__text_sink *sink, void *ctx);
MAREY_PRIVATE_API MAREY_WARN_UNUSED marey_status marey__json_tensor_put(
    struct marey__buf *out, const struct marey_tensor *tensor, const struct marey__json_style *style);
/* One number: the shortest text, NaN and infinities as strings. */
MAREY_PRIVATE_API void marey__json_double_put(struct marey__buf *out, double value);

/* A string as Python's json.dumps() writes it: ASCII, what is not UTF-8 as U+FFFD, lone surrogates as they are. */
MAREY_PRIVATE_API void marey__json_python_string_put(struct marey__buf *out, const char *text,
                                                     size_t len);

/* ---- headers_write.c: the JSON beside .bin and .png of ACCV-Lab ---- */

MAREY_PRIVATE_API void marey__bin_meta_put(struct marey__buf *out, const struct marey_tensor *tensor);
/* `dtype`: of the numbers that were drawn; `format`: "RGB", "BGR", "Intensity". */
MAREY_PRIVATE_API void marey__image_meta_put(struct marey__buf *out, enum marey_dtype dtype,
                                             double min, double max, const char *format);

/* ---- manifest_write.c ---- */

/* The numbers of statistics by their keys, apart from the histogram; the last has a NULL key. */
struct marey__stats_field {
    const char *key;
    size_t offset; /* in struct marey_tensor_stats */
    bool is_real;  /* a double, else a uint64_t */
};
MAREY_PRIVATE_API const struct marey__stats_field *marey__stats_fields(void);
/* "container", "json", "binary" ...; NULL for a number that is not a type. Lent for ever. */
MAREY_PRIVATE_API const char *marey__dump_type_name(enum marey_dump_type type);

/* Each ends in a newline. What is not known is 0 or NULL, a rank or world -1. */
MAREY_PRIVATE_API void marey__manifest_step_put(struct marey__buf *out,
                                                const struct marey_dumped_step *step,
                                                uint64_t data_start);
/* `offset` of its numbers in the data; MAREY__NO_OFFSET: they are not there. Blocks are left out where there is just one. */
#define MAREY__NO_OFFSET UINT64_MAX
MAREY_PRIVATE_API void marey__manifest_value_put(struct marey__buf *out,
                                                 const struct marey_dumped_value *value,
                                                 uint64_t offset);
MAREY_PRIVATE_API void marey__manifest_end_put(struct marey__buf *out, uint64_t n_tensors,
                                               uint64_t n_values, uint64_t n_bytes);

#endif
