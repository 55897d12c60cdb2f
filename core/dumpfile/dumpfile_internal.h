/*
 * dumpfile: dumps read back, and files of tensors by whoever wrote them. Bytes are trusted in nothing.
 *
 *   dumps.c ── <kymo/dumpfile.h>: a list of steps, each read when it is asked for
 *   dumps_find.c ── the steps that are below a path
 *   step_values.c ── what is held of a step: its values and where their numbers lie
 *     step_load.c ── filled by the kind of step; manifest_read.c, manifest_value.c, tree_read.c ── its texts
 *     value_read.c ── the numbers of one value;  safetensors_read.c, npy_read.c, bin_read.c ── files of tensors
 *   json_cursor.c ── JSON, strictly;  json_numbers.c ── nested lists of numbers as a tensor
 *   number_read.c ── decimal numbers, exactly and fast
 *   file_map.c ── a file in memory, padded with zeros; parts of large ones
 */
#ifndef KYMO_DUMPFILE_INTERNAL_H
#define KYMO_DUMPFILE_INTERNAL_H

#include "base/base_internal.h"
#include "container/container_internal.h"
#include "tensor/tensor_internal.h"
#include <kymo/dumpfile.h>

/* ---- file_map.c ---- */

/* Zeros that stand behind every text that is read here, so that readers need not look where it ends at each byte. */
enum { KYMO__TEXT_PADDING = 64 };

struct kymo__map {
    char *data; /* NULL: empty */
    size_t len;
    size_t mapped; /* bytes to give back */
};
/*
 * Map the whole file for reading, followed by at least KYMO__TEXT_PADDING zeros. KYMO_EIO; KYMO_EFORMAT for anything but a regular file and
 * for one that is truncated meanwhile.
 */
KYMO_WARN_UNUSED kymo_status kymo__map_open(const char *path, struct kymo__map *out);
/* The same of a text, which ends with the first zero byte. */
KYMO_WARN_UNUSED kymo_status kymo__map_text(const char *path, struct kymo__map *out);
void kymo__map_close(struct kymo__map *map);

/* A file of numbers, of which parts are read when they are wanted; as it was when it was first opened. */
struct kymo__numbers_file {
    const char *path; /* lent */
    uint64_t dev, ino, len;
};
/* Its first bytes, up to `n_head`, into `head` (unless 0). */
KYMO_WARN_UNUSED kymo_status kymo__numbers_open(const char *path, size_t n_head,
                                                struct kymo__numbers_file *file,
                                                struct kymo__map *head);
/* A descriptor of it. KYMO_EFORMAT when it is another file by now. */
KYMO_WARN_UNUSED kymo_status kymo__numbers_reopen(const struct kymo__numbers_file *file, int *fd);
/* KYMO_EFORMAT also when it is shorter by now. */
KYMO_WARN_UNUSED kymo_status kymo__numbers_load(const struct kymo__numbers_file *file, uint64_t at,
                                                void *into, uint64_t n);

/* ---- number_read.c ---- */

struct kymo__number {
    double value;
    uint64_t digits; /* of an integer: its magnitude */
    bool is_negative;
    bool is_integer; /* digits alone, and at most UINT64_MAX */
};
/* The JSON number at `p`, the nearest double; its end, NULL for what is none. Something that is no digit stands behind. */
const char *kymo__number_read(const char *p, struct kymo__number *out);
/*
 * The nearest float32 to a number that was read. It is that of the double, unless the double lies halfway between two, to
 * which it may have been rounded: 7.038531e-26 is such a one.
 */
float kymo__number_read_f32(const char *p);

/* ---- json_cursor.c ---- */

enum { KYMO__CURSOR_DEPTH = 256 };

/* Where a reader stands in a text of JSON. */
struct kymo__cursor {
    const char *start, *at, *end; /* lent; zeros behind `end` */
    struct kymo__buf text;        /* the latest string, with a NUL behind it */
    const char *mistake;          /* a few words; NULL: none so far */
};
void kymo__cursor_init(struct kymo__cursor *cursor, const char *text, size_t len);
void kymo__cursor_fini(struct kymo__cursor *cursor);
/* Note the first mistake. Returns false. */
bool kymo__cursor_fail(struct kymo__cursor *cursor, const char *mistake);
/* The first character that is no blank; 0 at the end. */
char kymo__cursor_peek(struct kymo__cursor *cursor);
/* Take this character, or this word. */
bool kymo__cursor_take(struct kymo__cursor *cursor, char c);
bool kymo__cursor_word(struct kymo__cursor *cursor, const char *word);
/* Read a string into `text`. */
bool kymo__cursor_string(struct kymo__cursor *cursor);
bool kymo__cursor_number(struct kymo__cursor *cursor, struct kymo__number *out);
/* An integer from 0 to INT64_MAX. */
bool kymo__cursor_count(struct kymo__cursor *cursor, uint64_t *out);
/* Go past a value. */
bool kymo__cursor_skip(struct kymo__cursor *cursor);
/*
 * Behind '{': go to the next key, which is in `text`, its colon taken; behind '[': to the next item. False at the end, which is
 * taken, and for a mistake.
 */
bool kymo__cursor_next_key(struct kymo__cursor *cursor, bool *is_first);
bool kymo__cursor_next_item(struct kymo__cursor *cursor, bool *is_first);
/* A key and what reads its value. */
struct kymo__key {
    const char *name; /* NULL: the end of a list of them */
    bool (*read)(struct kymo__cursor *cursor, void *into);
};
/* Read an object by its keys; those that are not known are passed over, so that later versions may have more. */
bool kymo__cursor_object(struct kymo__cursor *cursor, const struct kymo__key *keys, void *into);
/* Nothing but blanks is left. */
bool kymo__cursor_done(struct kymo__cursor *cursor);
/* The sentence: "PATH is no WHAT: MISTAKE at byte N"; of memory that ran out, that. */
kymo_status kymo__cursor_status(const struct kymo__cursor *cursor, const char *path,
                                const char *what);

/* ---- a tensor as a file describes it ---- */

struct kymo__shape {
    enum kymo_dtype dtype;
    uint32_t rank;
    int64_t sizes[KYMO_MAX_RANK];
};
/* Its bytes; false when they are beyond 63 bits. */
bool kymo__shape_bytes(const struct kymo__shape *shape, uint64_t *out);
/* Read a list of sizes; false with the cursor's mistake. */
bool kymo__shape_read(struct kymo__cursor *cursor, struct kymo__shape *out);

/* ---- json_numbers.c ---- */

/* Nested lists of numbers, all of the same length at each depth. */
struct kymo__numbers {
    struct kymo__shape shape; /* KYMO_I64, KYMO_U64, KYMO_F64 or KYMO_BOOL; of an empty one KYMO_F64 */
    void *data;               /* kymo__free; NULL where there are none */
};
enum kymo__numbers_result {
    KYMO__NUMBERS_NONE, /* something else is in there; the cursor stands where it was */
    KYMO__NUMBERS_TENSOR,
    KYMO__NUMBERS_NO_MEMORY,
};
/*
 * At '[' or a number. NaN and infinities are words or strings; null is NaN where there is a number too. `is_f32`: doubles are
 * such that they can be rounded to float32 without harm.
 */
enum kymo__numbers_result kymo__numbers_read(struct kymo__cursor *cursor, bool is_f32,
                                             struct kymo__numbers *out);
/*
 * The same numbers as `dtype` with these sizes, each the nearest; pairs become one element where they are. KYMO_EFORMAT
 * when they do not fit.
 */
KYMO_WARN_UNUSED kymo_status kymo__numbers_convert(struct kymo__numbers *numbers,
                                                   const struct kymo__shape *wanted);

/* ---- what is read of a step ---- */

/* Where a value's numbers are. */
struct kymo__place {
    bool has_numbers; /* kymo_dumps_get() has something to give or to read */
    bool is_read;     /* `tensor` is it */
    bool is_inside;   /* they are in the step's own file, from byte `at` on */
    uint32_t n_lent;  /* gets that were not given back */
    uint64_t at;
    struct kymo_tensor tensor; /* in `numbers`, or in memory of the step */
    void *numbers;             /* kymo__free; NULL: not read, or in memory of the step */
    int64_t *sizes;            /* kymo__free; of pictures, whose files tell them */
};

struct kymo__step {
    struct kymo_dumped_step info;
    enum kymo__source {
        KYMO__SOURCE_MANIFEST,
        KYMO__SOURCE_ACCVLAB,
        KYMO__SOURCE_SAFETENSORS,
        KYMO__SOURCE_NPY,
        KYMO__SOURCE_JSON,
        KYMO__SOURCE_PNG,
        KYMO__SOURCE_BIN,
    } source;
    char *path;     /* the manifest, the directory, or the file */
    char *stem;     /* of a step's files: DIR/step-00000012.rank-3; NULL for others */
    char *texts[4]; /* host, run, mode, reason */
    bool has_info, is_loaded;

    struct kymo_dumped_value *values;
    struct kymo__place *places;
    size_t n_values, values_cap, places_cap;
    struct kymo__numbers_file file; /* with the tensors of all; path NULL: none */
    struct kymo__kept *kept;        /* memory that goes with the values, the latest first */
};

struct kymo_dumps {
    struct kymo__step *steps;
    size_t n_steps, steps_cap;
    char **notes;
    size_t n_notes, notes_cap;
};

/* dumps.c */
void kymo__dumps_note(struct kymo_dumps *dumps, const char *fmt, ...) KYMO_PRINTF(2, 3);
/* dumps_find.c: fill `dumps` with the steps of a path. */
KYMO_WARN_UNUSED kymo_status kymo__steps_find(struct kymo_dumps *dumps, const char *path);

/* step_values.c */
/* Memory of the step, zeroed; NULL without. */
void *kymo__step_keep(struct kymo__step *step, size_t size);
/* A copy with a NUL behind it. */
char *kymo__step_text(struct kymo__step *step, const char *text, size_t len);
/* Let the step own memory of kymo__alloc from now on; without memory it is freed, and the answer is false. */
bool kymo__step_own(struct kymo__step *step, void *memory);
/* One more value, zeroed, at the end, with a copy of its path; `name` NULL: made of it. KYMO_ENOMEM. */
KYMO_WARN_UNUSED kymo_status kymo__step_add(struct kymo__step *step, enum kymo_dump_tree tree,
                                            const struct kymo_dump_part *parts, size_t n_parts,
                                            const char *name);
struct kymo_dumped_value *kymo__step_last(struct kymo__step *step);
/* Give the last value its type and sizes. KYMO_ENOMEM. */
KYMO_WARN_UNUSED kymo_status kymo__step_shape(struct kymo__step *step,
                                              const struct kymo__shape *shape);
/* Give value `i`, which has its type and sizes, its numbers, in memory of the step. */
void kymo__step_numbers(struct kymo__step *step, size_t i, const void *data);
/* Say where they are in the step's file. */
void kymo__step_inside(struct kymo__step *step, size_t i, uint64_t at);
/* Forget the numbers of value `i` that were read for it; kymo_dumps_get() reads them again. */
void kymo__place_drop(struct kymo__place *place);
/* Give the last value one more file. KYMO_ENOMEM. */
KYMO_WARN_UNUSED kymo_status kymo__step_files(struct kymo__step *step, char *const *paths, size_t n);
/* Forget values and numbers. */
void kymo__step_release(struct kymo__step *step);
void kymo__step_fini(struct kymo__step *step);

/* step_load.c: read the values, if they are not there. */
KYMO_WARN_UNUSED kymo_status kymo__step_load(struct kymo_dumps *dumps, struct kymo__step *step);
/* Read the begin and the end of a manifest, if that is not done. */
KYMO_WARN_UNUSED kymo_status kymo__step_info(struct kymo__step *step);

/* value_read.c: the numbers of value `i` from its files, or from the step's. Nothing is touched but that value's place. */
KYMO_WARN_UNUSED kymo_status kymo__value_read(struct kymo__step *step, size_t i);
/* Where they lie in a file, if they do as they are; its path is NULL if not. */
KYMO_WARN_UNUSED kymo_status kymo__value_find(const struct kymo__step *step, size_t i,
                                              struct kymo__numbers_file *file, uint64_t *at);
/*
 * As kymo_dumps_get(), for a comparison: numbers that lie in a file stay there, and `file`, which the caller lends, is the
 * tensor's. kymo__dumps_close_value() gives both back.
 */
KYMO_WARN_UNUSED kymo_status kymo__dumps_open_value(kymo_dumps *dumps, size_t i, size_t value,
                                                    struct kymo__tensor_file *file,
                                                    struct kymo_tensor *out);
void kymo__dumps_close_value(kymo_dumps *dumps, size_t i, size_t value,
                             struct kymo__tensor_file *file);
/* Type and sizes of the last value by its file, where nothing else tells. */
KYMO_WARN_UNUSED kymo_status kymo__value_look(struct kymo__step *step);

/* ---- files ---- */

/* What `text`, the first KYMO__NPY_HEAD bytes of a .npy of `len`, says. `data_at`: where its data begin. */
enum { KYMO__NPY_HEAD = (1 << 20) + 12 };
struct kymo__npy {
    struct kymo__shape shape;
    size_t data_at;
    bool is_fortran, is_swapped;
};
KYMO_WARN_UNUSED kymo_status kymo__npy_parse(const char *path, const char *text, size_t len,
                                             struct kymo__npy *out);

/* Each tensor of a safetensors file; KYMO_OK to go on. */
typedef kymo_status kymo__safetensors_visitor(void *ctx, const char *name, size_t len,
                                              const struct kymo__shape *shape, uint64_t offset);
/* How many bytes of a file kymo__safetensors_parse() reads, by its first 8. */
size_t kymo__safetensors_head(const char *text, size_t len);
/*
 * Check the whole header (entries tile the data, no name twice) and visit the entries in the order of their data. `text` has
 * the header, `len` is that of the file. `data_at`: where the data begin.
 */
KYMO_WARN_UNUSED kymo_status kymo__safetensors_parse(const char *path, const char *text, size_t len,
                                                     kymo__safetensors_visitor *visit, void *ctx,
                                                     size_t *data_at);
/* A .bin's .meta.json. */
KYMO_WARN_UNUSED kymo_status kymo__bin_meta_parse(const char *path, const char *text, size_t len,
                                                  struct kymo__shape *out);
/* All values of a JSON, as a tree. `folder` and `prefix` tell where side files would be; NULL: nowhere. */
KYMO_WARN_UNUSED kymo_status kymo__tree_parse(struct kymo_dumps *dumps, struct kymo__step *step,
                                              enum kymo_dump_tree tree,
                                              const struct kymo__map *text, const char *path,
                                              const char *folder, const char *prefix);
/* All lines of a manifest; a note reports an incomplete last line. The tensors are in the step's file. */
KYMO_WARN_UNUSED kymo_status kymo__manifest_parse(struct kymo_dumps *dumps, struct kymo__step *step,
                                                  const struct kymo__map *text);
/* The first line, into the step's info; where the data begin. */
KYMO_WARN_UNUSED kymo_status kymo__manifest_head(struct kymo__step *step, const char *text,
                                                 size_t len, uint64_t *data_start);
/*
 * manifest_value.c: a line of a value, or the last one, which sets *is_end. False with the cursor's mistake. The step's
 * tensors begin with byte `data_start` of its file.
 */
bool kymo__manifest_value_read(struct kymo__cursor *cursor, struct kymo_dumps *dumps,
                               struct kymo__step *step, uint64_t data_start, bool *is_end);

#endif
