/*
 * Waiting for the GPU, through the runtime library the process uses. A statically linked one is detected by the driver
 * library, and then a second runtime is opened: both use the same current context.
 *
 * Libraries are loaded while a program runs (torch is imported, a plugin loaded), so a failed search is repeated
 * whenever the loader has loaded something since.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>

#include "instrument/cuda/internal.h"

typedef int sync_fn(void);                /* cudaError_t cudaDeviceSynchronize(void) */
typedef const char *error_string_fn(int); /* const char *cudaGetErrorString(cudaError_t) */

static struct {
    pthread_mutex_t lock;              /* guards the search and `state` */
    sync_fn *sync;                     /* release; loaded with acquire. Set once */
    error_string_fn *error_string;     /* may be NULL; constant after `sync` is set */
    unsigned long long n_loads_before; /* the loader's count at the last search. Relaxed */
    char state[256];
} cuda = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const runtimes[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0",
                                       "libcudart.so"};

static int read_load_count(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size;
    *(unsigned long long *)ctx = info->dlpi_adds;
    return 1;
}

unsigned long long marey__cuda_load_count(void)
{
    unsigned long long n = 0;
    dl_iterate_phdr(read_load_count, &n);
    return n;
}

static void *open_runtime(int flags, const char **name)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(runtimes); i++) {
        void *library = dlopen(runtimes[i], RTLD_NOW | RTLD_LOCAL | flags);
        *name = runtimes[i];
        if (library != NULL)
            return library;
    }
    return NULL;
}

/* Caller holds the lock. The library stays open. */
static sync_fn *find_sync(void)
{
    const char *name;
    void *library = open_runtime(RTLD_NOLOAD, &name);
    if (library == NULL && !marey__cuda_is_loaded()) {
        snprintf(cuda.state, sizeof cuda.state, "this process uses no CUDA: nothing to wait for");
        return NULL;
    }
    if (library == NULL)
        library = open_runtime(0, &name);
    sync_fn *sync = NULL;
    if (library != NULL) {
        cuda.error_string = (error_string_fn *)dlsym(library, "cudaGetErrorString");
        sync = (sync_fn *)dlsym(library, "cudaDeviceSynchronize");
    }
    if (sync != NULL)
        snprintf(cuda.state, sizeof cuda.state, "waits by cudaDeviceSynchronize of %s", name);
    else
        snprintf(cuda.state, sizeof cuda.state,
                 "CUDA's driver is loaded, but no runtime (libcudart.so.13, .12 or .11.0) can be "
                 "opened: put its directory into LD_LIBRARY_PATH");
    return sync;
}

/* NULL while there is none. */
static sync_fn *get_sync(void)
{
    sync_fn *sync = __atomic_load_n(&cuda.sync, __ATOMIC_ACQUIRE);
    if (MAREY_LIKELY(sync != NULL))
        return sync;
    const unsigned long long n_loads = marey__cuda_load_count();
    if (n_loads == __atomic_load_n(&cuda.n_loads_before, __ATOMIC_RELAXED))
        return NULL;
    MAREY__HOLD(&cuda.lock);
    sync = cuda.sync != NULL ? cuda.sync : find_sync();
    __atomic_store_n(&cuda.sync, sync, __ATOMIC_RELEASE);
    __atomic_store_n(&cuda.n_loads_before, marey__cuda_load_count(), __ATOMIC_RELAXED);
    return sync;
}

static marey_cuda_sync_hook *sync_hook; /* release; loaded with acquire */

void marey_cuda_set_sync_hook(marey_cuda_sync_hook *hook)
{
    __atomic_store_n(&sync_hook, hook, __ATOMIC_RELEASE);
}

int marey_cuda_sync(void)
{
    marey_cuda_sync_hook *const hook = __atomic_load_n(&sync_hook, __ATOMIC_ACQUIRE);
    const int answer = hook != NULL ? hook() : -1;
    if (answer >= 0)
        return answer;
    sync_fn *const sync = get_sync();
    if (sync == NULL) {
        marey__say("cannot wait for the GPU: %s", marey_cuda_state());
        return 0;
    }
    const int error = sync();
    if (MAREY_LIKELY(error == 0))
        return 1;
    marey__say("could not wait for the GPU: %s (CUDA error %d); times of GPU work may be short",
               cuda.error_string != NULL ? cuda.error_string(error) : "cudaDeviceSynchronize failed",
               error);
    return 0;
}

const char *marey_cuda_state(void)
{
    static __thread char state[sizeof cuda.state];
    get_sync();
    MAREY__HOLD(&cuda.lock);
    snprintf(state, sizeof state, "%s", cuda.state);
    return state;
}

void marey__cuda_after_fork(void)
{
    pthread_mutex_init(&cuda.lock, NULL);
    marey__driver_after_fork();
    marey__gpu_after_fork();
    marey__gpu_copy_after_fork();
}
