/*
 * The driver's samples of a GPU: power with a timestamp each, mean utilization; and GPM, counters of Hopper and newer.
 *
 * Power: one call returns all samples of the last seconds; a single reading costs a tenth of that. Timestamps are
 * microseconds of CLOCK_REALTIME, which NVML does not guarantee. So each call compares them with that clock: if the
 * newest is off by more than a second, because the buffer stopped, the clock was set, or it is another clock, we switch
 * to single readings permanently.
 *
 * Utilization and GPM: the value is the mean since the previous one, recorded at the time of the call. A lane's events
 * are in order of time, and a sample's own timestamp would be before existing events.
 */
#include <stdlib.h>

#include "instrument/energy/internal.h"

enum { MOST_SAMPLES = 1024, SECOND_US = 1000000, MOST_OFF_US = SECOND_US, MOST_LOOKS = 3 };

/* The result of reading the buffer: samples by timestamp, each timestamp once; and the time of the call. */
struct look {
    struct marey__nvml_sample samples[MOST_SAMPLES];
    unsigned n;
    int type;
    struct marey__moment now;
};

/* Insertion sort: samples are nearly always sorted, and it allocates nothing. */
static void sort_by_stamp(struct marey__nvml_sample *samples, unsigned n)
{
    for (unsigned i = 1; i < n; i++) {
        const struct marey__nvml_sample sample = samples[i];
        unsigned at = i;
        for (; at > 0 && samples[at - 1].stamp_us > sample.stamp_us; at--)
            samples[at] = samples[at - 1];
        samples[at] = sample;
    }
}

static double sample_value(const struct look *look, unsigned i)
{
    return marey__nvml_number(look->type, &look->samples[i].value);
}

/* Sorts, removes duplicate timestamps, and keeps only plausible values after `after_us`. */
static void tidy(struct look *look, unsigned long long after_us, double most)
{
    unsigned n = 0;
    sort_by_stamp(look->samples, look->n);
    for (unsigned i = 0; i < look->n; i++) {
        const unsigned long long last_us = n > 0 ? look->samples[n - 1].stamp_us : after_us;
        const double value = sample_value(look, i);
        if (look->samples[i].stamp_us > last_us && value >= 0 && value <= most)
            look->samples[n++] = look->samples[i];
    }
    look->n = n;
}

static int look_at(const struct marey__energy_gpu *gpu, int kind, unsigned long long after_us,
                   struct look *look)
{
    look->n = MOST_SAMPLES;
    look->type = 1;
    int error = gpu->nvml->samples(gpu->device, kind, after_us, &look->type, &look->n, look->samples);
    if (error == MAREY__NVML_NOT_FOUND || error == MAREY__NVML_NO_DATA ||
        error == MAREY__NVML_NOT_READY)
        error = look->n = 0;
    if (error != 0 || look->n > MOST_SAMPLES)
        look->n = 0;
    marey__clock_moment(marey__clock_is_tsc, &look->now);
    tidy(look, after_us, kind == MAREY__NVML_POWER_SAMPLES ? 1e8 : 100); /* mW or percent */
    return error;
}

static int64_t age_us(const struct look *look, unsigned long long stamp_us)
{
    return (int64_t)(look->now.realtime_ns / 1000 - stamp_us);
}

static uint64_t tick_of(const struct look *look, unsigned long long stamp_us)
{
    const double age_s = (double)MAREY__MAX(age_us(look, stamp_us), 0) / SECOND_US;
    return look->now.tick - (uint64_t)(age_s * (double)marey__clock_hz());
}

static bool is_off(const struct look *look, unsigned long long newest_us)
{
    return llabs(age_us(look, newest_us)) > MOST_OFF_US;
}

/* ---- the first look ---- */

static uint64_t typical_distance_us(const struct look *look)
{
    struct marey__nvml_sample distances[MOST_SAMPLES];
    for (unsigned i = 0; i + 1 < look->n; i++)
        distances[i].stamp_us = look->samples[i + 1].stamp_us - look->samples[i].stamp_us;
    sort_by_stamp(distances, look->n - 1);
    return distances[(look->n - 1) / 2].stamp_us;
}

/* Whether the buffer has samples often enough for `hz`, and keeps them long enough to be read seldom. */
static bool is_enough(const struct marey__power_ring *ring, uint32_t hz)
{
    const uint64_t least_span_us = SECOND_US / 2;
    return ring->period_us > 0 && ring->span_us >= least_span_us &&
           ring->period_us * hz <= SECOND_US + SECOND_US / 4;
}

void marey__energy_ring_open(struct marey__energy_gpu *gpu, uint32_t hz)
{
    enum { LEAST_HZ = 10, MOST_HZ = 50 };
    struct marey__power_ring *const ring = &gpu->ring;
    struct look look;
    if (ring->is_used || ring->n_looks >= MOST_LOOKS || gpu->nvml->samples == NULL ||
        !marey__energy_gpu_reads(gpu, MAREY__READ_POWER))
        return;
    ring->n_looks++;
    if (look_at(gpu, MAREY__NVML_POWER_SAMPLES, 0, &look) != 0)
        ring->n_looks = MOST_LOOKS; /* not supported; one that is still empty may fill */
    if (look.n < 2)
        return;
    const unsigned long long newest_us = look.samples[look.n - 1].stamp_us;
    ring->period_us = typical_distance_us(&look);
    ring->span_us = MAREY__MIN(newest_us - look.samples[0].stamp_us, ring->period_us * (look.n - 1));
    ring->step_us = SECOND_US / (hz != 0 ? hz : MOST_HZ);
    /* Samples already in the buffer are from before. */
    ring->seen_us = MAREY__MAX(newest_us, look.now.realtime_ns / 1000);
    ring->seen_tick = look.now.tick;
    if (is_off(&look, newest_us))
        ring->n_looks = MOST_LOOKS;
    else
        ring->is_used = is_enough(ring, hz != 0 ? hz : LEAST_HZ);
}

/* ---- later reads ---- */

/* Where samples are denser than requested: takes those nearest to the period. */
static bool is_wanted(struct marey__power_ring *ring, unsigned long long stamp_us)
{
    if (stamp_us + ring->period_us / 2 < ring->due_us)
        return false;
    if (stamp_us > ring->due_us + ring->step_us) /* the first one, or some are missing */
        ring->due_us = stamp_us;
    ring->due_us += ring->step_us;
    return true;
}

static void take(struct marey__energy_gpu *gpu, const struct look *look)
{
    struct marey__power_ring *const ring = &gpu->ring;
    for (unsigned i = 0; i < look->n; i++) {
        const unsigned long long stamp_us = look->samples[i].stamp_us;
        const int64_t age = age_us(look, stamp_us);
        /* From before the clock was set, if it was. */
        if (age > (int64_t)(4 * ring->span_us + SECOND_US) || !is_wanted(ring, stamp_us))
            continue;
        marey__energy_gpu_take_power(gpu, sample_value(look, i) / 1000, tick_of(look, stamp_us),
                                     look->now.monotonic_ns - (uint64_t)MAREY__MAX(age, 0) * 1000);
        ring->n_taken++;
    }
    if (look->n == 0)
        return;
    ring->seen_us = look->samples[look->n - 1].stamp_us;
    ring->seen_tick = tick_of(look, ring->seen_us);
}

void marey__energy_ring_read(struct marey__energy_gpu *gpu)
{
    struct marey__power_ring *const ring = &gpu->ring;
    struct look look;
    if (!ring->is_used || !marey__energy_gpu_reads(gpu, MAREY__READ_POWER))
        return;
    const int error = look_at(gpu, MAREY__NVML_POWER_SAMPLES, ring->seen_us, &look);
    const unsigned long long newest_us =
        look.n > 0 ? look.samples[look.n - 1].stamp_us : ring->seen_us;
    ring->is_used = error == 0 && !is_off(&look, newest_us);
    if (ring->is_used) {
        take(gpu, &look);
        return;
    }
    ring->n_looks = MOST_LOOKS;
    marey__energy_gpu_power(gpu, look.now.monotonic_ns); /* this also detects whether the GPU is lost */
}

/* Leaves a quarter as reserve, in case the thread wakes up late. */
uint64_t marey__energy_ring_period_ns(const struct marey__power_ring *ring)
{
    const uint64_t most_ns = UINT64_C(2000000000);
    return MAREY__MIN(ring->span_us * 750, most_ns);
}

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

static int read_samples(struct marey__energy_gpu *gpu)
{
    struct look look;
    double sum = 0;
    const int error = look_at(gpu, MAREY__NVML_UTILIZATION_SAMPLES, gpu->seen_us, &look);
    for (unsigned i = 0; i < look.n; i++)
        sum += sample_value(&look, i);
    if (look.n > 0)
        gpu->seen_us = look.samples[look.n - 1].stamp_us;
    /* The first samples are from before the recording. */
    if (look.n > 0 && gpu->has_looked)
        marey__energy_gpu_put(gpu, MAREY__READ_UTILIZATION, sum / look.n);
    else if (look.n > 1)
        gpu->kept_us = gpu->seen_us - look.samples[0].stamp_us;
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
    unsigned metric; /* NVML's number */
} metrics[] = {{MAREY__READ_SM_ACTIVE, 2},
               {MAREY__READ_SM_OCCUPANCY, 3},
               {MAREY__READ_TENSOR_ACTIVE, 5},
               {MAREY__READ_DRAM_ACTIVE, 10}};

/* Allocates both samples, once; returns 0 if they exist. */
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
    for (size_t i = 0; error != 0 && i < MAREY__COUNT_OF(metrics) && !gpu->is_lost; i++)
        marey__energy_gpu_fault(gpu, metrics[i].what, error);
    if (error != 0)
        return;
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
