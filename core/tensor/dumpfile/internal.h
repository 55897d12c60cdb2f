/*
 * dumpfile: reads dumps, and tensor files of any tool.
 *
 *   dumps.c, dumps_find.c     steps below a path, read on demand (<marey/dumpfile.h>)
 *   step_values.c, step_load.c   the values of a step and where their numbers are
 *   manifest_read.c, tree_read.c   manifests and trees
 *   value_read.c, safetensors_read.c, npy_read.c   the numbers of a value
 *   json_numbers.c            nested lists of numbers as a tensor
 *   tensor_out.c              one tensor to a stream, in a format of other tools
 *   file_map.c                files in memory, parts of large ones
 *
 * Input: untrusted files. Output: values. Does not know the program that wrote a dump, nor comparisons.
 */
#ifndef MAREY_TENSOR_DUMPFILE_INTERNAL_H
#define MAREY_TENSOR_DUMPFILE_INTERNAL_H

#include "codec/internal.h"
#include "tensor/container/internal.h"
#include "tensor/kernels/internal.h"
#include <marey/dumpfile.h>

/* ---- file_map.c ---- */

/* Zeros after every text, so that parsers need not check for the end at each byte. */
enum { MAREY__TEXT_PADDING = MAREY__JSON_PADDING };

struct marey__map {
    char *data; /* NULL: empty */
    size_t len;
    size_t mapped; /* bytes to unmap */
};
/* Reads the file, followed by MAREY__TEXT_PADDING zeros. MAREY_EIO; MAREY_EFORMAT if not regular or truncated meanwhile. */
MAREY_WARN_UNUSED marey_status marey__map_open(const char *path, struct marey__map *out);
/* The same for text, which ends at the first zero byte. */
MAREY_WARN_UNUSED marey_status marey__map_text(const char *path, struct marey__map *out);
void marey__map_close(struct marey__map *map);

/* A file of numbers, of which parts are read on demand; remembers its state when it was first opened. */
struct marey__numbers_file {
    const char *path; /* lent */
    uint64_t dev, ino, len;
};
/* Reads its first bytes, up to `n_head`, into `head` (unless 0). */
MAREY_WARN_UNUSED marey_status marey__numbers_open(const char *path, size_t n_head,
                                                   struct marey__numbers_file *file,
                                                   struct marey__map *head);
/* Opens it again. MAREY_EFORMAT if it has been replaced. */
MAREY_WARN_UNUSED marey_status marey__numbers_reopen(const struct marey__numbers_file *file, int *fd);
/* MAREY_EFORMAT also if it was truncated. */
MAREY_WARN_UNUSED marey_status marey__numbers_load(const struct marey__numbers_file *file,
                                                   uint64_t at, void *into, uint64_t n);

/* ---- value_read.c: a tensor as described by a file ---- */

struct marey__shape {
    enum marey_dtype dtype;
    uint32_t rank;
    int64_t sizes[MAREY_MAX_RANK];
};
/* Its size in bytes; false beyond 63 bits. */
bool marey__shape_bytes(const struct marey__shape *shape, uint64_t *out);
/* Reads an array of sizes; false with a mistake in `json`. */
bool marey__shape_read(struct marey__json *json, struct marey__shape *out);

/* The parser rules for the JSON of dumps. */
enum { MAREY__DUMP_JSON = MAREY__JSON_STRICT | MAREY__JSON_SURROGATES };

/* ---- json_numbers.c ---- */

/* Nested lists of numbers, of equal length at each depth. */
struct marey__numbers {
    struct marey__shape shape; /* MAREY_I64, MAREY_U64, MAREY_F64 or MAREY_BOOL; MAREY_F64 if empty */
    void *data;                /* free with marey__free; NULL if there are none */
};
enum marey__numbers_result {
    MAREY__NUMBERS_NONE, /* it contains something else; nothing is consumed */
    MAREY__NUMBERS_TENSOR,
    MAREY__NUMBERS_NO_MEMORY,
};
/*
 * At '[' or a number. NaN and infinities are words or strings; null is NaN if there is a number too. `is_f32`: doubles
 * are computed so that rounding them to float32 is correct.
 */
enum marey__numbers_result marey__numbers_read(struct marey__json *json, bool is_f32,
                                               struct marey__numbers *out);
/*
 * Converts the numbers to the nearest ones of `dtype`, with these sizes; pairs may become one element. MAREY_EFORMAT if
 * they do not fit.
 */
MAREY_WARN_UNUSED marey_status marey__numbers_convert(struct marey__numbers *numbers,
                                                      const struct marey__shape *wanted);

/* ---- data read of a step ---- */

/* The location of a value's numbers. */
struct marey__value_place {
    bool has_numbers; /* marey_dumps_get() has numbers to return or read */
    bool is_read;     /* in `tensor` */
    bool is_inside;   /* in the step's own file, from byte `at` */
    uint32_t n_lent;  /* gets that were not released */
    uint64_t at;
    struct marey_tensor tensor; /* in `numbers`, or in the step's memory */
    void *numbers;              /* free with marey__free; NULL: not read, or in the step's memory */
    int64_t *sizes;             /* free with marey__free; of images, whose files have them */
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
    char *stem;     /* prefix of a step's files: DIR/step-00000012.rank-3; NULL for others */
    char *texts[4]; /* host, run, mode, reason */
    bool has_info, is_loaded;

    struct marey_dumped_value *values;
    struct marey__value_place *places;
    size_t n_values, values_cap, places_cap;
    struct marey__numbers_file file; /* the file with all tensors; path NULL: none */
    uint64_t version, data_start;    /* of a manifest; start of the tensors in the file */
    struct marey__arena memory;      /* the values' data */
    void **owned;                    /* more of it, from marey__alloc */
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
/* dumps_find.c: adds the steps of a path to `dumps`. */
MAREY_WARN_UNUSED marey_status marey__steps_find(struct marey_dumps *dumps, const char *path);

/* step_values.c */
/* A copy in the step's memory; NULL on out of memory. */
void *marey__step_copy(struct marey__dumpfile_step *step, const void *bytes, size_t n);
/* Passes ownership of memory from marey__alloc to the step. On out of memory frees it and returns false. */
bool marey__step_own(struct marey__dumpfile_step *step, void *memory);
/* Appends a zeroed value with a copy of its path; `name` NULL: derived from the path. MAREY_ENOMEM. */
MAREY_WARN_UNUSED marey_status marey__step_add(struct marey__dumpfile_step *step,
                                               enum marey_dump_tree tree,
                                               const struct marey_dump_part *parts, size_t n_parts,
                                               const char *name);
struct marey_dumped_value *marey__step_last(struct marey__dumpfile_step *step);
/* Sets the type and sizes of the last value. MAREY_ENOMEM. */
MAREY_WARN_UNUSED marey_status marey__step_shape(struct marey__dumpfile_step *step,
                                                 const struct marey__shape *shape);
/* Sets the offset of its numbers in the step's file. */
void marey__step_set_offset(struct marey__dumpfile_step *step, size_t i, uint64_t at);
/* Drops the numbers that were read for value `i`; marey_dumps_get() reads them again. */
void marey__place_drop(struct marey__value_place *place);
/* Sets the file of the last value. MAREY_ENOMEM. */
MAREY_WARN_UNUSED marey_status marey__step_file(struct marey__dumpfile_step *step, const char *path);
/* Drops values and numbers. */
void marey__step_release(struct marey__dumpfile_step *step);
void marey__step_fini(struct marey__dumpfile_step *step);

/* step_load.c: reads the values unless that is done. */
MAREY_WARN_UNUSED marey_status marey__step_load(struct marey_dumps *dumps,
                                                struct marey__dumpfile_step *step);
/* Reads the first and last lines of a manifest, unless that is done. */
MAREY_WARN_UNUSED marey_status marey__step_info(struct marey__dumpfile_step *step);

/* value_read.c: reads the numbers of value `i` from its files, or from the step's. Changes only that value's place. */
MAREY_WARN_UNUSED marey_status marey__value_read(struct marey__dumpfile_step *step, size_t i);
/* Finds them in a file, if stored there unconverted; otherwise its path is NULL. */
MAREY_WARN_UNUSED marey_status marey__value_find(const struct marey__dumpfile_step *step, size_t i,
                                                 struct marey__numbers_file *file, uint64_t *at);
/* Like marey_dumps_get(). Numbers in a file may stay in the lent `file`, for a comparison; see marey__dumps_close_value(). */
MAREY_WARN_UNUSED marey_status marey__dumps_open_value(marey_dumps *dumps, size_t i, size_t value,
                                                       struct marey__tensor_file *file,
                                                       struct marey_tensor *out);
void marey__dumps_close_value(marey_dumps *dumps, size_t i, size_t value,
                              struct marey__tensor_file *file);
/* Sets the type and sizes of the last value from its file. */
MAREY_WARN_UNUSED marey_status marey__value_look(struct marey__dumpfile_step *step);

/* ---- files ---- */

/* Parses `text`, the first MAREY__NPY_HEAD bytes of a .npy of `len`. `data_at`: start of the data. */
enum { MAREY__NPY_HEAD = (1 << 20) + 12 };
struct marey__npy {
    struct marey__shape shape;
    size_t data_at;
    bool is_fortran, is_swapped;
};
MAREY_WARN_UNUSED marey_status marey__npy_parse(const char *path, const char *text, size_t len,
                                                struct marey__npy *out);

/* Called for each tensor of a safetensors file; return MAREY_OK to continue. */
typedef marey_status marey__safetensors_visitor(void *ctx, const char *name, size_t len,
                                                const struct marey__shape *shape, uint64_t offset);
/* Opens a file and reads the bytes that marey__safetensors_parse() needs into `head`. */
MAREY_WARN_UNUSED marey_status marey__safetensors_open(const char *path,
                                                       struct marey__numbers_file *file,
                                                       struct marey__map *head);
/*
 * Checks the whole header (entries without gaps, unique names) and visits the entries in the order of their data.
 * `text` is the header, `len` the length of the file. `data_at`: start of the data.
 */
MAREY_WARN_UNUSED marey_status marey__safetensors_parse(const char *path, const char *text,
                                                        size_t len, marey__safetensors_visitor *visit,
                                                        void *ctx, size_t *data_at);
/* Parses a .bin's .meta.json. */
MAREY_WARN_UNUSED marey_status marey__bin_meta_parse(const char *path, const char *text, size_t len,
                                                     struct marey__shape *out);
/* Adds all values of a JSON as a tree. `folder` and `prefix` locate files of single values; NULL: there are none. */
MAREY_WARN_UNUSED marey_status marey__tree_parse(struct marey_dumps *dumps,
                                                 struct marey__dumpfile_step *step,
                                                 enum marey_dump_tree tree,
                                                 const struct marey__map *text, const char *path,
                                                 const char *folder, const char *prefix);
/* Reads all lines of a manifest; a note reports an incomplete last line. The tensors are in the step's file. */
MAREY_WARN_UNUSED marey_status marey__manifest_parse(struct marey_dumps *dumps,
                                                     struct marey__dumpfile_step *step,
                                                     const struct marey__map *text);
/* Reads the first line into the step's info; `next` is the start of the second one. */
MAREY_WARN_UNUSED marey_status marey__manifest_head(struct marey__dumpfile_step *step,
                                                    const struct marey__map *text, const char **next);
#endif
