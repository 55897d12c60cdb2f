/*
 * marey/dumpfile.h: read dumps back, and files of tensors by others.
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
 * What can be opened: a directory of dumps in either layout (also rank-3/12 below it), the directory of one step, a step's
 * .safetensors, .part or .jsonl, a recording whose dumps/ it is, and any single .npy, .safetensors, .json, .png or .bin. Bytes are trusted in
 * nothing; damage is reported in a note, and the rest is read. Pickles are named, never loaded.
 *
 * Numbers are read when they are asked for. A file that is truncated or replaced meanwhile is an error like any other. One thread
 * at a time uses a marey_dumps, with one exception: marey_dumps_get() and marey_dumps_drop() of different values of a step whose
 * values were asked for. Tensors that it lent may be read by any. libmarey-tools.
 */
#ifndef MAREY_DUMPFILE_H
#define MAREY_DUMPFILE_H

#include <stdio.h>

#include <marey/dump.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct marey_dumps marey_dumps;

/* `path` is lent for the call. MAREY_EIO, MAREY_EFORMAT for anything but a dump, MAREY_ENOMEM; a sentence each. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_dumps_open(const char *path, marey_dumps **out);
MAREY_API void marey_dumps_close(marey_dumps *dumps);

/* ---- steps ---- */

/* One step of one rank. Texts are lent until close; NULL where not known. */
struct marey_dumped_step {
    uint64_t step;         /* 0 of a single file */
    int64_t rank, world;   /* -1: not known */
    uint64_t pid, unix_ns; /* 0: not known */
    const char *host, *run, *mode, *reason;
    const char *path; /* the manifest, or the file or directory in place of it */
    enum marey_dump_layout layout;
    uint32_t is_complete; /* 0: the program died, or still writes it */
    uint32_t is_single;   /* a file by itself, not part of a dump */
};
/* In the order of steps, then ranks, then processes. */
MAREY_API size_t marey_dumps_count(const marey_dumps *dumps);
/* Of step `i` < count. Reads the begin and the end of a manifest, no more. Fails when that is none. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_dumps_step(marey_dumps *dumps, size_t i,
                                                          struct marey_dumped_step *out);

/* ---- values ---- */

/* Everything is lent until the step is released, or until close. */
struct marey_dumped_value {
    enum marey_dump_tree tree;
    const struct marey_dump_part *parts; /* keys end with a NUL */
    size_t n_parts;
    const char *name; /* the path as one text, without the tree: "layers[3].out" */
    uint64_t seq;     /* order of adding */

    enum marey_dump_kind kind;
    const char *text; /* of TEXT, LITERAL; a number of a JSON can be had as a tensor of rank 0 too */
    size_t text_len;

    enum marey_dump_type type;
    /* MAREY_DTYPE_NONE: not a tensor. From a JSON without types: int64, uint64, float64 or bool. */
    enum marey_dtype dtype;
    uint32_t is_untyped; /* it comes from a JSON without types: `dtype` only holds its numbers */
    uint32_t rank;
    const int64_t *sizes;
    const int64_t *strides; /* of the program's tensor; NULL: not known */
    uint64_t n_bytes;       /* of the tensor */
    uint32_t has_data;      /* marey_dumps_get() gives it; of images the pixels */

    const char *phase, *source;                 /* NULL: not known */
    const struct marey_digest *digest, *blocks; /* NULL: none; blocks where there are several */
    size_t n_blocks;
    const struct marey_tensor_stats *stats; /* NULL: none */
    const char *missing;                    /* why it is not there; NULL: it is */
    const char *const *files;               /* paths of its own files */
    size_t n_files;
};
/* All values of step `i` in the order of adding (of a JSON: the order there). */
MAREY_API MAREY_WARN_UNUSED marey_status marey_dumps_values(marey_dumps *dumps, size_t i,
                                                            const struct marey_dumped_value **values,
                                                            size_t *n_values);
/*
 * The value's numbers, row-major, in host memory, lent until the step is released. MAREY_ESTATE for what has none (kept as statistics, dropped,
 * a text, a pickle), MAREY_EFORMAT for damage; each with a sentence that names the value.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_dumps_get(marey_dumps *dumps, size_t i, size_t value,
                                                         struct marey_tensor *out);
/* Give a tensor of marey_dumps_get() back. Its memory goes with the last; what is never given back, with the step. */
MAREY_API void marey_dumps_drop(marey_dumps *dumps, size_t i, size_t value);
/* The place of a value by its name or path text in step `i`; SIZE_MAX: there is none. */
MAREY_API size_t marey_dumps_find(marey_dumps *dumps, size_t i, enum marey_dump_tree tree,
                                  const char *name);
/* Let go of what was read of step `i`; it may be read again. */
MAREY_API void marey_dumps_release(marey_dumps *dumps, size_t i);

/* What was found damaged or left out so far, a sentence each, lent until close. */
MAREY_API size_t marey_dumps_n_notes(const marey_dumps *dumps);
MAREY_API const char *marey_dumps_note(const marey_dumps *dumps, size_t i);

/*
 * Write a row-major tensor in host memory to a stream: BINARY (only the bytes), NPY, SAFETENSORS (by the name `name`) or
 * JSON. MAREY_EINVAL for another form, MAREY_EIO when the stream refuses.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_tensor_write(const struct marey_tensor *tensor,
                                                            enum marey_dump_type form,
                                                            const char *name, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
