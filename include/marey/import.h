/*
 * marey/import.h: traces and profiles of other tools as recordings (libmarey-tools).
 *
 *     marey_import((const char *const[]){"rank0.json.gz", "rank1.json.gz"}, 2, "run.marey", NULL, NULL);
 *     marey_open("trace.json.gz", NULL, &recording);         a recording, or a file of any of these formats
 *
 * marey_import_format_at() lists the formats. Files may be gzipped. A folder of traces becomes a recording of ranks.
 * docs/guide/import.md describes the mapping of each format.
 *
 * Reading streams: memory is bounded by `memory_bytes` for any file size; larger sorts spill to disk.
 */
#ifndef MAREY_IMPORT_H
#define MAREY_IMPORT_H

#include <marey/recording.h>

MAREY_BEGIN_C

struct marey_import_options {
    const char *from;   /* name of the format; NULL: detect it */
    int keep_arguments; /* non-zero: keep the arguments of each event as text, for exports */
    uint32_t samples_per_second; /* for stacks without times; 0: 100, or 10^9 if there are that many */
    uint64_t memory_bytes;       /* sort buffer; 0: 256 MiB */
    uint32_t n_jobs;             /* files or logs read in parallel; 0: one per core */
    void (*progress)(void *ctx, double share); /* as marey_progress of <marey/report.h> */
    void *progress_ctx;
};

/* Result of an import. */
struct marey_import_result {
    uint64_t n_files, n_events, n_bytes; /* bytes after decompression */
    const char *format;                  /* of the first file; static */
};

/*
 * Read `n` files, or folders of them, into a new recording at `into` (NAME.marey, which must not exist or be empty); on
 * failure it is removed. MAREY_EFORMAT: a file has an unknown format, or no file has a readable event. Notes of the
 * recording's processes list missing and omitted data.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_import(const char *const *paths, size_t n,
                                                      const char *into,
                                                      const struct marey_import_options *options,
                                                      struct marey_import_result *result);

/*
 * Open `path`: a recording as marey_recording_open does, or a file or folder that marey_import reads. The latter is imported
 * into a temporary recording (in TMPDIR, else /var/tmp), which is removed on close, or when this process dies.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_open(const char *path,
                                                    const struct marey_import_options *options,
                                                    marey_recording **out);

/* A file format that marey_import reads. All strings are static. */
struct marey_import_format {
    const char *name;       /* "kineto", as in `from` of the options and `source` of a process */
    const char *noun;       /* "a Kineto or Chrome trace" */
    const char *brief;      /* one line: which programs write it */
    const char *extensions; /* of such files, space separated: ".trace .json" */
    int has_samples;        /* sums of stack samples, which the report "samples" reads */
};
/* Format number `i`, from 0, in the order in which they are detected; NULL past the last. */
MAREY_API const struct marey_import_format *marey_import_format_at(size_t i);

MAREY_END_C
#endif
