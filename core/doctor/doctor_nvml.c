/*
 * NVML, in the child process: what each GPU counts, and how often. All GPUs are read at once, by a thread for each, since a
 * read of the energy counter takes milliseconds. The few types of NVIDIA's that are needed are declared here.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "doctor/internal.h"
#include "record/internal.h"

enum {
    NOT_SUPPORTED = 3,
    FIELD_POWER_AVERAGE = 185,
    FIELD_POWER_INSTANT = 186,
    CLOCK_SM = 1,
    CLOCK_MEMORY = 2,
    SAMPLES_UTILIZATION = 1,
    GPM_SUPPORT_VERSION = 1,
    MAX_SAMPLES = 256,
    ENOUGH = 9, /* changes: more would add little */
};

static const uint64_t window_ns = UINT64_C(400000000), most_ns = UINT64_C(2000000000),
                      reserve_ns = UINT64_C(150000000), least_ns = UINT64_C(20000000);

typedef struct nvmlDevice_st *nvml_device;

union nvml_value {
    double f64;
    unsigned u32;
    unsigned long long u64;
};

struct nvml_field {
    unsigned id, scope;
    long long timestamp_us, latency_us;
    int type, result;
    union nvml_value value;
};

struct nvml_sample {
    unsigned long long timestamp_us;
    union nvml_value value;
};

struct nvml_gpm_support {
    unsigned version, is_supported;
};

/* Those that every NVML has, then those that may be missing. */
#define FUNCTIONS(NEEDED, OPTIONAL)                                                                \
    NEEDED(init, "nvmlInit_v2", int, (void))                                                       \
    NEEDED(driver, "nvmlSystemGetDriverVersion", int, (char *, unsigned))                          \
    NEEDED(count, "nvmlDeviceGetCount_v2", int, (unsigned *))                                      \
    NEEDED(by_index, "nvmlDeviceGetHandleByIndex_v2", int, (unsigned, nvml_device *))              \
    NEEDED(name, "nvmlDeviceGetName", int, (nvml_device, char *, unsigned))                        \
    OPTIONAL(error, "nvmlErrorString", const char *, (int))                                        \
    OPTIONAL(uuid, "nvmlDeviceGetUUID", int, (nvml_device, char *, unsigned))                      \
    OPTIONAL(energy, "nvmlDeviceGetTotalEnergyConsumption", int,                                   \
             (nvml_device, unsigned long long *))                                                  \
    OPTIONAL(fields, "nvmlDeviceGetFieldValues", int, (nvml_device, int, struct nvml_field *))     \
    OPTIONAL(usage, "nvmlDeviceGetPowerUsage", int, (nvml_device, unsigned *))                     \
    OPTIONAL(samples, "nvmlDeviceGetSamples", int,                                                 \
             (nvml_device, int, unsigned long long, int *, unsigned *, struct nvml_sample *))      \
    OPTIONAL(gpm, "nvmlGpmQueryDeviceSupport", int, (nvml_device, struct nvml_gpm_support *))      \
    OPTIONAL(clock, "nvmlDeviceGetClockInfo", int, (nvml_device, int, unsigned *))                 \
    OPTIONAL(temperature, "nvmlDeviceGetTemperature", int, (nvml_device, int, unsigned *))         \
    OPTIONAL(reasons, "nvmlDeviceGetCurrentClocksEventReasons", int,                               \
             (nvml_device, unsigned long long *))                                                  \
    OPTIONAL(old_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons", int,                        \
             (nvml_device, unsigned long long *))                                                  \
    OPTIONAL(mig, "nvmlDeviceGetMigMode", int, (nvml_device, unsigned *, unsigned *))

struct nvml {
#define MEMBER(field, symbol, type, arguments) type(*field) arguments;
    FUNCTIONS(MEMBER, MEMBER)
#undef MEMBER
};

struct gpu {
    const struct nvml *nvml;
    nvml_device device;
    uint64_t end_ns,
        last_ns; /* when reading stops; and when at the latest, for what has shown no period by then */
    struct marey__pulse energy, instant, average, usage;
    int energy_error, instant_error, average_error, usage_error;
    pthread_t thread;
    bool is_there, has_thread;
};

static bool load_nvml(void *handle, struct nvml *nvml)
{
    bool is_whole = true;
#define FIND(field, symbol, type, arguments) *(void **)&nvml->field = dlsym(handle, symbol);
#define NEED(field, symbol, type, arguments)                                                       \
    FIND(field, symbol, type, arguments) is_whole = is_whole && nvml->field != NULL;
    FUNCTIONS(NEED, FIND)
#undef NEED
#undef FIND
    return is_whole;
}

static const char *words_of(const struct nvml *nvml, int error)
{
    const char *words = nvml->error != NULL ? nvml->error(error) : NULL;
    return words != NULL ? words : "an error without a text";
}

/* ---- how often there is something new ---- */

static void read_energy(struct gpu *gpu)
{
    unsigned long long millijoule = 0;
    const uint64_t before = marey__clock_ns(CLOCK_MONOTONIC);
    if (gpu->energy_error == 0)
        gpu->energy_error = gpu->nvml->energy(gpu->device, &millijoule);
    const uint64_t after = marey__clock_ns(CLOCK_MONOTONIC);
    if (gpu->energy_error == 0)
        marey__pulse_put(&gpu->energy, millijoule, after, after - before);
}

static void put_field(struct marey__pulse *pulse, const struct nvml_field *field, int *error,
                      uint64_t now_ns, uint64_t cost_ns)
{
    *error = field->result;
    if (field->result == 0)
        marey__pulse_put(pulse, field->value.u32, now_ns, cost_ns);
}

static void read_power(struct gpu *gpu)
{
    struct nvml_field fields[] = {{.id = FIELD_POWER_INSTANT}, {.id = FIELD_POWER_AVERAGE}};
    unsigned milliwatt = 0;
    const uint64_t before = marey__clock_ns(CLOCK_MONOTONIC);
    if (gpu->nvml->fields != NULL && gpu->nvml->fields(gpu->device, 2, fields) == 0) {
        const uint64_t after = marey__clock_ns(CLOCK_MONOTONIC);
        put_field(&gpu->instant, &fields[0], &gpu->instant_error, after, after - before);
        put_field(&gpu->average, &fields[1], &gpu->average_error, after, after - before);
    }
    const uint64_t again = marey__clock_ns(CLOCK_MONOTONIC);
    if (gpu->usage_error == 0)
        gpu->usage_error = gpu->nvml->usage(gpu->device, &milliwatt);
    const uint64_t end = marey__clock_ns(CLOCK_MONOTONIC);
    if (gpu->usage_error == 0)
        marey__pulse_put(&gpu->usage, milliwatt, end, end - again);
}

/* Whether each counter that can be read has changed so often. */
static bool have_changed(const struct gpu *gpu, unsigned n)
{
    const struct marey__pulse *pulses[] = {&gpu->energy, &gpu->instant, &gpu->average, &gpu->usage};
    for (size_t i = 0; i < MAREY__COUNT_OF(pulses); i++)
        if (pulses[i]->n_reads > 0 && pulses[i]->n_changes < n)
            return false;
    return true;
}

static void *watch(void *ctx)
{
    struct gpu *gpu = ctx;
    gpu->energy_error = gpu->nvml->energy != NULL ? 0 : NOT_SUPPORTED;
    gpu->usage_error = gpu->nvml->usage != NULL ? 0 : NOT_SUPPORTED;
    gpu->instant_error = gpu->average_error = NOT_SUPPORTED;
    for (;;) {
        read_energy(gpu);
        read_power(gpu);
        const uint64_t now = marey__clock_ns(CLOCK_MONOTONIC);
        if (now >= gpu->last_ns || have_changed(gpu, now >= gpu->end_ns ? 2 : ENOUGH))
            return NULL;
        usleep(500);
    }
}

/* ---- what else there is ---- */

/* The driver's own buffer: how many samples it has, and how far they lie apart. */
static void report_samples(const struct gpu *gpu, unsigned i, int fd)
{
    static struct nvml_sample samples[MAX_SAMPLES];
    int type = 0;
    unsigned n = MAX_SAMPLES;
    const struct nvml *nvml = gpu->nvml;
    const int error = nvml->samples == NULL
                          ? NOT_SUPPORTED
                          : nvml->samples(gpu->device, SAMPLES_UTILIZATION, 0, &type, &n, samples);
    if (error != 0 || n == 0 || n > MAX_SAMPLES) {
        dprintf(fd, "samples%u=no %.80s\n", i, error != 0 ? words_of(nvml, error) : "it is empty");
        return;
    }
    const unsigned long long first = samples[0].timestamp_us, last = samples[n - 1].timestamp_us;
    const unsigned long long period_ns = n > 1 && last > first ? (last - first) * 1000 / (n - 1) : 0;
    dprintf(fd, "samples%u=ok %llu %u 0\n", i, period_ns, n);
}

static void report_clocks(const struct gpu *gpu, unsigned i, int fd)
{
    const struct nvml *nvml = gpu->nvml;
    unsigned number;
    unsigned long long bits;
    const bool sm = nvml->clock != NULL && nvml->clock(gpu->device, CLOCK_SM, &number) == 0;
    const bool memory = nvml->clock != NULL && nvml->clock(gpu->device, CLOCK_MEMORY, &number) == 0;
    const bool heat = nvml->temperature != NULL && nvml->temperature(gpu->device, 0, &number) == 0;
    const bool reasons = (nvml->reasons != NULL && nvml->reasons(gpu->device, &bits) == 0) ||
                         (nvml->old_reasons != NULL && nvml->old_reasons(gpu->device, &bits) == 0);
    dprintf(fd, "sm_clock%u=%d\nmemory_clock%u=%d\ntemperature%u=%d\nthrottle%u=%d\n", i, sm, i,
            memory, i, heat, i, reasons);
}

static void report_modes(const struct gpu *gpu, unsigned i, int fd)
{
    const struct nvml *nvml = gpu->nvml;
    struct nvml_gpm_support support = {.version = GPM_SUPPORT_VERSION};
    unsigned current = 0, pending = 0;
    const int error = nvml->gpm != NULL ? nvml->gpm(gpu->device, &support) : NOT_SUPPORTED;
    if (error != 0)
        dprintf(fd, "gpm%u=no %.80s\n", i, words_of(nvml, error));
    else
        dprintf(fd, "gpm%u=%s\n", i, support.is_supported != 0 ? "yes" : "no Hopper or newer");
    if (nvml->mig == NULL || nvml->mig(gpu->device, &current, &pending) != 0)
        dprintf(fd, "mig%u=none\n", i);
    else
        dprintf(fd, "mig%u=%s\n", i, current != 0 ? "on" : "off");
}

static void report_gpu(struct gpu *gpu, unsigned i, int fd)
{
    const struct nvml *nvml = gpu->nvml;
    char name[96] = "without a name", uuid[96] = "";
    nvml->name(gpu->device, name, sizeof name);
    name[sizeof name - 1] = '\0';
    if (nvml->uuid != NULL)
        nvml->uuid(gpu->device, uuid, sizeof uuid);
    uuid[sizeof uuid - 1] = '\0';
    dprintf(fd, "gpu%u=%s\nuuid%u=%s\n", i, name, i, uuid);
    marey__pulse_write(&gpu->energy, "energy", i, words_of(nvml, gpu->energy_error), fd);
    marey__pulse_write(&gpu->instant, "instant", i, words_of(nvml, gpu->instant_error), fd);
    marey__pulse_write(&gpu->average, "average", i, words_of(nvml, gpu->average_error), fd);
    marey__pulse_write(&gpu->usage, "usage", i, words_of(nvml, gpu->usage_error), fd);
    report_samples(gpu, i, fd);
    report_clocks(gpu, i, fd);
    report_modes(gpu, i, fd);
}

/* ---- all of them ---- */

/* How long may be read, so that the answer is there before the parent stops waiting. */
static uint64_t time_to_read(const struct marey__doctor *doctor, uint64_t now_ns)
{
    const uint64_t end_ns = now_ns + reserve_ns;
    return doctor->deadline_ns > end_ns + least_ns ? doctor->deadline_ns - end_ns : least_ns;
}

static void watch_all(struct gpu *gpus, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        gpus[i].has_thread =
            gpus[i].is_there && pthread_create(&gpus[i].thread, NULL, watch, &gpus[i]) == 0;
    for (unsigned i = 0; i < n; i++) {
        if (gpus[i].has_thread)
            pthread_join(gpus[i].thread, NULL);
        else if (gpus[i].is_there)
            watch(&gpus[i]);
    }
}

/* What to do about the failures that machines have. */
static const char *advice_for(int error)
{
    static const struct {
        int error;
        const char *advice;
    } known[] = {
        {4, "this user may not open the GPU's devices: look at the rights of /dev/nvidia*, in a "
            "container also at its devices"},
        {9, "load the driver's kernel module: modprobe nvidia, as root"},
        {15, "the GPU has fallen off the bus: look for Xid in dmesg, and reset it or restart the "
             "machine"},
        {18, "restart the machine, or reload the kernel module: driver and library were updated "
             "and the module was not"},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(known); i++)
        if (known[i].error == error)
            return known[i].advice;
    return NULL;
}

void marey__nvml_ask(const struct marey__doctor *doctor, void *handle, int fd)
{
    static struct gpu gpus[MAREY__MAX_GPUS];
    static struct nvml nvml;
    char driver[96] = "";
    unsigned n = 0;
    if (!load_nvml(handle, &nvml)) {
        dprintf(fd, "limited=it lacks functions that every NVML has\n");
        return;
    }
    const int error = nvml.init();
    if (error != 0) {
        dprintf(fd, "limited=it says: %.200s\n", words_of(&nvml, error));
        if (advice_for(error) != NULL)
            dprintf(fd, "advice=%s\n", advice_for(error));
        return;
    }
    nvml.driver(driver, sizeof driver);
    driver[sizeof driver - 1] = '\0';
    nvml.count(&n);
    dprintf(fd, "value=driver %s\n", driver);
    const uint64_t now = marey__clock_ns(CLOCK_MONOTONIC), left = time_to_read(doctor, now);
    for (unsigned i = 0; i < n && i < MAREY__MAX_GPUS; i++) {
        gpus[i] = (struct gpu){.nvml = &nvml,
                               .end_ns = now + MAREY__MIN(left, window_ns),
                               .last_ns = now + MAREY__MIN(left, most_ns)};
        const int lost = nvml.by_index(i, &gpus[i].device);
        gpus[i].is_there = lost == 0;
        if (lost != 0)
            dprintf(fd, "lost%u=%.80s\n", i, words_of(&nvml, lost));
    }
    n = MAREY__MIN(n, (unsigned)MAREY__MAX_GPUS);
    watch_all(gpus, n);
    for (unsigned i = 0; i < n; i++)
        if (gpus[i].is_there)
            report_gpu(&gpus[i], i, fd);
}
