/*
 * import: files of other tools become recordings, so that every analysis and every export works on them.
 *
 *   bytes (codec: plain or gzip) -- an importer (kineto/, stacks/) -- sink/ -- logs of a recording
 *
 *   import.c         the list of formats; which one a file is; into a directory or a temporary recording
 *   import_files.c   one file, or a folder with one file per rank
 *   import_read.c    one file through its importer
 *
 * Input: files that anyone may have written. Output: logs like those of record/. A format is one struct
 * marey__import_format; no later folder knows which formats exist.
 */
#ifndef MAREY_IMPORT_INTERNAL_H
#define MAREY_IMPORT_INTERNAL_H

#include "codec/internal.h"
#include "import/sink/internal.h"

/* ---- import.c ---- */

/* Whether the file is one that marey_open would import. */
bool marey__import_knows(const char *path);

/* ---- importers: each reads one file ---- */

/* What an importer works on. */
struct marey__import {
    marey__sink *sink;
    struct marey__byte_source *bytes; /* from the begin of the file, unpacked */
    const char *path;                 /* for sentences and names */
    uint32_t number;                  /* of this file among those of the recording, from 0 */
    const struct marey_import_options *options;
};

/*
 * A format. `looks_like` judges by the first bytes, unpacked, of which there may be fewer than the file has; the first
 * format of the registry that returns true reads the file. `read` returns MAREY_EFORMAT with a sentence where nothing can
 * be read; what could be read of a damaged file stays, with a note by marey__sink_note.
 */
struct marey__import_format {
    struct marey_import_format info; /* what help, docs and messages say about it */
    bool (*looks_like)(const char *bytes, size_t len);
    marey_status (*read)(struct marey__import *import);
};

/*
 * The registry: an importer is its own file, which defines marey__import_NAME, and its name here. Detection asks in this
 * order: formats known by their first bytes come before those that look like much else. Of a folder, the last format
 * reads files only where no other does.
 */
#define MAREY__IMPORT_FORMATS(X) X(speedscope) X(pstats) X(chrome) X(austin) X(collapsed)

#define MAREY__DECLARE_FORMAT(name) extern const struct marey__import_format marey__import_##name;
MAREY__IMPORT_FORMATS(MAREY__DECLARE_FORMAT)
#undef MAREY__DECLARE_FORMAT

/* The files of one import: what was named, folders opened, each with its format and, where its name reports, its rank. */

struct marey__import_file {
    const char *path;
    const struct marey__import_format *format;
    marey__byte_source *bytes; /* of a pipe, which cannot be opened again; else NULL */
    uint64_t size;             /* on disk */
    int32_t named_rank;        /* by its name, or by its place among the others; -1: not known */
    /* Once it was read. */
    marey_status status;
    char failure[512];
    int32_t rank;
    uint64_t n_events, n_bytes;
    double share; /* of the way, 0..1; guarded by the jobs' lock */
};

struct marey__import_files {
    struct marey__import_file *all;
    size_t n, cap;
    struct marey__arena texts; /* of the paths */
    bool is_numbered;          /* neither names say ranks: they are numbered in order */
};

/* Every format, NULL after the last; detection asks in this order. */
extern const struct marey__import_format *const marey__import_formats[];
/* By its first bytes; NULL when it is none. */
const struct marey__import_format *marey__import_detect(const char *bytes, size_t len);
/* The rank that the name of a file says, or -1. */
int32_t marey__import_rank_of_name(const char *path, bool is_one_of_several);

/* List the files of `paths`. On failure there is a sentence, and `files` is left for fini. */
MAREY_WARN_UNUSED marey_status marey__import_files_list(struct marey__import_files *files,
                                                        const char *const *paths, size_t n,
                                                        const char *from);
void marey__import_files_fini(struct marey__import_files *files);

/* Read all of them into the store, several at a time. */
MAREY_WARN_UNUSED marey_status marey__import_files_read(struct marey__import_files *files,
                                                        struct marey__log_store *store,
                                                        const struct marey_import_options *options);

#endif
