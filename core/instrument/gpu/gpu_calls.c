/* CUDA calls on the host, as ranges of the calling thread, without mere queries (cudaGetDevice). */
#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "instrument/cuda/internal.h"
#include "instrument/gpu/internal.h"
#include <marey/calls.h>

enum { MAX_CALLS = 2048 };

/* By CUPTI's domain, from 1, and number. Constant once made. */
static struct {
    marey_id site;
    enum {
        OTHER,
        LAUNCH,
        MEMORY,
        GRAPH,
    } what; /* launches work or allocates memory, and so has its correlation; captures a CUDA graph */
} calls[MAREY__CUPTI_RUNTIME + 1][MAX_CALLS];

/*
 * Calls that are recorded. A star matches anything; a name with a plus launches work, with an equals sign allocates or
 * frees memory, with a hash captures a graph.
 */
static const char *const runtime_calls[] = {"+cudaLaunch*",
                                            "+cudaMemcpy*",
                                            "+cudaMemset*",
                                            "+cudaGraphLaunch",
                                            "+cudaMemPrefetch*",
                                            "=cudaMalloc*",
                                            "=cudaFree*",
                                            "=cudaHostAlloc",
                                            "cudaHostRegister",
                                            "cudaHostUnregister",
                                            "#cudaGraphInstantiate*",
                                            "cudaGraphUpload",
                                            "#cudaStreamBeginCapture*",
                                            "cudaStreamEndCapture",
                                            "cudaDeviceSynchronize",
                                            "cudaStreamSynchronize",
                                            "cudaEventSynchronize",
                                            "cudaStreamWaitEvent"};
static const char *const driver_calls[] = {
    "+cuLaunch*",        "+cuMemcpy*",           "+cuMemset*",         "+cuGraphLaunch",
    "+cuMemPrefetch*",   "=cuMemAlloc*",         "=cuMemFree*",        "=cuMemHostAlloc",
    "cuMemHostRegister", "=cuMemCreate",         "=cuMemRelease",      "cuMemMap",
    "cuMemUnmap",        "#cuGraphInstantiate*", "cuModuleLoad*",      "cuLibraryLoad*",
    "cuCtxSynchronize",  "cuStreamSynchronize",  "cuEventSynchronize", "cuStreamWaitEvent"};

/* Length of the name without a variant suffix: cudaLaunchKernel_ptsz_v7000 is cudaLaunchKernel. */
static size_t plain_length(const char *name)
{
    size_t len = strlen(name);
    for (size_t i = len; i-- > 1;)
        if (name[i - 1] == '_' && (name[i] == 'v' || strncmp(name + i, "pt", 2) == 0))
            len = i - 1;
    return len;
}

static bool fits(const char *pattern, const char *name, size_t len)
{
    const size_t n = strlen(pattern);
    const bool is_open = pattern[n - 1] == '*';
    return is_open ? len >= n - 1 && memcmp(pattern, name, n - 1) == 0
                   : len == n && memcmp(pattern, name, n) == 0;
}

/* A driver call that does almost nothing, and its number; constant once found. */
#define IDLE_CALL "cuDeviceGetCount"
static uint32_t idle_call;
static int (*call_idle)(int *count);

static void choose(int domain, uint32_t number, const char *name)
{
    const bool is_runtime = domain == MAREY__CUPTI_RUNTIME;
    const char *const *patterns = is_runtime ? runtime_calls : driver_calls;
    const size_t n = is_runtime ? MAREY__COUNT_OF(runtime_calls) : MAREY__COUNT_OF(driver_calls);
    const size_t len = plain_length(name);
    for (size_t i = 0; i < n; i++) {
        const char sign = patterns[i][0];
        if (!fits(patterns[i] + (sign == '+' || sign == '=' || sign == '#'), name, len))
            continue;
        calls[domain][number].what = sign == '+'   ? LAUNCH
                                     : sign == '=' ? MEMORY
                                     : sign == '#' ? GRAPH
                                                   : OTHER;
        calls[domain][number].site = marey__intern(
            &(struct marey__site){.name = name,
                                  .name_len = (uint32_t)len,
                                  .category = is_runtime ? "cuda_runtime" : "cuda_driver"});
        return;
    }
}

static void choose_all(const struct marey__cupti *cupti)
{
    for (int domain = MAREY__CUPTI_DRIVER; domain <= MAREY__CUPTI_RUNTIME; domain++)
        for (uint32_t number = 1; number < MAX_CALLS; number++) {
            const char *name = NULL;
            if (cupti->callback_name(domain, number, &name) != MAREY__CUPTI_SUCCESS || name == NULL)
                continue;
            choose(domain, number, name);
            if (domain == MAREY__CUPTI_DRIVER && strcmp(name, IDLE_CALL) == 0)
                idle_call = number;
        }
}

/* Calls on all threads with a recorded begin but no end; sequentially consistent with `tells`. */
static uint32_t n_open;

void marey__gpu_calls_enable(const struct marey__cupti *cupti, void *subscriber)
{
    __atomic_store_n(&n_open, 0, __ATOMIC_SEQ_CST); /* CUPTI reports no end of earlier calls */
    static bool is_chosen;                          /* under the turn */
    if (!is_chosen)
        choose_all(cupti);
    is_chosen = true;
    if (call_idle == NULL)
        *(void **)&call_idle = marey__driver_symbol(IDLE_CALL);
    if (idle_call != 0)
        cupti->enable_callback(1, subscriber, MAREY__CUPTI_DRIVER, idle_call);
    for (int domain = MAREY__CUPTI_DRIVER; domain <= MAREY__CUPTI_RUNTIME; domain++)
        for (uint32_t number = 1; number < MAX_CALLS; number++)
            if (calls[domain][number].site != 0)
                cupti->enable_callback(1, subscriber, domain, number);
}

/* This thread's open runtime calls and their session; the site of the call whose begin was recorded. */
static __thread struct {
    uint32_t session, n_open;
    marey_id recorded;
} runtime __attribute__((tls_model("initial-exec")));

/* The runtime calls the driver: one range is enough. */
static bool is_inside_runtime(int domain, bool begins)
{
    const uint32_t session = __atomic_load_n(&marey__gpu.session, __ATOMIC_RELAXED);
    if (runtime.session != session) {
        runtime.session = session;
        runtime.n_open = runtime.recorded = 0;
    }
    if (domain == MAREY__CUPTI_RUNTIME && !begins && runtime.n_open > 0)
        runtime.n_open--;
    const bool is_inside = runtime.n_open > 0;
    if (domain == MAREY__CUPTI_RUNTIME && begins)
        runtime.n_open++;
    return is_inside;
}

/* ---- the end of a session: calls made by marey ---- */

/* Why this thread makes the idle call; reset when CUPTI reports it. */
static __thread struct {
    enum { OTHERS, MARKS, FINALIZES, MEASURES } why;
    const struct marey__cupti *cupti;
    uint64_t bound;
} own __attribute__((tls_model("initial-exec")));

/* Returns false if CUPTI did not report it. */
static bool make_idle_call(int why, const struct marey__cupti *cupti)
{
    int n_devices;
    if (idle_call == 0 || call_idle == NULL)
        return false;
    own.why = why;
    own.cupti = cupti;
    call_idle(&n_devices);
    const bool is_reported = own.why == OTHERS;
    own.why = OTHERS;
    return is_reported;
}

void marey__gpu_calls_set_own(bool is_own)
{
    own.why = is_own ? MEASURES : OTHERS;
    /* CUPTI may deliver buffers at any time, so the activity of these calls is identified by time. */
    __atomic_store_n(&marey__gpu.own_until, is_own ? UINT64_MAX : marey__clock_ticks(),
                     __ATOMIC_RELAXED);
}

bool marey__gpu_finalize_in_call(const struct marey__cupti *cupti, void *subscriber)
{
    return cupti->enable_callback(1, subscriber, MAREY__CUPTI_DRIVER, idle_call) ==
               MAREY__CUPTI_SUCCESS &&
           make_idle_call(FINALIZES, cupti);
}

/* CUPTI numbers all calls in one sequence, so this number separates earlier calls from later ones. */
static void mark(uint32_t number)
{
    int expected = MAREY__GPU_ALL_CALLS;
    own.bound = marey__gpu_correlation(number);
    __atomic_store_n(&marey__gpu.before, (uint64_t)1 << 32 | number, __ATOMIC_RELAXED);
    __atomic_compare_exchange_n(&marey__gpu.tells, &expected, MAREY__GPU_EARLIER_CALLS, false,
                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

uint64_t marey__gpu_calls_mark(void)
{
    if (make_idle_call(MARKS, NULL))
        return own.bound;
    __atomic_store_n(&marey__gpu.tells, MAREY__GPU_NO_CALLS, __ATOMIC_SEQ_CST);
    return marey__gpu_correlation(0) + ((uint64_t)1 << 32);
}

/* Whether this thread is ending the session, so that its calls are not the program's. */
static bool is_own(int domain, uint32_t number, const struct marey__cupti_call *call)
{
    if (MAREY_LIKELY(own.why == OTHERS))
        return false;
    if (domain != MAREY__CUPTI_DRIVER || number != idle_call)
        return true;
    if (own.why == MARKS && call->site == 0) {
        own.why = OTHERS;
        mark(call->correlation);
    } else if (own.why == FINALIZES && call->site == 1) {
        own.why = OTHERS;
        own.cupti->finalize();
    }
    return true;
}

/* ---- one end of a call ---- */

void marey__gpu_calls_end(void)
{
    enum { TRIES = 5000, EACH_US = 20 };
    __atomic_store_n(&marey__gpu.tells, MAREY__GPU_NO_CALLS, __ATOMIC_SEQ_CST);
    for (int i = 0; i < TRIES && __atomic_load_n(&n_open, __ATOMIC_SEQ_CST) != 0; i++)
        usleep(EACH_US);
}

/* Either the thread that ends the session sees this call open, or this call sees that it must not be recorded. */
static bool open_call(uint32_t number)
{
    __atomic_fetch_add(&n_open, 1, __ATOMIC_SEQ_CST);
    const int tells = __atomic_load_n(&marey__gpu.tells, __ATOMIC_SEQ_CST);
    if (tells == MAREY__GPU_ALL_CALLS ||
        (tells == MAREY__GPU_EARLIER_CALLS && marey__gpu_is_earlier(number)))
        return true;
    __atomic_fetch_sub(&n_open, 1, __ATOMIC_SEQ_CST);
    return false;
}

static void begin_call(marey_id site, int what, const struct marey__cupti_call *call)
{
    if (what == GRAPH) /* also during a warm-up */
        marey_gpu_note_graph();
    if (!(marey_on() & MAREY_ON_RECORD) || !open_call(call->correlation))
        return;
    runtime.recorded = site;
    if (MAREY_UNLIKELY(__atomic_load_n(&marey__gpu.first, __ATOMIC_RELAXED) == 0))
        __atomic_store_n(&marey__gpu.first, (uint64_t)1 << 32 | call->correlation, __ATOMIC_RELAXED);
    marey__lane_put(marey__tag(MAREY_KIND_BEGIN, site));
    marey__gpu_count(&marey__gpu.counts.calls, 1);
    if (what == LAUNCH && __atomic_load_n(&marey__gpu.context, __ATOMIC_RELAXED) != call->context)
        __atomic_store_n(&marey__gpu.context, call->context, __ATOMIC_RELAXED);
    const uint64_t words[] = {marey__gpu_correlation(call->correlation), MAREY_WORK_MEMORY};
    if (what == LAUNCH || what == MEMORY)
        marey__lane_put_record(MAREY_RECORD_LAUNCH, words, what == MEMORY ? 2 : 1);
    uint32_t profile, node;
    if (what == LAUNCH && marey_calls_current(&profile, &node)) {
        const uint64_t place[] = {profile, node};
        marey__lane_put_record(MAREY_RECORD_CALL_NODE, place, MAREY__COUNT_OF(place));
    }
}

void marey__gpu_call(void *ctx, int domain, uint32_t number, const struct marey__cupti_call *call)
{
    (void)ctx;
    if (is_own(domain, number, call))
        return;
    if (domain < MAREY__CUPTI_DRIVER || domain > MAREY__CUPTI_RUNTIME || number >= MAX_CALLS)
        return;
    const marey_id site = calls[domain][number].site;
    if (MAREY_UNLIKELY(__atomic_load_n(&marey__gpu.awaits_context, __ATOMIC_ACQUIRE)) &&
        call->site == 0 && (call->context != NULL || calls[domain][number].what == LAUNCH))
        marey__gpu_session_enable_context(call->context);
    if (site == 0 || is_inside_runtime(domain, call->site == 0))
        return;
    if (call->site == 0) {
        begin_call(site, calls[domain][number].what, call);
    } else if (runtime.recorded == site) {
        runtime.recorded = 0;
        if (marey_on() & MAREY_ON_RECORD)
            marey__lane_put(marey__tag(MAREY_KIND_END, site));
        __atomic_fetch_sub(&n_open, 1, __ATOMIC_SEQ_CST);
    }
}
