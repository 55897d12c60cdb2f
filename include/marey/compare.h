/*
 * marey/compare.h: is B faster than A, by how much, with which confidence interval? (libmarey-tools)
 *
 *     const char *const paths[] = {"before.marey", "after.marey"};  recordings, or stats as JSON
 *     marey_report *report;
 *     marey_report_create_files("compare", paths, 2, NULL, &report);
 *     marey_report_write(report, "text", NULL, stdout);
 *
 * Several paths of one side are repeated runs; `groups` of the options assigns each path to a side.
 *
 * Runs of `marey run` also have the wall and CPU time of their program; sampled or profiled runs have self times of
 * functions. These are one value per run, so confidence intervals need several runs.
 *
 * A side is a set of runs: launches of a program (the run ids of a recording), or files of stats. A run has, for each
 * range, a series of times in order: its time in each iteration after warm-up, or of each call where there are no
 * iterations. The change is that of the median, in percent of A, with a confidence interval of at least 95 %:
 *
 *   several runs on each side   run against run: Hodges and Lehmann's estimate with the exact interval of the Mann-Whitney
 *                               test from 4 runs each; Student's t with fewer. Includes the variance between runs.
 *   one run on each side        blocks of successive times against blocks, at three lengths, the widest interval. Drift
 *                               or strong autocorrelation widen it or make the verdict "unsure". One run cannot show the
 *                               variance between runs (memory layout, temperature).
 *   pairs                       ratios of alternating runs of A and B, by blocks: interval of the signed-rank test
 *
 * docs/internals/compare.md explains the methods and their measured coverage on data with a known change.
 */
#ifndef MAREY_COMPARE_H
#define MAREY_COMPARE_H

#include <marey/report.h>
#include <marey/table.h>

MAREY_BEGIN_C

enum marey_verdict {
    MAREY_UNSURE = 0, /* too noisy, or too little data */
    MAREY_SAME,       /* no difference found: the interval contains 0 and is narrow */
    MAREY_FASTER,     /* the whole interval is below 0 */
    MAREY_SLOWER,     /* the whole interval is above 0 */
};
/* "unsure", "same", "faster", "slower". */
MAREY_API const char *marey_verdict_name(enum marey_verdict verdict);

struct marey_compare_options {
    /* The largest change to ignore, in percent: an interval that contains 0 and is within this is "same". 0: 1 %. */
    double smallest_percent;
};

/* ---- arrays ---- */

/* The times of one run, in order, in any unit; lent. */
struct marey_run_times {
    const double *times;
    size_t n;
    double start; /* when it ran, in any unit, to detect drift between runs; 0: unknown */
};

struct marey_change {
    enum marey_verdict verdict;
    /* B relative to A; negative: faster. NaN if unknown. */
    double percent, low_percent, high_percent;
    double a, b;        /* median over the runs of each run's median */
    size_t n_a, n_b;    /* number of times */
    const char *reason; /* why it is unsure, or why the interval is wider; "": none. Static. */
};

/*
 * Compare two sets of runs. MAREY_EINVAL: a time is negative or NaN, or a side has no times.
 * Any thread.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_compare_runs(
    const struct marey_run_times *a, size_t n_a, const struct marey_run_times *b, size_t n_b,
    const struct marey_compare_options *options, struct marey_change *out);

/* The same for `n` pairs: a[i] and b[i] were measured in immediate succession, in either order. */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_compare_pairs(const double *a, const double *b, size_t n,
                    const struct marey_compare_options *options, struct marey_change *out);

MAREY_END_C
#endif
