/*
 * container: the bytes of dumps, as docs/formats/dump.md has them, for whoever writes them. Nothing here opens a file.
 *
 *   dump_names.c ── paths as names, names as paths, names of files
 *   npy_write.c, safetensors_write.c, bin_write.c ── headers; the data are the caller's to write
 *   json_tensor.c ── a tensor as nested lists
 *   manifest_write.c ── the lines of a manifest
 *
 * Everything is appended to a kymo__buf, whose `failed` tells that memory ran out. No state; any thread.
 */
#ifndef KYMO_CONTAINER_INTERNAL_H
#define KYMO_CONTAINER_INTERNAL_H

#include "base/base_internal.h"
#include <kymo/dump.h>

/* ---- dump_names.c ---- */

/*
 * The name of a path: keys joined by dots, positions as [3], odd bytes as %2E; those of gradients begin with %grad. It
 * tells the path, and no two paths of a step share one.
 */
KYMO_PRIVATE_API void kymo__name_put(struct kymo__buf *out, enum kymo_dump_tree tree,
                                     const struct kymo_dump_part *parts, size_t n_parts);
/* The same as ACCV-Lab names files: positions are numbers between dots, and the tree is not in it. */
KYMO_PRIVATE_API void kymo__name_put_dotted(struct kymo__buf *out,
                                            const struct kymo_dump_part *parts, size_t n_parts);

/* A path that owns its keys. */
struct kymo__path {
    struct kymo_dump_part *parts;
    size_t n_parts;
    enum kymo_dump_tree tree;
    char *keys; /* what `parts` point into; each key has a NUL behind it */
};
/* What a name tells. KYMO_EFORMAT for a text that is no name; KYMO_ENOMEM. `out` is untouched then. */
KYMO_PRIVATE_API KYMO_WARN_UNUSED kymo_status kymo__name_parse(const char *name, size_t len,
                                                               struct kymo__path *out);
KYMO_PRIVATE_API void kymo__path_fini(struct kymo__path *path);

enum { KYMO__FILE_NAME_MAX = 180 };
/*
 * The name of a file for a value: never empty, hidden or with a slash in it, at most KYMO__FILE_NAME_MAX bytes without
 * the suffix. It is not the whole name where it holds a ~.
 */
KYMO_PRIVATE_API void kymo__file_name_put(struct kymo__buf *out, const char *name, size_t len,
                                          const char *suffix);
/* The begin of the names of a step's files: "step-00000012.rank-3"; rank -1: none, pid 0: none. */
KYMO_PRIVATE_API void kymo__step_name_put(struct kymo__buf *out, uint64_t step, int64_t rank,
                                          uint64_t pid);

/* ---- npy_write.c ---- */

/* The header of a .npy, in front of kymo_tensor_bytes() of row-major data; always a multiple of 64 bytes. */
KYMO_PRIVATE_API void kymo__npy_header_put(struct kymo__buf *out, const struct kymo_tensor *tensor);
/* ".npy"; of a type that numpy has none for ".bf16.npy", so that the name tells. Lent for ever. */
KYMO_PRIVATE_API const char *kymo__npy_suffix(enum kymo_dtype dtype);

/* ---- safetensors_write.c ---- */

enum {
    KYMO__SAFETENSORS_PAGE = 4096,
    KYMO__SAFETENSORS_ALIGN = 64,
    KYMO__SAFETENSORS_LARGE = 1 << 20, /* such a tensor begins at a page */
};

/* A file in the making: entries are added in the order of their data. A zeroed one is empty. */
struct kymo__safetensors {
    struct kymo__buf entries;
    uint64_t n_bytes; /* of data: the end of the latest entry */
    uint64_t n_pads;
};
/* Where the tensor's data go, counted from the start of the data; an entry fills the gap before it. */
KYMO_PRIVATE_API uint64_t kymo__safetensors_add(struct kymo__safetensors *file, const char *name,
                                                size_t len, const struct kymo_tensor *tensor);
/*
 * Append all bytes in front of the data: length, header, blanks up to `data_start`; 0: the least multiple of 4096 that
 * will do. KYMO_EINVAL when the header is longer. `rank` -1: none.
 */
KYMO_PRIVATE_API KYMO_WARN_UNUSED kymo_status
kymo__safetensors_head_put(struct kymo__buf *out, const struct kymo__safetensors *file,
                           uint64_t step, int64_t rank, uint64_t data_start);
KYMO_PRIVATE_API void kymo__safetensors_fini(struct kymo__safetensors *file);

/* ---- json_tensor.c ---- */

/* JSON has no word for these; Python has. */
enum kymo__json_nan {
    KYMO__NAN_TEXT = 0, /* "NaN", "Infinity", "-Infinity" */
    KYMO__NAN_WORD,     /* the same without quotes, as Python's json writes and reads them */
    KYMO__NAN_NULL,
};

struct kymo__json_style {
    enum kymo__json_nan nan;
    uint32_t level; /* how deep the list stands: two blanks each in front of its lines, but the first */
    /* Byte for byte what Python's json.dumps(tensor.tolist(), indent=2) gives: each number on its own line, and those of
     * narrow types with the digits of the double that Python makes of them. */
    bool is_python;
};

/* Takes text; false ends the writing. */
typedef bool kymo__text_sink(void *ctx, const char *text, size_t len);

/*
 * Write a row-major tensor in host memory as nested lists, a line for each innermost one; of rank 0 as one value. Numbers
 * have the fewest digits that give the same number in their own type.
 * Booleans are true and false; a complex number and a byte of two packed ones are lists of two. KYMO_EIO with no sentence
 * of its own where the sink refused; KYMO_EINVAL for a tensor that cannot be read, KYMO_ENOMEM.
 */
KYMO_PRIVATE_API KYMO_WARN_UNUSED kymo_status
kymo__json_tensor_write(const struct kymo_tensor *tensor, const struct kymo__json_style *style,
                        kymo__text_sink *sink, void *ctx);
KYMO_PRIVATE_API KYMO_WARN_UNUSED kymo_status kymo__json_tensor_put(
    struct kymo__buf *out, const struct kymo_tensor *tensor, const struct kymo__json_style *style);
/* A number of its own: the shortest text, NaN and infinities as strings. */
KYMO_PRIVATE_API void kymo__json_double_put(struct kymo__buf *out, double value);

/* A string as Python's json.dumps() writes it: ASCII, what is not UTF-8 as U+FFFD, lone surrogates as they are. */
KYMO_PRIVATE_API void kymo__json_python_string_put(struct kymo__buf *out, const char *text,
                                                   size_t len);

/* ---- bin_write.c: the texts beside .bin and .png of ACCV-Lab ---- */

KYMO_PRIVATE_API void kymo__bin_meta_put(struct kymo__buf *out, const struct kymo_tensor *tensor);
/* `dtype`: of the numbers that were drawn; `format`: "RGB", "BGR", "Intensity". */
KYMO_PRIVATE_API void kymo__image_meta_put(struct kymo__buf *out, enum kymo_dtype dtype, double min,
                                           double max, const char *format);

/* ---- manifest_write.c ---- */

/* "container", "json", "binary" ...; NULL for what is no type. Lent for ever. */
KYMO_PRIVATE_API const char *kymo__dump_type_name(enum kymo_dump_type type);

struct kymo__manifest_step {
    uint64_t step;
    int64_t rank, world;                    /* -1: none */
    uint64_t pid, unix_ns;                  /* 0: not known */
    const char *host, *run, *mode, *reason; /* NULL: null */
    uint64_t data_start;
};
/* Each ends in a newline. */
KYMO_PRIVATE_API void kymo__manifest_step_put(struct kymo__buf *out,
                                              const struct kymo__manifest_step *step);

struct kymo__manifest_value {
    uint64_t seq;
    enum kymo_dump_tree tree;
    const struct kymo_dump_part *parts;
    size_t n_parts;
    enum kymo_dump_kind kind;
    const char *text; /* of TEXT and LITERAL */
    size_t text_len;

    /* Of tensors and bytes. */
    enum kymo_dump_type type;
    struct kymo_tensor tensor; /* type and sizes; its strides are the program's, NULL: row-major */
    bool has_offset;
    uint64_t offset, n_bytes;
    const char *phase, *file; /* NULL: not known */
    uint32_t line;
    const struct kymo_digest *digest,
        *blocks; /* NULL: none; blocks are left out where there is just one */
    size_t n_blocks;
    const struct kymo_tensor_stats *stats; /* NULL: none */
    const char *const *files;
    size_t n_files;
    const char *missing; /* NULL: it is there */
};
KYMO_PRIVATE_API void kymo__manifest_value_put(struct kymo__buf *out,
                                               const struct kymo__manifest_value *value);
KYMO_PRIVATE_API void kymo__manifest_end_put(struct kymo__buf *out, uint64_t n_tensors,
                                             uint64_t n_values, uint64_t n_bytes);

#endif
