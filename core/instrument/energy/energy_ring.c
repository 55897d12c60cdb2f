/*
 * Power from the driver's ring of samples. One call gives all of the last seconds, each with its time, where a single
 * reading costs a tenth of that and gives one: the ring is what makes a dense shape cheap.
 *
 * Stamps are microseconds of CLOCK_REALTIME, which nobody promises. So they are held against that clock at each look: when
 * the newest is off by more than a second, because the ring no longer moves, or the clock was set, or it is another clock,
 * single readings take over for good.
 */
#include <stdlib.h>

#include "instrument/energy/internal.h"

enum { MOST_SAMPLES = 1024, SECOND_US = 1000000, MOST_OFF_US = SECOND_US, MOST_LOOKS = 3 };

/* A look at the ring: samples by stamp, each stamp once; and when that was. */
struct look {
    struct marey__nvml_sample samples[MOST_SAMPLES];
    unsigned n;
    int type;
    struct marey__moment now;
};

/* Quick where they are in order, as they are but for accidents, and without memory of its own. */
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

static void tidy(struct look *look, unsigned long long after_us)
{
    unsigned n = 0;
    sort_by_stamp(look->samples, look->n);
    for (unsigned i = 0; i < look->n; i++) {
        const unsigned long long last_us = n > 0 ? look->samples[n - 1].stamp_us : after_us;
        const double milliwatt = marey__nvml_number(look->type, &look->samples[i].value);
        if (look->samples[i].stamp_us > last_us && milliwatt >= 0 && milliwatt < 1e8)
            look->samples[n++] = look->samples[i];
    }
    look->n = n;
}

static int look_at(const struct marey__energy_gpu *gpu, unsigned long long after_us, struct look *look)
{
    look->n = MOST_SAMPLES;
    look->type = 1;
    int error = gpu->nvml->samples(gpu->device, MAREY__NVML_POWER_SAMPLES, after_us, &look->type,
                                   &look->n, look->samples);
    if (error == MAREY__NVML_NOT_FOUND || error == MAREY__NVML_NO_DATA ||
        error == MAREY__NVML_NOT_READY)
        error = look->n = 0;
    if (error != 0 || look->n > MOST_SAMPLES)
        look->n = 0;
    marey__clock_moment(marey__clock_is_tsc, &look->now);
    tidy(look, after_us);
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

static uint64_t usual_distance_us(const struct look *look)
{
    struct marey__nvml_sample distances[MOST_SAMPLES];
    for (unsigned i = 0; i + 1 < look->n; i++)
        distances[i].stamp_us = look->samples[i + 1].stamp_us - look->samples[i].stamp_us;
    sort_by_stamp(distances, look->n - 1);
    return distances[(look->n - 1) / 2].stamp_us;
}

/* Whether the ring has samples often enough for `hz`, for long enough to look seldom. */
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
    if (look_at(gpu, 0, &look) != 0)
        ring->n_looks = MOST_LOOKS; /* there is none; one that is still empty may fill */
    if (look.n < 2)
        return;
    const unsigned long long newest_us = look.samples[look.n - 1].stamp_us;
    ring->period_us = usual_distance_us(&look);
    ring->span_us = MAREY__MIN(newest_us - look.samples[0].stamp_us, ring->period_us * (look.n - 1));
    ring->step_us = SECOND_US / (hz != 0 ? hz : MOST_HZ);
    /* What is in there by now is from before. */
    ring->seen_us = MAREY__MAX(newest_us, look.now.realtime_ns / 1000);
    ring->seen_tick = look.now.tick;
    if (is_off(&look, newest_us))
        ring->n_looks = MOST_LOOKS;
    else
        ring->is_used = is_enough(ring, hz != 0 ? hz : LEAST_HZ);
}

/* ---- and all others ---- */

/* Where samples are denser than asked for: those nearest to the beat. */
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
        marey__energy_gpu_take_power(
            gpu, marey__nvml_number(look->type, &look->samples[i].value) / 1000,
            tick_of(look, stamp_us), look->now.monotonic_ns - (uint64_t)MAREY__MAX(age, 0) * 1000);
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
    const int error = look_at(gpu, ring->seen_us, &look);
    const unsigned long long newest_us =
        look.n > 0 ? look.samples[look.n - 1].stamp_us : ring->seen_us;
    ring->is_used = error == 0 && !is_off(&look, newest_us);
    if (ring->is_used) {
        take(gpu, &look);
        return;
    }
    ring->n_looks = MOST_LOOKS;
    marey__energy_gpu_power(gpu, look.now.monotonic_ns); /* which also finds out whether the GPU is lost */
}

/* A quarter of it is in hand, should the thread oversleep. */
uint64_t marey__energy_ring_period_ns(const struct marey__power_ring *ring)
{
    const uint64_t most_ns = UINT64_C(2000000000);
    return MAREY__MIN(ring->span_us * 750, most_ns);
}
