/*
 * marey/torch_trace.h: a torch.profiler trace, read once for several analyses (libmarey-tools).
 *
 *     marey_torch_trace *trace;
 *     marey_torch_trace_open("worker.pt.trace.json", NULL, &trace);
 *     marey_operators_report(trace, NULL, &report);       <marey/operators.h>: the table of operators
 *     marey_torch_trace_close(trace);
 *
 * Reads exports of torch.profiler (Kineto's JSON, plain or gzip). Keeps all events in memory, about 100 bytes each, and each
 * distinct string once; a trace of 200 MB with stacks takes about 50 MB. For timelines and breakdowns of files of any size
 * use <marey/import.h>, which streams. An open trace is immutable: any number of threads may read it.
 */
#ifndef MAREY_TORCH_TRACE_H
#define MAREY_TORCH_TRACE_H

#include <marey/base.h>

MAREY_BEGIN_C

typedef struct marey__torch_trace marey_torch_trace;

struct marey_torch_trace_options {
    void (*progress)(void *ctx, double share); /* as marey_progress of <marey/report.h> */
    void *progress_ctx;
};

/*
 * Read the trace at `path`; `options` may be NULL. MAREY_EFORMAT: not such a trace. A trace that is truncated or damaged
 * after its first events is read up to there; the facts have `damage`.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_torch_trace_open(
    const char *path, const struct marey_torch_trace_options *options, marey_torch_trace **out);
MAREY_API void marey_torch_trace_close(marey_torch_trace *trace);

struct marey_torch_trace_facts {
    int64_t rank;       /* from marey's callback, else from torch.distributed, else 0 */
    int64_t world_size; /* -1: unknown */
    uint64_t n_events, n_operators, n_device_events, n_allocations;
    uint64_t n_bytes; /* of the uncompressed JSON */
    int has_device_time, has_shapes, has_stacks, has_memory, has_flops;
    int is_partial;  /* marey's callback recorded that the window was cut short */
    const char *why; /* reason of is_partial; "": none. Lent while the trace is open */
    const char *damage; /* a sentence if the file is incomplete; NULL: complete. Lent while the trace is open */
};
MAREY_API void marey_torch_trace_describe(const marey_torch_trace *trace,
                                          struct marey_torch_trace_facts *facts);

/*
 * Write the file at `path` to `fd`, gzipped in one member; copies a file that is already gzipped. MAREY_EIO,
 * MAREY_ENOMEM.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_torch_trace_pack(const char *path, int fd, const struct marey_torch_trace_options *options);

MAREY_END_C
#endif
