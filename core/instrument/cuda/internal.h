/*
 * cuda: the few functions of CUDA that libmarey calls, found at run time. The API is <marey/cuda.h>.
 *
 *   cuda_sync.c     waits for the GPU, through the runtime library
 *   cuda_events.c   GPU timestamps without waiting, through events of the driver library
 *   gpu_copy.c      copies out of GPU memory on a separate stream
 *   gpu_driver.c    the driver library
 *
 * Input: calls from other instruments. Output: CUDA calls; without CUDA each function reports that. Does not know
 * recordings, so it records nothing, and includes no header of CUDA.
 */
#ifndef MAREY_INSTRUMENT_CUDA_INTERNAL_H
#define MAREY_INSTRUMENT_CUDA_INTERNAL_H

#include "base/internal.h"
#include <marey/cuda.h>

/*
 * ---- cuda_events.c: spans on the GPU ----
 *
 * A span is two events in a stream: the GPU records the time when it reaches each. Nothing waits for them; the
 * difference is queried later, after both. A process has at most MAREY__GPU_MAX_SPANS unfinished spans.
 */
enum { MAREY__GPU_MAX_SPANS = 4096 };

/* An open span; 0 is none, and every function accepts it. */
typedef uint32_t marey__gpu_span;

/* Whether spans can be measured: MAREY_EUNAVAILABLE with a message without a CUDA driver. */
MAREY_WARN_UNUSED marey_status marey__gpu_check(void);

/* The stream of this thread: from the hook, else the legacy default stream, NULL. False: nothing runs on the GPU now. */
bool marey__gpu_stream(void **stream);

/*
 * Begins a span in `stream`; `tag` is returned with the time. Returns 0, and counts it, if it cannot be measured: the
 * thread has no CUDA context, the stream is being captured into a graph, or there are too many spans.
 */
marey__gpu_span marey__gpu_begin(void *stream, uint64_t tag);
/* Ends it, in the same stream or another one of the same context, on any thread. */
void marey__gpu_end(marey__gpu_span handle, void *stream);
/* Drops it. */
void marey__gpu_cancel(marey__gpu_span handle);

/*
 * Passes finished spans to `fn`, in order of their ends within a stream. Never waits. The lock of the spans is held
 * while `fn` runs: it must not begin or end any. Returns how many were passed.
 */
typedef void marey__gpu_result(void *ctx, uint64_t tag, uint64_t elapsed_ns);
size_t marey__gpu_collect(marey__gpu_result *fn, void *ctx);

/* Spans that were not measured, by reason, since the last marey__gpu_reset; and pending ones. */
struct marey__gpu_counts {
    uint64_t n_pending;
    uint64_t n_captured;    /* one or both ends in a graph capture */
    uint64_t n_no_context;  /* the thread had no CUDA context, or nothing ran on the GPU */
    uint64_t n_full;        /* too many unfinished spans */
    uint64_t n_two_devices; /* ended in another context */
    uint64_t n_failed;      /* CUDA returned an error */
};
void marey__gpu_counts_get(struct marey__gpu_counts *out);
/* Drops all spans, open and pending, and the counts; the events are reused. */
void marey__gpu_reset(void);

/* ---- gpu_copy.c ---- */

/* Rows of bytes on a GPU, `pitch` bytes apart. */
struct marey__gpu_region {
    int device;
    const void *data;
    size_t row_bytes, n_rows, pitch;
};
struct marey__gpu_copy;
/*
 * Clones the rows, densely packed, in the order of `stream`: later work there cannot change the clone. Takes some
 * microseconds and does not wait. MAREY_ENOMEM if the GPU is out of memory, MAREY_EUNAVAILABLE for a stream that is
 * being captured.
 */
MAREY_WARN_UNUSED marey_status marey__gpu_copy_begin(const struct marey__gpu_region *region,
                                                     void *stream, struct marey__gpu_copy **out);
/* Waits for the clone, copies it to `out` (NULL: discard) and frees it. One at a time. */
MAREY_WARN_UNUSED marey_status marey__gpu_copy_fetch(struct marey__gpu_copy *copy, void *out);
/* Returns the GPU memory kept for the next clones. */
void marey__gpu_copy_trim(void);
void marey__gpu_copy_after_fork(void);

/* ---- gpu_driver.c: the functions of the driver library; handles are pointers, results 0 or an error number ---- */

enum {
    MAREY__CUDA_NOT_INITIALIZED = 3,
    MAREY__CUDA_DEINITIALIZED = 4,
    MAREY__CUDA_INVALID_CONTEXT = 201,
    MAREY__CUDA_NOT_READY = 600,
    MAREY__CUDA_CAPTURE_IMPLICIT = 906, /* legacy stream used while another one is being captured */
    MAREY__CUDA_CAPTURE_MODE_RELAXED = 2,
};

/* X(field, symbol, arguments): each function under its current name. */
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

/* NULL without a driver library in the process. Lent forever; any thread. */
const struct marey__driver *marey__driver_get(void);
/* Any other function of the library, or NULL. */
void *marey__driver_symbol(const char *name);
void marey__driver_after_fork(void);

/*
 * The context of a stream that takes events now; returns 0 or CUDA's error. MAREY__CUDA_CAPTURE_IMPLICIT also for a
 * stream that is itself being captured, MAREY__CUDA_INVALID_CONTEXT for a default stream in a thread without context.
 */
int marey__driver_context(const struct marey__driver *driver, void *stream, void **ctx);
/* Makes `ctx` current if it is not. False, with nothing to undo, on failure. */
bool marey__driver_enter(const struct marey__driver *driver, void *ctx, bool *is_entered);
void marey__driver_leave(const struct marey__driver *driver, bool is_entered);
/* Sets this thread's capture mode and returns the old one: some calls would otherwise invalidate another stream's capture. */
int marey__driver_exchange_capture_mode(const struct marey__driver *driver, int mode);
/* Waits for the work of `ctx`, on any thread, also during a graph capture. Returns 0 or CUDA's error. */
int marey__driver_sync(void *ctx);

/* Whether the process has loaded the CUDA driver, so that something uses it through some runtime. */
bool marey__cuda_is_loaded(void);
/* The number of libraries loaded so far: a failed search is repeated when it has grown. */
unsigned long long marey__cuda_load_count(void);

/* In a forked child, whose parent's threads may have held the lock, and where CUDA does not work. */
void marey__cuda_after_fork(void);
void marey__gpu_after_fork(void);

#endif
