/* NVIDIA's management library, opened at run time: every function is looked up by name, and most may be missing. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "instrument/energy/internal.h"

const char *marey__nvml_path(void)
{
    const char *path = getenv("MAREY_NVML_LIBRARY");
    return path != NULL && path[0] != '\0' ? path : "libnvidia-ml.so.1";
}

/* Of two names the first that is there counts. */
static const struct function {
    size_t offset; /* in struct marey__nvml */
    const char *names[2];
    bool is_required;
} functions[] = {
    {offsetof(struct marey__nvml, init), {"nvmlInit_v2"}, true},
    {offsetof(struct marey__nvml, shutdown), {"nvmlShutdown"}, true},
    {offsetof(struct marey__nvml, count), {"nvmlDeviceGetCount_v2"}, true},
    {offsetof(struct marey__nvml, by_index), {"nvmlDeviceGetHandleByIndex_v2"}, true},
    {offsetof(struct marey__nvml, uuid), {"nvmlDeviceGetUUID"}, true},
    {offsetof(struct marey__nvml, error_string), {"nvmlErrorString"}, false},
    {offsetof(struct marey__nvml, name), {"nvmlDeviceGetName"}, false},
    {offsetof(struct marey__nvml, power), {"nvmlDeviceGetPowerUsage"}, false},
    {offsetof(struct marey__nvml, energy), {"nvmlDeviceGetTotalEnergyConsumption"}, false},
    {offsetof(struct marey__nvml, fields), {"nvmlDeviceGetFieldValues"}, false},
    {offsetof(struct marey__nvml, samples), {"nvmlDeviceGetSamples"}, false},
    {offsetof(struct marey__nvml, utilization), {"nvmlDeviceGetUtilizationRates"}, false},
    {offsetof(struct marey__nvml, clock), {"nvmlDeviceGetClockInfo"}, false},
    {offsetof(struct marey__nvml, temperature), {"nvmlDeviceGetTemperature"}, false},
    {offsetof(struct marey__nvml, throttle),
     {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"},
     false},
    {offsetof(struct marey__nvml, memory), {"nvmlDeviceGetMemoryInfo"}, false},
    {offsetof(struct marey__nvml, mig_mode), {"nvmlDeviceGetMigMode"}, false},
    {offsetof(struct marey__nvml, mig_count), {"nvmlDeviceGetMaxMigDeviceCount"}, false},
    {offsetof(struct marey__nvml, mig_by_index), {"nvmlDeviceGetMigDeviceHandleByIndex"}, false},
    {offsetof(struct marey__nvml, gpm_support), {"nvmlGpmQueryDeviceSupport"}, false},
    {offsetof(struct marey__nvml, gpm_alloc), {"nvmlGpmSampleAlloc"}, false},
    {offsetof(struct marey__nvml, gpm_free), {"nvmlGpmSampleFree"}, false},
    {offsetof(struct marey__nvml, gpm_get), {"nvmlGpmSampleGet"}, false},
    {offsetof(struct marey__nvml, gpm_metrics), {"nvmlGpmMetricsGet"}, false},
};

static marey_status find_functions(void *library, struct marey__nvml *out)
{
    *out = (struct marey__nvml){0};
    for (size_t i = 0; i < MAREY__COUNT_OF(functions); i++) {
        void *symbol = NULL;
        for (size_t n = 0; symbol == NULL && n < 2 && functions[i].names[n] != NULL; n++)
            symbol = dlsym(library, functions[i].names[n]);
        memcpy((char *)out + functions[i].offset, &symbol, sizeof symbol);
        if (symbol == NULL && functions[i].is_required)
            return marey__fail(
                MAREY_EUNAVAILABLE,
                "the energy of GPUs is not measured: NVML (%s) is too old, it has no "
                "%s; install a newer NVIDIA driver",
                marey__nvml_path(), functions[i].names[0]);
    }
    return MAREY_OK;
}

const char *marey__nvml_words(const struct marey__nvml *nvml, int error)
{
    const char *words = nvml->error_string != NULL ? nvml->error_string(error) : NULL;
    return words != NULL ? words : "an error without a text";
}

marey_status marey__nvml_open(struct marey__nvml *out)
{
    void *library = dlopen(marey__nvml_path(), RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return marey__fail(
            MAREY_EUNAVAILABLE,
            "the energy of GPUs is not measured: there is no NVIDIA driver here (%s); "
            "in a container, give it the GPU and the capability 'utility'",
            marey__nvml_path());
    MAREY_TRY(find_functions(library, out));
    const int error = out->init();
    if (error != 0)
        return marey__fail(MAREY_EUNAVAILABLE,
                           "the energy of GPUs is not measured: NVML says \"%s\" (error %d); "
                           "nvidia-smi should say the same",
                           marey__nvml_words(out, error), error);
    return MAREY_OK;
}

void marey__nvml_close(const struct marey__nvml *nvml)
{
    nvml->shutdown();
}

double marey__nvml_number(int type, const union marey__nvml_value *value)
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
