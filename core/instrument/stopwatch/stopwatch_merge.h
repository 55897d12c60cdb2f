/*
 * stopwatch: results that go from process to process. stopwatch_spread.c makes them fit to be added up, stopwatch_pack.c
 * writes them, stopwatch_merge.c reads them and adds them up; docs/formats/stopwatch.md has the bytes.
 *
 * Sketches are of ticks, which are not as long on every machine. What is packed is nanoseconds: each bucket's middle, put
 * into buckets that are eight times finer, so that a quantile is within 0.9 % after that.
 */
#ifndef MAREY_STOPWATCH_MERGE_H
#define MAREY_STOPWATCH_MERGE_H

#include "instrument/stopwatch/stopwatch_internal.h"

/* A bucket: the value's single-precision bits without the lowest 14, so that keys are in the order of values. */
struct marey__point {
    uint32_t key;
    uint64_t count;
};
enum { MAREY__POINT_SHIFT = 14, MAREY__POINT_MAX_KEY = 0x7f7fffff >> MAREY__POINT_SHIFT };

/* How some durations are spread. Nanoseconds. A zeroed one is empty. */
struct marey__spread {
    uint64_t count;
    double total, m2; /* m2: the sum of the squared distances from the mean */
    double min, max;
    struct marey__point *points; /* by key, each once */
    size_t n, cap;
};

/* The bucket of a duration, 0 or more, and its middle. */
uint32_t marey__point_key(double ns);
double marey__point_value(uint32_t key);

/* Of the values in `sum` and `n_zeros` zeros, times `scale`. False without memory. */
bool marey__spread_of(const struct marey__watch_sum *sum, uint64_t n_zeros, double scale,
                      struct marey__spread *out);
void marey__spread_fini(struct marey__spread *spread);
/* Add `from`; false without memory or when a count would overflow, with `into` as it was. */
bool marey__spread_merge(struct marey__spread *into, const struct marey__spread *from);
double marey__spread_mean(const struct marey__spread *spread);
double marey__spread_std(const struct marey__spread *spread);
double marey__spread_quantile(const struct marey__spread *spread, double q);

/* ---- the bytes ---- */

#define MAREY__PACK_MAGIC "mareyW1\n"
enum { MAREY__PACK_HEAD = 28, MAREY__PACK_SPREAD = 44, MAREY__PACK_POINT = 12 };

#endif
