/*
 * Bare CUPTI, for bench_gpu.py: records are requested and discarded. `calls` also requests records
 * of runtime calls, the minimum to link GPU activity with its launch.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>

#include "instrument/gpu/internal.h"

enum { BUFFER_BYTES = 4 << 20, RUNTIME_CALLS = 5 };

static struct marey__cupti cupti;
static void *subscriber;

static void request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = malloc(BUFFER_BYTES);
    *size = BUFFER_BYTES;
    *max_records = 0;
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    (void)context, (void)stream, (void)size, (void)valid;
    free(buffer);
}

static void called(void *ctx, int domain, uint32_t number, const struct marey__cupti_call *call)
{
    (void)ctx, (void)domain, (void)number, (void)call;
}

static const int kinds[] = {MAREY__CUPTI_KERNEL, MAREY__CUPTI_MEMCPY, MAREY__CUPTI_MEMSET,
                            RUNTIME_CALLS};

/* Returns 0 when it is on. Uses the CUPTI loaded by the process. */
__attribute__((visibility("default"))) int control_start(bool calls)
{
    void *library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL && (library = dlopen("libcupti.so.12", RTLD_NOW | RTLD_NOLOAD)) == NULL)
        return -1;
#define FIND(field, symbol, result, arguments) *(void **)&cupti.field = dlsym(library, symbol);
    MAREY__CUPTI_FUNCTIONS(FIND)
    const int result = cupti.subscribe(&subscriber, called, NULL);
    if (result != MAREY__CUPTI_SUCCESS)
        return result;
    cupti.register_buffers(request, complete);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i] != RUNTIME_CALLS || calls)
            cupti.enable(kinds[i]);
    return 0;
}

__attribute__((visibility("default"))) void control_stop(void)
{
    cupti.flush(MAREY__CUPTI_FLUSH_FORCED);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        cupti.disable(kinds[i]);
    cupti.unsubscribe(subscriber);
    cupti.finalize();
}
