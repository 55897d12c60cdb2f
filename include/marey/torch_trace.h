/*
 * marey/torch_trace.h: a trace of torch.profiler, read once, for all that is made of it (libmarey-tools).
 *
 *     marey_torch_trace *trace;
 *     marey_torch_trace_open("worker.pt.trace.json", NULL, &trace);
 *     marey_operators_report(trace, NULL, &report);       <marey/operators.h>: the table of operators
 *     marey_torch_trace_close(trace);
 *
 * Takes what torch.profiler exports (Kineto's JSON, plain or gzip). All events are kept in memory, some 100 bytes for each
 * and each different text once; one of 200 MB with stacks takes some 50 MB. For timelines and breakdowns over files of
 * any size there is <marey/import.h>, which streams. A trace that is open is not changed: any number of threads may
 * read it.
 */
#ifndef MAREY_TORCH_TRACE_H
#define MAREY_TORCH_TRACE_H

#include <marey/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct marey__torch_trace marey_torch_trace;

struct marey_torch_trace_options {
    void (*progress)(void *ctx, double share); /* as marey_progress of <marey/report.h> */
    void *progress_ctx;
};

/*
 * Read the trace at `path`; `options` may be NULL. MAREY_EFORMAT: it is no such trace. One that is cut off or damaged
 * behind its first events is read that far, which the facts tell.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_torch_trace_open(
    const char *path, const struct marey_torch_trace_options *options, marey_torch_trace **out);
MAREY_API void marey_torch_trace_close(marey_torch_trace *trace);

struct marey_torch_trace_facts {
    int64_t rank;       /* told by marey's callback, else by torch.distributed, else 0 */
    int64_t world_size; /* -1: not told */
    uint64_t n_events, n_operators, n_device_events, n_allocations;
    uint64_t n_bytes; /* of the JSON, unpacked */
    int has_device_time, has_shapes, has_stacks, has_memory, has_flops;
    int is_partial;  /* the window was cut short, says marey's callback, because: */
    const char *why; /* lent while the trace is open; "" without */
    const char *damage; /* a sentence when the file is not whole; NULL: it is. Lent while the trace is open */
};
MAREY_API void marey_torch_trace_describe(const marey_torch_trace *trace,
                                          struct marey_torch_trace_facts *facts);

/*
 * Write the file at `path` to `fd` packed by gzip, in one member; a file that is gzip already as it is. MAREY_EIO,
 * MAREY_ENOMEM.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_torch_trace_pack(const char *path, int fd, const struct marey_torch_trace_options *options);

#ifdef __cplusplus
}
#endif
#endif
