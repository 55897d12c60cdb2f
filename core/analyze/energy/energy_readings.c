/*
 * Readings of a device: their names, sorting and cleaning, sums over time; what their process records about them;
 * joining the readings of successive processes.
 */
#include "analyze/energy/internal.h"

static const struct {
    const char *name;
    double highest; /* larger or negative values are damage */
} quantities[MAREY__N_QUANTITIES] = {
    [MAREY__POWER] = {"power", 1e6},
    [MAREY__ENERGY] = {"energy", 1e15},
    [MAREY__UTILIZATION] = {"utilization", 100},
    [MAREY__SM_ACTIVE] = {"sm_active", 100},
    [MAREY__SM_OCCUPANCY] = {"sm_occupancy", 100},
    [MAREY__TENSOR_ACTIVE] = {"tensor_active", 100},
    [MAREY__DRAM_ACTIVE] = {"dram_active", 100},
    [MAREY__THROTTLE] = {"throttle", 1e15},
    [MAREY__SM_CLOCK] = {"sm_clock", 1e6},
    [MAREY__MEMORY_CLOCK] = {"memory_clock", 1e6},
    [MAREY__TEMPERATURE] = {"temperature", 1000},
    [MAREY__MEMORY_USED] = {"memory_used", 1e18},
};

enum marey__quantity marey__quantity_find(const char *name)
{
    unsigned q = 0;
    while (q < MAREY__N_QUANTITIES && strcmp(quantities[q].name, name) != 0)
        q++;
    return (enum marey__quantity)q;
}

void marey__meter_fini(struct marey__meter *meter)
{
    for (size_t q = 0; q < MAREY__N_QUANTITIES; q++) {
        MAREY__FREE_ALL(meter->of[q].at, meter->of[q].cover);
    }
    MAREY__FREE_ALL(meter->intervals, meter->breaks);
    *meter = (struct marey__meter){0};
}

MAREY__ORDER_RUNS(is_before, struct marey__reading, MAREY__UP(ns))

bool marey__readings_tidy(struct marey__meter *meter, enum marey__quantity q)
{
    struct marey__readings *readings = &meter->of[q];
    size_t n = 0;
    if (!marey__sort_runs(readings->at, readings->n, sizeof *readings->at, is_before))
        return false;
    for (size_t i = 0; i < readings->n; i++) {
        const struct marey__reading reading = readings->at[i];
        if (!(reading.value >= 0 && reading.value <= quantities[q].highest))
            meter->n_bad++;
        else if (n > 0 && readings->at[n - 1].ns == reading.ns)
            readings->at[n - 1].value = reading.value;
        else
            readings->at[n++] = reading;
    }
    readings->n = n;
    return true;
}

bool marey__readings_distance(const struct marey__readings *readings, uint64_t *out)
{
    *out = 0;
    if (readings->n < 2)
        return true;
    uint64_t *const distances MAREY__FREED = marey__calloc(readings->n - 1, sizeof *distances);
    if (distances == NULL)
        return false;
    for (size_t i = 0; i + 1 < readings->n; i++)
        distances[i] = readings->at[i + 1].ns - readings->at[i].ns;
    qsort(distances, readings->n - 1, sizeof *distances, marey__compare_u64);
    *out = distances[(readings->n - 1) / 2];
    return true;
}

size_t marey__readings_find(const struct marey__readings *readings, uint64_t ns)
{
    size_t after;
    MAREY__BISECT(after, 0, readings->n, readings->at[after].ns <= ns);
    return after - 1; /* SIZE_MAX for none */
}

/* ---- other quantities ---- */

/*
 * A reading covers the time since the previous one (the first: since measuring began). After an unusually long gap it
 * covers only the typical distance; a single reading has no typical distance.
 */
bool marey__readings_sum(struct marey__readings *readings, uint64_t began_ns)
{
    uint64_t typical_ns;
    if (readings->n == 0)
        return true;
    readings->cover = marey__calloc(readings->n, sizeof *readings->cover);
    if (readings->cover == NULL || !marey__readings_distance(readings, &typical_ns))
        return false;
    for (size_t i = 0; i < readings->n; i++) {
        struct marey__reading *reading = &readings->at[i];
        uint64_t ns = i > 0                    ? reading->ns - reading[-1].ns
                      : began_ns < reading->ns ? reading->ns - began_ns
                                               : typical_ns;
        if (readings->n > 1 && (ns > MAREY__MAX_GAP * typical_ns || ns > reading->ns))
            ns = MAREY__MIN(typical_ns, reading->ns);
        readings->cover[i] = (i > 0 ? readings->cover[i - 1] : 0) + (double)ns * 1e-9;
        reading->sum = (i > 0 ? reading[-1].sum : 0) + reading->value * (double)ns * 1e-9;
    }
    return true;
}

/* Keeps only reasons, in NVML's numbering, for which clocks are reduced against the program's will. */
void marey__readings_throttled(struct marey__readings *readings)
{
    enum { POWER_CAP = 0x4, SLOWDOWN = 0x8, THERMAL = 0x60, BRAKE = 0x80 };
    for (size_t i = 0; i < readings->n; i++) {
        const uint64_t bits = (uint64_t)readings->at[i].value;
        readings->at[i].value = (bits & (POWER_CAP | SLOWDOWN | THERMAL | BRAKE)) != 0 ? 100 : 0;
    }
}

const char *marey__meter_source_field(const struct marey__meter *meter, unsigned field, size_t *len)
{
    for (const char *line = meter->process->energy_sources; line[0] != '\0';) {
        const char *word = line, *const end = line + strcspn(line, "\n");
        const size_t device_len = strcspn(line, "|\n");
        const bool is_own =
            device_len == meter->device_len && memcmp(line, meter->device, device_len) == 0;
        for (unsigned i = 0; i < field && word < end; i++)
            word += strcspn(word, "|\n") + (word + strcspn(word, "|\n") < end);
        if (is_own) {
            *len = field == MAREY__SOURCE_WORDS ? (size_t)(end - word) : strcspn(word, "|\n");
            return word;
        }
        line = end + (*end == '\n');
    }
    *len = 0;
    return "";
}

/* The update period of power recorded by the process; 0 if unknown. */
uint64_t marey__meter_stated_period(const struct marey__meter *meter)
{
    static const char every[] = "a new value every ", average[] = "nvmlDeviceGetPowerUsage";
    size_t len;
    const char *words = marey__meter_source_field(meter, MAREY__SOURCE_WORDS, &len);
    const char *found = memmem(words, len, every, sizeof every - 1);
    const double period = found != NULL ? strtod(found + sizeof every - 1, NULL) : 0;
    uint64_t ns = period > 0 && period < 60 ? (uint64_t)(period * 1e9) : 0;
    /* On most GPUs this is the mean of the last second, so edges are not sharper. */
    if (memmem(words, len, average, sizeof average - 1) != NULL)
        ns = MAREY__MAX(ns, UINT64_C(1000000000));
    return ns;
}

/* ---- joining meters ---- */

static bool spans(const struct marey__meter *meter, uint64_t *first_ns, uint64_t *last_ns)
{
    *first_ns = UINT64_MAX;
    *last_ns = 0;
    for (unsigned q = 0; q < MAREY__N_QUANTITIES; q++)
        for (size_t i = 0; i < meter->of[q].n; i++) {
            *first_ns = MAREY__MIN(*first_ns, meter->of[q].at[i].ns);
            *last_ns = MAREY__MAX(*last_ns, meter->of[q].at[i].ns);
        }
    return *last_ns != 0;
}

bool marey__meter_is_later(const struct marey__meter *meter, const struct marey__meter *later)
{
    uint64_t first_ns, last_ns, later_first_ns, later_last_ns;
    return meter->recording == later->recording && meter->device_len == later->device_len &&
           memcmp(meter->device, later->device, meter->device_len) == 0 &&
           strcmp(meter->process->host, later->process->host) == 0 &&
           strcmp(meter->process->run_id, later->process->run_id) == 0 &&
           spans(meter, &first_ns, &last_ns) && spans(later, &later_first_ns, &later_last_ns) &&
           last_ns <= later_first_ns;
}

bool marey__meter_append(struct marey__meter *meter, struct marey__meter *later)
{
    uint64_t first_ns, last_ns;
    (void)spans(later, &first_ns, &last_ns);
    if (!MAREY__PUSH(meter->breaks, meter->n_breaks, meter->breaks_cap, first_ns))
        return false;
    for (unsigned q = 0; q < MAREY__N_QUANTITIES; q++) {
        struct marey__readings *to = &meter->of[q], *from = &later->of[q];
        if (from->n == 0)
            continue;
        if (!marey__grow(&to->at, &to->cap, to->n + from->n, sizeof *to->at))
            return false;
        memcpy(to->at + to->n, from->at, from->n * sizeof *to->at);
        to->n += from->n;
        from->n = 0;
    }
    return true;
}
