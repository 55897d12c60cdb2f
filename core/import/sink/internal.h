/*
 * sink: events of an importer, in any order, to the logs of a recording.
 *
 * Comes in: what an importer finds in a foreign file, in the order of that file. Goes out: logs that a reader can
 * stream. Sorts within a memory budget, spilling to disk, and turns slices with durations into begins and ends. Knows
 * no foreign format.
 */
#ifndef MAREY_SINK_H
#define MAREY_SINK_H

#include "base/base_internal.h"
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
 * without memory.
 */
marey__sink_process *marey__sink_process_get(marey__sink *sink, uint64_t key);
/* Say who it is; fields that are NULL, or negative, keep what they were. */
void marey__sink_identify(marey__sink_process *process, const struct marey__sink_identity *identity);
/* All its times, of events to come too, count from `ns`: some files tell at their end since when. 0 before it is said. */
void marey__sink_shift(marey__sink_process *process, uint64_t ns);
/* What to add to its times for those since 1970, where they are on another clock. */
void marey__sink_set_wall(marey__sink_process *process, int64_t to_unix_ns);
/*
 * A sentence for people about this process, shown by every report; each different one once. What could not be read of a
 * damaged file is told here: the answer is given from the rest.
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
    uint64_t repeat; /* calls that a slice stands for; 0 and 1: one; MAREY__SINK_NO_CALL: of calls counted elsewhere */
    double value; /* of a counter */
    enum marey_work_kind work_kind;
    enum marey_flow_end flow_end;
    const struct marey_communication *communication; /* of a slice or GPU work; NULL: none. `group` a sink's site */
    const char *arguments; /* of a slice or GPU work: a JSON object as it stands in the file; NULL: none */
    size_t arguments_len;
};

/* Take one event. A failure (memory, a full disk) is kept: marey__sink_status tells, and later events are ignored. */
void marey__sink_put(marey__sink_process *process, const struct marey__sink_event *event);
MAREY_WARN_UNUSED marey_status marey__sink_status(const marey__sink *sink);
/* Whether it failed, without a sentence. */
bool marey__sink_has_failed(const marey__sink *sink);

/* Events so far, of all processes. */
uint64_t marey__sink_n_events(const marey__sink *sink);

/* The process's rank, or -1, so that whoever knows better by the file's name may say so. */
int32_t marey__sink_rank(const marey__sink_process *process);
/* Processes so far, in the order in which they came; NULL past the last. */
marey__sink_process *marey__sink_process_at(const marey__sink *sink, size_t i);
/* The first that has events, that is the first that gets a log; NULL: none. */
marey__sink_process *marey__sink_process_with_events(const marey__sink *sink);

/* ---- log_store.c: the logs of one recording in the making ---- */

/* For several sinks in several threads. They lie in a file without a name, in `folder` (lent) where that can be had. */
struct marey__log_store;
MAREY_WARN_UNUSED marey_status marey__log_store_open(const char *folder,
                                                     struct marey__log_store **out);
MAREY_WARN_UNUSED marey_status marey__log_store_open_temporary(struct marey__log_store **out);
/* The logs as a recording called `name`, which keeps the file; the store is then only to be closed. */
MAREY_WARN_UNUSED marey_status marey__log_store_read(struct marey__log_store *store,
                                                     const char *name, marey_recording **out);
/* Write them into the directory, a file each. On failure some may be there. */
MAREY_WARN_UNUSED marey_status marey__log_store_save(const struct marey__log_store *store,
                                                     const char *directory);
void marey__log_store_close(struct marey__log_store *store);

#endif
