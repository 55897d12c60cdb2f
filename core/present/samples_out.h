/*
 * Presenters of samples.
 *
 *   samples_lay.c    rounds laid out as ranges in time, for every export that draws time
 *   pyspy_out.c      stacks with lines and counts, as py-spy's raw format has them
 *
 * Sums by path are calls: analyze/samples_tree.c makes them, and calls_out.h has what becomes of them.
 */
#ifndef KYMO_PRESENT_SAMPLES_OUT_H
#define KYMO_PRESENT_SAMPLES_OUT_H

#include "analyze/analyze_internal.h"
#include <kymo/samples_report.h>

/* The source of processes of such recordings, by which they are known. */
#define KYMO__SAMPLES_SOURCE "samples"

/*
 * A recording whose ranges are the samples of `recordings` that `filter` (NULL: the defaults) lets count, on the clock of
 * their machines. `is_beside`: it goes into one file with the recordings' own events, and its threads have numbers and names
 * that are none of theirs. The caller closes it.
 */
KYMO_WARN_UNUSED kymo_status kymo__samples_lay(kymo_recording *const *recordings, size_t n,
                                               const struct kymo_samples_filter *filter,
                                               bool is_beside, kymo_recording **out);
/* Whether these are all there is: samples, and neither events nor calls. */
bool kymo__samples_are_all(kymo_recording *const *recordings, size_t n);

#endif
