/*
 * How busy a GPU was. Both sources give means: the driver's ring of samples those of short periods, GPM that between any two
 * looks. What is written is the mean since the value before, at the time of the look: a lane's events are in order of time,
 * and a sample's own stamp would lie before what is there already.
 */
#include <math.h>

#include "instrument/energy/internal.h"

/* ---- utilization ---- */

static int read_last(struct marey__energy_gpu *gpu)
{
    struct marey__nvml_utilization now;
    if (gpu->nvml->utilization == NULL)
        return MAREY__NVML_FUNCTION_NOT_FOUND;
    const int error = gpu->nvml->utilization(gpu->device, &now);
    if (error == 0)
        marey__energy_gpu_put(gpu, MAREY__READ_UTILIZATION, now.gpu);
    return error;
}

/*
 * Look at the samples since the last look: their mean, NaN where there are none yet. Their stamps are some clock's of the
 * driver's own, so they are compared with one another only.
 */
static int look_at_samples(struct marey__energy_gpu *gpu, double *mean)
{
    struct marey__nvml_sample samples[256];
    unsigned n = MAREY__COUNT_OF(samples), n_new = 0;
    int type = 1;
    double sum = 0;
    const unsigned long long before_us = gpu->seen_us;
    unsigned long long oldest_us = ULLONG_MAX;
    const int error = gpu->nvml->samples(gpu->device, MAREY__NVML_UTILIZATION_SAMPLES, before_us,
                                         &type, &n, samples);
    *mean = NAN;
    if (error == MAREY__NVML_NOT_FOUND || error == MAREY__NVML_NO_DATA ||
        error == MAREY__NVML_NOT_READY)
        return 0;
    for (unsigned i = 0; error == 0 && i < MAREY__MIN(n, (unsigned)MAREY__COUNT_OF(samples)); i++) {
        const double value = marey__nvml_number(type, &samples[i].value);
        if (samples[i].stamp_us <= before_us || !(value >= 0 && value <= 100))
            continue;
        sum += value;
        n_new++;
        oldest_us = MAREY__MIN(oldest_us, samples[i].stamp_us);
        gpu->seen_us = MAREY__MAX(gpu->seen_us, samples[i].stamp_us);
    }
    if (n_new > 0)
        *mean = sum / n_new;
    if (!gpu->has_looked && n_new > 1)
        gpu->kept_us = gpu->seen_us - oldest_us;
    return error;
}

static int read_samples(struct marey__energy_gpu *gpu)
{
    double mean;
    const int error = look_at_samples(gpu, &mean);
    /* What the buffer has at the first look is from before. */
    if (error == 0 && gpu->has_looked && !isnan(mean))
        marey__energy_gpu_put(gpu, MAREY__READ_UTILIZATION, mean);
    gpu->has_looked = true;
    return error;
}

void marey__energy_gpu_utilization(struct marey__energy_gpu *gpu)
{
    if (!marey__energy_gpu_reads(gpu, MAREY__READ_UTILIZATION))
        return;
    int error = gpu->has_samples ? read_samples(gpu) : read_last(gpu);
    if (gpu->has_samples &&
        (error == MAREY__NVML_NOT_SUPPORTED || error == MAREY__NVML_FUNCTION_NOT_FOUND)) {
        gpu->has_samples = false;
        error = read_last(gpu);
    }
    if (error != 0)
        marey__energy_gpu_fault(gpu, MAREY__READ_UTILIZATION, error);
}

/* ---- GPM: Hopper and newer ---- */

static const struct {
    enum marey__energy_read what;
    unsigned metric; /* NVML's number for it */
} metrics[] = {{MAREY__READ_SM_ACTIVE, 2},
               {MAREY__READ_SM_OCCUPANCY, 3},
               {MAREY__READ_TENSOR_ACTIVE, 5},
               {MAREY__READ_DRAM_ACTIVE, 10}};

static void fault_gpm(struct marey__energy_gpu *gpu, int error)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(metrics) && !gpu->is_lost; i++)
        marey__energy_gpu_fault(gpu, metrics[i].what, error);
}

/* Both samples, once; 0 when they are there. */
static int prepare_gpm(struct marey__energy_gpu *gpu)
{
    const struct marey__nvml *const nvml = gpu->nvml;
    struct marey__gpm_support support = {.version = 1};
    if (gpu->gpm[1] != NULL)
        return 0;
    if (nvml->gpm_support == NULL || nvml->gpm_alloc == NULL || nvml->gpm_free == NULL ||
        nvml->gpm_get == NULL || nvml->gpm_metrics == NULL)
        return MAREY__NVML_FUNCTION_NOT_FOUND;
    int error = nvml->gpm_support(gpu->device, &support);
    if (error == 0 && !support.is_supported)
        error = MAREY__NVML_NOT_SUPPORTED;
    for (size_t i = 0; i < 2 && error == 0; i++)
        if (gpu->gpm[i] == NULL)
            error = nvml->gpm_alloc(&gpu->gpm[i]);
    return error;
}

static int put_metrics(struct marey__energy_gpu *gpu)
{
    struct marey__gpm_metrics got = {
        .version = 1, .n = MAREY__COUNT_OF(metrics), .before = gpu->gpm[0], .after = gpu->gpm[1]};
    for (size_t i = 0; i < MAREY__COUNT_OF(metrics); i++)
        got.metrics[i].id = metrics[i].metric;
    const int error = gpu->nvml->gpm_metrics(&got);
    for (size_t i = 0; i < MAREY__COUNT_OF(metrics) && error == 0; i++) {
        if (!marey__energy_gpu_reads(gpu, metrics[i].what))
            continue;
        if (got.metrics[i].status != 0)
            marey__energy_gpu_fault(gpu, metrics[i].what, got.metrics[i].status);
        else if (got.metrics[i].value >= 0 && got.metrics[i].value <= 100)
            marey__energy_gpu_put(gpu, metrics[i].what, got.metrics[i].value);
    }
    return error;
}

void marey__energy_gpu_gpm(struct marey__energy_gpu *gpu)
{
    if (!marey__energy_gpu_reads(gpu, MAREY__READ_SM_ACTIVE))
        return;
    int error = prepare_gpm(gpu);
    if (error == 0)
        error = gpu->nvml->gpm_get(gpu->device, gpu->gpm[1]);
    if (error == 0 && gpu->has_gpm_before)
        error = put_metrics(gpu);
    if (error != 0) {
        fault_gpm(gpu, error);
        return;
    }
    void *const before = gpu->gpm[0];
    gpu->gpm[0] = gpu->gpm[1];
    gpu->gpm[1] = before;
    gpu->has_gpm_before = true;
}

void marey__energy_gpu_fini(struct marey__energy_gpu *gpu)
{
    for (size_t i = 0; i < 2; i++)
        if (gpu->gpm[i] != NULL)
            gpu->nvml->gpm_free(gpu->gpm[i]);
}
