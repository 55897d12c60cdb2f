/* Comparisons of arrays: runs of times, and pairs of times that were taken in turns. */
#include <math.h>

#include "analyze/compare_internal.h"

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory to compare");
}

static kymo_status check_times(const double *times, size_t n, const char *side)
{
    if (n == 0)
        return kymo__fail(KYMO_EINVAL, "side %s has a run without times", side);
    for (size_t i = 0; i < n; i++)
        if (!(times[i] >= 0) || isinf(times[i]))
            return kymo__fail(KYMO_EINVAL,
                              "time %zu of side %s is %g; times are finite and not negative", i,
                              side, times[i]);
    return KYMO_OK;
}

/* ---- runs ---- */

struct digests {
    struct kymo__digest *list;
    struct kymo__run_digest *runs;
    size_t n;
};

static void free_digests(struct digests *digests)
{
    kymo__free(digests->list);
    kymo__free(digests->runs);
}

static kymo_status digest_run(struct kymo__digest *digest, const struct kymo_run_times *run)
{
    float *times = kymo__calloc(run->n, sizeof *times);
    uint32_t *scratch = kymo__calloc(run->n, sizeof *scratch);
    const bool ok = times != NULL && scratch != NULL;
    for (size_t i = 0; ok && i < run->n; i++)
        times[i] = (float)run->times[i];
    if (ok)
        kymo__digest_make(digest, times, run->n, scratch);
    kymo__free(times);
    kymo__free(scratch);
    return ok ? KYMO_OK : no_memory();
}

static kymo_status make_digests(struct digests *digests, const struct kymo_run_times *runs,
                                size_t n, const char *side)
{
    if (n == 0)
        return kymo__fail(KYMO_EINVAL, "side %s has no runs", side);
    *digests = (struct digests){
        .list = kymo__calloc(n, sizeof(struct kymo__digest)),
        .runs = kymo__calloc(n, sizeof(struct kymo__run_digest)),
        .n = n,
    };
    if (digests->list == NULL || digests->runs == NULL)
        return no_memory();
    for (size_t i = 0; i < n; i++) {
        KYMO_TRY(check_times(runs[i].times, runs[i].n, side));
        KYMO_TRY(digest_run(&digests->list[i], &runs[i]));
        digests->runs[i] = (struct kymo__run_digest){&digests->list[i], runs[i].start};
    }
    return KYMO_OK;
}

kymo_status kymo_compare_runs(const struct kymo_run_times *a, size_t n_a,
                              const struct kymo_run_times *b, size_t n_b,
                              const struct kymo_compare_options *options, struct kymo_change *out)
{
    struct digests of_a = {0}, of_b = {0};
    kymo_status status = make_digests(&of_a, a, n_a, "A");
    if (status == KYMO_OK)
        status = make_digests(&of_b, b, n_b, "B");
    if (status == KYMO_OK)
        status = kymo__change_of_runs(of_a.runs, n_a, of_b.runs, n_b,
                                      options != NULL ? options->smallest_percent : 0, out);
    free_digests(&of_a);
    free_digests(&of_b);
    return status;
}

/* ---- pairs ---- */

/* Medians of successive blocks; sorts `values` within each. */
static size_t block_medians(double *values, size_t n, double blocks[KYMO__BLOCKS])
{
    const size_t n_blocks = n >= KYMO__BLOCKS ? KYMO__BLOCKS : n;
    for (size_t i = 0; i < n_blocks; i++) {
        const size_t from = n * i / n_blocks, to = n * (i + 1) / n_blocks;
        blocks[i] = kymo__median(values + from, to - from);
    }
    return n_blocks;
}

/* By sixteen blocks and by eight: what lasts longer than a pair shows in the longer ones. */
static kymo_status pairs_interval(double *ratios, size_t n, struct kymo__change_interval *out,
                                  bool *has_interval)
{
    double blocks[KYMO__BLOCKS];
    const size_t n_blocks = block_medians(ratios, n, blocks);
    KYMO_TRY(kymo__shift_of_one(blocks, n_blocks, out, has_interval));
    if (n_blocks < KYMO__BLOCKS)
        return KYMO_OK;
    struct kymo__change_interval coarser;
    bool has_coarser;
    for (size_t i = 0; i < KYMO__BLOCKS / 2; i++)
        blocks[i] = (blocks[2 * i] + blocks[2 * i + 1]) / 2;
    KYMO_TRY(kymo__shift_of_one(blocks, KYMO__BLOCKS / 2, &coarser, &has_coarser));
    out->low = fmin(out->low, coarser.low);
    out->high = fmax(out->high, coarser.high);
    return KYMO_OK;
}

static kymo_status change_of_pairs(const double *a, const double *b, size_t n, double *ratios,
                                   double smallest, struct kymo_change *out)
{
    struct kymo_change change = {.reason = "", .n_a = n, .n_b = n};
    struct kymo__change_interval interval;
    bool has_interval, is_finite = true;
    for (size_t i = 0; i < n; i++)
        ratios[i] = a[i];
    change.a = kymo__median(ratios, n);
    for (size_t i = 0; i < n; i++)
        ratios[i] = b[i];
    change.b = kymo__median(ratios, n);
    for (size_t i = 0; i < n; i++) {
        ratios[i] = log(b[i]) - log(a[i]);
        is_finite &= isfinite(ratios[i]) != 0;
    }
    if (!is_finite) {
        kymo__change_set_unknown(&change, "a time is zero");
        *out = change;
        return KYMO_OK;
    }
    KYMO_TRY(pairs_interval(ratios, n, &interval, &has_interval));
    if (has_interval)
        kymo__change_set(&change, &interval, smallest);
    else
        kymo__change_set_unknown(&change, "too few pairs; at least 6 are needed");
    *out = change;
    return KYMO_OK;
}

kymo_status kymo_compare_pairs(const double *a, const double *b, size_t n,
                               const struct kymo_compare_options *options, struct kymo_change *out)
{
    KYMO_TRY(check_times(a, n, "A"));
    KYMO_TRY(check_times(b, n, "B"));
    double *ratios = kymo__calloc(n, sizeof *ratios);
    if (ratios == NULL)
        return no_memory();
    const double smallest =
        options != NULL && options->smallest_percent > 0 ? options->smallest_percent : 1;
    const kymo_status status = change_of_pairs(a, b, n, ratios, smallest, out);
    kymo__free(ratios);
    return status;
}
