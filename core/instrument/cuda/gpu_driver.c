/*
 * The CUDA driver library, as far as spans need it. Any program that uses a GPU has it loaded (through torch, a
 * statically linked runtime, numba), and driver calls do not change the runtime's last error, which the program may
 * query. We never load it ourselves, so that a program without GPU use stays that way.
 */
#include <dlfcn.h>
#include <pthread.h>

#include "instrument/cuda/internal.h"

static const char library_name[] = "libcuda.so.1";

static struct {
    pthread_mutex_t lock;              /* guards the search */
    const struct marey__driver *found; /* release; loaded with acquire. Set once */
    unsigned long long n_loads_before; /* the loader's count at the last search. Relaxed */
    bool is_old;                       /* loaded, but a function is missing. Under the lock */
    void *library;                     /* constant once `found` is seen */
    struct marey__driver driver;
} search = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool find_functions(void *library, struct marey__driver *driver)
{
    bool is_whole = true;
#define FIND(field, symbol, arguments)                                                             \
    *(void **)&driver->field = dlsym(library, symbol);                                             \
    is_whole = is_whole && driver->field != NULL;
    MAREY__DRIVER_FUNCTIONS(FIND)
#undef FIND
    return is_whole;
}

/* Caller holds the lock. The library stays open. */
static const struct marey__driver *find_driver(void)
{
    void *library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == NULL)
        return NULL;
    search.library = library;
    search.is_old = !find_functions(library, &search.driver);
    return search.is_old ? NULL : &search.driver;
}

const struct marey__driver *marey__driver_get(void)
{
    const struct marey__driver *driver = __atomic_load_n(&search.found, __ATOMIC_ACQUIRE);
    if (MAREY_LIKELY(driver != NULL))
        return driver;
    const unsigned long long n_loads = marey__cuda_load_count();
    if (n_loads == __atomic_load_n(&search.n_loads_before, __ATOMIC_RELAXED))
        return NULL;
    MAREY__HOLD(&search.lock);
    driver = search.found != NULL ? search.found : find_driver();
    __atomic_store_n(&search.found, driver, __ATOMIC_RELEASE);
    __atomic_store_n(&search.n_loads_before, n_loads, __ATOMIC_RELAXED);
    return driver;
}

void *marey__driver_symbol(const char *name)
{
    return marey__driver_get() != NULL ? dlsym(search.library, name) : NULL;
}

/* ---- contexts and captures ---- */

/* NULL, 1 and 2 are the default streams of the current context. */
static bool is_default(const void *stream)
{
    return (uintptr_t)stream <= 2;
}

int marey__driver_context(const struct marey__driver *driver, void *stream, void **ctx)
{
    int is_capturing = 0;
    int error = is_default(stream) ? driver->ctx_get_current(ctx) : 0;
    if (error == 0 && is_default(stream) && *ctx == NULL)
        error = MAREY__CUDA_INVALID_CONTEXT;
    if (error == 0)
        error = driver->stream_is_capturing(stream, &is_capturing);
    if (error == 0 && is_capturing != 0)
        error = MAREY__CUDA_CAPTURE_IMPLICIT;
    if (error == 0 && !is_default(stream))
        error = driver->stream_get_ctx(stream, ctx);
    return error;
}

bool marey__driver_enter(const struct marey__driver *driver, void *ctx, bool *is_entered)
{
    void *current = NULL;
    *is_entered = driver->ctx_get_current(&current) != 0 || current != ctx;
    return !*is_entered || driver->ctx_push(ctx) == 0;
}

void marey__driver_leave(const struct marey__driver *driver, bool is_entered)
{
    void *ctx;
    if (is_entered)
        driver->ctx_pop(&ctx);
}

int marey__driver_exchange_capture_mode(const struct marey__driver *driver, int mode)
{
    return driver->exchange_capture_mode(&mode) == 0 ? mode : MAREY__CUDA_CAPTURE_MODE_RELAXED;
}

int marey__driver_sync(void *ctx)
{
    const struct marey__driver *const driver = marey__driver_get();
    int (*sync)(void) = NULL;
    bool is_entered;
    *(void **)&sync = marey__driver_symbol("cuCtxSynchronize");
    /* Get the driver before the symbol: another thread may load the library in between. */
    if (driver == NULL || sync == NULL || !marey__driver_enter(driver, ctx, &is_entered))
        return MAREY__CUDA_INVALID_CONTEXT;
    const int mode = marey__driver_exchange_capture_mode(driver, MAREY__CUDA_CAPTURE_MODE_RELAXED);
    const int error = sync();
    marey__driver_exchange_capture_mode(driver, mode);
    marey__driver_leave(driver, is_entered);
    return error;
}

/* ---- availability ---- */

static bool can_open(int flags)
{
    void *library = dlopen(library_name, RTLD_LAZY | RTLD_LOCAL | flags);
    if (library != NULL)
        dlclose(library);
    return library != NULL;
}

bool marey__cuda_is_loaded(void)
{
    return can_open(RTLD_NOLOAD);
}

marey_status marey__gpu_check(void)
{
    if (marey__driver_get() != NULL)
        return MAREY_OK;
    /* The program may load CUDA later. Only open the library, so that children of a fork are not affected. */
    if (!can_open(0))
        return marey__fail(
            MAREY_EUNAVAILABLE,
            "times on the GPU cannot be measured: there is no CUDA driver here (%s); "
            "install NVIDIA's driver, or measure without the GPU",
            library_name);
    pthread_mutex_lock(&search.lock);
    const bool is_old = search.is_old;
    pthread_mutex_unlock(&search.lock);
    if (is_old)
        return marey__fail(
            MAREY_EUNAVAILABLE,
            "times on the GPU cannot be measured: the CUDA driver (%s) is older than "
            "CUDA 10.1; install a newer one, or measure by waiting (sync)",
            library_name);
    return MAREY_OK;
}

void marey__driver_after_fork(void)
{
    pthread_mutex_init(&search.lock, NULL);
}
