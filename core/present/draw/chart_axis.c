/* Axes: where they end, where they have ticks, where a value lies, and numbers beside them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "present/draw/internal.h"

/* Wider than this many times its begin, a logarithmic axis has ticks at powers alone; below the second, as a linear one has. */
#define MANY_TIMES 100
#define FEW_TIMES 4

enum { MOST_TICKS = MAREY__COUNT_OF(((struct marey__axis *)0)->ticks), GOOD_TICKS = 8 };

static double log_of(enum marey__chart_scale scale, double value)
{
    return scale == MAREY__CHART_LOG2 ? log2(value) : log10(value);
}

double marey__axis_at(const struct marey__axis *axis, double value)
{
    double share;
    if (axis->scale == MAREY__CHART_LINEAR)
        share = (value - axis->low) / (axis->high - axis->low);
    else
        share = log(value / axis->low) / log(axis->high / axis->low);
    return axis->from + share * (axis->to - axis->from);
}

static void add_tick(struct marey__axis *axis, double value)
{
    /* What rounding took away must not cost the first or last tick. */
    const double slack = (axis->scale == MAREY__CHART_LINEAR ? axis->high - axis->low : value) * 1e-9;
    if (axis->n_ticks < MOST_TICKS && value >= axis->low - slack && value <= axis->high + slack)
        axis->ticks[axis->n_ticks++] = value;
}

/* 1, 2 or 5 times a power of ten, so that `range` has some six of them. */
static double round_step(double range)
{
    const double rough = range / 6, power = pow(10, floor(log10(rough)));
    const double times = rough / power;
    return power * (times < 1.5 ? 1 : times < 3.5 ? 2 : times < 7.5 ? 5 : 10);
}

static void add_even_ticks(struct marey__axis *axis)
{
    const double step = round_step(axis->high - axis->low);
    const double first = ceil(axis->low / step - 1e-9);
    for (size_t i = 0; i < MOST_TICKS; i++)
        add_tick(axis, (first + (double)i) * step);
}

/* Powers; of those of ten 1, 2 and 5 times each where there is room. */
static void add_power_ticks(struct marey__axis *axis)
{
    const double base = axis->scale == MAREY__CHART_LOG2 ? 2 : 10;
    const bool is_dense = base == 10 && axis->high / axis->low < MANY_TIMES;
    const double low = log_of(axis->scale, axis->low), last = floor(log_of(axis->scale, axis->high));
    const double first = is_dense ? floor(low) : ceil(low);
    const double every = ceil((last - first + 1) / GOOD_TICKS);
    for (double e = first; e <= last; e += is_dense ? 1 : every) {
        add_tick(axis, pow(base, e));
        if (is_dense) {
            add_tick(axis, 2 * pow(base, e));
            add_tick(axis, 5 * pow(base, e));
        }
    }
}

/* A linear axis begins at 0, so that heights can be compared, and ends at a tick. */
static void fit_linear(struct marey__axis *axis, double low, double high)
{
    axis->low = fmin(0, low);
    axis->high = high > axis->low ? high : axis->low + 1;
    const double step = round_step(axis->high - axis->low);
    axis->high = ceil(axis->high / step - 1e-9) * step;
    add_even_ticks(axis);
}

static void fit_logarithmic(struct marey__axis *axis, double low, double high)
{
    const double room = fmax(pow(high / low, 0.06), 1.05);
    axis->low = low / room;
    axis->high = high * room;
    if (axis->high / axis->low < FEW_TIMES)
        add_even_ticks(axis);
    else
        add_power_ticks(axis);
}

void marey__axis_fit(struct marey__axis *axis, double low, double high)
{
    axis->n_ticks = 0;
    if (axis->scale == MAREY__CHART_LINEAR)
        fit_linear(axis, low, high);
    else
        fit_logarithmic(axis, low, high);
}

const char *marey__axis_number(double value, char into[24])
{
    const double size = fabs(value);
    if (size < 1e-12)
        snprintf(into, 24, "0");
    else if (size >= 1e15 || size < 1e-4)
        snprintf(into, 24, "%.3g", value);
    else if (size >= 1e6)
        snprintf(into, 24, "%.4g %s", value / (size >= 1e9 ? 1e9 : 1e6), size >= 1e9 ? "G" : "M");
    else if (size >= 1000)
        snprintf(into, 24, "%.0f", value);
    else
        snprintf(into, 24, "%.3g", value);
    return into;
}

/* Letters are some 7 pixels wide at the size that chart.css gives; what is not ASCII, as wide as two bytes of it. */
double marey__text_pixels(const char *text)
{
    return 7.0 * (double)strlen(text);
}
