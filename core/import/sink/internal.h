/*
 * sink: events of an importer, in any order, to the logs of a recording.
 *
 *   sink.c, sink_put.c, sink_names.c   processes, lanes, sites and events as an importer finds them
 *   sink_sort.c, sink_spill.c          order within a memory budget; runs on disk when there are too many
 *   sink_nest.c, sink_blocks.c, sink_write.c   slices with durations to begins and ends, then to blocks of the log
 *   log_store.c                        where the logs go: a directory or temporary files
 *
 * Input: what an importer finds in a foreign file, in the order of that file. Output: logs that a reader can
 * stream. Knows no foreign format.
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

/* How a sink is made; texts are lent until it goes. */
struct marey__sink_options {
    struct marey__log_store *store; /* where the logs go */
    uint64_t memory_bytes;          /* to hold and sort events in; 0: 256 MiB */
    /* Of each process that is not said to have others; NULL: "". */
    const char *command, *source, *run_id;
    /* Called now and then while events come, with `written` 0, and while they are written, 0..1. NULL: not. */
    void (*tick)(void *ctx, double written);
    void *tick_ctx;
};

/* One thread at a time. MAREY_ENOMEM. */
MAREY_WARN_UNUSED marey_status marey__sink_create(const struct marey__sink_options *options,
                                                  marey__sink **out);
/* Sort what came and write the logs, once; nothing may be put afterwards. What failed before is returned first. */
MAREY_WARN_UNUSED marey_status marey__sink_finish(marey__sink *sink);
void marey__sink_destroy(marey__sink *sink);

/* One process of the recording to be: its log. Lent by the sink until it goes. */
typedef struct marey__sink_process marey__sink_process;

/* What is known of a process when it is first met; texts are copied, NULL or -1 where unknown. */
struct marey__sink_identity {
    int64_t pid, ppid; /* a parent of 0 is unknown, too */
    int32_t rank, world_size;
    const char *command, *host, *source, *backend, *gpu, *run_id;
};

/*
 * The process that the file calls `key` (several of one recording: a pid, the number of a file), made when new. NULL
 * on out of memory.
 */
marey__sink_process *marey__sink_process_get(marey__sink *sink, uint64_t key);
/* Say who it is; fields that are NULL, or negative, keep what they were. */
void marey__sink_identify(marey__sink_process *process, const struct marey__sink_identity *identity);
/*
 * A sentence for people about this process, shown by every report; each different one once. What could not be read of a
 * damaged file is reported here: the answer is given from the rest.
 */
void marey__sink_note(marey__sink_process *process, const char *fmt, ...) MAREY_PRINTF(2, 3);

/* A site's id, for good. Texts need not end in a NUL; NULL for none. Equal texts give equal ids. */
struct marey__sink_site {
    const char *name, *category, *domain, *file;
    size_t name_len, category_len, domain_len, file_len;
    uint32_t line, color;
};
uint32_t marey__sink_site(marey__sink_process *process, const struct marey__sink_site *site);

/* The number of a thread's lane, or of a stream's, for marey__sink_put; a name may come later, and is copied. */
uint32_t marey__sink_thread(marey__sink_process *process, int64_t tid);
uint32_t marey__sink_stream(marey__sink_process *process, int32_t device, uint32_t stream);
void marey__sink_name_lane(marey__sink_process *process, uint32_t lane, const char *name, size_t len);

/* Besides these two, times are nanoseconds of one clock for all files of one machine: since 1970 where known. */
enum marey__sink_kind {
    MAREY__SINK_SLICE, /* a range, whole; those of a thread may overlap: what does not nest gets a further lane */
    MAREY__SINK_BEGIN, /* its begin and end apart, in the order of the file where times are equal */
    MAREY__SINK_END,   /* `site` 0: what was begun last */
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
    uint64_t repeat; /* calls that a slice represents; 0 and 1: one; MAREY__SINK_NO_CALL: of calls counted elsewhere */
    double value; /* of a counter */
    enum marey_work_kind work_kind;
    enum marey_flow_end flow_end;
    const struct marey_communication *communication; /* of a slice or GPU work; NULL: none. `group` a sink's site */
    const char *arguments; /* of a slice or GPU work: a JSON object as it is in the file; NULL: none */
    size_t arguments_len;
};

/* Take one event. A failure (memory, a full disk) is kept: marey__sink_status reports, and later events are ignored. */
void marey__sink_put(marey__sink_process *process, const struct marey__sink_event *event);
MAREY_WARN_UNUSED marey_status marey__sink_status(const marey__sink *sink);
/* Processes so far, in the order in which they came; NULL past the last. */
marey__sink_process *marey__sink_process_at(const marey__sink *sink, size_t i);
/* The first that has events, that is the first that gets a log; NULL: none. */
marey__sink_process *marey__sink_process_with_events(const marey__sink *sink);

/* ---- log_store.c: the logs of one recording in the making ---- */

/* For several sinks in several threads. They lie in a file without a name, in `folder` (lent; NULL: that of temporary files) where that can be had. */
MAREY_WARN_UNUSED marey_status marey__log_store_open(const char *folder,
                                                     struct marey__log_store **out);
/* The logs as a recording called `name`, which keeps the file; the store is then only to be closed. */
MAREY_WARN_UNUSED marey_status marey__log_store_read(struct marey__log_store *store,
                                                     const char *name, marey_recording **out);
/* Write them into the directory, a file each. On failure some may be there. */
MAREY_WARN_UNUSED marey_status marey__log_store_save(const struct marey__log_store *store,
                                                     const char *directory);
void marey__log_store_close(struct marey__log_store *store);

/* ---- entries ---- */

/* What comes first where times are equal; then longer slices, lower iterations, and the order of the file. */
enum marey__sink_class {
    MAREY__CLASS_ITERATION,
    MAREY__CLASS_EDGE, /* a begin or an end by itself */
    MAREY__CLASS_SLICE,
    MAREY__CLASS_POINT, /* after the slices that begin with it: a flow belongs to the range around it */
};

/* A tag: bits 0 to 19 the site, 20 to 23 the kind of its word, 24 and 25 the class. */
struct marey__sink_entry {
    uint64_t ns;
    uint64_t duration; /* of an iteration's two ends: a number that puts them in order */
    uint32_t tag;
    uint32_t extra; /* where in `extras`: how many words, then whole records whose ticks are 0. 0: nothing */
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

/* Stable. `scratch` has room for `n`. */
void marey__entries_sort(struct marey__sink_entry *entries, size_t n,
                         struct marey__sink_entry *scratch);

/* ---- what the sink holds ---- */

/* One lane's share of what was once written to the spill file, in order. */
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
    const char *command, *host, *source, *backend, *gpu, *run_id; /* NULL: not said */
    const char **notes;
    size_t n_notes, notes_cap;
    struct marey__sink_lane *lanes;
    size_t n_lanes, lanes_cap;
    uint32_t last_lane; /* that was asked for */
    struct marey__index lanes_index;
    struct marey__buf sites;   /* as blocks of sites have them, from id 1 on */
    uint64_t *site_offsets;    /* by id */
    size_t n_sites, sites_cap; /* the last id */
    struct marey__index sites_index;
    uint64_t *extras;
    size_t n_extras, extras_cap;
    uint64_t n_events;
    uint64_t first_ns;
    uint64_t shift_ns;  /* to add to all times; some files have it at their end */
    int64_t to_unix_ns; /* to add to that for Unix time, where times are on another clock */
    uint64_t n_other_names, n_other_lanes, n_long_arguments, n_misplaced; /* told when it is written */
};

struct marey__sink {
    struct marey__sink_options options;
    uint64_t n_written; /* events */
    uint64_t seed;
    uint64_t budget, held; /* bytes of entries and extras */
    marey__sink_process **processes;
    size_t n_processes, processes_cap;
    struct marey__index processes_index;
    marey__sink_process *last; /* that was asked for */
    int spill_fd;              /* -1: nothing was spilled */
    uint64_t spill_size;
    uint64_t n_events; /* of all processes */
    marey_status status;
    char failure[512]; /* its sentence */
};

/* Events between two ticks. */
enum { MAREY__TICK_EVENTS = 1 << 14 };

/* Remember the first failure with the sentence that was just left. */
void marey__sink_fail(marey__sink *sink, marey_status status);
static inline void marey__sink_fail_memory(marey__sink_process *process)
{
    marey__sink_fail(process->sink, marey__no_memory());
}

/* ---- sink_spill.c ---- */

/* Sort all that is held and write it to the spill file. */
MAREY_WARN_UNUSED marey_status marey__sink_spill(marey__sink *sink);
/* Sort a lane's array in place. Returns false on out of memory. */
bool marey__sink_sort_lane(struct marey__sink_lane *lane);
void marey__sink_close_spill(marey__sink *sink);

/* A lane's entries in order, from its parts and its array. */
struct marey__sink_reader {
    const marey__sink_process *process;
    const struct marey__sink_lane *lane;
    struct marey__part_reader *parts, *from; /* `from`: the part that was peeked at; NULL: the array */
    size_t next;                             /* of the array */
};
/* A lane's array is sorted. `buffer_bytes` is for each part. */
MAREY_WARN_UNUSED marey_status marey__sink_reader_open(struct marey__sink_reader *reader,
                                                       const marey__sink_process *process,
                                                       const struct marey__sink_lane *lane,
                                                       size_t buffer_bytes);
/* The next entry without taking it, and its extra words (how many, then they), lent until taken; NULL: none is left. */
const struct marey__sink_entry *marey__sink_reader_peek(struct marey__sink_reader *reader,
                                                        const uint64_t **extra);
/* Take what was peeked at. */
MAREY_WARN_UNUSED marey_status marey__sink_reader_take(struct marey__sink_reader *reader);
void marey__sink_reader_close(struct marey__sink_reader *reader);

/* ---- sink_blocks.c: words of one lane of the log ---- */

struct marey__sink_log {
    struct marey__log log;
    marey__packer *packer;
    uint32_t n_lanes;   /* numbers given so far */
    uint64_t n_orphans; /* ends that had no begin */
    uint64_t n_crowded; /* slices for which there was no lane left */
};

struct marey__sink_track {
    const struct marey__sink_lane *of; /* whose tid and name it has */
    uint32_t number, sequence;
    bool is_written;
    uint64_t *words;
    size_t n_words, words_cap;
    uint64_t base_ns, last_ns, end_ns; /* of the block; `end_ns` is where the longest GPU work ends */
};
/* Words for one event at `ns`, all in one block: a plain word, or whole records whose ticks are filled in. */
MAREY_WARN_UNUSED marey_status marey__track_word(struct marey__sink_log *log,
                                                 struct marey__sink_track *lane, uint64_t ns,
                                                 uint32_t tag);
/* A begin when `tag` is not 0, with its records: those of type REPEAT stand before it, the others after. */
MAREY_WARN_UNUSED marey_status marey__track_records(struct marey__sink_log *log,
                                                    struct marey__sink_track *lane, uint64_t ns,
                                                    uint32_t tag, const uint64_t *records, size_t n);
MAREY_WARN_UNUSED marey_status marey__track_flush(struct marey__sink_log *log,
                                                  struct marey__sink_track *lane);

/* The most words of the records of one event, so that they and its begin fit into a block. */
enum { MAREY__EXTRA_WORDS_MAX = MAREY__CHUNK_WORDS - 1 };

/* ---- sink_nest.c: entries of a lane to words of one or several ---- */

struct marey__nest;
marey_status marey__nest_create(struct marey__sink_log *log, const struct marey__sink_lane *of,
                                struct marey__nest **out);
MAREY_WARN_UNUSED marey_status marey__nest_put(struct marey__nest *nest,
                                               const struct marey__sink_entry *entry,
                                               const uint64_t *extra);
/* Blocks of the lane itself written so far. */
uint32_t marey__nest_n_blocks(const struct marey__nest *nest);
/* End what is open, and write all. */
MAREY_WARN_UNUSED marey_status marey__nest_finish(struct marey__nest *nest);
void marey__nest_destroy(struct marey__nest *nest);

/* ---- sink_write.c ---- */

MAREY_WARN_UNUSED marey_status marey__sink_write(marey__sink *sink, marey__sink_process *process);

/* ---- log_store.c ---- */

/* A new log to be written; `end` takes it into the store as the file `name`, or throws it away when `status` is bad. */
MAREY_WARN_UNUSED marey_status marey__log_store_begin(struct marey__log_store *store,
                                                      struct marey__log *log);
MAREY_WARN_UNUSED marey_status marey__log_store_end(struct marey__log_store *store, const char *name,
                                                    struct marey__log *log, marey_status status);

#endif
