/* The scaling report: groups runs into series of points, computes statistics, fits laws and makes tables. */
#include <math.h>
#include <stdlib.h>

#include "analyze/scaling/internal.h"

enum { N_RESAMPLES = 2000 };

/* ---- the report ---- */

static marey_status no_times(const struct marey__scaling *scaling)
{
    if (scaling->options.measure != NULL)
        return marey__fail(MAREY_EFORMAT,
                           "none of %zu runs has the time of an %s; select the other measure",
                           scaling->n_members, scaling->options.measure);
    return marey__fail(MAREY_EFORMAT,
                       "none of %zu runs has the time of an epoch or of a step in it: "
                       "marey.TrainingMonitor, marey.epoch() and marey.iteration() record them",
                       scaling->n_members);
}

static marey_status analyze(struct marey__scaling *scaling)
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
    marey__scaling_put_rows(scaling);
    MAREY__TRY_MEMORY(marey__scaling_put_notes(scaling));
    return MAREY_OK;
}

/* Free the data needed only to make the tables. */
static void free_making(struct marey__scaling *scaling)
{
    for (size_t i = 0; i < scaling->n_series; i++)
        for (size_t model = 0; model < MAREY__N_SCALING_MODELS; model++)
            marey__free(scaling->series[i].fits[model].forecast);
    MAREY__FREE_ALL(scaling->members, scaling->points, scaling->series);
}

static marey_status fill(marey_report *report, const struct marey__scaling_runs *runs,
                         const struct marey__scaling_options *options)
{
    struct marey__scaling scaling MAREY__FINALLY(free_making) = {
        .tables = report->tables, .runs = runs, .options = *options};
    if (runs->n == 0)
        return marey__fail(MAREY_EFORMAT, "there are no measured runs");
    if (scaling.options.n_resamples == 0)
        scaling.options.n_resamples = N_RESAMPLES;
    MAREY_TRY(analyze(&scaling));
    report->data = marey__scaling_list_create(report->tables[MAREY__SCALING_POINTS]);
    return report->data != NULL ? MAREY_OK : marey__no_memory();
}

/* ---- reading ---- */

enum { MAX_FORECASTS = 32 };

/* "64,128" */
static marey_status parse_forecast(const char *value, uint32_t counts[MAX_FORECASTS], size_t *n)
{
    for (const char *text = value; *n < MAX_FORECASTS; text++) {
        char *end;
        const long count = strtol(text, &end, 10);
        if (end == text || count < 1 || count > INT32_MAX || (*end != ',' && *end != '\0'))
            break;
        counts[(*n)++] = (uint32_t)count;
        if (*end == '\0')
            return MAREY_OK;
        text = end;
    }
    return marey__fail(MAREY_EINVAL,
                       "forecast takes up to %d numbers of workers such as 64,128, not '%s'",
                       MAX_FORECASTS, value);
}

static marey_status read_all(struct marey__scaling_runs *runs, const struct marey__request *request)
{
    const struct marey_report_options *const given = request->options;
    const char *const strategy = marey__setting(request, "strategy"), *const store = marey__setting(
                                                                          request, "mlflow");
    struct marey__scaling_read_options options = {
        .experiment = marey__setting(request, "experiment"),
        .workers = marey__setting_count(request, "workers"),
        .n_jobs = given->n_jobs,
        .progress = given->progress,
        .progress_ctx = given->progress_ctx,
        .convert = given->convert,
        .convert_ctx = given->convert_ctx,
    };
    for (size_t i = 0; i < request->n; i++) {
        options.source = given->names != NULL ? given->names[i] : NULL;
        options.strategy =
            given->groups != NULL && given->groups[i] != NULL ? given->groups[i] : strategy;
        MAREY_TRY(marey__scaling_runs_read(runs, request->paths[i], false, &options));
    }
    if (store == NULL)
        return MAREY_OK;
    /* For a store, the experiment selects what is read. */
    const struct marey__scaling_read_options of_store = {.strategy = strategy,
                                                         .source = "MLflow",
                                                         .convert = given->convert,
                                                         .convert_ctx = given->convert_ctx};
    return marey__scaling_runs_read(runs, store, true, &of_store);
}

static marey_status make(marey_report *report, const struct marey__request *request)
{
    const struct marey__scaling_input *const input = request->input;
    if (input != NULL)
        return fill(report, input->runs, &input->options);
    uint32_t forecast[MAX_FORECASTS];
    struct marey__scaling_runs runs MAREY__FINALLY(marey__scaling_runs_fini) = {0};
    struct marey__scaling_options options = {
        .with_first = marey__setting_is_on(request, "with-first"),
        .kind = marey__setting(request, "kind"),
        .measure = marey__setting(request, "measure"),
        .forecast = forecast,
    };
    const char *const asked = marey__setting(request, "forecast");
    if (asked != NULL)
        MAREY_TRY(parse_forecast(asked, forecast, &options.n_forecast));
    MAREY_TRY(read_all(&runs, request));
    return fill(report, &runs, &options);
}

/* ---- registry entry ---- */

static const struct marey_setting settings[] = {
    {"measure", MAREY_SETTING_CHOICE, "epoch|step",
     "which time is compared (default: epochs, where the runs have\nthem)", 'm'},
    {"kind", MAREY_SETTING_CHOICE, "strong|weak",
     "whether all runs do the same work, or each worker does\n(default: by the samples)", 'k'},
    {"with-first", MAREY_SETTING_FLAG, NULL, "count first epochs too; they are left out as warm-up"},
    {"forecast", MAREY_SETTING_TEXT, "N,N,...",
     "numbers of workers to forecast (default: 2, 4 and 8 times\nthe most that were measured)", 'f'},
    {"mlflow", MAREY_SETTING_TEXT, "URI|DIR",
     "runs of an MLflow store as well, as itwinai and marey log them"},
    {"experiment", MAREY_SETTING_TEXT, "NAME",
     "the experiment of all runs; of a store, which one to read\n(default: all of it)"},
    {"strategy", MAREY_SETTING_TEXT, "NAME", "the series of all runs; NAME=RUN sets it for one"},
    {"workers", MAREY_SETTING_COUNT, "N", "how many workers each of these runs had", 'w'},
};

static const struct marey__report_format formats[] = {
    {"markdown", marey__scaling_markdown},
    {"html", marey__scaling_html},
    {"svg", marey__scaling_svg},
    {0},
};

const struct marey__analysis marey__analysis_scale = {
    .about = {.name = "scale",
              .help = "speedup and efficiency over numbers of workers, fits and forecasts",
              .needs = "runs with different numbers of workers, whose epochs or steps "
                       "marey.TrainingMonitor, marey.epoch() and marey.iteration() record",
              MAREY__SETTINGS(settings),
              MAREY__TABLES(marey__scaling_tables),
              .csv = "points",
              .command = "scale"},
    .reads_paths = true,
    .make = make,
    .destroy = marey__scaling_list_destroy,
    .text = marey__scaling_text,
    .json = marey__scaling_json,
    .formats = formats,
};
