/* What more workers bring: runs into series of points, their statistics, the laws they follow, and tables of it all. */
#include <math.h>
#include <string.h>

#include "analyze/scaling/internal.h"

enum { N_RESAMPLES = 2000, FEWEST_RESAMPLES = 100, MOST_RESAMPLES = 1000000 };

/* ---- options ---- */

static marey_status check_choice(const char *what, const char *given, const char *a, const char *b)
{
    if (given == NULL || strcmp(given, a) == 0 || strcmp(given, b) == 0)
        return MAREY_OK;
    return marey__fail(MAREY_EINVAL, "the %s of scaling is %s or %s, not '%s'", what, a, b, given);
}

static marey_status take_options(struct marey_scaling_options *options,
                                 const struct marey_scaling_options *given)
{
    if (given != NULL)
        *options = *given;
    MAREY_TRY(check_choice("kind", options->kind, "strong", "weak"));
    MAREY_TRY(check_choice("measure", options->measure, "epoch", "step"));
    if (options->confidence == 0)
        options->confidence = 0.95;
    if (!(options->confidence >= 0.5 && options->confidence <= 0.999))
        return marey__fail(MAREY_EINVAL, "a confidence is from 0.5 to 0.999, not %g",
                           options->confidence);
    if (options->largest_spread == 0)
        options->largest_spread = 0.1;
    if (!(options->largest_spread > 0))
        return marey__fail(MAREY_EINVAL, "repeats cannot differ by less than nothing, as by %g",
                           options->largest_spread);
    if (options->n_resamples == 0)
        options->n_resamples = N_RESAMPLES;
    if (options->n_resamples < FEWEST_RESAMPLES || options->n_resamples > MOST_RESAMPLES)
        return marey__fail(MAREY_EINVAL, "from %d to %d resamples tell intervals, not %u",
                           FEWEST_RESAMPLES, MOST_RESAMPLES, options->n_resamples);
    for (size_t i = 0; i < options->n_forecast; i++)
        if (options->forecast[i] == 0)
            return marey__fail(MAREY_EINVAL, "there is no forecast for 0 workers");
    return MAREY_OK;
}

/* ---- making ---- */

static marey_status no_times(const struct marey_scaling *scaling)
{
    if (scaling->options.measure != NULL)
        return marey__fail(
            MAREY_EFORMAT, "none of %zu runs has the time of an %s in it; ask for the other measure",
            scaling->n_members, scaling->options.measure);
    return marey__fail(MAREY_EFORMAT,
                       "none of %zu runs has the time of an epoch or of a step in it: "
                       "marey.TrainingMonitor, marey.epoch() and marey.iteration() tell of them",
                       scaling->n_members);
}

static marey_status make(struct marey_scaling *scaling)
{
    size_t n_points = 0;
    MAREY_TRY(marey__scaling_group(scaling));
    MAREY_TRY(marey__scaling_levels(scaling));
    for (size_t i = 0; i < scaling->n_series; i++) {
        struct marey__scaling_series *series = &scaling->series[i];
        marey__scaling_choose(scaling, series);
        n_points += series->n;
        if (series->n == 0)
            continue;
        marey__scaling_bound(scaling, series);
        marey__scaling_compare_points(scaling, series);
        MAREY_TRY(marey__scaling_fit_series(scaling, series));
    }
    if (n_points == 0)
        return no_times(scaling);
    MAREY_TRY(marey__scaling_make_tables(scaling));
    marey__scaling_put_rows(scaling);
    MAREY__TRY_MEMORY(marey__scaling_put_notes(scaling));
    for (size_t i = 0; i < MAREY__N_SCALING_TABLES; i++)
        MAREY_TRY(marey_table_status(scaling->tables[i]));
    return MAREY_OK;
}

/* What was only needed to make the tables. */
static void free_making(struct marey_scaling *scaling)
{
    for (size_t i = 0; i < scaling->n_series; i++)
        for (size_t model = 0; model < MAREY__N_SCALING_MODELS; model++)
            marey__free(scaling->series[i].fits[model].forecast);
    marey__free(scaling->members);
    marey__free(scaling->points);
    marey__free(scaling->series);
}

marey_status marey_scaling_create(const marey_scaling_runs *runs,
                                  const struct marey_scaling_options *options, marey_scaling **out)
{
    if (runs->n == 0)
        return marey__fail(MAREY_EFORMAT, "there are no measured runs to tell scaling from");
    struct marey_scaling_options taken = {0};
    MAREY_TRY(take_options(&taken, options));
    marey_scaling *scaling = marey__calloc(1, sizeof *scaling);
    MAREY__TRY_MEMORY(scaling != NULL);
    scaling->runs = runs;
    scaling->options = taken;
    const marey_status status = make(scaling);
    free_making(scaling);
    if (status != MAREY_OK) {
        marey_scaling_destroy(scaling);
        return status;
    }
    *out = scaling;
    return MAREY_OK;
}

void marey_scaling_destroy(marey_scaling *scaling)
{
    if (scaling == NULL)
        return;
    for (size_t i = 0; i < MAREY__N_SCALING_TABLES; i++)
        marey_table_destroy(scaling->tables[i]);
    marey__free(scaling);
}

marey_table *marey_scaling_table(marey_scaling *scaling, const char *name)
{
    for (size_t i = 0; i < MAREY__N_SCALING_TABLES; i++)
        if (strcmp(marey_table_name(scaling->tables[i]), name) == 0)
            return scaling->tables[i];
    return NULL;
}
