/*
 * A fake of CUDA's runtime. Like the real one, the first call loads and initializes the driver.
 * Activity takes 1000 ticks of CUPTI's clock, after earlier activity of its stream.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stand_in.h"

enum { N_STREAMS = 256, WORK_TICKS = 1000, DEVICE = 0, CONTEXT = 1 };

static struct {
    pthread_mutex_t lock;
    uint64_t stream_end[N_STREAMS];
    int is_held; /* work has not ended yet */
} gpu = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void start_driver(void)
{
    int (*init)(unsigned) = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (driver != NULL)
        *(void **)&init = dlsym(driver, "cuInit");
    if (init == NULL || init(0) != 0) {
        fprintf(stderr, "no stand-in of the driver: %s\n", dlerror());
        exit(99);
    }
}

/* A function of the fake CUPTI, if loaded; it is never unloaded. */
static void *cupti_function(void **known, const char *name)
{
    void *function = __atomic_load_n(known, __ATOMIC_RELAXED);
    if (function != NULL)
        return function;
    const char *path = getenv("MAREY_CUPTI_LIBRARY");
    void *library = dlopen(path != NULL ? path : "libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    function = library != NULL ? dlsym(library, name) : NULL;
    __atomic_store_n(known, function, __ATOMIC_RELAXED);
    return function;
}

static uint64_t now(void)
{
    static void *known;
    standin_clock_fn *clock = NULL;
    *(void **)&clock = cupti_function(&known, "marey_test_cupti_clock");
    return clock != NULL ? clock() : 0;
}

static void tell_call(int domain, uint32_t number, int is_end, uint32_t correlation)
{
    static void *known;
    standin_call_fn *call = NULL;
    *(void **)&call = cupti_function(&known, "marey_test_cupti_call");
    if (call != NULL)
        call(domain, number, is_end, correlation);
}

static void tell_record(const void *bytes, size_t size)
{
    static void *known;
    standin_record_fn *record = NULL;
    *(void **)&record = cupti_function(&known, "marey_test_cupti_record");
    if (record != NULL)
        record(bytes, size);
}

static uint32_t begin_call(int domain, uint32_t number)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_driver);
    static void *known;
    standin_number_fn *number_next = NULL;
    *(void **)&number_next = cupti_function(&known, "marey_test_cupti_number");
    const uint32_t correlation = number_next != NULL ? number_next() : 0;
    tell_call(domain, number, 0, correlation);
    return correlation;
}

/* When the stream executes it. Held activity has no end. */
static void schedule(uint32_t stream, uint64_t *start, uint64_t *end)
{
    const uint64_t at = now();
    pthread_mutex_lock(&gpu.lock);
    uint64_t *const busy_until = &gpu.stream_end[stream % N_STREAMS];
    *start = *busy_until > at ? *busy_until : at;
    *busy_until = *start + WORK_TICKS;
    *end = gpu.is_held ? 0 : *busy_until;
    pthread_mutex_unlock(&gpu.lock);
}

static struct kernel_record kernel(const char *name, uint32_t stream, uint32_t correlation)
{
    struct kernel_record r = {.kind = KIND_KERNEL,
                              .registers = 32,
                              .device = DEVICE,
                              .context = CONTEXT,
                              .stream = stream,
                              .grid = {8, 1, 1},
                              .block = {128, 1, 1},
                              .dynamic_memory = 1024,
                              .correlation = correlation,
                              .name = name};
    schedule(stream, &r.start, &r.end);
    return r;
}

void gpu_launch(const char *name, uint32_t stream, uint32_t grid, uint32_t block)
{
    const uint32_t id = begin_call(DOMAIN_RUNTIME, CALL_LAUNCH_KERNEL);
    struct kernel_record r = kernel(name, stream, id);
    r.grid[0] = (int32_t)grid;
    r.block[0] = (int32_t)block;
    /* The runtime calls the driver, of which one range is enough. */
    tell_call(DOMAIN_DRIVER, CALL_CU_LAUNCH_KERNEL, 0, id);
    tell_record(&r, sizeof r);
    tell_call(DOMAIN_DRIVER, CALL_CU_LAUNCH_KERNEL, 1, id);
    tell_call(DOMAIN_RUNTIME, CALL_LAUNCH_KERNEL, 1, id);
}

void gpu_launch_late(const char *name, uint32_t stream)
{
    const uint32_t id = begin_call(DOMAIN_RUNTIME, CALL_LAUNCH_KERNEL);
    struct kernel_record r = kernel(name, stream, id);
    r.start -= 2 * WORK_TICKS;
    r.end -= 2 * WORK_TICKS;
    tell_record(&r, sizeof r);
    tell_call(DOMAIN_RUNTIME, CALL_LAUNCH_KERNEL, 1, id);
}

void gpu_launch_by_driver(const char *name, uint32_t stream)
{
    const uint32_t id = begin_call(DOMAIN_DRIVER, CALL_CU_LAUNCH_KERNEL);
    const struct kernel_record r = kernel(name, stream, id);
    tell_record(&r, sizeof r);
    tell_call(DOMAIN_DRIVER, CALL_CU_LAUNCH_KERNEL, 1, id);
}

void gpu_graph(uint32_t n_kernels, uint32_t stream, uint32_t graph)
{
    const uint32_t id = begin_call(DOMAIN_RUNTIME, CALL_GRAPH_LAUNCH);
    for (uint32_t i = 0; i < n_kernels; i++) {
        struct kernel_record r = kernel("in_a_graph", stream, id);
        r.graph = graph;
        r.graph_node = (uint64_t)graph << 32 | (i + 1);
        tell_record(&r, sizeof r);
    }
    tell_call(DOMAIN_RUNTIME, CALL_GRAPH_LAUNCH, 1, id);
}

void gpu_copy(uint64_t bytes, uint32_t stream)
{
    const uint32_t id = begin_call(DOMAIN_RUNTIME, CALL_MEMCPY_ASYNC);
    struct copy_record r = {.kind = KIND_MEMCPY,
                            .copy_kind = 1,
                            .from = 1,
                            .to = 3,
                            .bytes = bytes,
                            .device = DEVICE,
                            .context = CONTEXT,
                            .stream = stream,
                            .correlation = id};
    schedule(stream, &r.start, &r.end);
    tell_record(&r, sizeof r);
    tell_call(DOMAIN_RUNTIME, CALL_MEMCPY_ASYNC, 1, id);
}

void gpu_set(uint64_t bytes, uint32_t stream)
{
    const uint32_t id = begin_call(DOMAIN_RUNTIME, CALL_MEMSET_ASYNC);
    struct copy_record r = {.kind = KIND_MEMSET,
                            .bytes = bytes,
                            .device = DEVICE,
                            .context = CONTEXT,
                            .stream = stream,
                            .correlation = id,
                            .set_memory = 3};
    schedule(stream, &r.start, &r.end);
    tell_record(&r, sizeof r);
    tell_call(DOMAIN_RUNTIME, CALL_MEMSET_ASYNC, 1, id);
}

static void tell_memory(uint32_t call, uint32_t operation, uint64_t address, uint64_t bytes,
                        uint32_t memory)
{
    const uint32_t id = begin_call(DOMAIN_RUNTIME, call);
    const struct memory_record r = {.kind = KIND_MEMORY,
                                    .operation = operation,
                                    .memory = memory,
                                    .correlation = id,
                                    .address = address,
                                    .bytes = bytes,
                                    .timestamp = now(),
                                    .device = DEVICE,
                                    .context = CONTEXT};
    tell_record(&r, sizeof r);
    tell_call(DOMAIN_RUNTIME, call, 1, id);
}

enum { DEVICE_MEMORY = 3, PINNED_MEMORY = 2 };

uint64_t gpu_take(uint64_t bytes)
{
    static uint64_t next = UINT64_C(0x7f0000000000);
    const uint64_t address = __atomic_fetch_add(&next, (bytes | 511) + 1, __ATOMIC_RELAXED);
    tell_memory(CALL_MALLOC, 1, address, bytes, DEVICE_MEMORY);
    return address;
}

void gpu_take_pinned(uint64_t bytes)
{
    tell_memory(CALL_HOST_ALLOC, 1, UINT64_C(0x7e0000000000), bytes, PINNED_MEMORY);
}

void gpu_give(uint64_t address, uint64_t bytes)
{
    tell_memory(CALL_FREE, 2, address, bytes, DEVICE_MEMORY);
}

void gpu_ask(void)
{
    const uint32_t id = begin_call(DOMAIN_RUNTIME, CALL_GET_DEVICE);
    tell_call(DOMAIN_RUNTIME, CALL_GET_DEVICE, 1, id);
}

void gpu_hold(void)
{
    pthread_mutex_lock(&gpu.lock);
    gpu.is_held = 1;
    pthread_mutex_unlock(&gpu.lock);
}

int cudaDeviceSynchronize(void)
{
    const uint32_t id = begin_call(DOMAIN_RUNTIME, CALL_DEVICE_SYNC);
    struct sync_record r = {.kind = KIND_SYNC,
                            .type = 4,
                            .correlation = id,
                            .context = CONTEXT,
                            .stream = UINT32_MAX,
                            .start = now()};
    pthread_mutex_lock(&gpu.lock);
    gpu.is_held = 0;
    pthread_mutex_unlock(&gpu.lock);
    r.end = now();
    static void *known;
    standin_release_fn *release = NULL;
    *(void **)&release = cupti_function(&known, "marey_test_cupti_release");
    if (release != NULL)
        release(r.end);
    tell_record(&r, sizeof r);
    tell_call(DOMAIN_RUNTIME, CALL_DEVICE_SYNC, 1, id);
    return 0;
}
