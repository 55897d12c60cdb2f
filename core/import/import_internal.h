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
#ifndef KYMO_IMPORT_INTERNAL_H
#define KYMO_IMPORT_INTERNAL_H

#include "base/base_internal.h"
#include <kymo/import.h>
#include <kymo/recording.h>

/* ---- sink.c ---- */

typedef struct kymo__sink kymo__sink;

struct kymo__log_store;

/* How a sink is made; texts are lent until it goes. */
struct kymo__sink_options {
    struct kymo__log_store *store; /* where the logs go */
    uint64_t memory_bytes;         /* to hold and sort events in; 0: 256 MiB */
    /* Of each process that is not said to have others; NULL: "". */
    const char *command, *source, *run_id;
    /* Called now and then while events come, with `written` 0, and while they are written, 0..1. NULL: not. */
    void (*tick)(void *ctx, double written);
    void *tick_ctx;
};

/* One thread at a time. KYMO_ENOMEM. */
KYMO_WARN_UNUSED kymo_status kymo__sink_create(const struct kymo__sink_options *options,
                                               kymo__sink **out);
/* Sort what came and write the logs, once; nothing may be put afterwards. What failed before is returned first. */
KYMO_WARN_UNUSED kymo_status kymo__sink_finish(kymo__sink *sink);
void kymo__sink_destroy(kymo__sink *sink);

/* One process of the recording to be: its log. Lent by the sink until it goes. */
typedef struct kymo__sink_process kymo__sink_process;

/* What is known of a process when it is first met; texts are copied, NULL or -1 where unknown. */
struct kymo__sink_identity {
    int64_t pid, ppid; /* a parent of 0 is unknown, too */
    int32_t rank, world_size;
    const char *command, *host, *source, *backend, *gpu, *run_id;
};

/*
 * The process that the file calls `key` (several of one recording: a pid, the number of a file), made when new. NULL
 * without memory.
 */
kymo__sink_process *kymo__sink_process_get(kymo__sink *sink, uint64_t key);
/* Say who it is; fields that are NULL, or negative, keep what they were. */
void kymo__sink_identify(kymo__sink_process *process, const struct kymo__sink_identity *identity);
/* All its times, of events to come too, count from `ns`: some files tell at their end since when. 0 before it is said. */
void kymo__sink_shift(kymo__sink_process *process, uint64_t ns);
/* What to add to its times for those since 1970, where they are on another clock. */
void kymo__sink_set_wall(kymo__sink_process *process, int64_t to_unix_ns);
/*
 * A sentence for people about this process, shown by every report; each different one once. What could not be read of a
 * damaged file is told here: the answer is given from the rest.
 */
void kymo__sink_note(kymo__sink_process *process, const char *fmt, ...) KYMO_PRINTF(2, 3);

/* A site's id, for good. Texts need not end in a NUL; NULL for none. Equal texts give equal ids. */
struct kymo__sink_site {
    const char *name, *category, *domain, *file;
    size_t name_len, category_len, domain_len, file_len;
    uint32_t line, color;
};
uint32_t kymo__sink_site(kymo__sink_process *process, const struct kymo__sink_site *site);

/* The number of a thread's lane, or of a stream's, for kymo__sink_put; a name may come later, and is copied. */
uint32_t kymo__sink_thread(kymo__sink_process *process, int64_t tid);
uint32_t kymo__sink_stream(kymo__sink_process *process, int32_t device, uint32_t stream);
void kymo__sink_name_lane(kymo__sink_process *process, uint32_t lane, const char *name, size_t len);

/* Besides these two, times are nanoseconds of one clock for all files of one machine: since 1970 where known. */
enum kymo__sink_kind {
    KYMO__SINK_SLICE, /* a range, whole; those of a thread may overlap: what does not nest gets a further lane */
    KYMO__SINK_BEGIN, /* its begin and end apart, in the order of the file where times are equal */
    KYMO__SINK_END,   /* `site` 0: what was begun last */
    KYMO__SINK_MARK,
    KYMO__SINK_COUNTER, /* `value` */
    KYMO__SINK_GPU,     /* of a stream's lane: `work_kind`, `duration_ns`, `correlation`, `bytes` */
    KYMO__SINK_FLOW,    /* `id`, `flow_end` */
    KYMO__SINK_ASYNC_BEGIN, /* `id` */
    KYMO__SINK_ASYNC_END,
    KYMO__SINK_ITERATION, /* of the process: from `ns` to `ns + duration_ns`, number `id` */
};

#define KYMO__SINK_NO_CALL UINT64_MAX

struct kymo__sink_event {
    enum kymo__sink_kind kind;
    uint32_t lane, site;
    uint64_t ns, duration_ns;
    uint64_t correlation; /* of GPU work, or of a slice that launched it; 0: none */
    uint64_t id;          /* of a flow or async range; the number of an iteration */
    uint64_t bytes;       /* of GPU work */
    uint64_t repeat; /* calls that a slice stands for; 0 and 1: one; KYMO__SINK_NO_CALL: of calls counted elsewhere */
    double value; /* of a counter */
    enum kymo_work_kind work_kind;
    enum kymo_flow_end flow_end;
    const struct kymo_communication *communication; /* of a slice or GPU work; NULL: none. `group` a sink's site */
    const char *arguments; /* of a slice or GPU work: a JSON object as it stands in the file; NULL: none */
    size_t arguments_len;
};

/* Take one event. A failure (memory, a full disk) is kept: kymo__sink_status tells, and later events are ignored. */
void kymo__sink_put(kymo__sink_process *process, const struct kymo__sink_event *event);
KYMO_WARN_UNUSED kymo_status kymo__sink_status(const kymo__sink *sink);
/* Whether it failed, without a sentence. */
bool kymo__sink_has_failed(const kymo__sink *sink);

/* Events so far, of all processes. */
uint64_t kymo__sink_n_events(const kymo__sink *sink);

/* The process's rank, or -1, so that whoever knows better by the file's name may say so. */
int32_t kymo__sink_rank(const kymo__sink_process *process);
/* Processes so far, in the order in which they came; NULL past the last. */
kymo__sink_process *kymo__sink_process_at(const kymo__sink *sink, size_t i);
/* The first that has events, that is the first that gets a log; NULL: none. */
kymo__sink_process *kymo__sink_process_with_events(const kymo__sink *sink);

/* ---- log_store.c: the logs of one recording in the making ---- */

/* For several sinks in several threads. They lie in a file without a name, in `folder` (lent) where that can be had. */
struct kymo__log_store;
KYMO_WARN_UNUSED kymo_status kymo__log_store_open(const char *folder, struct kymo__log_store **out);
KYMO_WARN_UNUSED kymo_status kymo__log_store_open_temporary(struct kymo__log_store **out);
/* The logs as a recording called `name`, which keeps the file; the store is then only to be closed. */
KYMO_WARN_UNUSED kymo_status kymo__log_store_read(struct kymo__log_store *store, const char *name,
                                                  kymo_recording **out);
/* Write them into the directory, a file each. On failure some may be there. */
KYMO_WARN_UNUSED kymo_status kymo__log_store_save(const struct kymo__log_store *store,
                                                  const char *directory);
void kymo__log_store_close(struct kymo__log_store *store);

/* ---- import.c ---- */

/* Whether the file is one that kymo_open would import. */
bool kymo__import_knows(const char *path);

/* ---- importers: each reads one file ---- */

struct kymo__byte_source; /* codec/ */

/* What an importer works on. */
struct kymo__import {
    kymo__sink *sink;
    struct kymo__byte_source *bytes; /* from the begin of the file, unpacked */
    const char *path;                /* for sentences and names */
    uint32_t number;                 /* of this file among those of the recording, from 0 */
    const struct kymo_import_options *options;
};

/*
 * A format. `looks_like` judges by the first bytes, unpacked, of which there may be fewer than the file has; the first
 * format of the table that says yes is taken. `read` returns KYMO_EFORMAT with a sentence where there is nothing to be
 * had; what could be read of a damaged file stays, told by kymo__sink_note.
 */
struct kymo__import_format {
    const char *name;  /* "kineto", as --from and `source` call it */
    const char *words; /* "a Kineto or Chrome trace" */
    bool (*looks_like)(const char *path, const char *bytes, size_t len);
    kymo_status (*read)(struct kymo__import *import);
};
extern const struct kymo__import_format kymo__import_chrome, kymo__import_speedscope,
    kymo__import_pstats, kymo__import_austin, kymo__import_collapsed;

#endif
