/*
 * import: files of other tools become recordings, so that every analysis and every export works on them.
 *
 *   bytes (codec: plain or gzip) -- an importer (kineto/, stacks/) -- sink/ -- logs of a recording
 *
 *   import.c         the registry of formats; detection; into a directory or a temporary recording
 *   import_files.c   one file, or a folder with one file per rank
 *   import_read.c    one file through its importer
 *
 * Input: untrusted files. Output: logs like those of record/. A format is one struct marey__import_format, known here
 * only by its symbol in the registry. Does not know analyses; they do not know which formats exist.
 */
#ifndef MAREY_IMPORT_INTERNAL_H
#define MAREY_IMPORT_INTERNAL_H

#include "codec/internal.h"
#include "import/sink/internal.h"

/* ---- import.c ---- */

/* Whether marey_open would import the file. */
bool marey__import_knows(const char *path);

/* ---- importers: each reads one file ---- */

/* Input of an importer. */
struct marey__import {
    marey__sink *sink;
    struct marey__byte_source *bytes; /* from the start of the file, decompressed */
    const char *path;                 /* for messages and names */
    uint32_t number;                  /* index of this file in the recording, from 0 */
    const struct marey_import_options *options;
};

/*
 * A format. `looks_like` checks the first decompressed bytes of a file; the first format of the registry that returns
 * true reads it. `read` returns MAREY_EFORMAT with a message if nothing can be read; for a damaged file it keeps what
 * it could read and adds a note with marey__sink_note.
 */
struct marey__import_format {
    struct marey_import_format info; /* for help, docs and messages */
    bool (*looks_like)(const char *bytes, size_t len);
    marey_status (*read)(struct marey__import *import);
};

/*
 * The registry. An importer is a file of its own that defines marey__import_NAME, and its name here. Detection tries
 * formats in this order: those recognized by their first bytes come before those that match many other files. In a
 * folder, the last format reads files only if no other does.
 */
#define MAREY__IMPORT_FORMATS(X) X(speedscope) X(pstats) X(chrome) X(austin) X(collapsed)

#define MAREY__DECLARE_FORMAT(name) extern const struct marey__import_format marey__import_##name;
MAREY__IMPORT_FORMATS(MAREY__DECLARE_FORMAT)
#undef MAREY__DECLARE_FORMAT

/* The files of one import, with folders expanded, each with its format and the rank in its name. */

struct marey__import_file {
    const char *path;
    const struct marey__import_format *format;
    marey__byte_source *bytes; /* of a pipe, which cannot be reopened; else NULL */
    uint64_t size;             /* on disk */
    int32_t named_rank;        /* from its name, or its place among the others; -1: unknown */
    /* After reading. */
    marey_status status;
    char failure[512];
    int32_t rank;
    uint64_t n_events, n_bytes;
    double share; /* progress, 0..1; guarded by the jobs' lock */
};

struct marey__import_files {
    struct marey__import_file *all;
    size_t n, cap;
    struct marey__arena texts; /* storage of the paths */
    bool is_numbered;          /* no name has a rank: numbered in order */
};

/* All formats, NULL after the last, in the order of detection. */
extern const struct marey__import_format *const marey__import_formats[];
/* By the first bytes; NULL if no format matches. */
const struct marey__import_format *marey__import_detect(const char *bytes, size_t len);
/* The rank in the name of a file, or -1. */
int32_t marey__import_rank_of_name(const char *path, bool is_one_of_several);

/* List the files of `paths`. On failure, `files` still needs fini. */
MAREY_WARN_UNUSED marey_status marey__import_files_list(struct marey__import_files *files,
                                                        const char *const *paths, size_t n,
                                                        const char *from);
void marey__import_files_fini(struct marey__import_files *files);

/* Read all of them into the store, several in parallel. */
MAREY_WARN_UNUSED marey_status marey__import_files_read(struct marey__import_files *files,
                                                        struct marey__log_store *store,
                                                        const struct marey_import_options *options);

#endif
