/*
 * marey/dump.h: write the tensors of a program to files, step by step, to look at them and to compare two runs.
 *
 *     marey_dump_enable(&(struct marey_dump_options){.dir = "dumps"});
 *     for (...) {
 *         marey_dump_add("layer0.out", &tensor);     the value as it is now; the program may change it at once
 *         marey_dump_flush(NULL);                    the step ends: what was added is written, and counted
 *     }
 *     marey_dump_disable();                          waits until all is on its way
 *
 * One dumper in a process, off until it is enabled: then a call is a load and a branch. It needs no recording; with one
 * open, `dir` may be left out and is NAME.marey/dumps. Added data is copied (or handed over, or on a GPU cloned there and
 * copied by the side); threads of the dumper write it. How much may be in memory and on disk is bounded, and
 * `policy` chooses what happens beyond that, and it is reported: nothing is lost in silence.
 *
 * What is added has a path: keys and positions, "layer0.out" or "layers[3]". A path is used once in a step. `marey
 * diff` and <marey/diff.h> compare such dumps; docs/formats/dump.md has the files. From any thread; not from signal
 * handlers. A forked child starts with nothing added, and writes its own files.
 */
#ifndef MAREY_DUMP_H
#define MAREY_DUMP_H

#include <marey/switchboard.h>
#include <marey/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

enum marey_dump_layout {
    MAREY_DUMP_LAYOUT_MAREY = 0, /* one safetensors file and one manifest for each step and rank */
    MAREY_DUMP_LAYOUT_ACCVLAB,   /* COUNT/tensors.json, COUNT/grads.json and side files */
};

/* What is kept of a tensor. */
enum marey_dump_mode {
    MAREY_DUMP_FULL = 0,
    MAREY_DUMP_STATS,   /* only marey_tensor_stats_get() */
    MAREY_DUMP_DIGESTS, /* only marey_tensor_digest(), with those of blocks */
};

/* What happens when `memory_bytes` are waiting to be written. */
enum marey_dump_policy {
    MAREY_DUMP_BLOCK =
        0, /* the add waits. What one step has beyond it lies in files without a name in `dir` meanwhile */
    MAREY_DUMP_DROP,          /* the tensor is left out, and counted */
    MAREY_DUMP_FALL_TO_STATS, /* its statistics are kept */
};

/* Zero means the default for every field. */
struct marey_dump_options {
    const char *dir; /* made when the first step is written; NULL: the recording's, which must be open */
    enum marey_dump_layout layout;
    enum marey_dump_mode mode;
    enum marey_dump_policy policy;
    uint64_t memory_bytes; /* of copies that wait; default 1 GiB */
    uint64_t disk_bytes;   /* default: until a tenth of the file system is left */
    uint32_t n_writers;    /* threads, at most 16; default 1 */
    uint32_t durable; /* non-zero: a step is on the disk, past any cache, when it counts as written */
    /* Steps by their number: from `first` on, `every`-th one, up to `last` if that is not 0. Others are passed over. */
    uint64_t first, last, every;
    /*
     * Not 0: steps go to a folder .flight-PID of `dir`, where the last so many are kept; marey_dump_trigger() moves them to
     * `dir`. After a crash or kill -9 they are still there; a proper end without a trigger removes them.
     */
    uint64_t flight_steps;
    uint32_t no_stats; /* non-zero: the manifest goes without statistics (and is quicker to make) */
};

MAREY_API MAREY_WARN_UNUSED marey_status
marey_dump_enable_sized(const struct marey_dump_options *options, size_t size);
/* MAREY_ESTATE when it is on already. `options` lent, not NULL. */
static inline MAREY_WARN_UNUSED marey_status marey_dump_enable(const struct marey_dump_options *options)
{
    return marey_dump_enable_sized(options, sizeof *options);
}
/* Off, once all that was flushed is written. What was added since is dropped. The status reports values that were not written. */
MAREY_API marey_status marey_dump_disable(void);
static inline int marey_dump_is_enabled(void)
{
    return (marey_on() & MAREY_ON_DUMP) != 0;
}
/* Whether the step that is being added to will be kept; if not, adding is free. */
MAREY_API int marey_dump_is_wanted(void);

/* ---- adding ---- */

/* The form of one value's file. Numbers from JSON on are those of TensorDumper.Type plus 1. */
enum marey_dump_type {
    MAREY_DUMP_CONTAINER = 0, /* with the other values of the step */
    MAREY_DUMP_JSON,
    MAREY_DUMP_BINARY,
    MAREY_DUMP_IMAGE_RGB,
    MAREY_DUMP_IMAGE_BGR,
    MAREY_DUMP_IMAGE_I,
    MAREY_DUMP_PICKLE, /* bytes that the caller made: marey_dump_value.text */
    MAREY_DUMP_NPY,
    MAREY_DUMP_SAFETENSORS,
    MAREY_N_DUMP_TYPES
};

/* A step down the tree: a key of a dictionary, or a position in a list. */
struct marey_dump_part {
    const char *key; /* NULL: `index` */
    size_t key_len;
    uint64_t index;
};

enum marey_dump_kind {
    MAREY_DUMP_TENSOR = 0,
    MAREY_DUMP_TEXT,    /* a string */
    MAREY_DUMP_LITERAL, /* a number, true, false or null as JSON writes it */
    MAREY_DUMP_DICT,    /* an empty one; adding below a path makes them by itself */
    MAREY_DUMP_LIST,
    MAREY_DUMP_BYTES, /* for MAREY_DUMP_PICKLE */
};

struct marey_image_options; /* of <marey/image.h> */

/* What is added. Lent for the call, except what `release` is for. */
struct marey_dump_value {
    enum marey_dump_kind kind;
    struct marey_tensor tensor;
    const void *text; /* of TEXT, LITERAL and BYTES */
    size_t text_len;
    enum marey_dump_type type;
    const uint32_t *permutation; /* of the axes, rank of them, as torch.permute takes it; NULL: none */
    const struct marey_image_options *image; /* NULL: each image stretched over its own range */
    const char *file;                        /* the source line that adds it; NULL: not known */
    uint32_t line;
    const char *phase; /* "forward", "backward", "optimizer"; NULL: none */
    /*
     * Not NULL: the data need not be copied; they stay as they are until this is called, from any thread, once, whatever
     * becomes of the value. In a forked child it is not called for what its parent added.
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
 * Add a value at a path of parts. MAREY_ESTATE with a sentence when the path clashes with what is there; MAREY_EINVAL for a
 * tensor or permutation that is none. Failures outside the program (memory, GPU) are reported once and counted, and are MAREY_OK.
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
/* How many values wait in a tree. */
MAREY_API uint64_t marey_dump_pending(enum marey_dump_tree tree);
/* Give all that waits, or one tree of it, another form. */
MAREY_API void marey_dump_retype(enum marey_dump_tree tree, enum marey_dump_type type);
/* Forget what waits in a tree. */
MAREY_API void marey_dump_clear(enum marey_dump_tree tree);
/* What waits, in the order of adding, permuted, on the host; false from `visit` ends it. Waits for GPU copies. */
struct marey_dump_entry {
    enum marey_dump_tree tree;
    const struct marey_dump_part *parts;
    size_t n_parts;
    struct marey_dump_value value; /* its tensor is row-major */
};
/* It may not add, clear or flush. */
typedef int marey_dump_visit(void *ctx, const struct marey_dump_entry *entry);
MAREY_API MAREY_WARN_UNUSED marey_status marey_dump_visit_pending(marey_dump_visit *visit, void *ctx);

/* ---- steps ---- */

struct marey_dump_counts {
    uint64_t n_steps, n_tensors, n_bytes;       /* written */
    uint64_t n_dropped, n_only_stats, n_failed; /* tensors that are missing, and why */
    uint64_t waited_ns;                         /* adds and flushes, for memory */
};

/*
 * End the step: hand what waits to the writers, and count. The new count leaves through `count` (NULL: not asked for).
 * MAREY_EIO when an earlier step could not be written, once, with the sentence.
 */
MAREY_API marey_status marey_dump_flush(uint64_t *count);
/* The number of the step that is being added to; set it to go on elsewhere. */
MAREY_API uint64_t marey_dump_count(void);
MAREY_API void marey_dump_set_count(uint64_t count);
/* Wait until all that was flushed is written. */
MAREY_API marey_status marey_dump_wait(void);
/*
 * Publish the steps that the flight recorder keeps, and say why in their manifests. The step under way follows when it ends,
 * also by marey_dump_disable(). Waits for what was flushed. Without a flight recorder, the step under way gets the reason.
 */
MAREY_API marey_status marey_dump_trigger(const char *reason);
MAREY_API void marey_dump_counts_get(struct marey_dump_counts *out);
/* Where steps go: "" while it is not known. Lent until the next enable. */
MAREY_API const char *marey_dump_dir(void);

#ifdef __cplusplus
}
#endif
#endif
