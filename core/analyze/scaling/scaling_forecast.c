/*
 * Both laws fitted to a series, and where they lead.
 *
 * How sure a fit is comes from fitting it again and again to times that are moved by chance, as far as each point is
 * unsure and as far as the points lie off the curve beyond that. What the law itself leaves out, beyond the largest
 * number of workers that was measured, is in no interval.
 */
#include <math.h>

#include "analyze/compare/internal.h"
#include "analyze/scaling/internal.h"

/* Off by more than this beyond noise, points do not follow a law. */
#define OFF_THE_CURVE 0.05

size_t marey__scaling_n_asked(const struct marey__scaling *scaling)
{
    return scaling->options.n_forecast != 0 ? scaling->options.n_forecast : 3;
}

double marey__scaling_asked(const struct marey__scaling *scaling,
                            const struct marey__scaling_series *series, size_t i)
{
    if (scaling->options.n_forecast != 0)
        return scaling->options.forecast[i];
    return ldexp(scaling->points[series->first + series->n - 1].workers, (int)i + 1);
}

/* ---- points as numbers ---- */

struct task {
    const struct marey__scaling *scaling;
    const struct marey__scaling_series *series;
    struct marey__scaling_fit *fit;
    enum marey__scaling_model model;
    size_t n; /* points */
    double *workers, *seconds, *errors, *moved;
    double df;
    /* What draws give, one row of n_draws for each. */
    double *serial, *coherency, *inverse_best, *forecast;
    size_t n_draws;
};

static size_t n_terms(const struct task *task)
{
    return task->model == MAREY__SCALING_USL ? 3 : 2;
}

/* An error that is not known is 0. */
static void take_points(struct task *task)
{
    for (size_t i = 0; i < task->series->n; i++) {
        const struct marey__scaling_point *point = &task->scaling->points[task->series->first + i];
        const struct marey__scaling_level *time = marey__scaling_time(task->series, point);
        const double seconds = marey__scaling_unit_s(task->series, point);
        if (isnan(seconds))
            continue;
        task->workers[task->n] = point->workers;
        task->seconds[task->n] = seconds;
        task->errors[task->n++] = isnan(time->error) ? 0 : time->error;
        if (!isnan(time->error))
            task->df = time->is_common ? time->df : task->df + time->df;
    }
}

/* ---- how far off the points are ---- */

static double off_squares(const struct task *task)
{
    double sum = 0;
    for (size_t i = 0; i < task->n; i++) {
        const double off =
            marey__scaling_curve_at(&task->fit->curve, task->workers[i]) / task->seconds[i] - 1;
        sum += off * off;
    }
    return sum;
}

/* Let errors be as large as the points' distances ask for. False when nothing tells how large they are. */
static bool widen(struct task *task)
{
    const double n_free = (double)task->n - (double)n_terms(task);
    const double off = off_squares(task);
    double noise = 0;
    for (size_t i = 0; i < task->n; i++)
        noise += task->errors[i] * task->errors[i] / (double)task->n;
    task->fit->residual = sqrt(off / (double)task->n);
    const double more = fmax(off / n_free - noise, 0);
    for (size_t i = 0; i < task->n; i++)
        task->errors[i] = sqrt(task->errors[i] * task->errors[i] + more);
    /* Welch and Satterthwaite: what the points' distances say is known by few of them. */
    if (!(noise + more > 0))
        return false;
    task->df =
        (noise + more) * (noise + more) / (noise * noise / fmax(task->df, 1) + more * more / n_free);
    if (sqrt(more) > OFF_THE_CURVE)
        task->fit->reason = "the times do not follow this law";
    return true;
}

/* ---- drawing ---- */

static double share(double part, const struct marey__scaling_curve *curve)
{
    return part / (curve->parallel_s + curve->serial_s);
}

static void draw(struct task *task, struct marey__scaling_random *random, size_t at)
{
    for (size_t i = 0; i < task->n; i++)
        task->moved[i] =
            task->seconds[i] * exp(task->errors[i] * marey__scaling_random_normal(random));
    const struct marey__scaling_curve curve = marey__scaling_curve_fit(
        task->workers, task->moved, task->n, task->model == MAREY__SCALING_USL);
    task->serial[at] = share(curve.serial_s, &curve);
    task->coherency[at] = share(curve.coherency_s, &curve);
    task->inverse_best[at] = 1 / marey__scaling_curve_best(&curve);
    for (size_t i = 0; i < marey__scaling_n_asked(task->scaling); i++)
        task->forecast[i * task->n_draws + at] =
            marey__scaling_curve_at(&curve, marey__scaling_asked(task->scaling, task->series, i));
}

/* Where the middle `confidence` of the draws lies, stretched around the value by Student's t over the normal's. */
static struct marey__scaling_interval bound(const struct task *task, double value, double *draws)
{
    const double confidence = task->scaling->options.confidence;
    const double stretch =
        marey__t_quantile(confidence, fmax(task->df, 1)) / marey__t_quantile(confidence, 1e6);
    const size_t outside = (size_t)((1 - confidence) / 2 * (double)task->n_draws);
    (void)marey__median(draws, task->n_draws); /* which puts them in order */
    const double low = draws[outside], high = draws[task->n_draws - 1 - outside];
    return (struct marey__scaling_interval){value, value - fmax(value - low, 0) * stretch,
                                            value + fmax(high - value, 0) * stretch};
}

/* A share of T(1). */
static void bound_share(const struct task *task, struct marey__scaling_interval *interval,
                        double *draws)
{
    *interval = bound(task, interval->value, draws);
    interval->low = fmax(interval->low, 0);
}

/* Seconds, on their logarithm. */
static void bound_ratio(const struct task *task, struct marey__scaling_interval *interval,
                        double *draws)
{
    for (size_t i = 0; i < task->n_draws; i++)
        draws[i] = log(draws[i] / interval->value);
    const struct marey__scaling_interval ratio = bound(task, 0, draws);
    interval->low = interval->value * exp(ratio.low);
    interval->high = interval->value * exp(ratio.high);
}

/* Of one over the number, so that "never" is a zero like others. */
static void bound_best(const struct task *task, struct marey__scaling_interval *interval,
                       double *draws)
{
    struct marey__scaling_interval inverse = {.value = 1 / interval->value};
    bound_share(task, &inverse, draws);
    interval->low = 1 / fmin(inverse.high, 1);
    interval->high = 1 / inverse.low;
    /* A best that may as well be nowhere is an accident of noise. */
    if (isinf(interval->high))
        interval->value = INFINITY;
}

/* ---- a fit ---- */

static void fit_value(struct task *task)
{
    struct marey__scaling_fit *fit = task->fit;
    fit->is_fitted = true;
    fit->curve = marey__scaling_curve_fit(task->workers, task->seconds, task->n,
                                          task->model == MAREY__SCALING_USL);
    fit->serial.value = share(fit->curve.serial_s, &fit->curve);
    fit->coherency.value = share(fit->curve.coherency_s, &fit->curve);
    fit->best.value = marey__scaling_curve_best(&fit->curve);
    for (size_t i = 0; i < marey__scaling_n_asked(task->scaling); i++)
        fit->forecast[i].value = marey__scaling_curve_at(
            &fit->curve, marey__scaling_asked(task->scaling, task->series, i));
}

static void fit_intervals(struct task *task)
{
    struct marey__scaling_fit *fit = task->fit;
    struct marey__scaling_random random =
        marey__scaling_random_of(task->scaling->options.seed, UINT64_MAX, task->model);
    for (size_t i = 0; i < task->n_draws; i++)
        draw(task, &random, i);
    bound_share(task, &fit->serial, task->serial);
    fit->serial.high = fmin(fit->serial.high, 1);
    bound_share(task, &fit->coherency, task->coherency);
    bound_best(task, &fit->best, task->inverse_best);
    for (size_t i = 0; i < marey__scaling_n_asked(task->scaling); i++)
        bound_ratio(task, &fit->forecast[i], task->forecast + i * task->n_draws);
}

static const struct marey__scaling_interval unknown = {NAN, NAN, NAN};

static bool fit_model(struct task *task)
{
    const size_t n_asked = marey__scaling_n_asked(task->scaling);
    struct marey__scaling_fit *fit = task->fit;
    *fit = (struct marey__scaling_fit){
        .residual = NAN, .serial = unknown, .coherency = unknown, .best = unknown};
    fit->forecast = marey__calloc(n_asked, sizeof *fit->forecast);
    if (fit->forecast == NULL)
        return false;
    for (size_t i = 0; i < n_asked; i++)
        fit->forecast[i] = unknown;
    take_points(task);
    fit->n_points = task->n;
    if (task->n <= n_terms(task)) { /* as many parameters as points fit any times */
        fit->reason = task->model == MAREY__SCALING_USL
                          ? "not fitted: needs at least four numbers of workers"
                          : "not fitted: needs at least three numbers of workers";
        return true;
    }
    fit_value(task);
    if (widen(task))
        fit_intervals(task);
    return true;
}

/* Which of the two to trust. */
static void weigh(struct marey__scaling_fit *amdahl, struct marey__scaling_fit *usl)
{
    if (!usl->is_fitted || usl->reason != NULL || isnan(usl->coherency.low))
        return;
    if (usl->coherency.low > 0)
        amdahl->reason = "coherency is more than chance: usl tells more";
    else
        usl->reason = "coherency cannot be told from none: amdahl tells as much";
}

marey_status marey__scaling_fit_series(const struct marey__scaling *scaling,
                                       struct marey__scaling_series *series)
{
    const size_t n = series->n, n_draws = scaling->options.n_resamples,
                 n_asked = marey__scaling_n_asked(scaling);
    double *room = marey__calloc(4 * n + (3 + n_asked) * n_draws, sizeof *room);
    bool done = room != NULL;
    for (unsigned model = 0; done && model < MAREY__N_SCALING_MODELS; model++) {
        double *draws = room + 4 * n;
        struct task task = {
            .scaling = scaling,
            .series = series,
            .fit = &series->fits[model],
            .model = model,
            .workers = room,
            .seconds = room + n,
            .errors = room + 2 * n,
            .moved = room + 3 * n,
            .serial = draws,
            .coherency = draws + n_draws,
            .inverse_best = draws + 2 * n_draws,
            .forecast = draws + 3 * n_draws,
            .n_draws = n_draws,
        };
        done = fit_model(&task);
    }
    marey__free(room);
    if (done)
        weigh(&series->fits[MAREY__SCALING_AMDAHL], &series->fits[MAREY__SCALING_USL]);
    return done ? MAREY_OK : marey__no_memory();
}
