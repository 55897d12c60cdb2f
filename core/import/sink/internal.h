/*
 * sink: turns events of an importer, in any order, into the logs of a recording.
 *
 *   sink.c, sink_put.c, sink_names.c   processes, lanes, sites and events as an importer finds them
 *   sink_sort.c, sink_spill.c          sorting within a memory budget; sorted runs on disk if there are too many events
 *   sink_nest.c, sink_blocks.c, sink_write.c   slices to begins and ends, then to blocks of the log
 *   log_store.c                        where the logs go: a directory or temporary files
 *
 * Input: events of a foreign file, in its order. Output: logs that a reader can stream. Does not know foreign formats.
 */
#ifndef MAREY_IMPORT_SINK_INTERNAL_H
#define MAREY_IMPORT_SINK_INTERNAL_H

#include "base/internal.h"
#include "read/internal.h"
#include "record/internal.h"
#include <marey/import.h>
#include <marey/recording.h>

/* ---- sink.c ---- */

typedef struct marey__sink marey__sink;

struct marey__log_store;

/* Options of a sink; strings are borrowed while it lives. */
struct marey__sink_options {
    struct marey__log_store *store; /* destination of the logs */
    uint64_t memory_bytes;          /* budget for holding and sorting events; 0: 256 MiB */
    /* Defaults for each process; NULL: "". */
    const char *command, *source, *run_id;
    /* Called regularly: while events arrive with `written` 0, and while they are written with 0..1. NULL: none. */
    void (*tick)(void *ctx, double written);
    void *tick_ctx;
};

/* Use from one thread at a time. Fails with MAREY_ENOMEM. */
MAREY_WARN_UNUSED marey_status marey__sink_create(const struct marey__sink_options *options,
                                                  marey__sink **out);
/* Sort the events and write the logs, once; no event may follow. Returns an earlier failure, if any. */
MAREY_WARN_UNUSED marey_status marey__sink_finish(marey__sink *sink);
void marey__sink_destroy(marey__sink *sink);

/* One process of the future recording: its log. Owned by the sink. */
typedef struct marey__sink_process marey__sink_process;

/* Identity of a process; strings are copied, NULL or -1 where unknown. */
struct marey__sink_identity {
    int64_t pid, ppid; /* ppid 0 also means unknown */
    int32_t rank, world_size;
    const char *command, *host, *source, *backend, *gpu, *run_id;
};

/*
 * The process that the file calls `key` (a pid, or the number of a file if there are several), created if needed. NULL
 * on out of memory.
 */
marey__sink_process *marey__sink_process_get(marey__sink *sink, uint64_t key);
/* Set its identity; NULL or negative fields keep their value. */
void marey__sink_identify(marey__sink_process *process, const struct marey__sink_identity *identity);
/*
 * A sentence about this process that every report shows; equal ones once. Also notes what could not be read of a
 * damaged file.
 */
void marey__sink_note(marey__sink_process *process, const char *fmt, ...) MAREY_PRINTF(2, 3);

/* A site's id, which never changes. Strings need no NUL; NULL for none. Equal strings give equal ids. */
struct marey__sink_site {
    const char *name, *category, *domain, *file;
    size_t name_len, category_len, domain_len, file_len;
    uint32_t line, color;
};
uint32_t marey__sink_site(marey__sink_process *process, const struct marey__sink_site *site);

/* The number of a thread's or stream's lane, for marey__sink_put; the name may come later, and is copied. */
uint32_t marey__sink_thread(marey__sink_process *process, int64_t tid);
uint32_t marey__sink_stream(marey__sink_process *process, int32_t device, uint32_t stream);
void marey__sink_name_lane(marey__sink_process *process, uint32_t lane, const char *name, size_t len);

/* Except for these two, times are nanoseconds of one clock for all files of one machine: since 1970 where known. */
enum marey__sink_kind {
    MAREY__SINK_SLICE, /* a complete range; a thread's may overlap: ranges that do not nest go to another lane */
    MAREY__SINK_BEGIN, /* separate begin and end, in file order where times are equal */
    MAREY__SINK_END,   /* `site` 0: ends the range begun last */
    MAREY__SINK_MARK,
    MAREY__SINK_COUNTER, /* `value` */
    MAREY__SINK_GPU,  /* of a stream's lane: `work_kind`, `duration_ns`, `correlation`, `bytes` */
    MAREY__SINK_FLOW, /* `id`, `flow_end` */
    MAREY__SINK_ASYNC_BEGIN, /* `id` */
    MAREY__SINK_ASYNC_END,
    MAREY__SINK_ITERATION, /* of the process: from `ns` to `ns + duration_ns`, number `id` */
};

#define MAREY__SINK_NO_CALL UINT64_MAX

struct marey__sink_event {
    enum marey__sink_kind kind;
    uint32_t lane, site;
    uint64_t ns, duration_ns;
    uint64_t correlation; /* of GPU work, or of a slice that launched it; 0: none */
    uint64_t id;          /* of a flow or async range; the number of an iteration */
    uint64_t bytes;       /* of GPU work */
    uint64_t repeat; /* calls that a slice represents; 0 and 1: one; MAREY__SINK_NO_CALL: calls counted elsewhere */
    double value; /* of a counter */
    enum marey_work_kind work_kind;
    enum marey_flow_end flow_end;
    const struct marey_communication
        *communication;    /* of a slice or GPU work; NULL: none. `group` is a site of the sink */
    const char *arguments; /* of a slice or GPU work: a JSON object as in the file; NULL: none */
    size_t arguments_len;
};

/* Add one event. After a failure (memory, a full disk), marey__sink_status returns it and later events are ignored. */
void marey__sink_put(marey__sink_process *process, const struct marey__sink_event *event);
MAREY_WARN_UNUSED marey_status marey__sink_status(const marey__sink *sink);
/* Processes in the order in which they were added; NULL past the last. */
marey__sink_process *marey__sink_process_at(const marey__sink *sink, size_t i);
/* The first one with events, which gets the first log; NULL: none. */
marey__sink_process *marey__sink_process_with_events(const marey__sink *sink);

/* ---- log_store.c: the logs of a recording being created ---- */

/*
 * For several sinks in several threads. Uses an unnamed file in `folder` (borrowed; NULL: that of temporary files) if
 * possible.
 */
MAREY_WARN_UNUSED marey_status marey__log_store_open(const char *folder,
                                                     struct marey__log_store **out);
/* Open the logs as a recording called `name`, which takes over the file; the store can then only be closed. */
MAREY_WARN_UNUSED marey_status marey__log_store_read(struct marey__log_store *store,
                                                     const char *name, marey_recording **out);
/* Write each log to a file in the directory. On failure some may remain there. */
MAREY_WARN_UNUSED marey_status marey__log_store_save(const struct marey__log_store *store,
                                                     const char *directory);
void marey__log_store_close(struct marey__log_store *store);

/* ---- entries ---- */

/* Order of entries with equal times; within a class, longer slices and lower iterations come first, then file order. */
enum marey__sink_class {
    MAREY__CLASS_ITERATION,
    MAREY__CLASS_EDGE, /* a separate begin or end */
    MAREY__CLASS_SLICE,
    MAREY__CLASS_POINT, /* after the slices that begin with it: a flow belongs to the range around it */
};

/* A tag: bits 0 to 19 the site, 20 to 23 the kind of its word, 24 and 25 the class. */
struct marey__sink_entry {
    uint64_t ns;
    uint64_t duration; /* of an iteration's two ends: a number that orders them */
    uint32_t tag;
    uint32_t extra; /* offset in `extras`: number of words, then complete records whose ticks are 0. 0: none */
};

static inline uint32_t marey__entry_class(const struct marey__sink_entry *entry)
{
    return entry->tag >> 24;
}

static inline bool marey__entry_is_before(const struct marey__sink_entry *a,
                                          const struct marey__sink_entry *b)
{
    if (MAREY_LIKELY(a->ns != b->ns))
        return a->ns < b->ns;
    const uint32_t class = marey__entry_class(a);
    if (class != marey__entry_class(b))
        return class < marey__entry_class(b);
    if (class == MAREY__CLASS_SLICE)
        return a->duration > b->duration;
    return class == MAREY__CLASS_ITERATION && a->duration < b->duration;
}

/* Stable. `scratch` has space for `n`. */
void marey__entries_sort(struct marey__sink_entry *entries, size_t n,
                         struct marey__sink_entry *scratch);

/* ---- contents of the sink ---- */

/* One lane's section of a sorted run in the spill file. */
struct marey__sink_part {
    uint64_t at, end;
};

struct marey__sink_lane {
    int64_t tid;
    enum marey_lane_kind kind;
    const char *name;
    size_t name_len;
    struct marey__sink_entry *entries;
    size_t n, cap;
    bool is_unsorted;
    struct marey__sink_part *parts;
    size_t n_parts, parts_cap;
};

struct marey__sink_process {
    marey__sink *sink;
    uint64_t key;
    int64_t pid, ppid;
    int32_t rank, world_size;
    struct marey__arena texts;                                    /* of the process and its lanes */
    const char *command, *host, *source, *backend, *gpu, *run_id; /* NULL: unknown */
    const char **notes;
    size_t n_notes, notes_cap;
    struct marey__sink_lane *lanes;
    size_t n_lanes, lanes_cap;
    uint32_t last_lane; /* looked up last */
    struct marey__index lanes_index;
    struct marey__buf sites;   /* encoded as in blocks of sites, from id 1 on */
    uint64_t *site_offsets;    /* by id */
    size_t n_sites, sites_cap; /* n_sites is the last id */
    struct marey__index sites_index;
    uint64_t *extras;
    size_t n_extras, extras_cap;
    uint64_t n_events;
    uint64_t first_ns;
    uint64_t shift_ns;  /* added to all times; some files have it at their end */
    int64_t to_unix_ns; /* added to that for Unix time, if times are on another clock */
    uint64_t n_other_names, n_other_lanes, n_long_arguments,
        n_misplaced; /* noted when it is written */
};

struct marey__sink {
    struct marey__sink_options options;
    uint64_t n_written; /* events */
    uint64_t seed;
    uint64_t budget, held; /* bytes of entries and extras */
    marey__sink_process **processes;
    size_t n_processes, processes_cap;
    struct marey__index processes_index;
    marey__sink_process *last; /* looked up last */
    int spill_fd;              /* -1: nothing spilled */
    uint64_t spill_size;
    uint64_t n_events; /* of all processes */
    marey_status status;
    char failure[512]; /* the error message */
};

/* Events between two calls of tick(). */
enum { MAREY__TICK_EVENTS = 1 << 14 };

/* Keep the first failure, with its current error message. */
void marey__sink_fail(marey__sink *sink, marey_status status);
static inline void marey__sink_fail_memory(marey__sink_process *process)
{
    marey__sink_fail(process->sink, marey__no_memory());
}

/* ---- sink_spill.c ---- */

/* Sort all held events and write them to the spill file. */
MAREY_WARN_UNUSED marey_status marey__sink_spill(marey__sink *sink);
/* Sort a lane's array in place. Returns false on out of memory. */
bool marey__sink_sort_lane(struct marey__sink_lane *lane);
void marey__sink_close_spill(marey__sink *sink);

/* A lane's entries in order, merged from its parts and its array. */
struct marey__sink_reader {
    const marey__sink_process *process;
    const struct marey__sink_lane *lane;
    struct marey__part_reader *parts,
        *from;   /* `from`: the part of the peeked entry; NULL: the array */
    size_t next; /* of the array */
};
/* The lane's array must be sorted. `buffer_bytes` is per part. */
MAREY_WARN_UNUSED marey_status marey__sink_reader_open(struct marey__sink_reader *reader,
                                                       const marey__sink_process *process,
                                                       const struct marey__sink_lane *lane,
                                                       size_t buffer_bytes);
/*
 * The next entry without consuming it, and its extra words (their number, then the words), valid until taken; NULL at
 * the end.
 */
const struct marey__sink_entry *marey__sink_reader_peek(struct marey__sink_reader *reader,
                                                        const uint64_t **extra);
/* Consume the peeked entry. */
MAREY_WARN_UNUSED marey_status marey__sink_reader_take(struct marey__sink_reader *reader);
void marey__sink_reader_close(struct marey__sink_reader *reader);

/* ---- sink_blocks.c: words of one lane of the log ---- */

struct marey__sink_log {
    struct marey__log log;
    marey__packer *packer;
    uint32_t n_lanes;   /* assigned so far */
    uint64_t n_orphans; /* ends without a begin */
    uint64_t n_crowded; /* slices without a free lane */
};

struct marey__sink_track {
    const struct marey__sink_lane *of; /* source of its tid and name */
    uint32_t number, sequence;
    bool is_written;
    uint64_t *words;
    size_t n_words, words_cap;
    uint64_t base_ns, last_ns, end_ns; /* of the block; `end_ns` is the latest end of its GPU work */
};
/* Write the words of one event at `ns` into one block: a plain word, or complete records whose ticks are filled in. */
MAREY_WARN_UNUSED marey_status marey__track_word(struct marey__sink_log *log,
                                                 struct marey__sink_track *lane, uint64_t ns,
                                                 uint32_t tag);
/* A begin if `tag` is not 0, with its records: those of type REPEAT come before it, the others after. */
MAREY_WARN_UNUSED marey_status marey__track_records(struct marey__sink_log *log,
                                                    struct marey__sink_track *lane, uint64_t ns,
                                                    uint32_t tag, const uint64_t *records, size_t n);
MAREY_WARN_UNUSED marey_status marey__track_flush(struct marey__sink_log *log,
                                                  struct marey__sink_track *lane);

/* Maximum number of record words of an event, so that they fit into a block with its begin. */
enum { MAREY__EXTRA_WORDS_MAX = MAREY__CHUNK_WORDS - 1 };

/* ---- sink_nest.c: entries of a lane to words of one or more lanes ---- */

struct marey__nest;
marey_status marey__nest_create(struct marey__sink_log *log, const struct marey__sink_lane *of,
                                struct marey__nest **out);
MAREY_WARN_UNUSED marey_status marey__nest_put(struct marey__nest *nest,
                                               const struct marey__sink_entry *entry,
                                               const uint64_t *extra);
/* Blocks written so far for the lane itself. */
uint32_t marey__nest_n_blocks(const struct marey__nest *nest);
/* End open ranges and write everything. */
MAREY_WARN_UNUSED marey_status marey__nest_finish(struct marey__nest *nest);
void marey__nest_destroy(struct marey__nest *nest);

/* ---- sink_write.c ---- */

MAREY_WARN_UNUSED marey_status marey__sink_write(marey__sink *sink, marey__sink_process *process);

/* ---- log_store.c ---- */

/* Start a new log; `end` adds it to the store as the file `name`, or discards it if `status` is a failure. */
MAREY_WARN_UNUSED marey_status marey__log_store_begin(struct marey__log_store *store,
                                                      struct marey__log *log);
MAREY_WARN_UNUSED marey_status marey__log_store_end(struct marey__log_store *store, const char *name,
                                                    struct marey__log *log, marey_status status);

#endif
