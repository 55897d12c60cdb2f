/*
 * NVML, in the child process: the counters of each GPU, and how often they update. All GPUs are read at once, by a
 * thread each, since a read of the energy counter takes milliseconds.
 */
#include <unistd.h>

#include "doctor/internal.h"
#include "instrument/energy/internal.h"

enum {
    GPM_SUPPORT_VERSION = 1,
    MAX_SAMPLES = 256,
    ENOUGH = 9, /* changes; more would add little */
};

static const uint64_t window_ns = UINT64_C(400000000), most_ns = UINT64_C(2000000000),
                      reserve_ns = UINT64_C(150000000), least_ns = UINT64_C(20000000);

struct gpu {
    const struct marey__nvml *nvml;
    marey__nvml_device device;
    uint64_t end_ns;  /* reading stops here */
    uint64_t last_ns; /* limit for counters without a known period by then */
    struct marey__update_rate energy, instant, average, usage;
    int energy_error, instant_error, average_error, usage_error;
    pthread_t thread;
    bool is_there, has_thread;
};

/* ---- update periods ---- */

static void read_energy(struct gpu *gpu)
{
    unsigned long long millijoule = 0;
    const uint64_t before = marey__clock_ns(CLOCK_MONOTONIC);
    if (gpu->energy_error == 0)
        gpu->energy_error = gpu->nvml->energy(gpu->device, &millijoule);
    const uint64_t after = marey__clock_ns(CLOCK_MONOTONIC);
    if (gpu->energy_error == 0)
        marey__update_rate_add(&gpu->energy, millijoule, after, after - before);
}

static void put_field(struct marey__update_rate *rate, const struct marey__nvml_field *field,
                      int *error, uint64_t now_ns, uint64_t cost_ns)
{
    *error = field->status;
    if (field->status == 0)
        marey__update_rate_add(rate, field->value.as_unsigned, now_ns, cost_ns);
}

static void read_power(struct gpu *gpu)
{
    struct marey__nvml_field fields[] = {{.field = MAREY__NVML_FIELD_POWER_INSTANT},
                                         {.field = MAREY__NVML_FIELD_POWER_AVERAGE}};
    unsigned milliwatt = 0;
    const uint64_t before = marey__clock_ns(CLOCK_MONOTONIC);
    if (gpu->nvml->fields != NULL && gpu->nvml->fields(gpu->device, 2, fields) == 0) {
        const uint64_t after = marey__clock_ns(CLOCK_MONOTONIC);
        put_field(&gpu->instant, &fields[0], &gpu->instant_error, after, after - before);
        put_field(&gpu->average, &fields[1], &gpu->average_error, after, after - before);
    }
    const uint64_t again = marey__clock_ns(CLOCK_MONOTONIC);
    if (gpu->usage_error == 0)
        gpu->usage_error = gpu->nvml->power(gpu->device, &milliwatt);
    const uint64_t end = marey__clock_ns(CLOCK_MONOTONIC);
    if (gpu->usage_error == 0)
        marey__update_rate_add(&gpu->usage, milliwatt, end, end - again);
}

/* Whether each readable counter has changed that often. */
static bool have_changed(const struct gpu *gpu, unsigned n)
{
    const struct marey__update_rate *rates[] = {&gpu->energy, &gpu->instant, &gpu->average,
                                                &gpu->usage};
    for (size_t i = 0; i < MAREY__COUNT_OF(rates); i++)
        if (rates[i]->n_reads > 0 && rates[i]->n_changes < n)
            return false;
    return true;
}

static void *watch(void *ctx)
{
    struct gpu *gpu = ctx;
    gpu->energy_error = gpu->nvml->energy != NULL ? 0 : MAREY__NVML_NOT_SUPPORTED;
    gpu->usage_error = gpu->nvml->power != NULL ? 0 : MAREY__NVML_NOT_SUPPORTED;
    gpu->instant_error = gpu->average_error = MAREY__NVML_NOT_SUPPORTED;
    for (;;) {
        read_energy(gpu);
        read_power(gpu);
        const uint64_t now = marey__clock_ns(CLOCK_MONOTONIC);
        if (now >= gpu->last_ns || have_changed(gpu, now >= gpu->end_ns ? 2 : ENOUGH))
            return NULL;
        usleep(500);
    }
}

/* ---- other quantities ---- */

/* The driver's sample buffer: how many samples it has, and the time between them. */
static void find_samples(const struct gpu *gpu, struct marey__doctor_measured *out)
{
    static struct marey__nvml_sample samples[MAX_SAMPLES];
    int type = 0;
    unsigned n = MAX_SAMPLES;
    const struct marey__nvml *nvml = gpu->nvml;
    const int error =
        nvml->samples == NULL
            ? MAREY__NVML_NOT_SUPPORTED
            : nvml->samples(gpu->device, MAREY__NVML_UTILIZATION_SAMPLES, 0, &type, &n, samples);
    if (error != 0 || n == 0 || n > MAX_SAMPLES) {
        snprintf(out->refusal, sizeof out->refusal, "%.80s",
                 error != 0 ? marey__nvml_words(nvml, error) : "it is empty");
        return;
    }
    const unsigned long long first = samples[0].stamp_us, last = samples[n - 1].stamp_us;
    out->is_readable = true;
    out->n_changes = n;
    if (n > 1 && last > first)
        out->period_ns = (double)(last - first) * 1000 / (n - 1);
}

static void find_state(const struct gpu *gpu, struct marey__doctor_gpu *out)
{
    const struct marey__nvml *nvml = gpu->nvml;
    unsigned number;
    unsigned long long bits;
    out->has_sm_clock =
        nvml->clock != NULL && nvml->clock(gpu->device, MAREY__NVML_CLOCK_SM, &number) == 0;
    out->has_memory_clock =
        nvml->clock != NULL && nvml->clock(gpu->device, MAREY__NVML_CLOCK_MEMORY, &number) == 0;
    out->has_temperature =
        nvml->temperature != NULL && nvml->temperature(gpu->device, 0, &number) == 0;
    out->has_throttle = nvml->throttle != NULL && nvml->throttle(gpu->device, &bits) == 0;
}

static void find_modes(const struct gpu *gpu, struct marey__doctor_gpu *out)
{
    const struct marey__nvml *nvml = gpu->nvml;
    struct marey__gpm_support support = {.version = GPM_SUPPORT_VERSION};
    unsigned current = 0, pending = 0;
    const int error = nvml->gpm_support != NULL ? nvml->gpm_support(gpu->device, &support)
                                                : MAREY__NVML_NOT_SUPPORTED;
    if (error != 0 || support.is_supported == 0)
        snprintf(out->no_gpm, sizeof out->no_gpm, "no %.80s",
                 error != 0 ? marey__nvml_words(nvml, error) : "Hopper or newer");
    out->has_mig = nvml->mig_mode != NULL && nvml->mig_mode(gpu->device, &current, &pending) == 0;
    out->is_divided = current != 0;
}

static void describe_gpu(struct gpu *gpu, struct marey__doctor_gpu *out)
{
    const struct marey__nvml *nvml = gpu->nvml;
    snprintf(out->name, sizeof out->name, "without a name");
    nvml->name(gpu->device, out->name, sizeof out->name);
    out->name[sizeof out->name - 1] = '\0';
    if (nvml->uuid != NULL)
        nvml->uuid(gpu->device, out->uuid, sizeof out->uuid);
    out->uuid[sizeof out->uuid - 1] = '\0';
    out->energy = marey__update_rate_finish(&gpu->energy, marey__nvml_words(nvml, gpu->energy_error));
    out->instant =
        marey__update_rate_finish(&gpu->instant, marey__nvml_words(nvml, gpu->instant_error));
    out->average =
        marey__update_rate_finish(&gpu->average, marey__nvml_words(nvml, gpu->average_error));
    out->usage = marey__update_rate_finish(&gpu->usage, marey__nvml_words(nvml, gpu->usage_error));
    find_samples(gpu, &out->samples);
    find_state(gpu, out);
    find_modes(gpu, out);
    out->is_there = true;
}

/* ---- all of them ---- */

/* How long to read, so that the results arrive before the parent stops waiting. */
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

/* Advice for known failures. */
static const struct marey__known_error failures[] = {
    {4, NULL,
     "this user may not open the GPU's devices: look at the rights of /dev/nvidia*, in a "
     "container also at its devices"},
    {9, NULL, "load the driver's kernel module: modprobe nvidia, as root"},
    {15, NULL,
     "the GPU has fallen off the bus: look for Xid in dmesg, and reset it or restart the "
     "machine"},
    {18, NULL,
     "restart the machine, or reload the kernel module: driver and library were updated "
     "and the module was not"},
};

void marey__nvml_ask(const struct marey__doctor *doctor, void *handle, int fd)
{
    static struct gpu gpus[MAREY__DOCTOR_MAX_GPUS];
    static struct marey__nvml nvml;
    char driver[96] = "";
    unsigned n = 0;
    (void)marey__nvml_find_functions(handle, &nvml); /* recording energy needs more functions */
    if (nvml.init == NULL || nvml.driver == NULL || nvml.count == NULL || nvml.by_index == NULL ||
        nvml.name == NULL) {
        dprintf(fd, "limited=it lacks functions that every NVML has\n");
        return;
    }
    const int error = nvml.init();
    if (error != 0) {
        const struct marey__known_error *const known = MAREY__KNOWN_ERROR(failures, (uint64_t)error);
        dprintf(fd, "limited=NVML: %.200s\n", marey__nvml_words(&nvml, error));
        if (known != NULL)
            dprintf(fd, "advice=%s\n", known->advice);
        return;
    }
    nvml.driver(driver, sizeof driver);
    driver[sizeof driver - 1] = '\0';
    if (doctor->gpus != NULL)
        nvml.count(&n);
    dprintf(fd, "value=driver %s\n", driver);
    const uint64_t now = marey__clock_ns(CLOCK_MONOTONIC), left = time_to_read(doctor, now);
    for (unsigned i = 0; i < n && i < MAREY__DOCTOR_MAX_GPUS; i++) {
        gpus[i] = (struct gpu){.nvml = &nvml,
                               .end_ns = now + MAREY__MIN(left, window_ns),
                               .last_ns = now + MAREY__MIN(left, most_ns)};
        const int lost = nvml.by_index(i, &gpus[i].device);
        gpus[i].is_there = lost == 0;
        if (lost != 0)
            snprintf(doctor->gpus[i].lost, sizeof doctor->gpus[i].lost, "%.80s",
                     marey__nvml_words(&nvml, lost));
    }
    n = MAREY__MIN(n, (unsigned)MAREY__DOCTOR_MAX_GPUS);
    watch_all(gpus, n);
    for (unsigned i = 0; i < n; i++)
        if (gpus[i].is_there)
            describe_gpu(&gpus[i], &doctor->gpus[i]);
}
