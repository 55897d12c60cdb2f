/*
 * scaling: runs with different worker counts: speedup, efficiency, what limits it.
 *
 *   paths -- scaling_read*.c: a recording, a folder of traces or a CSV to measured runs
 *         -- scaling_series.c, scaling_runs.c, scaling_values.c: series of points
 *         -- scaling_resample.c: medians with intervals
 *         -- scaling_points.c: speedup, efficiency, energy
 *         -- scaling_models.c, scaling_forecast.c: Amdahl and USL, and their forecasts
 *         -- scaling_rows.c, scaling_tables.c, scaling_findings.c, scaling_notes.c
 *
 * Statistics use logarithms of times. A path that cannot be read becomes a note, and the rest is still read.
 *
 * Input: paths. Output: the tables of a report, text, charts, a page. Memory: about 1 kB per run in addition to its measurements.
 */
#ifndef MAREY_ANALYZE_SCALING_INTERNAL_H
#define MAREY_ANALYZE_SCALING_INTERNAL_H

#include "analyze/device/internal.h"
#include "analyze/walk/internal.h"
#include "codec/internal.h"
#include "present/draw/internal.h"
#include "report/internal.h"

/* ---- runs: scaling_runs.c ---- */

/* One start of a program. What is not known is NaN, 0, NULL or "", as the field says. */
struct marey__scaling_run {
    const char *experiment; /* "": none */
    const char *strategy;   /* the series: "torch-ddp"; "": unknown */
    const char *name;       /* of this run, for sentences: a path, or what another tool calls it */
    uint32_t workers;       /* ranks; from 1 */
    uint32_t nodes;         /* 0: unknown */
    double samples_per_epoch; /* of all workers together. NaN: unknown */
    double batch;             /* samples of one step, of all workers together. NaN: unknown */
    const double *epoch_s;    /* of the slowest rank, in order, the first included */
    size_t n_epochs;
    const double *epoch_j; /* joules of each of these epochs; NaN: unknown. NULL: of none */
    const double *step_s; /* of the slowest rank, warm-up left out; of many an even sample, say of 10,000 */
    size_t n_steps;
    /* Seconds of a step, a mean over ranks; together they are the step. NaN: unknown */
    double compute_s, communication_s, memory_s,
        idle_s;                          /* communication and memory: what nothing hides */
    double joules;                       /* of the whole run. NaN: unknown */
    double utilization;                  /* 0..1. NaN: unknown */
    double computation_fraction;         /* as itwinai defines it. NaN: unknown */
    double computation_vs_communication; /* as itwinai defines it. NaN: unknown */
    uint32_t first_epoch_counts;         /* non-zero: the first epoch is no warm-up */
    uint32_t is_partial; /* non-zero: it stopped half-way; its whole epochs still count */
};

struct marey__scaling_runs {
    struct marey__scaling_run *list; /* owns their arrays */
    size_t n, cap;
    const char **notes;
    size_t n_notes, notes_cap;
    struct marey__arena texts;
};
void marey__scaling_runs_fini(struct marey__scaling_runs *runs);
/*
 * Append a copy; texts may be NULL for "". MAREY_EINVAL for no workers and for a time that is not above zero and finite,
 * with the run's name; the list is then as it was. A run without epochs and steps is taken, and gets a note.
 */
MAREY_WARN_UNUSED marey_status marey__scaling_runs_add(struct marey__scaling_runs *runs,
                                                       const struct marey__scaling_run *run);
/* Append a sentence (copied) to the notes: something that could not be read. */
MAREY_WARN_UNUSED marey_status marey__scaling_runs_note(struct marey__scaling_runs *runs,
                                                        const char *sentence);

struct marey__scaling_read_options {
    /* Each is taken instead of the data's; NULL and 0: as the data. */
    const char *experiment, *strategy;
    uint32_t workers;
    uint32_t n_jobs; /* threads to read with; 0: as many as there are cores */
    marey_progress *progress;
    void *progress_ctx;
    const char *source; /* name of a CSV of measurements in the names of runs and in notes; NULL: its path */
    int *has_itwinai; /* set to 1 where there are CSV files of itwinai, which marey.itwinai (Python) converts; NULL: not asked */
};
/*
 * Append what is at `path`: a recording, a folder of recordings or of traces, or a CSV of measurements. One run or
 * several; a part that cannot be read becomes a note. MAREY_EFORMAT when nothing there is a measured run, unless
 * `has_itwinai` was set.
 */
MAREY_WARN_UNUSED marey_status
marey__scaling_runs_read(struct marey__scaling_runs *runs, const char *path,
                         const struct marey__scaling_read_options *options);

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
    const struct marey__scaling_run *run;
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

extern const struct marey_table_definition marey__scaling_tables[MAREY__N_SCALING_TABLES];

struct marey__scaling_options {
    bool with_first;  /* first epochs count as any other */
    const char *kind; /* "strong", "weak"; NULL: by the data */
    const char *measure; /* "epoch", "step"; NULL: by series, epochs where as many points have them as have steps */
    double confidence;        /* of intervals; 0: 0.95 */
    uint64_t seed;            /* of resampling; 0 is as good as any */
    uint32_t n_resamples;     /* 0: 2000 */
    const uint32_t *forecast; /* numbers of workers to forecast; lent */
    size_t n_forecast;        /* 0: twice, four and eight times the most that was measured */
    double largest_spread;    /* repeats that differ by a larger share disagree; 0: 0.1 */
};

/* In the making. */
struct marey__scaling {
    marey_table **tables; /* of the report */
    const struct marey__scaling_runs *runs;
    struct marey__scaling_options options; /* with defaults filled in; forecast may be NULL */
    struct marey__scaling_member *members;
    size_t n_members;
    struct marey__scaling_point *points;
    size_t n_points;
    struct marey__scaling_series *series;
    size_t n_series;
};

/* The `input` of a request: runs that are in memory already. */
struct marey__scaling_input {
    const struct marey__scaling_runs *runs;
    struct marey__scaling_options options;
};

/* ---- scaling_series.c ---- */

/* Put runs into series and points. */
MAREY_WARN_UNUSED marey_status marey__scaling_group(struct marey__scaling *scaling);
/* Choose what is measured, and keep the points that have it. */
void marey__scaling_choose(const struct marey__scaling *scaling,
                           struct marey__scaling_series *series);

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
MAREY_WARN_UNUSED marey_status marey__scaling_levels(struct marey__scaling *scaling);
/* Their intervals, by what all points of the series show. */
void marey__scaling_bound(const struct marey__scaling *scaling,
                          const struct marey__scaling_series *series);
/* Set low and high from value, error and df. */
void marey__scaling_level_bound(struct marey__scaling_level *level, double confidence);

/* ---- scaling_points.c ---- */

/* A number of workers further out than this, against the largest measured, is no more than a guess. */
enum { MAREY__SCALING_FURTHEST = 8 };

/* Work, speedup and what follows from them. */
void marey__scaling_compare_points(const struct marey__scaling *scaling,
                                   struct marey__scaling_series *series);

static inline const struct marey__scaling_level *
marey__scaling_time(const struct marey__scaling_series *series,
                    const struct marey__scaling_point *point)
{
    return &point->levels[series->measure];
}

/* Whether repeats differ by more than they may. */
static inline bool marey__scaling_disagrees(const struct marey__scaling *scaling,
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
MAREY_WARN_UNUSED marey_status marey__scaling_fit_series(const struct marey__scaling *scaling,
                                                         struct marey__scaling_series *series);
/* The numbers of workers to forecast. */
size_t marey__scaling_n_asked(const struct marey__scaling *scaling);
double marey__scaling_asked(const struct marey__scaling *scaling,
                            const struct marey__scaling_series *series, size_t i);

/* ---- scaling_rows.c, scaling_notes.c, scaling_findings.c ---- */

/* Memory that runs out is remembered by the tables. */
void marey__scaling_put_rows(struct marey__scaling *scaling);
MAREY_WARN_UNUSED bool marey__scaling_put_notes(struct marey__scaling *scaling);

/* Sentences, each with a line end behind it. */
void marey__scaling_name(struct marey__buf *text, const struct marey__scaling_series *series);
void marey__scaling_find(struct marey__buf *text, const struct marey__scaling *scaling,
                         const struct marey__scaling_series *series);

/* ==== scaling_read ==== */

/*
 * scaling_read: from paths to measured runs.
 *
 *   scaling_read.c ── what is at a path: each recording, folder of traces, file of CSV is a source; several at a time
 *     scaling_read_recording.c ── a recording: which processes are a run, what the analyses say of it
 *     scaling_read_run.c ── one run of it, by the analyses of epochs, energy, steps
 *       scaling_read_steps.c ── the steps of its ranks, the slowest of each
 *       scaling_read_parts.c ── what a step is made of
 *     scaling_read_csv.c ── a CSV of measurements, row by row ── scaling_read_measures.c ── rows to runs
 *
 * What cannot be read is a note, and the rest is read all the same; without memory all of it fails.
 */

/* Steps of a run that are kept: of more, an even sample. */
enum { MAREY__SCALING_STEPS = 10000 };

/* What is read goes to `runs`. */
struct marey__scaling_reading {
    struct marey__scaling_runs *runs;
    const struct marey__scaling_read_options *options; /* lent, never NULL */
    uint32_t n_jobs;                                   /* threads that may read this source */
};

/* ---- scaling_read.c ---- */

/* A run of which nothing is known but its name, which is lent. */
struct marey__scaling_run marey__scaling_run_unknown(const char *name);
/* Add a run, as the options want it. What is wrong with it becomes a note. */
MAREY_WARN_UNUSED marey_status marey__scaling_read_add(const struct marey__scaling_reading *reading,
                                                       struct marey__scaling_run *run);
MAREY_WARN_UNUSED marey_status marey__scaling_read_note(const struct marey__scaling_reading *reading,
                                                        const char *fmt, ...) MAREY_PRINTF(2, 3);

/* ---- scaling_read_steps.c ---- */

struct marey__scaling_step {
    uint64_t key; /* its number, or higher where a count begins anew: they count up */
    double s, samples;
    uint32_t n; /* processes that took it */
};

/* The steps of one process, or of several. Starts from zeroes. */
struct marey__scaling_steps {
    struct marey__scaling_step *list; /* by key */
    size_t n, cap;
    /* Of one process: */
    uint64_t n_seen;     /* steps that ended */
    uint64_t n_warmup;   /* of these, at its begin: left out of the list */
    uint64_t n_epochs;   /* begun */
    bool has_open_epoch; /* one was under way at its end */
};
/* Read one process; different ones may be read by different threads. */
MAREY_WARN_UNUSED marey_status marey__scaling_steps_read(struct marey__scaling_steps *steps,
                                                         marey_recording *recording, size_t process);
/* Put the steps of another process to these: the slowest counts, samples are added up. False without memory. */
MAREY_WARN_UNUSED bool marey__scaling_steps_join(struct marey__scaling_steps *steps,
                                                 const struct marey__scaling_steps *other);
void marey__scaling_steps_fini(struct marey__scaling_steps *steps);

/* ---- scaling_read_recording.c: a recording, or a file or folder of traces ---- */

MAREY_WARN_UNUSED marey_status marey__scaling_read_recording(
    const struct marey__scaling_reading *reading, const char *path, bool is_trace);

/* A process of a recording. */
struct marey__scaling_worker {
    const struct marey_process *process;
    const char *run_id; /* of its run; not always its own */
    struct marey__scaling_steps steps;
    uint32_t group;
    bool trains; /* it tells of steps or epochs, and is of the group */
};

/* One run of a recording. */
struct marey__scaling_group {
    const char *run_id;
    int32_t world_size;
    uint32_t repeat; /* the how manieth with that id: processes of one rank are of different ones */
    uint64_t start_unix_ns;
    uint32_t n_workers; /* processes that train */
};

/* ---- scaling_read_run.c: one run ---- */

/* A recording that has no other run in it, and what is known of its processes. */
struct marey__scaling_source {
    const struct marey__scaling_reading *reading;
    const char *path;
    marey_recording *recording;
    const struct marey__scaling_worker **workers; /* those that train, in the recording's order */
    const size_t *indices;                        /* of each in the recording */
    size_t n;
    bool is_alone;   /* the whole recording is this run */
    bool is_checked; /* its reader has told which ranks are missing, and who still records */
};
MAREY_WARN_UNUSED marey_status marey__scaling_read_run(const struct marey__scaling_source *source);

/* ---- scaling_read_csv.c, scaling_read_measures.c ---- */

enum marey__scaling_csv {
    MAREY__CSV_OTHER,
    MAREY__CSV_MEASUREMENTS,
    MAREY__CSV_ITWINAI, /* one of its files of power, epoch times or averages */
};
/* By its first line. */
enum marey__scaling_csv marey__scaling_csv_kind(const char *text, size_t len);

/* What is measured, in the order of docs/formats/scaling-csv.md. */
enum marey__measure {
    MAREY__MEASURE_EPOCH,
    MAREY__MEASURE_STEP,
    MAREY__MEASURE_POWER,
    MAREY__MEASURE_UTILIZATION,
    MAREY__MEASURE_ENERGY,
    MAREY__MEASURE_INTERVAL,
    MAREY__MEASURE_RATE,    /* training samples in a second */
    MAREY__MEASURE_SAMPLES, /* from here on: one number for a run */
    MAREY__MEASURE_BATCH,
    MAREY__MEASURE_COMPUTE,
    MAREY__MEASURE_COMMUNICATION,
    MAREY__MEASURE_MEMORY,
    MAREY__MEASURE_IDLE,
    MAREY__MEASURE_FRACTION,
    MAREY__MEASURE_VERSUS,
    MAREY__N_MEASURES,
};
extern const char *const marey__measure_names[MAREY__N_MEASURES];

/* One number of one run. */
struct marey__measured {
    double step, unix_ms, value; /* the first two NaN where they are not said */
    uint32_t run;
    int32_t rank; /* -1: not said */
    uint32_t measure;
};

struct marey__measured_run {
    const char *experiment, *strategy, *name; /* in `texts` */
    uint32_t workers, nodes;
    uint32_t repeat; /* from 0: the how manieth of what has one name */
};

/* Starts from zeroes; fini takes a half-filled one. */
struct marey__measurements {
    struct marey__measured *rows;
    size_t n_rows, rows_cap;
    struct marey__measured_run *runs;
    size_t runs_cap;
    struct marey__names run_keys, series_keys;
    struct marey__measured_series *series; /* by key */
    size_t series_cap;
    struct marey__arena texts;
    uint64_t n_dropped;      /* rows without a number of workers, or with a value that is none */
    struct marey__buf notes; /* of rows of the measure "note", each ended by a NUL */
    uint64_t n_unknown;      /* rows of other measures */
    char unknown[64];        /* the first of those */
};
MAREY_WARN_UNUSED marey_status marey__measurements_read(struct marey__measurements *m,
                                                        marey__byte_source *bytes, const char *path);
void marey__measurements_fini(struct marey__measurements *m);
/* The rows as runs; sorts them. */
MAREY_WARN_UNUSED marey_status marey__measurements_add(const struct marey__scaling_reading *reading,
                                                       struct marey__measurements *m,
                                                       const char *path);
MAREY_WARN_UNUSED marey_status marey__scaling_read_csv(const struct marey__scaling_reading *reading,
                                                       const char *path);

/* ---- scaling_read_parts.c ---- */

/* What the steps of one process are made of, warm-up left out: nanoseconds, added up. */
struct marey__scaling_parts {
    double compute_ns, communication_ns, memory_ns, idle_ns;
    uint64_t n_steps; /* of all its devices */
    bool has_device;  /* a GPU; else it is of the process itself */
};
MAREY_WARN_UNUSED marey_status marey__scaling_parts_read(struct marey__scaling_parts *parts,
                                                         marey_recording *recording, size_t process,
                                                         const struct marey__rules *rules,
                                                         uint64_t n_warmup);

/* ==== presenting ==== */

/*
 *     report -- scaling_list.c     -- which rows are a series, and its name
 *            -- scaling_sentence.c -- whether it scales, how far, what limits it
 *            -- scaling_drawn.c    -- tables for people   --+
 *            -- scaling_bars.c, scaling_lines.c -- charts --+-- scaling_text.c, scaling_page.c
 */

/* ---- scaling_list.c   ---- */

/* Rows of `points` that belong together. */
struct marey__scaling_line {
    size_t first, n;
    const char *name; /* "" for the only one without a name. Lent by the list */
};

struct marey__scaling_list {
    const marey_table *points;
    struct marey__scaling_line *series;
    size_t n;
    struct marey__arena texts;
};

/* A failed one may be finished. */
MAREY_WARN_UNUSED marey_status marey__scaling_list_init(struct marey__scaling_list *list,
                                                        const marey_report *report);
void marey__scaling_list_fini(struct marey__scaling_list *list);

/* A number of any type; NaN where there is none. */
double marey__scaling_number(const marey_table *table, size_t row, const char *column);
/* What a column is of the sum of several; NaN where one of them is not known. */
double marey__scaling_share(const marey_table *points, size_t row, const char *column,
                            const char *const *columns, size_t n);

/* ---- scaling_sentence.c ---- */

/* One or two sentences about a series, without an end of line. */
void marey__scaling_sentence(struct marey__buf *line, const marey_report *report,
                             const struct marey__scaling_list *list, size_t series);

/* ---- scaling_drawn.c ---- */

enum { MAREY__SCALING_SECTIONS = 7 };
const char *marey__scaling_heading(size_t section);
/*
 * One of the tables for people, without columns that say nothing; `width` 0: with all the others. `*out` is NULL when
 * there is nothing to tell.
 */
MAREY_WARN_UNUSED marey_status marey__scaling_drawn(const marey_report *report, size_t section,
                                                    uint32_t width, marey_table **out);

/* ---- scaling_pictures.c, scaling_lines.c, scaling_bars.c ---- */

/* A picture on its way. */
struct marey__scaling_drawing {
    const marey_report *report;
    struct marey__scaling_list list;
    struct marey__chart_words words;
    struct marey__buf *svg;
    char y_title[96], title[96]; /* room for words with a unit in them */
};

struct marey__scaling_unit {
    const char *name;
    double times;
};
/* The largest unit that keeps `most`, of seconds or joules, above one. */
struct marey__scaling_unit marey__scaling_unit_for(double most, bool is_joules);
/* The largest sum of a row's columns, `n` or fewer with NULL behind the last. */
double marey__scaling_largest(const marey_table *table, const char *const *columns, size_t n);
/* NaN also without a column. */
double marey__scaling_optional(const marey_table *table, size_t row, const char *column);

/* Draw the picture of this name when it is one of lines, or of bars; false in `is_drawn` where there is nothing to draw. */
MAREY_WARN_UNUSED marey_status marey__scaling_draw_lines(struct marey__scaling_drawing *drawing,
                                                         const char *name, bool *is_known,
                                                         bool *is_drawn);
MAREY_WARN_UNUSED marey_status marey__scaling_draw_bars(struct marey__scaling_drawing *drawing,
                                                        const char *name, bool *is_known,
                                                        bool *is_drawn);

/* MAREY_EINVAL for a name that no picture has, MAREY_EFORMAT when there is nothing to draw; `svg` is then as it was. */
MAREY_WARN_UNUSED marey_status marey__scaling_picture_put(const marey_report *report,
                                                          const char *picture, bool has_style,
                                                          struct marey__buf *svg);

/* ---- scaling_text.c, scaling_page.c, scaling_pictures.c: formats of the report ---- */

MAREY_WARN_UNUSED marey_status marey__scaling_text(const marey_report *report,
                                                   const struct marey_write_options *options,
                                                   FILE *out);
MAREY_WARN_UNUSED marey_status marey__scaling_markdown(const marey_report *report,
                                                       const struct marey_write_options *options,
                                                       FILE *out);
MAREY_WARN_UNUSED marey_status marey__scaling_json(const marey_report *report,
                                                   const struct marey_write_options *options,
                                                   FILE *out);
MAREY_WARN_UNUSED marey_status marey__scaling_html(const marey_report *report,
                                                   const struct marey_write_options *options,
                                                   FILE *out);
MAREY_WARN_UNUSED marey_status marey__scaling_svg(const marey_report *report,
                                                  const struct marey_write_options *options,
                                                  FILE *out);

#endif
