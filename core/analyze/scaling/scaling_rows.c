/* Points, fits and runs as rows. */
#include <math.h>
#include <string.h>

#include "analyze/scaling/internal.h"

static const char *const model_names[MAREY__N_SCALING_MODELS] = {"amdahl", "usl"};

/* ---- cells ---- */

static void put(marey_table *table, double value)
{
    if (isfinite(value))
        marey_table_f64(table, value);
    else
        marey_table_null(table);
}

static void put_level(marey_table *table, const struct marey__scaling_level *level)
{
    put(table, level->value);
    put(table, level->low);
    put(table, level->high);
}

static void put_interval(marey_table *table, const struct marey__scaling_interval *interval)
{
    put(table, interval->value);
    put(table, interval->low);
    put(table, interval->high);
}

static void put_series(marey_table *table, const struct marey__scaling_series *series)
{
    marey__put_string(table, series->experiment);
    marey__put_string(table, series->strategy);
}

static void put_nulls(marey_table *table, size_t n)
{
    for (size_t i = 0; i < n; i++)
        marey_table_null(table);
}

/* ---- points ---- */

static double samples_per_s(const struct marey__scaling_point *point)
{
    const double by_epoch = point->samples_per_epoch / point->levels[MAREY__SCALING_EPOCH].value;
    return isnan(by_epoch) ? point->batch / point->levels[MAREY__SCALING_STEP].value : by_epoch;
}

static void put_energy(marey_table *table, const struct marey__scaling_point *point,
                       const struct marey__scaling_point *baseline)
{
    const struct marey__scaling_level *joules = &point->levels[MAREY__SCALING_JOULES];
    put_level(table, joules);
    put(table, joules->value / point->samples_per_epoch);
    put(table, baseline->levels[MAREY__SCALING_JOULES].value / joules->value * point->epoch_work);
    put(table, joules->value * point->levels[MAREY__SCALING_EPOCH].value);
}

static void put_point(marey_table *table, const struct marey__scaling *scaling,
                      const struct marey__scaling_series *series,
                      const struct marey__scaling_point *point)
{
    static const char *const kinds[] = {"strong", "weak", "mixed", "unknown"};
    const struct marey__scaling_level *time = marey__scaling_time(series, point);
    const bool is_step = series->measure == MAREY__SCALING_STEP;
    put_series(table, series);
    marey_table_u64(table, point->workers);
    if (point->nodes != 0)
        marey_table_u64(table, point->nodes);
    else
        marey_table_null(table);
    marey_table_u64(table, time->n_runs);
    marey_table_u64(table, point->levels[MAREY__SCALING_EPOCH].n_values);
    marey__put_string(table, kinds[series->kind]);
    put_level(table, time);
    put_level(table, &point->levels[MAREY__SCALING_STEP]);
    put(table, is_step ? point->batch / time->value : samples_per_s(point));
    put_level(table, &point->speedup);
    put(table, point->ideal);
    put(table, point->speedup.value / point->ideal);
    put(table, point->speedup.low / point->ideal);
    put(table, point->speedup.high / point->ideal);
    put(table, point->karp_flatt);
    put(table, point->compute_s);
    put(table, point->communication_s);
    put(table, point->memory_s);
    put(table, point->idle_s);
    put_energy(table, point, &scaling->points[series->first]);
    put(table, point->workers * time->value / 3600);
    put(table, point->utilization);
    put(table, point->computation_fraction);
    put(table, point->computation_vs_communication);
    put(table, time->n_runs > 1 ? time->spread : NAN);
    marey_table_bool(table, marey__scaling_disagrees(scaling, time));
    marey__put_string(table, is_step ? "step" : "epoch");
    put(table, is_step ? point->batch : point->samples_per_epoch);
}

/* ---- fits ---- */

static void put_fit(marey_table *table, const struct marey__scaling_series *series,
                    enum marey__scaling_model model)
{
    const struct marey__scaling_fit *fit = &series->fits[model];
    put_series(table, series);
    marey__put_string(table, model_names[model]);
    if (model == MAREY__SCALING_AMDAHL) {
        put_interval(table, &fit->serial);
        put_nulls(table, 6);
    } else {
        put_nulls(table, 3);
        put_interval(table, &fit->serial);
        put_interval(table, &fit->coherency);
    }
    marey_table_u64(table, fit->n_points);
    put(table, fit->residual);
    put_interval(table, &fit->best);
    marey__put_string(table, fit->reason != NULL ? fit->reason : "");
    put(table, fit->is_fitted ? fit->curve.parallel_s + fit->curve.serial_s : NAN);
}

static void put_forecast(marey_table *table, const struct marey__scaling *scaling,
                         const struct marey__scaling_series *series, enum marey__scaling_model model)
{
    const struct marey__scaling_point *baseline = &scaling->points[series->first];
    const struct marey__scaling_fit *fit = &series->fits[model];
    for (size_t i = 0; fit->is_fitted && i < marey__scaling_n_asked(scaling); i++) {
        const double workers = marey__scaling_asked(scaling, series, i),
                     work = marey__scaling_work_at(series, baseline, workers),
                     speedup = marey__scaling_unit_s(series, baseline) / fit->forecast[i].value;
        put_series(table, series);
        marey__put_string(table, model_names[model]);
        marey_table_u64(table, (uint64_t)workers);
        put(table, fit->forecast[i].value * work);
        put(table, fit->forecast[i].low * work);
        put(table, fit->forecast[i].high * work);
        put(table, speedup * baseline->workers / workers);
        put(table, speedup);
    }
}

/* ---- the best ---- */

static double seconds_of(const struct marey__scaling_series *series,
                         const struct marey__scaling_point *point)
{
    return marey__scaling_unit_s(series, point);
}

static double joules_of(const struct marey__scaling_series *series,
                        const struct marey__scaling_point *point)
{
    (void)series;
    return point->levels[MAREY__SCALING_JOULES].value / point->epoch_work;
}

static double energy_delay_of(const struct marey__scaling_series *series,
                              const struct marey__scaling_point *point)
{
    return joules_of(series, point) * point->levels[MAREY__SCALING_EPOCH].value / point->epoch_work;
}

static void put_best_row(marey_table *table, const struct marey__scaling_series *series,
                         const char *what, double workers, double value, bool is_measured)
{
    put_series(table, series);
    marey__put_string(table, what);
    marey_table_u64(table, (uint64_t)workers);
    put(table, value);
    marey_table_bool(table, is_measured);
}

/* The lowest; nothing to choose from gives no row. */
static void put_best(marey_table *table, const struct marey__scaling *scaling,
                     const struct marey__scaling_series *series, const char *what,
                     double (*of)(const struct marey__scaling_series *series,
                                  const struct marey__scaling_point *point))
{
    const struct marey__scaling_point *best = NULL;
    size_t n = 0;
    for (size_t i = series->first; i < series->first + series->n; i++) {
        const struct marey__scaling_point *point = &scaling->points[i];
        const double value = of(series, point);
        n += !isnan(value);
        if (!isnan(value) && (best == NULL || value < of(series, best)))
            best = point;
    }
    if (n > 1)
        put_best_row(table, series, what, best->workers, of(series, best), true);
}

static void put_fitted_best(marey_table *table, const struct marey__scaling *scaling,
                            const struct marey__scaling_series *series)
{
    const struct marey__scaling_fit *fit = &series->fits[MAREY__SCALING_USL];
    const uint32_t most = scaling->points[series->first + series->n - 1].workers;
    if (!fit->is_fitted || !(fit->best.value <= (double)most * MAREY__SCALING_FURTHEST))
        return;
    const double below = floor(fit->best.value),
                 below_s = marey__scaling_curve_at(&fit->curve, below),
                 above_s = marey__scaling_curve_at(&fit->curve, below + 1);
    put_best_row(table, series, "time", above_s < below_s ? below + 1 : below,
                 fmin(below_s, above_s), false);
}

/* ---- runs, and all ---- */

static void put_run(marey_table *table, const struct marey__scaling_member *member)
{
    const struct marey__scaling_run *run = member->run;
    marey__put_string(table, run->experiment);
    marey__put_string(table, run->strategy);
    marey_table_u64(table, run->workers);
    marey__put_string(table, run->name);
    marey_table_u64(table, member->values[MAREY__SCALING_EPOCH].n);
    put(table, member->values[MAREY__SCALING_EPOCH].median);
    put(table, member->values[MAREY__SCALING_STEP].median);
    put(table, run->joules);
    marey_table_bool(table, run->is_partial != 0);
}

static void put_all(struct marey__scaling *scaling, const struct marey__scaling_series *series)
{
    marey_table *const *tables = scaling->tables;
    for (size_t i = 0; i < series->n; i++)
        put_point(tables[MAREY__SCALING_POINTS], scaling, series,
                  &scaling->points[series->first + i]);
    if (series->n == 0)
        return;
    for (unsigned model = 0; model < MAREY__N_SCALING_MODELS; model++) {
        put_fit(tables[MAREY__SCALING_FITS], series, model);
        put_forecast(tables[MAREY__SCALING_FORECAST], scaling, series, model);
    }
    marey_table *best = tables[MAREY__SCALING_BEST];
    put_best(best, scaling, series, "time", seconds_of);
    put_fitted_best(best, scaling, series);
    put_best(best, scaling, series, "energy", joules_of);
    put_best(best, scaling, series, "energy_delay", energy_delay_of);
}

void marey__scaling_put_rows(struct marey__scaling *scaling)
{
    for (size_t i = 0; i < scaling->n_series; i++)
        put_all(scaling, &scaling->series[i]);
    for (size_t i = 0; i < scaling->n_members; i++)
        put_run(scaling->tables[MAREY__SCALING_RUNS], &scaling->members[i]);
}
