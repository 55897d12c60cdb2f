/* CSV files with a line of column names: csv_reader.c. */
#ifndef MAREY_CODEC_CSV_READER_H
#define MAREY_CODEC_CSV_READER_H

#include "codec/codec_internal.h"

enum { MAREY__CSV_FIELDS = 64, MAREY__CSV_COLUMNS = 32 };

struct marey__csv_field {
    const char *text; /* not NUL-terminated */
    size_t len;
};

/* Columns to read, and the current row. The first five members and `ctx` are the caller's; the rest starts zeroed. */
struct marey__csv {
    const char *path, *what;  /* for error messages: "measurements" */
    const char *const *names; /* of columns; those from `n_needed` on may be missing */
    size_t n_names, n_needed;
    bool (*take)(void *ctx, const struct marey__csv *csv); /* a row; returns false on out of memory */
    void *ctx;
    int state;       /* of the current field */
    bool was_return; /* the last byte was a \r that ended a row; a \n after it belongs to it */
    struct marey__buf text;          /* fields of the row, one after the other */
    size_t ends[MAREY__CSV_FIELDS];  /* of each in `text` */
    size_t n_fields;                 /* whole ones */
    bool has_names;                  /* the first row was there, with the wanted columns */
    int columns[MAREY__CSV_COLUMNS]; /* where they are; -1: not there */
};

/* Read all rows. MAREY_EFORMAT with a sentence about `path`. */
MAREY_WARN_UNUSED marey_status marey__csv_read(struct marey__csv *csv, marey__byte_source *bytes);
/* A column of the row. Returns false when it is missing or empty, or not a finite number, or not a whole one from 0. */
bool marey__csv_find(const struct marey__csv *csv, size_t column, struct marey__csv_field *out);
bool marey__csv_number(const struct marey__csv *csv, size_t column, double *out);
/* Also 4.0, which pandas writes where other rows have no value. */
bool marey__csv_count(const struct marey__csv *csv, size_t column, uint64_t *out);

#endif
