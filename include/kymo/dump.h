/*
 * kymo/dump.h: write the tensors of a program to files, step by step, to look at them and to compare two runs.
 *
 *     kymo_dump_enable(&(struct kymo_dump_options){.dir = "dumps"});
 *     for (...) {
 *         kymo_dump_add("layer0.out", &tensor);      the value as it is now; the program may change it at once
 *         kymo_dump_flush(NULL);                     the step ends: what was added is written, and counted
 *     }
 *     kymo_dump_disable();                           waits until all is on its way
 *
 * One dumper in a process, off until it is enabled: then a call is a load and a branch. It needs no recording; with one
 * open, `dir` may be left out and is NAME.kymo/dumps. Added data is copied (or handed over, or on a GPU cloned there and
 * copied by the side); threads of the dumper write it. How much may be in memory and on disk is bounded, and
 * what happens beyond is said by `policy` and told: nothing is lost in silence.
 *
 * What is added has a path: keys and positions, "layer0.out" or "layers[3]". A path is used once in a step. `kymo diff`
 * and <kymo/diff.h> compare such dumps; docs/formats/dump.md has the files. From any thread; not from signal handlers. A
 * forked child starts with nothing added, and writes to files of its own.
 */
#ifndef KYMO_DUMP_H
#define KYMO_DUMP_H

#include <kymo/switchboard.h>
#include <kymo/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

enum kymo_dump_layout {
    KYMO_DUMP_LAYOUT_KYMO = 0, /* one safetensors file and one manifest for each step and rank */
    KYMO_DUMP_LAYOUT_ACCVLAB,  /* COUNT/tensors.json, COUNT/grads.json and side files */
};

/* What is kept of a tensor. */
enum kymo_dump_mode {
    KYMO_DUMP_FULL = 0,
    KYMO_DUMP_STATS,   /* kymo_tensor_stats_get() alone */
    KYMO_DUMP_DIGESTS, /* kymo_tensor_digest() alone, with those of blocks */
};

/* What happens when `memory_bytes` are waiting to be written. */
enum kymo_dump_policy {
    KYMO_DUMP_BLOCK =
        0, /* the add waits. What one step has beyond it lies in files without a name in `dir` meanwhile */
    KYMO_DUMP_DROP,          /* the tensor is left out, and counted */
    KYMO_DUMP_FALL_TO_STATS, /* its statistics are kept */
};

/* Zero means the default for every field. */
struct kymo_dump_options {
    const char *dir; /* made when the first step is written; NULL: the recording's, which must be open */
    enum kymo_dump_layout layout;
    enum kymo_dump_mode mode;
    enum kymo_dump_policy policy;
    uint64_t memory_bytes; /* of copies that wait; default 1 GiB */
    uint64_t disk_bytes;   /* default: until a tenth of the file system is left */
    uint32_t n_writers;    /* threads, at most 16; default 1 */
    uint32_t durable; /* non-zero: a step is on the disk, past any cache, when it counts as written */
    /* Steps by their number: from `first` on, `every`-th one, up to `last` if that is not 0. Others are passed over. */
    uint64_t first, last, every;
    /*
     * Not 0: steps go to a folder .flight-PID of `dir`, where the last so many are kept; kymo_dump_trigger() moves them to
     * `dir`. After a crash or kill -9 they are still there; a proper end without a trigger removes them.
     */
    uint64_t flight_steps;
    uint32_t no_stats; /* non-zero: the manifest goes without statistics (and is quicker to make) */
};

KYMO_API KYMO_WARN_UNUSED kymo_status kymo_dump_enable_sized(const struct kymo_dump_options *options,
                                                             size_t size);
/* KYMO_ESTATE when it is on already. `options` lent, not NULL. */
static inline KYMO_WARN_UNUSED kymo_status kymo_dump_enable(const struct kymo_dump_options *options)
{
    return kymo_dump_enable_sized(options, sizeof *options);
}
/* Off, once all that was flushed is written. What was added since is dropped. The status tells if something was not written. */
KYMO_API kymo_status kymo_dump_disable(void);
static inline int kymo_dump_is_enabled(void)
{
    return (kymo_on() & KYMO_ON_DUMP) != 0;
}
/* Whether the step that is being added to will be kept; if not, adding is free. */
KYMO_API int kymo_dump_is_wanted(void);

/* ---- adding ---- */

/* The form of one value's file. Numbers from JSON on are those of TensorDumper.Type plus 1. */
enum kymo_dump_type {
    KYMO_DUMP_CONTAINER = 0, /* none of its own */
    KYMO_DUMP_JSON,
    KYMO_DUMP_BINARY,
    KYMO_DUMP_IMAGE_RGB,
    KYMO_DUMP_IMAGE_BGR,
    KYMO_DUMP_IMAGE_I,
    KYMO_DUMP_PICKLE, /* bytes that the caller made: kymo_dump_value.text */
    KYMO_DUMP_NPY,
    KYMO_DUMP_SAFETENSORS,
    KYMO_N_DUMP_TYPES
};

/* A step down the tree: a key of a dictionary, or a position in a list. */
struct kymo_dump_part {
    const char *key; /* NULL: `index` */
    size_t key_len;
    uint64_t index;
};

enum kymo_dump_kind {
    KYMO_DUMP_TENSOR = 0,
    KYMO_DUMP_TEXT,    /* a string */
    KYMO_DUMP_LITERAL, /* a number, true, false or null as JSON writes it */
    KYMO_DUMP_DICT,    /* an empty one; adding below a path makes them by itself */
    KYMO_DUMP_LIST,
    KYMO_DUMP_BYTES, /* for KYMO_DUMP_PICKLE */
};

struct kymo_image_options; /* of <kymo/image.h> */

/* What is added. Lent for the call, except what `release` is for. */
struct kymo_dump_value {
    enum kymo_dump_kind kind;
    struct kymo_tensor tensor;
    const void *text; /* of TEXT, LITERAL and BYTES */
    size_t text_len;
    enum kymo_dump_type type;
    const uint32_t *permutation; /* of the axes, rank of them, as torch.permute takes it; NULL: none */
    const struct kymo_image_options *image; /* NULL: each image stretched over its own range */
    const char *file;                       /* the source line that adds it; NULL: not known */
    uint32_t line;
    const char *phase; /* "forward", "backward", "optimizer"; NULL: none */
    /*
     * Not NULL: the data need not be copied; they stay as they are until this is called, from any thread, once, whatever
     * becomes of the value. In a forked child it is not called for what its parent added.
     */
    void (*release)(void *owner);
    void *owner;
};

enum kymo_dump_tree { KYMO_DUMP_TENSORS = 0, KYMO_DUMP_GRADIENTS };

/* Out of line; they test the switch again. */
KYMO_API kymo_status kymo_dump_put_on(enum kymo_dump_tree tree, const struct kymo_dump_part *parts,
                                      size_t n_parts, const struct kymo_dump_value *value);
KYMO_API kymo_status kymo_dump_add_on(const char *path, const struct kymo_tensor *tensor);

/*
 * Add a value at a path of parts. KYMO_ESTATE with a sentence when the path clashes with what is there; KYMO_EINVAL for a
 * tensor or permutation that is none. What the world refuses (memory, GPU) is told once and counted, and is KYMO_OK.
 */
static inline kymo_status kymo_dump_put(enum kymo_dump_tree tree, const struct kymo_dump_part *parts,
                                        size_t n_parts, const struct kymo_dump_value *value)
{
    if (KYMO_UNLIKELY(kymo_dump_is_enabled()))
        return kymo_dump_put_on(tree, parts, n_parts, value);
    if (value->release != NULL)
        value->release(value->owner);
    return KYMO_OK;
}
/* Add a tensor to the container; dots in `path` make levels. */
static inline kymo_status kymo_dump_add(const char *path, const struct kymo_tensor *tensor)
{
    return KYMO_UNLIKELY(kymo_dump_is_enabled()) ? kymo_dump_add_on(path, tensor) : KYMO_OK;
}
/* How many values wait in a tree. */
KYMO_API uint64_t kymo_dump_pending(enum kymo_dump_tree tree);
/* Give all that waits, or one tree of it, another form. */
KYMO_API void kymo_dump_retype(enum kymo_dump_tree tree, enum kymo_dump_type type);
/* Forget what waits in a tree. */
KYMO_API void kymo_dump_clear(enum kymo_dump_tree tree);
/* What waits, in the order of adding, permuted, on the host; false from `visit` ends it. Waits for GPU copies. */
struct kymo_dump_entry {
    enum kymo_dump_tree tree;
    const struct kymo_dump_part *parts;
    size_t n_parts;
    struct kymo_dump_value value; /* its tensor is row-major */
};
/* It may not add, clear or flush. */
typedef int kymo_dump_visit(void *ctx, const struct kymo_dump_entry *entry);
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_dump_visit_pending(kymo_dump_visit *visit, void *ctx);

/* ---- steps ---- */

struct kymo_dump_counts {
    uint64_t n_steps, n_tensors, n_bytes;       /* written */
    uint64_t n_dropped, n_only_stats, n_failed; /* tensors that are missing, and why */
    uint64_t waited_ns;                         /* adds and flushes, for memory */
};

/*
 * End the step: hand what waits to the writers, and count. The new count leaves through `count` (NULL: not asked for).
 * KYMO_EIO when an earlier step could not be written, once, with the sentence.
 */
KYMO_API kymo_status kymo_dump_flush(uint64_t *count);
/* The number of the step that is being added to; set it to go on elsewhere. */
KYMO_API uint64_t kymo_dump_count(void);
KYMO_API void kymo_dump_set_count(uint64_t count);
/* Wait until all that was flushed is written. */
KYMO_API kymo_status kymo_dump_wait(void);
/*
 * Publish the steps that the flight recorder keeps, and say why in their manifests. The step under way follows when it ends,
 * also by kymo_dump_disable(). Waits for what was flushed. Without a flight recorder, the step under way gets the reason.
 */
KYMO_API kymo_status kymo_dump_trigger(const char *reason);
KYMO_API void kymo_dump_counts_get(struct kymo_dump_counts *out);
/* Where steps go: "" while it is not known. Lent until the next enable. */
KYMO_API const char *kymo_dump_dir(void);

#ifdef __cplusplus
}
#endif
#endif
