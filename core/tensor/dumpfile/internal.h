/*
 * dumpfile: reads dumps, and tensor files of any tool.
 *
 *   dumps.c, dumps_find.c     steps below a path, read on demand (<marey/dumpfile.h>)
 *   step_values.c, step_load.c   the values of a step and where their numbers are
 *   manifest_read.c, tree_read.c   manifests and trees
 *   value_read.c, safetensors_read.c, npy_read.c   the numbers of a value
 *   json_numbers.c            nested lists of numbers as a tensor
 *   file_map.c                files in memory, parts of large ones
 *
 * Input: files that anyone may have written; nothing in them is trusted. Output: values.
 */
#ifndef MAREY_TENSOR_DUMPFILE_INTERNAL_H
#define MAREY_TENSOR_DUMPFILE_INTERNAL_H

#include "codec/internal.h"
#include "tensor/container/internal.h"
#include "tensor/kernels/internal.h"
#include <marey/dumpfile.h>

/* ---- file_map.c ---- */

/* Zeros after every text that is read here, so that readers need not check for the end at each byte. */
enum { MAREY__TEXT_PADDING = MAREY__JSON_PADDING };

struct marey__map {
    char *data; /* NULL: empty */
    size_t len;
    size_t mapped; /* bytes to give back */
};
/* Map the file, with MAREY__TEXT_PADDING zeros after it. MAREY_EIO; MAREY_EFORMAT if not regular or truncated meanwhile. */
MAREY_WARN_UNUSED marey_status marey__map_open(const char *path, struct marey__map *out);
/* The same of a text, which ends with the first zero byte. */
MAREY_WARN_UNUSED marey_status marey__map_text(const char *path, struct marey__map *out);
void marey__map_close(struct marey__map *map);

/* A file of numbers, of which parts are read when they are wanted; as it was when it was first opened. */
struct marey__numbers_file {
    const char *path; /* lent */
    uint64_t dev, ino, len;
};
/* Its first bytes, up to `n_head`, into `head` (unless 0). */
MAREY_WARN_UNUSED marey_status marey__numbers_open(const char *path, size_t n_head,
                                                   struct marey__numbers_file *file,
                                                   struct marey__map *head);
/* A descriptor of it. MAREY_EFORMAT when it is another file by now. */
MAREY_WARN_UNUSED marey_status marey__numbers_reopen(const struct marey__numbers_file *file, int *fd);
/* MAREY_EFORMAT also when it is shorter by now. */
MAREY_WARN_UNUSED marey_status marey__numbers_load(const struct marey__numbers_file *file,
                                                   uint64_t at, void *into, uint64_t n);

/* ---- value_read.c: a tensor as a file describes it ---- */

struct marey__shape {
    enum marey_dtype dtype;
    uint32_t rank;
    int64_t sizes[MAREY_MAX_RANK];
};
/* Its bytes; false when they are beyond 63 bits. */
bool marey__shape_bytes(const struct marey__shape *shape, uint64_t *out);
/* Read an array of sizes; false with the reader's mistake. */
bool marey__shape_read(struct marey__json *json, struct marey__shape *out);

/* The rules for the JSON of dumps. */
enum { MAREY__DUMP_JSON = MAREY__JSON_STRICT | MAREY__JSON_SURROGATES };

/* ---- json_numbers.c ---- */

/* Nested lists of numbers, all of the same length at each depth. */
struct marey__numbers {
    struct marey__shape shape; /* MAREY_I64, MAREY_U64, MAREY_F64 or MAREY_BOOL; of an empty one MAREY_F64 */
    void *data;                /* marey__free; NULL where there are none */
};
enum marey__numbers_result {
    MAREY__NUMBERS_NONE, /* something else is in there; nothing is consumed */
    MAREY__NUMBERS_TENSOR,
    MAREY__NUMBERS_NO_MEMORY,
};
/*
 * At '[' or a number. NaN and infinities are words or strings; null is NaN where there is a number too. `is_f32`: doubles are
 * such that they can be rounded to float32 without harm.
 */
enum marey__numbers_result marey__numbers_read(struct marey__json *json, bool is_f32,
                                               struct marey__numbers *out);
/* The same numbers as `dtype`, each the nearest, with these sizes; pairs may become one element. MAREY_EFORMAT: no fit. */
MAREY_WARN_UNUSED marey_status marey__numbers_convert(struct marey__numbers *numbers,
                                                      const struct marey__shape *wanted);

/* ---- what is read of a step ---- */

/* Where a value's numbers are. */
struct marey__value_place {
    bool has_numbers; /* marey_dumps_get() has something to give or to read */
    bool is_read;     /* `tensor` is it */
    bool is_inside;   /* they are in the step's own file, from byte `at` on */
    uint32_t n_lent;  /* gets that were not given back */
    uint64_t at;
    struct marey_tensor tensor; /* in `numbers`, or in memory of the step */
    void *numbers;              /* marey__free; NULL: not read, or in memory of the step */
    int64_t *sizes;             /* marey__free; of images, whose files have them */
};

struct marey__dumpfile_step {
    struct marey_dumped_step info;
    enum marey__source {
        MAREY__SOURCE_MANIFEST,
        MAREY__SOURCE_ACCVLAB,
        MAREY__SOURCE_SAFETENSORS,
        MAREY__SOURCE_NPY,
        MAREY__SOURCE_JSON,
        MAREY__SOURCE_PNG,
        MAREY__SOURCE_BIN,
    } source;
    char *path;     /* the manifest, the directory, or the file */
    char *stem;     /* of a step's files: DIR/step-00000012.rank-3; NULL for others */
    char *texts[4]; /* host, run, mode, reason */
    bool has_info, is_loaded;

    struct marey_dumped_value *values;
    struct marey__value_place *places;
    size_t n_values, values_cap, places_cap;
    struct marey__numbers_file file; /* with the tensors of all; path NULL: none */
    uint64_t version, data_start;    /* of a manifest; where the tensors begin in the file */
    struct marey__arena memory;      /* what the values point to */
    void **owned;                    /* the same of marey__alloc */
    size_t n_owned, owned_cap;
};

struct marey_dumps {
    struct marey__dumpfile_step *steps;
    size_t n_steps, steps_cap;
    char **notes;
    size_t n_notes, notes_cap;
};

/* dumps.c */
void marey__dumps_note(struct marey_dumps *dumps, const char *fmt, ...) MAREY_PRINTF(2, 3);
/* dumps_find.c: fill `dumps` with the steps of a path. */
MAREY_WARN_UNUSED marey_status marey__steps_find(struct marey_dumps *dumps, const char *path);

/* step_values.c */
/* A copy in the step's memory; NULL without. */
void *marey__step_copy(struct marey__dumpfile_step *step, const void *bytes, size_t n);
/* Let the step own memory of marey__alloc from now on. On out of memory frees it and returns false. */
bool marey__step_own(struct marey__dumpfile_step *step, void *memory);
/* One more value, zeroed, at the end, with a copy of its path; `name` NULL: made of it. MAREY_ENOMEM. */
MAREY_WARN_UNUSED marey_status marey__step_add(struct marey__dumpfile_step *step,
                                               enum marey_dump_tree tree,
                                               const struct marey_dump_part *parts, size_t n_parts,
                                               const char *name);
struct marey_dumped_value *marey__step_last(struct marey__dumpfile_step *step);
/* Give the last value its type and sizes. MAREY_ENOMEM. */
MAREY_WARN_UNUSED marey_status marey__step_shape(struct marey__dumpfile_step *step,
                                                 const struct marey__shape *shape);
/* Say where they are in the step's file. */
void marey__step_inside(struct marey__dumpfile_step *step, size_t i, uint64_t at);
/* Forget the numbers of value `i` that were read for it; marey_dumps_get() reads them again. */
void marey__place_drop(struct marey__value_place *place);
/* Give the last value its file. MAREY_ENOMEM. */
MAREY_WARN_UNUSED marey_status marey__step_file(struct marey__dumpfile_step *step, const char *path);
/* Forget values and numbers. */
void marey__step_release(struct marey__dumpfile_step *step);
void marey__step_fini(struct marey__dumpfile_step *step);

/* step_load.c: read the values, if they are not there. */
MAREY_WARN_UNUSED marey_status marey__step_load(struct marey_dumps *dumps,
                                                struct marey__dumpfile_step *step);
/* Read the begin and the end of a manifest, if that is not done. */
MAREY_WARN_UNUSED marey_status marey__step_info(struct marey__dumpfile_step *step);

/* value_read.c: the numbers of value `i` from its files, or from the step's. Nothing is touched but that value's place. */
MAREY_WARN_UNUSED marey_status marey__value_read(struct marey__dumpfile_step *step, size_t i);
/* Where they lie in a file, if they do as they are; its path is NULL if not. */
MAREY_WARN_UNUSED marey_status marey__value_find(const struct marey__dumpfile_step *step, size_t i,
                                                 struct marey__numbers_file *file, uint64_t *at);
/* As marey_dumps_get(). Numbers in a file may stay in the lent `file`, for a comparison; see marey__dumps_close_value(). */
MAREY_WARN_UNUSED marey_status marey__dumps_open_value(marey_dumps *dumps, size_t i, size_t value,
                                                       struct marey__tensor_file *file,
                                                       struct marey_tensor *out);
void marey__dumps_close_value(marey_dumps *dumps, size_t i, size_t value,
                              struct marey__tensor_file *file);
/* Type and sizes of the last value by its file. */
MAREY_WARN_UNUSED marey_status marey__value_look(struct marey__dumpfile_step *step);

/* ---- files ---- */

/* What `text`, the first MAREY__NPY_HEAD bytes of a .npy of `len`, says. `data_at`: where its data begin. */
enum { MAREY__NPY_HEAD = (1 << 20) + 12 };
struct marey__npy {
    struct marey__shape shape;
    size_t data_at;
    bool is_fortran, is_swapped;
};
MAREY_WARN_UNUSED marey_status marey__npy_parse(const char *path, const char *text, size_t len,
                                                struct marey__npy *out);

/* Each tensor of a safetensors file; MAREY_OK to go on. */
typedef marey_status marey__safetensors_visitor(void *ctx, const char *name, size_t len,
                                                const struct marey__shape *shape, uint64_t offset);
/* Open a file with the bytes that marey__safetensors_parse() reads in `head`. */
MAREY_WARN_UNUSED marey_status marey__safetensors_open(const char *path,
                                                       struct marey__numbers_file *file,
                                                       struct marey__map *head);
/*
 * Check the whole header (entries tile the data, no name twice) and visit the entries in the order of their data. `text` has
 * the header, `len` is that of the file. `data_at`: where the data begin.
 */
MAREY_WARN_UNUSED marey_status marey__safetensors_parse(const char *path, const char *text,
                                                        size_t len, marey__safetensors_visitor *visit,
                                                        void *ctx, size_t *data_at);
/* A .bin's .meta.json. */
MAREY_WARN_UNUSED marey_status marey__bin_meta_parse(const char *path, const char *text, size_t len,
                                                     struct marey__shape *out);
/* All values of a JSON, as a tree. `folder` and `prefix` locate files of single values; NULL: there are none. */
MAREY_WARN_UNUSED marey_status marey__tree_parse(struct marey_dumps *dumps,
                                                 struct marey__dumpfile_step *step,
                                                 enum marey_dump_tree tree,
                                                 const struct marey__map *text, const char *path,
                                                 const char *folder, const char *prefix);
/* All lines of a manifest; a note reports an incomplete last line. The tensors are in the step's file. */
MAREY_WARN_UNUSED marey_status marey__manifest_parse(struct marey_dumps *dumps,
                                                     struct marey__dumpfile_step *step,
                                                     const struct marey__map *text);
/* The first line, into the step's info; where the second one begins. */
MAREY_WARN_UNUSED marey_status marey__manifest_head(struct marey__dumpfile_step *step,
                                                    const struct marey__map *text, const char **next);
#endif
