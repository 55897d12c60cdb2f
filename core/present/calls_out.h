/*
 * Presenters of calls.
 *
 *   calls_out.c      a table for a terminal, all of them as JSON
 *   calls_files.c    rows and callers, for  pstats_out.c  callgrind_out.c
 *   calls_lay.c      the tree laid out as ranges, for every other export
 */
#ifndef KYMO_PRESENT_CALLS_OUT_H
#define KYMO_PRESENT_CALLS_OUT_H

#include "analyze/calls.h"

/* A function as pstats writes it: "dot.py:7(dot)", "{built-in method builtins.len}". In calls_out.c. */
void kymo__call_place(struct kymo__buf *text, const char *file, uint64_t line, const char *label,
                      size_t len);

/* ---- calls_files.c ---- */

/* A function as a file calls it; with its arguments where signatures were recorded. */
struct kymo__call_row {
    const char *label, *file;
    uint32_t line;
    struct kymo__call_sum sum;
};
struct kymo__call_files {
    struct kymo__calls calls;
    struct kymo__arena texts;
    struct kymo__call_row *rows;
    struct kymo__call_edge *edges; /* caller and callee are rows; in the order that was asked for */
    size_t n_rows, n_edges;
};
enum kymo__call_rows_order { KYMO__ROWS_BY_CALLEE, KYMO__ROWS_BY_CALLER };
/* On failure it is left finished. KYMO_EINVAL for a filter, which these files do not have. */
KYMO_WARN_UNUSED kymo_status kymo__call_files_init(struct kymo__call_files *files,
                                                   kymo_recording *const *recordings, size_t n,
                                                   const struct kymo_export_options *options,
                                                   enum kymo__call_rows_order order);
void kymo__call_files_fini(struct kymo__call_files *files);

/* ---- calls_lay.c ---- */

/*
 * The tree that an export asks for: of samples where it has a filter of them, else kymo__calls_read. `is_complete`: with
 * start-up and idle processes, as the format's own profiler would have it.
 */
KYMO_WARN_UNUSED kymo_status kymo__calls_wanted(struct kymo__calls *calls,
                                                kymo_recording *const *recordings, size_t n,
                                                const struct kymo_export_options *options,
                                                bool is_complete);

/*
 * A recording whose ranges are the calls of `recordings`: each path one range on its thread's track, what it called first, its
 * own time behind. There are no times of day in it, only durations. The caller closes it.
 */
KYMO_WARN_UNUSED kymo_status kymo__calls_lay(kymo_recording *const *recordings, size_t n,
                                             const struct kymo_export_options *options,
                                             kymo_recording **out);
/* Whether these are all there is: calls, and no event. */
bool kymo__calls_are_all(kymo_recording *const *recordings, size_t n);

#endif
