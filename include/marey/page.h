/*
 * marey/page.h: the report page, one self-contained HTML file (libmarey-tools).
 *
 *     marey_page_write(&recording, 1, NULL, fd);
 *
 * The page opens from disk and works offline. It contains the summary's tables, a timeline of all events, iterations and a
 * flame graph; with GPU activity or communication also the breakdown, and with a call profile the calls. Numbers equal
 * those of the report "ranges". docs/formats/page.md describes the format. A library built without Node.js cannot write
 * pages: each call returns MAREY_EUNAVAILABLE, and the message describes the fix.
 */
#ifndef MAREY_PAGE_H
#define MAREY_PAGE_H

#include <marey/report.h>

MAREY_BEGIN_C

struct marey_page_options {
    const char *title;                  /* NULL: the recordings' names */
    struct marey_report_options report; /* of "ranges"; filter and depth also apply to the timeline */
    /*
     * Approximate limit of ranges and GPU activities on the timeline; 0: ten million, which browsers can still open.
     * Beyond it, short neighbors are merged, and the page reports it. Tables count all of them.
     */
    uint64_t max_ranges;
};

/*
 * Read `n` recordings as one and write their page to `fd`, which stays open. The readable part of a damaged recording is
 * shown, with a warning. Memory grows with names, threads and iterations, not with events.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_page_write(marey_recording *const *recordings,
                                                          size_t n,
                                                          const struct marey_page_options *options,
                                                          int fd);

struct marey_page_calls_options {
    const char *title; /* of the page; NULL: from the names below */
    const char *name;  /* of the profile; NULL: the recordings' names */
    /* Baseline to compare with, such as an earlier run. Lent for the call; n_before 0: none. */
    marey_recording *const *before;
    size_t n_before;
    const char *name_before;
};

/*
 * A page with only the calls: the calls view of the report page, its tables, and the changes from the baseline. Reads the
 * same data as the analysis "calls". MAREY_EFORMAT: a side has neither calls nor ranges.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_page_calls(marey_recording *const *recordings, size_t n,
                 const struct marey_page_calls_options *options, int fd);

MAREY_END_C
#endif
