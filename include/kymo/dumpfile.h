/*
 * kymo/dumpfile.h: read dumps back, and files of tensors by others.
 *
 *     kymo_dumps *dumps;
 *     kymo_dumps_open("dumps", &dumps);
 *     for (size_t i = 0; i < kymo_dumps_count(dumps); i++) {
 *         const struct kymo_dumped_value *values;
 *         size_t n_values;
 *         kymo_dumps_values(dumps, i, &values, &n_values);
 *         for (size_t v = 0; v < n_values; v++)
 *             if (kymo_dumps_get(dumps, i, v, &tensor) == KYMO_OK) {
 *                 ...
 *                 kymo_dumps_drop(dumps, i, v);
 *             }
 *         kymo_dumps_release(dumps, i);
 *     }
 *     kymo_dumps_close(dumps);
 *
 * What can be opened: a directory of dumps in either layout (also rank-3/12 below it), the directory of one step, a step's
 * .safetensors, .part or .jsonl, a recording whose dumps/ it is, and any single .npy, .safetensors, .json, .png or .bin. Bytes are trusted in
 * nothing; what is damaged is told in a note, and the rest is read. Pickles are named, never loaded.
 *
 * Numbers are read when they are asked for. A file that is truncated or replaced meanwhile is an error like any other. One thread
 * at a time uses a kymo_dumps, with one exception: kymo_dumps_get() and kymo_dumps_drop() of different values of a step whose
 * values were asked for. Tensors that it lent may be read by any. libkymo-tools.
 */
#ifndef KYMO_DUMPFILE_H
#define KYMO_DUMPFILE_H

#include <stdio.h>

#include <kymo/dump.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kymo_dumps kymo_dumps;

/* `path` is lent for the call. KYMO_EIO, KYMO_EFORMAT for what is no dump, KYMO_ENOMEM; a sentence each. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_dumps_open(const char *path, kymo_dumps **out);
KYMO_API void kymo_dumps_close(kymo_dumps *dumps);

/* ---- steps ---- */

/* One step of one rank. Texts are lent until close; NULL where not known. */
struct kymo_dumped_step {
    uint64_t step;         /* 0 of a single file */
    int64_t rank, world;   /* -1: not known */
    uint64_t pid, unix_ns; /* 0: not known */
    const char *host, *run, *mode, *reason;
    const char *path; /* the manifest, or what stands for it */
    enum kymo_dump_layout layout;
    uint32_t is_complete; /* 0: the program died, or still writes it */
    uint32_t is_single;   /* a file by itself, of nobody's dump */
};
/* In the order of steps, then ranks, then processes. */
KYMO_API size_t kymo_dumps_count(const kymo_dumps *dumps);
/* Of step `i` < count. Reads the begin and the end of a manifest, no more. Fails when that is none. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_dumps_step(kymo_dumps *dumps, size_t i,
                                                      struct kymo_dumped_step *out);

/* ---- values ---- */

/* Everything is lent until the step is released, or until close. */
struct kymo_dumped_value {
    enum kymo_dump_tree tree;
    const struct kymo_dump_part *parts; /* keys have a NUL behind them */
    size_t n_parts;
    const char *name; /* the path as one text, without what tells the tree: "layers[3].out" */
    uint64_t seq;     /* order of adding */

    enum kymo_dump_kind kind;
    const char *text; /* of TEXT, LITERAL; a number of a JSON can be had as a tensor of rank 0 too */
    size_t text_len;

    enum kymo_dump_type type;
    /* KYMO_DTYPE_NONE: not a tensor. From a JSON without types: int64, uint64, float64 or bool. */
    enum kymo_dtype dtype;
    uint32_t is_untyped; /* it comes from a JSON without types: `dtype` only holds its numbers */
    uint32_t rank;
    const int64_t *sizes;
    const int64_t *strides; /* of the program's tensor; NULL: not known */
    uint64_t n_bytes;       /* of the tensor */
    uint32_t has_data;      /* kymo_dumps_get() gives it; of images the pixels */

    const char *phase, *source;                /* NULL: not known */
    const struct kymo_digest *digest, *blocks; /* NULL: none; blocks where there are several */
    size_t n_blocks;
    const struct kymo_tensor_stats *stats; /* NULL: none */
    const char *missing;                   /* why it is not there; NULL: it is */
    const char *const *files;              /* paths of its own files */
    size_t n_files;
};
/* All values of step `i` in the order of adding (of a JSON: the order there). */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_dumps_values(kymo_dumps *dumps, size_t i,
                                                        const struct kymo_dumped_value **values,
                                                        size_t *n_values);
/*
 * The value's numbers, row-major, in host memory, lent until the step is released. KYMO_ESTATE for what has none (kept as statistics, dropped,
 * a text, a pickle), KYMO_EFORMAT for damage; each with a sentence that names the value.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_dumps_get(kymo_dumps *dumps, size_t i, size_t value,
                                                     struct kymo_tensor *out);
/* Give a tensor of kymo_dumps_get() back. Its memory goes with the last; what is never given back, with the step. */
KYMO_API void kymo_dumps_drop(kymo_dumps *dumps, size_t i, size_t value);
/* The place of a value by its name or path text in step `i`; SIZE_MAX: there is none. */
KYMO_API size_t kymo_dumps_find(kymo_dumps *dumps, size_t i, enum kymo_dump_tree tree,
                                const char *name);
/* Let go of what was read of step `i`; it may be read again. */
KYMO_API void kymo_dumps_release(kymo_dumps *dumps, size_t i);

/* What was found damaged or left out so far, a sentence each, lent until close. */
KYMO_API size_t kymo_dumps_n_notes(const kymo_dumps *dumps);
KYMO_API const char *kymo_dumps_note(const kymo_dumps *dumps, size_t i);

/*
 * Write a row-major tensor in host memory to a stream: BINARY (the bytes alone), NPY, SAFETENSORS (by the name `name`) or
 * JSON. KYMO_EINVAL for another form, KYMO_EIO when the stream refuses.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_tensor_write(const struct kymo_tensor *tensor,
                                                        enum kymo_dump_type form, const char *name,
                                                        FILE *out);

#ifdef __cplusplus
}
#endif
#endif
