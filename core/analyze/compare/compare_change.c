/*
 * Computes a change and a verdict from digests of runs.
 *
 * Several runs on a side: each run is one observation, its median. Iterations of one run share its memory layout, its
 * neighbors and its temperature; even many of them do not predict the next run. So runs are compared with runs,
 * and the interval includes differences between runs. The interval is the exact one by ranks, or
 * Student's if there are too few runs for 95 %.
 *
 * One run on each side: blocks of successive times replace runs. Neighboring times are correlated, those of long blocks
 * hardly, but the required length is unknown. So the interval is computed for three lengths, and the
 * widest counts: with independent times they agree, with correlated ones the longest blocks dominate. Blocks
 * that are correlated or have a trend widen the interval by the variation within the run; if neighboring blocks are clearly
 * correlated even at a sixteenth of the run, the run is too short to know its level, and the verdict is unsure.
 *
 * A drift from run to run can be distinguished from a change only if A and B ran in turns, or if it is visible in each
 * side's own runs; then the interval without it is included as well.
 *
 * The constants are chosen by simulation: tests/unit/test_compare_truth.c, docs/internals/compare.md.
 */
#include <math.h>

#include "analyze/compare/internal.h"

static const double related =
    0.05; /* lag-1 correlation of blocks above which the interval is widened */
static const double dependent = 0.35; /* and above which there is no verdict */
static const double ordered = 1.35;   /* Kendall's score of a trend, in standard deviations */
/* Assumed minimum variation between runs of one program, which a single run on each side cannot show. */
static const double least_between = 0.0025;
static const double evident = 0.7; /* confidence required to correct a drift from run to run */
static const double plain = 0.99;  /* and to treat it as certain */

static const char reason_zero[] = "the median time is zero";
static const char reason_few[] = "too few times; record more iterations, or repeat the run";
static const char reason_dependent[] =
    "one run on each side, and its times drift or are correlated; repeat the runs";
static const char reason_noisy[] = "too noisy to tell; repeat the runs, or record more iterations";
static const char reason_drift[] = "times drift from run to run; run A and B in turns";

/* ---- the verdict ---- */

static double to_percent(double log_ratio)
{
    return 100 * expm1(log_ratio);
}

static void change_set(struct marey_change *out, const struct marey__change_interval *interval,
                       double smallest)
{
    out->percent = to_percent(interval->estimate);
    out->low_percent = to_percent(fmin(interval->low, interval->estimate));
    out->high_percent = to_percent(fmax(interval->high, interval->estimate));
    const double widest = fmax(-out->low_percent, out->high_percent);
    out->verdict = out->low_percent > 0    ? MAREY_SLOWER
                   : out->high_percent < 0 ? MAREY_FASTER
                   : widest <= smallest    ? MAREY_SAME
                                           : MAREY_UNSURE;
    if (out->verdict == MAREY_UNSURE && out->reason[0] == '\0')
        out->reason = reason_noisy;
}

static void widen(struct marey__change_interval *interval, const struct marey__change_interval *other)
{
    interval->low = fmin(interval->low, other->low);
    interval->high = fmax(interval->high, other->high);
}

void marey__change_set_unknown(struct marey_change *out, const char *reason)
{
    out->percent = out->low_percent = out->high_percent = NAN;
    out->reason = reason;
}

/* ---- blocks of one run ---- */

/* Lag-1 correlation, corrected for its negative bias. */
static double lag_correlation(const double *values, size_t n)
{
    double mean = 0, variance = 0, covariance = 0;
    for (size_t i = 0; i < n; i++)
        mean += values[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        variance += (values[i] - mean) * (values[i] - mean);
    for (size_t i = 1; i < n; i++)
        covariance += (values[i] - mean) * (values[i - 1] - mean);
    /* Times have 24 bits of precision; smaller variances are rounding errors of the mean. */
    return variance > 1e-16 ? covariance / variance + 1 / (double)n : 0;
}

/* Kendall's score of a trend, divided by its standard deviation without a trend. */
static double trend_score(const double *values, size_t n)
{
    double score = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            score += (values[j] > values[i]) - (values[j] < values[i]);
    const double m = (double)n;
    return fabs(score) / sqrt(m * (m - 1) * (2 * m + 5) / 18);
}

static double range_of(const double *values, size_t n)
{
    double low = values[0], high = values[0];
    for (size_t i = 1; i < n; i++) {
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    return high - low;
}

static bool is_finite(const struct marey__digest *digest)
{
    bool all = isfinite(digest->log_median);
    for (size_t i = 0; i < digest->n_blocks; i++)
        all &= isfinite(digest->log_blocks[i]);
    return all;
}

struct structure {
    double correlation, trend;
};

static struct structure structure_of(const struct marey__digest *a, const struct marey__digest *b)
{
    return (struct structure){
        .correlation = (lag_correlation(a->log_blocks, a->n_blocks) +
                        lag_correlation(b->log_blocks, b->n_blocks)) /
                       2,
        .trend =
            fmax(trend_score(a->log_blocks, a->n_blocks), trend_score(b->log_blocks, b->n_blocks)),
    };
}

/* The widest of the intervals for all block lengths. Leaves the longest blocks in `a` and `b`. */
static marey_status widest_interval(struct marey__digest *a, struct marey__digest *b,
                                    struct marey__change_interval *out)
{
    bool has_interval;
    MAREY_TRY(marey__shift_of_two(a->log_blocks, a->n_blocks, b->log_blocks, b->n_blocks, out,
                                  &has_interval));
    while (MAREY__MIN(a->n_blocks, b->n_blocks) >= 2 * MAREY__FEWEST_BLOCKS) {
        struct marey__change_interval coarser;
        marey__digest_halve(a);
        marey__digest_halve(b);
        MAREY_TRY(marey__shift_of_two(a->log_blocks, a->n_blocks, b->log_blocks, b->n_blocks,
                                      &coarser, &has_interval));
        widen(out, &coarser);
    }
    return MAREY_OK;
}

static marey_status change_of_two(const struct marey__digest *first,
                                  const struct marey__digest *second, double smallest,
                                  struct marey_change *out)
{
    struct marey__digest a = *first, b = *second;
    struct marey__change_interval interval;
    if (a.n_blocks == 0 || b.n_blocks == 0) {
        marey__change_set_unknown(out, reason_few);
        out->percent = to_percent(b.log_median - a.log_median);
        return MAREY_OK;
    }
    const struct structure structure = structure_of(&a, &b);
    MAREY_TRY(widest_interval(&a, &b, &interval));
    double moved = least_between;
    if (structure.correlation > related || structure.trend > ordered)
        moved += fmax(range_of(a.log_blocks, a.n_blocks), range_of(b.log_blocks, b.n_blocks));
    interval.low -= moved;
    interval.high += moved;
    if (structure.correlation > dependent)
        out->reason = reason_dependent;
    change_set(out, &interval, smallest);
    if (structure.correlation > dependent)
        out->verdict = MAREY_UNSURE;
    return MAREY_OK;
}

/* ---- several runs ---- */

struct runs {
    double *log_medians, *starts;
    size_t n;
};

/* Sums of squares around each side's mean. */
struct within {
    double mean[2], mean_start[2];
    double squares, start_squares, products;
    size_t n[2];
};

static struct within within_sides(const struct runs sides[2])
{
    struct within w = {.n = {sides[0].n, sides[1].n}};
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < sides[s].n; i++) {
            w.mean[s] += sides[s].log_medians[i] / (double)sides[s].n;
            w.mean_start[s] += sides[s].starts[i] / (double)sides[s].n;
        }
        for (size_t i = 0; i < sides[s].n; i++) {
            const double y = sides[s].log_medians[i] - w.mean[s],
                         x = sides[s].starts[i] - w.mean_start[s];
            w.squares += y * y;
            w.start_squares += x * x;
            w.products += x * y;
        }
    }
    return w;
}

/* The interval for an estimate with this standard error. */
static struct marey__change_interval t_interval(double estimate, double error, double df)
{
    const double reach = error * marey__t_quantile(MAREY__CONFIDENCE, df);
    return (struct marey__change_interval){estimate, estimate - reach, estimate + reach};
}

/* One variance for both sides: two or three runs each are too few for two. */
static struct marey__change_interval pooled_interval(const struct within *w)
{
    const double df = (double)(w->n[0] + w->n[1] - 2);
    const double error = sqrt(w->squares / df * (1 / (double)w->n[0] + 1 / (double)w->n[1]));
    return t_interval(w->mean[1] - w->mean[0], error, df);
}

/*
 * A machine that warms up slows each run down relative to the one before, so the side that ran later seems slower. If a
 * line through each side's runs, with a common slope, has a significant slope, its effect is removed, and the interval
 * includes the slope's uncertainty: the result covers both intervals. Sides that ran in turns lose almost nothing;
 * there, a clear slope uses only this interval, because the drift is noise in the other one.
 */
static void take_out_drift(const struct within *w, struct marey__change_interval *interval,
                           struct marey_change *out)
{
    const double df = (double)(w->n[0] + w->n[1]) - 3;
    if (df < 1 || w->start_squares <= 0)
        return;
    const double slope = w->products / w->start_squares;
    const double left = fmax(w->squares - slope * w->products, 0) / df;
    const double seen = fabs(slope), slope_error = sqrt(left / w->start_squares);
    if (seen <= marey__t_quantile(evident, df) * slope_error)
        return;
    const double apart = w->mean_start[1] - w->mean_start[0];
    const double by_runs = 1 / (double)w->n[0] + 1 / (double)w->n[1],
                 by_slope = apart * apart / w->start_squares;
    const struct marey__change_interval drifting =
        t_interval(w->mean[1] - w->mean[0] - slope * apart, sqrt(left * (by_runs + by_slope)), df);
    if (by_slope < by_runs / 4 && seen > marey__t_quantile(plain, df) * slope_error)
        *interval = drifting;
    else
        widen(interval, &drifting);
    out->reason = reason_drift;
}

static marey_status change_of_many(const struct runs sides[2], bool has_starts, double smallest,
                                   struct marey_change *out)
{
    struct marey__change_interval interval;
    bool has_interval;
    const struct within w = within_sides(sides);
    MAREY_TRY(marey__shift_of_two(sides[0].log_medians, sides[0].n, sides[1].log_medians,
                                  sides[1].n, &interval, &has_interval));
    if (!has_interval)
        interval = pooled_interval(&w);
    if (has_starts)
        take_out_drift(&w, &interval, out);
    change_set(out, &interval, smallest);
    if (out->verdict != MAREY_UNSURE)
        out->reason = "";
    return MAREY_OK;
}

/* ---- several runs or one ---- */

static marey_status gather(struct runs *side, const struct marey__run_digest *runs, size_t n,
                           double *median, size_t *n_times, bool *has_starts)
{
    side->log_medians = marey__calloc(n, sizeof(double));
    side->starts = marey__calloc(n, sizeof(double));
    double *const sorted MAREY__FREED = marey__calloc(n, sizeof(double));
    MAREY__TRY_MEMORY(side->log_medians != NULL && side->starts != NULL && sorted != NULL);
    side->n = n;
    for (size_t i = 0; i < n; i++) {
        side->log_medians[i] = runs[i].digest->log_median;
        side->starts[i] = runs[i].start;
        sorted[i] = exp(runs[i].digest->log_median);
        *has_starts &= runs[i].start != 0;
        *n_times += runs[i].digest->n;
    }
    *median = marey__median(sorted, n);
    return MAREY_OK;
}

static bool all_finite(const struct marey__run_digest *runs, size_t n)
{
    bool all = true;
    for (size_t i = 0; i < n; i++)
        all &= n == 1 ? is_finite(runs[i].digest) : isfinite(runs[i].digest->log_median);
    return all;
}

static marey_status change_of(struct runs sides[2], const struct marey__run_digest *a, size_t n_a,
                              const struct marey__run_digest *b, size_t n_b, double smallest,
                              struct marey_change *out)
{
    bool has_starts = true;
    MAREY_TRY(gather(&sides[0], a, n_a, &out->a, &out->n_a, &has_starts));
    MAREY_TRY(gather(&sides[1], b, n_b, &out->b, &out->n_b, &has_starts));
    if (!all_finite(a, n_a) || !all_finite(b, n_b)) {
        marey__change_set_unknown(out, reason_zero);
        return MAREY_OK;
    }
    if (n_a == 1 && n_b == 1)
        return change_of_two(a->digest, b->digest, smallest, out);
    return change_of_many(sides, has_starts, smallest, out);
}

marey_status marey__change_of_runs(const struct marey__run_digest *a, size_t n_a,
                                   const struct marey__run_digest *b, size_t n_b,
                                   double smallest_percent, struct marey_change *out)
{
    struct runs sides[2] = {{0}};
    struct marey_change change = {.reason = ""};
    const marey_status status =
        change_of(sides, a, n_a, b, n_b, smallest_percent > 0 ? smallest_percent : 1, &change);
    for (size_t s = 0; s < 2; s++) {
        MAREY__FREE_ALL(sides[s].log_medians, sides[s].starts);
    }
    if (status == MAREY_OK)
        *out = change;
    return status;
}

/* ---- arrays: runs of times, and pairs of times measured in turns ---- */

static marey_status check_times(const double *times, size_t n, const char *side)
{
    if (n == 0)
        return marey__fail(MAREY_EINVAL, "side %s has a run without times", side);
    for (size_t i = 0; i < n; i++)
        if (!(times[i] >= 0) || isinf(times[i]))
            return marey__fail(MAREY_EINVAL,
                               "time %zu of side %s is %g; times are finite and not negative", i,
                               side, times[i]);
    return MAREY_OK;
}

/* ---- runs ---- */

struct digests {
    struct marey__digest *list;
    struct marey__run_digest *runs;
    size_t n;
};

static void digests_fini(struct digests *digests)
{
    MAREY__FREE_ALL(digests->list, digests->runs);
}

static marey_status digest_run(struct marey__digest *digest, const struct marey_run_times *run)
{
    float *const times MAREY__FREED = marey__calloc(run->n, sizeof *times);
    uint32_t *const scratch MAREY__FREED = marey__calloc(run->n, sizeof *scratch);
    MAREY__TRY_MEMORY(times != NULL && scratch != NULL);
    for (size_t i = 0; i < run->n; i++)
        times[i] = (float)run->times[i];
    marey__digest_make(digest, times, run->n, scratch);
    return MAREY_OK;
}

static marey_status make_digests(struct digests *digests, const struct marey_run_times *runs,
                                 size_t n, const char *side)
{
    if (n == 0)
        return marey__fail(MAREY_EINVAL, "side %s has no runs", side);
    *digests = (struct digests){
        .list = marey__calloc(n, sizeof(struct marey__digest)),
        .runs = marey__calloc(n, sizeof(struct marey__run_digest)),
        .n = n,
    };
    MAREY__TRY_MEMORY(digests->list != NULL && digests->runs != NULL);
    for (size_t i = 0; i < n; i++) {
        MAREY_TRY(check_times(runs[i].times, runs[i].n, side));
        MAREY_TRY(digest_run(&digests->list[i], &runs[i]));
        digests->runs[i] = (struct marey__run_digest){&digests->list[i], runs[i].start};
    }
    return MAREY_OK;
}

marey_status marey_compare_runs(const struct marey_run_times *a, size_t n_a,
                                const struct marey_run_times *b, size_t n_b,
                                const struct marey_compare_options *options, struct marey_change *out)
{
    struct digests of_a MAREY__FINALLY(digests_fini) = {0}, of_b MAREY__FINALLY(digests_fini) = {0};
    MAREY_TRY(make_digests(&of_a, a, n_a, "A"));
    MAREY_TRY(make_digests(&of_b, b, n_b, "B"));
    return marey__change_of_runs(of_a.runs, n_a, of_b.runs, n_b,
                                 options != NULL ? options->smallest_percent : 0, out);
}

/* ---- pairs ---- */

/* Medians of successive blocks; sorts `values` within each. */
static size_t block_medians(double *values, size_t n, double blocks[MAREY__BLOCKS])
{
    const size_t n_blocks = n >= MAREY__BLOCKS ? MAREY__BLOCKS : n;
    for (size_t i = 0; i < n_blocks; i++) {
        const size_t from = n * i / n_blocks, to = n * (i + 1) / n_blocks;
        blocks[i] = marey__median(values + from, to - from);
    }
    return n_blocks;
}

/* For sixteen blocks and for eight: effects longer than a pair are visible in the longer blocks. */
static marey_status pairs_interval(double *ratios, size_t n, struct marey__change_interval *out,
                                   bool *has_interval)
{
    double blocks[MAREY__BLOCKS];
    const size_t n_blocks = block_medians(ratios, n, blocks);
    MAREY_TRY(marey__shift_of_one(blocks, n_blocks, out, has_interval));
    if (n_blocks < MAREY__BLOCKS)
        return MAREY_OK;
    struct marey__change_interval coarser;
    bool has_coarser;
    for (size_t i = 0; i < MAREY__BLOCKS / 2; i++)
        blocks[i] = (blocks[2 * i] + blocks[2 * i + 1]) / 2;
    MAREY_TRY(marey__shift_of_one(blocks, MAREY__BLOCKS / 2, &coarser, &has_coarser));
    widen(out, &coarser);
    return MAREY_OK;
}

marey_status marey_compare_pairs(const double *a, const double *b, size_t n,
                                 const struct marey_compare_options *options,
                                 struct marey_change *out)
{
    MAREY_TRY(check_times(a, n, "A"));
    MAREY_TRY(check_times(b, n, "B"));
    double *const ratios MAREY__FREED = marey__calloc(n, sizeof *ratios);
    MAREY__TRY_MEMORY(ratios != NULL);
    struct marey_change change = {.reason = "", .n_a = n, .n_b = n};
    struct marey__change_interval interval;
    bool has_interval, is_finite = true;
    memcpy(ratios, a, n * sizeof *ratios);
    change.a = marey__median(ratios, n);
    memcpy(ratios, b, n * sizeof *ratios);
    change.b = marey__median(ratios, n);
    for (size_t i = 0; i < n; i++) {
        ratios[i] = log(b[i]) - log(a[i]);
        is_finite &= isfinite(ratios[i]) != 0;
    }
    if (!is_finite) {
        marey__change_set_unknown(&change, "a time is zero");
    } else {
        MAREY_TRY(pairs_interval(ratios, n, &interval, &has_interval));
        if (has_interval)
            change_set(&change, &interval,
                       options != NULL && options->smallest_percent > 0 ? options->smallest_percent
                                                                        : 1);
        else
            marey__change_set_unknown(&change, "too few pairs; at least 6 are needed");
    }
    *out = change;
    return MAREY_OK;
}
