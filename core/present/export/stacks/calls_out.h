/*
 * Presenters of calls.
 *
 *   function_rows.c    rows and callers, for formats of functions
 *   calls_as_ranges.c      the tree laid out as ranges, for every other export
 */
#ifndef MAREY_PRESENT_CALLS_OUT_H
#define MAREY_PRESENT_CALLS_OUT_H

#include "analyze/calls/calls.h"

/* ---- function_rows.c ---- */

/* A function as a file calls it; with its arguments where signatures were recorded. */
struct marey__call_row {
    const char *label, *file;
    uint32_t line;
    struct marey__call_sum sum;
};
struct marey__function_rows {
    struct marey__calls calls;
    struct marey__arena texts;
    struct marey__call_row *rows;
    struct marey__call_edge *edges; /* caller and callee are rows; in the order that was asked for */
    size_t n_rows, n_edges;
};
enum marey__call_rows_order { MAREY__ROWS_BY_CALLEE, MAREY__ROWS_BY_CALLER };
/* On failure it is left finished. */
MAREY_WARN_UNUSED marey_status marey__function_rows_init(struct marey__function_rows *files,
                                                         marey_recording *const *recordings, size_t n,
                                                         const struct marey_export_options *options,
                                                         enum marey__call_rows_order order);
void marey__function_rows_fini(struct marey__function_rows *files);

/* ---- calls_as_ranges.c ---- */

/*
 * The tree that an export asks for: of samples where it has a filter of them, else marey__calls_read. `is_complete`: with
 * start-up and idle processes, as the format's own profiler would have it.
 */
MAREY_WARN_UNUSED marey_status marey__calls_wanted(struct marey__calls *calls,
                                                   marey_recording *const *recordings, size_t n,
                                                   const struct marey_export_options *options,
                                                   bool is_complete);

/*
 * A recording whose ranges are the calls of `recordings`: each path one range on its thread's track, what it called first, its
 * own time behind. There are no times of day in it, only durations. The caller closes it.
 */
MAREY_WARN_UNUSED marey_status marey__calls_as_ranges(marey_recording *const *recordings, size_t n,
                                                      const struct marey_export_options *options,
                                                      marey_recording **out);
/* Whether these are all there is: calls, and no event. */
bool marey__calls_are_all(marey_recording *const *recordings, size_t n);

#endif
