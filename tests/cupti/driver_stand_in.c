/* A fake of CUDA's driver library. Like the real one it loads the library in CUDA_INJECTION64_PATH
 * once. */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

#include "stand_in.h"

EXPORT int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    static int is_done;
    int (*inject)(void) = NULL;
    const char *path = getenv("CUDA_INJECTION64_PATH");
    if (is_done)
        return (int)flags;
    is_done = 1;
    void *tool = path != NULL ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (tool != NULL)
        *(void **)&inject = dlsym(tool, "InitializeInjection");
    if (inject != NULL)
        inject();
    return (int)flags;
}

static void *function_of(const char *library_name, const char *name)
{
    void *library = dlopen(library_name, RTLD_NOW | RTLD_NOLOAD);
    return library != NULL ? dlsym(library, name) : NULL;
}

/* Notify the fake CUPTI that the process has loaded. */
static void *cupti_function(const char *name)
{
    const char *path = getenv("MAREY_CUPTI_LIBRARY");
    return function_of(path != NULL ? path : "libcupti.so.13", name);
}

EXPORT int cuDeviceGetCount(int *n);
int cuDeviceGetCount(int *n)
{
    standin_call_fn *call = NULL;
    standin_number_fn *number_next = NULL;
    *(void **)&call = cupti_function("marey_test_cupti_call");
    *(void **)&number_next = cupti_function("marey_test_cupti_number");
    const uint32_t number = number_next != NULL ? number_next() : 0;
    if (call != NULL)
        call(DOMAIN_DRIVER, CALL_CU_DEVICE_GET_COUNT, 0, number);
    *n = 1;
    if (call != NULL)
        call(DOMAIN_DRIVER, CALL_CU_DEVICE_GET_COUNT, 1, number);
    return 0;
}

/* ---- a single context, current in every thread ---- */

EXPORT int cuCtxGetCurrent(void **ctx);
int cuCtxGetCurrent(void **ctx)
{
    static int context;
    *ctx = &context;
    return 0;
}

EXPORT int cuCtxSynchronize(void);
int cuCtxSynchronize(void)
{
    int (*sync)(void) = NULL;
    *(void **)&sync = function_of("libcudart.so.13", "cudaDeviceSynchronize");
    return sync != NULL ? sync() : 1;
}

/* ---- memsets on a separate stream; they take longer while CUPTI records them ---- */

EXPORT int cuStreamCreate(void **stream, unsigned flags);
int cuStreamCreate(void **stream, unsigned flags)
{
    static int one;
    (void)flags;
    *stream = &one;
    return 0;
}

EXPORT int cuMemAllocAsync(uint64_t *address, size_t n, void *stream);
int cuMemAllocAsync(uint64_t *address, size_t n, void *stream)
{
    (void)n;
    *address = (uint64_t)(uintptr_t)stream;
    return 0;
}

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

EXPORT int cuMemsetD8Async(uint64_t address, unsigned char value, size_t n, void *stream);
int cuMemsetD8Async(uint64_t address, unsigned char value, size_t n, void *stream)
{
    int (*is_on)(int kind) = NULL;
    (void)address, (void)value, (void)n, (void)stream;
    *(void **)&is_on = cupti_function("marey_test_cupti_is_on");
    const uint64_t until = now_ns() + (is_on != NULL && is_on(KIND_MEMSET) ? MEMSET_TRACED_NS : 0);
    while (now_ns() < until)
        ;
    return 0;
}

EXPORT int cuStreamSynchronize(void *stream);
int cuStreamSynchronize(void *stream)
{
    return stream == NULL;
}

EXPORT int cuMemFreeAsync(uint64_t address, void *stream);
int cuMemFreeAsync(uint64_t address, void *stream)
{
    return address != (uint64_t)(uintptr_t)stream;
}

EXPORT int cuStreamDestroy_v2(void *stream);
int cuStreamDestroy_v2(void *stream)
{
    return stream == NULL;
}

/* Symbols that libmarey requires of a driver; never called here. */
#define FUNCTION(name)                                                                             \
    EXPORT int name(void);                                                                         \
    int name(void)                                                                                 \
    {                                                                                              \
        return 1;                                                                                  \
    }
FUNCTION(cuCtxPushCurrent_v2)
FUNCTION(cuCtxPopCurrent_v2)
FUNCTION(cuStreamGetCtx)
FUNCTION(cuStreamIsCapturing)
FUNCTION(cuThreadExchangeStreamCaptureMode)
FUNCTION(cuEventCreate)
FUNCTION(cuEventRecord)
FUNCTION(cuEventQuery)
FUNCTION(cuEventElapsedTime)

EXPORT int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}
