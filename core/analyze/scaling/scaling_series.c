/*
 * Groups runs into series, by experiment and strategy, and into points, by workers; computes speedup and efficiency of
 * the points.
 *
 * The first epoch of a run is warm-up and does not count unless there is no other. The rest of a run is kept as a
 * median and a few units to resample.
 */
#include <math.h>
#include <string.h>

#include "analyze/compare/internal.h"
#include "analyze/scaling/internal.h"

/* Neighboring steps are correlated, medians of long blocks hardly (docs/internals/compare.md). */
enum { N_BLOCKS = 16 };

/* `scratch` has space for `n` values. */
static void fill(struct marey__scaling_values *values, const double *list, size_t n, double *scratch)
{
    values->n = n;
    values->n_units = n <= MAREY__SCALING_UNITS ? n : N_BLOCKS;
    for (size_t i = 0; i < values->n_units; i++) {
        const size_t from = n * i / values->n_units, to = n * (i + 1) / values->n_units;
        memcpy(scratch, list + from, (to - from) * sizeof *list);
        values->units[i] = marey__median(scratch, to - from);
    }
    (void)marey__median(values->units, values->n_units); /* sorts them */
    memcpy(scratch, list, n * sizeof *list);
    values->median = marey__median(scratch, n);
}

/* Take the positive and finite values of `list`, which may be NULL. Returns false on out of memory. */
static bool take(struct marey__scaling_values *values, const double *list, size_t n)
{
    *values = (struct marey__scaling_values){.median = NAN};
    if (list == NULL || n == 0)
        return true;
    double *const known MAREY__FREED = marey__calloc(2 * n, sizeof *known);
    if (known == NULL)
        return false;
    size_t n_known = 0;
    for (size_t i = 0; i < n; i++) {
        known[n_known] = list[i];
        n_known += list[i] > 0 && !isinf(list[i]);
    }
    if (n_known != 0)
        fill(values, known, n_known, known + n);
    return true;
}

/* Returns false on out of memory. */
static bool read_values(struct marey__scaling_member *member, bool with_first)
{
    const struct marey__scaling_run *run = member->run;
    const bool skips = !with_first && run->first_epoch_counts == 0;
    member->has_only_first = skips && run->n_epochs == 1;
    const size_t from = skips && run->n_epochs > 1 ? 1 : 0, n = run->n_epochs - from;
    struct marey__scaling_values *values = member->values;
    if (!take(&values[MAREY__SCALING_EPOCH], run->epoch_s != NULL ? run->epoch_s + from : NULL, n) ||
        !take(&values[MAREY__SCALING_STEP], run->step_s, run->n_steps) ||
        !take(&values[MAREY__SCALING_JOULES], run->epoch_j != NULL ? run->epoch_j + from : NULL, n))
        return false;
    if (values[MAREY__SCALING_JOULES].n != 0 || run->n_epochs == 0)
        return true;
    const double joules_of_epoch = run->numbers.joules / (double)run->n_epochs;
    if (!take(&values[MAREY__SCALING_JOULES], &joules_of_epoch, 1))
        return false;
    member->has_joules_of_whole = values[MAREY__SCALING_JOULES].n != 0;
    return true;
}

/* ---- order ---- */

/* Also by name, so that the order of reading does not matter. */
MAREY__ORDER_RUNS(is_before, struct marey__scaling_member,
                  MAREY__UP(series) MAREY__UP(run->workers)
                      MAREY__UP_BY(strcmp(x->run->name, y->run->name), 0))

/* Series are numbered in the order of their first run. */
static bool number_series(struct marey__scaling *scaling, struct marey__names *names,
                          struct marey__arena *keys)
{
    struct marey__buf key MAREY__FINALLY(marey__buf_fini) = {0};
    for (size_t i = 0; i < scaling->n_members; i++) {
        struct marey__scaling_member *member = &scaling->members[i];
        key.len = 0;
        marey__buf_put(&key, member->run->experiment, strlen(member->run->experiment) + 1);
        marey__buf_puts(&key, member->run->strategy);
        member->series =
            key.failed ? MAREY__NO_NAME : marey__names_keep(names, keys, key.data, key.len);
        if (member->series == MAREY__NO_NAME)
            return false;
    }
    return true;
}

/* ---- means of a point ---- */

/* A part of a step counts only if the run has all four, so that their means still add up. */
static double number_of(const struct marey__scaling_run *run, size_t number)
{
    const union marey__scaling_numbers *of = &run->numbers;
    const double value = of->all[number];
    if (number < MAREY__SCALING_FIRST_PART) /* samples_per_epoch, batch */
        return value > 0 ? value : NAN;
    if (number < MAREY__SCALING_FIRST_PART + MAREY__SCALING_PARTS)
        return isfinite(of->compute_s + of->communication_s + of->memory_s + of->idle_s) ? value
                                                                                         : NAN;
    return value;
}

static void describe(const struct marey__scaling *scaling, struct marey__scaling_point *point)
{
    const struct marey__scaling_member *members = &scaling->members[point->first];
    point->workers = members[0].run->workers;
    point->nodes = members[0].run->nodes;
    for (size_t i = 1; i < point->n; i++)
        if (members[i].run->nodes != point->nodes)
            point->nodes = 0;
    for (size_t number = 0; number < MAREY__SCALING_NUMBERS; number++) {
        double sum = 0, n = 0;
        for (size_t i = 0; i < point->n; i++) {
            const double value = number_of(members[i].run, number);
            sum += isfinite(value) ? value : 0;
            n += isfinite(value);
        }
        point->numbers.all[number] = n > 0 ? sum / n : NAN;
    }
}

/* ---- grouping ---- */

static void add_member(struct marey__scaling *scaling, size_t i)
{
    const struct marey__scaling_member *member = &scaling->members[i];
    const bool is_new_series = i == 0 || member->series != member[-1].series;
    if (is_new_series)
        scaling->series[scaling->n_series++] = (struct marey__scaling_series){
            .experiment = member->run->experiment,
            .strategy = member->run->strategy,
            .first = scaling->n_points,
        };
    if (is_new_series || member->run->workers != member[-1].run->workers) {
        scaling->points[scaling->n_points++] = (struct marey__scaling_point){.first = i};
        scaling->series[scaling->n_series - 1].n++;
    }
    scaling->points[scaling->n_points - 1].n++;
}

static bool make_members(struct marey__scaling *scaling)
{
    for (size_t i = 0; i < scaling->runs->n; i++) {
        struct marey__scaling_member *member = &scaling->members[scaling->n_members++];
        member->run = &scaling->runs->list[i];
        if (!read_values(member, scaling->options.with_first != 0))
            return false;
    }
    struct marey__names names = {0};
    struct marey__arena keys = {0};
    const bool done =
        number_series(scaling, &names, &keys) &&
        marey__sort_runs(scaling->members, scaling->n_members, sizeof *scaling->members, is_before);
    marey__names_fini(&names);
    marey__arena_fini(&keys);
    return done;
}

marey_status marey__scaling_group(struct marey__scaling *scaling)
{
    const size_t n = scaling->runs->n;
    scaling->members = marey__calloc(n, sizeof *scaling->members);
    scaling->points = marey__calloc(n, sizeof *scaling->points);
    scaling->series = marey__calloc(n, sizeof *scaling->series);
    MAREY__TRY_MEMORY(scaling->members != NULL && scaling->points != NULL &&
                      scaling->series != NULL && make_members(scaling));
    for (size_t i = 0; i < n; i++)
        add_member(scaling, i);
    for (size_t i = 0; i < scaling->n_points; i++)
        describe(scaling, &scaling->points[i]);
    return MAREY_OK;
}

/* ---- the measure ---- */

static size_t count_points(const struct marey__scaling *scaling,
                           const struct marey__scaling_series *series,
                           enum marey__scaling_measure measure)
{
    size_t n = 0;
    for (size_t i = series->first; i < series->first + series->n; i++)
        n += scaling->points[i].levels[measure].n_runs != 0;
    return n;
}

void marey__scaling_choose(const struct marey__scaling *scaling, struct marey__scaling_series *series)
{
    const char *asked = scaling->options.measure;
    const size_t n_epoch = count_points(scaling, series, MAREY__SCALING_EPOCH),
                 n_step = count_points(scaling, series, MAREY__SCALING_STEP);
    const bool by_step = asked != NULL ? strcmp(asked, "step") == 0 : n_step > n_epoch;
    series->measure = by_step ? MAREY__SCALING_STEP : MAREY__SCALING_EPOCH;
    struct marey__scaling_point *points = &scaling->points[series->first];
    size_t n_kept = 0;
    for (size_t i = 0; i < series->n; i++) {
        const struct marey__scaling_point point = points[i];
        if (point.levels[series->measure].n_runs == 0)
            continue;
        points[i] = points[n_kept]; /* swapped, so that points without a time come last */
        points[n_kept++] = point;
    }
    series->n_without = series->n - n_kept;
    series->n = n_kept;
}

/* ---- points relative to the baseline ---- */

/* Ranks round their share of the samples; smaller differences of work are ignored. */
#define SAME_WORK 0.05

static double samples_of(const struct marey__scaling_point *point, enum marey__scaling_measure measure)
{
    return measure == MAREY__SCALING_STEP ? point->numbers.batch : point->numbers.samples_per_epoch;
}

/* Logarithmic distances from constant work, and from work proportional to workers. */
struct distances {
    double strong, weak;
    size_t n; /* points besides the baseline with known work */
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

/* Welch-Satterthwaite degrees of freedom of a difference. */
static double joint_df(const struct marey__scaling_level *a, const struct marey__scaling_level *b)
{
    const double x = a->error * a->error, y = b->error * b->error;
    if (a->is_common || !(x + y > 0))
        return a->df;
    return (x + y) * (x + y) / (x * x / fmax(a->df, 1) + y * y / fmax(b->df, 1));
}

static void compare_point(const struct marey__scaling_series *series,
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
    if (series->n > 2) /* a single value is unreliable: use the trend */
        point->karp_flatt = (1 / point->speedup.value - 1 / ideal) / (1 - 1 / ideal);
    if (!time->is_common || isnan(point->speedup.error))
        return; /* without repeats, the variation between runs is unknown */
    marey__scaling_level_bound(&point->speedup);
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
        compare_point(series, &points[0], &points[i]);
    }
}
