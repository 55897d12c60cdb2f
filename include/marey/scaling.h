/*
 * marey/scaling.h: does it get faster with more workers, how much, and until when (libmarey-tools).
 *
 *     marey_scaling_runs *runs;
 *     marey_scaling *scaling;
 *     marey_scaling_runs_create(&runs);
 *     marey_scaling_runs_read(runs, "one.marey", NULL);
 *     marey_scaling_runs_read(runs, "four.marey", NULL);
 *     marey_scaling_create(runs, NULL, &scaling);
 *     marey_scaling_text(scaling, NULL, stdout);
 *
 * A run is one start of a program with so many workers; a repeat is another run, and repeats are never added up. Runs
 * of one experiment and strategy are a series, and a series has a point for each number of workers. Its baseline is
 * its own smallest number of workers.
 *
 * Times: the median over the epochs (or steps) of a run, then the median over the runs of a point. Intervals come from
 * resampling runs, and epochs within them; docs/internals/scaling.md has the method. Everything is computed from the
 * same seed each time: equal input gives equal answers. One thread at a time.
 */
#ifndef MAREY_SCALING_H
#define MAREY_SCALING_H

#include <stdio.h>

#include <marey/report.h>
#include <marey/table.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- runs ---- */

/* One start of a program. What is not known is NaN, 0, NULL or "", as the field says. */
struct marey_scaling_run {
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

typedef struct marey_scaling_runs marey_scaling_runs;

/* An empty list. Destroy takes NULL. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_scaling_runs_create(marey_scaling_runs **out);
MAREY_API void marey_scaling_runs_destroy(marey_scaling_runs *runs);

/*
 * Append a copy; texts may be NULL for "". MAREY_EINVAL for no workers and for a time that is not above zero and
 * finite, with the run's name; the list is then as it was. A run without epochs and steps is taken, and told in
 * `notes`.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_scaling_runs_add(marey_scaling_runs *runs,
                                                                const struct marey_scaling_run *run);
/* Append a sentence (copied) to what `notes` tells: something that could not be read. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_scaling_runs_note(marey_scaling_runs *runs,
                                                                 const char *sentence);
/* How many runs there are. */
MAREY_API size_t marey_scaling_runs_count(const marey_scaling_runs *runs);
/* One of them, lent until the list changes; its texts until it goes. NULL past the end. */
MAREY_API const struct marey_scaling_run *marey_scaling_runs_at(const marey_scaling_runs *runs,
                                                                size_t i);

struct marey_scaling_read_options {
    /* Each is taken instead of what the data say; NULL and 0: as they say. */
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
MAREY_API MAREY_WARN_UNUSED marey_status marey_scaling_runs_read(
    marey_scaling_runs *runs, const char *path, const struct marey_scaling_read_options *options);

/* ---- the answer ---- */

typedef struct marey_scaling marey_scaling;

struct marey_scaling_options {
    int with_first;   /* non-zero: first epochs count as any other */
    const char *kind; /* "strong", "weak"; NULL: told from the data */
    const char *measure; /* "epoch", "step"; NULL: by series, epochs where as many points have them as have steps */
    double confidence;        /* of intervals; 0: 0.95 */
    uint64_t seed;            /* of resampling; 0 is as good as any */
    uint32_t n_resamples;     /* 0: 2000 */
    const uint32_t *forecast; /* numbers of workers to forecast; lent until create returns */
    size_t n_forecast;        /* 0: twice, four and eight times the most that was measured */
    double largest_spread;    /* repeats that differ by a larger share disagree; 0: 0.1 */
};

/*
 * Compute all. The runs may go afterwards. MAREY_EFORMAT when there are no runs, or none with a time; MAREY_EINVAL for
 * a wrong option. Memory: some kilobytes for each point beside the runs.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_scaling_create(
    const marey_scaling_runs *runs, const struct marey_scaling_options *options, marey_scaling **out);
MAREY_API void marey_scaling_destroy(marey_scaling *scaling);

/*
 * Its tables, lent until it goes; NULL for a name it does not have. What is not known is null.
 *   points    experiment strategy workers nodes runs epochs kind time_s low_s high_s step_s step_low_s step_high_s
 *             throughput speedup speedup_low speedup_high ideal efficiency efficiency_low efficiency_high karp_flatt
 *             compute_s communication_s memory_s idle_s joules_per_epoch joules_low joules_high joules_per_sample
 *             energy_efficiency energy_delay worker_hours utilization computation_fraction
 *             computation_vs_communication spread disagrees measure samples
 *   fits      experiment strategy model serial serial_low serial_high contention contention_low contention_high
 *             coherency coherency_low coherency_high points residual best_workers best_low best_high note time_one_s
 *   forecast  experiment strategy model workers time_s low_s high_s efficiency speedup
 *   best      experiment strategy for workers value measured
 *   runs      experiment strategy workers run epochs median_epoch_s median_step_s joules partial
 *   notes     text
 * Series come in the order of their first run, points by workers.
 *
 * points: time_s is that of `measure` ("epoch" or "step"); `samples` are those of such a one, `throughput` samples in a
 * second. kind: "strong" when every point does the same work, "weak" when work grows as workers do, "mixed" when it
 * changes in another way, "unknown" when samples are not known: the work is then assumed to be the same. `speedup` is how much more work is done in a second than at the baseline: T(n0) / T(n) where
 * the work is the same, and that times n / n0 in weak scaling. `ideal` is n / n0, `efficiency` one over the other.
 * karp_flatt is the serial share (1/S - 1/p) / (1 - 1/p), p = n / n0; null in a series of two points. Intervals are null
 * in a series without repeats: a single run does not show how much runs differ. energy_efficiency: the baseline's joules for the
 * same work over this point's. energy_delay: joules times seconds of an epoch. worker_hours: workers times time_s.
 * `spread` is the largest minus the smallest of the runs' medians, over the point's.
 *
 * fits: `model` is "amdahl", T(n) = T(1) (serial + (1 - serial) / n), or "usl", T(n) = T(1) (1 + contention (n - 1) +
 * coherency n (n - 1)) / n, of the time for the baseline's work. No parameter is negative. time_one_s is T(1). residual
 * is the root mean square of the points' relative distances. best_workers is where more workers are no longer faster;
 * null where that never happens, or may never happen: best_low is then the least it may be. A model that cannot be
 * fitted has a row with its reason in `note`.
 *
 * best: `for` is "time" (value: seconds for the baseline's work), "energy" (joules) or "energy_delay" (their product).
 * `measured`: the best of the points; else by the fit of "usl".
 */
MAREY_API marey_table *marey_scaling_table(marey_scaling *scaling, const char *name);

/* For people: whether each series scales, its tables, notes. These four give MAREY_EIO when the stream refuses. */
MAREY_API marey_status marey_scaling_text(marey_scaling *scaling,
                                          const struct marey_text_options *options, FILE *out);
/* The same as Markdown. */
MAREY_API marey_status marey_scaling_markdown(marey_scaling *scaling, FILE *out);
/* An object with all tables. */
MAREY_API marey_status marey_scaling_json(marey_scaling *scaling, FILE *out);
/* A page that stands alone, with pictures. */
MAREY_API marey_status marey_scaling_html(marey_scaling *scaling, FILE *out);
/*
 * One picture as SVG. Names: "epoch-time", "speedup", "efficiency", "step-breakdown", "energy", "utilization",
 * "throughput", or by itwinai's names "absolute_epoch_time", "relative_epoch_time_speedup", "gpu_energy_plot",
 * "utilization_plot", "computation_vs_other_plot", "computation_vs_communication_plot". MAREY_EINVAL for another name,
 * MAREY_EFORMAT when the runs do not have what it shows.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_scaling_picture(marey_scaling *scaling,
                                                               const char *picture, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
