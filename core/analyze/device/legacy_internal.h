/*
 * legacy: itwinai's computation_fraction, by its own rules.
 *
 *   legacy_averages.c ── recordings to the rows of torch's key_averages()
 *   legacy_rows.c ── CSV, row by row; legacy_csv.c ── files of averages, which come from outside
 *   legacy_files.c ── which files
 *   legacy.c ── rows to fractions
 */
#ifndef MAREY_LEGACY_INTERNAL_H
#define MAREY_LEGACY_INTERNAL_H

#include "analyze/device/breakdown_internal.h"
#include "codec/codec_internal.h"
#include <marey/legacy.h>

/* What its rules call a name; computation and communication may both hold. */
enum marey__legacy_class {
    MAREY__LEGACY_OTHER = 0,
    MAREY__LEGACY_COMPUTATION = 1,
    MAREY__LEGACY_COMMUNICATION = 2,
    MAREY__LEGACY_PROFILER = 4, /* left out of the whole */
};
unsigned marey__legacy_class(const char *name, size_t len);

/* Sums of one strategy and number of GPUs, of one rank or of all. Microseconds. */
struct marey__legacy_group {
    const char *strategy;
    uint64_t num_gpus;
    int64_t rank; /* -1: all */
    double total, computation, communication, profiler;
    uint64_t n_rows;
};

struct marey__legacy {
    struct marey__names keys;
    struct marey__arena texts;
    struct marey__legacy_group *groups; /* by key */
    size_t groups_cap;
    uint64_t n_dropped; /* rows of files that lack something */
};

struct marey__legacy_row {
    const char *name, *strategy;
    size_t name_len, strategy_len;
    uint64_t num_gpus;
    int64_t rank; /* -1: not said */
    double self_us;
};

/* False without memory. Starts from zeroes. */
MAREY_WARN_UNUSED bool marey__legacy_take(struct marey__legacy *legacy,
                                          const struct marey__legacy_row *row);
MAREY_WARN_UNUSED marey_status marey__legacy_table(const struct marey__legacy *legacy,
                                                   marey_table **out);
void marey__legacy_fini(struct marey__legacy *legacy);

/* ---- legacy_rows.c: files of CSV with a line of names, of others too ---- */

enum { MAREY__CSV_FIELDS = 64, MAREY__CSV_COLUMNS = 32 };

struct marey__csv_field {
    const char *text; /* not NUL-terminated */
    size_t len;
};

/* What is to be read, and the row under way. The first five and `ctx` are the caller's; the rest begins zeroed. */
struct marey__csv {
    const char *path, *what; /* for sentences: "averages as itwinai writes" */
    const char *const *names; /* of columns that are wanted; those from `n_needed` on may be missing */
    size_t n_names, n_needed;
    bool (*take)(void *ctx, const struct marey__csv *csv); /* a row; false without memory */
    void *ctx;
    int state;              /* of the field under way */
    bool was_return;        /* the last byte ended a row as \r does; a \n behind it belongs to it */
    struct marey__buf text; /* fields of the row, one behind the other */
    size_t ends[MAREY__CSV_FIELDS];  /* of each in `text` */
    size_t n_fields;                 /* whole ones */
    bool has_names;                  /* the first row was there, with the wanted columns */
    int columns[MAREY__CSV_COLUMNS]; /* where they are; -1: not there */
};

/* Read all rows. MAREY_EFORMAT with a sentence; `*is_other` is set when the first line shows that it is another file. */
MAREY_WARN_UNUSED marey_status marey__csv_read(struct marey__csv *csv, marey__byte_source *bytes,
                                               bool *is_other);
/* A wanted column of the row; false when it is not there or empty, or is no finite number, or none that counts. */
bool marey__csv_find(const struct marey__csv *csv, size_t column, struct marey__csv_field *out);
/* These two in legacy_csv.c. pandas writes 4.0 where some rows have no value. */
bool marey__csv_number(const struct marey__csv *csv, size_t column, double *out);
bool marey__csv_count(const struct marey__csv *csv, size_t column, uint64_t *out);

/* ---- legacy_files.c ---- */

/* Add the rows of a file to `ctx`; `*is_other` is set when its first line shows that it is another kind of file. */
typedef marey_status marey__csv_reader(void *ctx, marey__byte_source *bytes, const char *path,
                                       bool *is_other);
/* Read a file, or every CSV below a folder, by name; those of another kind are passed over there. How many were not. */
MAREY_WARN_UNUSED marey_status marey__csv_read_path(const char *path, marey__csv_reader *read,
                                                    void *ctx, size_t *n_files);

/* ---- legacy_csv.c ---- */

/*
 * Add the rows of a file. MAREY_EFORMAT with a sentence about `path` when it is no file of averages; `*is_other` is set
 * when that shows in its first line, so that nothing was added.
 */
MAREY_WARN_UNUSED marey_status marey__legacy_read_csv(struct marey__legacy *legacy,
                                                      marey__byte_source *bytes, const char *path,
                                                      bool *is_other);

#endif
