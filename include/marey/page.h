/*
 * marey/page.h: the report page, one HTML file to look at (libmarey-tools).
 *
 *     marey_page_write(&recording, 1, NULL, fd);
 *
 * The file needs nothing besides itself: it opens from disk, asks no network, and has the summary's tables, the timeline
 * of every event, iterations and a flame graph in it, where there is GPU work or communication its breakdown, and where
 * calls were profiled these. Numbers are those of the report "ranges". docs/formats/page.md
 * describes the format. A library that was built without Node.js cannot write pages: each call returns
 * MAREY_EUNAVAILABLE, and the message says how to get them.
 */
#ifndef MAREY_PAGE_H
#define MAREY_PAGE_H

#include <marey/report.h>

#ifdef __cplusplus
extern "C" {
#endif

struct marey_page_options {
    const char *title;                  /* NULL: the recordings' names */
    struct marey_report_options report; /* of "ranges"; filter and depth hold for the timeline as well */
    /*
     * Ranges and work of GPUs on the timeline, about; 0: ten million, which browsers still open. Of more, neighbours that
     * are too short to be seen from afar are drawn as one, and the page says so. Tables count them all.
     */
    uint64_t max_ranges;
};

/*
 * Read `n` recordings as one and write their page into `fd`, which stays open. A damaged recording is shown as far as it
 * can be read, with a warning in the page. Memory grows with names, threads and iterations, not with events.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_page_write(marey_recording *const *recordings,
                                                          size_t n,
                                                          const struct marey_page_options *options,
                                                          int fd);

/* The page of a report of "compare". `title` NULL: the names of both sides. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_page_compare(const marey_report *report,
                                                            const char *title, int fd);

struct marey_page_calls_options {
    const char *title; /* of the page; NULL: made of the next two */
    const char *name;  /* of the profile; NULL: the recordings' names */
    /* What it is held against: an earlier run, say. Lent until the call returns; none: there is no difference. */
    marey_recording *const *before;
    size_t n_before;
    const char *name_before;
};

/*
 * The page of calls alone: the report page's view of them, its tables, and what changed against others. Read from the same
 * as the analysis "calls" reads; MAREY_EFORMAT where a side has neither calls nor ranges.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_page_calls(marey_recording *const *recordings, size_t n,
                 const struct marey_page_calls_options *options, int fd);

#ifdef __cplusplus
}
#endif
#endif
