/*
 * scaling: from measured runs to what more workers bring.
 *
 *   paths ── scaling_read*.c ──> scaling_runs.c (the list)
 *         ── scaling_series.c ──> series of points of members; scaling_values.c: which epochs of a run count
 *         ── scaling_resample.c ─> medians and how sure they are
 *         ── scaling_points.c ──> speedup, efficiency, energy, by points
 *         ── scaling_models.c ──> Amdahl and USL ── scaling_forecast.c ── where they lead, and the best of all
 *         ── scaling_rows.c, scaling_tables.c ── scaling_findings.c, scaling_notes.c (sentences)
 *
 * Statistics are on the logarithms of times: a speedup is a ratio, and noise grows with what it disturbs. Memory: a
 * kilobyte for each run beside the runs themselves.
 */
#ifndef KYMO_SCALING_WHOLE_H
#define KYMO_SCALING_WHOLE_H

#include "analyze/analyze_internal.h"
#include <kymo/scaling.h>

struct kymo_scaling_runs {
    struct kymo_scaling_run *list; /* owns their arrays */
    size_t n, cap;
    const char **notes;
    size_t n_notes, notes_cap;
    struct kymo__arena texts;
};

/* ---- what is measured ---- */

enum kymo__scaling_measure {
    KYMO__SCALING_EPOCH, /* seconds */
    KYMO__SCALING_STEP,
    KYMO__SCALING_JOULES, /* of an epoch */
    KYMO__N_SCALING_MEASURES,
};

enum { KYMO__SCALING_UNITS = 32 };

/* What is kept of the values of a run: their median, and what is resampled in their stead. */
struct kymo__scaling_values {
    size_t n;      /* values that count */
    double median; /* NaN: none */
    size_t n_units;
    double units[KYMO__SCALING_UNITS]; /* in order of size: the values, of many the medians of successive blocks */
};

/* A run at its place in a point. */
struct kymo__scaling_member {
    const struct kymo_scaling_run *run;
    uint32_t series;
    bool has_only_first;      /* its only epoch is its first, which warms up */
    bool has_joules_of_whole; /* energy is known of the whole run alone */
    struct kymo__scaling_values values[KYMO__N_SCALING_MEASURES];
};

/* A figure and how sure it is: a standard error of its logarithm by so many degrees of freedom. NaN: not known. */
struct kymo__scaling_level {
    double value, error, df;
    double epoch_error; /* as far as epochs of runs differ; the error is at least as large */
    double low, high;
    double spread; /* between the medians of runs, over the value */
    size_t n_runs, n_values;
    bool is_common; /* its degrees of freedom are those of all points of the series together */
};

/* Runs of a series with one number of workers. */
struct kymo__scaling_point {
    uint32_t workers, nodes; /* nodes 0: unknown, or not the same in all */
    size_t first, n;         /* members */
    struct kymo__scaling_level levels[KYMO__N_SCALING_MEASURES];
    double samples_per_epoch, batch;
    double work;       /* in what is measured, against the baseline's. NaN: unknown */
    double epoch_work; /* in an epoch */
    double compute_s, communication_s, memory_s, idle_s; /* means: they add up, as those of a run do */
    double utilization, computation_fraction, computation_vs_communication;
    struct kymo__scaling_level speedup;
    double ideal, karp_flatt, karp_flatt_error;
};

enum kymo__scaling_kind {
    KYMO__SCALING_STRONG,
    KYMO__SCALING_WEAK,
    KYMO__SCALING_MIXED,
    KYMO__SCALING_UNKNOWN, /* taken as strong */
};

enum kymo__scaling_model { KYMO__SCALING_AMDAHL, KYMO__SCALING_USL, KYMO__N_SCALING_MODELS };

/* T(n) = parallel / n + serial + coherency (n - 1), none of the three negative. */
struct kymo__scaling_curve {
    double parallel_s, serial_s, coherency_s;
};

struct kymo__scaling_interval {
    double value, low, high; /* NaN: unknown. Infinite: without end */
};

struct kymo__scaling_fit {
    const char *reason; /* why there is none, or what it cannot tell; NULL: nothing to say */
    bool is_fitted;
    struct kymo__scaling_curve curve;
    size_t n_points;
    double residual;
    struct kymo__scaling_interval serial, coherency, best; /* shares of T(1); workers */
    struct kymo__scaling_interval *forecast; /* seconds, for each kymo__scaling_asked() */
};

struct kymo__scaling_series {
    const char *experiment, *strategy;
    size_t first, n; /* points that have a time, by workers */
    enum kymo__scaling_measure measure;
    enum kymo__scaling_kind kind, epoch_kind;
    size_t n_without; /* points that have no time in this measure, behind the others */
    struct kymo__scaling_fit fits[KYMO__N_SCALING_MODELS];
};

/* ---- the whole ---- */

enum kymo__scaling_table {
    KYMO__SCALING_POINTS,
    KYMO__SCALING_FITS,
    KYMO__SCALING_FORECAST,
    KYMO__SCALING_BEST,
    KYMO__SCALING_RUNS,
    KYMO__SCALING_NOTES,
    KYMO__N_SCALING_TABLES,
};

struct kymo_scaling {
    kymo_table *tables[KYMO__N_SCALING_TABLES];
    /* What follows is gone once the tables are made. */
    const kymo_scaling_runs *runs;
    struct kymo_scaling_options options; /* with defaults filled in; forecast may be NULL */
    struct kymo__scaling_member *members;
    size_t n_members;
    struct kymo__scaling_point *points;
    size_t n_points;
    struct kymo__scaling_series *series;
    size_t n_series;
};

/* ---- scaling_series.c ---- */

/* Put runs into series and points. */
KYMO_WARN_UNUSED kymo_status kymo__scaling_group(struct kymo_scaling *scaling);
/* Choose what is measured, and keep the points that have it. */
void kymo__scaling_choose(const struct kymo_scaling *scaling, struct kymo__scaling_series *series);

/* ---- scaling_values.c ---- */

/* What counts of a run's values. False without memory. */
KYMO_WARN_UNUSED bool kymo__scaling_values_read(struct kymo__scaling_member *member, bool with_first);

/* ---- scaling_resample.c ---- */

struct kymo__scaling_random {
    uint64_t state;
};
/* Equal parts give equal numbers, whatever else was drawn before. */
struct kymo__scaling_random kymo__scaling_random_of(uint64_t seed, uint64_t a, uint64_t b);
/* Normally distributed, around 0 with a deviation of 1. */
double kymo__scaling_random_normal(struct kymo__scaling_random *random);

/* The levels of all points, each by itself. */
KYMO_WARN_UNUSED kymo_status kymo__scaling_levels(struct kymo_scaling *scaling);
/* Their intervals, by what all points of the series show. */
void kymo__scaling_bound(const struct kymo_scaling *scaling,
                         const struct kymo__scaling_series *series);
/* Set low and high from value, error and df. */
void kymo__scaling_level_bound(struct kymo__scaling_level *level, double confidence);

/* ---- scaling_points.c ---- */

/* A number of workers further out than this, against the largest measured, is no more than a guess. */
enum { KYMO__SCALING_FURTHEST = 8 };

/* Work, speedup and what follows from them. */
void kymo__scaling_compare_points(const struct kymo_scaling *scaling,
                                  struct kymo__scaling_series *series);

static inline const struct kymo__scaling_level *
kymo__scaling_time(const struct kymo__scaling_series *series, const struct kymo__scaling_point *point)
{
    return &point->levels[series->measure];
}

/* Whether repeats differ by more than they may. */
static inline bool kymo__scaling_disagrees(const struct kymo_scaling *scaling,
                                           const struct kymo__scaling_level *level)
{
    return level->n_runs > 1 && level->spread > scaling->options.largest_spread;
}

/* The work that is forecast for so many workers, against the baseline's. */
static inline double kymo__scaling_work_at(const struct kymo__scaling_series *series,
                                           const struct kymo__scaling_point *baseline, double workers)
{
    return series->kind == KYMO__SCALING_WEAK ? workers / baseline->workers : 1;
}

/* Seconds for the baseline's work. */
static inline double kymo__scaling_unit_s(const struct kymo__scaling_series *series,
                                          const struct kymo__scaling_point *point)
{
    return kymo__scaling_time(series, point)->value / point->work;
}

/* ---- scaling_models.c ---- */

/* The curve nearest to `seconds` at `workers`, by relative distances; with `has_coherency` of the three, else of two. */
struct kymo__scaling_curve kymo__scaling_curve_fit(const double *workers, const double *seconds,
                                                   size_t n, bool has_coherency);
double kymo__scaling_curve_at(const struct kymo__scaling_curve *curve, double workers);
/* Where it is lowest; infinite when it falls for ever. */
double kymo__scaling_curve_best(const struct kymo__scaling_curve *curve);

/* ---- scaling_forecast.c ---- */

/* Fit both models, with intervals by resampling; the caller frees their forecasts, also on failure. */
KYMO_WARN_UNUSED kymo_status kymo__scaling_fit_series(const struct kymo_scaling *scaling,
                                                      struct kymo__scaling_series *series);
/* The numbers of workers to forecast. */
size_t kymo__scaling_n_asked(const struct kymo_scaling *scaling);
double kymo__scaling_asked(const struct kymo_scaling *scaling,
                           const struct kymo__scaling_series *series, size_t i);

/* ---- scaling_tables.c, scaling_rows.c, scaling_notes.c, scaling_findings.c ---- */

KYMO_WARN_UNUSED kymo_status kymo__scaling_make_tables(struct kymo_scaling *scaling);
/* Memory that runs out is remembered by the tables. */
void kymo__scaling_put_rows(struct kymo_scaling *scaling);
KYMO_WARN_UNUSED bool kymo__scaling_put_notes(struct kymo_scaling *scaling);

/* Sentences, each with a line end behind it. */
void kymo__scaling_name(struct kymo__buf *text, const struct kymo__scaling_series *series);
void kymo__scaling_find(struct kymo__buf *text, const struct kymo_scaling *scaling,
                        const struct kymo__scaling_series *series);

#endif
