/* What is behind the figures of a series, in sentences. How far it scales is said by who presents it. */
#include <math.h>

#include "analyze/scaling/internal.h"

/* Above the ideal by more than this is not what more workers can do by themselves. */
#define ABOVE_IDEAL 0.05

void marey__scaling_name(struct marey__buf *text, const struct marey__scaling_series *series)
{
    const bool has_experiment = *series->experiment != '\0', has_strategy = *series->strategy != '\0';
    marey__buf_puts(text, series->experiment);
    marey__buf_puts(text, has_experiment && has_strategy ? ", " : "");
    marey__buf_puts(text, series->strategy);
    marey__buf_puts(text, has_experiment || has_strategy ? "" : "all runs");
    marey__buf_puts(text, ": ");
}

/* " (1.2 % to 3.4 %)", where it is known. */
static void put_between(struct marey__buf *text, const struct marey__scaling_interval *interval)
{
    if (isnan(interval->low))
        return;
    marey__buf_puts(text, " (");
    marey__text_share(text, interval->low);
    marey__buf_puts(text, " to ");
    marey__text_share(text, interval->high);
    marey__buf_puts(text, ")");
}

static void find_too_good(struct marey__buf *text, const struct marey__scaling_series *series,
                          const struct marey__scaling_point *points)
{
    for (size_t i = 1; i < series->n; i++) {
        const struct marey__scaling_level *speedup = &points[i].speedup;
        if (!(speedup->low / points[i].ideal > 1 + ABOVE_IDEAL))
            continue;
        marey__scaling_name(text, series);
        marey__buf_printf(text, "%u workers do better than the ideal (", points[i].workers);
        marey__text_share(text, speedup->value / points[i].ideal);
        marey__buf_printf(
            text,
            "): with %u something holds the baseline back, as too little memory does, or "
            "the runs do not do the same\n",
            points[0].workers);
        return;
    }
}

/* ---- Karp and Flatt ---- */

static void find_trend(struct marey__buf *text, const struct marey__scaling_series *series,
                       const struct marey__scaling_point *points)
{
    if (series->n < 3)
        return;
    const struct marey__scaling_point *first = &points[1], *last = &points[series->n - 1];
    const double growth = last->karp_flatt - first->karp_flatt,
                 error = hypot(first->karp_flatt_error, last->karp_flatt_error);
    if (!(growth > 2 * error) || !(growth > 0.005))
        return;
    marey__scaling_name(text, series);
    marey__buf_puts(text, "the serial share by Karp and Flatt rises from ");
    marey__text_share(text, fmax(first->karp_flatt, 0));
    marey__buf_printf(text, " at %u workers to ", first->workers);
    marey__text_share(text, last->karp_flatt);
    marey__buf_printf(text, " at %u: it is overhead that grows with workers, not serial work alone\n",
                      last->workers);
}

/* ---- fits ---- */

static void find_amdahl(struct marey__buf *text, const struct marey__scaling_series *series)
{
    const struct marey__scaling_fit *fit = &series->fits[MAREY__SCALING_AMDAHL];
    if (!fit->is_fitted || series->fits[MAREY__SCALING_USL].coherency.low > 0)
        return; /* where coherency is sure, Amdahl's limit is no answer */
    marey__scaling_name(text, series);
    marey__buf_puts(text, "by Amdahl's law ");
    marey__text_share(text, fit->serial.value);
    put_between(text, &fit->serial);
    marey__buf_puts(text, " of the work of one worker is serial");
    if (fit->serial.value > 0)
        marey__buf_printf(text, ": no number of workers is more than %.3g times as fast as one",
                          1 / fit->serial.value);
    marey__buf_puts(text, "\n");
}

static void find_usl(struct marey__buf *text, const struct marey__scaling_series *series,
                     const struct marey__scaling_point *last)
{
    const struct marey__scaling_fit *fit = &series->fits[MAREY__SCALING_USL];
    if (!fit->is_fitted || !(fit->coherency.low > 0))
        return;
    marey__scaling_name(text, series);
    marey__buf_printf(text, "by the universal scalability law %.0f workers are fastest",
                      fit->best.value);
    if (isfinite(fit->best.low) && isfinite(fit->best.high))
        marey__buf_printf(text, " (%.0f to %.0f)", fit->best.low, fit->best.high);
    else if (isfinite(fit->best.low))
        marey__buf_printf(text, " (%.0f at least)", fit->best.low);
    if (fit->best.value > last->workers)
        marey__buf_printf(text, "; the most that was measured are %u", last->workers);
    marey__buf_puts(text, "\n");
}

void marey__scaling_find(struct marey__buf *text, const struct marey__scaling *scaling,
                         const struct marey__scaling_series *series)
{
    const struct marey__scaling_point *points = &scaling->points[series->first];
    if (series->n < 2)
        return;
    find_too_good(text, series, points);
    find_trend(text, series, points);
    find_amdahl(text, series);
    find_usl(text, series, &points[series->n - 1]);
}
