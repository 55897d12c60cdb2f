/* The files of one import: what was named, folders opened, each with its format and, where its name tells, its rank. */
#ifndef MAREY_IMPORT_FILES_H
#define MAREY_IMPORT_FILES_H

#include "codec/codec_internal.h"
#include "import/internal.h"

struct marey__import_file {
    char *path;
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
    bool is_numbered; /* neither names say ranks: they are numbered in order */
};

/* Every format, NULL behind the last; detection asks in this order. */
extern const struct marey__import_format *const marey__import_formats[];
/* The words of all, "a Kineto or Chrome trace, ... and ...". */
void marey__import_words(struct marey__buf *out);
/* By its first bytes; NULL when it is none. */
const struct marey__import_format *marey__import_detect(const char *path, const char *bytes,
                                                        size_t len);
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
