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
#ifndef MAREY_SCALING_WHOLE_H
#define MAREY_SCALING_WHOLE_H

#include "analyze/walk/internal.h"
#include <marey/scaling.h>

struct marey_scaling_runs {
    struct marey_scaling_run *list; /* owns their arrays */
    size_t n, cap;
    const char **notes;
    size_t n_notes, notes_cap;
    struct marey__arena texts;
};

/* ---- what is measured ---- */

enum marey__scaling_measure {
    MAREY__SCALING_EPOCH, /* seconds */
    MAREY__SCALING_STEP,
    MAREY__SCALING_JOULES, /* of an epoch */
    MAREY__N_SCALING_MEASURES,
};

enum { MAREY__SCALING_UNITS = 32 };

/* What is kept of the values of a run: their median, and what is resampled in their stead. */
struct marey__scaling_values {
    size_t n;      /* values that count */
    double median; /* NaN: none */
    size_t n_units;
    double units[MAREY__SCALING_UNITS]; /* in order of size: the values, of many the medians of successive blocks */
};

/* A run at its place in a point. */
struct marey__scaling_member {
    const struct marey_scaling_run *run;
    uint32_t series;
    bool has_only_first;      /* its only epoch is its first, which warms up */
    bool has_joules_of_whole; /* energy is known of the whole run alone */
    struct marey__scaling_values values[MAREY__N_SCALING_MEASURES];
};

/* A figure and how sure it is: a standard error of its logarithm by so many degrees of freedom. NaN: not known. */
struct marey__scaling_level {
    double value, error, df;
    double epoch_error; /* as far as epochs of runs differ; the error is at least as large */
    double low, high;
    double spread; /* between the medians of runs, over the value */
    size_t n_runs, n_values;
    bool is_common; /* its degrees of freedom are those of all points of the series together */
};

/* Runs of a series with one number of workers. */
struct marey__scaling_point {
    uint32_t workers, nodes; /* nodes 0: unknown, or not the same in all */
    size_t first, n;         /* members */
    struct marey__scaling_level levels[MAREY__N_SCALING_MEASURES];
    double samples_per_epoch, batch;
    double work;       /* in what is measured, against the baseline's. NaN: unknown */
    double epoch_work; /* in an epoch */
    double compute_s, communication_s, memory_s, idle_s; /* means: they add up, as those of a run do */
    double utilization, computation_fraction, computation_vs_communication;
    struct marey__scaling_level speedup;
    double ideal, karp_flatt, karp_flatt_error;
};

enum marey__scaling_kind {
    MAREY__SCALING_STRONG,
    MAREY__SCALING_WEAK,
    MAREY__SCALING_MIXED,
    MAREY__SCALING_UNKNOWN, /* taken as strong */
};

enum marey__scaling_model { MAREY__SCALING_AMDAHL, MAREY__SCALING_USL, MAREY__N_SCALING_MODELS };

/* T(n) = parallel / n + serial + coherency (n - 1), none of the three negative. */
struct marey__scaling_curve {
    double parallel_s, serial_s, coherency_s;
};

struct marey__scaling_interval {
    double value, low, high; /* NaN: unknown. Infinite: without end */
};

struct marey__scaling_fit {
    const char *reason; /* why there is none, or what it cannot tell; NULL: nothing to say */
    bool is_fitted;
    struct marey__scaling_curve curve;
    size_t n_points;
    double residual;
    struct marey__scaling_interval serial, coherency, best; /* shares of T(1); workers */
    struct marey__scaling_interval *forecast; /* seconds, for each marey__scaling_asked() */
};

struct marey__scaling_series {
    const char *experiment, *strategy;
    size_t first, n; /* points that have a time, by workers */
    enum marey__scaling_measure measure;
    enum marey__scaling_kind kind, epoch_kind;
    size_t n_without; /* points that have no time in this measure, behind the others */
    struct marey__scaling_fit fits[MAREY__N_SCALING_MODELS];
};

/* ---- the whole ---- */

enum marey__scaling_table {
    MAREY__SCALING_POINTS,
    MAREY__SCALING_FITS,
    MAREY__SCALING_FORECAST,
    MAREY__SCALING_BEST,
    MAREY__SCALING_RUNS,
    MAREY__SCALING_NOTES,
    MAREY__N_SCALING_TABLES,
};

struct marey_scaling {
    marey_table *tables[MAREY__N_SCALING_TABLES];
    /* What follows is gone once the tables are made. */
    const marey_scaling_runs *runs;
    struct marey_scaling_options options; /* with defaults filled in; forecast may be NULL */
    struct marey__scaling_member *members;
    size_t n_members;
    struct marey__scaling_point *points;
    size_t n_points;
    struct marey__scaling_series *series;
    size_t n_series;
};

/* ---- scaling_series.c ---- */

/* Put runs into series and points. */
MAREY_WARN_UNUSED marey_status marey__scaling_group(struct marey_scaling *scaling);
/* Choose what is measured, and keep the points that have it. */
void marey__scaling_choose(const struct marey_scaling *scaling, struct marey__scaling_series *series);

/* ---- scaling_values.c ---- */

/* What counts of a run's values. False without memory. */
MAREY_WARN_UNUSED bool marey__scaling_values_read(struct marey__scaling_member *member,
                                                  bool with_first);

/* ---- scaling_resample.c ---- */

struct marey__scaling_random {
    uint64_t state;
};
/* Equal parts give equal numbers, whatever else was drawn before. */
struct marey__scaling_random marey__scaling_random_of(uint64_t seed, uint64_t a, uint64_t b);
/* Normally distributed, around 0 with a deviation of 1. */
double marey__scaling_random_normal(struct marey__scaling_random *random);

/* The levels of all points, each by itself. */
MAREY_WARN_UNUSED marey_status marey__scaling_levels(struct marey_scaling *scaling);
/* Their intervals, by what all points of the series show. */
void marey__scaling_bound(const struct marey_scaling *scaling,
                          const struct marey__scaling_series *series);
/* Set low and high from value, error and df. */
void marey__scaling_level_bound(struct marey__scaling_level *level, double confidence);

/* ---- scaling_points.c ---- */

/* A number of workers further out than this, against the largest measured, is no more than a guess. */
enum { MAREY__SCALING_FURTHEST = 8 };

/* Work, speedup and what follows from them. */
void marey__scaling_compare_points(const struct marey_scaling *scaling,
                                   struct marey__scaling_series *series);

static inline const struct marey__scaling_level *
marey__scaling_time(const struct marey__scaling_series *series,
                    const struct marey__scaling_point *point)
{
    return &point->levels[series->measure];
}

/* Whether repeats differ by more than they may. */
static inline bool marey__scaling_disagrees(const struct marey_scaling *scaling,
                                            const struct marey__scaling_level *level)
{
    return level->n_runs > 1 && level->spread > scaling->options.largest_spread;
}

/* The work that is forecast for so many workers, against the baseline's. */
static inline double marey__scaling_work_at(const struct marey__scaling_series *series,
                                            const struct marey__scaling_point *baseline,
                                            double workers)
{
    return series->kind == MAREY__SCALING_WEAK ? workers / baseline->workers : 1;
}

/* Seconds for the baseline's work. */
static inline double marey__scaling_unit_s(const struct marey__scaling_series *series,
                                           const struct marey__scaling_point *point)
{
    return marey__scaling_time(series, point)->value / point->work;
}

/* ---- scaling_models.c ---- */

/* The curve nearest to `seconds` at `workers`, by relative distances; with `has_coherency` of the three, else of two. */
struct marey__scaling_curve marey__scaling_curve_fit(const double *workers, const double *seconds,
                                                     size_t n, bool has_coherency);
double marey__scaling_curve_at(const struct marey__scaling_curve *curve, double workers);
/* Where it is lowest; infinite when it falls for ever. */
double marey__scaling_curve_best(const struct marey__scaling_curve *curve);

/* ---- scaling_forecast.c ---- */

/* Fit both models, with intervals by resampling; the caller frees their forecasts, also on failure. */
MAREY_WARN_UNUSED marey_status marey__scaling_fit_series(const struct marey_scaling *scaling,
                                                         struct marey__scaling_series *series);
/* The numbers of workers to forecast. */
size_t marey__scaling_n_asked(const struct marey_scaling *scaling);
double marey__scaling_asked(const struct marey_scaling *scaling,
                            const struct marey__scaling_series *series, size_t i);

/* ---- scaling_tables.c, scaling_rows.c, scaling_notes.c, scaling_findings.c ---- */

MAREY_WARN_UNUSED marey_status marey__scaling_make_tables(struct marey_scaling *scaling);
/* Memory that runs out is remembered by the tables. */
void marey__scaling_put_rows(struct marey_scaling *scaling);
MAREY_WARN_UNUSED bool marey__scaling_put_notes(struct marey_scaling *scaling);

/* Sentences, each with a line end behind it. */
void marey__scaling_name(struct marey__buf *text, const struct marey__scaling_series *series);
void marey__scaling_find(struct marey__buf *text, const struct marey_scaling *scaling,
                         const struct marey__scaling_series *series);

#endif
