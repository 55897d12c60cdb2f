/*
 * The cost of tracing per CUDA call: small memsets on a separate stream, timed before and after CUPTI's records are
 * enabled. Once per process, as soon as there is a context.
 *
 * A call costs least with warm caches. A training program runs much other code between two calls, so the same is
 * measured after filling the caches with other data. A kernel launch through the CUDA runtime costs more than these
 * memsets (docs/internals/gpu-results.md), so both are lower bounds.
 */
#include <stdlib.h>

#include "instrument/cuda/internal.h"
#include "instrument/gpu/internal.h"

enum {
    WARM_CALLS = 48,
    COLD_CALLS = 16,
    OTHER_DATA = 4 << 20, /* bytes: more than the inner caches of a core */
    CACHE_LINE = 64,
    NON_BLOCKING = 1, /* CU_STREAM_NON_BLOCKING: does not wait for the program's work */
};

struct times {
    uint64_t warm, cold; /* median ticks of one call */
};

static struct {
    enum {
        UNKNOWN,
        HAS_UNTRACED,
        MEASURED
    } state; /* guarded by the turn, or by first_lock of gpu_session.c */
    struct times untraced;
    uint64_t low_ps, high_ps; /* for one call */
    uint64_t n_calls_before;  /* counted before this recording */
} cost;

/* ---- a stream with four bytes ---- */

struct bench {
    const struct marey__driver *driver;
    int (*set)(uint64_t address, unsigned char value, size_t n, void *stream);
    int (*sync)(void *stream);
    int (*free)(uint64_t address, void *stream);
    int (*destroy)(void *stream);
    void *stream;
    uint64_t address;
    uint8_t *other_data;
    bool is_entered, is_relaxed;
    int mode;
};

static void bench_close(struct bench *b)
{
    if (b->address != 0)
        b->free(b->address, b->stream);
    if (b->stream != NULL) {
        b->sync(b->stream);
        b->destroy(b->stream);
    }
    if (b->is_relaxed)
        marey__driver_exchange_capture_mode(b->driver, b->mode);
    marey__driver_leave(b->driver, b->is_entered);
    marey__free(b->other_data);
}

/* Stream-ordered memory: allocating and freeing it does not wait for the program's work. */
static bool bench_open(struct bench *b, void *context)
{
    int (*create)(void **stream, unsigned flags) = NULL;
    int (*allocate)(uint64_t * address, size_t n, void *stream) = NULL;
    *b = (struct bench){.driver = marey__driver_get()};
    *(void **)&create = marey__driver_symbol("cuStreamCreate");
    *(void **)&allocate = marey__driver_symbol("cuMemAllocAsync");
    *(void **)&b->set = marey__driver_symbol("cuMemsetD8Async");
    *(void **)&b->sync = marey__driver_symbol("cuStreamSynchronize");
    *(void **)&b->free = marey__driver_symbol("cuMemFreeAsync");
    *(void **)&b->destroy = marey__driver_symbol("cuStreamDestroy_v2");
    if (create == NULL || allocate == NULL || b->set == NULL || b->sync == NULL || b->free == NULL ||
        b->destroy == NULL || !marey__driver_enter(b->driver, context, &b->is_entered))
        return false;
    b->mode = marey__driver_exchange_capture_mode(b->driver, MAREY__CUDA_CAPTURE_MODE_RELAXED);
    b->is_relaxed = true;
    b->other_data = marey__calloc(1, OTHER_DATA);
    if (b->other_data != NULL && create(&b->stream, NON_BLOCKING) == 0 &&
        allocate(&b->address, 4, b->stream) == 0)
        return true;
    bench_close(b);
    return false;
}

/* The median time of a call, in ticks; 0 on a CUDA error. */
static uint64_t time_calls(struct bench *b, bool is_cold)
{
    uint64_t ticks[WARM_CALLS];
    const size_t n = is_cold ? COLD_CALLS : WARM_CALLS;
    for (size_t i = 0; i < n; i++) {
        for (size_t at = 0; is_cold && at < OTHER_DATA; at += CACHE_LINE)
            __atomic_fetch_add(&b->other_data[at], 1, __ATOMIC_RELAXED);
        const uint64_t begin = marey__clock_ticks();
        if (b->set(b->address, 0, 4, b->stream) != 0)
            return 0;
        ticks[i] = marey__clock_ticks() - begin;
    }
    if (b->sync(b->stream) != 0)
        return 0;
    qsort(ticks, n, sizeof *ticks, marey__compare_u64);
    return ticks[n / 2];
}

static bool time_both(void *context, struct times *out)
{
    struct bench b;
    if (!bench_open(&b, context))
        return false;
    time_calls(&b, false); /* the first call in a context initializes */
    *out = (struct times){.warm = time_calls(&b, false), .cold = time_calls(&b, true)};
    bench_close(&b);
    return out->warm != 0 && out->cold != 0;
}

/* ---- before and after ---- */

static uint64_t difference_ps(uint64_t traced, uint64_t untraced)
{
    return traced > untraced
               ? (uint64_t)((double)(traced - untraced) * 1e12 / (double)marey__clock_hz())
               : 0;
}

void marey__gpu_cost_untraced(void *context)
{
    if (cost.state == UNKNOWN && context != NULL && time_both(context, &cost.untraced))
        cost.state = HAS_UNTRACED;
}

void marey__gpu_cost_traced(void *context)
{
    struct times traced;
    if (cost.state != HAS_UNTRACED)
        return;
    cost.state = UNKNOWN;
    if (!time_both(context, &traced))
        return;
    const uint64_t warm = difference_ps(traced.warm, cost.untraced.warm),
                   cold = difference_ps(traced.cold, cost.untraced.cold);
    cost.low_ps = MAREY__MIN(warm, cold);
    cost.high_ps = MAREY__MAX(warm, cold);
    cost.state = MEASURED;
}

void marey__gpu_cost_reset(void)
{
    cost.n_calls_before = __atomic_load_n(&marey__gpu.counts.calls, __ATOMIC_RELAXED);
}

void marey__gpu_cost_record(void)
{
    const uint64_t n = __atomic_load_n(&marey__gpu.counts.calls, __ATOMIC_RELAXED);
    if (cost.state == MEASURED)
        marey__record_cost(MAREY__KEY_GPU_COST, n - cost.n_calls_before, cost.low_ps, cost.high_ps);
    else
        marey__record_text(MAREY__KEY_GPU_COST, MAREY__COST_UNKNOWN);
}
