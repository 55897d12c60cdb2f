/*
 * Medians of points and their uncertainty.
 *
 * The standard error is the larger of two from resampling: runs from the runs of a point, and units from each run.
 * Each is the deviation of the logarithm of the median of medians over many draws. The interval is
 * Student's.
 *
 * Often there are only two repeats, too few to estimate how runs differ. So the repeats of all points of a series
 * are pooled: their common variance applies to each point, even one with a single run, unless the point's own error
 * is clearly larger. Without repeats there is no interval: epochs of one run do not show how much runs differ.
 */
#include <math.h>

#include "analyze/compare/internal.h"
#include "analyze/scaling/internal.h"

/* Required ratio of a point's own standard error to the common one. */
enum { PLAINLY_MORE = 2 };

/* ---- random numbers (splitmix64) ---- */

static uint64_t next(struct marey__scaling_random *random)
{
    uint64_t x = random->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

struct marey__scaling_random marey__scaling_random_of(uint64_t a, uint64_t b)
{
    struct marey__scaling_random random = {0};
    random.state = next(&random) ^ a;
    random.state = next(&random) ^ b;
    return random;
}

/* Above 0, at most 1. */
static double next_share(struct marey__scaling_random *random)
{
    return (double)((next(random) >> 11) + 1) * 0x1p-53;
}

/* Below `n`, which is far below 2^32. */
static size_t next_below(struct marey__scaling_random *random, size_t n)
{
    return (size_t)((next(random) >> 32) * n >> 32);
}

double marey__scaling_random_normal(struct marey__scaling_random *random)
{
    const double radius = sqrt(-2 * log(next_share(random)));
    return radius * cos(2 * M_PI * next_share(random));
}

/* ---- resampling ---- */

/* The median of a sample with replacement. Units are sorted, so counting indexes is enough. */
static double draw_median(const struct marey__scaling_values *values,
                          struct marey__scaling_random *random)
{
    const size_t n = values->n_units;
    uint8_t counts[MAREY__SCALING_UNITS] = {0};
    for (size_t i = 0; i < n; i++)
        counts[next_below(random, n)]++;
    size_t below = 0, place = 0;
    while (below + counts[place] <= (n - 1) / 2)
        below += counts[place++];
    size_t upper = place;
    if (n % 2 == 0 && below + counts[place] == n / 2)
        for (upper++; counts[upper] == 0;)
            upper++;
    return (values->units[place] + values->units[upper]) / 2;
}

/* The members of a point that have values of a measure. */
struct sample {
    const struct marey__scaling_values **runs;
    size_t n;
    double *medians; /* space for n */
};

/*
 * What is resampled. Medians of runs include the variation of epochs; resampling epochs gives a lower limit that does
 * not depend on chance agreement of runs.
 */
enum drawn { RUNS, EPOCHS };

static double draw(const struct sample *sample, enum drawn drawn, struct marey__scaling_random *random)
{
    for (size_t i = 0; i < sample->n; i++)
        sample->medians[i] = drawn == RUNS ? sample->runs[next_below(random, sample->n)]->median
                                           : draw_median(sample->runs[i], random);
    return log(marey__median(sample->medians, sample->n));
}

/* The standard error of the logarithm, for `n` items to draw from; NaN for one. */
static double error_of(const struct sample *sample, enum drawn drawn, size_t n,
                       struct marey__scaling_random *random, uint32_t n_resamples)
{
    /* Thousands of repeats need few draws; this also bounds the time for a hostile file. */
    enum { MOST_DRAWS = 1 << 23, FEWEST = 64 };
    const size_t most = MAREY__MAX(MOST_DRAWS / sample->n, (size_t)FEWEST);
    const size_t n_draws = MAREY__MIN((size_t)n_resamples, most);
    if (n < 2)
        return NAN;
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n_draws; i++) {
        const double value = draw(sample, drawn, random), step = value - mean;
        mean += step / (double)(i + 1);
        squares += step * (value - mean);
    }
    /* Half of the draws from two items are the same one twice; with more, draws spread about as much as medians. */
    return sqrt(squares / (double)(n_draws - 1) * (n == 2 ? 2 : 1));
}

/* ---- levels ---- */

/* A run whose only epoch is warm-up counts only if no run of the point has a better one. */
static bool has_better_than_first(const struct marey__scaling *scaling,
                                  const struct marey__scaling_point *point,
                                  enum marey__scaling_measure measure)
{
    for (size_t i = point->first; i < point->first + point->n; i++)
        if (!scaling->members[i].has_only_first && scaling->members[i].values[measure].n != 0)
            return true;
    return false;
}

static struct marey__scaling_level level_of(const struct marey__scaling *scaling,
                                            const struct marey__scaling_point *point,
                                            enum marey__scaling_measure measure,
                                            struct sample *sample)
{
    struct marey__scaling_level level = {.value = NAN, .error = NAN, .low = NAN, .high = NAN};
    const bool skips_firsts =
        measure != MAREY__SCALING_STEP && has_better_than_first(scaling, point, measure);
    double least = INFINITY, most = 0;
    size_t n_units = 0;
    sample->n = 0;
    for (size_t i = point->first; i < point->first + point->n; i++) {
        const struct marey__scaling_member *member = &scaling->members[i];
        const struct marey__scaling_values *values = &member->values[measure];
        if (values->n == 0 || (skips_firsts && member->has_only_first))
            continue;
        sample->runs[sample->n] = values;
        sample->medians[sample->n++] = values->median;
        level.n_values += values->n;
        n_units += values->n_units;
        least = fmin(least, values->median);
        most = fmax(most, values->median);
    }
    level.n_runs = sample->n;
    if (sample->n == 0)
        return level;
    level.value = marey__median(sample->medians, sample->n);
    level.spread = (most - least) / level.value;
    struct marey__scaling_random random = marey__scaling_random_of(point->workers, measure);
    const uint32_t n_resamples = scaling->options.n_resamples;
    level.error = error_of(sample, RUNS, sample->n, &random, n_resamples);
    level.epoch_error = error_of(sample, EPOCHS, n_units, &random, n_resamples);
    level.df = (double)(sample->n > 1 ? sample->n : n_units) - 1;
    return level;
}

/* The pooled variance between runs over all points; 0 degrees of freedom without repeats. */
static double variance_of_runs(const struct marey__scaling_point *points, size_t n,
                               enum marey__scaling_measure measure, double *df)
{
    double sum = 0;
    *df = 0;
    for (size_t i = 0; i < n; i++) {
        const struct marey__scaling_level *level = &points[i].levels[measure];
        if (level->n_runs < 2)
            continue;
        sum += level->df * level->error * level->error * (double)level->n_runs;
        *df += level->df;
    }
    return *df > 0 ? sum / *df : 0;
}

void marey__scaling_level_bound(struct marey__scaling_level *level)
{
    const double half =
        marey__t_quantile(MAREY__SCALING_CONFIDENCE, MAREY__MAX(level->df, 1)) * level->error;
    level->low = level->value * exp(-half);
    level->high = level->value * exp(half);
}

static void bound(const struct marey__scaling *scaling, const struct marey__scaling_series *series,
                  enum marey__scaling_measure measure)
{
    struct marey__scaling_point *points = &scaling->points[series->first];
    double df;
    const double variance = variance_of_runs(points, series->n, measure, &df);
    for (size_t i = 0; i < series->n; i++) {
        struct marey__scaling_level *level = &points[i].levels[measure];
        if (level->n_runs == 0)
            continue;
        if (df > 0) {
            const double common = sqrt(variance / (double)level->n_runs);
            level->error = level->error > PLAINLY_MORE * common ? level->error : common;
            level->df = df;
            level->is_common = true;
        }
        level->error = fmax(level->error, level->epoch_error); /* ignores NaN */
        if (df > 0 && !isnan(level->error))
            marey__scaling_level_bound(level);
    }
}

void marey__scaling_bound(const struct marey__scaling *scaling,
                          const struct marey__scaling_series *series)
{
    for (unsigned measure = 0; measure < MAREY__N_SCALING_MEASURES; measure++)
        bound(scaling, series, measure);
}

marey_status marey__scaling_levels(struct marey__scaling *scaling)
{
    struct sample sample = {
        .runs = marey__calloc(scaling->n_members, sizeof *sample.runs),
        .medians = marey__calloc(scaling->n_members, sizeof *sample.medians),
    };
    const bool done = sample.runs != NULL && sample.medians != NULL;
    for (size_t i = 0; done && i < scaling->n_points; i++)
        for (unsigned measure = 0; measure < MAREY__N_SCALING_MEASURES; measure++)
            scaling->points[i].levels[measure] =
                level_of(scaling, &scaling->points[i], measure, &sample);
    MAREY__FREE_ALL(sample.runs, sample.medians);
    return done ? MAREY_OK : marey__no_memory();
}
