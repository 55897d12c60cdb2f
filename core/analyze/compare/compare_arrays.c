/* Comparisons of arrays: runs of times, and pairs of times that were taken in turns. */
#include <math.h>

#include "analyze/compare/internal.h"

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

static void free_digests(struct digests *digests)
{
    marey__free(digests->list);
    marey__free(digests->runs);
}

static marey_status digest_run(struct marey__digest *digest, const struct marey_run_times *run)
{
    float *times = marey__calloc(run->n, sizeof *times);
    uint32_t *scratch = marey__calloc(run->n, sizeof *scratch);
    const bool ok = times != NULL && scratch != NULL;
    for (size_t i = 0; ok && i < run->n; i++)
        times[i] = (float)run->times[i];
    if (ok)
        marey__digest_make(digest, times, run->n, scratch);
    marey__free(times);
    marey__free(scratch);
    return ok ? MAREY_OK : marey__no_memory();
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
    struct digests of_a = {0}, of_b = {0};
    marey_status status = make_digests(&of_a, a, n_a, "A");
    if (status == MAREY_OK)
        status = make_digests(&of_b, b, n_b, "B");
    if (status == MAREY_OK)
        status = marey__change_of_runs(of_a.runs, n_a, of_b.runs, n_b,
                                       options != NULL ? options->smallest_percent : 0, out);
    free_digests(&of_a);
    free_digests(&of_b);
    return status;
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

/* By sixteen blocks and by eight: what lasts longer than a pair shows in the longer ones. */
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
    out->low = fmin(out->low, coarser.low);
    out->high = fmax(out->high, coarser.high);
    return MAREY_OK;
}

static marey_status change_of_pairs(const double *a, const double *b, size_t n, double *ratios,
                                    double smallest, struct marey_change *out)
{
    struct marey_change change = {.reason = "", .n_a = n, .n_b = n};
    struct marey__change_interval interval;
    bool has_interval, is_finite = true;
    for (size_t i = 0; i < n; i++)
        ratios[i] = a[i];
    change.a = marey__median(ratios, n);
    for (size_t i = 0; i < n; i++)
        ratios[i] = b[i];
    change.b = marey__median(ratios, n);
    for (size_t i = 0; i < n; i++) {
        ratios[i] = log(b[i]) - log(a[i]);
        is_finite &= isfinite(ratios[i]) != 0;
    }
    if (!is_finite) {
        marey__change_set_unknown(&change, "a time is zero");
        *out = change;
        return MAREY_OK;
    }
    MAREY_TRY(pairs_interval(ratios, n, &interval, &has_interval));
    if (has_interval)
        marey__change_set(&change, &interval, smallest);
    else
        marey__change_set_unknown(&change, "too few pairs; at least 6 are needed");
    *out = change;
    return MAREY_OK;
}

marey_status marey_compare_pairs(const double *a, const double *b, size_t n,
                                 const struct marey_compare_options *options,
                                 struct marey_change *out)
{
    MAREY_TRY(check_times(a, n, "A"));
    MAREY_TRY(check_times(b, n, "B"));
    double *ratios = marey__calloc(n, sizeof *ratios);
    MAREY__TRY_MEMORY(ratios != NULL);
    const double smallest =
        options != NULL && options->smallest_percent > 0 ? options->smallest_percent : 1;
    const marey_status status = change_of_pairs(a, b, n, ratios, smallest, out);
    marey__free(ratios);
    return status;
}
