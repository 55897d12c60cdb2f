/* Runs into series, by experiment and strategy, and into points, by workers. */
#include <math.h>
#include <string.h>

#include "analyze/scaling/internal.h"

/* ---- order ---- */

/* By name, too: the order in which runs were read then changes nothing. */
static bool is_before(const void *a, const void *b)
{
    const struct marey__scaling_member *x = a, *y = b;
    if (x->series != y->series)
        return x->series < y->series;
    if (x->run->workers != y->run->workers)
        return x->run->workers < y->run->workers;
    return strcmp(x->run->name, y->run->name) < 0;
}

/* Series are numbered in the order of their first run. */
static bool number_series(struct marey__scaling *scaling, struct marey__names *names,
                          struct marey__arena *keys)
{
    struct marey__buf key = {0};
    bool done = true;
    for (size_t i = 0; done && i < scaling->n_members; i++) {
        struct marey__scaling_member *member = &scaling->members[i];
        key.len = 0;
        marey__buf_put(&key, member->run->experiment, strlen(member->run->experiment) + 1);
        marey__buf_puts(&key, member->run->strategy);
        const char *kept = key.failed ? NULL : marey__arena_text(keys, key.data, key.len);
        member->series = kept != NULL ? marey__names_number(names, kept, key.len) : MAREY__NO_NAME;
        done = member->series != MAREY__NO_NAME;
    }
    marey__buf_fini(&key);
    return done;
}

/* ---- what is known of a point ---- */

static double middle_of(const struct marey__scaling *scaling,
                        const struct marey__scaling_point *point,
                        double (*of)(const struct marey__scaling_run *run))
{
    double sum = 0, n = 0;
    for (size_t i = point->first; i < point->first + point->n; i++) {
        const double value = of(scaling->members[i].run);
        sum += isfinite(value) ? value : 0;
        n += isfinite(value);
    }
    return n > 0 ? sum / n : NAN;
}

#define FIELD(name)                                                                                \
    static double name##_of(const struct marey__scaling_run *run)                                  \
    {                                                                                              \
        return run->name;                                                                          \
    }
FIELD(utilization)
FIELD(computation_fraction)
FIELD(computation_vs_communication)

static double samples_per_epoch_of(const struct marey__scaling_run *run)
{
    return run->samples_per_epoch > 0 ? run->samples_per_epoch : NAN;
}

static double batch_of(const struct marey__scaling_run *run)
{
    return run->batch > 0 ? run->batch : NAN;
}

/* A part of a step, of runs that know all four: means of them still add up. */
static double part(const struct marey__scaling_run *run, double seconds)
{
    return isfinite(run->compute_s + run->communication_s + run->memory_s + run->idle_s) ? seconds
                                                                                         : NAN;
}
#define PART(name)                                                                                 \
    static double name##_of(const struct marey__scaling_run *run)                                  \
    {                                                                                              \
        return part(run, run->name);                                                               \
    }
PART(compute_s)
PART(communication_s)
PART(memory_s)
PART(idle_s)

static void describe(const struct marey__scaling *scaling, struct marey__scaling_point *point)
{
    point->workers = scaling->members[point->first].run->workers;
    point->nodes = scaling->members[point->first].run->nodes;
    for (size_t i = 1; i < point->n; i++)
        if (scaling->members[point->first + i].run->nodes != point->nodes)
            point->nodes = 0;
    point->samples_per_epoch = middle_of(scaling, point, samples_per_epoch_of);
    point->batch = middle_of(scaling, point, batch_of);
    point->utilization = middle_of(scaling, point, utilization_of);
    point->computation_fraction = middle_of(scaling, point, computation_fraction_of);
    point->computation_vs_communication = middle_of(scaling, point, computation_vs_communication_of);
    point->compute_s = middle_of(scaling, point, compute_s_of);
    point->communication_s = middle_of(scaling, point, communication_s_of);
    point->memory_s = middle_of(scaling, point, memory_s_of);
    point->idle_s = middle_of(scaling, point, idle_s_of);
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
        if (!marey__scaling_values_read(member, scaling->options.with_first != 0))
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
        points[i] = points[n_kept]; /* the two change places: those without a time go behind */
        points[n_kept++] = point;
    }
    series->n_without = series->n - n_kept;
    series->n = n_kept;
}
