/*
 * Sorts, checks and sums up the readings of a device, so that the energy of any window takes two searches.
 *
 * A counter that falls has wrapped, if the fall matches a known counter width and the expected energy; otherwise it was
 * reset (the driver was reloaded). One that does not move for a second while power flows is stuck. For a reset or stuck
 * interval, the integral of power is used.
 */
#include <math.h>

#include "analyze/energy/internal.h"

enum quantity_limits {
    MAX_GAP = 4
}; /* typical distances between readings, beyond which some are missing */

static const uint64_t second_ns = 1000000000;

/* The longest update period of a GPU's counter, and of a CPU package's. */
static const uint64_t gpu_counter_ns = 100000000, package_counter_ns = 1000000;

/* ---- power ---- */

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
    return (double)(to_ns - from_ns) * 1e-9;
}

/*
 * Integrates power by trapezoids. Uncertainty: power may have jumped at either end of a trapezoid; more where readings
 * are missing.
 */
static bool sum_power(struct marey__meter *meter)
{
    struct marey__readings *power = &meter->of[MAREY__POWER];
    double lowest = INFINITY, highest = 0;
    if (power->n == 0)
        return true;
    power->cover = marey__calloc(power->n, sizeof *power->cover);
    if (power->cover == NULL)
        return false;
    for (size_t i = 0; i < power->n; i++) {
        lowest = fmin(lowest, power->at[i].value);
        highest = fmax(highest, power->at[i].value);
    }
    power->at[0].sum = 0;
    for (size_t i = 1; i < power->n; i++) {
        const struct marey__reading *from = &power->at[i - 1], *to = &power->at[i];
        const double dt = seconds(from->ns, to->ns);
        const bool is_gap = to->ns - from->ns > MAREY__MAX_GAP * meter->power_period_ns;
        double step = fabs(to->value - from->value);
        if (is_gap)
            step = fmax(step, (highest - lowest) / 2);
        meter->missing_ns += is_gap ? to->ns - from->ns : 0;
        power->at[i].sum = from->sum + dt * (from->value + to->value) / 2;
        power->cover[i] = power->cover[i - 1] + (step * dt / 2) * (step * dt / 2);
    }
    return true;
}

double marey__meter_integral(const struct marey__meter *meter, uint64_t ns)
{
    const struct marey__readings *power = &meter->of[MAREY__POWER];
    if (power->n == 0)
        return 0;
    const size_t i = marey__readings_find(power, ns);
    if (i == SIZE_MAX)
        return -power->at[0].value * seconds(ns, power->at[0].ns);
    const struct marey__reading *from = &power->at[i];
    const double dt = seconds(from->ns, ns);
    if (i + 1 == power->n)
        return from->sum + from->value * dt;
    const struct marey__reading *to = &power->at[i + 1];
    const double slope = (to->value - from->value) / seconds(from->ns, to->ns);
    return from->sum + dt * (from->value + slope * dt / 2);
}

/* ---- the counter ---- */

/* Readings closer than the counter's updates carry no information; keep the first and the last. */
static void thin_counter(struct marey__meter *meter)
{
    struct marey__readings *counter = &meter->of[MAREY__ENERGY];
    const uint64_t least_ns = 2 * meter->counter_period_ns;
    size_t n = 0;
    for (size_t i = 0; i < counter->n; i++) {
        const bool is_near = n > 0 && counter->at[i].ns - counter->at[n - 1].ns < least_ns;
        if (!is_near)
            counter->at[n++] = counter->at[i];
        else if (i + 1 == counter->n && n > 1)
            counter->at[n - 1] = counter->at[i];
    }
    counter->n = n;
}

/* The expected energy of an interval, if known: from power, else from the previous interval. */
static bool expect(const struct marey__meter *meter, const struct marey__reading_interval *interval,
                   double *out)
{
    if (meter->has_power) {
        *out = interval->integral;
        return true;
    }
    if (meter->n_intervals == 0)
        return false;
    const struct marey__reading_interval *last = &meter->intervals[meter->n_intervals - 1];
    *out = last->joules / seconds(last->begin_ns, last->end_ns) *
           seconds(interval->begin_ns, interval->end_ns);
    return last->kind == MAREY__COUNTED;
}

/* Whether a fall is a counter overflow: widths used by RAPL, and 32 bits of mJ and uJ. */
static bool has_wrapped(double fall, double expected, double *joules)
{
    static const double widths[] = {65532.610987,  65536,       65712.999613, 262143.328850,
                                    262144.004096, 4294967.296, 4294.967296};
    for (size_t i = 0; i < MAREY__COUNT_OF(widths); i++) {
        const double total = widths[i] - fall;
        if (total >= 0 && fabs(total - expected) <= fmax(0.2 * expected, 5)) {
            *joules = total;
            return true;
        }
    }
    return false;
}

static void replace_by_power(const struct marey__meter *meter,
                             struct marey__reading_interval *interval)
{
    interval->kind = meter->has_power ? MAREY__INTEGRATED : MAREY__UNKNOWN;
    interval->joules = meter->has_power ? interval->integral : 0;
}

/* Set the energy of an interval from the counter, or why the counter is unusable. */
static void judge(struct marey__meter *meter, struct marey__reading_interval *interval,
                  double difference)
{
    double expected = 0;
    const bool is_known = expect(meter, interval, &expected);
    interval->kind = MAREY__COUNTED;
    interval->joules = difference;
    if (difference < 0 && is_known && has_wrapped(-difference, expected, &interval->joules)) {
        meter->n_wraps++;
        return;
    }
    const bool is_reset = difference < 0,
               is_stuck = difference == 0 && interval->end_ns - interval->begin_ns >= second_ns &&
                          (expected >= 1 || !meter->has_power);
    if (!is_reset && !is_stuck)
        return;
    meter->n_resets += is_reset;
    meter->n_stuck += is_stuck;
    replace_by_power(meter, interval);
}

static bool add_interval(struct marey__meter *meter, const struct marey__reading_interval *interval)
{
    const struct marey__reading_interval *last =
        meter->n_intervals > 0 ? &meter->intervals[meter->n_intervals - 1] : NULL;
    struct marey__reading_interval added = *interval;
    if (last != NULL) {
        added.before = last->before + last->joules;
        added.disagreed = last->disagreed + last->joules - last->integral;
    }
    return MAREY__PUSH(meter->intervals, meter->n_intervals, meter->intervals_cap, added);
}

static double integral_between(const struct marey__meter *meter, uint64_t from_ns, uint64_t to_ns)
{
    return marey__meter_integral(meter, to_ns) - marey__meter_integral(meter, from_ns);
}

/* Times with power only: before the first reading of the counter, after the last, or always. */
static bool add_integrated(struct marey__meter *meter, uint64_t from_ns, uint64_t to_ns)
{
    if (to_ns <= from_ns || !meter->has_power)
        return true;
    struct marey__reading_interval interval = {
        .begin_ns = from_ns, .end_ns = to_ns, .kind = MAREY__INTEGRATED};
    interval.joules = interval.integral = integral_between(meter, from_ns, to_ns);
    return add_interval(meter, &interval);
}

/* Whether another process started reading in between, whose counter may have another origin. */
static bool is_broken(const struct marey__meter *meter, const struct marey__reading_interval *interval)
{
    for (size_t i = 0; i < meter->n_breaks; i++)
        if (meter->breaks[i] > interval->begin_ns && meter->breaks[i] <= interval->end_ns)
            return true;
    return false;
}

static bool add_counted(struct marey__meter *meter)
{
    const struct marey__readings *counter = &meter->of[MAREY__ENERGY];
    for (size_t i = 0; i + 1 < counter->n; i++) {
        struct marey__reading_interval interval = {.begin_ns = counter->at[i].ns,
                                                   .end_ns = counter->at[i + 1].ns};
        interval.integral = integral_between(meter, interval.begin_ns, interval.end_ns);
        if (is_broken(meter, &interval))
            replace_by_power(meter, &interval);
        else
            judge(meter, &interval, counter->at[i + 1].value - counter->at[i].value);
        if (interval.kind == MAREY__COUNTED && meter->has_power) {
            meter->counted_j += interval.joules;
            meter->integrated_j += interval.integral;
        }
        if (!add_interval(meter, &interval))
            return false;
    }
    return true;
}

/* Power from the counter's differences, each in the middle of its interval. */
static bool derive_power(struct marey__meter *meter)
{
    struct marey__readings *power = &meter->of[MAREY__POWER];
    for (size_t i = 0; i < meter->n_intervals; i++) {
        const struct marey__reading_interval *s = &meter->intervals[i];
        if (s->kind != MAREY__COUNTED)
            continue;
        if (!MAREY__PUSH(
                power->at, power->n, power->cap,
                (struct marey__reading){.ns = s->begin_ns + (s->end_ns - s->begin_ns) / 2,
                                        .value = s->joules / seconds(s->begin_ns, s->end_ns)}))
            return false;
    }
    if (!marey__readings_distance(&meter->of[MAREY__ENERGY], &meter->power_period_ns) ||
        !sum_power(meter))
        return false;
    double disagreed = 0;
    for (size_t i = 0; i < meter->n_intervals; i++) {
        struct marey__reading_interval *s = &meter->intervals[i];
        s->integral = integral_between(meter, s->begin_ns, s->end_ns);
        s->disagreed = disagreed;
        disagreed += s->joules - s->integral;
    }
    return true;
}

/*
 * The valid time of the meter: from its first reading of power or energy to its last, plus the time for which power is
 * extrapolated.
 */
static void find_span(struct marey__meter *meter)
{
    const struct marey__readings *power = &meter->of[MAREY__POWER],
                                 *counter = &meter->of[MAREY__ENERGY];
    const uint64_t held_ns = meter->power_period_ns;
    meter->first_ns = UINT64_MAX;
    meter->last_ns = 0;
    if (meter->has_power) {
        const uint64_t first_ns = power->at[0].ns;
        meter->first_ns = first_ns - MAREY__MIN(first_ns, held_ns);
        meter->last_ns = power->at[power->n - 1].ns + held_ns;
    }
    if (counter->n >= 2) {
        meter->first_ns = MAREY__MIN(meter->first_ns, counter->at[0].ns);
        meter->last_ns = MAREY__MAX(meter->last_ns, counter->at[counter->n - 1].ns);
    }
}

static bool make_intervals(struct marey__meter *meter)
{
    const struct marey__readings *counter = &meter->of[MAREY__ENERGY];
    if (!meter->has_counter)
        return add_integrated(meter, meter->first_ns, meter->last_ns);
    const uint64_t first_ns = counter->at[0].ns, last_ns = counter->at[counter->n - 1].ns;
    return add_integrated(meter, meter->first_ns, first_ns) && add_counted(meter) &&
           add_integrated(meter, last_ns, meter->last_ns) &&
           (meter->has_power || derive_power(meter));
}

/* The first reading of power or energy, at which all other readings started as well. */
static uint64_t began_ns(const struct marey__meter *meter)
{
    const struct marey__readings *power = &meter->of[MAREY__POWER],
                                 *counter = &meter->of[MAREY__ENERGY];
    uint64_t ns = UINT64_MAX;
    if (power->n > 0)
        ns = power->at[0].ns;
    if (counter->n > 0)
        ns = MAREY__MIN(ns, counter->at[0].ns);
    return ns;
}

bool marey__meter_prepare(struct marey__meter *meter)
{
    const bool is_package = meter->device_len >= 7 && memcmp(meter->device, "package", 7) == 0;
    meter->is_ready = true;
    for (unsigned q = 0; q < MAREY__N_QUANTITIES; q++)
        if (!marey__readings_tidy(meter, (enum marey__quantity)q))
            return false;
    marey__readings_throttled(&meter->of[MAREY__THROTTLE]);
    for (unsigned q = MAREY__FIRST_MEAN; q < MAREY__N_QUANTITIES; q++)
        if (!marey__readings_sum(&meter->of[q], began_ns(meter)))
            return false;
    meter->counter_period_ns = is_package ? package_counter_ns : gpu_counter_ns;
    meter->is_brief = meter->of[MAREY__ENERGY].n >= 2;
    thin_counter(meter);
    meter->has_counter = meter->of[MAREY__ENERGY].n >= 2;
    meter->is_brief &= !meter->has_counter;
    /* Power of a package is the difference of two readings of its counter, recorded with the second. */
    meter->has_power = meter->of[MAREY__POWER].n >= 2 && !(is_package && meter->has_counter);
    if (!marey__readings_distance(&meter->of[MAREY__POWER], &meter->power_period_ns))
        return false;
    meter->power_period_ns = MAREY__MAX(meter->power_period_ns, marey__meter_stated_period(meter));
    if (!meter->has_power)
        meter->of[MAREY__POWER].n = 0;
    find_span(meter);
    return sum_power(meter) && make_intervals(meter);
}
