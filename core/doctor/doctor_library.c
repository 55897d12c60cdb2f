/*
 * Libraries of CUDA: where each may be, opened and queried in its own child process, since a driver that does not fit
 * its kernel module may crash or hang.
 */
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include "doctor/internal.h"

enum { N_SONAMES = 3, N_FOLDERS = 4 };

/* The names that each may have, and where else than on the loader's path it may lie. */
static const struct places {
    const char *sonames[N_SONAMES]; /* NULL after the last */
    const char *folders[N_FOLDERS]; /* below CUDA's prefix, below site-packages */
} places[MAREY__N_LIBRARIES] = {
    [MAREY__LIBRARY_DRIVER] = {{"libcuda.so.1"}, {NULL}},
    [MAREY__LIBRARY_NVML] = {{"libnvidia-ml.so.1"}, {NULL}},
    [MAREY__LIBRARY_RUNTIME] = {{"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"},
                                {"lib64", "nvidia/cu13/lib", "nvidia/cuda_runtime/lib"}},
    [MAREY__LIBRARY_CUPTI] = {{"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"},
                              {"extras/CUPTI/lib64", "lib64", "nvidia/cu13/lib",
                               "nvidia/cuda_cupti/lib"}},
};

const char *marey__library_name(enum marey__library library)
{
    return places[library].sonames[0];
}

static void *open_in(const char *folder, const char *below, const char *soname)
{
    char path[PATH_MAX];
    if (folder == NULL || folder[0] == '\0' ||
        snprintf(path, sizeof path, "%s/%s/%s", folder, below, soname) >= (int)sizeof path)
        return NULL;
    return access(path, R_OK) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* By the loader, then below CUDA's prefix, then among the Python packages of NVIDIA's. */
static void *open_name(const struct marey__doctor *doctor, const struct places *place,
                       const char *soname)
{
    static const char *const prefixes[] = {"CUDA_HOME", "CUDA_PATH"};
    void *handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    for (size_t f = 0; handle == NULL && f < N_FOLDERS; f++) {
        const char *below = place->folders[f];
        if (below == NULL)
            break;
        for (size_t i = 0; handle == NULL && i < MAREY__COUNT_OF(prefixes); i++)
            handle = open_in(getenv(prefixes[i]), below, soname);
        if (handle == NULL)
            handle = open_in("/usr/local/cuda", below, soname);
        for (size_t p = 0; p < doctor->n_pythons; p++)
            for (size_t s = 0; handle == NULL && s < MAREY__MAX_SITES; s++)
                handle = open_in(doctor->pythons[p].sites[s], below, soname);
    }
    return handle;
}

void *marey__library_open(const struct marey__doctor *doctor, enum marey__library library)
{
    void *handle = NULL;
    const char *chosen = library == MAREY__LIBRARY_CUPTI ? getenv("MAREY_CUPTI_LIBRARY") : NULL;
    if (chosen != NULL && chosen[0] != '\0') /* as GPU tracing does */
        return dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; handle == NULL && i < N_SONAMES && places[library].sonames[i] != NULL; i++)
        handle = open_name(doctor, &places[library], places[library].sonames[i]);
    return handle;
}

int marey__library_look(void *ctx, int fd)
{
    const struct marey__doctor_look *look = ctx;
    struct link_map *map = NULL;
    void *handle = marey__library_open(look->doctor, look->library);
    if (handle == NULL) {
        const char *why = dlerror();
        /* A library that is there and cannot be opened is worth its sentence; one that is not there is not. */
        if (why != NULL && strstr(why, "No such file") == NULL)
            dprintf(fd, "error=%s\n", why);
        return 0;
    }
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL)
        dprintf(fd, "path=%s\n", map->l_name);
    look->ask(look->doctor, handle, fd);
    dprintf(fd, "asked=1\n");
    return 0;
}
