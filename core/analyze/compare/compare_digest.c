/*
 * What is kept of a series of times: its median and those of its blocks. Everything later works on these, so that a
 * million iterations of fifty regions are read once and forgotten.
 *
 * Medians are selected by digits: times are not negative, so the bits of a float order as it does. Three rounds of 11,
 * 11 and 10 bits count, pick the bucket that holds the middle and go on inside it. No input makes that slow.
 */
#include <math.h>
#include <string.h>

#include "analyze/compare/internal.h"

enum { DIGIT_BITS = 11, N_BUCKETS = 1 << DIGIT_BITS, FEW = 256 };

/* ---- medians ---- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double marey__median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare_doubles);
    return n % 2 != 0 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Keep of `keys` those with the `rank`-th one's digit at `shift`, to the front; `rank` becomes its rank in there. */
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

/* Of many: the lower of the two middle ones, which are next to one another. */
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

static int compare_bits(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

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
