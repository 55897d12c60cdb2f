/*
 * import: files of others become recordings, so that every analysis and every export works on them.
 *
 *   bytes (codec/: plain or gzip) ── an importer, one file per format ── sink ── logs of a recording
 *
 *   import.c ── which format, one file or a folder of ranks, into a directory or a temporary recording
 *   chrome*.c ── Kineto and Chrome traces, viztracer's among them
 *   collapsed_in.c (py-spy's raw too), austin_*.c, speedscope_in.c, pstats.c
 *   sink*.c ── puts events in order within a budget of memory, turns slices into begins and ends, writes the logs
 *
 * An importer says what it finds in any order; the sink makes it a log that a reader can stream. Every byte here comes
 * from outside.
 */
#ifndef MAREY_IMPORT_INTERNAL_H
#define MAREY_IMPORT_INTERNAL_H

#include "import/sink/internal.h"

/* ---- import.c ---- */

/* Whether the file is one that marey_open would import. */
bool marey__import_knows(const char *path);

/* ---- importers: each reads one file ---- */

struct marey__byte_source; /* codec/ */

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
    bool (*looks_like)(const char *path, const char *bytes, size_t len);
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

#endif
