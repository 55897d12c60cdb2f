/*
 * The energy of a device in a window, and its uncertainty (±), which has these parts:
 *
 *   the counter's steps     at each edge of the window it may be late by its period, so off by the period times power
 *   the shape               of an interval that the window cuts, or without a counter: between two readings power may have
 *                           jumped anywhere; likewise at the edge of the window
 *   disagreement            between the counter and the integral of power: their difference over whole intervals; for a
 *                           interval that the window cuts, the error if all of it was within the window, or all outside
 *
 * The first two are independent and added as squares; the third is added linearly.
 */
#include <math.h>

#include "analyze/energy/internal.h"

/* State of measuring a window: parts come in order, so only one interval at a time is cut by several of them. */
struct measuring {
    const struct marey__meter *meter;
    struct marey__energy_sum *sum;
    double squares, linear, disagreed;
    size_t interval;     /* in which the last part ended; SIZE_MAX: none */
    double share;        /* share of the interval covered so far */
    double edge_squares; /* of power at edges of parts in it */
};

static double seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}

static size_t find_interval(const struct marey__meter *meter, uint64_t ns)
{
    size_t after;
    MAREY__BISECT(after, 1, meter->n_intervals, meter->intervals[after].begin_ns <= ns);
    return after - 1;
}

/* Energy of the interval up to a time in it. */
static double energy_within(const struct marey__meter *meter,
                            const struct marey__reading_interval *s, uint64_t ns)
{
    if (s->kind == MAREY__UNKNOWN || ns <= s->begin_ns)
        return 0;
    if (ns >= s->end_ns)
        return s->joules;
    const double integral =
        marey__meter_integral(meter, ns) - marey__meter_integral(meter, s->begin_ns);
    if (s->kind == MAREY__INTEGRATED)
        return integral;
    return s->integral > 0
               ? s->joules * (integral / s->integral)
               : s->joules * seconds(ns - s->begin_ns) / seconds(s->end_ns - s->begin_ns);
}

/* ---- power at one time ---- */

/* Power by linear interpolation; `*step` is the difference of the two readings. */
static double power_at(const struct marey__meter *meter, uint64_t ns, double *step)
{
    const struct marey__readings *power = &meter->of[MAREY__POWER];
    const size_t i = marey__readings_find(power, ns);
    *step = 0;
    if (power->n == 0)
        return 0;
    if (i == SIZE_MAX || i + 1 == power->n)
        return power->at[i == SIZE_MAX ? 0 : i].value;
    const struct marey__reading *from = &power->at[i], *to = &power->at[i + 1];
    *step = fabs(to->value - from->value);
    return from->value +
           (to->value - from->value) * (double)(ns - from->ns) / (double)(to->ns - from->ns);
}

/* Squared uncertainty of the integral of power up to `ns`, due to changes between readings. */
static double hidden_until(const struct marey__meter *meter, uint64_t ns)
{
    const struct marey__readings *power = &meter->of[MAREY__POWER];
    const size_t i = marey__readings_find(power, ns);
    if (power->n == 0 || i == SIZE_MAX)
        return 0;
    if (i + 1 == power->n)
        return power->cover[i];
    const struct marey__reading *from = &power->at[i], *to = &power->at[i + 1];
    return power->cover[i] + (power->cover[i + 1] - power->cover[i]) * (double)(ns - from->ns) /
                                 (double)(to->ns - from->ns);
}

/* ---- intervals ---- */

/* The squared power at an end of an interval, unless the neighboring interval has a counter, which cancels the error. */
static double lone_end(const struct marey__meter *meter, size_t interval, bool is_begin)
{
    const size_t beyond = is_begin ? interval - 1 : interval + 1; /* SIZE_MAX before the first */
    double step;
    if (beyond < meter->n_intervals && meter->intervals[beyond].kind == MAREY__COUNTED)
        return 0;
    const struct marey__reading_interval *s = &meter->intervals[interval];
    const double power = power_at(meter, is_begin ? s->begin_ns : s->end_ns, &step);
    return power * power;
}

static void leave_interval(struct measuring *m)
{
    const size_t interval = m->interval;
    if (interval == SIZE_MAX)
        return;
    const struct marey__reading_interval *s = &m->meter->intervals[interval];
    const double difference = s->joules - s->integral, share = fmin(m->share, 1),
                 period = seconds(m->meter->counter_period_ns),
                 mean = s->joules / seconds(s->end_ns - s->begin_ns);
    const bool is_whole = share > 1 - 1e-9;
    m->interval = SIZE_MAX;
    if (s->kind != MAREY__COUNTED)
        return;
    /* The ends of a whole interval count only where the window or the counter ends: between intervals errors cancel. */
    const double ends = is_whole ? fmax(m->edge_squares, lone_end(m->meter, interval, true) +
                                                             lone_end(m->meter, interval, false))
                                 : 2 * mean * mean;
    m->squares += share * share * period * period * ends;
    if (is_whole)
        m->disagreed += difference;
    else if (m->meter->has_power) /* else power comes from the counter and cannot disagree with it */
        m->linear += fmin(fmax(share, 1 - share) * fabs(difference), share * s->joules);
}

static void enter_interval(struct measuring *m, size_t interval)
{
    if (m->interval == interval)
        return;
    leave_interval(m);
    m->interval = interval;
    m->share = m->edge_squares = 0;
}

/* Add the part's time within an interval; an edge is where the part begins or ends. */
static void cover(struct measuring *m, size_t interval, const struct marey__interval *part)
{
    const struct marey__meter *meter = m->meter;
    const struct marey__reading_interval *s = &meter->intervals[interval];
    const uint64_t from_ns = MAREY__MAX(part->begin_ns, s->begin_ns),
                   to_ns = MAREY__MIN(part->end_ns, s->end_ns);
    const bool is_whole = from_ns == s->begin_ns && to_ns == s->end_ns;
    const double joules = energy_within(meter, s, to_ns) - energy_within(meter, s, from_ns);
    enter_interval(m, interval);
    m->sum->joules += joules;
    m->share += is_whole ? 1 : seconds(to_ns - from_ns) / seconds(s->end_ns - s->begin_ns);
    if (s->kind != MAREY__UNKNOWN)
        m->sum->measured_ns += to_ns - from_ns;
    if (s->kind == MAREY__INTEGRATED)
        m->sum->integrated_ns += to_ns - from_ns;
    if (s->kind == MAREY__INTEGRATED || !is_whole)
        m->squares += hidden_until(meter, to_ns) - hidden_until(meter, from_ns);
    const uint64_t edges[2] = {part->begin_ns, part->end_ns};
    for (size_t i = 0; i < 2; i++) {
        double step;
        if (edges[i] < from_ns || edges[i] > to_ns)
            continue;
        const double power = power_at(meter, edges[i], &step),
                     jump = step * seconds(meter->power_period_ns) / 2;
        m->edge_squares += power * power;
        m->squares += s->kind == MAREY__INTEGRATED || !is_whole ? jump * jump : 0;
    }
}

/* Add the intervals entirely within a part, up to `last`, from their precomputed sums. */
static void cover_whole(struct measuring *m, size_t first, size_t last)
{
    const struct marey__meter *meter = m->meter;
    const struct marey__reading_interval *from = &meter->intervals[first],
                                         *to = &meter->intervals[last];
    bool is_simple = true;
    for (size_t i = first; i < last && is_simple; i++)
        is_simple = meter->intervals[i].kind == MAREY__COUNTED;
    if (!is_simple) {
        const struct marey__interval part = {from->begin_ns, to->begin_ns};
        for (size_t i = first; i < last; i++)
            cover(m, i, &part);
        return;
    }
    const double period = seconds(meter->counter_period_ns);
    m->squares += period * period * (lone_end(meter, first, true) + lone_end(meter, last - 1, false));
    m->sum->joules += to->before - from->before;
    m->disagreed += to->disagreed - from->disagreed;
    m->sum->measured_ns += to->begin_ns - from->begin_ns;
}

/* ---- other quantities ---- */

/* Sum and covered time of readings up to `ns`; each reading covers the time before it. */
static void sum_until(const struct marey__readings *readings, uint64_t ns, double *sum,
                      double *covered)
{
    const size_t i = marey__readings_find(readings, ns), next = i + 1; /* 0 before the first reading */
    *sum = i != SIZE_MAX ? readings->at[i].sum : 0;
    *covered = i != SIZE_MAX ? readings->cover[i] : 0;
    if (next >= readings->n)
        return;
    const double speaks = readings->cover[next] - *covered,
                 ahead = seconds(readings->at[next].ns - ns);
    const double within = fmax(0, speaks - ahead);
    *sum += within * readings->at[next].value;
    *covered += within;
}

static void take_means(struct marey__energy_sum *sum, const struct marey__meter *meter,
                       const struct marey__interval *part)
{
    for (unsigned q = MAREY__FIRST_MEAN; q < MAREY__N_QUANTITIES; q++) {
        const struct marey__readings *readings = &meter->of[q];
        double from, from_cover, to, to_cover;
        if (readings->n == 0)
            continue;
        sum_until(readings, part->begin_ns, &from, &from_cover);
        sum_until(readings, part->end_ns, &to, &to_cover);
        sum->weighted[q] += to - from;
        sum->weight[q] += to_cover - from_cover;
    }
}

static void take_highest(struct marey__energy_sum *sum, const struct marey__readings *readings,
                         unsigned q, const struct marey__interval *part)
{
    for (size_t i = marey__readings_find(readings, part->begin_ns) + 1;
         i < readings->n && readings->at[i].ns <= part->end_ns; i++)
        sum->highest[q] = fmax(sum->highest[q], readings->at[i].value);
}

/* ---- a window ---- */

static void measure_part(struct measuring *m, const struct marey__interval *whole)
{
    const struct marey__meter *meter = m->meter;
    const struct marey__interval part = {MAREY__MAX(whole->begin_ns, meter->first_ns),
                                         MAREY__MIN(whole->end_ns, meter->last_ns)};
    m->sum->ns += whole->end_ns - whole->begin_ns;
    if (part.end_ns <= part.begin_ns || meter->n_intervals == 0)
        return;
    const size_t first = find_interval(meter, part.begin_ns),
                 last = find_interval(meter, part.end_ns - 1);
    cover(m, first, &part);
    if (last > first + 1)
        cover_whole(m, first + 1, last);
    if (last > first)
        cover(m, last, &part);
    take_means(m->sum, meter, &part);
    take_highest(m->sum, &meter->of[MAREY__POWER], MAREY__POWER, &part);
    take_highest(m->sum, &meter->of[MAREY__TEMPERATURE], MAREY__TEMPERATURE, &part);
    take_highest(m->sum, &meter->of[MAREY__MEMORY_USED], MAREY__MEMORY_USED, &part);
}

/* Subtract the gap between two parts that are measured as one; its energy is uncertain. */
static void take_off(struct measuring *m, const struct marey__interval *gap)
{
    const struct marey__meter *meter = m->meter;
    const uint64_t begin_ns = MAREY__MAX(gap->begin_ns, meter->first_ns),
                   end_ns = MAREY__MIN(gap->end_ns, meter->last_ns);
    m->sum->ns -= gap->end_ns - gap->begin_ns;
    if (end_ns <= begin_ns || meter->n_intervals == 0)
        return;
    const struct marey__reading_interval *from = &meter->intervals[find_interval(meter, begin_ns)],
                                         *to = &meter->intervals[find_interval(meter, end_ns)];
    const double joules = to->before + energy_within(meter, to, end_ns) - from->before -
                          energy_within(meter, from, begin_ns);
    m->sum->joules -= joules;
    m->linear += joules;
    m->sum->measured_ns -= MAREY__MIN(end_ns - begin_ns, m->sum->measured_ns);
}

/*
 * Parts with short gaps between them: iterations of a loop, steps. If they fill most of the time, measure them as one.
 * Otherwise parts shorter than the readings allow stay unmeasured, however many there are.
 */
static void measure_parts(struct measuring *m, const struct marey__interval *parts, size_t n)
{
    const uint64_t shortest_ns = 2 * m->meter->power_period_ns,
                   hull_ns = parts[n - 1].end_ns - parts[0].begin_ns;
    uint64_t covered_ns = 0;
    for (size_t i = 0; i < n; i++)
        covered_ns += parts[i].end_ns - parts[i].begin_ns;
    if (hull_ns >= shortest_ns && covered_ns >= hull_ns - hull_ns / 5) {
        const struct marey__interval hull = {parts[0].begin_ns, parts[n - 1].end_ns};
        measure_part(m, &hull);
        for (size_t i = 0; i + 1 < n; i++)
            take_off(m, &(struct marey__interval){parts[i].end_ns, parts[i + 1].begin_ns});
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t ns = parts[i].end_ns - parts[i].begin_ns;
        measure_part(m, &parts[i]);
        m->sum->short_ns += ns < shortest_ns ? ns : 0;
    }
}

void marey__meter_measure(const struct marey__meter *meter, const struct marey__time_set *set,
                          struct marey__energy_sum *out)
{
    struct measuring m = {.meter = meter, .sum = out, .interval = SIZE_MAX};
    *out = (struct marey__energy_sum){.n_devices = 1};
    for (size_t i = 0, n; i < set->n; i += n) {
        n = 1;
        while (i + n < set->n && set->parts[i + n].begin_ns - set->parts[i + n - 1].end_ns <
                                     2 * meter->power_period_ns)
            n++;
        measure_parts(&m, &set->parts[i], n);
    }
    leave_interval(&m);
    if (!meter->has_power)
        m.disagreed = 0;
    out->plus_minus = sqrt(fmax(m.squares, 0)) + m.linear + fabs(m.disagreed);
    out->mean_w = out->measured_ns != 0 ? out->joules / seconds(out->measured_ns) : 0;
    out->peak_w = out->highest[MAREY__POWER];
    out->is_counted = meter->has_counter && out->integrated_ns < out->measured_ns;
    out->is_integrated = out->integrated_ns > out->measured_ns / 50;
    out->is_short = out->short_ns > out->ns / 2;
    out->is_partial = out->ns >= out->measured_ns + MAREY__MAX(meter->power_period_ns, 1) &&
                      out->ns - out->measured_ns > out->ns / 50;
}

void marey__energy_sum_add(struct marey__energy_sum *into, const struct marey__energy_sum *from)
{
    into->n_devices += from->n_devices;
    into->joules += from->joules;
    into->plus_minus += from->plus_minus;
    into->mean_w += from->mean_w;
    into->peak_w += from->peak_w;
    into->ns = MAREY__MAX(into->ns, from->ns);
    into->measured_ns = MAREY__MAX(into->measured_ns, from->measured_ns);
    for (unsigned q = 0; q < MAREY__N_QUANTITIES; q++) {
        into->weighted[q] += from->weighted[q];
        into->weight[q] += from->weight[q];
        into->highest[q] = fmax(into->highest[q], from->highest[q]);
    }
    into->is_counted |= from->is_counted;
    into->is_integrated |= from->is_integrated;
    into->is_short |= from->is_short;
    into->is_partial |= from->is_partial;
}
