/* The files of one import: what was named, folders opened, each with its format and, where its name tells, its rank. */
#ifndef KYMO_IMPORT_FILES_H
#define KYMO_IMPORT_FILES_H

#include "codec/codec_internal.h"
#include "import/import_internal.h"

struct kymo__import_file {
    char *path;
    const struct kymo__import_format *format;
    kymo__byte_source *bytes; /* of a pipe, which cannot be opened again; else NULL */
    uint64_t size;            /* on disk */
    int32_t named_rank;       /* by its name, or by its place among the others; -1: not known */
    /* Once it was read. */
    kymo_status status;
    char failure[512];
    int32_t rank;
    uint64_t n_events, n_bytes;
    double share; /* of the way, 0..1; guarded by the jobs' lock */
};

struct kymo__import_files {
    struct kymo__import_file *all;
    size_t n, cap;
    bool is_numbered; /* neither names say ranks: they are numbered in order */
};

/* Every format, NULL behind the last; detection asks in this order. */
extern const struct kymo__import_format *const kymo__import_formats[];
/* The words of all, "a Kineto or Chrome trace, ... and ...". */
void kymo__import_words(struct kymo__buf *out);
/* By its first bytes; NULL when it is none. */
const struct kymo__import_format *kymo__import_detect(const char *path, const char *bytes,
                                                      size_t len);
/* The rank that the name of a file says, or -1. */
int32_t kymo__import_rank_of_name(const char *path, bool is_one_of_several);

/* List the files of `paths`. On failure there is a sentence, and `files` is left for fini. */
KYMO_WARN_UNUSED kymo_status kymo__import_files_list(struct kymo__import_files *files,
                                                     const char *const *paths, size_t n,
                                                     const char *from);
void kymo__import_files_fini(struct kymo__import_files *files);

/* Read all of them into the store, several at a time. */
KYMO_WARN_UNUSED kymo_status kymo__import_files_read(struct kymo__import_files *files,
                                                     struct kymo__log_store *store,
                                                     const struct kymo_import_options *options);

#endif
