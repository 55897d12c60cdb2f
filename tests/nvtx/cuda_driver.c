/*
 * What a process takes for CUDA's driver library: a GPU whose clock a test sets. An event notes marey_test_gpu_ms plus the
 * offset of its stream when it is recorded, and has happened once marey_test_gpu_done_ms has come to that. Streams are
 * small numbers: 0 to 2 are the default ones, the others belong to context stream / 100. Each thread has its own current
 * context, which a test sets too.
 *
 * Its memory is the host's. Copies, and what a test does to memory in a stream's order, happen in the order in which they were
 * asked for, and not before somebody waits for an event.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

EXPORT double marey_test_gpu_ms, marey_test_gpu_done_ms;
EXPORT double marey_test_gpu_offset_ms[N_STREAMS];
EXPORT int marey_test_gpu_is_capturing[N_STREAMS];
EXPORT __thread uintptr_t marey_test_gpu_ctx; /* of the calling thread; 0: none */
EXPORT int marey_test_gpu_error;              /* of the next records and queries */
EXPORT _Atomic int marey_test_gpu_n_events, marey_test_gpu_n_records, marey_test_gpu_n_queries;
EXPORT _Atomic int marey_test_gpu_n_spoiled; /* calls that a capture under way does not bear */

static __thread int capture_mode; /* 0: global */
static __thread uintptr_t stack[8];
static __thread unsigned depth;

/* For programs that are not in C. */
EXPORT void marey_test_gpu_set_ctx(uintptr_t ctx);
void marey_test_gpu_set_ctx(uintptr_t ctx)
{
    marey_test_gpu_ctx = ctx;
}

static uintptr_t ctx_of(uintptr_t stream)
{
    return stream <= 2 ? marey_test_gpu_ctx : stream / 100;
}

static void spoil(void)
{
    for (int i = 0; i < N_STREAMS; i++)
        marey_test_gpu_n_spoiled += marey_test_gpu_is_capturing[i] && capture_mode != 2;
}

EXPORT int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    return (int)flags;
}

EXPORT int cuCtxGetCurrent(uintptr_t *ctx);
int cuCtxGetCurrent(uintptr_t *ctx)
{
    *ctx = marey_test_gpu_ctx;
    return 0;
}

EXPORT int cuCtxPushCurrent_v2(uintptr_t ctx);
int cuCtxPushCurrent_v2(uintptr_t ctx)
{
    stack[depth++ % 8] = marey_test_gpu_ctx;
    marey_test_gpu_ctx = ctx;
    return 0;
}

EXPORT int cuCtxPopCurrent_v2(uintptr_t *ctx);
int cuCtxPopCurrent_v2(uintptr_t *ctx)
{
    *ctx = marey_test_gpu_ctx;
    marey_test_gpu_ctx = stack[--depth % 8];
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
        if (marey_test_gpu_is_capturing[i])
            return IMPLICIT;
    *status = stream < N_STREAMS && marey_test_gpu_is_capturing[stream];
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
    if (marey_test_gpu_ctx == 0 || (flags != 0 && flags != 3))
        return INVALID_CONTEXT;
    *event = calloc(1, sizeof **event);
    (*event)->ctx = marey_test_gpu_ctx;
    marey_test_gpu_n_events++;
    return 0;
}

EXPORT int cuEventRecord(struct event *event, uintptr_t stream);
int cuEventRecord(struct event *event, uintptr_t stream)
{
    if (marey_test_gpu_error != 0)
        return marey_test_gpu_error;
    if (event->ctx != ctx_of(stream) || stream >= N_STREAMS)
        return INVALID_VALUE;
    marey_test_gpu_n_spoiled += marey_test_gpu_is_capturing[stream];
    event->ms = marey_test_gpu_ms + marey_test_gpu_offset_ms[stream];
    event->is_recorded = 1;
    marey_test_gpu_n_records++;
    return 0;
}

EXPORT int cuEventQuery(struct event *event);
int cuEventQuery(struct event *event)
{
    spoil();
    marey_test_gpu_n_queries++;
    if (marey_test_gpu_error != 0)
        return marey_test_gpu_error;
    return event->is_recorded && event->ms <= marey_test_gpu_done_ms ? 0 : NOT_READY;
}

EXPORT int cuEventElapsedTime(float *ms, struct event *begin, struct event *end);
int cuEventElapsedTime(float *ms, struct event *begin, struct event *end)
{
    if (begin->ms > marey_test_gpu_done_ms || end->ms > marey_test_gpu_done_ms)
        return NOT_READY;
    *ms = (float)(end->ms - begin->ms);
    return 0;
}

/* ---- memory ---- */

enum { N_OPERATIONS = 4096, OUT_OF_MEMORY = 2 };

struct copy_2d {
    size_t src_x, src_y;
    int src_type;
    const void *src_host;
    unsigned long long src_device;
    void *src_array;
    size_t src_pitch, dst_x, dst_y;
    int dst_type;
    void *dst_host;
    unsigned long long dst_device;
    void *dst_array;
    size_t dst_pitch, width, height;
};

static struct operation {
    char *to;
    const char *from; /* NULL: bytes of `value`; both NULL: `from` is freed */
    size_t len, n_rows, to_pitch, from_pitch;
    int value;
    void *freed;
} operations[N_OPERATIONS];
static int n_operations;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT int marey_test_gpu_no_memory; /* so many of the next allocations fail */
EXPORT _Atomic int marey_test_gpu_n_clones, marey_test_gpu_n_freed, marey_test_gpu_n_waits;

static int enqueue(struct operation operation)
{
    pthread_mutex_lock(&lock);
    if (n_operations < N_OPERATIONS)
        operations[n_operations++] = operation;
    pthread_mutex_unlock(&lock);
    return 0;
}

static void perform(const struct operation *o)
{
    for (size_t i = 0; i < o->n_rows; i++)
        if (o->from != NULL)
            memcpy(o->to + i * o->to_pitch, o->from + i * o->from_pitch, o->len);
        else
            memset(o->to + i * o->to_pitch, o->value, o->len);
    free(o->freed);
}

/* What the program does to memory later, in the order of its stream. */
EXPORT void marey_test_gpu_fill(void *to, int value, size_t len);
void marey_test_gpu_fill(void *to, int value, size_t len)
{
    enqueue((struct operation){.to = to, .value = value, .len = len, .n_rows = 1});
}

EXPORT int cuEventSynchronize(struct event *event);
int cuEventSynchronize(struct event *event)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_operations; i++)
        perform(&operations[i]);
    n_operations = 0;
    pthread_mutex_unlock(&lock);
    marey_test_gpu_n_waits++;
    return event->is_recorded ? 0 : INVALID_VALUE;
}

EXPORT int cuStreamCreate(uintptr_t *stream, unsigned flags);
int cuStreamCreate(uintptr_t *stream, unsigned flags)
{
    *stream = marey_test_gpu_ctx * 100 + 99;
    return flags == 1 ? 0 : INVALID_VALUE;
}

EXPORT int cuStreamWaitEvent(uintptr_t stream, struct event *event, unsigned flags);
int cuStreamWaitEvent(uintptr_t stream, struct event *event, unsigned flags)
{
    return event->ctx == ctx_of(stream) && event->is_recorded && flags == 0 ? 0 : INVALID_VALUE;
}

EXPORT int cuCtxGetDevice(int *device);
int cuCtxGetDevice(int *device)
{
    *device = (int)marey_test_gpu_ctx;
    return 0;
}

EXPORT int cuMemPoolCreate(uintptr_t *pool, const int *properties);
int cuMemPoolCreate(uintptr_t *pool, const int *properties)
{
    *pool = 1 + (uintptr_t)properties[3];
    return properties[0] == 1 && properties[2] == 1 ? 0 : INVALID_VALUE;
}

EXPORT int cuMemPoolSetAttribute(uintptr_t pool, int attribute, const void *value);
int cuMemPoolSetAttribute(uintptr_t pool, int attribute, const void *value)
{
    return pool != 0 && value != NULL && (attribute == 3 || attribute == 4) ? 0 : INVALID_VALUE;
}

EXPORT int cuMemPoolTrimTo(uintptr_t pool, size_t keep);
int cuMemPoolTrimTo(uintptr_t pool, size_t keep)
{
    return pool != 0 && keep == 0 ? 0 : INVALID_VALUE;
}

EXPORT int cuMemAllocFromPoolAsync(unsigned long long *at, size_t size, uintptr_t pool,
                                   uintptr_t stream);
int cuMemAllocFromPoolAsync(unsigned long long *at, size_t size, uintptr_t pool, uintptr_t stream)
{
    if (pool != 1 + ctx_of(stream))
        return INVALID_VALUE;
    if (marey_test_gpu_no_memory > 0) {
        marey_test_gpu_no_memory--;
        return OUT_OF_MEMORY;
    }
    *at = (uintptr_t)malloc(size);
    memset((void *)(uintptr_t)*at, 0xaa, size);
    marey_test_gpu_n_clones++;
    return 0;
}

EXPORT int cuMemFreeAsync(unsigned long long at, uintptr_t stream);
int cuMemFreeAsync(unsigned long long at, uintptr_t stream)
{
    (void)stream;
    marey_test_gpu_n_freed++;
    return enqueue((struct operation){.freed = (void *)(uintptr_t)at});
}

EXPORT int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t len,
                                uintptr_t stream);
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t len, uintptr_t stream)
{
    if (marey_test_gpu_error != 0)
        return marey_test_gpu_error;
    marey_test_gpu_n_spoiled += stream < N_STREAMS && marey_test_gpu_is_capturing[stream];
    return enqueue((struct operation){
        .to = (char *)(uintptr_t)to, .from = (const char *)(uintptr_t)from, .len = len, .n_rows = 1});
}

EXPORT int cuMemcpy2DAsync_v2(const struct copy_2d *c, uintptr_t stream);
int cuMemcpy2DAsync_v2(const struct copy_2d *c, uintptr_t stream)
{
    (void)stream;
    if (c->src_type != 2 || c->dst_type != 2 || c->width > c->src_pitch)
        return INVALID_VALUE;
    return enqueue((struct operation){.to = (char *)(uintptr_t)c->dst_device,
                                      .from = (const char *)(uintptr_t)c->src_device,
                                      .len = c->width,
                                      .n_rows = c->height,
                                      .to_pitch = c->dst_pitch,
                                      .from_pitch = c->src_pitch});
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t len, uintptr_t stream);
int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t len, uintptr_t stream)
{
    return cuMemcpyDtoDAsync_v2((uintptr_t)to, from, len, stream);
}

EXPORT int cuMemHostAlloc(void **bytes, size_t size, unsigned flags);
int cuMemHostAlloc(void **bytes, size_t size, unsigned flags)
{
    *bytes = malloc(size);
    return flags == 1 ? 0 : INVALID_VALUE;
}

EXPORT int cuDevicePrimaryCtxRetain(uintptr_t *ctx, int device);
int cuDevicePrimaryCtxRetain(uintptr_t *ctx, int device)
{
    *ctx = (uintptr_t)device;
    return device > 0 ? 0 : INVALID_VALUE;
}
