/*
 * Fits Amdahl's law and the universal scalability law.
 *
 * With c = contention and k = coherency, the latter is T(n) = T(1) (1 + c (n - 1) + k n (n - 1)) / n, or
 *
 *   T(n) = parallel / n + serial + coherency (n - 1)      parallel = T(1) (1 - c), serial = T(1) c, coherency = T(1) k
 *
 * Without its last term it is Amdahl's. It is linear in its three parameters, so the best non-negative fit is exact:
 * the best among the fits of all subsets of terms without a negative parameter. It needs no start values and no
 * iteration, so it cannot fail to converge. A fit with only the last term has no T(1) and is
 * rejected.
 */
#include <math.h>

#include "analyze/compare/internal.h"
#include "analyze/scaling/internal.h"

enum { N_TERMS = 3 };

static void terms_at(double workers, double terms[N_TERMS])
{
    terms[0] = 1 / workers;
    terms[1] = 1;
    terms[2] = workers - 1;
}

double marey__scaling_curve_at(const struct marey__scaling_curve *curve, double workers)
{
    double terms[N_TERMS];
    terms_at(workers, terms);
    return curve->parallel_s * terms[0] + curve->serial_s * terms[1] + curve->coherency_s * terms[2];
}

static double best_of(const struct marey__scaling_curve *curve)
{
    return curve->coherency_s > 0 ? fmax(sqrt(curve->parallel_s / curve->coherency_s), 1) : INFINITY;
}

/* ---- least squares ---- */

/* Normal equations of relative distances, with each term normalized, because workers may span a wide range. */
struct equations {
    double products[N_TERMS][N_TERMS], targets[N_TERMS], scales[N_TERMS];
};

static struct equations equations_of(const double *workers, const double *seconds, size_t n)
{
    struct equations e = {0};
    for (size_t i = 0; i < n; i++) {
        double terms[N_TERMS];
        terms_at(workers[i], terms);
        for (size_t a = 0; a < N_TERMS; a++) {
            terms[a] /= seconds[i];
            e.targets[a] += terms[a];
            for (size_t b = 0; b <= a; b++)
                e.products[a][b] += terms[a] * terms[b];
        }
    }
    for (size_t a = 0; a < N_TERMS; a++)
        e.scales[a] = e.products[a][a] > 0 ? 1 / sqrt(e.products[a][a]) : 0;
    for (size_t a = 0; a < N_TERMS; a++) {
        e.targets[a] *= e.scales[a];
        for (size_t b = 0; b <= a; b++)
            e.products[a][b] = e.products[b][a] = e.products[a][b] * e.scales[a] * e.scales[b];
    }
    return e;
}

/*
 * Solve for the terms in `chosen` (bits) by Cholesky decomposition. Returns false if they are collinear or one is
 * negative.
 */
static bool solve(const struct equations *e, unsigned chosen, double out[N_TERMS])
{
    size_t list[N_TERMS] = {0}, n = 0;
    double root[N_TERMS][N_TERMS] = {{0}}, half[N_TERMS] = {0};
    for (size_t a = 0; a < N_TERMS; a++) {
        out[a] = 0;
        if (chosen >> a & 1)
            list[n++] = a;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double rest = e->products[list[i]][list[j]];
            for (size_t k = 0; k < j; k++)
                rest -= root[i][k] * root[j][k];
            if (i == j && rest < 1e-12)
                return false;
            root[i][j] = i == j ? sqrt(rest) : rest / root[j][j];
        }
        half[i] = e->targets[list[i]];
        for (size_t k = 0; k < i; k++)
            half[i] -= root[i][k] * half[k];
        half[i] /= root[i][i];
    }
    for (size_t i = n; i-- > 0;) {
        double rest = half[i];
        for (size_t k = i + 1; k < n; k++)
            rest -= root[k][i] * out[list[k]] / e->scales[list[k]];
        if (rest < 0)
            return false;
        out[list[i]] = rest / root[i][i] * e->scales[list[i]];
    }
    return true;
}

/* Sum of squared relative residuals. */
static double squares(const double *workers, const double *seconds, size_t n,
                      const struct marey__scaling_curve *curve)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double off = marey__scaling_curve_at(curve, workers[i]) / seconds[i] - 1;
        sum += off * off;
    }
    return sum;
}

struct marey__scaling_curve marey__scaling_curve_fit(const double *workers, const double *seconds,
                                                     size_t n, bool has_coherency)
{
    const struct equations e = equations_of(workers, seconds, n);
    struct marey__scaling_curve best = {0};
    double best_squares = INFINITY;
    for (unsigned chosen = 1; chosen < (has_coherency ? 8u : 4u); chosen++) {
        double terms[N_TERMS];
        if ((chosen & 3) == 0 || !solve(&e, chosen, terms))
            continue;
        const struct marey__scaling_curve curve = {terms[0], terms[1], terms[2]};
        const double its_squares = squares(workers, seconds, n, &curve);
        if (its_squares < best_squares) {
            best = curve;
            best_squares = its_squares;
        }
    }
    return best;
}

/*
 * ---- fits to a series ----
 *
 * The uncertainty of a fit comes from refitting randomly perturbed times, according to the uncertainty of each point
 * and its distance from the curve beyond that. Intervals do not include errors of the law itself beyond the largest
 * measured number of workers.
 */

/* Points that deviate by more than this beyond noise do not follow a law. */
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
    size_t n; /* number of points */
    double *workers, *seconds, *errors, *moved;
    double df;
    /* Results of the draws: arrays of n_draws, one per forecast. */
    double *serial, *coherency, *inverse_best, *forecast;
    size_t n_draws;
};

static size_t n_terms(const struct task *task)
{
    return task->model == MAREY__SCALING_USL ? 3 : 2;
}

/* Unknown errors count as 0. */
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

/* ---- distances of the points ---- */

/* Increase errors to match the points' distances from the curve. Returns false if neither gives an error. */
static bool widen(struct task *task)
{
    const double n_free = (double)task->n - (double)n_terms(task);
    const double off = squares(task->workers, task->seconds, task->n, &task->fit->curve);
    double noise = 0;
    for (size_t i = 0; i < task->n; i++)
        noise += task->errors[i] * task->errors[i] / (double)task->n;
    task->fit->residual = sqrt(off / (double)task->n);
    const double more = fmax(off / n_free - noise, 0);
    for (size_t i = 0; i < task->n; i++)
        task->errors[i] = sqrt(task->errors[i] * task->errors[i] + more);
    /* Welch-Satterthwaite: the distances have few degrees of freedom. */
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
    task->inverse_best[at] = 1 / best_of(&curve);
    for (size_t i = 0; i < marey__scaling_n_asked(task->scaling); i++)
        task->forecast[i * task->n_draws + at] =
            marey__scaling_curve_at(&curve, marey__scaling_asked(task->scaling, task->series, i));
}

/*
 * The middle `confidence` of the draws, stretched around the value by the ratio of Student's t to the normal quantile.
 */
static struct marey__scaling_interval bound(const struct task *task, double value, double *draws)
{
    const double stretch = marey__t_quantile(MAREY__SCALING_CONFIDENCE, fmax(task->df, 1)) /
                           marey__t_quantile(MAREY__SCALING_CONFIDENCE, 1e6);
    const size_t outside = (size_t)((1 - MAREY__SCALING_CONFIDENCE) / 2 * (double)task->n_draws);
    (void)marey__median(draws, task->n_draws); /* also sorts them */
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

/* Seconds, on a logarithmic scale. */
static void bound_ratio(const struct task *task, struct marey__scaling_interval *interval,
                        double *draws)
{
    for (size_t i = 0; i < task->n_draws; i++)
        draws[i] = log(draws[i] / interval->value);
    const struct marey__scaling_interval ratio = bound(task, 0, draws);
    interval->low = interval->value * exp(ratio.low);
    interval->high = interval->value * exp(ratio.high);
}

/* On the inverse of the number, so that "never" is 0. */
static void bound_best(const struct task *task, struct marey__scaling_interval *interval,
                       double *draws)
{
    struct marey__scaling_interval inverse = {.value = 1 / interval->value};
    bound_share(task, &inverse, draws);
    interval->low = 1 / fmin(inverse.high, 1);
    interval->high = 1 / inverse.low;
    /* Without an upper bound, the optimum may be noise. */
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
    fit->best.value = best_of(&fit->curve);
    for (size_t i = 0; i < marey__scaling_n_asked(task->scaling); i++)
        fit->forecast[i].value = marey__scaling_curve_at(
            &fit->curve, marey__scaling_asked(task->scaling, task->series, i));
}

static void fit_intervals(struct task *task)
{
    struct marey__scaling_fit *fit = task->fit;
    struct marey__scaling_random random = marey__scaling_random_of(UINT64_MAX, task->model);
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
    if (task->n <= n_terms(task)) { /* with as many parameters as points, every fit is perfect */
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

/* Give the worse of the two models a reason to prefer the other. */
static void weigh(struct marey__scaling_fit *amdahl, struct marey__scaling_fit *usl)
{
    if (!usl->is_fitted || usl->reason != NULL || isnan(usl->coherency.low))
        return;
    if (usl->coherency.low > 0)
        amdahl->reason = "coherency is significant: prefer usl";
    else
        usl->reason = "coherency is not significant: amdahl is enough";
}

marey_status marey__scaling_fit_series(const struct marey__scaling *scaling,
                                       struct marey__scaling_series *series)
{
    const size_t n = series->n, n_draws = scaling->options.n_resamples,
                 n_asked = marey__scaling_n_asked(scaling);
    double *const room MAREY__FREED = marey__calloc(4 * n + (3 + n_asked) * n_draws, sizeof *room);
    MAREY__TRY_MEMORY(room != NULL);
    for (unsigned model = 0; model < MAREY__N_SCALING_MODELS; model++) {
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
        MAREY__TRY_MEMORY(fit_model(&task));
    }
    weigh(&series->fits[MAREY__SCALING_AMDAHL], &series->fits[MAREY__SCALING_USL]);
    return MAREY_OK;
}
