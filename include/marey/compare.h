/*
 * marey/compare.h: is B faster than A, by how much, how surely? (libmarey-tools)
 *
 *     marey_comparison *c;
 *     marey_comparison_create(&c);
 *     marey_comparison_add(c, MAREY_A, "before.marey");  recordings, or stats as JSON; several are repeats
 *     marey_comparison_add(c, MAREY_B, "after.marey");
 *     marey_comparison_run(c, NULL);
 *     marey_compare_text(c, NULL, stdout);
 *
 * Runs of `marey run` also have the wall and CPU time of their program, and runs that were sampled or profiled have
 * self times of functions: one time for each run, so that intervals need several runs.
 *
 * A side is a set of runs: the launches of a program (the run ids of a recording), or files of stats. A run is, for each
 * region, a series of times in order: its time in each iteration without the warm-up, or where there are no iterations
 * each call. The change is that of the median, in percent of A. Its interval holds the truth in 95 of 100 comparisons,
 * and more where fewer is all that can be promised:
 *
 *   several runs on each side   run against run: Hodges and Lehmann's estimate with the exact interval of the Mann-Whitney
 *                               test, from 4 runs each; with fewer Student's t. Differences between runs are in it.
 *   one run on each side        blocks of successive times against blocks, at three lengths, the widest interval; drift
 *                               or strong autocorrelation make it wider or the answer unsure. What differs between runs
 *                               (memory layout, temperature) cannot be known from one.
 *   pairs                       the ratios of A and B done in turns, by blocks: the signed-rank test's interval
 *
 * docs/internals/compare.md has the reasons, and how often each is right on data with a known answer.
 */
#ifndef MAREY_COMPARE_H
#define MAREY_COMPARE_H

#include <stdio.h>

#include <marey/report.h>
#include <marey/table.h>

#ifdef __cplusplus
extern "C" {
#endif

enum marey_verdict {
    MAREY_UNSURE = 0, /* too noisy, or too little, to tell */
    MAREY_SAME,       /* no difference shown: the interval has 0 in it and is narrow */
    MAREY_FASTER,     /* the whole interval lies below 0 */
    MAREY_SLOWER,     /* the whole interval lies above 0 */
};
/* "unsure", "same", "faster", "slower". */
MAREY_API const char *marey_verdict_name(enum marey_verdict verdict);

struct marey_compare_options {
    /* A change that does not matter, in percent: an interval with 0 in it that lies within this is "same". 0: 1 %. */
    double smallest_percent;
    const char *filter; /* regions matching this (as in the summary); NULL: all */
    uint64_t skip; /* iterations at the begin of each run to leave out, marked as warm-up or not */
    uint32_t n_jobs; /* threads to read with; 0: as many as there are cores */
    marey_progress *progress;
    void *progress_ctx;
    uint32_t wants_quantiles; /* non-zero: fill the table `quantiles`, as marey_page_compare does */
    /* As in struct marey_samples_filter: functions of all threads and of idle processes; imports at start-up. */
    int idle, startup;
};

/* ---- arrays ---- */

/* The times of one run, in order, in any one unit; lent. */
struct marey_run_times {
    const double *times;
    size_t n;
    double start; /* when it ran, in any one unit, to see a drift from run to run; 0: not known */
};

struct marey_change {
    enum marey_verdict verdict;
    /* Of B against A, negative is faster. Not a number where nothing can be said. */
    double percent, low_percent, high_percent;
    double a, b;     /* medians: of each run, then of the runs */
    size_t n_a, n_b; /* times */
    const char *reason; /* why it is unsure, or why the interval is wider; "" for no reason. Valid for ever. */
};

/*
 * Compare two sets of runs. MAREY_EINVAL for a time that is negative or no number, or a side without any.
 * Any thread.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_compare_runs(
    const struct marey_run_times *a, size_t n_a, const struct marey_run_times *b, size_t n_b,
    const struct marey_compare_options *options, struct marey_change *out);

/* The same of `n` pairs: a[i] and b[i] were measured one right after the other, in either order. */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_compare_pairs(const double *a, const double *b, size_t n,
                    const struct marey_compare_options *options, struct marey_change *out);

/* ---- recordings and files of stats ---- */

typedef struct marey_comparison marey_comparison;
enum marey_compare_side { MAREY_A, MAREY_B };

MAREY_API MAREY_WARN_UNUSED marey_status marey_comparison_create(marey_comparison **out);
MAREY_API void marey_comparison_destroy(marey_comparison *comparison);

/*
 * Add what lies at `path` to a side: a recording, each run id in it a run, or a file of stats, docs/formats/stats.md.
 * MAREY_EIO and MAREY_EFORMAT when it cannot be read; MAREY_EINVAL for times that are none, with the region's name.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_comparison_add(marey_comparison *comparison,
                                                              enum marey_compare_side side,
                                                              const char *path);

/*
 * Read all and compare. MAREY_EMISMATCH when a side is empty, no region is on both, or they ran with different numbers
 * of ranks. Memory: one process's series at a time for each thread (4 bytes for each region and iteration).
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_comparison_run(marey_comparison *comparison, const struct marey_compare_options *options);

/*
 * The tables, after a run; lent until the comparison goes; NULL for a name it does not have:
 *   regions   name a_ns b_ns change_percent low_percent high_percent verdict effect_percent reason n_a n_b
 *             effect_percent: what the region's change does to the whole iteration; the largest first
 *   iteration the same columns, one row, the whole iteration; empty when there are no iterations
 *   program   the same columns: (wall time) and (CPU time) of the programs that `marey run` waited for, as far as both sides
 *             have them
 *   functions the same columns: self times of functions, by samples or, where there are none, by call profiles;
 *             effect_percent is of the wall time
 *   only      name side time_ns    regions that only one side has, and functions that take 1 % of its wall time or more
 *   runs      side path run_id n_processes n_iterations n_warmup
 *   warnings  text                 machines that differ, drifts, single runs
 *   quantiles name side run q0 ... q32
 *             how the times of a region are distributed in each run: the least, then what 1/32, 2/32 ... of them stay
 *             below, the largest. Empty unless options.wants_quantiles; not in JSON.
 */
MAREY_API marey_table *marey_comparison_table(marey_comparison *comparison, const char *name);

/*
 * 1 when the iteration is slower by more than `percent` with confidence: its whole interval lies above. `region`
 * (NULL: the iteration, or without iterations every region, or without regions the wall time) names another or a function,
 * "(iteration)", "(wall time)" or "(CPU time)"; MAREY_EINVAL if no row has this name. MAREY_EMISMATCH for the wall time of one run on each side, which has no interval.
 */
MAREY_API int marey_comparison_is_slower(const marey_comparison *comparison, const char *region,
                                         double percent);

/* 1 when a recording of either side has bytes that are not as they were written: the answer is not whole. */
MAREY_API int marey_comparison_is_damaged(const marey_comparison *comparison);

/* Presenters. MAREY_EIO when the stream refuses. `limit`: rows at most, 0 for all. */
struct marey_compare_text_options {
    struct marey_text_options text;
    uint32_t limit;
};
MAREY_API marey_status marey_compare_text(marey_comparison *comparison,
                                          const struct marey_compare_text_options *options,
                                          FILE *out);
MAREY_API marey_status marey_compare_markdown(marey_comparison *comparison,
                                              const struct marey_compare_text_options *options,
                                              FILE *out);
/* An object: regions, iteration, program, functions, only, runs, warnings, summary (the sentence that the text begins with). */
MAREY_API marey_status marey_compare_json(marey_comparison *comparison, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
