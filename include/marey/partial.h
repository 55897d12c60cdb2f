/*
 * marey/partial.h: create the report "ranges" in several processes (libmarey-tools). Each process reads and sums some of
 * the logs; partial sums are sent as bytes and joined pairwise, and the last process creates the report. The result is
 * identical to that of one process (<marey/report.h>).
 *
 *   marey_recording_open_logs(path, some of its logs)       in each process
 *   marey_partial_create(recordings) -> marey_partial_pack  to another process
 *                                      marey_partial_join   there, into its own partial
 *   marey_partial_report                                    in the last one
 *
 * `marey report` does this under MPI. The bytes are specific to one version of marey; do not store them. One thread at a
 * time.
 */
#ifndef MAREY_PARTIAL_H
#define MAREY_PARTIAL_H

#include <marey/report.h>

MAREY_BEGIN_C

typedef struct marey_partial marey_partial;

/*
 * Sum the events of `recordings`, which are lent until destroy. All processes pass the same recordings in the same order,
 * each opened with its share of the logs, which may be none. Uses all of `options` except the filter.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_partial_create(marey_recording *const *recordings, size_t n,
                     const struct marey_report_options *options, marey_partial **out);
MAREY_API void marey_partial_destroy(marey_partial *partial);

/* Serialized bytes, lent until the next call with this partial. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_partial_pack(marey_partial *partial,
                                                            const void **bytes, size_t *len);
/*
 * Add the bytes that another process packed. They are validated: MAREY_EFORMAT if incomplete or of another version.
 * After a failure the partial may only be destroyed.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_partial_join(marey_partial *partial,
                                                            const void *bytes, size_t len);
/* The report of all joined partials; `options` as for marey_report_create. Call once: consumes the partial's data. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_partial_report(
    marey_partial *partial, const struct marey_report_options *options, marey_report **out);

MAREY_END_C
#endif
