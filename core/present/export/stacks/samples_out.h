/*
 * Presenters of samples.
 *
 *   samples_as_ranges.c    rounds laid out as ranges in time, for every export that draws time
 *   pyspy_out.c      stacks with lines and counts, as py-spy's raw format has them
 *
 * Sums by path are calls: analyze/samples_tree.c makes them, and calls_out.h has what becomes of them.
 */
#ifndef MAREY_PRESENT_SAMPLES_OUT_H
#define MAREY_PRESENT_SAMPLES_OUT_H

#include "present/export/export_internal.h"
#include <marey/samples_report.h>

/*
 * A recording whose ranges are the samples of `recordings` that `filter` (NULL: the defaults) lets count, on the clock of
 * their machines. `is_beside`: it goes into one file with the recordings' own events, and its threads have numbers and names
 * that are none of theirs. The caller closes it.
 */
MAREY_WARN_UNUSED marey_status marey__samples_as_ranges(marey_recording *const *recordings, size_t n,
                                                        const struct marey_samples_filter *filter,
                                                        bool is_beside, marey_recording **out);
/* Whether these are all there is: samples, and neither events nor calls. */
bool marey__samples_are_all(marey_recording *const *recordings, size_t n);

#endif
