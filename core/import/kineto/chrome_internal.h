/*
 * Kineto and Chrome traces: JSON objects, one for each event, in a list that may be gigabytes long.
 *
 *   chrome_in.c ── the file: what stands around the events, and the loop over them
 *   chrome_event.c ── one event: where in the window its values lie; nothing is copied or converted yet
 *   chrome_args.c ── the arguments that mean something to us
 *   chrome_put.c ── by phase and category, what the sink gets;  chrome_work.c ── GPU work and communication
 *   chrome_sites.c ── names to sites, ids to numbers
 *   chrome_threads.c ── pids, tids and their names to processes and lanes
 */
#ifndef MAREY_CHROME_INTERNAL_H
#define MAREY_CHROME_INTERNAL_H

#include "codec/codec_internal.h"
#include "import/internal.h"
#include "import/sink/sink_internal.h"

/* ---- chrome_event.c ---- */

enum marey__chrome_kind {
    MAREY__CHROME_NONE, /* not there */
    MAREY__CHROME_STRING,
    MAREY__CHROME_NUMBER,
    MAREY__CHROME_NESTED, /* an object or a list */
    MAREY__CHROME_OTHER,  /* true, null, NaN */
};

/* A value as it stands in the window: of a string what is between its quotes. Lent until the window moves. */
struct marey__chrome_value {
    const char *at;
    uint32_t len;
    uint8_t kind;
    bool has_escapes;
};

/* The keys of an event. */
struct marey__chrome_event {
    struct marey__chrome_value phase, category, name, pid, tid, ts, dur, id, id2, bind_id, flow_in,
        flow_out, args;
};

enum marey__chrome_result { MAREY__CHROME_WHOLE, MAREY__CHROME_CUT, MAREY__CHROME_MISTAKE };

/*
 * Read the event whose brace stands at `p`. `*next` is behind it, or where the mistake is that `*mistake` names. CUT: it
 * goes on behind `end`, where what marey__json guarantees must stand.
 */
enum marey__chrome_result marey__chrome_parse(struct marey__chrome_event *event, const char *p,
                                              const char *end, const char **next,
                                              const char **mistake);

/*
 * Behind the brace of an object of a whole event, or behind a value of it: the next key and its value. NULL at the end,
 * else behind the value.
 */
const char *marey__chrome_next_key(const char *p, const char *end, struct marey__chrome_value *key,
                                   struct marey__chrome_value *value);

bool marey__chrome_is(const struct marey__chrome_value *value, const char *text);
bool marey__chrome_begins(const struct marey__chrome_value *value, const char *text);
/* Microseconds as nanoseconds; a number, also one in quotes. False: there is none. */
bool marey__chrome_ns(const struct marey__chrome_value *value, int64_t *ns);
bool marey__chrome_integer(const struct marey__chrome_value *value, int64_t *out);

/* ---- chrome_list.c ---- */

/* A list of events, and what is done with each. */
struct marey__chrome_list {
    struct marey__json *scan;          /* behind the bracket */
    struct marey__chrome_event *event; /* where put() finds the event */
    bool (*put)(void *ctx);            /* false: no more */
    bool (*refill)(void *ctx); /* more bytes; false when there are none, or nobody wants them */
    void *ctx;
    uint64_t *n_no_events; /* counts entries that are no objects; NULL: nobody asks */
};

/* Read up to the bracket that closes the list. What is wrong with it is in `scan`. */
void marey__chrome_read_list(const struct marey__chrome_list *list);

/* ---- chrome_args.c ---- */

struct marey__chrome_args {
    struct marey__chrome_value device, stream, correlation, bytes;
    struct marey__chrome_value collective, in_elements, out_elements, type, group_size, group_name,
        group_description, group_ranks, sequence, source, destination;
    struct marey__chrome_value input_dims, input_types;
    struct marey__chrome_value name, labels;                                /* of metadata */
    struct marey__chrome_value device_type, device_id, allocated, reserved; /* of [memory] */
    struct marey__chrome_value address, signed_bytes;                       /* of it too */
    struct marey__chrome_value external_id, sequence_number, forward_thread, stack, concrete_inputs;
};

void marey__chrome_parse_args(struct marey__chrome_args *args,
                              const struct marey__chrome_value *text);

/* ---- chrome_threads.c ---- */

/* A thread, or a stream, of the file; known by its name before it has events. */
struct marey__chrome_thread {
    int64_t pid, tid;
    marey__sink_process *process; /* NULL: no event of a thread yet */
    uint32_t lane, stream_lane;   /* UINT32_MAX: none */
    char *name;
    size_t name_len;
};

/* A process of the file, known by its name before it has events. */
struct marey__chrome_process {
    int64_t pid;
    marey__sink_process *process; /* NULL: no event yet */
    char *name, *labels;
};

/* What stands for a number: "pid": "Spans". */
struct marey__chrome_word {
    char *text;
    size_t len;
};

struct marey__chrome {
    struct marey__import *import;
    struct marey__json scan;
    struct marey__chrome_event event;         /* the one being put */
    struct marey_communication communication; /* of it */

    /* Processes, threads and words by their hash. */
    marey__sink_process *main; /* of GPU work, and of the pid that comes first; NULL: no event yet */
    int64_t main_pid;
    bool has_main_pid;
    bool is_kineto; /* one process, whatever the pids are */
    struct marey__chrome_process *processes;
    struct marey__chrome_thread *threads;
    struct marey__chrome_word *words;
    size_t n_processes, processes_cap, n_threads, threads_cap, n_words, words_cap;
    struct marey__sink_index processes_index, threads_index, words_index;
    size_t last_thread; /* that was asked for */
    uint64_t seed;
    bool has_failed; /* no memory */

    /* What stands around the events. */
    bool has_list, has_overflown;
    uint64_t base_ns;
    int32_t rank, world_size;
    char *backend, *host;
    struct marey__chrome_device {
        int64_t id;
        char *name;
        bool has_work;
    } * devices;
    size_t n_devices, devices_cap;

    struct marey__buf text; /* an unescaped name */

    /* Told at the end. */
    uint64_t n_events, n_no_events, n_without_time, n_negative_times, n_without_duration,
        n_negative_durations, n_without_value, n_phases[256];
};

/* The thread of an event; NULL without memory. Made when new. */
struct marey__chrome_thread *marey__chrome_thread(struct marey__chrome *chrome,
                                                  const struct marey__chrome_value *pid,
                                                  const struct marey__chrome_value *tid);
/* As a thread that has events; as a stream of the main process. False without memory. */
bool marey__chrome_as_thread(struct marey__chrome *chrome, struct marey__chrome_thread *thread);
bool marey__chrome_as_stream(struct marey__chrome *chrome, struct marey__chrome_thread *thread);
/* The thread called `pid` and `tid`, for streams. */
struct marey__chrome_thread *marey__chrome_thread_of(struct marey__chrome *chrome, int64_t pid,
                                                     int64_t tid);
/* Metadata: names. */
void marey__chrome_name_thread(struct marey__chrome *chrome, const char *name, size_t len);
/* By its labels, where `is_label`, in case it has no name. */
void marey__chrome_name_process(struct marey__chrome *chrome, const char *name, size_t len,
                                bool is_label);
/* Tell the sink all names, ranks, times and devices that are known by now. */
void marey__chrome_identify(struct marey__chrome *chrome);
void marey__chrome_free_threads(struct marey__chrome *chrome);

/* ---- chrome_sites.c ---- */

/* A text without escapes, lent until the next call. */
struct marey__chrome_value marey__chrome_text(struct marey__chrome *chrome,
                                              const struct marey__chrome_value *value);
/* A site of the event's category, with its name or another. */
uint32_t marey__chrome_site(struct marey__chrome *chrome, marey__sink_process *process);
uint32_t marey__chrome_site_named(const struct marey__chrome *chrome, marey__sink_process *process,
                                  const char *name, size_t len);
/* The id of a flow: a number, also in hexadecimal, or any text by its hash. */
uint64_t marey__chrome_id(const struct marey__chrome_value *value);
/* An async range is known by its category, its name and its id, which may count within its process alone. */
uint64_t marey__chrome_async_id(const struct marey__chrome_event *event);

/* ---- chrome_put.c ---- */

void marey__chrome_put(struct marey__chrome *chrome);

/* ---- chrome_work.c ---- */

void marey__chrome_put_work(struct marey__chrome *chrome, struct marey__sink_event *out,
                            enum marey_work_kind kind);
/*
 * What `args` tell of a collective, or the `name` of a range on the host (NULL: it is not one); false when there is none.
 * `group` is a site of `process`.
 */
bool marey__chrome_communication(marey__sink_process *process, const struct marey__chrome_value *name,
                                 const struct marey__chrome_args *args,
                                 struct marey_communication *out);

#endif
