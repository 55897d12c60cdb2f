/*
 * kineto: Kineto and Chrome traces: a list of JSON objects, one per event, that may be gigabytes long.
 *
 *   kineto_file.c      the file: header and the loop over its events, for both readers
 *   chrome_event.c     one event: positions of its values; known arguments
 *   chrome_in.c, chrome_put.c, chrome_work.c, chrome_threads.c   events to the sink
 *   torch_*.c          a torch.profiler trace in memory: operators, kernels, allocations with shapes and stacks
 *
 * Input: a file, plain or gzip. Output: events through the sink, or rows of a torch trace: about 100 bytes per event
 * and each different string once, because operators need shapes, stacks and allocations in any order. Does not know log
 * blocks or analyses.
 */
#ifndef MAREY_IMPORT_KINETO_INTERNAL_H
#define MAREY_IMPORT_KINETO_INTERNAL_H

#include "codec/internal.h"
#include "import/internal.h"
#include "import/sink/internal.h"

/* ---- chrome_event.c ---- */

enum marey__chrome_kind {
    MAREY__CHROME_NONE, /* missing */
    MAREY__CHROME_STRING,
    MAREY__CHROME_NUMBER,
    MAREY__CHROME_NESTED, /* an object or a list */
    MAREY__CHROME_OTHER,  /* true, null, NaN */
};

/* A value in the window; of a string, the bytes between its quotes. Valid until the window moves. */
struct marey__chrome_value {
    const char *at;
    uint32_t len;
    uint8_t kind;
    bool has_escapes;
};

/* The values of an event's keys. */
struct marey__chrome_event {
    struct marey__chrome_value phase, category, name, pid, tid, ts, dur, id, id2, bind_id, flow_in,
        flow_out, args;
};

enum marey__chrome_result { MAREY__CHROME_WHOLE, MAREY__CHROME_CUT, MAREY__CHROME_MISTAKE };

/*
 * Parse the event whose brace is at `p`. `*next` is the position after it, or of the error described by `*mistake`.
 * CUT: the event continues after `end`, where the sentinel bytes guaranteed by marey__json must be.
 */
enum marey__chrome_result marey__chrome_parse(struct marey__chrome_event *event, const char *p,
                                              const char *end, const char **next,
                                              const char **mistake);

/*
 * Iterate over the keys of an object within a complete event: `p` is after its brace or after a value. Returns the
 * position after the value, or NULL at the end.
 */
const char *marey__chrome_next_key(const char *p, const char *end, struct marey__chrome_value *key,
                                   struct marey__chrome_value *value);

static inline bool marey__chrome_is(const struct marey__chrome_value *value, const char *text)
{
    return marey__text_is(value->at, value->len, text);
}
static inline bool marey__chrome_begins(const struct marey__chrome_value *value, const char *text)
{
    return marey__starts_with(value->at, value->len, text);
}
static inline bool marey__chrome_ends(const struct marey__chrome_value *value, const char *text)
{
    return marey__ends_with(value->at, value->len, text);
}
/* Microseconds as nanoseconds, from a number or a quoted number. Returns false if there is none. */
bool marey__chrome_ns(const struct marey__chrome_value *value, int64_t *ns);
bool marey__chrome_integer(const struct marey__chrome_value *value, int64_t *out);

struct marey__chrome_args {
    struct marey__chrome_value device, stream, correlation, bytes;
    struct marey__chrome_value collective, in_elements, out_elements, type, group_size, group_name,
        group_description, group_ranks, sequence, source, destination;
    struct marey__chrome_value input_dims, input_types;
    struct marey__chrome_value name, labels;                                /* of metadata */
    struct marey__chrome_value device_type, device_id, allocated, reserved; /* of [memory] */
    struct marey__chrome_value address, signed_bytes;                       /* of [memory], too */
    struct marey__chrome_value external_id, sequence_number, forward_thread, stack, concrete_inputs;
};

void marey__chrome_parse_args(struct marey__chrome_args *args,
                              const struct marey__chrome_value *text);

/* ---- kineto_file.c ---- */

struct marey__kineto_device {
    int64_t id;       /* -1: unknown */
    const char *name; /* NULL: unknown */
};

/* The keys beside the events. */
struct marey__kineto_header {
    int64_t base_ns;            /* added to all times of the file; 0: unknown */
    int64_t rank, world_size;   /* from torch.distributed; -1: unknown */
    const char *backend, *host; /* NULL: unknown */
    struct marey__kineto_device *devices;
    size_t n_devices, devices_cap;
    struct marey__arena texts;
    bool has_shapes, has_stacks, has_memory, has_flops; /* the options of the profiler */
    bool has_list;                                      /* has an array of events */
    bool is_kineto;     /* has a key of Kineto's, so the file is one process, whatever its pids */
    bool has_overflown; /* viztracer's buffer was full */
};
void marey__kineto_header_fini(struct marey__kineto_header *header);

/* A key of a JSON object, and the struct member for its value: an int64_t (-1: not a number), bool or text. */
struct marey__kineto_field {
    const char *key; /* NULL after the last */
    enum { MAREY__KINETO_INTEGER, MAREY__KINETO_FLAG, MAREY__KINETO_TEXT } type;
    size_t offset;
};
/*
 * Read the value of the last key into its member of `into`; false if no field has this key. Texts are stored in
 * `texts`.
 */
bool marey__kineto_read_field(struct marey__json *json, const struct marey__kineto_field *fields,
                              struct marey__arena *texts, void *into);

struct marey__kineto_file {
    const char *name; /* in messages */
    struct marey__json json;
    struct marey__kineto_header *header;
    struct marey__chrome_event event; /* the current event, for put() */
    bool (*put)(void *ctx);           /* false: stop */
    bool (*wants_more)(void *ctx);    /* called before more bytes are read; false: stop */
    bool (*read_key)(void *ctx); /* reads a key that is not in the header; false: skip it. NULL: skip all */
    void *ctx;
    uint64_t n_no_events; /* entries of the array that are not objects */
};

/*
 * Read all of `bytes`. The caller sets `name`, `header` (zeroed), `put`, `wants_more`, `read_key` and `ctx`. Fails with
 * MAREY_EIO or MAREY_ENOMEM; `json` has errors of the text.
 */
MAREY_WARN_UNUSED marey_status marey__kineto_file_read(struct marey__kineto_file *file,
                                                       struct marey__byte_source *bytes);
/* Append a description of a truncated or damaged file; nothing if it is complete. */
void marey__kineto_file_damage(const struct marey__kineto_file *file, struct marey__buf *out);

/* ---- chrome_threads.c ---- */

/* A thread or stream of the file; may be named before it has events. */
struct marey__chrome_thread {
    int64_t pid, tid;             /* the key */
    marey__sink_process *process; /* NULL: no event of a thread yet */
    uint32_t lane, stream_lane;   /* UINT32_MAX: none */
    const char *name;
    size_t name_len;
};

/* A process of the file; may be named before it has events. */
struct marey__chrome_process {
    int64_t pid;                  /* the key */
    marey__sink_process *process; /* NULL: no event yet */
    const char *name, *labels;
};

struct marey__chrome {
    struct marey__import *import;
    struct marey__kineto_file file;
    struct marey__kineto_header header;
    struct marey_communication communication; /* of the current event */

    /* Processes, threads and words by their hash. */
    marey__sink_process *main; /* has the GPU work and the pid that comes first; NULL: no event yet */
    int64_t main_pid;
    bool has_main_pid;
    struct marey__chrome_process *processes;
    struct marey__chrome_thread *threads;
    size_t n_processes, processes_cap, n_threads, threads_cap;
    struct marey__index processes_index, threads_index;
    struct marey__names words; /* words with assigned numbers: "pid": "Spans" */
    size_t last_thread;        /* looked up last */
    uint64_t seed;
    bool has_failed; /* out of memory */

    struct marey__arena texts; /* of processes, threads and words */
    struct marey__buf text;    /* an unescaped name */

    /* For the notes at the end. */
    uint64_t n_events, n_without_time, n_negative_times, n_without_duration, n_negative_durations,
        n_without_value, n_phases[256];
};

/* The thread of an event, created if needed; NULL on out of memory. */
struct marey__chrome_thread *marey__chrome_thread(struct marey__chrome *chrome,
                                                  const struct marey__chrome_value *pid,
                                                  const struct marey__chrome_value *tid);
/* Give it a thread's lane, or a stream's lane of the main process. Returns false on out of memory. */
bool marey__chrome_as_thread(struct marey__chrome *chrome, struct marey__chrome_thread *thread);
bool marey__chrome_as_stream(struct marey__chrome *chrome, struct marey__chrome_thread *thread);
/* The thread of `pid` and `tid`, for streams. */
struct marey__chrome_thread *marey__chrome_thread_of(struct marey__chrome *chrome, int64_t pid,
                                                     int64_t tid);
/* Names from metadata events. */
void marey__chrome_name_thread(struct marey__chrome *chrome, const char *name, size_t len);
/* `is_label`: the labels, used if the process has no name. */
void marey__chrome_name_process(struct marey__chrome *chrome, const char *name, size_t len,
                                bool is_label);
/* Pass all names, ranks, times and devices known so far to the sink. */
void marey__chrome_identify(struct marey__chrome *chrome);
void marey__chrome_free_threads(struct marey__chrome *chrome);

/* The text without escapes, valid until the next call. */
struct marey__chrome_value marey__chrome_text(struct marey__chrome *chrome,
                                              const struct marey__chrome_value *value);
/* A site with the event's category, and its name or another one. */
uint32_t marey__chrome_site(struct marey__chrome *chrome, marey__sink_process *process);
uint32_t marey__chrome_site_named(const struct marey__chrome *chrome, marey__sink_process *process,
                                  const char *name, size_t len);
/* The id of a flow: a number, also hexadecimal, or the hash of any other text. */
uint64_t marey__chrome_id(const struct marey__chrome_value *value);
/* The identity of an async range: category, name and id, whose scope may be its process. */
uint64_t marey__chrome_async_id(const struct marey__chrome_event *event);

/* ---- chrome_put.c ---- */

void marey__chrome_put(struct marey__chrome *chrome);

/* ---- chrome_work.c ---- */

void marey__chrome_put_work(struct marey__chrome *chrome, struct marey__sink_event *out,
                            enum marey_work_kind kind);
/*
 * Read the collective described by `args`, or by `name`, the name of a host range (NULL if not one); false if none.
 * `group` is a site of `process`.
 */
bool marey__chrome_communication(marey__sink_process *process, const struct marey__chrome_value *name,
                                 const struct marey__chrome_args *args,
                                 struct marey_communication *out);

/* ---- rows ---- */

enum marey__torch_kind {
    MAREY__TORCH_OP,         /* cpu_op */
    MAREY__TORCH_ANNOTATION, /* user_annotation: record_function, ProfilerStep#k, marey:forward */
    MAREY__TORCH_PYTHON,     /* python_function */
    MAREY__TORCH_RUNTIME,    /* cuda_runtime, cuda_driver and their like: a call on a thread */
    MAREY__TORCH_OVERHEAD,   /* of the profiler itself */
    MAREY__TORCH_KERNEL,     /* from here on by devices: the thread is a stream */
    MAREY__TORCH_MEMCPY,
    MAREY__TORCH_MEMSET,
    MAREY__TORCH_SYNC, /* cuda_sync */
    MAREY__TORCH_GPU_ANNOTATION, /* the extent of an annotation's work on a stream, from its first to its last kernel */
    MAREY__TORCH_N_KINDS,
};

#define MAREY__TORCH_BIT(kind) (1u << (kind))
enum { MAREY__TORCH_ALL_KINDS = (1 << MAREY__TORCH_N_KINDS) - 1 };

static inline bool marey__torch_on_device(unsigned kind)
{
    return kind >= MAREY__TORCH_KERNEL;
}

/* A text of the trace: see marey__torch_text(). Equal texts have equal ids; 0 is the empty text, or a missing one. */
typedef uint32_t marey__torch_id;

/* An event with begin and end. Lists in the trace are kept as JSON text. */
struct marey__torch_event {
    int64_t begin_ns, end_ns; /* Unix time */
    int64_t external_id; /* "External id": an operator's own id; of calls and kernels the operator's; -1: none */
    int64_t correlation; /* of a call and the work it launched; -1: none */
    int64_t sequence; /* "Sequence number", shared by a forward and a backward operator; -1: none */
    int64_t forward_thread; /* "Fwd thread id": torch's number of a thread, not 0 for backward operators */
    marey__torch_id name;
    marey__torch_id stack;    /* "Call stack": `file.py(line): function;...`, the leaf first */
    marey__torch_id shapes;   /* "Input Dims": [[4, 3], [], [[2, 2], [3]]] */
    marey__torch_id types;    /* "Input type": ["float", "Scalar", ""] */
    marey__torch_id concrete; /* "Concrete Inputs": ["", "[1, 1]", "False"] */
    uint32_t thread;          /* of marey__torch_trace.threads */
    uint32_t order;           /* index of the event in the file; orders events with equal times */
    uint8_t kind;             /* enum marey__torch_kind */
};

/* An allocation or a release: an instant named [memory]. */
struct marey__torch_memory {
    int64_t ns; /* Unix time */
    uint64_t address;
    int64_t bytes;                           /* negative: released */
    int64_t total_allocated, total_reserved; /* of the device, afterwards; 0 if not recorded */
    int32_t device_type, device_id; /* torch's numbering: 0 CPU, 1 CUDA, ...; -1 for the CPU's */
    marey__torch_id stack;
    uint32_t thread, order;
};

struct marey__torch_thread {
    int64_t pid, tid; /* of a stream: device and stream. Words ("Spans") become negative hashes */
    marey__torch_id name; /* 0: none */
    size_t begin, end;    /* its events, from `begin` to before `end` */
};

/* The role of the storage at an address at one time, recorded by our own callback. */
enum marey__torch_role_kind {
    MAREY__TORCH_PARAMETER,
    MAREY__TORCH_GRADIENT,
    MAREY__TORCH_OPTIMIZER_STATE,
    MAREY__TORCH_INPUT,
};

struct marey__torch_role {
    uint64_t address;
    int64_t bytes, ns;
    int32_t device_type, device_id;
    marey__torch_id name;
    uint8_t kind; /* enum marey__torch_role_kind */
};

/* ---- the trace ---- */

struct marey__torch_trace {
    struct marey__torch_event *events; /* by thread, then begin, then longer first, then order */
    size_t n_events, events_cap;
    struct marey__torch_memory *memory; /* by time, then order; of all threads */
    size_t n_memory, memory_cap;
    struct marey__torch_thread *threads; /* in the order of the file */
    size_t n_threads, threads_cap;
    struct marey__torch_role *roles; /* in the order of the file */
    size_t n_roles, roles_cap;
    struct marey__names strings; /* by id; the texts are the header's */

    /* The keys beside the events. -1: unknown. */
    struct marey__kineto_header header;
    int64_t marey_rank, marey_world_size; /* from marey's own callback */
    bool is_partial;                      /* the window was truncated, and why: */
    marey__torch_id why;
    bool has_xpu;                             /* the device is Intel's */
    uint64_t n_bytes;                         /* decompressed */
    uint64_t n_by_kind[MAREY__TORCH_N_KINDS]; /* in the file, including skipped kinds */
    uint64_t n_without_time;                  /* events skipped for lack of a time */
    char *damage; /* a sentence if the file is truncated or damaged after its start; NULL: complete */
};

struct marey__torch_options {
    uint32_t kinds; /* MAREY__TORCH_BIT()s of the events to keep; 0: all. Counts include all */
    bool without_memory,
        without_arguments; /* skip [memory], shapes, types, concrete inputs and stacks */
    void (*progress)(void *ctx, double share);
    void *progress_ctx;
};

/*
 * Read the trace at `path`; `options` may be NULL. MAREY_EFORMAT: not such a trace, or no readable event; also
 * MAREY_EIO, MAREY_ENOMEM. A file that is truncated or damaged after its first events is read up to there; see
 * `damage`.
 */
MAREY_WARN_UNUSED marey_status marey__torch_read(const char *path,
                                                 const struct marey__torch_options *options,
                                                 struct marey__torch_trace **out);
/* The same for bytes in memory; messages call them `name`. */
MAREY_WARN_UNUSED marey_status marey__torch_read_memory(const char *name, const void *bytes,
                                                        size_t len,
                                                        const struct marey__torch_options *options,
                                                        struct marey__torch_trace **out);
/* The same for a stream of bytes, in pieces of any size. */
MAREY_WARN_UNUSED marey_status marey__torch_read_bytes(const char *name,
                                                       struct marey__byte_source *bytes,
                                                       const struct marey__torch_options *options,
                                                       struct marey__torch_trace **out);
void marey__torch_free(struct marey__torch_trace *trace);

/* A text, valid while the trace lives, NUL-terminated. */
static inline const char *marey__torch_text(const struct marey__torch_trace *trace,
                                            marey__torch_id id, size_t *len)
{
    const struct marey__name *string = &trace->strings.names[id];
    if (len != NULL)
        *len = string->len;
    return string->text;
}
/* The id of a text of the trace, or 0. */
marey__torch_id marey__torch_find(const struct marey__torch_trace *trace, const char *text,
                                  size_t len);
/* The rank: marey's own, else torch.distributed's, else 0. */
int64_t marey__torch_rank(const struct marey__torch_trace *trace);

/* ---- internal to the module ---- */

/* The id of a text, created if needed. Returns false on out of memory or too many texts. */
bool marey__torch_intern(struct marey__torch_trace *trace, const char *text, size_t len,
                         marey__torch_id *id);
/* -1 for values that are too large. */
static inline int32_t marey__torch_small(int64_t number)
{
    return number >= INT32_MIN && number <= INT32_MAX ? (int32_t)number : -1;
}

/* State of reading a trace, shared by the reader's files. */

struct marey__torch_reader {
    struct marey__torch_trace *trace;
    struct marey__torch_options options; /* `kinds` is never 0 */
    struct marey__kineto_file file;
    uint32_t n_events;    /* read so far: `order` */
    uint32_t last_thread; /* looked up last */
    struct marey__index threads;
    struct marey__buf text; /* an unescaped text */
    bool has_failed;        /* out of memory */
};

/* torch_event.c: add the event as a row if its kind is selected. */
void marey__torch_put_event(struct marey__torch_reader *reader);

#endif
