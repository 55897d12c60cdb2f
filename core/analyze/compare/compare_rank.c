/*
 * Digests of times: the median, medians of blocks, and quantiles; intervals by ranks. All later steps use digests, so
 * that a million iterations of fifty ranges are read once and discarded.
 *
 * Medians are selected by digits: times are not negative, so the bits of a float sort like its value. Three rounds of
 * 11, 11 and 10 bits count, pick the bucket with the median, and continue in it. No input makes that slow.
 */
#include <math.h>
#include <string.h>

#include "analyze/compare/internal.h"

enum { DIGIT_BITS = 11, N_BUCKETS = 1 << DIGIT_BITS, FEW = 256 };

/* ---- medians ---- */

double marey__median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, marey__compare_f64);
    return n % 2 != 0 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/*
 * Move the `keys` with the same digit at `shift` as the `rank`-th one to the front; `rank` becomes its rank among them.
 */
static size_t narrow(uint32_t *keys, size_t n, uint32_t shift, size_t *rank)
{
    uint32_t counts[N_BUCKETS] = {0};
    for (size_t i = 0; i < n; i++)
        counts[(keys[i] >> shift) & (N_BUCKETS - 1)]++;
    uint32_t digit = 0;
    while (*rank >= counts[digit])
        *rank -= counts[digit++];
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        keys[kept] = keys[i];
        kept += ((keys[i] >> shift) & (N_BUCKETS - 1)) == digit;
    }
    return kept;
}

/* For even `n`, the lower of the two middle values, which are nearly equal. */
static double median_of_many(const float *times, size_t n, uint32_t *scratch)
{
    size_t rank = (n - 1) / 2;
    memcpy(scratch, times, n * sizeof *scratch);
    n = narrow(scratch, n, 32 - DIGIT_BITS, &rank);
    n = narrow(scratch, n, 32 - 2 * DIGIT_BITS, &rank);
    narrow(scratch, n, 0, &rank);
    float value;
    memcpy(&value, scratch, sizeof value);
    return (double)value;
}

static double median_of_times(const float *times, size_t n, uint32_t *scratch)
{
    double few[FEW];
    if (n > FEW)
        return median_of_many(times, n, scratch);
    for (size_t i = 0; i < n; i++)
        few[i] = (double)times[i];
    return marey__median(few, n);
}

/* ---- digests ---- */

void marey__digest_make(struct marey__digest *digest, const float *times, size_t n, uint32_t *scratch)
{
    digest->n = n;
    digest->log_median = log(median_of_times(times, n, scratch));
    digest->n_blocks = n >= MAREY__BLOCKS         ? MAREY__BLOCKS
                       : n >= MAREY__FEWEST_TIMES ? MAREY__BLOCKS / 2
                                                  : 0;
    for (size_t i = 0; i < digest->n_blocks; i++) {
        const size_t from = n * i / digest->n_blocks, to = n * (i + 1) / digest->n_blocks;
        digest->log_blocks[i] = log(median_of_times(times + from, to - from, scratch));
    }
}

MAREY__ORDER(compare_bits, uint32_t, MAREY__UP_BY(*x, *y))

void marey__digest_make_whole(struct marey__digest *digest, const float *times, size_t n,
                              uint32_t *scratch)
{
    enum { ENOUGH = 4096 };
    marey__digest_make(digest, times, n, scratch);
    const size_t step = (n + ENOUGH - 1) / ENOUGH;
    size_t n_taken = 0;
    for (size_t i = 0; i < n; i += step)
        memcpy(&scratch[n_taken++], &times[i], sizeof times[i]);
    qsort(scratch, n_taken, sizeof *scratch, compare_bits);
    for (size_t q = 0; q < MAREY__QUANTILES; q++)
        memcpy(&digest->quantiles[q], &scratch[(n_taken - 1) * q / (MAREY__QUANTILES - 1)],
               sizeof digest->quantiles[q]);
}

void marey__digest_halve(struct marey__digest *digest)
{
    digest->n_blocks /= 2;
    for (size_t i = 0; i < digest->n_blocks; i++)
        digest->log_blocks[i] = (digest->log_blocks[2 * i] + digest->log_blocks[2 * i + 1]) / 2;
}

void marey__digest_average(struct marey__digest *into, const struct marey__digest *from, size_t weight)
{
    struct marey__digest other = *from;
    if (weight == 0) {
        *into = other;
        return;
    }
    while (into->n_blocks > other.n_blocks)
        marey__digest_halve(into);
    while (other.n_blocks > into->n_blocks)
        marey__digest_halve(&other);
    const double share = 1.0 / (double)(weight + 1);
    into->n += other.n;
    into->log_median += (other.log_median - into->log_median) * share;
    for (size_t q = 0; q < MAREY__QUANTILES; q++)
        into->quantiles[q] += (other.quantiles[q] - into->quantiles[q]) * (float)share;
    for (size_t i = 0; i < into->n_blocks; i++)
        into->log_blocks[i] += (other.log_blocks[i] - into->log_blocks[i]) * share;
}

/*
 * ---- intervals by ranks ----
 *
 * Of the sorted differences between every b and every a, the middle one estimates the shift
 * (Hodges-Lehmann), and the c-th from each end bound an interval that contains the shift with a probability that does
 * not depend on the distribution of the values: that of the Mann-Whitney statistic, which is known exactly. With five runs
 * on each side it is 96.8 %, whatever the noise, and an outlier run moves neither end far. For one sample the
 * means of every two values and the signed-rank statistic are used (Walsh, Wilcoxon).
 */

enum {
    /* C(50, 25) and 2^50 are still exact in a double. */
    EXACT_TWO = 25,
    EXACT_ONE = 50,
    FEW_DIFFERENCES = 256,
};

/* ---- number of sorted differences outside the interval ---- */

/* From the number of ways for each value of the statistic: how many values the lower tail may have. */
static size_t tail_size(const double *ways, size_t n, double all)
{
    const double share = (1 - MAREY__CONFIDENCE) / 2;
    double sum = 0;
    size_t size = 0;
    while (size < n && (sum += ways[size]) <= share * all)
        size++;
    return size;
}

/* The ways are the coefficients of the product of (1 - q^(b+i)) / (1 - q^i), i from 1 to a. */
static size_t mann_whitney_exact(size_t n_a, size_t n_b)
{
    double ways[EXACT_TWO * EXACT_TWO + 1] = {1}, all = 1;
    const size_t top = n_a * n_b;
    for (size_t i = 1; i <= n_a; i++) {
        for (size_t u = top; u >= n_b + i; u--)
            ways[u] -= ways[u - n_b - i];
        for (size_t u = i; u <= top; u++)
            ways[u] += ways[u - i];
        all = all * (double)(n_b + i) / (double)i;
    }
    return tail_size(ways, top + 1, all);
}

static size_t normal_tail(double mean, double variance)
{
    const double bound = mean - 2.053749 * sqrt(variance);
    return bound > 0 ? (size_t)bound : 0;
}

size_t marey__mann_whitney_bound(size_t n_a, size_t n_b)
{
    if (n_a <= EXACT_TWO && n_b <= EXACT_TWO)
        return mann_whitney_exact(n_a, n_b);
    const double a = (double)n_a, b = (double)n_b;
    return normal_tail(a * b / 2, a * b * (a + b + 1) / 12);
}

/* The ways are the coefficients of the product of (1 + q^i), i from 1 to n. */
size_t marey__signed_rank_bound(size_t n)
{
    double ways[EXACT_ONE * (EXACT_ONE + 1) / 2 + 1] = {1};
    if (n > EXACT_ONE) {
        const double m = (double)n;
        return normal_tail(m * (m + 1) / 4, m * (m + 1) * (2 * m + 1) / 24);
    }
    const size_t top = n * (n + 1) / 2;
    for (size_t i = 1; i <= n; i++)
        for (size_t w = top; w >= i; w--)
            ways[w] += ways[w - i];
    return tail_size(ways, top + 1, ldexp(1, (int)n));
}

/* ---- the intervals ---- */

/* Sorts `differences`. */
static bool interval_of(double *differences, size_t n, size_t bound,
                        struct marey__change_interval *out)
{
    out->estimate = marey__median(differences, n);
    if (bound == 0)
        return false;
    out->low = differences[bound - 1];
    out->high = differences[n - bound];
    return true;
}

static double *room_for(size_t n, double few[FEW_DIFFERENCES])
{
    return n <= FEW_DIFFERENCES ? few : marey__alloc(n * sizeof(double));
}

marey_status marey__shift_of_two(const double *a, size_t n_a, const double *b, size_t n_b,
                                 struct marey__change_interval *out, bool *has_interval)
{
    double few[FEW_DIFFERENCES], *differences = room_for(n_a * n_b, few);
    size_t n = 0;
    MAREY__TRY_MEMORY(differences != NULL);
    for (size_t i = 0; i < n_a; i++)
        for (size_t j = 0; j < n_b; j++)
            differences[n++] = b[j] - a[i];
    *has_interval = interval_of(differences, n, marey__mann_whitney_bound(n_a, n_b), out);
    if (differences != few)
        marey__free(differences);
    return MAREY_OK;
}

marey_status marey__shift_of_one(const double *values, size_t n, struct marey__change_interval *out,
                                 bool *has_interval)
{
    double few[FEW_DIFFERENCES], *means = room_for(n * (n + 1) / 2, few);
    size_t n_means = 0;
    MAREY__TRY_MEMORY(means != NULL);
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++)
            means[n_means++] = (values[i] + values[j]) / 2;
    *has_interval = interval_of(means, n_means, marey__signed_rank_bound(n), out);
    if (means != few)
        marey__free(means);
    return MAREY_OK;
}
