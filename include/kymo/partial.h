/*
 * kymo/partial.h: a summary by several processes (libkymo-tools): each reads a part of the logs and adds up what it
 * read; parts travel as bytes, are joined pair by pair, and the last one makes the summary. It is the same summary, to
 * the last digit, that one process makes of all the logs (<kymo/report.h>), whoever read which.
 *
 *   kymo_recording_open_logs(path, some of its logs)      in each process
 *   kymo_partial_create(recordings) -> kymo_partial_pack  to another process
 *                                      kymo_partial_join  there, of its own and what came
 *   kymo_partial_summary                                  in the last one
 *
 * `kymo report` does this under MPI. Bytes are of one version of kymo and not for keeping. One thread at a time.
 */
#ifndef KYMO_PARTIAL_H
#define KYMO_PARTIAL_H

#include <kymo/report.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kymo_partial kymo_partial;

/*
 * Add up what is in `recordings`, which are lent until the partial goes. All processes name the same recordings in the
 * same order, each opened with its own logs; one that has none of them is opened with none. Of `options`, all but the filter
 * count here.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_partial_create(kymo_recording *const *recordings, size_t n,
                                                          const struct kymo_summary_options *options,
                                                          kymo_partial **out);
KYMO_API void kymo_partial_destroy(kymo_partial *partial);

/* Its bytes, lent until the next call with this partial. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_partial_pack(kymo_partial *partial, const void **bytes,
                                                        size_t *len);
/*
 * Add what another process packed. The bytes are checked: KYMO_EFORMAT when they are not whole, or of another version.
 * After a failure the partial may only be destroyed.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_partial_join(kymo_partial *partial, const void *bytes,
                                                        size_t len);
/* The summary of all that was joined; `options` as for kymo_summary_create. Once: it takes what the partial has. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_partial_summary(kymo_partial *partial,
                                                           const struct kymo_summary_options *options,
                                                           kymo_summary **out);

#ifdef __cplusplus
}
#endif
#endif
