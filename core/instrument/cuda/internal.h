/*
 * cuda: the few functions of CUDA that libmarey calls, found at run time. The API is <marey/cuda.h>.
 *
 *   cuda_sync.c     waits for the GPU, through the runtime library
 *   cuda_events.c   GPU timestamps without waiting, through events of the driver library
 *   gpu_copy.c      copies out of GPU memory on a stream of its own
 *   gpu_driver.c    the driver library
 *
 * Input: calls from other instruments. Output: CUDA calls. Works without CUDA: each function then reports that
 * there is none. Records nothing.
 */
#ifndef MAREY_INSTRUMENT_CUDA_INTERNAL_H
#define MAREY_INSTRUMENT_CUDA_INTERNAL_H

#include "base/internal.h"
#include <marey/cuda.h>

/*
 * ---- cuda_events.c: spans on the GPU ----
 *
 * A span is two events put into a stream: the GPU notes the time when it reaches each. Nobody waits for them; the
 * difference is asked for later, when both are behind. At most MAREY__GPU_MAX_SPANS are under way in a process.
 */
enum { MAREY__GPU_MAX_SPANS = 4096 };

/* One that is open; 0 is none, and every function takes it. */
typedef uint32_t marey__gpu_span;

/* Whether spans can be measured here: MAREY_EUNAVAILABLE with a sentence where there is no CUDA driver. */
MAREY_WARN_UNUSED marey_status marey__gpu_check(void);

/* The stream this thread works on: the hook's, else the legacy default stream, NULL. False: nothing runs on the GPU now. */
bool marey__gpu_stream(void **stream);

/*
 * Begin a span in `stream`; `tag` is the caller's and comes back with the time. 0 when it cannot be measured: the thread
 * has no CUDA context, the stream is being captured into a graph, or too many spans are under way. It is counted then.
 */
marey__gpu_span marey__gpu_begin(void *stream, uint64_t tag);
/* End it, in the same stream or another one of the same context, on any thread. */
void marey__gpu_end(marey__gpu_span handle, void *stream);
/* Forget it. */
void marey__gpu_cancel(marey__gpu_span handle);

/*
 * Hand over what is finished: in the order of the ends, where they are of one stream. Never waits. The lock of the spans
 * is held while `fn` runs: it must not begin or end any. How many were handed over.
 */
typedef void marey__gpu_result(void *ctx, uint64_t tag, uint64_t elapsed_ns);
size_t marey__gpu_collect(marey__gpu_result *fn, void *ctx);

/* Spans that were not measured, by reason, since the last marey__gpu_reset; and those whose time is still to come. */
struct marey__gpu_counts {
    uint64_t n_pending;
    uint64_t n_captured;    /* lay in a graph's capture, at one end or both */
    uint64_t n_no_context;  /* the thread had no CUDA context, or nothing ran on the GPU */
    uint64_t n_full;        /* MAREY__GPU_MAX_SPANS were under way */
    uint64_t n_two_devices; /* ended in another context than they began in */
    uint64_t n_failed;      /* CUDA refused */
};
void marey__gpu_counts_get(struct marey__gpu_counts *out);
/* Forget all spans, open and pending, and the counts; the events are kept for the next ones. */
void marey__gpu_reset(void);

/* ---- gpu_copy.c ---- */

/* Bytes on a GPU: rows of them, `pitch` bytes from one to the next. */
struct marey__gpu_region {
    int device;
    const void *data;
    size_t row_bytes, n_rows, pitch;
};
struct marey__gpu_copy;
/*
 * Clone them, row behind row, in the order of `stream`: what the program does there later cannot change the clone. Takes
 * some microseconds and waits for nothing. MAREY_ENOMEM when the GPU has no memory for it, MAREY_EUNAVAILABLE for a stream
 * that is being captured.
 */
MAREY_WARN_UNUSED marey_status marey__gpu_copy_begin(const struct marey__gpu_region *region,
                                                     void *stream, struct marey__gpu_copy **out);
/* Wait for the clone, copy it to `out` (NULL: it is not wanted) and free it. One at a time. */
MAREY_WARN_UNUSED marey_status marey__gpu_copy_fetch(struct marey__gpu_copy *copy, void *out);
/* Give back what is kept of the GPU's memory for the next clones. */
void marey__gpu_copy_trim(void);
void marey__gpu_copy_after_fork(void);

/* ---- gpu_driver.c: the functions of the driver library; handles are pointers, results 0 or an error's number ---- */

enum {
    MAREY__CUDA_NOT_INITIALIZED = 3,
    MAREY__CUDA_DEINITIALIZED = 4,
    MAREY__CUDA_INVALID_CONTEXT = 201,
    MAREY__CUDA_NOT_READY = 600,
    MAREY__CUDA_CAPTURE_IMPLICIT =
        906, /* asked of the legacy stream while another one is being captured */
    MAREY__CUDA_CAPTURE_MODE_RELAXED = 2,
};

/* X(field, symbol, arguments): each function under the name of its present form. */
#define MAREY__DRIVER_FUNCTIONS(X)                                                                 \
    X(ctx_get_current, "cuCtxGetCurrent", (void **ctx))                                            \
    X(ctx_push, "cuCtxPushCurrent_v2", (void *ctx))                                                \
    X(ctx_pop, "cuCtxPopCurrent_v2", (void **ctx))                                                 \
    X(stream_get_ctx, "cuStreamGetCtx", (void *stream, void **ctx))                                \
    X(stream_is_capturing, "cuStreamIsCapturing", (void *stream, int *status))                     \
    X(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", (int *mode))                     \
    X(event_create, "cuEventCreate", (void **event, unsigned flags))                               \
    X(event_record, "cuEventRecord", (void *event, void *stream))                                  \
    X(event_query, "cuEventQuery", (void *event))                                                  \
    X(event_elapsed, "cuEventElapsedTime", (float *ms, void *begin, void *end))
#define MAREY__DRIVER_FIELD(field, symbol, arguments) int(*field) arguments;
struct marey__driver {
    MAREY__DRIVER_FUNCTIONS(MAREY__DRIVER_FIELD)
};

/* NULL while the process has none. Lent for ever; any thread. */
const struct marey__driver *marey__driver_get(void);
/* Any other function of the library; NULL when there is none. */
void *marey__driver_symbol(const char *name);
void marey__driver_after_fork(void);

/*
 * The context of a stream that takes events now; 0, or CUDA's error. MAREY__CUDA_CAPTURE_IMPLICIT also for a stream that is
 * itself being captured, MAREY__CUDA_INVALID_CONTEXT where a default stream is meant and the thread has no context.
 */
int marey__driver_context(const struct marey__driver *driver, void *stream, void **ctx);
/* Make `ctx` current for a while, where it is not. False, and nothing to undo, when that fails. */
bool marey__driver_enter(const struct marey__driver *driver, void *ctx, bool *is_entered);
void marey__driver_leave(const struct marey__driver *driver, bool is_entered);
/* Set this thread's capture mode and return the old one: some calls would spoil another stream's capture otherwise. */
int marey__driver_relax(const struct marey__driver *driver, int mode);
/* Wait for the work of `ctx`, on any thread, also while a graph is captured. 0, or CUDA's error. */
int marey__driver_sync(void *ctx);

/* Whether the process has loaded the driver of CUDA: then somebody uses it, by any runtime. */
bool marey__cuda_is_loaded(void);
/* How many libraries the loader has loaded by now: a search that found nothing is repeated when it has grown. */
unsigned long long marey__cuda_load_count(void);

/* In a forked child, whose parent's other threads may have held the lock, and where CUDA does not work. */
void marey__cuda_after_fork(void);
void marey__gpu_after_fork(void);

#endif
