/*
 * marey/partial.h: the report "ranges" by several processes (libmarey-tools): each reads some of the logs and adds them
 * up; parts travel as bytes, are joined pair by pair, and the last process makes the report. It is the same report, to the
 * last digit, that one process makes of all the logs (<marey/report.h>).
 *
 *   marey_recording_open_logs(path, some of its logs)       in each process
 *   marey_partial_create(recordings) -> marey_partial_pack  to another process
 *                                      marey_partial_join   there, of its own and what came
 *   marey_partial_report                                    in the last one
 *
 * `marey report` does this under MPI. Bytes are of one version of marey and not for keeping. One thread at a time.
 */
#ifndef MAREY_PARTIAL_H
#define MAREY_PARTIAL_H

#include <marey/report.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct marey_partial marey_partial;

/*
 * Add up what is in `recordings`, which are lent until the partial goes. All processes name the same recordings in the
 * same order, each opened with its own logs; one that has none of them is opened with none. Of `options`, all but the filter
 * count here.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_partial_create(marey_recording *const *recordings, size_t n,
                     const struct marey_report_options *options, marey_partial **out);
MAREY_API void marey_partial_destroy(marey_partial *partial);

/* Its bytes, lent until the next call with this partial. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_partial_pack(marey_partial *partial,
                                                            const void **bytes, size_t *len);
/*
 * Add what another process packed. The bytes are checked: MAREY_EFORMAT when they are not whole, or of another version.
 * After a failure the partial may only be destroyed.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_partial_join(marey_partial *partial,
                                                            const void *bytes, size_t len);
/* The report of all that was joined; `options` as for marey_report_create. Once: it takes what the partial has. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_partial_report(
    marey_partial *partial, const struct marey_report_options *options, marey_report **out);

#ifdef __cplusplus
}
#endif
#endif
