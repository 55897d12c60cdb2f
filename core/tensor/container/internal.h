/*
 * container: writes the bytes of dumps, as described in docs/formats/dump.md.
 *
 *   dump_names.c                  paths as names, names of files
 *   headers_write.c               headers; the caller writes the data
 *   json_tensor.c                 a tensor as nested lists
 *   manifest_write.c              the lines of a manifest
 *
 * Input: names and tensors. Output: bytes appended to a marey__buf, whose `failed` reports out of memory. Opens no
 * files, has no state; any thread. Does not know steps, queues or who writes the bytes.
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

/* The unique name of a path: keys joined by dots, positions as [3], other bytes as %2E; gradients begin with %grad. */
MAREY_PRIVATE_API void marey__name_put(struct marey__buf *out, enum marey_dump_tree tree,
                                       const struct marey_dump_part *parts, size_t n_parts);
/* The same in ACCV-Lab's style for files: positions are numbers between dots, and the tree is omitted. */
MAREY_PRIVATE_API void marey__name_put_dotted(struct marey__buf *out,
                                              const struct marey_dump_part *parts, size_t n_parts);

/* A path that owns its keys. */
struct marey__path {
    struct marey_dump_part *parts;
    size_t n_parts;
    enum marey_dump_tree tree;
    char *keys; /* storage of the parts' keys; each is NUL-terminated */
};
/* The path of a name. MAREY_EFORMAT if it is not a name, or MAREY_ENOMEM; `out` is unchanged then. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED marey_status marey__name_parse(const char *name, size_t len,
                                                                   struct marey__path *out);
MAREY_PRIVATE_API void marey__path_fini(struct marey__path *path);

/* -1 for other characters. */
MAREY_PRIVATE_API int marey__hex_digit(char c);

enum { MAREY__FILE_NAME_MAX = 180 };
/* A file name for a value: never empty, hidden or with a slash; at most MAREY__FILE_NAME_MAX bytes plus `suffix`. */
MAREY_PRIVATE_API void marey__file_name_put(struct marey__buf *out, const char *name, size_t len,
                                            const char *suffix);
/* The prefix of a step's file names: "step-00000012.rank-3"; rank -1: none, pid 0: none. */
MAREY_PRIVATE_API void marey__step_name_put(struct marey__buf *out, uint64_t step, int64_t rank,
                                            uint64_t pid);

/* ---- headers_write.c ---- */

/* The header of a .npy, followed by marey_tensor_bytes() of row-major data; always a multiple of 64 bytes. */
MAREY_PRIVATE_API void marey__npy_header_put(struct marey__buf *out,
                                             const struct marey_tensor *tensor);
/* ".npy", or ".bf16.npy" for a type that numpy lacks. Lent forever. */
MAREY_PRIVATE_API const char *marey__npy_suffix(enum marey_dtype dtype);

enum {
    MAREY__SAFETENSORS_PAGE = 4096,
    MAREY__SAFETENSORS_ALIGN = 64,
    MAREY__SAFETENSORS_LARGE = 1 << 20, /* larger tensors are page-aligned */
};

/* A file being written: entries are added in the order of their data. Zero-initialized is empty. */
struct marey__safetensors {
    struct marey__buf entries;
    uint64_t n_bytes; /* of data: the end of the last entry */
    uint64_t n_pads;
};
/* Returns the offset for the tensor's data from the start of the data; an extra entry fills the gap before it. */
MAREY_PRIVATE_API uint64_t marey__safetensors_add(struct marey__safetensors *file, const char *name,
                                                  size_t len, const struct marey_tensor *tensor);
/* Appends length, header and blanks up to `data_start` (0: a multiple of 4096). MAREY_EINVAL: too long. `rank` -1: none. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED marey_status
marey__safetensors_head_put(struct marey__buf *out, const struct marey__safetensors *file,
                            uint64_t step, int64_t rank, uint64_t data_start);
MAREY_PRIVATE_API void marey__safetensors_fini(struct marey__safetensors *file);
/*
 * Appends what precedes the data in a file of one tensor: the header of a .npy, or of a .safetensors with its name, or
 * nothing. `rank` -1: none.
 */
MAREY_PRIVATE_API MAREY_WARN_UNUSED marey_status marey__tensor_header_put(
    struct marey__buf *out, const struct marey_tensor *tensor, enum marey_dump_type form,
    const char *name, size_t len, uint64_t step, int64_t rank);

/* ---- json_tensor.c ---- */

struct marey__json_style {
    uint32_t level; /* nesting: two blanks each, except on the first line */
    /* Byte-identical to Python's json.dumps(tensor.tolist(), indent=2): each number on its own line, those of narrow
       types with the digits of the double that Python converts them to, and NaN, Infinity and -Infinity without
       quotes. */
    bool is_python;
};

/* Takes text; returns false to stop. */
typedef bool marey__text_sink(void *ctx, const char *text, size_t len);

/*
 * Writes a row-major tensor in host memory as nested lists, one line per innermost list; with rank 0 as one value.
 * Numbers have the fewest digits that read back to the same number in their type. Booleans are true and false; complex
 * numbers and packed pairs are lists of two. MAREY_EIO without a message if the sink refused; MAREY_EINVAL for an
 * unreadable tensor, MAREY_ENOMEM.
 */
MAREY_PRIVATE_API MAREY_WARN_UNUSED marey_status
marey__json_tensor_write(const struct marey_tensor *tensor, const struct marey__json_style *style,
                         marey__text_sink *sink, void *ctx);
MAREY_PRIVATE_API MAREY_WARN_UNUSED marey_status marey__json_tensor_put(
    struct marey__buf *out, const struct marey_tensor *tensor, const struct marey__json_style *style);
/* One number: the shortest text; NaN and infinities as strings. */
MAREY_PRIVATE_API void marey__json_double_put(struct marey__buf *out, double value);

/* A string in the format of Python's json.dumps(): ASCII, invalid UTF-8 as U+FFFD, lone surrogates preserved. */
MAREY_PRIVATE_API void marey__json_python_string_put(struct marey__buf *out, const char *text,
                                                     size_t len);

/* ---- headers_write.c: the JSON beside .bin and .png of ACCV-Lab ---- */

MAREY_PRIVATE_API void marey__bin_meta_put(struct marey__buf *out, const struct marey_tensor *tensor);
/* `dtype`: of the tensor's numbers; `format`: "RGB", "BGR", "Intensity". */
MAREY_PRIVATE_API void marey__image_meta_put(struct marey__buf *out, enum marey_dtype dtype,
                                             double min, double max, const char *format);

/* ---- manifest_write.c ---- */

/* The scalar fields of statistics by key; the last entry has a NULL key. */
struct marey__stats_field {
    const char *key;
    size_t offset; /* in struct marey_tensor_stats */
    bool is_real;  /* a double, else a uint64_t */
};
MAREY_PRIVATE_API const struct marey__stats_field *marey__stats_fields(void);
/* "container", "json", "binary" ...; NULL for an invalid type. Lent forever. */
MAREY_PRIVATE_API const char *marey__dump_type_name(enum marey_dump_type type);

/* Each line ends with a newline. Unknown values are 0 or NULL, a rank or world -1. */
MAREY_PRIVATE_API void marey__manifest_step_put(struct marey__buf *out,
                                                const struct marey_dumped_step *step,
                                                uint64_t data_start);
/* `offset` of its numbers in the data; MAREY__NO_OFFSET: not there. A single block is omitted. */
#define MAREY__NO_OFFSET UINT64_MAX
MAREY_PRIVATE_API void marey__manifest_value_put(struct marey__buf *out,
                                                 const struct marey_dumped_value *value,
                                                 uint64_t offset);
MAREY_PRIVATE_API void marey__manifest_end_put(struct marey__buf *out, uint64_t n_tensors,
                                               uint64_t n_values, uint64_t n_bytes);

#endif
