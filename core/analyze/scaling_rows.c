/* Points, fits and runs as rows. */
#include <math.h>
#include <string.h>

#include "analyze/scaling_whole.h"

static const char *const model_names[KYMO__N_SCALING_MODELS] = {"amdahl", "usl"};

/* ---- cells ---- */

static void put(kymo_table *table, double value)
{
    if (isfinite(value))
        kymo_table_f64(table, value);
    else
        kymo_table_null(table);
}

static void put_level(kymo_table *table, const struct kymo__scaling_level *level)
{
    put(table, level->value);
    put(table, level->low);
    put(table, level->high);
}

static void put_interval(kymo_table *table, const struct kymo__scaling_interval *interval)
{
    put(table, interval->value);
    put(table, interval->low);
    put(table, interval->high);
}

static void put_series(kymo_table *table, const struct kymo__scaling_series *series)
{
    kymo__put_string(table, series->experiment);
    kymo__put_string(table, series->strategy);
}

static void put_nulls(kymo_table *table, size_t n)
{
    for (size_t i = 0; i < n; i++)
        kymo_table_null(table);
}

/* ---- points ---- */

static double samples_per_s(const struct kymo__scaling_point *point)
{
    const double by_epoch = point->samples_per_epoch / point->levels[KYMO__SCALING_EPOCH].value;
    return isnan(by_epoch) ? point->batch / point->levels[KYMO__SCALING_STEP].value : by_epoch;
}

static void put_energy(kymo_table *table, const struct kymo__scaling_point *point,
                       const struct kymo__scaling_point *baseline)
{
    const struct kymo__scaling_level *joules = &point->levels[KYMO__SCALING_JOULES];
    put_level(table, joules);
    put(table, joules->value / point->samples_per_epoch);
    put(table, baseline->levels[KYMO__SCALING_JOULES].value / joules->value * point->epoch_work);
    put(table, joules->value * point->levels[KYMO__SCALING_EPOCH].value);
}

static void put_point(kymo_table *table, const struct kymo_scaling *scaling,
                      const struct kymo__scaling_series *series,
                      const struct kymo__scaling_point *point)
{
    static const char *const kinds[] = {"strong", "weak", "mixed", "unknown"};
    const struct kymo__scaling_level *time = kymo__scaling_time(series, point);
    const bool is_step = series->measure == KYMO__SCALING_STEP;
    put_series(table, series);
    kymo_table_u64(table, point->workers);
    if (point->nodes != 0)
        kymo_table_u64(table, point->nodes);
    else
        kymo_table_null(table);
    kymo_table_u64(table, time->n_runs);
    kymo_table_u64(table, point->levels[KYMO__SCALING_EPOCH].n_values);
    kymo__put_string(table, kinds[series->kind]);
    put_level(table, time);
    put_level(table, &point->levels[KYMO__SCALING_STEP]);
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
    kymo_table_bool(table, kymo__scaling_disagrees(scaling, time));
    kymo__put_string(table, is_step ? "step" : "epoch");
    put(table, is_step ? point->batch : point->samples_per_epoch);
}

/* ---- fits ---- */

static void put_fit(kymo_table *table, const struct kymo__scaling_series *series,
                    enum kymo__scaling_model model)
{
    const struct kymo__scaling_fit *fit = &series->fits[model];
    put_series(table, series);
    kymo__put_string(table, model_names[model]);
    if (model == KYMO__SCALING_AMDAHL) {
        put_interval(table, &fit->serial);
        put_nulls(table, 6);
    } else {
        put_nulls(table, 3);
        put_interval(table, &fit->serial);
        put_interval(table, &fit->coherency);
    }
    kymo_table_u64(table, fit->n_points);
    put(table, fit->residual);
    put_interval(table, &fit->best);
    kymo__put_string(table, fit->reason != NULL ? fit->reason : "");
    put(table, fit->is_fitted ? fit->curve.parallel_s + fit->curve.serial_s : NAN);
}

static void put_forecast(kymo_table *table, const struct kymo_scaling *scaling,
                         const struct kymo__scaling_series *series, enum kymo__scaling_model model)
{
    const struct kymo__scaling_point *baseline = &scaling->points[series->first];
    const struct kymo__scaling_fit *fit = &series->fits[model];
    for (size_t i = 0; fit->is_fitted && i < kymo__scaling_n_asked(scaling); i++) {
        const double workers = kymo__scaling_asked(scaling, series, i),
                     work = kymo__scaling_work_at(series, baseline, workers),
                     speedup = kymo__scaling_unit_s(series, baseline) / fit->forecast[i].value;
        put_series(table, series);
        kymo__put_string(table, model_names[model]);
        kymo_table_u64(table, (uint64_t)workers);
        put(table, fit->forecast[i].value * work);
        put(table, fit->forecast[i].low * work);
        put(table, fit->forecast[i].high * work);
        put(table, speedup * baseline->workers / workers);
        put(table, speedup);
    }
}

/* ---- the best ---- */

static double seconds_of(const struct kymo__scaling_series *series,
                         const struct kymo__scaling_point *point)
{
    return kymo__scaling_unit_s(series, point);
}

static double joules_of(const struct kymo__scaling_series *series,
                        const struct kymo__scaling_point *point)
{
    (void)series;
    return point->levels[KYMO__SCALING_JOULES].value / point->epoch_work;
}

static double energy_delay_of(const struct kymo__scaling_series *series,
                              const struct kymo__scaling_point *point)
{
    return joules_of(series, point) * point->levels[KYMO__SCALING_EPOCH].value / point->epoch_work;
}

static void put_best_row(kymo_table *table, const struct kymo__scaling_series *series,
                         const char *what, double workers, double value, bool is_measured)
{
    put_series(table, series);
    kymo__put_string(table, what);
    kymo_table_u64(table, (uint64_t)workers);
    put(table, value);
    kymo_table_bool(table, is_measured);
}

/* The lowest; nothing to choose from gives no row. */
static void put_best(kymo_table *table, const struct kymo_scaling *scaling,
                     const struct kymo__scaling_series *series, const char *what,
                     double (*of)(const struct kymo__scaling_series *series,
                                  const struct kymo__scaling_point *point))
{
    const struct kymo__scaling_point *best = NULL;
    size_t n = 0;
    for (size_t i = series->first; i < series->first + series->n; i++) {
        const struct kymo__scaling_point *point = &scaling->points[i];
        const double value = of(series, point);
        n += !isnan(value);
        if (!isnan(value) && (best == NULL || value < of(series, best)))
            best = point;
    }
    if (n > 1)
        put_best_row(table, series, what, best->workers, of(series, best), true);
}

static void put_fitted_best(kymo_table *table, const struct kymo_scaling *scaling,
                            const struct kymo__scaling_series *series)
{
    const struct kymo__scaling_fit *fit = &series->fits[KYMO__SCALING_USL];
    const uint32_t most = scaling->points[series->first + series->n - 1].workers;
    if (!fit->is_fitted || !(fit->best.value <= (double)most * KYMO__SCALING_FURTHEST))
        return;
    const double below = floor(fit->best.value),
                 below_s = kymo__scaling_curve_at(&fit->curve, below),
                 above_s = kymo__scaling_curve_at(&fit->curve, below + 1);
    put_best_row(table, series, "time", above_s < below_s ? below + 1 : below,
                 fmin(below_s, above_s), false);
}

/* ---- runs, and all ---- */

static void put_run(kymo_table *table, const struct kymo__scaling_member *member)
{
    const struct kymo_scaling_run *run = member->run;
    kymo__put_string(table, run->experiment);
    kymo__put_string(table, run->strategy);
    kymo_table_u64(table, run->workers);
    kymo__put_string(table, run->name);
    kymo_table_u64(table, member->values[KYMO__SCALING_EPOCH].n);
    put(table, member->values[KYMO__SCALING_EPOCH].median);
    put(table, member->values[KYMO__SCALING_STEP].median);
    put(table, run->joules);
    kymo_table_bool(table, run->is_partial != 0);
}

static void put_all(struct kymo_scaling *scaling, const struct kymo__scaling_series *series)
{
    kymo_table *const *tables = scaling->tables;
    for (size_t i = 0; i < series->n; i++)
        put_point(tables[KYMO__SCALING_POINTS], scaling, series, &scaling->points[series->first + i]);
    if (series->n == 0)
        return;
    for (unsigned model = 0; model < KYMO__N_SCALING_MODELS; model++) {
        put_fit(tables[KYMO__SCALING_FITS], series, model);
        put_forecast(tables[KYMO__SCALING_FORECAST], scaling, series, model);
    }
    kymo_table *best = tables[KYMO__SCALING_BEST];
    put_best(best, scaling, series, "time", seconds_of);
    put_fitted_best(best, scaling, series);
    put_best(best, scaling, series, "energy", joules_of);
    put_best(best, scaling, series, "energy_delay", energy_delay_of);
}

void kymo__scaling_put_rows(struct kymo_scaling *scaling)
{
    for (size_t i = 0; i < scaling->n_series; i++)
        put_all(scaling, &scaling->series[i]);
    for (size_t i = 0; i < scaling->n_members; i++)
        put_run(scaling->tables[KYMO__SCALING_RUNS], &scaling->members[i]);
}
