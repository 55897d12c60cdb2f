/* What more workers bring: runs into series of points, their statistics, the laws they follow, and tables of it all. */
#include <math.h>
#include <string.h>

#include "analyze/scaling_whole.h"

enum { N_RESAMPLES = 2000, FEWEST_RESAMPLES = 100, MOST_RESAMPLES = 1000000 };

/* ---- options ---- */

static kymo_status check_choice(const char *what, const char *given, const char *a, const char *b)
{
    if (given == NULL || strcmp(given, a) == 0 || strcmp(given, b) == 0)
        return KYMO_OK;
    return kymo__fail(KYMO_EINVAL, "the %s of scaling is %s or %s, not '%s'", what, a, b, given);
}

static kymo_status take_options(struct kymo_scaling_options *options,
                                const struct kymo_scaling_options *given)
{
    if (given != NULL)
        *options = *given;
    KYMO_TRY(check_choice("kind", options->kind, "strong", "weak"));
    KYMO_TRY(check_choice("measure", options->measure, "epoch", "step"));
    if (options->confidence == 0)
        options->confidence = 0.95;
    if (!(options->confidence >= 0.5 && options->confidence <= 0.999))
        return kymo__fail(KYMO_EINVAL, "a confidence is from 0.5 to 0.999, not %g",
                          options->confidence);
    if (options->largest_spread == 0)
        options->largest_spread = 0.1;
    if (!(options->largest_spread > 0))
        return kymo__fail(KYMO_EINVAL, "repeats cannot differ by less than nothing, as by %g",
                          options->largest_spread);
    if (options->n_resamples == 0)
        options->n_resamples = N_RESAMPLES;
    if (options->n_resamples < FEWEST_RESAMPLES || options->n_resamples > MOST_RESAMPLES)
        return kymo__fail(KYMO_EINVAL, "from %d to %d resamples tell intervals, not %u",
                          FEWEST_RESAMPLES, MOST_RESAMPLES, options->n_resamples);
    for (size_t i = 0; i < options->n_forecast; i++)
        if (options->forecast[i] == 0)
            return kymo__fail(KYMO_EINVAL, "there is no forecast for 0 workers");
    return KYMO_OK;
}

/* ---- making ---- */

static kymo_status no_times(const struct kymo_scaling *scaling)
{
    if (scaling->options.measure != NULL)
        return kymo__fail(KYMO_EFORMAT,
                          "none of %zu runs has the time of an %s in it; ask for the other measure",
                          scaling->n_members, scaling->options.measure);
    return kymo__fail(KYMO_EFORMAT,
                      "none of %zu runs has the time of an epoch or of a step in it: "
                      "kymo.TrainingMonitor, kymo.epoch() and kymo.iteration() tell of them",
                      scaling->n_members);
}

static kymo_status make(struct kymo_scaling *scaling)
{
    size_t n_points = 0;
    KYMO_TRY(kymo__scaling_group(scaling));
    KYMO_TRY(kymo__scaling_levels(scaling));
    for (size_t i = 0; i < scaling->n_series; i++) {
        struct kymo__scaling_series *series = &scaling->series[i];
        kymo__scaling_choose(scaling, series);
        n_points += series->n;
        if (series->n == 0)
            continue;
        kymo__scaling_bound(scaling, series);
        kymo__scaling_compare_points(scaling, series);
        KYMO_TRY(kymo__scaling_fit_series(scaling, series));
    }
    if (n_points == 0)
        return no_times(scaling);
    KYMO_TRY(kymo__scaling_make_tables(scaling));
    kymo__scaling_put_rows(scaling);
    if (!kymo__scaling_put_notes(scaling))
        return kymo__fail(KYMO_ENOMEM, "no memory for scaling");
    for (size_t i = 0; i < KYMO__N_SCALING_TABLES; i++)
        KYMO_TRY(kymo_table_status(scaling->tables[i]));
    return KYMO_OK;
}

/* What was only needed to make the tables. */
static void free_making(struct kymo_scaling *scaling)
{
    for (size_t i = 0; i < scaling->n_series; i++)
        for (size_t model = 0; model < KYMO__N_SCALING_MODELS; model++)
            kymo__free(scaling->series[i].fits[model].forecast);
    kymo__free(scaling->members);
    kymo__free(scaling->points);
    kymo__free(scaling->series);
}

kymo_status kymo_scaling_create(const kymo_scaling_runs *runs,
                                const struct kymo_scaling_options *options, kymo_scaling **out)
{
    if (runs->n == 0)
        return kymo__fail(KYMO_EFORMAT, "there are no measured runs to tell scaling from");
    struct kymo_scaling_options taken = {0};
    KYMO_TRY(take_options(&taken, options));
    kymo_scaling *scaling = kymo__calloc(1, sizeof *scaling);
    if (scaling == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for scaling");
    scaling->runs = runs;
    scaling->options = taken;
    const kymo_status status = make(scaling);
    free_making(scaling);
    if (status != KYMO_OK) {
        kymo_scaling_destroy(scaling);
        return status;
    }
    *out = scaling;
    return KYMO_OK;
}

void kymo_scaling_destroy(kymo_scaling *scaling)
{
    if (scaling == NULL)
        return;
    for (size_t i = 0; i < KYMO__N_SCALING_TABLES; i++)
        kymo_table_destroy(scaling->tables[i]);
    kymo__free(scaling);
}

kymo_table *kymo_scaling_table(kymo_scaling *scaling, const char *name)
{
    for (size_t i = 0; i < KYMO__N_SCALING_TABLES; i++)
        if (strcmp(kymo_table_name(scaling->tables[i]), name) == 0)
            return scaling->tables[i];
    return NULL;
}
