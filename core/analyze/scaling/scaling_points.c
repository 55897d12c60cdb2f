/* A point against the baseline of its series: the same work or more of it, how much faster, how much of the ideal. */
#include <math.h>
#include <string.h>

#include "analyze/scaling/internal.h"

/* Ranks round their share of the samples up or down; by less than this, two amounts of work are the same. */
#define SAME_WORK 0.05

static double samples_of(const struct marey__scaling_point *point, enum marey__scaling_measure measure)
{
    return measure == MAREY__SCALING_STEP ? point->batch : point->samples_per_epoch;
}

/* How far, on the logarithm, the work is from being the same, and from growing as workers do. */
struct distances {
    double strong, weak;
    size_t n; /* points besides the baseline whose work is known */
};

static struct distances measure_work(const struct marey__scaling_point *points, size_t n,
                                     enum marey__scaling_measure measure)
{
    struct distances distances = {0};
    for (size_t i = 1; i < n; i++) {
        const double more = log(samples_of(&points[i], measure) / samples_of(&points[0], measure));
        if (isnan(more))
            continue;
        const double workers = log((double)points[i].workers / points[0].workers);
        distances.strong = fmax(distances.strong, fabs(more));
        distances.weak = fmax(distances.weak, fabs(more - workers));
        distances.n++;
    }
    return distances;
}

static enum marey__scaling_kind kind_of(const struct marey__scaling_point *points, size_t n,
                                        enum marey__scaling_measure measure, const char *asked)
{
    if (asked != NULL)
        return strcmp(asked, "weak") == 0 ? MAREY__SCALING_WEAK : MAREY__SCALING_STRONG;
    const struct distances distances = measure_work(points, n, measure);
    if (distances.n == 0)
        return MAREY__SCALING_UNKNOWN;
    if (fmin(distances.strong, distances.weak) > SAME_WORK)
        return MAREY__SCALING_MIXED;
    return distances.strong <= distances.weak ? MAREY__SCALING_STRONG : MAREY__SCALING_WEAK;
}

static double work_of(const struct marey__scaling_point *point,
                      const struct marey__scaling_point *baseline, enum marey__scaling_kind kind,
                      enum marey__scaling_measure measure)
{
    if (kind == MAREY__SCALING_WEAK)
        return (double)point->workers / baseline->workers;
    if (kind == MAREY__SCALING_MIXED)
        return samples_of(point, measure) / samples_of(baseline, measure);
    return 1;
}

/* ---- speedup ---- */

/* Welch and Satterthwaite's degrees of freedom of a difference. */
static double joint_df(const struct marey__scaling_level *a, const struct marey__scaling_level *b)
{
    const double x = a->error * a->error, y = b->error * b->error;
    if (a->is_common || !(x + y > 0))
        return a->df;
    return (x + y) * (x + y) / (x * x / fmax(a->df, 1) + y * y / fmax(b->df, 1));
}

static void compare_point(const struct marey__scaling *scaling,
                          const struct marey__scaling_series *series,
                          const struct marey__scaling_point *baseline,
                          struct marey__scaling_point *point)
{
    const struct marey__scaling_level *time = marey__scaling_time(series, point),
                                      *first = marey__scaling_time(series, baseline);
    const double ideal = (double)point->workers / baseline->workers;
    point->ideal = ideal;
    point->karp_flatt = point->karp_flatt_error = NAN;
    const double sure = time->is_common ? 1 : NAN;
    point->speedup = (struct marey__scaling_level){.value = 1, .low = sure, .high = sure};
    if (point == baseline)
        return;
    point->speedup.value = first->value / time->value * point->work;
    point->speedup.error = sqrt(first->error * first->error + time->error * time->error);
    point->speedup.df = joint_df(first, time);
    point->speedup.low = point->speedup.high = NAN;
    if (series->n > 2) /* one value alone tells nothing: its trend does */
        point->karp_flatt = (1 / point->speedup.value - 1 / ideal) / (1 - 1 / ideal);
    if (!time->is_common || isnan(point->speedup.error))
        return; /* without repeats nothing shows how much runs differ */
    marey__scaling_level_bound(&point->speedup, scaling->options.confidence);
    point->karp_flatt_error = point->speedup.error / point->speedup.value / (1 - 1 / ideal);
}

void marey__scaling_compare_points(const struct marey__scaling *scaling,
                                   struct marey__scaling_series *series)
{
    struct marey__scaling_point *points = &scaling->points[series->first];
    const char *asked = scaling->options.kind;
    series->kind = kind_of(points, series->n, series->measure, asked);
    series->epoch_kind = kind_of(points, series->n, MAREY__SCALING_EPOCH, asked);
    for (size_t i = 0; i < series->n; i++) {
        points[i].work = work_of(&points[i], &points[0], series->kind, series->measure);
        points[i].epoch_work =
            work_of(&points[i], &points[0], series->epoch_kind, MAREY__SCALING_EPOCH);
        compare_point(scaling, series, &points[0], &points[i]);
    }
}
