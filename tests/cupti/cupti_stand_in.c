/*
 * What a process takes for CUPTI. MAREY_TEST_CUPTI says how it behaves, as "key=number,...":
 *
 *   version=N     of the API                       subscribe=E   each subscription is refused
 *   busy=N        the first N are refused (39)     enable=E      records of kernels are refused
 *   flush=E       a flush fails and gives nothing  dropped=N     each buffer comes with N records dropped
 *   shuffle=1     records of a buffer come in the wrong order
 *   slow=N        subscriptions, kernels' records, forced flushes and ends take N us each
 *   gate=BITS     they wait until marey_test_cupti_gate(0): 1 subscribe, 2 enable, 4 flush, 8 finalize
 *
 * MAREY_TEST_CUPTI_LOG names a file for the calls that matter. Built in three forms: as of CUDA 13, as of 12.0 (with
 * CUPTI_12), and one that lacks a function (CUPTI_BROKEN).
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stand_in.h"

enum { TAKEN = 39, MAX_CALLS = 512, MAX_KIND = 64, MAX_HELD = 64, NO_MORE = 12 };

struct call_data {
    int is_end;
    const char *function;
    const void *params;
    void *result;
    const char *symbol;
    void *context;
    uint32_t context_uid;
    uint64_t *data;
    uint32_t correlation;
};

typedef void callback_fn(void *ctx, int domain, uint32_t number, const struct call_data *call);
typedef void request_fn(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

static struct {
    pthread_mutex_t lock;
    const char *holder; /* NULL: nobody */
    callback_fn *callback;
    void *ctx;
    request_fn *request;
    complete_fn *complete;
    standin_clock_fn *clock;
    uint8_t is_kind_on[MAX_KIND], is_call_on[DOMAIN_RUNTIME + 1][MAX_CALLS];
    uint8_t *buffer;
    size_t size, valid, n_dropped;
    int n_refused;
    struct kernel_record held[MAX_HELD]; /* kernels that have not ended */
    size_t n_held;
} cupti = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int option(const char *key, int otherwise)
{
    const char *text = getenv("MAREY_TEST_CUPTI");
    const size_t len = strlen(key);
    for (const char *at = text; at != NULL && *at != '\0';
         at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, key, len) == 0 && at[len] == '=')
            return atoi(at + len + 1);
    return otherwise;
}

static void write_down(const char *what, int number)
{
    const char *path = getenv("MAREY_TEST_CUPTI_LOG");
    const int fd = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    if (fd < 0)
        return;
    dprintf(fd, "%s %d\n", what, number);
    close(fd);
}

/* ---- slowness ---- */

enum { AT_SUBSCRIBE = 1, AT_ENABLE = 2, AT_FLUSH = 4, AT_FINALIZE = 8 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t bell;
    int is_open;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .bell = PTHREAD_COND_INITIALIZER};

EXPORT void marey_test_cupti_gate(int is_shut);
void marey_test_cupti_gate(int is_shut)
{
    pthread_mutex_lock(&gate.lock);
    gate.is_open = !is_shut;
    pthread_cond_broadcast(&gate.bell);
    pthread_mutex_unlock(&gate.lock);
}

static void take_time(int where)
{
    usleep((useconds_t)option("slow", 0));
    if ((option("gate", 0) & where) == 0)
        return;
    pthread_mutex_lock(&gate.lock);
    while (!gate.is_open)
        pthread_cond_wait(&gate.bell, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

/* All calls of a process are numbered in one row. */
EXPORT uint32_t marey_test_cupti_number(void);
uint32_t marey_test_cupti_number(void)
{
    static uint32_t number;
    return __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED);
}

EXPORT int cuptiGetVersion(uint32_t *version);
int cuptiGetVersion(uint32_t *version)
{
#ifdef CUPTI_12
    *version = (uint32_t)option("version", 18);
#else
    *version = (uint32_t)option("version", 130001);
#endif
    return 0;
}

EXPORT int cuptiGetResultString(int result, const char **text);
int cuptiGetResultString(int result, const char **text)
{
    *text = result == 35 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR_STAND_IN";
    return 0;
}

/* ---- whose it is ---- */

/* Another tool comes, as Kineto does; 0 when somebody is there. And goes. */
EXPORT int marey_test_cupti_take(const char *name);
int marey_test_cupti_take(const char *name)
{
    pthread_mutex_lock(&cupti.lock);
    const int is_free = cupti.holder == NULL;
    if (is_free)
        cupti.holder = name;
    pthread_mutex_unlock(&cupti.lock);
    write_down(name, is_free);
    return is_free;
}

EXPORT void marey_test_cupti_give(void);
void marey_test_cupti_give(void)
{
    pthread_mutex_lock(&cupti.lock);
    cupti.holder = NULL;
    pthread_mutex_unlock(&cupti.lock);
}

static int subscribe(void **subscriber, callback_fn *callback, void *ctx)
{
    take_time(AT_SUBSCRIBE);
    pthread_mutex_lock(&cupti.lock);
    int result = option("subscribe", 0);
    if (result == 0 && (cupti.holder != NULL || cupti.n_refused < option("busy", 0))) {
        cupti.n_refused++;
        result = TAKEN;
    }
    if (result == 0) {
        cupti.holder = "marey";
        cupti.callback = callback;
        cupti.ctx = ctx;
        *subscriber = &cupti;
    }
    pthread_mutex_unlock(&cupti.lock);
    write_down("subscribe", result);
    return result;
}

EXPORT int cuptiSubscribe(void **subscriber, callback_fn *callback, void *ctx);
int cuptiSubscribe(void **subscriber, callback_fn *callback, void *ctx)
{
    return subscribe(subscriber, callback, ctx);
}

#ifndef CUPTI_12
struct params {
    size_t size;
    const char *name;
    char *old_name;
    size_t old_size;
};

EXPORT int cuptiSubscribe_v2(void **subscriber, callback_fn *callback, void *ctx,
                             struct params *params);
int cuptiSubscribe_v2(void **subscriber, callback_fn *callback, void *ctx, struct params *params)
{
    if (params->size != sizeof *params)
        return 1;
    const int result = subscribe(subscriber, callback, ctx);
    if (result == TAKEN)
        snprintf(params->old_name, params->old_size, "%s",
                 cupti.holder != NULL ? cupti.holder : "CUPTI for somebody");
    return result;
}
#endif

/* The subscriber is gone, unless it is another tool. */
static void forget(void)
{
    pthread_mutex_lock(&cupti.lock);
    if (cupti.callback != NULL)
        cupti.holder = NULL;
    cupti.callback = NULL;
    memset(cupti.is_call_on, 0, sizeof cupti.is_call_on);
    pthread_mutex_unlock(&cupti.lock);
}

EXPORT int cuptiUnsubscribe(void *subscriber);
int cuptiUnsubscribe(void *subscriber)
{
    write_down("unsubscribe", subscriber == &cupti);
    forget();
    return 0;
}

#ifndef CUPTI_BROKEN
EXPORT int cuptiFinalize(void);
int cuptiFinalize(void)
{
    take_time(AT_FINALIZE);
    write_down("finalize", 0);
    forget();
    return 0;
}
#endif

/* ---- calls ---- */

EXPORT int cuptiGetCallbackName(int domain, uint32_t number, const char **name);
int cuptiGetCallbackName(int domain, uint32_t number, const char **name)
{
    static const struct {
        int domain;
        uint32_t number;
        const char *name;
    } names[] = {
        {DOMAIN_RUNTIME, CALL_GET_DEVICE, "cudaGetDevice_v3020"},
        {DOMAIN_RUNTIME, CALL_MALLOC, "cudaMalloc_v3020"},
        {DOMAIN_RUNTIME, CALL_FREE, "cudaFree_v3020"},
        {DOMAIN_RUNTIME, CALL_HOST_ALLOC, "cudaHostAlloc_v3020"},
        {DOMAIN_RUNTIME, CALL_MEMCPY_ASYNC, "cudaMemcpyAsync_v3020"},
        {DOMAIN_RUNTIME, CALL_MEMSET_ASYNC, "cudaMemsetAsync_v3020"},
        {DOMAIN_RUNTIME, CALL_STREAM_SYNC, "cudaStreamSynchronize_v3020"},
        {DOMAIN_RUNTIME, CALL_DEVICE_SYNC, "cudaDeviceSynchronize_v3020"},
        {DOMAIN_RUNTIME, CALL_LAUNCH_KERNEL, "cudaLaunchKernel_v7000"},
        {DOMAIN_RUNTIME, CALL_GRAPH_LAUNCH, "cudaGraphLaunch_v10000"},
        {DOMAIN_DRIVER, CALL_CU_LAUNCH_KERNEL, "cuLaunchKernel"},
        {DOMAIN_DRIVER, CALL_CU_DEVICE_GET_COUNT, "cuDeviceGetCount"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].domain == domain && names[i].number == number) {
            *name = names[i].name;
            return 0;
        }
    return 1;
}

EXPORT int cuptiEnableCallback(uint32_t on, void *subscriber, int domain, uint32_t number);
int cuptiEnableCallback(uint32_t on, void *subscriber, int domain, uint32_t number)
{
    if (subscriber != &cupti || domain < 1 || domain > DOMAIN_RUNTIME || number >= MAX_CALLS)
        return 1;
    pthread_mutex_lock(&cupti.lock);
    cupti.is_call_on[domain][number] = on != 0;
    pthread_mutex_unlock(&cupti.lock);
    return 0;
}

EXPORT int cuptiEnableDomain(uint32_t on, void *subscriber, int domain);
int cuptiEnableDomain(uint32_t on, void *subscriber, int domain)
{
    for (uint32_t i = 0; i < MAX_CALLS; i++)
        cuptiEnableCallback(on, subscriber, domain, i);
    return 0;
}

/* The driver's, where the process has loaded it. */
static void *current_context(void)
{
    int (*get)(void **ctx) = NULL;
    void *context = NULL, *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (driver != NULL)
        *(void **)&get = dlsym(driver, "cuCtxGetCurrent");
    if (get != NULL)
        get(&context);
    return context;
}

EXPORT void marey_test_cupti_call(int domain, uint32_t number, int is_end, uint32_t correlation);
void marey_test_cupti_call(int domain, uint32_t number, int is_end, uint32_t correlation)
{
    const struct call_data data = {
        .is_end = is_end, .correlation = correlation, .context = current_context()};
    pthread_mutex_lock(&cupti.lock);
    callback_fn *callback = cupti.is_call_on[domain][number] ? cupti.callback : NULL;
    void *ctx = cupti.ctx;
    pthread_mutex_unlock(&cupti.lock);
    if (callback != NULL)
        callback(ctx, domain, number, &data);
}

/* ---- records ---- */

EXPORT int cuptiActivityRegisterTimestampCallback(standin_clock_fn *clock);
int cuptiActivityRegisterTimestampCallback(standin_clock_fn *clock)
{
    __atomic_store_n(&cupti.clock, clock, __ATOMIC_RELAXED);
    return 0;
}

EXPORT uint64_t marey_test_cupti_clock(void);
uint64_t marey_test_cupti_clock(void)
{
    standin_clock_fn *const clock = __atomic_load_n(&cupti.clock, __ATOMIC_RELAXED);
    return clock != NULL ? clock() : 0;
}

EXPORT int cuptiActivityRegisterCallbacks(request_fn *request, complete_fn *complete);
int cuptiActivityRegisterCallbacks(request_fn *request, complete_fn *complete)
{
    pthread_mutex_lock(&cupti.lock);
    cupti.request = request;
    cupti.complete = complete;
    pthread_mutex_unlock(&cupti.lock);
    return 0;
}

EXPORT int cuptiActivitySetAttribute(int attribute, size_t *size, void *value);
int cuptiActivitySetAttribute(int attribute, size_t *size, void *value)
{
    (void)attribute;
    (void)size;
    (void)value;
#ifdef CUPTI_12
    return 1;
#else
    return 0;
#endif
}

EXPORT int cuptiActivityEnable(int kind);
int cuptiActivityEnable(int kind)
{
    const int result = kind == KIND_KERNEL ? option("enable", 0) : 0;
    if (kind == KIND_KERNEL)
        take_time(AT_ENABLE);
    if (result == 0 && kind < MAX_KIND)
        __atomic_store_n(&cupti.is_kind_on[kind], 1, __ATOMIC_RELAXED);
    return result;
}

EXPORT int marey_test_cupti_is_on(int kind);
int marey_test_cupti_is_on(int kind)
{
    return __atomic_load_n(&cupti.is_kind_on[kind], __ATOMIC_RELAXED);
}

EXPORT int cuptiActivityDisable(int kind);
int cuptiActivityDisable(int kind)
{
    if (kind < MAX_KIND)
        __atomic_store_n(&cupti.is_kind_on[kind], 0, __ATOMIC_RELAXED);
    return 0;
}

static size_t size_of(uint32_t kind)
{
#ifdef CUPTI_12
    const size_t kernel = 160, copy = 80, sync = 40, memory = 88;
#else
    const size_t kernel = 216, copy = 96, sync = 56, memory = 128;
#endif
    return kind == KIND_KERNEL   ? kernel
           : kind == KIND_SYNC   ? sync
           : kind == KIND_MEMORY ? memory
                                 : copy;
}

/* The second half before the first. The lock is held. */
static void shuffle(uint8_t *buffer, size_t valid)
{
    size_t at = 0, n = 0, half = 0;
    uint32_t kind;
    for (; at < valid; at += size_of(kind), n++)
        memcpy(&kind, buffer + at, sizeof kind);
    for (at = 0; n > 1 && half == 0;) {
        memcpy(&kind, buffer + at, sizeof kind);
        at += size_of(kind);
        half = at * 2 >= valid && at < valid ? at : 0;
        if (at >= valid)
            return;
    }
    uint8_t *copy = malloc(valid);
    if (copy == NULL || half == 0) {
        free(copy);
        return;
    }
    memcpy(copy, buffer, valid);
    memcpy(buffer, copy + half, valid - half);
    memcpy(buffer + valid - half, copy, half);
    free(copy);
}

/* Hand the buffer out, without the lock, as CUPTI does. */
static void hand_out(void)
{
    pthread_mutex_lock(&cupti.lock);
    uint8_t *buffer = cupti.buffer;
    const size_t size = cupti.size, valid = cupti.valid;
    cupti.buffer = NULL;
    cupti.valid = 0;
    if (buffer != NULL)
        cupti.n_dropped += (size_t)option("dropped", 0);
    if (buffer != NULL && option("shuffle", 0))
        shuffle(buffer, valid);
    complete_fn *const complete = cupti.complete;
    pthread_mutex_unlock(&cupti.lock);
    if (buffer != NULL)
        complete(NULL, 0, buffer, size, valid);
}

/* The lock is held. False when there is no buffer to be had. */
static int has_room(size_t size)
{
    size_t max_records = 0;
    if (cupti.buffer == NULL && cupti.request != NULL)
        cupti.request(&cupti.buffer, &cupti.size, &max_records);
    return cupti.buffer != NULL && cupti.valid + size <= cupti.size;
}

/* The lock is held, and let go of when a buffer is full. */
static void put(const void *record, size_t size, uint32_t kind)
{
    const size_t wanted = size_of(kind);
    int fits = has_room(wanted);
    if (!fits && cupti.buffer != NULL) {
        pthread_mutex_unlock(&cupti.lock);
        hand_out();
        pthread_mutex_lock(&cupti.lock);
        fits = has_room(wanted);
    }
    if (fits) {
        memset(cupti.buffer + cupti.valid, 0, wanted);
        memcpy(cupti.buffer + cupti.valid, record, size < wanted ? size : wanted);
        cupti.valid += wanted;
    } else {
        cupti.n_dropped++;
    }
}

EXPORT void marey_test_cupti_record(const void *record, size_t size);
void marey_test_cupti_record(const void *record, size_t size)
{
    struct kernel_record kernel;
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    if (kind >= MAX_KIND || !__atomic_load_n(&cupti.is_kind_on[kind], __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&cupti.lock);
    if (kind == KIND_KERNEL)
        memcpy(&kernel, record, sizeof kernel);
    if (kind == KIND_KERNEL && kernel.end == 0 && cupti.n_held < MAX_HELD)
        cupti.held[cupti.n_held++] = kernel;
    else
        put(record, size, kind);
    pthread_mutex_unlock(&cupti.lock);
}

/* Kernels that had not ended: they have at `end`, or are given out without an end. */
EXPORT void marey_test_cupti_release(uint64_t end);
void marey_test_cupti_release(uint64_t end)
{
    pthread_mutex_lock(&cupti.lock);
    for (size_t i = 0; i < cupti.n_held; i++) {
        cupti.held[i].end = end;
        put(&cupti.held[i], sizeof cupti.held[i], KIND_KERNEL);
    }
    cupti.n_held = 0;
    pthread_mutex_unlock(&cupti.lock);
}

EXPORT int cuptiActivityFlushAll(uint32_t flags);
int cuptiActivityFlushAll(uint32_t flags)
{
    const int result = option("flush", 0);
    if (flags != 0)
        take_time(AT_FLUSH);
    if (flags != 0)
        write_down("flush", result);
    if (flags != 0 && result == 0)
        marey_test_cupti_release(0);
    if (result == 0)
        hand_out();
    return result;
}

EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
    uint32_t kind;
    uint8_t *next = buffer;
    if (*record != NULL) {
        memcpy(&kind, *record, sizeof kind);
        next = *record + size_of(kind);
    }
    if (next >= buffer + valid)
        return NO_MORE;
    *record = next;
    return 0;
}

EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n);
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n)
{
    (void)context;
    (void)stream;
    pthread_mutex_lock(&cupti.lock);
    *n = cupti.n_dropped;
    cupti.n_dropped = 0;
    pthread_mutex_unlock(&cupti.lock);
    return 0;
}
