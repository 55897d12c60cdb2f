/*
 * kineto: Kineto and Chrome traces: JSON objects, one per event, in a list that may be gigabytes long.
 *
 *   kineto_file.c      the file: header and the loop over its events, for both consumers
 *   chrome_event.c     one event: where its values are; the arguments that matter
 *   chrome_in.c, chrome_put.c, chrome_work.c, chrome_threads.c   events to the sink
 *   torch_*.c          a torch.profiler trace in memory: operators, kernels, allocations with shapes and stacks
 *
 * Input: a file, plain or gzip. Output: events through the sink, or rows of a torch trace: some 100 bytes per event
 * and each different string once, because operators need shapes, stacks and allocations in any order.
 */
#ifndef MAREY_IMPORT_KINETO_INTERNAL_H
#define MAREY_IMPORT_KINETO_INTERNAL_H

#include "codec/internal.h"
#include "import/internal.h"
#include "import/sink/internal.h"

/* ---- chrome_event.c ---- */

enum marey__chrome_kind {
    MAREY__CHROME_NONE, /* not there */
    MAREY__CHROME_STRING,
    MAREY__CHROME_NUMBER,
    MAREY__CHROME_NESTED, /* an object or a list */
    MAREY__CHROME_OTHER,  /* true, null, NaN */
};

/* A value as it is in the window: of a string what is between its quotes. Lent until the window moves. */
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
 * Read the event whose brace is at `p`. `*next` is after it, or where the mistake is that `*mistake` names. CUT: it
 * goes on after `end`, where what marey__json guarantees must stand.
 */
enum marey__chrome_result marey__chrome_parse(struct marey__chrome_event *event, const char *p,
                                              const char *end, const char **next,
                                              const char **mistake);

/*
 * Behind the brace of an object of a whole event, or after a value of it: the next key and its value. NULL at the end,
 * else after the value.
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
/* Microseconds as nanoseconds; a number, also one in quotes. False: there is none. */
bool marey__chrome_ns(const struct marey__chrome_value *value, int64_t *ns);
bool marey__chrome_integer(const struct marey__chrome_value *value, int64_t *out);

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

/* ---- kineto_file.c ---- */

struct marey__kineto_device {
    int64_t id;       /* -1: unknown */
    const char *name; /* NULL: unknown */
};

/* The keys around the events. */
struct marey__kineto_header {
    int64_t base_ns;            /* added to the times of the file; 0: unknown */
    int64_t rank, world_size;   /* by torch.distributed; -1: unknown */
    const char *backend, *host; /* NULL: unknown */
    struct marey__kineto_device *devices;
    size_t n_devices, devices_cap;
    struct marey__arena texts;
    bool has_shapes, has_stacks, has_memory, has_flops; /* the options of the profiler */
    bool has_list;                                      /* an array of events */
    bool is_kineto; /* some key is Kineto's, so the file has one process, whatever the pids are */
    bool has_overflown; /* viztracer's buffer was full */
};
void marey__kineto_header_fini(struct marey__kineto_header *header);

/* A key of a JSON object, and the field of a struct that its value goes to: an int64_t (-1: not a number), bool or text. */
struct marey__kineto_field {
    const char *key; /* NULL after the last */
    enum { MAREY__KINETO_INTEGER, MAREY__KINETO_FLAG, MAREY__KINETO_TEXT } type;
    size_t offset;
};
/* Read the value of the key just read into its field of `into`; false when no field has the key. Texts lie in `texts`. */
bool marey__kineto_read_field(struct marey__json *json, const struct marey__kineto_field *fields,
                              struct marey__arena *texts, void *into);

struct marey__kineto_file {
    const char *name; /* in messages */
    struct marey__json json;
    struct marey__kineto_header *header;
    struct marey__chrome_event event; /* the one that put() takes */
    bool (*put)(void *ctx);           /* false: stop */
    bool (*wants_more)(void *ctx);    /* called before more bytes are read; false: stop */
    bool (*read_key)(void *ctx); /* a key that is not in the header; false: skip it. NULL: skip all */
    void *ctx;
    uint64_t n_no_events; /* entries of the array that are not objects */
};

/*
 * Read all of `bytes`. `name`, `header` (zeroed), `put`, `wants_more`, `read_key` and `ctx` are set. MAREY_EIO, MAREY_ENOMEM;
 * whatever is wrong with the text is in `json`.
 */
MAREY_WARN_UNUSED marey_status marey__kineto_file_read(struct marey__kineto_file *file,
                                                       struct marey__byte_source *bytes);
/* Append the sentence about a file that is cut off or damaged; nothing where it is complete. */
void marey__kineto_file_damage(const struct marey__kineto_file *file, struct marey__buf *out);

/* ---- chrome_threads.c ---- */

/* A thread, or a stream, of the file; known by its name before it has events. */
struct marey__chrome_thread {
    int64_t pid, tid;             /* the key */
    marey__sink_process *process; /* NULL: no event of a thread yet */
    uint32_t lane, stream_lane;   /* UINT32_MAX: none */
    const char *name;
    size_t name_len;
};

/* A process of the file, known by its name before it has events. */
struct marey__chrome_process {
    int64_t pid;                  /* the key */
    marey__sink_process *process; /* NULL: no event yet */
    const char *name, *labels;
};

struct marey__chrome {
    struct marey__import *import;
    struct marey__kineto_file file;
    struct marey__kineto_header header;
    struct marey_communication communication; /* of the event being put */

    /* Processes, threads and words by their hash. */
    marey__sink_process *main; /* of GPU work, and of the pid that comes first; NULL: no event yet */
    int64_t main_pid;
    bool has_main_pid;
    struct marey__chrome_process *processes;
    struct marey__chrome_thread *threads;
    size_t n_processes, processes_cap, n_threads, threads_cap;
    struct marey__index processes_index, threads_index;
    struct marey__names words; /* that represent numbers: "pid": "Spans" */
    size_t last_thread;        /* that was asked for */
    uint64_t seed;
    bool has_failed; /* no memory */

    struct marey__arena texts; /* of processes, threads and words */
    struct marey__buf text;    /* an unescaped name */

    /* For the notes at the end. */
    uint64_t n_events, n_without_time, n_negative_times, n_without_duration, n_negative_durations,
        n_without_value, n_phases[256];
};

/* The thread of an event; NULL on out of memory. Made when new. */
struct marey__chrome_thread *marey__chrome_thread(struct marey__chrome *chrome,
                                                  const struct marey__chrome_value *pid,
                                                  const struct marey__chrome_value *tid);
/* As a thread that has events; as a stream of the main process. Returns false on out of memory. */
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
    MAREY__TORCH_SYNC,           /* cuda_sync */
    MAREY__TORCH_GPU_ANNOTATION, /* an annotation's work on a stream, from its first to its last kernel */
    MAREY__TORCH_N_KINDS,
};

#define MAREY__TORCH_BIT(kind) (1u << (kind))
enum { MAREY__TORCH_ALL_KINDS = (1 << MAREY__TORCH_N_KINDS) - 1 };

static inline bool marey__torch_on_device(unsigned kind)
{
    return kind >= MAREY__TORCH_KERNEL;
}

/* A text of the trace: marey__torch_text(). Equal texts have equal ids; 0 is the empty one, and "not there". */
typedef uint32_t marey__torch_id;

/* Something with a begin and an end. Texts that are lists in the trace are kept as the JSON they were. */
struct marey__torch_event {
    int64_t begin_ns, end_ns; /* Unix time */
    int64_t external_id; /* "External id": of operators their own, of calls and kernels the operator's; -1: none */
    int64_t correlation; /* of a call and of what it launched; -1: none */
    int64_t sequence; /* "Sequence number" that a forward and a backward operator share; -1: none */
    int64_t forward_thread; /* "Fwd thread id": not 0 for backward operators; torch's own number of a thread */
    marey__torch_id name;
    marey__torch_id stack;    /* "Call stack": `file.py(line): function;...`, the leaf first */
    marey__torch_id shapes;   /* "Input Dims": [[4, 3], [], [[2, 2], [3]]] */
    marey__torch_id types;    /* "Input type": ["float", "Scalar", ""] */
    marey__torch_id concrete; /* "Concrete Inputs": ["", "[1, 1]", "False"] */
    uint32_t thread;          /* of marey__torch_trace.threads */
    uint32_t order;           /* the how manieth event of the file: who came first of equals */
    uint8_t kind;             /* enum marey__torch_kind */
};

/* An allocation or a release: an instant named [memory]. */
struct marey__torch_memory {
    int64_t ns; /* Unix time */
    uint64_t address;
    int64_t bytes;                           /* negative: released */
    int64_t total_allocated, total_reserved; /* of the device, after it; 0 where it is not reported */
    int32_t device_type, device_id; /* as torch numbers them: 0 CPU, 1 CUDA, ...; -1 for the CPU's */
    marey__torch_id stack;
    uint32_t thread, order;
};

struct marey__torch_thread {
    int64_t pid, tid; /* of a stream: device and stream. Words ("Spans") are their hash, negative */
    marey__torch_id name; /* 0: it has none */
    size_t begin, end;    /* its events, from `begin` to before `end` */
};

/* What the storage at an address was at an instant, told by our own callback. */
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
    struct marey__torch_event *events; /* by thread, then begin, of equals the longer first, then order */
    size_t n_events, events_cap;
    struct marey__torch_memory *memory; /* by time, then order; of all threads */
    size_t n_memory, memory_cap;
    struct marey__torch_thread *threads; /* in the order of the file */
    size_t n_threads, threads_cap;
    struct marey__torch_role *roles; /* in the order of the file */
    size_t n_roles, roles_cap;
    struct marey__names strings; /* by id; the texts are the header's */

    /* The keys around the events. -1: unknown. */
    struct marey__kineto_header header;
    int64_t marey_rank, marey_world_size; /* by marey's own callback */
    bool is_partial;                      /* the window was cut short, and why: */
    marey__torch_id why;
    bool has_xpu;                             /* the device is Intel's */
    uint64_t n_bytes;                         /* decompressed */
    uint64_t n_by_kind[MAREY__TORCH_N_KINDS]; /* in the file, also of kinds that are left out */
    uint64_t n_without_time;                  /* events that are left out for it */
    char *damage; /* a sentence when the file is cut off or damaged, and its begin was read; NULL: it is whole */
};

struct marey__torch_options {
    uint32_t kinds; /* MAREY__TORCH_BIT()s of the events to keep; 0: all. Counts are of all */
    bool without_memory,
        without_arguments; /* leave out [memory]; shapes, types, concrete inputs and stacks */
    void (*progress)(void *ctx, double share);
    void *progress_ctx;
};

/*
 * Read the trace at `path`; `options` may be NULL. MAREY_EFORMAT: it is not a such trace, or has no event that can be
 * read; MAREY_EIO, MAREY_ENOMEM. A file that is cut off or damaged after its first events is read that far, see
 * `damage`.
 */
MAREY_WARN_UNUSED marey_status marey__torch_read(const char *path,
                                                 const struct marey__torch_options *options,
                                                 struct marey__torch_trace **out);
/* The same of bytes in memory, called `name` in sentences. */
MAREY_WARN_UNUSED marey_status marey__torch_read_memory(const char *name, const void *bytes,
                                                        size_t len,
                                                        const struct marey__torch_options *options,
                                                        struct marey__torch_trace **out);
/* And of bytes that are read once, in pieces of any size. */
MAREY_WARN_UNUSED marey_status marey__torch_read_bytes(const char *name,
                                                       struct marey__byte_source *bytes,
                                                       const struct marey__torch_options *options,
                                                       struct marey__torch_trace **out);
void marey__torch_free(struct marey__torch_trace *trace);

/* A text, lent while the trace lives, with a NUL after it that is not counted. */
static inline const char *marey__torch_text(const struct marey__torch_trace *trace,
                                            marey__torch_id id, size_t *len)
{
    const struct marey__name *string = &trace->strings.names[id];
    if (len != NULL)
        *len = string->len;
    return string->text;
}
/* The id of a text that is in the trace, else 0. */
marey__torch_id marey__torch_find(const struct marey__torch_trace *trace, const char *text,
                                  size_t len);
/* The rank: what marey put there, else torch.distributed's, else 0. */
int64_t marey__torch_rank(const struct marey__torch_trace *trace);

/* ---- inside the module ---- */

/* The id of a text, made when new. Returns false on out of memory, or when there are too many. */
bool marey__torch_intern(struct marey__torch_trace *trace, const char *text, size_t len,
                         marey__torch_id *id);
/* -1 for what is too large. */
static inline int32_t marey__torch_small(int64_t number)
{
    return number >= INT32_MIN && number <= INT32_MAX ? (int32_t)number : -1;
}

/* What the files of the reader share while a trace is read. */

struct marey__torch_reader {
    struct marey__torch_trace *trace;
    struct marey__torch_options options; /* `kinds` is never 0 */
    struct marey__kineto_file file;
    uint32_t n_events;    /* of the file so far: `order` */
    uint32_t last_thread; /* that was asked for */
    struct marey__index threads;
    struct marey__buf text; /* an unescaped text */
    bool has_failed;        /* no memory */
};

/* torch_event.c: the event to a row of the trace, where it is of a kind that is wanted. */
void marey__torch_put_event(struct marey__torch_reader *reader);

#endif
