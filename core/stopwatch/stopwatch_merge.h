/*
 * stopwatch: results that go from process to process. stopwatch_spread.c makes them fit to be added up, stopwatch_pack.c
 * writes them, stopwatch_merge.c reads them and adds them up; docs/formats/stopwatch.md has the bytes.
 *
 * Sketches are of ticks, which are not as long on every machine. What is packed is nanoseconds: each bucket's middle, put
 * into buckets that are eight times finer, so that a quantile is within 0.9 % after that.
 */
#ifndef KYMO_STOPWATCH_MERGE_H
#define KYMO_STOPWATCH_MERGE_H

#include "stopwatch/stopwatch_internal.h"

/* A bucket: the value's single-precision bits without the lowest 14, so that keys are in the order of values. */
struct kymo__point {
    uint32_t key;
    uint64_t count;
};
enum { KYMO__POINT_SHIFT = 14, KYMO__POINT_MAX_KEY = 0x7f7fffff >> KYMO__POINT_SHIFT };

/* How some durations are spread. Nanoseconds. A zeroed one is empty. */
struct kymo__spread {
    uint64_t count;
    double total, m2; /* m2: the sum of the squared distances from the mean */
    double min, max;
    struct kymo__point *points; /* by key, each once */
    size_t n, cap;
};

/* The bucket of a duration, 0 or more, and its middle. */
uint32_t kymo__point_key(double ns);
double kymo__point_value(uint32_t key);

/* Of the values in `sum` and `n_zeros` zeros, times `scale`. False without memory. */
bool kymo__spread_of(const struct kymo__watch_sum *sum, uint64_t n_zeros, double scale,
                     struct kymo__spread *out);
void kymo__spread_fini(struct kymo__spread *spread);
/* Add `from`; false without memory or when a count would overflow, with `into` as it was. */
bool kymo__spread_merge(struct kymo__spread *into, const struct kymo__spread *from);
double kymo__spread_mean(const struct kymo__spread *spread);
double kymo__spread_std(const struct kymo__spread *spread);
double kymo__spread_quantile(const struct kymo__spread *spread, double q);

/* ---- the bytes ---- */

#define KYMO__PACK_MAGIC "kymoSW1\n"
enum { KYMO__PACK_HEAD = 28, KYMO__PACK_SPREAD = 44, KYMO__PACK_POINT = 12 };

#endif
