/*
 * Series: how long each range ran in each iteration of one process, as arrays, for whoever needs the single values and
 * not their distribution (comparisons, the export of the series).
 *
 * Memory: 4 bytes for each name and iteration in which, or before which, it ran, 17 for each iteration besides. 50 names
 * and a million iterations are 217 MB, and up to twice that because arrays double. Nothing else grows with the recording.
 */
#ifndef MAREY_SERIES_H
#define MAREY_SERIES_H

#include "analyze/walk/internal.h"

struct marey__series_name {
    const char *text; /* lent by the recording */
    size_t len;
    /* By iteration: nanoseconds of the range in it, on all threads together, a recursive one counted once. 24 bits of
     * precision. 0: it did not run. */
    float *ns;
    uint64_t n_ran; /* iterations with a time, warm-up and cut ones among them */
};

struct marey__series {
    size_t n_iterations; /* that have ended, in order of time */
    uint8_t *flags;      /* by iteration: enum marey__iteration_flag of analyze_internal.h */
    uint64_t *numbers; /* by iteration, as the program counts; not always in order: a count may be reset */
    float *ns;         /* by iteration: from its begin to its end */
    float *samples; /* by iteration; 0: not known */
    size_t n_names; /* that ran in some iteration, in no order */
    struct marey__series_name *names;
};

/*
 * Read process `process` of the recording, which lends its texts. A process without iterations gives an empty series.
 * MAREY_ENOMEM when it would take more than `max_bytes` (0: 4 GiB), with a sentence. On failure `series` is empty; fini
 * takes that, too. Different processes may be read by different threads at the same time.
 */
MAREY_WARN_UNUSED marey_status marey__series_read(struct marey__series *series,
                                                  marey_recording *recording, size_t process,
                                                  uint64_t max_bytes);
void marey__series_fini(struct marey__series *series);

#endif
