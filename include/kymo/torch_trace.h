/*
 * kymo/torch_trace.h: a trace of torch.profiler, read once, for all that is made of it (libkymo-tools).
 *
 *     kymo_torch_trace *trace;
 *     kymo_torch_trace_open("worker.pt.trace.json", NULL, &trace);
 *     kymo_operators_create(trace, NULL, &operators);        <kymo/operators.h>: the table of operators
 *     kymo_torch_trace_close(trace);
 *
 * Takes what torch.profiler exports (Kineto's JSON, plain or gzip). All events are kept in memory, some 100 bytes for each
 * and each different text once; one of 200 MB with stacks takes some 50 MB. For timelines and breakdowns over files of
 * any size there is <kymo/import.h>, which streams. A trace that is open is not changed: any number of threads may read
 * it.
 */
#ifndef KYMO_TORCH_TRACE_H
#define KYMO_TORCH_TRACE_H

#include <kymo/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kymo__torch_trace kymo_torch_trace;

struct kymo_torch_trace_options {
    void (*progress)(void *ctx, double share); /* as kymo_progress of <kymo/report.h> */
    void *progress_ctx;
};

/*
 * Read the trace at `path`; `options` may be NULL. KYMO_EFORMAT: it is no such trace. One that is cut off or damaged
 * behind its first events is read that far, which the facts tell.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_torch_trace_open(
    const char *path, const struct kymo_torch_trace_options *options, kymo_torch_trace **out);
KYMO_API void kymo_torch_trace_close(kymo_torch_trace *trace);

struct kymo_torch_trace_facts {
    int64_t rank;       /* told by kymo's callback, else by torch.distributed, else 0 */
    int64_t world_size; /* -1: not told */
    uint64_t n_events, n_operators, n_device_events, n_allocations;
    uint64_t n_bytes; /* of the JSON, unpacked */
    int has_device_time, has_shapes, has_stacks, has_memory, has_flops;
    int is_partial;  /* the window was cut short, says kymo's callback, because: */
    const char *why; /* lent while the trace is open; "" without */
    const char *damage; /* a sentence when the file is not whole; NULL: it is. Lent while the trace is open */
};
KYMO_API void kymo_torch_trace_describe(const kymo_torch_trace *trace,
                                        struct kymo_torch_trace_facts *facts);

/*
 * Write the file at `path` to `fd` packed by gzip, in one member; a file that is gzip already as it is. KYMO_EIO,
 * KYMO_ENOMEM.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status
kymo_torch_trace_pack(const char *path, int fd, const struct kymo_torch_trace_options *options);

#ifdef __cplusplus
}
#endif
#endif
