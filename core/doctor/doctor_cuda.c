/*
 * CUDA as far as it is visible without creating a context: driver, runtime, NVML, CUPTI, nsys; the devices a program
 * sees, and whether their work can be traced. Each library is queried in its own child process, all at once, because a
 * driver that does not match its kernel module may crash or hang.
 */
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include "doctor/internal.h"

enum { DEVICES = MAREY__N_LIBRARIES, TRIAL, N_PROBES };

static const uint64_t start_ns = UINT64_C(3000000000);

/* ---- libraries ---- */

/* Queries an open library; writes "key=value" lines to `fd`. */
typedef void library_query(const struct marey__doctor *doctor, void *handle, int fd);

struct look {
    const struct marey__doctor *doctor;
    enum marey__library library;
    library_query *ask;
};

enum { N_SONAMES = 3, N_FOLDERS = 4 };

/* The possible names of each, and where to search beyond the loader's path. */
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

static void *open_in(const char *folder, const char *below, const char *soname)
{
    char path[PATH_MAX];
    if (folder == NULL || folder[0] == '\0' ||
        snprintf(path, sizeof path, "%s/%s/%s", folder, below, soname) >= (int)sizeof path)
        return NULL;
    return access(path, R_OK) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* Opens with the loader, then below CUDA's prefix, then from NVIDIA's Python packages. */
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

/* The work of a probe, on a struct look: "path", the answers, "asked=1"; or "error" if it cannot be opened. */
static int look_at_library(void *ctx, int fd)
{
    const struct look *look = ctx;
    struct link_map *map = NULL;
    void *handle = marey__library_open(look->doctor, look->library);
    if (handle == NULL) {
        const char *why = dlerror();
        /* Report the reason only for an existing library that cannot be opened. */
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

/* ---- in the child ---- */

/* `function` returns a version like 13000, without a context or cuInit. */
static void ask_cuda_version(void *handle, const char *function, int fd)
{
    int (*version)(int *) = NULL;
    int number = 0;
    *(void **)&version = dlsym(handle, function);
    if (version != NULL && version(&number) == 0 && number > 0)
        dprintf(fd, "value=CUDA %d.%d\n", number / 1000, number % 1000 / 10);
    else
        dprintf(fd, "limited=it does not report its version\n");
}

static void ask_driver(const struct marey__doctor *doctor, void *handle, int fd)
{
    (void)doctor;
    ask_cuda_version(handle, "cuDriverGetVersion", fd);
}

static void ask_runtime(const struct marey__doctor *doctor, void *handle, int fd)
{
    (void)doctor;
    ask_cuda_version(handle, "cudaRuntimeGetVersion", fd);
}

/* Without the prefix GPU- or MIG-, which CUDA does not report. */
static void write_uuid(int device, const unsigned char *b, int fd)
{
    dprintf(fd, "device%d=%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x\n",
            device, b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
            b[13], b[14], b[15]);
}

/* In CUDA's order, after CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER. */
static void ask_devices(const struct marey__doctor *doctor, void *handle, int fd)
{
    int (*init)(unsigned) = NULL, (*count)(int *) = NULL, (*get)(int *, int) = NULL,
        (*uuid)(unsigned char *, int) = NULL;
    int n = 0;
    (void)doctor;
    *(void **)&init = dlsym(handle, "cuInit");
    *(void **)&count = dlsym(handle, "cuDeviceGetCount");
    *(void **)&get = dlsym(handle, "cuDeviceGet");
    *(void **)&uuid = dlsym(handle, "cuDeviceGetUuid_v2"); /* this version distinguishes MIG slices */
    if (uuid == NULL)
        *(void **)&uuid = dlsym(handle, "cuDeviceGetUuid");
    if (init == NULL || count == NULL || get == NULL || uuid == NULL)
        return;
    int error = init(0);
    if (error == 0)
        error = count(&n);
    dprintf(fd, "init=%d\n", error);
    for (int i = 0; error == 0 && i < n && i < MAREY__DOCTOR_MAX_GPUS; i++) {
        unsigned char bytes[16];
        int device;
        if (get(&device, i) == 0 && uuid(bytes, device) == 0)
            write_uuid(i, bytes, fd);
    }
}

/* ---- in the parent: libraries ---- */

static const struct library {
    const char *thing;
    library_query *ask;
    const char *advice;
} libraries[MAREY__N_LIBRARIES] = {
    [MAREY__LIBRARY_DRIVER] = {"driver", ask_driver,
                               "install NVIDIA's driver; in a container: docker run --gpus all"},
    [MAREY__LIBRARY_NVML] = {"NVML", marey__nvml_ask,
                             "it comes with NVIDIA's driver; in a container: docker run --gpus "
                             "all, with the capability 'utility'"},
    [MAREY__LIBRARY_RUNTIME] =
        {"runtime", ask_runtime,
         "install the CUDA toolkit, or a torch with CUDA; marey waits for the GPU through it"},
    [MAREY__LIBRARY_CUPTI] = {"CUPTI", marey__cupti_ask_version,
                              "install it (cuda-cupti, or pip install nvidia-cuda-cupti) and put "
                              "its folder on LD_LIBRARY_PATH"},
};

static void report_library(struct marey__doctor *doctor, enum marey__library which,
                           const struct marey__probe *probe)
{
    const struct library *library = &libraries[which];
    char path[PATH_MAX] = "", value[256], asked[8], trouble[128], advice[256];
    MAREY__PROBE_FIELD(probe, "path", path);
    if (!MAREY__PROBE_FIELD(probe, "advice", advice))
        snprintf(advice, sizeof advice, "%s", library->advice);
    const char *reason = marey__probe_trouble(probe, trouble, sizeof trouble);
    if (MAREY__PROBE_FIELD(probe, "limited", value))
        marey__doctor_limited(doctor, library->thing, advice, "%s: %s", path, value);
    else if (MAREY__PROBE_FIELD(probe, "asked", asked) && MAREY__PROBE_FIELD(probe, "value", value))
        marey__doctor_ok(doctor, library->thing, "%s, %s", value, path);
    else if (reason != NULL)
        marey__doctor_limited(
            doctor, library->thing,
            "reinstall it so that it fits the driver: what marey reads from it stays off", "%s%s%s",
            path[0] != '\0' ? path : "it was opened", ": ", reason);
    else if (MAREY__PROBE_FIELD(probe, "error", value))
        marey__doctor_limited(doctor, library->thing, advice, "%s", value);
    else
        marey__doctor_missing(doctor, library->thing, advice, "%s not found",
                              places[which].sonames[0]);
}

/* ---- in the parent: GPUs ---- */

static void report_gpus(struct marey__doctor *doctor)
{
    int n = 0;
    for (int i = 0; doctor->gpus != NULL && i < MAREY__DOCTOR_MAX_GPUS; i++) {
        const struct marey__doctor_gpu *gpu = &doctor->gpus[i];
        char thing[24];
        if (!gpu->is_there)
            continue;
        n++;
        snprintf(thing, sizeof thing, "gpu %d", i);
        const bool has_energy = gpu->energy.is_readable;
        marey__doctor_limited(
            doctor, thing,
            has_energy ? NULL : "nothing to do: GPUs before Volta, and shares of one, count no energy",
            "%s, %s", gpu->name, has_energy ? "energy counter readable" : "no energy counter");
    }
    if (n == 0)
        marey__doctor_off(doctor, "gpus", "none seen through NVML");
}

/* The NVML index of the GPU with this UUID; -1 if there is none, as for a MIG slice. */
static int nvml_index(const struct marey__doctor *doctor, const char *uuid)
{
    for (int i = 0; doctor->gpus != NULL && i < MAREY__DOCTOR_MAX_GPUS; i++)
        if (strncmp(doctor->gpus[i].uuid, "GPU-", 4) == 0 &&
            strcmp(doctor->gpus[i].uuid + 4, uuid) == 0)
            return i;
    return -1;
}

const struct marey__known_error *marey__known_error_find(const struct marey__known_error *known,
                                                         size_t n, uint64_t error)
{
    for (size_t i = 0; i < n; i++)
        if (known[i].error == error)
            return &known[i];
    return NULL;
}

static const struct marey__known_error cuda_errors[] = {
    {3, "a child of a process that uses CUDA cannot use it too",
     "run the command 'marey doctor' by itself"},
    {34, "this is a stub library of the toolkit", "put the driver's own libcuda.so.1 first"},
    {46, "the GPU is in exclusive use by another process", "wait, or ask for another GPU"},
    {100, "it sees no device",
     "unset CUDA_VISIBLE_DEVICES, or name a device in it; in a container: docker run --gpus all"},
    {101, "it sees no such device", "correct CUDA_VISIBLE_DEVICES"},
    {304, "the operating system refused", "look at the rights of /dev/nvidia*, and for Xid in dmesg"},
    {802, "the machine's NVLink switches are not ready",
     "start nvidia-fabricmanager, of the driver's version"},
    {803, "driver and kernel module have different versions", "restart the machine"},
    {804, "this compatibility library does not fit the driver",
     "take cuda-compat off LD_LIBRARY_PATH, or install a newer driver"},
    {999, "it failed without a reason",
     "look for Xid in dmesg; after a sleep of the machine: reload nvidia_uvm"},
};

static void report_no_devices(struct marey__doctor *doctor, uint64_t error)
{
    static const struct marey__known_error unknown = {
        0, "unknown error", "look the number up among CUDA's errors (CUresult)"};
    const struct marey__known_error *known = MAREY__KNOWN_ERROR(cuda_errors, error);
    known = known != NULL ? known : &unknown;
    marey__doctor_missing(doctor, "CUDA devices", known->advice,
                          "CUDA does not start: %s (error %d)", known->what, (int)error);
}

static void report_visible(struct marey__doctor *doctor)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES"), *order = getenv("CUDA_DEVICE_ORDER");
    if (list == NULL)
        marey__doctor_off(doctor, "CUDA_VISIBLE_DEVICES", "not set: programs see all devices");
    else
        marey__doctor_ok(doctor, "CUDA_VISIBLE_DEVICES", "'%s'%s%s", list,
                         order != NULL ? ", CUDA_DEVICE_ORDER " : "", order != NULL ? order : "");
}

/* Reports a program's devices 0, 1, ... as seen by CUDA. */
static void report_devices(struct marey__doctor *doctor, const struct marey__probe *probe)
{
    char value[96], key[16], thing[24], trouble[128];
    uint64_t error = 0;
    int n = 0;
    report_visible(doctor);
    const char *reason = marey__probe_trouble(probe, trouble, sizeof trouble);
    if (marey__probe_number(probe, "init", &error) && error != 0) {
        report_no_devices(doctor, error);
        return;
    }
    for (int i = 0; i < MAREY__DOCTOR_MAX_GPUS; i++) {
        snprintf(key, sizeof key, "device%d", i);
        if (!MAREY__PROBE_FIELD(probe, key, value))
            continue;
        const int index = nvml_index(doctor, value);
        snprintf(thing, sizeof thing, "CUDA device %d", i);
        if (index >= 0)
            marey__doctor_ok(doctor, thing, "GPU-%s, NVML's gpu %d", value, index);
        else
            marey__doctor_ok(doctor, thing,
                             "%s, which is none of NVML's whole GPUs: a share of one (MIG)", value);
        n++;
    }
    if (n == 0)
        marey__doctor_add(doctor, "CUDA devices",
                          reason != NULL ? MAREY__STATE_LIMITED : MAREY__STATE_OFF,
                          reason != NULL ? "try again with --wait 10" : NULL, "%s",
                          reason != NULL ? reason : "unknown: no CUDA driver");
}

/* ---- in the parent: other tracing tools ---- */

static void report_nsys(struct marey__doctor *doctor)
{
    char path[PATH_MAX];
    if (getenv("NSYS_PROFILING_SESSION_ID") != NULL)
        marey__doctor_ok(doctor, "nsys",
                         "this process runs under it: it traces the GPU, and marey then does not");
    else if (marey__find_program("nsys", path, sizeof path))
        marey__doctor_ok(doctor, "nsys", "%s", path);
    else
        marey__doctor_missing(
            doctor, "nsys",
            "install Nsight Systems if you want ranges on its timeline, and put it on PATH",
            "not on PATH");
}

static void report_injection(struct marey__doctor *doctor)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    if (path == NULL || path[0] == '\0')
        marey__doctor_off(doctor, "CUDA_INJECTION64_PATH",
                          "not set; 'marey run --gpu' sets it for its program");
    else if (strncmp(marey__base_name(path), "libmarey", 8) == 0)
        marey__doctor_ok(doctor, "CUDA_INJECTION64_PATH", "%s, marey's own", path);
    else
        marey__doctor_limited(doctor, "CUDA_INJECTION64_PATH",
                              "unset it if that tool is not wanted: only one can trace a program",
                              "taken by another tool: %s%s", path,
                              access(path, R_OK) == 0 ? "" : ", which cannot be read");
}

/* Kineto keeps CUPTI after its first profile unless this variable is set. */
static void report_teardown(struct marey__doctor *doctor)
{
    const char *value = getenv("TEARDOWN_CUPTI");
    if (value != NULL && value[0] != '\0' && strcmp(value, "0") != 0)
        marey__doctor_ok(doctor, "TEARDOWN_CUPTI",
                         "set: torch.profiler gives CUPTI back when it stops");
    else
        marey__doctor_off(
            doctor, "TEARDOWN_CUPTI",
            "not set: after torch.profiler has run, marey cannot trace the GPU in that process");
}

void marey__doctor_cuda(struct marey__doctor *doctor)
{
    /* Starting CUDA wakes GPUs, which takes seconds on some machines; libraries that answer at once are not delayed. */
    if (access("/dev/nvidiactl", F_OK) == 0)
        doctor->deadline_ns += start_ns;
    struct look looks[MAREY__N_LIBRARIES + 1];
    struct marey__probe *probes MAREY__FREED = marey__calloc(N_PROBES, sizeof *probes);
    if (probes == NULL) {
        marey__doctor_missing(doctor, "driver", NULL, "out of memory");
        return;
    }
    for (unsigned i = 0; i < MAREY__N_LIBRARIES; i++)
        looks[i] = (struct look){doctor, (enum marey__library)i, libraries[i].ask};
    looks[DEVICES] = (struct look){doctor, MAREY__LIBRARY_DRIVER, ask_devices};
    for (unsigned i = 0; i < MAREY__COUNT_OF(looks); i++)
        marey__probe_start(&probes[i], look_at_library, &looks[i]);
    marey__probe_start(&probes[TRIAL], marey__cupti_try, doctor);
    marey__probe_wait(probes, N_PROBES, doctor->deadline_ns);
    for (unsigned i = 0; i < MAREY__N_LIBRARIES; i++)
        report_library(doctor, (enum marey__library)i, &probes[i]);
    report_gpus(doctor);
    report_devices(doctor, &probes[DEVICES]);
    marey__cupti_report(doctor, &probes[TRIAL]);
    report_injection(doctor);
    report_teardown(doctor);
    report_nsys(doctor);
}
