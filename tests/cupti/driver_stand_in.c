/* What a process takes for CUDA's driver library. Like the real one it loads what CUDA_INJECTION64_PATH names, once. */
#include <dlfcn.h>
#include <stdlib.h>

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

/* CUPTI hears of it, by the library that the process has loaded. */
static void tell_call(uint32_t number, int is_end)
{
    standin_call_fn *call = NULL;
    const char *path = getenv("KYMO_CUPTI_LIBRARY");
    void *library = dlopen(path != NULL ? path : "libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    if (library != NULL)
        *(void **)&call = dlsym(library, "kymo_test_cupti_call");
    if (call != NULL)
        call(DOMAIN_DRIVER, number, is_end, 0);
}

EXPORT int cuDeviceGetCount(int *n);
int cuDeviceGetCount(int *n)
{
    tell_call(CALL_CU_DEVICE_GET_COUNT, 0);
    *n = 1;
    tell_call(CALL_CU_DEVICE_GET_COUNT, 1);
    return 0;
}

/* What libkymo wants to see in a driver; none of it is called here. */
#define FUNCTION(name)                                                                             \
    EXPORT int name(void);                                                                         \
    int name(void)                                                                                 \
    {                                                                                              \
        return 1;                                                                                  \
    }
FUNCTION(cuCtxGetCurrent)
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
