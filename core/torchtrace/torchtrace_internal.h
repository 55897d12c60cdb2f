/*
 * torchtrace: a trace of torch.profiler (Kineto's JSON, plain or gzip) in memory, read in one pass.
 *
 *   file ── codec: bytes, JSON ── import/chrome_event.c: one event where it lies
 *     torch_read.c ── what stands around the events, and the loop over them
 *     torch_event.c ── an event to a row: kind, times, arguments
 *     torch_header.c ── ranks, devices, flags, what kymo put there itself (roles)
 *     torch_strings.c ── equal texts once;  torch_sort.c ── rows in order
 *
 * A recording made by `kymo import` streams and forgets; here operators are wanted with their shapes, their stacks and the
 * allocations within them, in any order, so that all rows are kept: some 100 bytes for each, and each different text once.
 * `kinds` leaves out what nobody asks for, python functions above all, which are most of a trace with stacks.
 */
#ifndef KYMO_TORCHTRACE_INTERNAL_H
#define KYMO_TORCHTRACE_INTERNAL_H

#include "base/base_internal.h"

/* ---- rows ---- */

enum kymo__torch_kind {
    KYMO__TORCH_OP,         /* cpu_op */
    KYMO__TORCH_ANNOTATION, /* user_annotation: record_function, ProfilerStep#k, kymo:forward */
    KYMO__TORCH_PYTHON,     /* python_function */
    KYMO__TORCH_RUNTIME,    /* cuda_runtime, cuda_driver and their like: a call on a thread */
    KYMO__TORCH_OVERHEAD,   /* of the profiler itself */
    KYMO__TORCH_KERNEL,     /* from here on by devices: the thread is a stream */
    KYMO__TORCH_MEMCPY,
    KYMO__TORCH_MEMSET,
    KYMO__TORCH_SYNC,           /* cuda_sync */
    KYMO__TORCH_GPU_ANNOTATION, /* an annotation's work on a stream, from its first to its last kernel */
    KYMO__TORCH_N_KINDS,
};

#define KYMO__TORCH_BIT(kind) (1u << (kind))
enum { KYMO__TORCH_ALL_KINDS = (1 << KYMO__TORCH_N_KINDS) - 1 };

static inline bool kymo__torch_on_device(unsigned kind)
{
    return kind >= KYMO__TORCH_KERNEL;
}

/* A text of the trace: kymo__torch_text(). Equal texts have equal ids; 0 is the empty one, and "not there". */
typedef uint32_t kymo__torch_id;

/* Something with a begin and an end. Texts that are lists in the trace are kept as the JSON they were. */
struct kymo__torch_event {
    int64_t begin_ns, end_ns; /* Unix time */
    int64_t external_id; /* "External id": of operators their own, of calls and kernels the operator's; -1: none */
    int64_t correlation; /* of a call and of what it launched; -1: none */
    int64_t sequence; /* "Sequence number" that a forward and a backward operator share; -1: none */
    int64_t forward_thread; /* "Fwd thread id": not 0 for backward operators; torch's own number of a thread */
    kymo__torch_id name;
    kymo__torch_id stack;    /* "Call stack": `file.py(line): function;...`, the leaf first */
    kymo__torch_id shapes;   /* "Input Dims": [[4, 3], [], [[2, 2], [3]]] */
    kymo__torch_id types;    /* "Input type": ["float", "Scalar", ""] */
    kymo__torch_id concrete; /* "Concrete Inputs": ["", "[1, 1]", "False"] */
    uint32_t thread;         /* of kymo__torch_trace.threads */
    uint32_t order;          /* the how manieth event of the file: who came first of equals */
    uint8_t kind;            /* enum kymo__torch_kind */
};

/* An allocation or a release: an instant named [memory]. */
struct kymo__torch_memory {
    int64_t ns; /* Unix time */
    uint64_t address;
    int64_t bytes;                           /* negative: released */
    int64_t total_allocated, total_reserved; /* of the device, after it; 0 where it is not told */
    int32_t device_type, device_id; /* as torch numbers them: 0 CPU, 1 CUDA, ...; -1 for the CPU's */
    kymo__torch_id stack;
    uint32_t thread, order;
};

struct kymo__torch_thread {
    int64_t pid, tid; /* of a stream: device and stream. Words ("Spans") are their hash, negative */
    kymo__torch_id name; /* 0: it has none */
    size_t begin, end;   /* its events, from `begin` to before `end` */
};

struct kymo__torch_device {
    int64_t id, total_memory, n_processors; /* -1: not told */
    kymo__torch_id name;
};

/* What the storage at an address was at an instant, told by our own callback. */
enum kymo__torch_role_kind {
    KYMO__TORCH_PARAMETER,
    KYMO__TORCH_GRADIENT,
    KYMO__TORCH_OPTIMIZER_STATE,
    KYMO__TORCH_INPUT,
};

struct kymo__torch_role {
    uint64_t address;
    int64_t bytes, ns;
    int32_t device_type, device_id;
    kymo__torch_id name;
    uint8_t kind; /* enum kymo__torch_role_kind */
};

/* ---- the trace ---- */

struct kymo__torch_strings {
    char *bytes;
    size_t n_bytes, bytes_cap;
    struct kymo__torch_span {
        uint64_t at;
        uint32_t len, hash;
    } * spans; /* by id */
    size_t n, spans_cap;
    uint32_t *slots;  /* ids by their hash; 0: free */
    size_t slots_cap; /* a power of two */
    uint64_t seed;
};

struct kymo__torch_trace {
    struct kymo__torch_event *events; /* by thread, then begin, of equals the longer first, then order */
    size_t n_events, events_cap;
    struct kymo__torch_memory *memory; /* by time, then order; of all threads */
    size_t n_memory, memory_cap;
    struct kymo__torch_thread *threads; /* in the order of the file */
    size_t n_threads, threads_cap;
    struct kymo__torch_device *devices;
    size_t n_devices, devices_cap;
    struct kymo__torch_role *roles; /* in the order of the file */
    size_t n_roles, roles_cap;
    struct kymo__torch_strings strings;

    /* What stands around the events. -1: not told. */
    int64_t base_ns; /* added to the times of the file, which are in microseconds; 0: not told */
    int64_t kymo_rank, kymo_world_size, kymo_step, kymo_steps; /* by our own callback */
    int64_t distributed_rank, distributed_world_size;          /* by torch.distributed */
    bool is_partial; /* the window was cut short, and why: */
    kymo__torch_id why;
    bool has_shapes, has_stacks, has_memory, has_flops; /* the profiler was asked for these */
    bool has_xpu;                                       /* the device is Intel's */
    uint64_t n_bytes;                                   /* unpacked */
    uint64_t n_by_kind[KYMO__TORCH_N_KINDS]; /* in the file, also of kinds that are left out */
    uint64_t n_without_time;                 /* events that are left out for it */
    char *damage; /* a sentence when the file is cut off or damaged, and its begin was read; NULL: it is whole */
};

struct kymo__torch_options {
    uint32_t kinds; /* KYMO__TORCH_BIT()s of the events to keep; 0: all. Counts are of all */
    bool without_memory,
        without_arguments; /* leave out [memory]; shapes, types, concrete inputs and stacks */
    void (*progress)(void *ctx, double share);
    void *progress_ctx;
};

/*
 * Read the trace at `path`; `options` may be NULL. KYMO_EFORMAT: it is no such trace, or has no event that can be read;
 * KYMO_EIO, KYMO_ENOMEM. A file that is cut off or damaged behind its first events is read that far, see `damage`.
 */
KYMO_WARN_UNUSED kymo_status kymo__torch_read(const char *path,
                                              const struct kymo__torch_options *options,
                                              struct kymo__torch_trace **out);
/* The same of bytes in memory, called `name` in sentences. */
KYMO_WARN_UNUSED kymo_status kymo__torch_read_memory(const char *name, const void *bytes, size_t len,
                                                     const struct kymo__torch_options *options,
                                                     struct kymo__torch_trace **out);
/* And of bytes that are read once, in pieces of any size. */
struct kymo__byte_source;
KYMO_WARN_UNUSED kymo_status kymo__torch_read_bytes(const char *name, struct kymo__byte_source *bytes,
                                                    const struct kymo__torch_options *options,
                                                    struct kymo__torch_trace **out);
void kymo__torch_free(struct kymo__torch_trace *trace);

/* A text, lent while the trace lives, with a NUL behind it that is not counted. */
static inline const char *kymo__torch_text(const struct kymo__torch_trace *trace, kymo__torch_id id,
                                           size_t *len)
{
    const struct kymo__torch_span *span = &trace->strings.spans[id];
    if (len != NULL)
        *len = span->len;
    return trace->strings.bytes + span->at;
}
/* The id of a text that is in the trace, else 0. */
kymo__torch_id kymo__torch_find(const struct kymo__torch_trace *trace, const char *text, size_t len);
/* The rank: what kymo put there, else torch.distributed's, else 0. */
int64_t kymo__torch_rank(const struct kymo__torch_trace *trace);

/* ---- inside the module ---- */

/* The id of a text, made when new. False without memory, or when there are too many. */
bool kymo__torch_intern(struct kymo__torch_strings *strings, const char *text, size_t len,
                        kymo__torch_id *id);
bool kymo__torch_strings_init(struct kymo__torch_strings *strings);
void kymo__torch_strings_fini(struct kymo__torch_strings *strings);
/* Put rows in order and note where each thread's begin. False without memory. */
bool kymo__torch_sort(struct kymo__torch_trace *trace);

#endif
