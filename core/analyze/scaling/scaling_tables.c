/* The tables of a scaling report: definitions, then rows. */
#include <math.h>
#include <string.h>

#include "analyze/scaling/internal.h"
#include "analyze/walk/internal.h"

#define SERIES TEXT("experiment"), TEXT("strategy")
#define WORKERS COUNT("workers", NULL)
#define INTERVAL(name, low, high) REAL(name, NULL), REAL(low, NULL), REAL(high, NULL)
#define SHARE_INTERVAL(name, low, high) SHARE(name, NULL), SHARE(low, NULL), SHARE(high, NULL)

static const struct marey_column point_columns[] = {
    SERIES,
    WORKERS,
    COUNT("nodes", NULL),
    COUNT("runs", NULL),
    COUNT("epochs", NULL),
    TEXT("kind"),
    INTERVAL("time_s", "low_s", "high_s"),
    INTERVAL("step_s", "step_low_s", "step_high_s"),
    REAL("throughput", "samples/s"),
    INTERVAL("speedup", "speedup_low", "speedup_high"),
    REAL("ideal", NULL),
    SHARE_INTERVAL("efficiency", "efficiency_low", "efficiency_high"),
    SHARE("karp_flatt", "Karp-Flatt"),
    REAL("compute_s", NULL),
    REAL("communication_s", NULL),
    REAL("memory_s", NULL),
    REAL("idle_s", NULL),
    INTERVAL("joules_per_epoch", "joules_low", "joules_high"),
    REAL("joules_per_sample", NULL),
    SHARE("energy_efficiency", NULL),
    REAL("energy_delay", NULL),
    REAL("worker_hours", NULL),
    SHARE("utilization", NULL),
    SHARE("computation_fraction", NULL),
    SHARE("computation_vs_communication", NULL),
    SHARE("spread", NULL),
    FLAG("disagrees"),
    TEXT("measure"),
    REAL("samples", NULL),
};
static const struct marey_column fit_columns[] = {
    SERIES,
    TEXT("model"),
    SHARE_INTERVAL("serial", "serial_low", "serial_high"),
    INTERVAL("contention", "contention_low", "contention_high"),
    INTERVAL("coherency", "coherency_low", "coherency_high"),
    COUNT("points", NULL),
    SHARE("residual", NULL),
    INTERVAL("best_workers", "best_low", "best_high"),
    TEXT("note"),
    REAL("time_one_s", NULL),
};
static const struct marey_column forecast_columns[] = {
    SERIES,
    TEXT("model"),
    WORKERS,
    INTERVAL("time_s", "low_s", "high_s"),
    SHARE("efficiency", NULL),
    REAL("speedup", NULL),
};
static const struct marey_column best_columns[] = {SERIES, TEXT("for"), WORKERS,
                                                   REAL("value", NULL), FLAG("measured")};
static const struct marey_column run_columns[] = {SERIES,
                                                  WORKERS,
                                                  TEXT("run"),
                                                  COUNT("epochs", NULL),
                                                  REAL("median_epoch_s", NULL),
                                                  REAL("median_step_s", NULL),
                                                  REAL("joules", NULL),
                                                  FLAG("partial")};

/*
 * points: time_s is the time of a `measure` ("epoch" or "step"); `samples` are those of one, `throughput` is samples per
 * second. kind: "strong" if every point does the same work, "weak" if work is proportional to workers, "mixed" if it
 * changes otherwise, "unknown" if samples are unknown: the work is then assumed to be the same. `speedup` is the ratio
 * of work per second to the baseline's: T(n0) / T(n) for constant work, and that times n / n0 in
 * weak scaling. `ideal` is n / n0, `efficiency` is speedup / ideal. karp_flatt is the serial share (1/S - 1/p) / (1 - 1/p),
 * p = n / n0; null in a series of two points. Intervals are null in a series without repeats: a single run does not show
 * how much runs differ. energy_efficiency: the baseline's joules for the same work over this point's. energy_delay: joules
 * times seconds of an epoch. worker_hours: workers times time_s. `spread` is the largest minus the smallest of the runs'
 * medians, over the point's.
 *
 * fits: `model` is "amdahl", T(n) = T(1) (serial + (1 - serial) / n), or "usl", T(n) = T(1) (1 + contention (n - 1) +
 * coherency n (n - 1)) / n, of the time for the baseline's work. No parameter is negative. time_one_s is T(1). residual is
 * the root mean square of the points' relative distances. best_workers is the optimum; null
 * if there is none, or may be none: best_low is then its lower bound. A model that cannot be fitted has a
 * row with its reason in `note`.
 *
 * best: `for` is "time" (value: seconds for the baseline's work), "energy" (joules) or "energy_delay" (their product).
 * `measured`: the best of the points; else from the fit of "usl".
 */
const struct marey_table_definition marey__scaling_tables[MAREY__N_SCALING_TABLES] = {
    {"points", point_columns, MAREY__COUNT_OF(point_columns), NULL,
     "time, speedup, efficiency and energy of each number of workers"},
    {"fits", fit_columns, MAREY__COUNT_OF(fit_columns), NULL,
     "Amdahl's law and the universal scalability law for each series"},
    {"forecast", forecast_columns, MAREY__COUNT_OF(forecast_columns), NULL,
     "time and efficiency of other numbers of workers, by the fits"},
    {"best", best_columns, MAREY__COUNT_OF(best_columns), NULL,
     "the best number of workers for time, energy and their product"},
    {"runs", run_columns, MAREY__COUNT_OF(run_columns), NULL, "the runs that were read"},
    {"notes", marey__warning_columns, 1, NULL, "what was left out or assumed"},
};

/* ---- rows ---- */

static const char *const model_names[MAREY__N_SCALING_MODELS] = {"amdahl", "usl"};

/* ---- cells ---- */

/* A level or an interval, with both ends multiplied by `times`. */
#define INTERVAL_OF(of, times)                                                                     \
    FINITE((of)->value *(times)), FINITE((of)->low *(times)), FINITE((of)->high *(times))
#define SERIES_OF(of) STRING((of)->experiment), STRING((of)->strategy)

/* ---- points ---- */

static double samples_per_s(const struct marey__scaling_point *point)
{
    const double by_epoch =
        point->numbers.samples_per_epoch / point->levels[MAREY__SCALING_EPOCH].value;
    return isnan(by_epoch) ? point->numbers.batch / point->levels[MAREY__SCALING_STEP].value
                           : by_epoch;
}

static void put_point(marey_table *table, const struct marey__scaling *scaling,
                      const struct marey__scaling_series *series,
                      const struct marey__scaling_point *point)
{
    static const char *const kinds[] = {"strong", "weak", "mixed", "unknown"};
    const struct marey__scaling_level *const
        levels = point->levels,
        *const time = marey__scaling_time(series, point), *const epoch = &levels[MAREY__SCALING_EPOCH],
        *const joules = &levels[MAREY__SCALING_JOULES], *const speedup = &point->speedup;
    const union marey__scaling_numbers *const of = &point->numbers;
    const double baseline_joules = scaling->points[series->first].levels[MAREY__SCALING_JOULES].value;
    const bool is_step = series->measure == MAREY__SCALING_STEP;
    MAREY__PUT_ROW(
        table, SERIES_OF(series), U64(point->workers), KNOWN(point->nodes != 0, U64(point->nodes)),
        U64(time->n_runs), U64(epoch->n_values), STRING(kinds[series->kind]), INTERVAL_OF(time, 1),
        INTERVAL_OF(&levels[MAREY__SCALING_STEP], 1),
        FINITE(is_step ? of->batch / time->value : samples_per_s(point)), INTERVAL_OF(speedup, 1),
        FINITE(point->ideal), FINITE(speedup->value / point->ideal),
        FINITE(speedup->low / point->ideal), FINITE(speedup->high / point->ideal),
        FINITE(point->karp_flatt), FINITE(of->compute_s), FINITE(of->communication_s),
        FINITE(of->memory_s), FINITE(of->idle_s), INTERVAL_OF(joules, 1),
        FINITE(joules->value / of->samples_per_epoch),
        FINITE(baseline_joules / joules->value * point->epoch_work),
        FINITE(joules->value * epoch->value), FINITE(point->workers * time->value / 3600),
        FINITE(of->utilization), FINITE(of->computation_fraction),
        FINITE(of->computation_vs_communication), KNOWN(time->n_runs > 1, FINITE(time->spread)),
        TRUTH(marey__scaling_disagrees(time)), STRING(is_step ? "step" : "epoch"),
        FINITE(is_step ? of->batch : of->samples_per_epoch));
}

/* ---- fits ---- */

static void put_fit(marey_table *table, const struct marey__scaling_series *series,
                    enum marey__scaling_model model)
{
    static const struct marey__scaling_interval unknown = {NAN, NAN, NAN};
    const struct marey__scaling_fit *fit = &series->fits[model];
    const bool is_amdahl = model == MAREY__SCALING_AMDAHL;
    const struct marey__scaling_interval *const serial = is_amdahl ? &fit->serial : &unknown,
                                                *const contention =
                                                    is_amdahl ? &unknown : &fit->serial,
                                                *const coherency =
                                                    is_amdahl ? &unknown : &fit->coherency;
    MAREY__PUT_ROW(table, SERIES_OF(series), STRING(model_names[model]), INTERVAL_OF(serial, 1),
                   INTERVAL_OF(contention, 1), INTERVAL_OF(coherency, 1), U64(fit->n_points),
                   FINITE(fit->residual), INTERVAL_OF(&fit->best, 1),
                   STRING(fit->reason != NULL ? fit->reason : ""),
                   KNOWN(fit->is_fitted, FINITE(fit->curve.parallel_s + fit->curve.serial_s)));
}

static void put_forecast(marey_table *table, const struct marey__scaling *scaling,
                         const struct marey__scaling_series *series, enum marey__scaling_model model)
{
    const struct marey__scaling_point *baseline = &scaling->points[series->first];
    const struct marey__scaling_fit *fit = &series->fits[model];
    for (size_t i = 0; fit->is_fitted && i < marey__scaling_n_asked(scaling); i++) {
        const double workers = marey__scaling_asked(scaling, series, i),
                     work = series->kind == MAREY__SCALING_WEAK ? workers / baseline->workers : 1,
                     speedup = marey__scaling_unit_s(series, baseline) / fit->forecast[i].value;
        MAREY__PUT_ROW(table, SERIES_OF(series), STRING(model_names[model]), U64((uint64_t)workers),
                       INTERVAL_OF(&fit->forecast[i], work),
                       FINITE(speedup * baseline->workers / workers), FINITE(speedup));
    }
}

/* ---- the best number of workers ---- */

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
    MAREY__PUT_ROW(table, SERIES_OF(series), STRING(what), U64((uint64_t)workers), FINITE(value),
                   TRUTH(is_measured));
}

/* The point with the lowest value; no row for fewer than two points. */
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

/* ---- runs, and all tables ---- */

static void put_run(marey_table *table, const struct marey__scaling_member *member)
{
    const struct marey__scaling_run *run = member->run;
    MAREY__PUT_ROW(table, SERIES_OF(run), U64(run->workers), STRING(run->name),
                   U64(member->values[MAREY__SCALING_EPOCH].n),
                   FINITE(member->values[MAREY__SCALING_EPOCH].median),
                   FINITE(member->values[MAREY__SCALING_STEP].median), FINITE(run->numbers.joules),
                   TRUTH(run->is_partial != 0));
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
    put_best(best, scaling, series, "time", marey__scaling_unit_s);
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
