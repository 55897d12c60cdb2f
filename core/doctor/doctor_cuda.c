/*
 * CUDA as far as it can be seen without making a context: driver, runtime, NVML, CUPTI, nsys. Each library is opened and
 * asked in a child process of its own, since a driver that does not fit its kernel module may crash or hang. The few
 * types of NVIDIA's that are needed are declared here.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor_internal.h"

enum { MAX_GPUS = 16, N_SONAMES = 4 };

/* One library: the names it may have, and where else than on the loader's path it may lie. */
struct library {
    const char *thing;
    const char *sonames[N_SONAMES]; /* NULL behind the last */
    const char *folders[4];         /* below CUDA's prefix, below site-packages */
    void (*ask)(void *handle, int fd);
    const char *advice;
    const struct kymo__doctor *doctor;
};

/* ---- in the child ---- */

/* `function` tells a version like 13000, without a context or even cuInit. */
static void ask_cuda_version(void *handle, const char *function, int fd)
{
    int (*version)(int *) = NULL;
    int number = 0;
    *(void **)&version = dlsym(handle, function);
    if (version != NULL && version(&number) == 0 && number > 0)
        dprintf(fd, "value=CUDA %d.%d\n", number / 1000, number % 1000 / 10);
    else
        dprintf(fd, "limited=it does not tell its version\n");
}

static void ask_driver(void *handle, int fd)
{
    ask_cuda_version(handle, "cuDriverGetVersion", fd);
}

static void ask_runtime(void *handle, int fd)
{
    ask_cuda_version(handle, "cudaRuntimeGetVersion", fd);
}

static void ask_cupti(void *handle, int fd)
{
    int (*version)(uint32_t *) = NULL;
    uint32_t number = 0;
    *(void **)&version = dlsym(handle, "cuptiGetVersion");
    if (version != NULL && version(&number) == 0 && number > 0)
        dprintf(fd, "value=API version %u\n", number);
    else
        dprintf(fd, "limited=it does not tell its version\n");
}

typedef struct nvmlDevice_st *nvml_device;

struct nvml {
    int (*init)(void);
    const char *(*error)(int);
    int (*driver)(char *, unsigned);
    int (*count)(unsigned *);
    int (*by_index)(unsigned, nvml_device *);
    int (*name)(nvml_device, char *, unsigned);
    int (*energy)(nvml_device, unsigned long long *);
};

static bool load_nvml(void *handle, struct nvml *nvml)
{
    *(void **)&nvml->init = dlsym(handle, "nvmlInit_v2");
    *(void **)&nvml->error = dlsym(handle, "nvmlErrorString");
    *(void **)&nvml->driver = dlsym(handle, "nvmlSystemGetDriverVersion");
    *(void **)&nvml->count = dlsym(handle, "nvmlDeviceGetCount_v2");
    *(void **)&nvml->by_index = dlsym(handle, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&nvml->name = dlsym(handle, "nvmlDeviceGetName");
    *(void **)&nvml->energy = dlsym(handle, "nvmlDeviceGetTotalEnergyConsumption");
    return nvml->init != NULL && nvml->driver != NULL && nvml->count != NULL &&
           nvml->by_index != NULL && nvml->name != NULL;
}

static void tell_device(const struct nvml *nvml, unsigned i, int fd)
{
    nvml_device device;
    char name[96] = "without a name";
    unsigned long long millijoule;
    if (nvml->by_index(i, &device) != 0)
        return;
    nvml->name(device, name, sizeof name);
    name[sizeof name - 1] = '\0';
    const bool has_energy = nvml->energy != NULL && nvml->energy(device, &millijoule) == 0;
    dprintf(fd, "gpu%u=%s\nenergy%u=%d\n", i, name, i, has_energy);
}

static void ask_nvml(void *handle, int fd)
{
    struct nvml nvml = {0};
    char driver[96] = "";
    unsigned n = 0;
    if (!load_nvml(handle, &nvml)) {
        dprintf(fd, "limited=it lacks functions that every NVML has\n");
        return;
    }
    const int status = nvml.init();
    if (status != 0) {
        const char *words = nvml.error != NULL ? nvml.error(status) : NULL;
        dprintf(fd, "limited=it says: %.200s\n", words != NULL ? words : "an error without a text");
        return;
    }
    nvml.driver(driver, sizeof driver);
    driver[sizeof driver - 1] = '\0';
    nvml.count(&n);
    dprintf(fd, "value=driver %s\n", driver);
    for (unsigned i = 0; i < n && i < MAX_GPUS; i++)
        tell_device(&nvml, i, fd);
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
static void *open_library(const struct library *library, const char *soname)
{
    static const char *const prefixes[] = {"CUDA_HOME", "CUDA_PATH"};
    void *handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    for (size_t f = 0; handle == NULL && f < KYMO__COUNT_OF(library->folders); f++) {
        const char *below = library->folders[f];
        if (below == NULL)
            break;
        for (size_t i = 0; handle == NULL && i < KYMO__COUNT_OF(prefixes); i++)
            handle = open_in(getenv(prefixes[i]), below, soname);
        if (handle == NULL)
            handle = open_in("/usr/local/cuda", below, soname);
        for (size_t p = 0; p < library->doctor->n_pythons; p++)
            for (size_t s = 0; handle == NULL && s < KYMO__MAX_SITES; s++)
                handle = open_in(library->doctor->pythons[p].sites[s], below, soname);
    }
    return handle;
}

static int look_at(void *ctx, int fd)
{
    const struct library *library = ctx;
    for (size_t i = 0; i < N_SONAMES && library->sonames[i] != NULL; i++) {
        struct link_map *map = NULL;
        void *handle = open_library(library, library->sonames[i]);
        if (handle == NULL)
            continue;
        if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL)
            dprintf(fd, "path=%s\n", map->l_name);
        library->ask(handle, fd);
        dprintf(fd, "asked=1\n");
        return 0;
    }
    const char *why = dlerror();
    /* A library that is there and cannot be opened is worth its sentence; one that is not there is not. */
    if (why != NULL && strstr(why, "No such file") == NULL)
        dprintf(fd, "error=%s\n", why);
    return 0;
}

/* ---- in the parent ---- */

static void tell_library(struct kymo__doctor *doctor, const struct library *library,
                         const struct kymo__probe *probe)
{
    char path[PATH_MAX] = "", value[256], asked[8], trouble[128];
    const char *text = probe->text;
    kymo__parse_field(text, probe->len, "path", path, sizeof path);
    const char *reason = kymo__probe_trouble(probe, trouble, sizeof trouble);
    if (kymo__parse_field(text, probe->len, "limited", value, sizeof value))
        kymo__doctor_tell(doctor, library->thing, KYMO__STATE_LIMITED, library->advice, "%s: %s",
                          path, value);
    else if (kymo__parse_field(text, probe->len, "asked", asked, sizeof asked) &&
             kymo__parse_field(text, probe->len, "value", value, sizeof value))
        kymo__doctor_tell(doctor, library->thing, KYMO__STATE_OK, NULL, "%s, %s", value, path);
    else if (reason != NULL)
        kymo__doctor_tell(
            doctor, library->thing, KYMO__STATE_LIMITED,
            "reinstall it so that it fits the driver: what kymo reads from it stays off", "%s%s%s",
            path[0] != '\0' ? path : "it was opened", ": ", reason);
    else if (kymo__parse_field(text, probe->len, "error", value, sizeof value))
        kymo__doctor_tell(doctor, library->thing, KYMO__STATE_LIMITED, library->advice, "%s", value);
    else
        kymo__doctor_tell(doctor, library->thing, KYMO__STATE_MISSING, library->advice,
                          "%s not found", library->sonames[0]);
}

static void tell_gpus(struct kymo__doctor *doctor, const struct kymo__probe *nvml)
{
    int n = 0;
    for (int i = 0; i < MAX_GPUS; i++) {
        char key[16], thing[24], name[96], energy[8] = "0";
        snprintf(key, sizeof key, "gpu%d", i);
        if (!kymo__parse_field(nvml->text, nvml->len, key, name, sizeof name))
            continue;
        n++;
        snprintf(thing, sizeof thing, "gpu %d", i);
        snprintf(key, sizeof key, "energy%d", i);
        kymo__parse_field(nvml->text, nvml->len, key, energy, sizeof energy);
        const bool has_energy = strcmp(energy, "1") == 0;
        kymo__doctor_tell(
            doctor, thing, has_energy ? KYMO__STATE_OK : KYMO__STATE_LIMITED,
            has_energy ? NULL : "nothing to do: GPUs before Volta, and shares of one, count no energy",
            "%s, %s", name, has_energy ? "energy counter readable" : "no energy counter");
    }
    if (n == 0)
        kymo__doctor_tell(doctor, "gpus", KYMO__STATE_OFF, NULL, "none seen through NVML");
}

static void tell_nsys(struct kymo__doctor *doctor)
{
    char path[PATH_MAX];
    if (kymo__find_program("nsys", path, sizeof path))
        kymo__doctor_tell(doctor, "nsys", KYMO__STATE_OK, NULL, "%s", path);
    else
        kymo__doctor_tell(
            doctor, "nsys", KYMO__STATE_MISSING,
            "install Nsight Systems if you want ranges on its timeline, and put it on PATH",
            "not on PATH");
}

void kymo__doctor_cuda(struct kymo__doctor *doctor)
{
    const struct library libraries[] = {
        {"driver",
         {"libcuda.so.1"},
         {NULL},
         ask_driver,
         "install NVIDIA's driver; in a container: docker run --gpus all",
         doctor},
        {"NVML",
         {"libnvidia-ml.so.1"},
         {NULL},
         ask_nvml,
         "it comes with NVIDIA's driver; in a container: docker run --gpus all, with the "
         "capability 'utility'",
         doctor},
        {"runtime",
         {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"},
         {"lib64", "nvidia/cu13/lib", "nvidia/cuda_runtime/lib"},
         ask_runtime,
         "install the CUDA toolkit, or a torch with CUDA; kymo waits for the GPU through it",
         doctor},
        {"CUPTI",
         {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"},
         {"extras/CUPTI/lib64", "lib64", "nvidia/cu13/lib", "nvidia/cuda_cupti/lib"},
         ask_cupti,
         "install it (cuda-cupti, or pip install nvidia-cuda-cupti) and put its folder on "
         "LD_LIBRARY_PATH",
         doctor},
    };
    enum { N = KYMO__COUNT_OF(libraries) };
    struct kymo__probe *probes = kymo__calloc(N, sizeof *probes);
    if (probes == NULL) {
        kymo__doctor_tell(doctor, "driver", KYMO__STATE_MISSING, NULL, "no memory to look for it");
        return;
    }
    for (size_t i = 0; i < N; i++)
        kymo__probe_start(&probes[i], look_at, (void *)(uintptr_t)&libraries[i]);
    kymo__probe_wait(probes, N, doctor->deadline_ns);
    for (size_t i = 0; i < N; i++)
        tell_library(doctor, &libraries[i], &probes[i]);
    tell_gpus(doctor, &probes[1]);
    tell_nsys(doctor);
    kymo__free(probes);
}
