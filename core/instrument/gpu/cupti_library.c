/*
 * Finding CUPTI. Two versions in a process conflict, so use one that is already loaded (torch brings its own), then one
 * beside the loaded CUDA libraries, then the usual places.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "instrument/gpu/internal.h"

static struct {
    pthread_mutex_t lock;
    void *library;
    struct marey__cupti cupti;
    bool is_whole;
} found = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const names[] = {"libcupti.so.13", "libcupti.so.12"};

/* `folder` ends with a slash; "": the loader's search path. */
static void *open_in(const char *folder, int flags)
{
    char path[1024];
    void *library = NULL;
    for (size_t i = 0; i < MAREY__COUNT_OF(names) && library == NULL; i++)
        if (snprintf(path, sizeof path, "%s%s", folder, names[i]) < (int)sizeof path)
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    return library;
}

/* Searches beside a loaded CUDA or torch library: Python packages put each component into a separate folder. */
static int look_beside(struct dl_phdr_info *info, size_t size, void *out)
{
    static const char *const marks[] = {"libcudart.so", "libtorch_cuda.so", "libc10_cuda.so",
                                        "libcublas.so"};
    static const char *const folders[] = {"", "/../../cuda_cupti/lib", "/../../nvidia/cu13/lib",
                                          "/../../nvidia/cuda_cupti/lib", "/../extras/CUPTI/lib64"};
    (void)size;
    const char *slash = strrchr(info->dlpi_name, '/');
    bool is_marked = false;
    for (size_t i = 0; i < MAREY__COUNT_OF(marks) && slash != NULL; i++)
        is_marked = is_marked || strncmp(slash + 1, marks[i], strlen(marks[i])) == 0;
    char folder[1024];
    for (size_t i = 0; i < MAREY__COUNT_OF(folders) && is_marked; i++) {
        snprintf(folder, sizeof folder, "%.*s%s/", (int)(slash - info->dlpi_name), info->dlpi_name,
                 folders[i]);
        *(void **)out = open_in(folder, 0);
        if (*(void **)out != NULL)
            return 1;
    }
    return 0;
}

static void *open_in_toolkit(void)
{
    static const char *const below[] = {"extras/CUPTI/lib64", "lib64", "targets/x86_64-linux/lib",
                                        "targets/sbsa-linux/lib"};
    const char *const roots[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
    char folder[1024];
    for (size_t i = 0; i < MAREY__COUNT_OF(roots); i++)
        for (size_t k = 0; k < MAREY__COUNT_OF(below) && roots[i] != NULL; k++) {
            snprintf(folder, sizeof folder, "%s/%s/", roots[i], below[k]);
            void *library = open_in(folder, 0);
            if (library != NULL)
                return library;
        }
    return NULL;
}

static void *open_library(void)
{
    const char *chosen = getenv("MAREY_CUPTI_LIBRARY");
    if (chosen != NULL && chosen[0] != '\0')
        return dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
    void *library = open_in("", RTLD_NOLOAD);
    if (library == NULL)
        dl_iterate_phdr(look_beside, &library);
    if (library == NULL)
        library = open_in("", 0);
    return library != NULL ? library : open_in_toolkit();
}

/* Caller holds the lock. */
static marey_status resolve(struct marey__cupti *cupti, void *library)
{
    const char *missing = NULL;
#define FIND(field, symbol, result, arguments)                                                     \
    *(void **)&cupti->field = dlsym(library, symbol);                                              \
    if (cupti->field == NULL && missing == NULL)                                                   \
        missing = symbol;
    MAREY__CUPTI_FUNCTIONS(FIND)
#undef FIND
    *(void **)&cupti->subscribe_named = dlsym(library, "cuptiSubscribe_v2");
    Dl_info info;
    if (cupti->get_version != NULL && dladdr((void *)cupti->get_version, &info) != 0)
        snprintf(cupti->path, sizeof cupti->path, "%s", info.dli_fname);
    if (cupti->get_version == NULL || cupti->get_version(&cupti->version) != MAREY__CUPTI_SUCCESS)
        cupti->version = 0;
    if (missing == NULL && cupti->version >= MAREY__CUPTI_VERSION_MIN)
        return MAREY_OK;
    return marey__fail(
        MAREY_EUNAVAILABLE,
        "GPU work is not recorded: CUPTI (%s, API version %u) is older than CUDA 12.0"
        "%s%s; install a newer CUDA, or pip install nvidia-cuda-cupti",
        cupti->path, cupti->version, missing != NULL ? " or lacks " : "",
        missing != NULL ? missing : "");
}

const struct marey__cupti *marey__cupti_open(void)
{
    MAREY__HOLD(&found.lock);
    if (found.library == NULL && (found.library = open_library()) == NULL)
        marey__fail(
            MAREY_EUNAVAILABLE,
            "GPU work is not recorded: CUPTI (libcupti.so.13 or .12) was not found; install "
            "it with CUDA or by pip install nvidia-cuda-cupti, or name its file in "
            "MAREY_CUPTI_LIBRARY");
    else if (!found.is_whole)
        found.is_whole = resolve(&found.cupti, found.library) == MAREY_OK;
    return found.is_whole ? &found.cupti : NULL;
}
