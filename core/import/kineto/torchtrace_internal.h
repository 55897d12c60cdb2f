/*
 * torchtrace: a trace of torch.profiler (Kineto's JSON, plain or gzip) in memory, read in one pass.
 *
 *   kineto_file.h ── the reader of such files, which `marey import` uses too
 *     torch_read.c ── a file from its start to its sorted rows
 *     torch_event.c ── an event to a row: kind, times, arguments
 *     torch_header.c ── the key "marey": ranks and roles
 *     torch_strings.c ── equal texts once;  torch_sort.c ── rows in order
 *
 * A recording made by `marey import` streams and forgets; here operators are wanted with their shapes, their stacks and the
 * allocations within them, in any order, so that all rows are kept: some 100 bytes for each, and each different text once.
 * `kinds` leaves out what nobody asks for, python functions above all, which are most of a trace with stacks.
 */
#ifndef MAREY_TORCHTRACE_INTERNAL_H
#define MAREY_TORCHTRACE_INTERNAL_H

#include "import/kineto/kineto_file.h"

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
    int64_t total_allocated, total_reserved; /* of the device, after it; 0 where it is not told */
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

struct marey__torch_strings {
    char *bytes;
    size_t n_bytes, bytes_cap;
    struct marey__torch_span {
        uint64_t at;
        uint32_t len, hash;
    } * spans; /* by id */
    size_t n, spans_cap;
    uint32_t *slots;  /* ids by their hash; 0: free */
    size_t slots_cap; /* a power of two */
    uint64_t seed;
};

struct marey__torch_trace {
    struct marey__torch_event *events; /* by thread, then begin, of equals the longer first, then order */
    size_t n_events, events_cap;
    struct marey__torch_memory *memory; /* by time, then order; of all threads */
    size_t n_memory, memory_cap;
    struct marey__torch_thread *threads; /* in the order of the file */
    size_t n_threads, threads_cap;
    struct marey__torch_role *roles; /* in the order of the file */
    size_t n_roles, roles_cap;
    struct marey__torch_strings strings;

    /* The keys around the events. -1: unknown. */
    struct marey__kineto_header header;
    int64_t marey_rank, marey_world_size, marey_step, marey_steps; /* by marey's own callback */
    bool is_partial; /* the window was cut short, and why: */
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
 * Read the trace at `path`; `options` may be NULL. MAREY_EFORMAT: it is no such trace, or has no event that can be
 * read; MAREY_EIO, MAREY_ENOMEM. A file that is cut off or damaged behind its first events is read that far, see
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
struct marey__byte_source;
MAREY_WARN_UNUSED marey_status marey__torch_read_bytes(const char *name,
                                                       struct marey__byte_source *bytes,
                                                       const struct marey__torch_options *options,
                                                       struct marey__torch_trace **out);
void marey__torch_free(struct marey__torch_trace *trace);

/* A text, lent while the trace lives, with a NUL behind it that is not counted. */
static inline const char *marey__torch_text(const struct marey__torch_trace *trace,
                                            marey__torch_id id, size_t *len)
{
    const struct marey__torch_span *span = &trace->strings.spans[id];
    if (len != NULL)
        *len = span->len;
    return trace->strings.bytes + span->at;
}
/* The id of a text that is in the trace, else 0. */
marey__torch_id marey__torch_find(const struct marey__torch_trace *trace, const char *text,
                                  size_t len);
/* The rank: what marey put there, else torch.distributed's, else 0. */
int64_t marey__torch_rank(const struct marey__torch_trace *trace);

/* ---- inside the module ---- */

/* The id of a text, made when new. False without memory, or when there are too many. */
bool marey__torch_intern(struct marey__torch_strings *strings, const char *text, size_t len,
                         marey__torch_id *id);
bool marey__torch_strings_init(struct marey__torch_strings *strings);
void marey__torch_strings_fini(struct marey__torch_strings *strings);
/* Put rows in order and note where each thread's begin. False without memory. */
bool marey__torch_sort(struct marey__torch_trace *trace);

#endif
