/*
 * marey/dumpfile.h: read dumps and tensor files of other tools (libmarey-tools).
 *
 *     marey_dumps *dumps;
 *     marey_dumps_open("dumps", &dumps);
 *     for (size_t i = 0; i < marey_dumps_count(dumps); i++) {
 *         const struct marey_dumped_value *values;
 *         size_t n_values;
 *         marey_dumps_values(dumps, i, &values, &n_values);
 *         for (size_t v = 0; v < n_values; v++)
 *             if (marey_dumps_get(dumps, i, v, &tensor) == MAREY_OK) {
 *                 ...
 *                 marey_dumps_drop(dumps, i, v);
 *             }
 *         marey_dumps_release(dumps, i);
 *     }
 *     marey_dumps_close(dumps);
 *
 * Opens a directory of dumps in either layout (also rank-3/12 below it), the directory of one step, a step's .safetensors,
 * .part or .jsonl, a recording with dumps/, and any single .npy, .safetensors, .json, .png or .bin. All input is validated;
 * damage is reported in a note, and the rest is read. Pickles are listed, never loaded.
 *
 * Tensor data is read on demand. A file that is truncated or replaced meanwhile is an ordinary error. One thread at a time
 * may use a marey_dumps, with one exception: after marey_dumps_values() of a step, several threads may call
 * marey_dumps_get() and marey_dumps_drop() for different values. Any thread may read lent tensors.
 */
#ifndef MAREY_DUMPFILE_H
#define MAREY_DUMPFILE_H

#include <stdio.h>

#include <marey/dump.h>

MAREY_BEGIN_C

typedef struct marey_dumps marey_dumps;

/* `path` is lent for the call. MAREY_EIO; MAREY_EFORMAT: not a dump; MAREY_ENOMEM. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_dumps_open(const char *path, marey_dumps **out);
MAREY_API void marey_dumps_close(marey_dumps *dumps);

/* ---- steps ---- */

/* One step of one rank. Strings are lent until close; NULL: unknown. */
struct marey_dumped_step {
    uint64_t step;         /* 0 for a single file */
    int64_t rank, world;   /* -1: unknown */
    uint64_t pid, unix_ns; /* 0: unknown */
    const char *host, *run, *mode, *reason;
    const char *path; /* the manifest, else the file or directory */
    enum marey_dump_layout layout;
    uint32_t is_complete; /* 0: the program died, or is still writing */
    uint32_t is_single;   /* a single file, not part of a dump */
};
/* Number of steps, sorted by step, rank, process. */
MAREY_API size_t marey_dumps_count(const marey_dumps *dumps);
/* Describe step `i` < count. Reads only the start and end of the manifest; fails if it is invalid. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_dumps_step(marey_dumps *dumps, size_t i,
                                                          struct marey_dumped_step *out);

/* ---- values ---- */

/* Everything is lent until the step is released, or until close. */
struct marey_dumped_value {
    enum marey_dump_tree tree;
    const struct marey_dump_part *parts; /* keys end with a NUL */
    size_t n_parts;
    const char *name; /* the path as a string, without the tree: "layers[3].out" */
    uint64_t seq;     /* order of adding */

    enum marey_dump_kind kind;
    const char *text; /* of TEXT, LITERAL; a JSON number is also readable as a tensor of rank 0 */
    size_t text_len;

    enum marey_dump_type type;
    /* MAREY_DTYPE_NONE: not a tensor. From a JSON without types: int64, uint64, float64 or bool. */
    enum marey_dtype dtype;
    uint32_t is_untyped; /* from a JSON without types: `dtype` is inferred from the numbers */
    uint32_t rank;
    const int64_t *sizes;
    const int64_t *strides; /* of the program's tensor; NULL: unknown */
    uint64_t n_bytes;       /* of the tensor */
    uint32_t has_data;      /* marey_dumps_get() works; for images it returns the pixels */

    const char *phase, *source;                 /* NULL: unknown */
    const struct marey_digest *digest, *blocks; /* NULL: none; blocks only if there are several */
    size_t n_blocks;
    const struct marey_tensor_stats *stats; /* NULL: none */
    const char *missing;                    /* why it is missing; NULL: it is not */
    const char *const *files;               /* paths of its separate files */
    size_t n_files;
};
/* All values of step `i` in the order of adding (JSON: file order). */
MAREY_API MAREY_WARN_UNUSED marey_status marey_dumps_values(marey_dumps *dumps, size_t i,
                                                            const struct marey_dumped_value **values,
                                                            size_t *n_values);
/*
 * The value's data, row-major, in host memory, lent until the step is released. MAREY_ESTATE: it has no data (kept as
 * statistics, dropped, a string, a pickle). MAREY_EFORMAT: damaged.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_dumps_get(marey_dumps *dumps, size_t i, size_t value,
                                                         struct marey_tensor *out);
/* Release a tensor of marey_dumps_get(). The last drop frees its memory; else releasing the step does. */
MAREY_API void marey_dumps_drop(marey_dumps *dumps, size_t i, size_t value);
/* Index of a value in step `i` by name or path; SIZE_MAX: not found. */
MAREY_API size_t marey_dumps_find(marey_dumps *dumps, size_t i, enum marey_dump_tree tree,
                                  const char *name);
/* Free the data read from step `i`; it can be read again. */
MAREY_API void marey_dumps_release(marey_dumps *dumps, size_t i);

/* Notes on damaged or omitted data so far, one sentence each, lent until close. */
MAREY_API size_t marey_dumps_n_notes(const marey_dumps *dumps);
MAREY_API const char *marey_dumps_note(const marey_dumps *dumps, size_t i);

/*
 * Write a row-major tensor in host memory to a stream: BINARY (only the bytes), NPY, SAFETENSORS (under `name`) or JSON.
 * MAREY_EINVAL: another format. MAREY_EIO: write error.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_tensor_write(const struct marey_tensor *tensor,
                                                            enum marey_dump_type form,
                                                            const char *name, FILE *out);

MAREY_END_C
#endif
