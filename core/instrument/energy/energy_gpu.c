/*
 * One GPU. A quantity is read until NVML reports that it is unsupported; then it is marked missing, with the reason.
 * The loss of power or energy is reported to the user, others only in the text energy_sources.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "instrument/energy/internal.h"

static const struct {
    const char *key, *name;
} quantities[MAREY__N_READ] = {
    [MAREY__READ_POWER] = {"power", "power (W)"},
    [MAREY__READ_ENERGY] = {"energy", "energy (J)"},
    [MAREY__READ_UTILIZATION] = {"utilization", "utilization (%)"},
    [MAREY__READ_SM_ACTIVE] = {"sm_active", "SM active (%)"},
    [MAREY__READ_SM_OCCUPANCY] = {"sm_occupancy", "SM occupancy (%)"},
    [MAREY__READ_TENSOR_ACTIVE] = {"tensor_active", "tensor active (%)"},
    [MAREY__READ_DRAM_ACTIVE] = {"dram_active", "DRAM active (%)"},
    [MAREY__READ_SM_CLOCK] = {"sm_clock", "SM clock (MHz)"},
    [MAREY__READ_MEMORY_CLOCK] = {"memory_clock", "memory clock (MHz)"},
    [MAREY__READ_TEMPERATURE] = {"temperature", "temperature (C)"},
    [MAREY__READ_THROTTLE] = {"throttle", "throttle reasons"},
    [MAREY__READ_MEMORY_USED] = {"memory_used", "memory used (bytes)"},
};

marey_id marey__energy_site(const char *name, const char *device, const char *quantity)
{
    char domain[MAREY__UUID_MAX + 32];
    snprintf(domain, sizeof domain, "%s|%s", device, quantity);
    const struct marey_site site = {.name = name, .category = "energy", .domain = domain};
    return marey_site_intern_whole(&site, strlen(name));
}

static void put_at(struct marey__energy_gpu *gpu, enum marey__energy_read what, uint64_t tick,
                   double value)
{
    struct marey__energy_value *const v = &gpu->values[what];
    char name[64];
    v->n_failed = 0;
    if (v->site == 0) {
        snprintf(name, sizeof name, "GPU %" PRIu32 " %s", gpu->number, quantities[what].name);
        v->site = marey__energy_site(name, gpu->node->uuid, quantities[what].key);
    }
    marey__energy_put_at(tick, v->site, value);
}

void marey__energy_gpu_put(struct marey__energy_gpu *gpu, enum marey__energy_read what, double value)
{
    put_at(gpu, what, marey__clock_ticks(), value);
}

bool marey__energy_gpu_reads(const struct marey__energy_gpu *gpu, enum marey__energy_read what)
{
    return !gpu->is_lost && gpu->values[what].missing[0] == '\0';
}

/* ---- failures ---- */

static void miss(struct marey__energy_gpu *gpu, enum marey__energy_read what, int error)
{
    char *const why = gpu->values[what].missing;
    const size_t size = sizeof gpu->values[what].missing;
    const bool is_unknown_here = error == MAREY__NVML_NOT_SUPPORTED ||
                                 error == MAREY__NVML_FUNCTION_NOT_FOUND ||
                                 error == MAREY__NVML_ARGUMENT_VERSION;
    if (is_unknown_here)
        snprintf(why, size, "not supported");
    else if (error == MAREY__NVML_NO_PERMISSION)
        snprintf(why, size, "no permission");
    else
        snprintf(why, size, "%s", marey__nvml_words(gpu->nvml, error));
    if (what == MAREY__READ_ENERGY)
        marey__energy_warn("%s has no energy counter (%s): its energy is summed up from power",
                           gpu->label, why);
    else if (what == MAREY__READ_POWER)
        marey__energy_warn("%s has no power reading (%s): only its energy counter is read",
                           gpu->label, why);
    else if (!is_unknown_here)
        marey__energy_warn("%s: %s is not read: %s", gpu->label, quantities[what].key, why);
}

void marey__energy_gpu_fault(struct marey__energy_gpu *gpu, enum marey__energy_read what, int error)
{
    enum { MOST_FAILURES = 5 };
    switch (error) {
    case MAREY__NVML_GPU_IS_LOST:
    case MAREY__NVML_RESET_REQUIRED:
    case MAREY__NVML_UNINITIALIZED:
    case MAREY__NVML_DRIVER_NOT_LOADED:
        gpu->is_lost = true;
        marey__energy_warn(
            "%s is lost: NVML says \"%s\" (error %d); its energy is not measured from "
            "here on",
            gpu->label, marey__nvml_words(gpu->nvml, error), error);
        break;
    case MAREY__NVML_NOT_SUPPORTED:
    case MAREY__NVML_FUNCTION_NOT_FOUND:
    case MAREY__NVML_ARGUMENT_VERSION:
    case MAREY__NVML_NO_PERMISSION:
        miss(gpu, what, error);
        break;
    default: /* possibly temporary */
        if (++gpu->values[what].n_failed == MOST_FAILURES)
            miss(gpu, what, error);
    }
}

/* ---- power and energy ---- */

static int read_instant(const struct marey__energy_gpu *gpu, double *watts)
{
    struct marey__nvml_field field = {.field = MAREY__NVML_FIELD_POWER_INSTANT};
    if (gpu->nvml->fields == NULL)
        return MAREY__NVML_FUNCTION_NOT_FOUND;
    int error = gpu->nvml->fields(gpu->device, 1, &field);
    error = error != 0 ? error : field.status;
    if (error == 0)
        *watts = marey__nvml_number(field.type, &field.value) / 1000;
    return error;
}

static int read_power(const struct marey__energy_gpu *gpu, double *watts)
{
    unsigned milliwatt = 0;
    if (gpu->has_instant_power)
        return read_instant(gpu, watts);
    if (gpu->nvml->power == NULL)
        return MAREY__NVML_FUNCTION_NOT_FOUND;
    const int error = gpu->nvml->power(gpu->device, &milliwatt);
    *watts = milliwatt / 1000.0;
    return error;
}

static void note_change(struct marey__energy_gpu *gpu, double watts, uint64_t now_ns)
{
    gpu->n_powers++;
    if (gpu->power_ns == 0 || watts == gpu->watts)
        return;
    if (gpu->first_change_ns == 0)
        gpu->first_change_ns = now_ns;
    else
        gpu->n_changes++;
    gpu->last_change_ns = now_ns;
}

void marey__energy_gpu_take_power(struct marey__energy_gpu *gpu, double watts, uint64_t tick,
                                  uint64_t ns)
{
    note_change(gpu, watts, ns);
    if (gpu->power_ns != 0 && ns > gpu->power_ns)
        gpu->count.expected_j += (watts + gpu->watts) / 2 * (double)(ns - gpu->power_ns) / 1e9;
    gpu->watts = watts;
    gpu->power_ns = MAREY__MAX(gpu->power_ns, ns);
    put_at(gpu, MAREY__READ_POWER, tick, watts);
}

void marey__energy_gpu_power(struct marey__energy_gpu *gpu, uint64_t now_ns)
{
    double watts;
    if (!marey__energy_gpu_reads(gpu, MAREY__READ_POWER))
        return;
    const int error = read_power(gpu, &watts);
    if (error != 0) {
        marey__energy_gpu_fault(gpu, MAREY__READ_POWER, error);
        return;
    }
    marey__energy_gpu_take_power(gpu, watts, marey__clock_ticks(), now_ns);
}

static void warn_count(const struct marey__energy_gpu *gpu, enum marey__counter_event event,
                       bool was_stuck)
{
    if (event == MAREY__COUNT_RESET)
        marey__energy_warn("the energy counter of %s began again, as when the driver is loaded "
                           "anew: the energy between the two readings is taken from power",
                           gpu->label);
    else if (event == MAREY__COUNT_STUCK && !was_stuck)
        marey__energy_warn("the energy counter of %s does not move: until it does, its energy is "
                           "summed up from power",
                           gpu->label);
    else if (event == MAREY__COUNT_WRAPPED)
        marey__energy_warn("the energy counter of %s wrapped at 2^32 mJ, which is accounted for",
                           gpu->label);
}

void marey__energy_gpu_count(struct marey__energy_gpu *gpu, uint64_t now_ns)
{
    unsigned long long millijoule = 0;
    if (!marey__energy_gpu_reads(gpu, MAREY__READ_ENERGY))
        return;
    const uint64_t tick = marey__clock_ticks();
    const int error = gpu->nvml->energy == NULL ? MAREY__NVML_FUNCTION_NOT_FOUND
                                                : gpu->nvml->energy(gpu->device, &millijoule);
    /* The call may take milliseconds, and the time of the count within it is unknown. */
    const uint64_t middle = tick + (marey__clock_ticks() - tick) / 2;
    if (error != 0) {
        marey__energy_gpu_fault(gpu, MAREY__READ_ENERGY, error);
        return;
    }
    /* Without power readings, expect at least an idle GPU. */
    const double idle_watts = 5;
    marey__count_begin(&gpu->count, now_ns,
                       gpu->values[MAREY__READ_POWER].missing[0] != '\0' ? idle_watts : 0);
    if (gpu->ring.is_used && now_ns > gpu->power_ns) { /* its newest sample is slightly old */
        gpu->count.expected_j += gpu->watts * (double)(now_ns - gpu->power_ns) / 1e9;
        gpu->power_ns = now_ns;
    }
    gpu->n_counts++;
    gpu->count.most_j = 2 * gpu->count.expected_j + 1000;
    const bool was_stuck = gpu->count.is_stuck;
    const enum marey__counter_event event = marey__count_take(&gpu->count, millijoule);
    warn_count(gpu, event, was_stuck);
    if (event != MAREY__COUNT_STUCK)
        put_at(gpu, MAREY__READ_ENERGY, middle, gpu->count.joules);
}

/* ---- slowly changing quantities ---- */

static int read_state(const struct marey__energy_gpu *gpu, enum marey__energy_read what, double *out)
{
    const struct marey__nvml *const nvml = gpu->nvml;
    unsigned number = 0;
    unsigned long long bits = 0;
    struct marey__nvml_memory memory = {0};
    int error = MAREY__NVML_FUNCTION_NOT_FOUND;
    if (what == MAREY__READ_SM_CLOCK && nvml->clock != NULL)
        error = nvml->clock(gpu->device, MAREY__NVML_CLOCK_SM, &number);
    else if (what == MAREY__READ_MEMORY_CLOCK && nvml->clock != NULL)
        error = nvml->clock(gpu->device, MAREY__NVML_CLOCK_MEMORY, &number);
    else if (what == MAREY__READ_TEMPERATURE && nvml->temperature != NULL)
        error = nvml->temperature(gpu->device, 0, &number);
    else if (what == MAREY__READ_THROTTLE && nvml->throttle != NULL)
        error = nvml->throttle(gpu->device, &bits);
    else if (what == MAREY__READ_MEMORY_USED && nvml->memory != NULL)
        error = nvml->memory(gpu->device, &memory);
    *out = (double)number + (double)bits + (double)memory.used; /* only one of them is not 0 */
    return error;
}

void marey__energy_gpu_state(struct marey__energy_gpu *gpu)
{
    for (enum marey__energy_read what = MAREY__READ_SM_CLOCK; what <= MAREY__READ_MEMORY_USED;
         what++) {
        double value;
        if (!marey__energy_gpu_reads(gpu, what))
            continue;
        const int error = read_state(gpu, what, &value);
        if (error == 0)
            marey__energy_gpu_put(gpu, what, value);
        else
            marey__energy_gpu_fault(gpu, what, error);
    }
}

/* ---- description ---- */

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static void describe_power(const struct marey__energy_gpu *gpu, uint64_t period_ns,
                           struct marey__buf *out)
{
    if (gpu->values[MAREY__READ_POWER].missing[0] != '\0')
        return;
    marey__buf_puts(out, "power: ");
    if (gpu->ring.is_used)
        marey__buf_printf(out, "the sample buffer, a sample every %.3f s, fetched every %.1f s",
                          (double)gpu->ring.period_us / 1e6,
                          seconds(marey__energy_ring_period_ns(&gpu->ring)));
    else
        marey__buf_printf(out, "%s%s, every %.3f s",
                          gpu->ring.n_taken > 0 ? "the sample buffer until it stood still, then " : "",
                          gpu->has_instant_power ? "instant" : "as nvmlDeviceGetPowerUsage has it",
                          seconds(period_ns));
    if (gpu->n_powers > 1)
        marey__buf_printf(out, ", %" PRIu64 " readings", gpu->n_powers);
    if (gpu->n_changes > 0)
        marey__buf_printf(out, ", a new value every %.3f s",
                          seconds(gpu->last_change_ns - gpu->first_change_ns) /
                              (double)gpu->n_changes);
    marey__buf_puts(out, "; ");
}

static void describe_rest(const struct marey__energy_gpu *gpu, const uint64_t *period_ns,
                          struct marey__buf *out)
{
    if (gpu->values[MAREY__READ_ENERGY].missing[0] == '\0')
        marey__buf_printf(
            out, "energy: the total counter, every %.1f s and at epochs, %" PRIu64 " readings; ",
            seconds(period_ns[MAREY__DUE_COUNT]), gpu->n_counts);
    if (gpu->values[MAREY__READ_UTILIZATION].missing[0] == '\0')
        marey__buf_printf(out, "utilization: %s, every %.1f s; ",
                          gpu->has_samples ? "the sample buffer" : "the last sample",
                          seconds(period_ns[MAREY__DUE_UTILIZATION]));
    if (gpu->values[MAREY__READ_SM_ACTIVE].missing[0] == '\0')
        marey__buf_printf(out, "GPM: every %.1f s; ", seconds(period_ns[MAREY__DUE_GPM]));
    marey__buf_printf(out, "state: every %.1f s; ", seconds(period_ns[MAREY__DUE_STATE]));
}

void marey__energy_gpu_describe(const struct marey__energy_gpu *gpu, const uint64_t *period_ns,
                                struct marey__buf *out)
{
    marey__buf_printf(out, "%s|%s|", gpu->node->uuid, gpu->node->model);
    describe_power(gpu, period_ns[MAREY__DUE_POWER], out);
    describe_rest(gpu, period_ns, out);
    for (size_t i = 0; i < gpu->node->n_slices; i++)
        marey__buf_printf(out, "%s%s%s", i == 0 ? "of the whole GPU, with its slices " : ", ",
                          gpu->node->slices[i], i + 1 == gpu->node->n_slices ? "; " : "");
    if (gpu->is_lost)
        marey__buf_puts(out, "lost on the way; ");
    marey__buf_puts(out, "missing:");
    bool is_whole = true;
    for (size_t i = 0; i < MAREY__N_READ; i++)
        if (gpu->values[i].missing[0] != '\0') {
            marey__buf_printf(out, "%s %s (%s)", is_whole ? "" : ",", quantities[i].key,
                              gpu->values[i].missing);
            is_whole = false;
        }
    marey__buf_puts(out, is_whole ? " nothing\n" : "\n");
}

/* ---- begin and end ---- */

void marey__energy_gpu_init(struct marey__energy_gpu *gpu, const struct marey__nvml *nvml,
                            marey__nvml_device device, const struct marey__node_gpu *node,
                            uint32_t number)
{
    double watts;
    *gpu = (struct marey__energy_gpu){.nvml = nvml,
                                      .device = device,
                                      .node = node,
                                      .number = number,
                                      .count = {.unit_j = 1e-3, .range = UINT64_C(1) << 32},
                                      .has_samples = nvml->samples != NULL};
    snprintf(gpu->label, sizeof gpu->label, "GPU %" PRIu32 " (%s)", number, node->uuid);
    gpu->has_instant_power = read_instant(gpu, &watts) == 0;
}
