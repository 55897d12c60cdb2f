/* NVIDIA's management library, opened at run time: every function is looked up by name, and most may be missing. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "energy/energy_internal.h"

const char *kymo__nvml_path(void)
{
    const char *path = getenv("KYMO_NVML_LIBRARY");
    return path != NULL && path[0] != '\0' ? path : "libnvidia-ml.so.1";
}

/* Of two names the first that is there counts. */
static const struct function {
    size_t offset; /* in struct kymo__nvml */
    const char *names[2];
    bool is_required;
} functions[] = {
    {offsetof(struct kymo__nvml, init), {"nvmlInit_v2"}, true},
    {offsetof(struct kymo__nvml, shutdown), {"nvmlShutdown"}, true},
    {offsetof(struct kymo__nvml, count), {"nvmlDeviceGetCount_v2"}, true},
    {offsetof(struct kymo__nvml, by_index), {"nvmlDeviceGetHandleByIndex_v2"}, true},
    {offsetof(struct kymo__nvml, uuid), {"nvmlDeviceGetUUID"}, true},
    {offsetof(struct kymo__nvml, error_string), {"nvmlErrorString"}, false},
    {offsetof(struct kymo__nvml, name), {"nvmlDeviceGetName"}, false},
    {offsetof(struct kymo__nvml, power), {"nvmlDeviceGetPowerUsage"}, false},
    {offsetof(struct kymo__nvml, energy), {"nvmlDeviceGetTotalEnergyConsumption"}, false},
    {offsetof(struct kymo__nvml, fields), {"nvmlDeviceGetFieldValues"}, false},
    {offsetof(struct kymo__nvml, samples), {"nvmlDeviceGetSamples"}, false},
    {offsetof(struct kymo__nvml, utilization), {"nvmlDeviceGetUtilizationRates"}, false},
    {offsetof(struct kymo__nvml, clock), {"nvmlDeviceGetClockInfo"}, false},
    {offsetof(struct kymo__nvml, temperature), {"nvmlDeviceGetTemperature"}, false},
    {offsetof(struct kymo__nvml, throttle),
     {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"},
     false},
    {offsetof(struct kymo__nvml, memory), {"nvmlDeviceGetMemoryInfo"}, false},
    {offsetof(struct kymo__nvml, mig_mode), {"nvmlDeviceGetMigMode"}, false},
    {offsetof(struct kymo__nvml, mig_count), {"nvmlDeviceGetMaxMigDeviceCount"}, false},
    {offsetof(struct kymo__nvml, mig_by_index), {"nvmlDeviceGetMigDeviceHandleByIndex"}, false},
    {offsetof(struct kymo__nvml, gpm_support), {"nvmlGpmQueryDeviceSupport"}, false},
    {offsetof(struct kymo__nvml, gpm_alloc), {"nvmlGpmSampleAlloc"}, false},
    {offsetof(struct kymo__nvml, gpm_free), {"nvmlGpmSampleFree"}, false},
    {offsetof(struct kymo__nvml, gpm_get), {"nvmlGpmSampleGet"}, false},
    {offsetof(struct kymo__nvml, gpm_metrics), {"nvmlGpmMetricsGet"}, false},
};

static kymo_status find_functions(void *library, struct kymo__nvml *out)
{
    *out = (struct kymo__nvml){0};
    for (size_t i = 0; i < KYMO__COUNT_OF(functions); i++) {
        void *symbol = NULL;
        for (size_t n = 0; symbol == NULL && n < 2 && functions[i].names[n] != NULL; n++)
            symbol = dlsym(library, functions[i].names[n]);
        memcpy((char *)out + functions[i].offset, &symbol, sizeof symbol);
        if (symbol == NULL && functions[i].is_required)
            return kymo__fail(KYMO_EUNAVAILABLE,
                              "the energy of GPUs is not measured: NVML (%s) is too old, it has no "
                              "%s; install a newer NVIDIA driver",
                              kymo__nvml_path(), functions[i].names[0]);
    }
    return KYMO_OK;
}

const char *kymo__nvml_words(const struct kymo__nvml *nvml, int error)
{
    const char *words = nvml->error_string != NULL ? nvml->error_string(error) : NULL;
    return words != NULL ? words : "an error without a text";
}

kymo_status kymo__nvml_open(struct kymo__nvml *out)
{
    void *library = dlopen(kymo__nvml_path(), RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return kymo__fail(
            KYMO_EUNAVAILABLE,
            "the energy of GPUs is not measured: there is no NVIDIA driver here (%s); "
            "in a container, give it the GPU and the capability 'utility'",
            kymo__nvml_path());
    KYMO_TRY(find_functions(library, out));
    const int error = out->init();
    if (error != 0)
        return kymo__fail(KYMO_EUNAVAILABLE,
                          "the energy of GPUs is not measured: NVML says \"%s\" (error %d); "
                          "nvidia-smi should say the same",
                          kymo__nvml_words(out, error), error);
    return KYMO_OK;
}

void kymo__nvml_close(const struct kymo__nvml *nvml)
{
    nvml->shutdown();
}

double kymo__nvml_number(int type, const union kymo__nvml_value *value)
{
    switch (type) {
    case 0:
        return value->as_double;
    case 2:
        return (double)value->as_long;
    case 3:
        return (double)value->as_long_long;
    case 4:
        return (double)value->as_signed;
    case 5:
        return value->as_int;
    case 6:
        return value->as_short;
    default:
        return value->as_unsigned;
    }
}
