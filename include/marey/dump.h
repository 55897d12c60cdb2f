/*
 * marey/dump.h: write the tensors of a program to files, step by step, to inspect them and to compare two runs.
 *
 *     marey_dump_enable(&(struct marey_dump_options){.dir = "dumps"});
 *     for (...) {
 *         marey_dump_add("layer0.out", &tensor);     copies the value; the program may change it afterwards
 *         marey_dump_flush(NULL);                    ends the step: writes the added values and counts the step
 *     }
 *     marey_dump_disable();                          waits until all is written
 *
 * One dumper per process. While disabled, a call is a load and a branch. It needs no recording; with an open recording,
 * `dir` defaults to NAME.marey/dumps. Added data is copied, or ownership is passed, or it is cloned on the GPU and
 * copied asynchronously; the dumper's threads write it. Memory and disk are bounded; `policy` selects the behavior at
 * the memory limit. Losses are always reported.
 *
 * Each value has a path of keys and positions, "layer0.out" or "layers[3]", unique in its step. `marey diff` and
 * <marey/diff.h> compare dumps; docs/formats/dump.md describes the files. Any thread; not from signal handlers. A forked
 * child starts without pending values and writes separate files.
 */
#ifndef MAREY_DUMP_H
#define MAREY_DUMP_H

#include <marey/switchboard.h>
#include <marey/tensor.h>

MAREY_BEGIN_C

enum marey_dump_layout {
    MAREY_DUMP_LAYOUT_MAREY = 0, /* one safetensors file and one manifest for each step and rank */
    MAREY_DUMP_LAYOUT_ACCVLAB,   /* COUNT/tensors.json, COUNT/grads.json and side files */
};

/* Which data of a tensor are kept. */
enum marey_dump_mode {
    MAREY_DUMP_FULL = 0,
    MAREY_DUMP_STATS,   /* only marey_tensor_stats_get() */
    MAREY_DUMP_DIGESTS, /* only marey_tensor_digest(), including block digests */
};

/* Behavior of an add when `memory_bytes` are waiting to be written. */
enum marey_dump_policy {
    MAREY_DUMP_BLOCK =
        0, /* it waits. A step larger than the limit spills to unnamed temporary files in `dir` */
    MAREY_DUMP_DROP,          /* the tensor is dropped and counted */
    MAREY_DUMP_FALL_TO_STATS, /* only its statistics are kept */
};

/* Zero means the default for every field. */
struct marey_dump_options {
    const char *dir; /* created with the first step; NULL: in the open recording */
    enum marey_dump_layout layout;
    enum marey_dump_mode mode;
    enum marey_dump_policy policy;
    uint64_t memory_bytes; /* of copies waiting to be written; default 1 GiB */
    uint64_t disk_bytes;   /* default: until 10 % of the file system is free */
    uint32_t n_writers;    /* threads, at most 16; default 1 */
    uint32_t durable;      /* non-zero: fsync each step before it counts as written */
    /* Which steps to write: every `every`-th from `first` to `last` (0: no end). Others are skipped. */
    uint64_t first, last, every;
    /*
     * Not 0: flight recorder. Keeps the last `flight_steps` steps in the folder .flight-PID of `dir`; marey_dump_trigger()
     * moves them to `dir`. They survive a crash or kill -9; a normal exit without a trigger removes them.
     */
    uint64_t flight_steps;
    uint32_t no_stats; /* non-zero: no statistics in the manifest, which is faster */
};

MAREY_API MAREY_WARN_UNUSED marey_status
marey_dump_enable_sized(const struct marey_dump_options *options, size_t size);
/* MAREY_ESTATE: already enabled. `options` lent, not NULL. */
static inline MAREY_WARN_UNUSED marey_status marey_dump_enable(const struct marey_dump_options *options)
{
    return marey_dump_enable_sized(options, sizeof *options);
}
/* Write all flushed steps, then disable. Drops values added since. Fails if values could not be written. */
MAREY_API marey_status marey_dump_disable(void);
static inline int marey_dump_is_enabled(void)
{
    return (marey_on() & MAREY_ON_DUMP) != 0;
}
/* Whether the current step will be written; if not, adding is free. */
MAREY_API int marey_dump_is_wanted(void);

/* ---- adding ---- */

/* File format of one value. From JSON on, TensorDumper.Type plus 1. */
enum marey_dump_type {
    MAREY_DUMP_CONTAINER = 0, /* in the step's common file */
    MAREY_DUMP_JSON,
    MAREY_DUMP_BINARY,
    MAREY_DUMP_IMAGE_RGB,
    MAREY_DUMP_IMAGE_BGR,
    MAREY_DUMP_IMAGE_I,
    MAREY_DUMP_PICKLE, /* pickled bytes from the caller: marey_dump_value.text */
    MAREY_DUMP_NPY,
    MAREY_DUMP_SAFETENSORS,
    MAREY_N_DUMP_TYPES
};

/* One path element: a key of a dictionary, or a position in a list. */
struct marey_dump_part {
    const char *key; /* NULL: `index` */
    size_t key_len;
    uint64_t index;
};

enum marey_dump_kind {
    MAREY_DUMP_TENSOR = 0,
    MAREY_DUMP_TEXT,    /* a string */
    MAREY_DUMP_LITERAL, /* a number, true, false or null in JSON syntax */
    MAREY_DUMP_DICT,    /* an empty one; adding below a path creates dicts automatically */
    MAREY_DUMP_LIST,
    MAREY_DUMP_BYTES, /* for MAREY_DUMP_PICKLE */
};

struct marey_image_options; /* of <marey/image.h> */

/* A value to add. Lent for the call, except data with `release`. */
struct marey_dump_value {
    enum marey_dump_kind kind;
    struct marey_tensor tensor;
    const void *text; /* of TEXT, LITERAL and BYTES */
    size_t text_len;
    enum marey_dump_type type;
    const uint32_t *permutation; /* of the axes, rank of them, as torch.permute takes it; NULL: none */
    const struct marey_image_options *image; /* NULL: each image scaled to its range of values */
    const char *file;                        /* source position of the add; NULL: unknown */
    uint32_t line;
    const char *phase; /* "forward", "backward", "optimizer"; NULL: none */
    /*
     * Not NULL: the data is not copied and must stay unchanged until this is called: exactly once, from any thread, also
     * if the value is dropped. A forked child does not call it for its parent's values.
     */
    void (*release)(void *owner);
    void *owner;
};

enum marey_dump_tree { MAREY_DUMP_TENSORS = 0, MAREY_DUMP_GRADIENTS };

/* Out of line; they test the switch again. */
MAREY_API marey_status marey_dump_put_on(enum marey_dump_tree tree,
                                         const struct marey_dump_part *parts, size_t n_parts,
                                         const struct marey_dump_value *value);
MAREY_API marey_status marey_dump_add_on(const char *path, const struct marey_tensor *tensor);

/*
 * Add a value at a path of parts. MAREY_ESTATE: the path conflicts with an existing one. MAREY_EINVAL: invalid tensor or
 * permutation. Failures outside the program (memory, GPU) are reported once and counted, and return MAREY_OK.
 */
static inline marey_status marey_dump_put(enum marey_dump_tree tree,
                                          const struct marey_dump_part *parts, size_t n_parts,
                                          const struct marey_dump_value *value)
{
    if (MAREY_UNLIKELY(marey_dump_is_enabled()))
        return marey_dump_put_on(tree, parts, n_parts, value);
    if (value->release != NULL)
        value->release(value->owner);
    return MAREY_OK;
}
/* Add a tensor to the container; dots in `path` make levels. */
static inline marey_status marey_dump_add(const char *path, const struct marey_tensor *tensor)
{
    return MAREY_UNLIKELY(marey_dump_is_enabled()) ? marey_dump_add_on(path, tensor) : MAREY_OK;
}
/* Number of pending values in a tree. */
MAREY_API uint64_t marey_dump_pending(enum marey_dump_tree tree);
/* Change the file format of the pending values of a tree. */
MAREY_API void marey_dump_retype(enum marey_dump_tree tree, enum marey_dump_type type);
/* Drop the pending values of a tree. */
MAREY_API void marey_dump_clear(enum marey_dump_tree tree);
/* Visit pending values in the order of adding, permuted, on the host, until `visit` returns false. Waits for GPU copies. */
struct marey_dump_entry {
    enum marey_dump_tree tree;
    const struct marey_dump_part *parts;
    size_t n_parts;
    struct marey_dump_value value; /* its tensor is row-major */
};
/* Must not add, clear or flush. */
typedef int marey_dump_visit(void *ctx, const struct marey_dump_entry *entry);
MAREY_API MAREY_WARN_UNUSED marey_status marey_dump_visit_pending(marey_dump_visit *visit, void *ctx);

/* ---- steps ---- */

struct marey_dump_counts {
    uint64_t n_steps, n_tensors, n_bytes;       /* written */
    uint64_t n_dropped, n_only_stats, n_failed; /* tensors that are missing, by reason */
    uint64_t waited_ns;                         /* time that adds and flushes waited for memory */
};

/*
 * End the step: pass pending values to the writers, and increment the count. Returns the new count in `count` (may be
 * NULL). MAREY_EIO: an earlier step could not be written; reported once.
 */
MAREY_API marey_status marey_dump_flush(uint64_t *count);
/* The number of the current step; set it to continue at another one. */
MAREY_API uint64_t marey_dump_count(void);
MAREY_API void marey_dump_set_count(uint64_t count);
/* Wait until all flushed steps are written. */
MAREY_API marey_status marey_dump_wait(void);
/*
 * Publish the flight recorder's steps, with `reason` in their manifests. The current step follows when it ends, also by
 * marey_dump_disable(). Waits for flushed steps. Without a flight recorder, the current step's manifest gets the reason.
 */
MAREY_API marey_status marey_dump_trigger(const char *reason);
MAREY_API void marey_dump_counts_get(struct marey_dump_counts *out);
/* Output directory; "": not known yet. Lent until the next enable. */
MAREY_API const char *marey_dump_dir(void);

MAREY_END_C
#endif
