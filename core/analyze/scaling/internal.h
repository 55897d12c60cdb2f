/*
 * scaling: runs with different worker counts: speedup, efficiency, limits.
 *
 *   paths -- scaling_read.c: the files at a path, and the list of runs
 *               scaling_read_recording.c, scaling_read_steps.c: the runs of a recording or of traces
 *               scaling_read_csv.c, scaling_read_measures.c: from rows of a CSV of measurements to runs
 *         -- scaling.c, scaling_series.c: series of points, their speedup
 *         -- scaling_resample.c: medians with intervals; scaling_fits.c: Amdahl and USL fits, and forecasts
 *         -- scaling_tables.c, scaling_notes.c: the tables of the report
 *
 *   report -- scaling_summary.c: rows of each series; a summary of each
 *          -- scaling_charts.c, scaling_write.c: charts, text, Markdown, JSON, a page; tables for people
 *
 * Statistics use logarithms of times. A path that cannot be read becomes a note, and the rest is still read.
 *
 * Input: paths. Output: a report with charts and a page. Memory: about 1 kB per run in addition to its measurements.
 * Does not know present/page: its own page is a small file without events.
 */
#ifndef MAREY_ANALYZE_SCALING_INTERNAL_H
#define MAREY_ANALYZE_SCALING_INTERNAL_H

#include "analyze/device/internal.h"
#include "analyze/walk/internal.h"
#include "codec/internal.h"
#include "present/draw/internal.h"
#include "report/internal.h"

/* ---- scaling_read.c: runs ---- */

/* Numbers of a run, and their means over the runs of a point. NaN: unknown. Those in a CSV come first, in its order. */
union marey__scaling_numbers {
    struct {
        double samples_per_epoch; /* of all workers together */
        double batch;             /* training samples per step, of all workers together */
        /* Seconds of a step, means over ranks, which add up to the step. Communication and memory: exposed */
        double compute_s, communication_s, memory_s, idle_s;
        double computation_fraction, computation_vs_communication; /* itwinai's definitions */
        double utilization;                                        /* 0..1 */
        double joules;                                             /* of the whole run */
    };
    double all[10];
};
enum {
    MAREY__SCALING_FIRST_PART = 2, /* compute_s and the next three */
    MAREY__SCALING_PARTS = 4,
    MAREY__SCALING_NUMBERS = 10,
};

/* One execution of a program. */
struct marey__scaling_run {
    const char *experiment; /* "": none */
    const char *strategy;   /* the series: "torch-ddp"; "": unknown */
    const char *name;       /* for messages: a path, or the run's name in another tool */
    uint32_t workers;       /* ranks; from 1 */
    uint32_t nodes;         /* 0: unknown */
    const double *epoch_s;  /* of the slowest rank, in order, including the first */
    size_t n_epochs;
    const double *epoch_j; /* joules of each epoch; NaN: unknown. NULL: all unknown */
    const double *step_s; /* of the slowest rank, without warm-up; an evenly spaced sample of at most MAREY__SCALING_STEPS */
    size_t n_steps;
    union marey__scaling_numbers numbers;
    uint32_t first_epoch_counts; /* non-zero: the first epoch is not warm-up */
    uint32_t is_partial;         /* non-zero: it stopped early; its complete epochs count */
    double *owned;               /* memory of the arrays, for a run in a list */
};

/* A run of which only the name is known, which is borrowed. */
struct marey__scaling_run marey__scaling_run_unknown(const char *name);

struct marey__scaling_runs {
    struct marey__scaling_run *list;
    size_t n, cap;
    const char **notes;
    size_t n_notes, notes_cap;
    struct marey__arena texts;
};
void marey__scaling_runs_fini(struct marey__scaling_runs *runs);
/*
 * Append a copy; strings may be NULL for "". MAREY_EINVAL, naming the run, for no workers or a time that is not
 * positive and finite; the list is then unchanged. A run without epochs and steps is accepted and gets a note.
 */
MAREY_WARN_UNUSED marey_status marey__scaling_runs_add(struct marey__scaling_runs *runs,
                                                       const struct marey__scaling_run *run);
/* Append a note, copied: something could not be read. */
MAREY_WARN_UNUSED marey_status marey__scaling_runs_note(struct marey__scaling_runs *runs,
                                                        const char *note);

struct marey__scaling_read_options {
    /* Each replaces the value in the data, unless NULL or 0. */
    const char *experiment, *strategy;
    uint32_t workers;
    uint32_t n_jobs; /* reading threads; 0: one per CPU core */
    marey_progress *progress;
    void *progress_ctx;
    const char *source; /* name of a CSV of measurements, for names of runs and notes; NULL: its path */
    marey_convert *convert; /* for itwinai's CSV files and stores; NULL: these are not read */
    void *convert_ctx;
};
/*
 * Append the runs at `path`: a recording, a folder of recordings or traces, a CSV of measurements, or an MLflow store.
 * An unreadable source becomes a note. MAREY_EFORMAT if no run was found.
 */
MAREY_WARN_UNUSED marey_status
marey__scaling_runs_read(struct marey__scaling_runs *runs, const char *path, bool is_store,
                         const struct marey__scaling_read_options *options);

/* Input of the readers of single sources. */
struct marey__scaling_reading {
    struct marey__scaling_runs *runs;                  /* appended to */
    const struct marey__scaling_read_options *options; /* borrowed, never NULL */
    const char *name;                                  /* of the source, for notes */
    uint32_t n_jobs;                                   /* allowed reading threads */
};
/* Add a run, with values replaced by the options. An invalid run becomes a note. */
MAREY_WARN_UNUSED marey_status marey__scaling_read_add(const struct marey__scaling_reading *reading,
                                                       struct marey__scaling_run *run);
MAREY_WARN_UNUSED marey_status marey__scaling_read_note(const struct marey__scaling_reading *reading,
                                                        const char *fmt, ...) MAREY_PRINTF(2, 3);

/* Limit on steps kept per run; of more, an evenly spaced sample. */
enum { MAREY__SCALING_STEPS = 10000 };

/* ---- scaling_read_recording.c: a recording, or a file or folder of traces ---- */

MAREY_WARN_UNUSED marey_status marey__scaling_read_recording(
    const struct marey__scaling_reading *reading, const char *path, bool is_trace);

/* ---- scaling_read_steps.c: steps of the processes of a recording ---- */

struct marey__scaling_step {
    uint64_t key; /* its number, or continued from the last where the count restarts */
    double s, samples;
    uint32_t n; /* processes with this step */
};

/* The steps of one process, or of several. Zero-initialize. */
struct marey__scaling_steps {
    struct marey__scaling_step *list; /* by key */
    size_t n, cap;
    /* For one process: */
    uint64_t n_seen;     /* ended steps */
    uint64_t n_warmup;   /* at its start, not in the list */
    uint64_t n_epochs;   /* begun */
    bool has_open_epoch; /* at its end */
};
/* Read one process; any thread. */
MAREY_WARN_UNUSED marey_status marey__scaling_steps_read(struct marey__scaling_steps *steps,
                                                         marey_recording *recording, size_t process);
/* Add another process: the slowest time and the sum of samples of each step. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__scaling_steps_merge(struct marey__scaling_steps *steps,
                                                  const struct marey__scaling_steps *other);
void marey__scaling_steps_fini(struct marey__scaling_steps *steps);

/* Parts of the steps of one process without warm-up, summed, in nanoseconds. */
struct marey__scaling_parts {
    double ns[MAREY__SCALING_PARTS]; /* compute, exposed communication, exposed copies, idle */
    uint64_t n_steps;                /* of all its devices */
    bool has_device;                 /* of GPUs; else of the process itself */
};
MAREY_WARN_UNUSED marey_status marey__scaling_parts_read(struct marey__scaling_parts *parts,
                                                         marey_recording *recording, size_t process,
                                                         const struct marey__rules *rules,
                                                         uint64_t n_warmup);

/* ---- scaling_read_csv.c, scaling_read_measures.c ---- */

enum marey__scaling_file {
    MAREY__FILE_OTHER, /* as a source: a recording */
    MAREY__FILE_MEASUREMENTS,
    MAREY__FILE_ITWINAI, /* itwinai's CSV: power, epoch times or averages */
    MAREY__FILE_TRACE,
};
/* The kind of a CSV, by its first line; OTHER for a trace. */
enum marey__scaling_file marey__scaling_csv_kind(const char *text, size_t len);

/* The measures, in the order of docs/formats/scaling-csv.md. */
enum marey__measure {
    MAREY__MEASURE_EPOCH,
    MAREY__MEASURE_STEP,
    MAREY__MEASURE_POWER,
    MAREY__MEASURE_UTILIZATION,
    MAREY__MEASURE_ENERGY,
    MAREY__MEASURE_INTERVAL,
    MAREY__MEASURE_RATE,    /* training samples per second */
    MAREY__MEASURE_NUMBERS, /* from here on as in union marey__scaling_numbers, one per run */
    MAREY__MEASURE_FRACTION = MAREY__MEASURE_NUMBERS + 6,
    MAREY__MEASURE_VERSUS,
    MAREY__N_MEASURES,
};

/* One number of one run. */
struct marey__measured {
    double step, unix_ms, value; /* step and unix_ms: NaN if missing */
    uint32_t run;
    int32_t rank; /* -1: missing */
    uint32_t measure;
};

struct marey__measured_run {
    const char *experiment, *strategy, *name; /* stored in `texts` */
    uint32_t workers, nodes;
    uint32_t repeat; /* from 0, for runs with the same name */
};

/* Zero-initialize; fini() accepts a partially filled one. */
struct marey__measurements {
    struct marey__measured *rows;
    size_t n_rows, rows_cap;
    struct marey__measured_run *runs;
    size_t runs_cap;
    struct marey__names run_keys;
    struct marey__key_map series_keys;
    struct marey__measured_series *series;
    size_t n_series, series_cap;
    struct marey__arena texts;
    uint64_t n_dropped;      /* rows without a number of workers, or with an impossible value */
    struct marey__buf notes; /* rows of the measure "note", NUL-terminated */
    uint64_t n_unknown;      /* rows of other measures */
    char unknown[64];        /* the first of those */
};
MAREY_WARN_UNUSED marey_status marey__measurements_read(struct marey__measurements *m,
                                                        marey__byte_source *bytes, const char *path);
void marey__measurements_fini(struct marey__measurements *m);
/* Convert the rows to runs; sorts them. */
MAREY_WARN_UNUSED marey_status marey__measurements_add(const struct marey__scaling_reading *reading,
                                                       struct marey__measurements *m);
MAREY_WARN_UNUSED marey_status marey__scaling_read_csv(const struct marey__scaling_reading *reading,
                                                       const char *path);

/* ---- the analysis ---- */

enum marey__scaling_measure {
    MAREY__SCALING_EPOCH, /* seconds */
    MAREY__SCALING_STEP,
    MAREY__SCALING_JOULES, /* of an epoch */
    MAREY__N_SCALING_MEASURES,
};

enum { MAREY__SCALING_UNITS = 32 };

/* The values of a run in one measure: their median, and units to resample. */
struct marey__scaling_values {
    size_t n;      /* values that count */
    double median; /* NaN: none */
    size_t n_units;
    double units[MAREY__SCALING_UNITS]; /* sorted: the values, or if there are many, medians of successive blocks */
};

/* A run within a point. */
struct marey__scaling_member {
    const struct marey__scaling_run *run;
    uint32_t series;
    bool has_only_first;      /* its only epoch is warm-up */
    bool has_joules_of_whole; /* energy is known only for the whole run */
    struct marey__scaling_values values[MAREY__N_SCALING_MEASURES];
};

/* A value with its uncertainty: the standard error of its logarithm and degrees of freedom. NaN: unknown. */
struct marey__scaling_level {
    double value, error, df;
    double epoch_error; /* from differences between epochs; a lower limit of the error */
    double low, high;
    double spread; /* range of the runs' medians over the value */
    size_t n_runs, n_values;
    bool is_common; /* degrees of freedom are shared by all points of the series */
};

/* Runs of a series with one number of workers. */
struct marey__scaling_point {
    uint32_t workers, nodes; /* nodes 0: unknown, or not equal */
    size_t first, n;         /* members */
    struct marey__scaling_level levels[MAREY__N_SCALING_MEASURES];
    union marey__scaling_numbers numbers; /* means; the parts of a step still add up */
    double work;       /* in the measure, relative to the baseline. NaN: unknown */
    double epoch_work; /* in an epoch */
    struct marey__scaling_level speedup;
    double ideal, karp_flatt, karp_flatt_error;
};

enum marey__scaling_kind {
    MAREY__SCALING_STRONG,
    MAREY__SCALING_WEAK,
    MAREY__SCALING_MIXED,
    MAREY__SCALING_UNKNOWN, /* treated as strong */
};

enum marey__scaling_model { MAREY__SCALING_AMDAHL, MAREY__SCALING_USL, MAREY__N_SCALING_MODELS };

/* T(n) = parallel / n + serial + coherency (n - 1), with no negative parameter. */
struct marey__scaling_curve {
    double parallel_s, serial_s, coherency_s;
};

struct marey__scaling_interval {
    double value, low, high; /* NaN: unknown. Infinite: unbounded */
};

struct marey__scaling_fit {
    const char *reason; /* why there is no fit, or its limits; NULL: none */
    bool is_fitted;
    struct marey__scaling_curve curve;
    size_t n_points;
    double residual;
    struct marey__scaling_interval serial, coherency, best; /* shares of T(1); best: workers */
    struct marey__scaling_interval *forecast; /* seconds, for each marey__scaling_asked() */
};

struct marey__scaling_series {
    const char *experiment, *strategy;
    size_t first, n; /* points with a time, by workers */
    enum marey__scaling_measure measure;
    enum marey__scaling_kind kind, epoch_kind;
    size_t n_without; /* points without a time in this measure, after the others */
    struct marey__scaling_fit fits[MAREY__N_SCALING_MODELS];
};

enum marey__scaling_table {
    MAREY__SCALING_POINTS,
    MAREY__SCALING_FITS,
    MAREY__SCALING_FORECAST,
    MAREY__SCALING_BEST,
    MAREY__SCALING_RUNS,
    MAREY__SCALING_NOTES,
    MAREY__N_SCALING_TABLES,
};

extern const struct marey_table_definition marey__scaling_tables[MAREY__N_SCALING_TABLES];

struct marey__scaling_options {
    bool with_first;  /* first epochs count */
    const char *kind; /* "strong", "weak"; NULL: from the data */
    const char *measure; /* "epoch", "step"; NULL: per series, epochs if at least as many points have them as steps */
    uint32_t n_resamples;     /* 0: 2000 */
    const uint32_t *forecast; /* numbers of workers to forecast; borrowed */
    size_t n_forecast;        /* 0: two, four and eight times the largest measured number */
};

/* The `input` of a request: runs already in memory. */
struct marey__scaling_input {
    const struct marey__scaling_runs *runs;
    struct marey__scaling_options options;
};

/* State of the analysis. */
struct marey__scaling {
    marey_table **tables; /* of the report */
    const struct marey__scaling_runs *runs;
    struct marey__scaling_options options; /* n_resamples is not 0; forecast may be NULL */
    struct marey__scaling_member *members;
    size_t n_members;
    struct marey__scaling_point *points;
    size_t n_points;
    struct marey__scaling_series *series;
    size_t n_series;
};

/* ---- scaling_series.c ---- */

/* Group runs into series and points. */
MAREY_WARN_UNUSED marey_status marey__scaling_group(struct marey__scaling *scaling);
/* Choose the measure, and keep the points that have it. */
void marey__scaling_choose(const struct marey__scaling *scaling,
                           struct marey__scaling_series *series);
/* Work, speedup and Karp-Flatt metric of the points, relative to the first. */
void marey__scaling_compare_points(const struct marey__scaling *scaling,
                                   struct marey__scaling_series *series);

static inline const struct marey__scaling_level *
marey__scaling_time(const struct marey__scaling_series *series,
                    const struct marey__scaling_point *point)
{
    return &point->levels[series->measure];
}

/* Whether repeats differ by more than a tenth. */
static inline bool marey__scaling_disagrees(const struct marey__scaling_level *level)
{
    return level->n_runs > 1 && level->spread > 0.1;
}

/* Seconds for the baseline's work. */
static inline double marey__scaling_unit_s(const struct marey__scaling_series *series,
                                           const struct marey__scaling_point *point)
{
    return marey__scaling_time(series, point)->value / point->work;
}

/* ---- scaling_resample.c ---- */

/* For all intervals. */
#define MAREY__SCALING_CONFIDENCE 0.95

struct marey__scaling_random {
    uint64_t state;
};
/* Deterministic: equal arguments give equal numbers. */
struct marey__scaling_random marey__scaling_random_of(uint64_t a, uint64_t b);
/* Standard normal. */
double marey__scaling_random_normal(struct marey__scaling_random *random);

/* The levels of all points, each separately. */
MAREY_WARN_UNUSED marey_status marey__scaling_levels(struct marey__scaling *scaling);
/* Their intervals, from the repeats of all points of the series. */
void marey__scaling_bound(const struct marey__scaling *scaling,
                          const struct marey__scaling_series *series);
/* Set low and high from value, error and df. */
void marey__scaling_level_bound(struct marey__scaling_level *level);

/* ---- scaling_fits.c ---- */

/* Forecasts beyond this multiple of the largest measured number of workers are marked as guesses. */
enum { MAREY__SCALING_FURTHEST = 8 };

/* The curve with the smallest relative residuals; without `has_coherency` the third parameter is 0. */
struct marey__scaling_curve marey__scaling_curve_fit(const double *workers, const double *seconds,
                                                     size_t n, bool has_coherency);
double marey__scaling_curve_at(const struct marey__scaling_curve *curve, double workers);
/* Fit both models, with intervals by resampling; the caller frees their forecasts, also on failure. */
MAREY_WARN_UNUSED marey_status marey__scaling_fit_series(const struct marey__scaling *scaling,
                                                         struct marey__scaling_series *series);
/* The numbers of workers to forecast. */
size_t marey__scaling_n_asked(const struct marey__scaling *scaling);
double marey__scaling_asked(const struct marey__scaling *scaling,
                            const struct marey__scaling_series *series, size_t i);

/* ---- scaling_tables.c, scaling_notes.c ---- */

/* The tables record out-of-memory failures. */
void marey__scaling_put_rows(struct marey__scaling *scaling);
MAREY_WARN_UNUSED bool marey__scaling_put_notes(struct marey__scaling *scaling);

/* ==== presenting ==== */

/* ---- scaling_summary.c ---- */

/* Rows of `points` in one series. */
struct marey__scaling_line {
    size_t first, n;
    const char *name; /* "" for a single unnamed series. Owned by the list */
};

/* marey_report.data: the series of the report. */
struct marey__scaling_list {
    const marey_table *points;
    struct marey__arena texts;
    size_t n;
    struct marey__scaling_line series[];
};

/* NULL on out of memory. */
struct marey__scaling_list *marey__scaling_list_create(const marey_table *points);
void marey__scaling_list_destroy(void *list);

/* A number of any type; NaN if it is null, or for a NULL column. */
double marey__scaling_number(const marey_table *table, size_t row, const char *column);
/* Whether two rows have the same experiment and strategy. */
bool marey__scaling_is_same_series(const marey_table *a, size_t row_a, const marey_table *b,
                                   size_t row_b);

/* One or two sentences about a series, without a line end. */
void marey__scaling_summary(struct marey__buf *line, const marey_report *report, size_t series);

/* ---- scaling_charts.c, scaling_write.c ---- */

/* MAREY_EINVAL for an unknown chart, MAREY_EFORMAT without data for it; `svg` is then unchanged. */
MAREY_WARN_UNUSED marey_status marey__scaling_chart_put(const marey_report *report, const char *chart,
                                                        bool has_style, struct marey__buf *svg);
/* Formats of the report. */
marey__put_answer marey__scaling_text, marey__scaling_markdown, marey__scaling_json,
    marey__scaling_html, marey__scaling_svg;

#endif
