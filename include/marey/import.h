/*
 * marey/import.h: traces and profiles of other tools as recordings (libmarey-tools).
 *
 *     marey_import((const char *const[]){"rank0.json.gz", "rank1.json.gz"}, 2, "run.marey", NULL, NULL);
 *     marey_open("trace.json.gz", NULL, &recording);         a recording, or any file of these as if it were one
 *
 * marey_import_format_at() lists the formats. Each file may be gzipped. A folder of traces is a recording of ranks.
 * docs/guide/import.md describes what becomes of what.
 *
 * Reading streams: memory is bounded by `memory_bytes` whatever the file's size; what does not fit is sorted on disk.
 */
#ifndef MAREY_IMPORT_H
#define MAREY_IMPORT_H

#include <marey/recording.h>

#ifdef __cplusplus
extern "C" {
#endif

struct marey_import_options {
    const char *from;   /* the format by its name, for a file that does not tell; NULL: found out */
    int keep_arguments; /* non-zero: the arguments of each event go along as text, for exports */
    uint32_t samples_per_second; /* of stacks without times; 0: 100, or a billion where they are that many */
    uint64_t memory_bytes; /* to sort in; 0: 256 MiB */
    uint32_t n_jobs; /* files read at the same time, logs too; 0: as many as there are cores */
    void (*progress)(void *ctx, double share); /* as marey_progress of <marey/report.h> */
    void *progress_ctx;
};

/* What an import did. */
struct marey_import_result {
    uint64_t n_files, n_events, n_bytes; /* bytes once unpacked */
    const char *format;                  /* of the first file; lent for ever */
};

/*
 * Read `n` files, or folders of them, into a new recording at `into` (NAME.marey, which must not exist or be empty); on
 * failure nothing is left there. MAREY_EFORMAT when a file is none that is known, or when no file has an event that can be
 * read. What of the files is missing or left out is in the notes of the recording's processes.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_import(const char *const *paths, size_t n,
                                                      const char *into,
                                                      const struct marey_import_options *options,
                                                      struct marey_import_result *result);

/*
 * Open `path`: a recording as marey_recording_open does, or a file or folder that marey_import knows, which is read into a
 * temporary recording (in TMPDIR, else /var/tmp) that is gone when it is closed, or when this process dies.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_open(const char *path,
                                                    const struct marey_import_options *options,
                                                    marey_recording **out);

/* A file format that marey_import reads. All strings are static. */
struct marey_import_format {
    const char *name;  /* "kineto", as `from` of the options and `source` of a process have it */
    const char *noun;  /* "a Kineto or Chrome trace" */
    const char *brief; /* one line: which programs write it */
    const char *extensions; /* that names of such files may have, one after the other: ".trace .json" */
};
/* Format number `i`, from 0, in the order in which they are detected; NULL past the last. */
MAREY_API const struct marey_import_format *marey_import_format_at(size_t i);

#ifdef __cplusplus
}
#endif
#endif
