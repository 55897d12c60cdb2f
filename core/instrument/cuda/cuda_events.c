/*
 * GPU spans: a CUDA event at each end, in the program's stream. The GPU records the times; we query later and never
 * wait.
 *
 *      free, by context  --begin-->  open  --end-->  pending, in the order of the ends  --collect-->  free
 *
 * Events belong to a context (in practice a device), and a span keeps its context forever. A stream that is being
 * captured into a graph gets no events: they would become part of the graph and record nothing now.
 */
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "instrument/cuda/internal.h"

enum { MAX_CONTEXTS = 32, MAX_BLOCKED = 16, INDEX_BITS = 12, NONE = UINT16_MAX };
static_assert(MAREY__GPU_MAX_SPANS == 1 << INDEX_BITS, "a span's handle holds its index");

enum state { FREE, OPEN, PENDING };

struct span {
    void *begin, *end;  /* events; both NULL before the first use */
    void *ctx, *stream; /* at its end */
    uint64_t tag;
    uint32_t turn; /* counts its uses, to detect stale handles */
    uint16_t next; /* in the free or pending list */
    uint8_t state, context;
};

static struct {
    pthread_mutex_t lock; /* guards everything; not held while an event is created or recorded */
    struct span *spans;   /* MAREY__GPU_MAX_SPANS, allocated on first use */
    uint32_t n_spans;     /* ever used */
    struct {
        void *ctx;
        uint16_t free;
    } contexts[MAX_CONTEXTS];
    uint8_t n_contexts;
    uint16_t first, last; /* pending */
    struct marey__gpu_counts counts;
} gpu = {.lock = PTHREAD_MUTEX_INITIALIZER, .first = NONE, .last = NONE};

static marey_cuda_stream_hook *stream_hook; /* release; loaded with acquire */

void marey_cuda_set_stream_hook(marey_cuda_stream_hook *hook)
{
    __atomic_store_n(&stream_hook, hook, __ATOMIC_RELEASE);
}

bool marey__gpu_stream(void **stream)
{
    marey_cuda_stream_hook *const hook = __atomic_load_n(&stream_hook, __ATOMIC_ACQUIRE);
    *stream = NULL;
    const int answer = hook != NULL ? hook(stream) : -1;
    if (answer < 0)
        *stream = NULL;
    return answer != 0;
}

static void count(uint64_t *what)
{
    MAREY__HOLD(&gpu.lock);
    ++*what;
}

/* ---- where a span may be recorded ---- */

static uint64_t *reason_of(int error)
{
    if (error == MAREY__CUDA_CAPTURE_IMPLICIT)
        return &gpu.counts.n_captured;
    if (error == MAREY__CUDA_NOT_INITIALIZED || error == MAREY__CUDA_DEINITIALIZED ||
        error == MAREY__CUDA_INVALID_CONTEXT)
        return &gpu.counts.n_no_context;
    return &gpu.counts.n_failed;
}

/* The stream's context; NULL, and counted, if it takes no events now. */
static void *usable_context(const struct marey__driver *driver, void *stream)
{
    void *ctx = NULL;
    const int error = marey__driver_context(driver, stream, &ctx);
    if (error != 0)
        count(reason_of(error));
    return error == 0 ? ctx : NULL;
}

/* ---- allocating and freeing spans ---- */

/* Caller holds the lock. -1 if there are too many. */
static int context_number(void *ctx)
{
    for (int i = 0; i < gpu.n_contexts; i++)
        if (gpu.contexts[i].ctx == ctx)
            return i;
    if (gpu.n_contexts == MAX_CONTEXTS)
        return -1;
    gpu.contexts[gpu.n_contexts].ctx = ctx;
    gpu.contexts[gpu.n_contexts].free = NONE;
    return gpu.n_contexts++;
}

/* Caller holds the lock. */
static struct span *take_free(int context)
{
    const uint16_t i = gpu.contexts[context].free;
    if (i != NONE) {
        gpu.contexts[context].free = gpu.spans[i].next;
        return &gpu.spans[i];
    }
    if (gpu.spans == NULL)
        gpu.spans = marey__calloc(MAREY__GPU_MAX_SPANS, sizeof *gpu.spans);
    if (gpu.spans == NULL || gpu.n_spans == MAREY__GPU_MAX_SPANS)
        return NULL;
    return &gpu.spans[gpu.n_spans++];
}

static struct span *take(void *ctx, uint64_t tag)
{
    MAREY__HOLD(&gpu.lock);
    const int context = context_number(ctx);
    struct span *const span = context >= 0 ? take_free(context) : NULL;
    if (span != NULL) {
        span->ctx = ctx;
        span->context = (uint8_t)context;
        span->tag = tag;
        span->state = OPEN;
        span->turn++;
    } else {
        gpu.counts.n_full++;
    }
    return span;
}

/* Caller holds the lock. */
static void free_span(struct span *span)
{
    span->state = FREE;
    span->next = gpu.contexts[span->context].free;
    gpu.contexts[span->context].free = (uint16_t)(span - gpu.spans);
}

static marey__gpu_span handle_of(const struct span *span)
{
    return (span->turn << INDEX_BITS | (uint32_t)(span - gpu.spans)) + 1;
}

/* Caller holds the lock. NULL unless the handle is that of an open span. */
static struct span *open_span(marey__gpu_span handle)
{
    const uint32_t i = (handle - 1) & (MAREY__GPU_MAX_SPANS - 1);
    if (handle == 0 || i >= gpu.n_spans || gpu.spans[i].state != OPEN ||
        handle_of(&gpu.spans[i]) != handle)
        return NULL;
    return &gpu.spans[i];
}

static void give_back(marey__gpu_span handle, uint64_t *reason)
{
    MAREY__HOLD(&gpu.lock);
    struct span *const span = open_span(handle);
    if (span != NULL)
        free_span(span);
    if (reason != NULL)
        ++*reason;
}

/* ---- both ends ---- */

static bool make_events(const struct marey__driver *driver, struct span *span)
{
    bool is_entered;
    if (span->begin != NULL && span->end != NULL)
        return true;
    if (!marey__driver_enter(driver, span->ctx, &is_entered))
        return false;
    const int mode = marey__driver_exchange_capture_mode(driver, MAREY__CUDA_CAPTURE_MODE_RELAXED);
    if (span->begin == NULL && driver->event_create(&span->begin, 0) != 0)
        span->begin = NULL;
    if (span->end == NULL && driver->event_create(&span->end, 0) != 0)
        span->end = NULL;
    marey__driver_exchange_capture_mode(driver, mode);
    marey__driver_leave(driver, is_entered);
    return span->begin != NULL && span->end != NULL;
}

marey__gpu_span marey__gpu_begin(void *stream, uint64_t tag)
{
    const struct marey__driver *const driver = marey__driver_get();
    if (driver == NULL) {
        count(&gpu.counts.n_no_context);
        return 0;
    }
    void *const ctx = usable_context(driver, stream);
    struct span *const span = ctx != NULL ? take(ctx, tag) : NULL;
    if (span == NULL)
        return 0;
    const marey__gpu_span handle = handle_of(span);
    if (make_events(driver, span) && driver->event_record(span->begin, stream) == 0)
        return handle;
    give_back(handle, &gpu.counts.n_failed);
    return 0;
}

/* Caller holds the lock. */
static void append_pending(struct span *span)
{
    const uint16_t i = (uint16_t)(span - gpu.spans);
    span->state = PENDING;
    span->next = NONE;
    if (gpu.last == NONE)
        gpu.first = i;
    else
        gpu.spans[gpu.last].next = i;
    gpu.last = i;
    gpu.counts.n_pending++;
}

void marey__gpu_end(marey__gpu_span handle, void *stream)
{
    pthread_mutex_lock(&gpu.lock);
    const struct span *const open = open_span(handle);
    const struct span seen = open != NULL ? *open : (struct span){0};
    pthread_mutex_unlock(&gpu.lock);
    if (seen.state != OPEN)
        return;
    const struct marey__driver *const driver = marey__driver_get();
    void *const ctx = usable_context(driver, stream);
    if (ctx != seen.ctx) {
        give_back(handle, ctx != NULL ? &gpu.counts.n_two_devices : NULL);
        return;
    }
    if (driver->event_record(seen.end, stream) != 0) {
        give_back(handle, &gpu.counts.n_failed);
        return;
    }
    MAREY__HOLD(&gpu.lock);
    struct span *const span = open_span(handle);
    if (span != NULL) {
        span->stream = stream;
        append_pending(span);
    }
}

void marey__gpu_cancel(marey__gpu_span handle)
{
    give_back(handle, NULL);
}

/* ---- results ---- */

/* Streams found busy during one walk: later spans in them are not queried. */
struct blocked {
    const struct span *in[MAX_BLOCKED];
    size_t n;
};

static bool is_blocked(const struct blocked *blocked, const struct span *span)
{
    for (size_t i = 0; i < blocked->n; i++)
        if (blocked->in[i]->stream == span->stream && blocked->in[i]->ctx == span->ctx)
            return true;
    return false;
}

/* Returns 0, MAREY__CUDA_NOT_READY or another error. */
static int ask(const struct marey__driver *driver, const struct span *span, uint64_t *elapsed_ns)
{
    bool is_entered;
    float ms = 0;
    if (!marey__driver_enter(driver, span->ctx, &is_entered))
        return MAREY__CUDA_INVALID_CONTEXT;
    int error = driver->event_query(span->end);
    if (error == 0)
        error = driver->event_elapsed(&ms, span->begin, span->end);
    marey__driver_leave(driver, is_entered);
    /* Ends in two streams may occur in the other order. */
    *elapsed_ns = ms > 0 && isfinite(ms) ? (uint64_t)((double)ms * 1e6 + 0.5) : 0;
    return error;
}

/* Removes the pending span after `before` (NONE: the first) from the list. Caller holds the lock. */
static void unlink_behind(uint16_t before, struct span *span)
{
    uint16_t *const link = before == NONE ? &gpu.first : &gpu.spans[before].next;
    *link = span->next;
    if (gpu.last == (uint16_t)(span - gpu.spans))
        gpu.last = before;
    gpu.counts.n_pending--;
}

/* Caller holds the lock. */
static size_t collect(const struct marey__driver *driver, marey__gpu_result *fn, void *ctx)
{
    struct blocked blocked = {.n = 0};
    size_t n = 0;
    uint16_t before = NONE, i = gpu.first;
    while (i != NONE && blocked.n < MAX_BLOCKED) {
        struct span *const span = &gpu.spans[i];
        const uint16_t next = span->next;
        uint64_t elapsed_ns = 0;
        const int error =
            is_blocked(&blocked, span) ? MAREY__CUDA_NOT_READY : ask(driver, span, &elapsed_ns);
        if (error == MAREY__CUDA_NOT_READY) {
            if (!is_blocked(&blocked, span))
                blocked.in[blocked.n++] = span;
            before = i;
        } else {
            unlink_behind(before, span);
            if (error == 0)
                fn(ctx, span->tag, elapsed_ns);
            else
                gpu.counts.n_failed++;
            n += error == 0;
            free_span(span);
        }
        i = next;
    }
    return n;
}

size_t marey__gpu_collect(marey__gpu_result *fn, void *ctx)
{
    const struct marey__driver *const driver = marey__driver_get();
    if (driver == NULL)
        return 0;
    MAREY__HOLD(&gpu.lock);
    size_t n = 0;
    if (gpu.first != NONE) {
        const int mode =
            marey__driver_exchange_capture_mode(driver, MAREY__CUDA_CAPTURE_MODE_RELAXED);
        n = collect(driver, fn, ctx);
        marey__driver_exchange_capture_mode(driver, mode);
    }
    return n;
}

void marey__gpu_counts_get(struct marey__gpu_counts *out)
{
    MAREY__HOLD(&gpu.lock);
    *out = gpu.counts;
}

void marey__gpu_reset(void)
{
    MAREY__HOLD(&gpu.lock);
    for (uint32_t i = 0; i < gpu.n_spans; i++)
        if (gpu.spans[i].state != FREE)
            free_span(&gpu.spans[i]);
    gpu.first = gpu.last = NONE;
    memset(&gpu.counts, 0, sizeof gpu.counts);
}

void marey__gpu_after_fork(void)
{
    /* The parent's events are invalid here; its data may be half-changed and is abandoned. */
    memset(&gpu, 0, sizeof gpu);
    gpu.first = gpu.last = NONE;
    pthread_mutex_init(&gpu.lock, NULL);
}
