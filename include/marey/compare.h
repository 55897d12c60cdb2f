/*
 * marey/compare.h: is B faster than A, by how much, how surely? (libmarey-tools)
 *
 *     const char *const paths[] = {"before.marey", "after.marey"};  recordings, or stats as JSON
 *     marey_report *report;
 *     marey_report_create_files("compare", paths, 2, NULL, &report);
 *     marey_report_write(report, "text", NULL, stdout);
 *
 * Several paths of a side are repeats; `groups` of the options says which side each is of.
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

#ifdef __cplusplus
}
#endif
#endif
