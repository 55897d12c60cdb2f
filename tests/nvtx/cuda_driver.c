/*
 * What a process takes for CUDA's driver library: a GPU whose clock a test sets. An event notes kymo_test_gpu_ms plus the
 * offset of its stream when it is recorded, and has happened once kymo_test_gpu_done_ms has come to that. Streams are
 * small numbers: 0 to 2 are the default ones, the others belong to context stream / 100. Each thread has its own current
 * context, which a test sets too.
 */
#include <stdint.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    N_STREAMS = 1024,
    INVALID_VALUE = 1,
    INVALID_CONTEXT = 201,
    NOT_READY = 600,
    IMPLICIT = 906
};

struct event {
    double ms;
    uintptr_t ctx;
    int is_recorded;
};

EXPORT double kymo_test_gpu_ms, kymo_test_gpu_done_ms;
EXPORT double kymo_test_gpu_offset_ms[N_STREAMS];
EXPORT int kymo_test_gpu_is_capturing[N_STREAMS];
EXPORT __thread uintptr_t kymo_test_gpu_ctx; /* of the calling thread; 0: none */
EXPORT int kymo_test_gpu_error;              /* of the next records and queries */
EXPORT _Atomic int kymo_test_gpu_n_events, kymo_test_gpu_n_records, kymo_test_gpu_n_queries;
EXPORT _Atomic int kymo_test_gpu_n_spoiled; /* calls that a capture under way does not bear */

static __thread int capture_mode; /* 0: global */
static __thread uintptr_t stack[8];
static __thread unsigned depth;

/* For programs that are not in C. */
EXPORT void kymo_test_gpu_set_ctx(uintptr_t ctx);
void kymo_test_gpu_set_ctx(uintptr_t ctx)
{
    kymo_test_gpu_ctx = ctx;
}

static uintptr_t ctx_of(uintptr_t stream)
{
    return stream <= 2 ? kymo_test_gpu_ctx : stream / 100;
}

static void spoil(void)
{
    for (int i = 0; i < N_STREAMS; i++)
        kymo_test_gpu_n_spoiled += kymo_test_gpu_is_capturing[i] && capture_mode != 2;
}

EXPORT int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    return (int)flags;
}

EXPORT int cuCtxGetCurrent(uintptr_t *ctx);
int cuCtxGetCurrent(uintptr_t *ctx)
{
    *ctx = kymo_test_gpu_ctx;
    return 0;
}

EXPORT int cuCtxPushCurrent_v2(uintptr_t ctx);
int cuCtxPushCurrent_v2(uintptr_t ctx)
{
    stack[depth++ % 8] = kymo_test_gpu_ctx;
    kymo_test_gpu_ctx = ctx;
    return 0;
}

EXPORT int cuCtxPopCurrent_v2(uintptr_t *ctx);
int cuCtxPopCurrent_v2(uintptr_t *ctx)
{
    *ctx = kymo_test_gpu_ctx;
    kymo_test_gpu_ctx = stack[--depth % 8];
    return 0;
}

EXPORT int cuStreamGetCtx(uintptr_t stream, uintptr_t *ctx);
int cuStreamGetCtx(uintptr_t stream, uintptr_t *ctx)
{
    *ctx = ctx_of(stream);
    return 0;
}

EXPORT int cuStreamIsCapturing(uintptr_t stream, int *status);
int cuStreamIsCapturing(uintptr_t stream, int *status)
{
    for (int i = 0; stream == 0 && i < N_STREAMS; i++)
        if (kymo_test_gpu_is_capturing[i])
            return IMPLICIT;
    *status = stream < N_STREAMS && kymo_test_gpu_is_capturing[stream];
    return ctx_of(stream) != 0 ? 0 : INVALID_CONTEXT;
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode);
int cuThreadExchangeStreamCaptureMode(int *mode)
{
    const int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return 0;
}

EXPORT int cuEventCreate(struct event **event, unsigned flags);
int cuEventCreate(struct event **event, unsigned flags)
{
    if (kymo_test_gpu_ctx == 0 || flags != 0)
        return INVALID_CONTEXT;
    *event = calloc(1, sizeof **event);
    (*event)->ctx = kymo_test_gpu_ctx;
    kymo_test_gpu_n_events++;
    return 0;
}

EXPORT int cuEventRecord(struct event *event, uintptr_t stream);
int cuEventRecord(struct event *event, uintptr_t stream)
{
    if (kymo_test_gpu_error != 0)
        return kymo_test_gpu_error;
    if (event->ctx != ctx_of(stream) || stream >= N_STREAMS)
        return INVALID_VALUE;
    kymo_test_gpu_n_spoiled += kymo_test_gpu_is_capturing[stream];
    event->ms = kymo_test_gpu_ms + kymo_test_gpu_offset_ms[stream];
    event->is_recorded = 1;
    kymo_test_gpu_n_records++;
    return 0;
}

EXPORT int cuEventQuery(struct event *event);
int cuEventQuery(struct event *event)
{
    spoil();
    kymo_test_gpu_n_queries++;
    if (kymo_test_gpu_error != 0)
        return kymo_test_gpu_error;
    return event->is_recorded && event->ms <= kymo_test_gpu_done_ms ? 0 : NOT_READY;
}

EXPORT int cuEventElapsedTime(float *ms, struct event *begin, struct event *end);
int cuEventElapsedTime(float *ms, struct event *begin, struct event *end)
{
    if (begin->ms > kymo_test_gpu_done_ms || end->ms > kymo_test_gpu_done_ms)
        return NOT_READY;
    *ms = (float)(end->ms - begin->ms);
    return 0;
}
