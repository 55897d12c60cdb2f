/* NVIDIA's management library, opened at run time: functions are looked up by name, and most are optional. */
#include <dlfcn.h>

#include "instrument/energy/internal.h"

const char *marey__nvml_path(void)
{
    const char *path = getenv("MAREY_NVML_LIBRARY");
    return path != NULL && path[0] != '\0' ? path : "libnvidia-ml.so.1";
}

const char *marey__nvml_find_functions(void *library, struct marey__nvml *out)
{
    enum { OPTIONAL, REQUIRED };
    const char *missing = NULL;
#define FIND(needs, field, symbol, result, arguments)                                              \
    *(void **)&out->field = dlsym(library, symbol);                                                \
    if ((needs) == REQUIRED && out->field == NULL && missing == NULL)                              \
        missing = symbol;
    MAREY__NVML_FUNCTIONS(FIND)
#undef FIND
    if (out->throttle == NULL) /* its former name */
        *(void **)&out->throttle = dlsym(library, "nvmlDeviceGetCurrentClocksThrottleReasons");
    return missing;
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
    const char *const missing = marey__nvml_find_functions(library, out);
    if (missing != NULL)
        return marey__fail(MAREY_EUNAVAILABLE,
                           "the energy of GPUs is not measured: NVML (%s) is too old, it has no "
                           "%s; install a newer NVIDIA driver",
                           marey__nvml_path(), missing);
    const int error = out->init();
    if (error != 0)
        return marey__fail(MAREY_EUNAVAILABLE,
                           "the energy of GPUs is not measured: NVML says \"%s\" (error %d); "
                           "nvidia-smi should say the same",
                           marey__nvml_words(out, error), error);
    return MAREY_OK;
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
