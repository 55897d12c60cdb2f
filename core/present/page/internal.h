/*
 * page: the report page, one HTML file with all data in it (docs/formats/page.md).
 *
 *   summary walk -- tap --> page_process.c, page_tracks.c (events of a lane, row by row)
 *                                | chunks of one row
 *                                v
 *                           page_pack.c (threads: columns, planes, deflate, base64) --> write(2)
 *   tables --------------> page_index.c (one JSON of tables, processes, tracks)     --> write(2)
 *
 *   page.c        the file                page_heat.c   rank x step         page_rows.c   rows, short ranges merged
 *   page_tree.c   call trees              page_json.c   values, tables      page_compare.c   the page of a comparison
 *   page_reports.c, page_calls.c   data of single views
 *
 * Input: recordings. Output: a file. Sections of compressed events are written while the walk goes on, so memory does
 * not grow with events; the index comes last. viewer/ draws the page. Does not know how a view looks, nor the analyses
 * whose tables are only shown: those come from the registry.
 */
#ifndef MAREY_PRESENT_PAGE_INTERNAL_H
#define MAREY_PRESENT_PAGE_INTERNAL_H

#include "analyze/summary/internal.h"
#include "present/export/internal.h"
#include "report/internal.h"
#include <marey/page.h>

/* ---- rows: events of one kind, in order of their begin ---- */

/* Type of a row's values; written with each chunk. */
enum marey__page_values {
    MAREY__PAGE_DURATIONS = 0,
    MAREY__PAGE_DOUBLES = 1, /* their bits */
    MAREY__PAGE_NUMBERS = 2,
};

struct marey__page_event {
    uint64_t start_ns; /* since the page's origin */
    uint64_t value;
    uint32_t id; /* a site of the process; for iterations and epochs their number; for losses 0 */
};

/* Successive events of a row: filled by the walk, packed by any free thread, then emptied. */
struct marey__page_chunk {
    struct marey__page_chunk *next;   /* of its row */
    struct marey__page_chunk *queued; /* next in the queue */
    struct marey__page_event *events; /* freed once packed */
    uint32_t n;
    uint8_t values;             /* enum marey__page_values */
    uint64_t first_ns, last_ns; /* begin of the first, latest end */
    uint32_t section, offset;   /* its position; set once packed */
};

enum {
    MAREY__PAGE_CHUNK = 16384, /* events */
    MAREY__PAGE_DEPTH = 256,   /* rows of a thread; deeper ranges are counted and not drawn */
    MAREY__PAGE_TABLE_ROWS = 20000,
    MAREY__PAGE_MANY = 64,   /* processes; with more, the timeline shows only some */
    MAREY__PAGE_CHOSEN = 16, /* namely this many */
    MAREY__PAGE_TREES = 2,
};

/* Successive short ranges, to be drawn as one. */
struct marey__page_short {
    struct marey__page_event first;
    uint64_t end_ns;
    uint32_t n; /* 0: none */
};

struct marey__page_row {
    struct marey__page_event *events; /* of the current chunk */
    size_t n, cap;
    size_t room; /* events that fit before the chunk is full or must grow */
    uint64_t last_start_ns, last_end_ns;
    struct marey__page_short *shorts; /* current ones; NULL while there are none */
    struct marey__page_chunk *first, *last;
    uint32_t id;    /* site or name of a row of counters or series */
    uint8_t values; /* enum marey__page_values; begins of numbers may be unordered */
};

enum marey__page_track_kind {
    MAREY__TRACK_THREAD,   /* a row per depth */
    MAREY__TRACK_GPU,      /* as many rows as run concurrently */
    MAREY__TRACK_ASYNC,    /* likewise, for a process's async ranges */
    MAREY__TRACK_COUNTERS, /* a row per counter */
    MAREY__TRACK_PROGRESS, /* rows: iterations, epochs, phases */
    MAREY__TRACK_SERIES,   /* a row per name: its time in each iteration */
    MAREY__N_TRACK_KINDS,
};

/* A range with an unknown end: it never ended, or its end was lost. */
struct marey__page_unfinished {
    uint64_t start_ns, last_ns; /* its last known timestamp */
    uint32_t site, depth;
    bool is_lost; /* its end was lost; otherwise it was open at the end */
};

struct marey__page_track {
    enum marey__page_track_kind kind;
    const struct marey_lane_info *lane; /* of threads and streams, else NULL */
    struct marey__page_row *rows;
    size_t n_rows, rows_cap;
    struct marey__page_row marks;
    /* from the last event before to the first event after; the id is how many were lost, 0 unknown */
    struct marey__page_row losses;
    struct marey__page_row texts; /* of events: the value is an offset in the process's texts */
    struct marey__page_row links; /* launches and work of streams: the value is a correlation */
    struct marey__page_row flows; /* the value is a flow's id, the id an enum marey_flow_end */
    struct marey__page_unfinished *unfinished;
    size_t n_unfinished, unfinished_cap;
    uint64_t last_ns;   /* of its events so far */
    uint32_t last_site; /* of a stream's latest work */
    uint64_t n_too_deep;
    struct marey__name *labels; /* of a series, by row; texts borrowed from the recording */
};

/*
 * page_rows.c: limits a process to its share of the page's ranges. Ranges shorter than `below_ns` are merged with their
 * neighbors; that bound is adapted to how many ranges were kept recently.
 */
struct marey__page_thinning {
    uint64_t below_ns; /* 0: keep all */
    uint64_t n_seen;   /* words */
    uint64_t n_kept, n_merged;
    uint64_t n_kept_before; /* at the last adaptation */
    uint64_t n_expected;    /* words of the process */
    uint64_t n_most;        /* ranges and work of the process to keep */
    uint64_t next_look;     /* adapt at this number of words */
};

struct marey__heat;
struct marey__heat_line;
struct marey__page_process {
    struct marey__page *page;
    marey_recording *recording;
    const struct marey_process *info;
    struct marey__process_walk *walk; /* during the walk */
    uint64_t offset_ns;               /* added to get the page's times, modulo 2^64 */
    struct marey__page_track *lanes;  /* by number */
    struct marey__page_track async, counters, progress, series;
    struct marey__async_match pending;
    struct marey__page_event *asyncs; /* unordered until all are read */
    size_t n_asyncs, asyncs_cap;
    uint32_t *counter_rows; /* by site: row + 1 */
    uint8_t *uses;          /* by site: enum marey__site_use */
    uint64_t n_iterations;
    uint64_t n_series; /* number of times of names in iterations */
    struct marey__buf texts;
    uint64_t n_texts_left_out;
    struct marey__names shared; /* keys of texts shared by events, in `shared_keys` */
    struct marey__arena shared_keys;
    uint32_t *shared_texts; /* by number of the key: offset of its text */
    size_t shared_texts_cap;
    struct marey__page_thinning thin;
    struct marey__heat_line *line; /* of the heat map, during the walk; NULL: none, or already done */
};

enum marey__site_use { MAREY__SITE_UNUSED, MAREY__SITE_USED, MAREY__SITE_SKIPPED };

/* ---- page_pack.c: packing threads ---- */

struct marey__page_packer;

/* Start `n` threads that pack into `fd`. Stop waits for queued chunks and returns the status with its message. */
MAREY_WARN_UNUSED marey_status marey__page_packer_start(int fd, size_t n,
                                                        struct marey__page_packer **out);
MAREY_WARN_UNUSED marey_status marey__page_packer_stop(struct marey__page_packer *packer);
void marey__page_packer_free(struct marey__page_packer *packer);
/* Queue a chunk; it remains the row's, but loses its events. Waits while too much is queued. Any thread. */
void marey__page_packer_take(struct marey__page_packer *packer, struct marey__page_chunk *chunk);
/* Space for MAREY__PAGE_CHUNK events, owned by the caller; NULL on out of memory. Any thread. */
struct marey__page_event *marey__page_packer_events(struct marey__page_packer *packer);
/* After stop: write a text as a separate section with this name. */
MAREY_WARN_UNUSED marey_status marey__page_packer_put(struct marey__page_packer *packer,
                                                      const char *name, const char *text, size_t n);

/* ---- state of the page ---- */

struct marey__page {
    const struct marey_page_options *options;
    marey_recording *const *recordings;
    size_t n_recordings;
    int fd;
    bool is_wall_clock; /* several machines: nanoseconds since 1970, else CLOCK_MONOTONIC */
    uint64_t origin_ns; /* on that clock */
    int64_t origin_unix_ns;
    uint64_t duration_ns;
    struct marey__page_process *processes;
    size_t n_processes;
    struct marey__page_packer *packer;
    struct marey__summary_options wants;        /* from options->report */
    marey_report *summary;                      /* "ranges" */
    marey_report *reports[MAREY__MAX_ANALYSES]; /* by analysis; NULL: not recorded */
    struct marey__heat *heat;                   /* see page_heat.c */
    struct marey__buf heat_index;               /* its part of the index; empty without a map */
    size_t n_of_program;                        /* processes; later ones only measured others */
    bool has_many; /* too many of them, so the timeline shows only some */
    uint32_t chosen[MAREY__PAGE_CHOSEN];
    size_t n_chosen;
    struct marey__calls *trees[MAREY__PAGE_TREES]; /* of calls, of samples; NULL: none */
};

/* ---- page_reports.c ---- */

/* Reports of registered analyses for which data was recorded. */
MAREY_WARN_UNUSED marey_status marey__page_make_reports(struct marey__page *page);
/* Their tables: those listed among the others, after the summary's, or those that are lists of the index. */
void marey__page_put_reports(const struct marey__page *page, bool as_lists, struct marey__buf *json);

/* ---- page_calls.c ---- */

/* Read calls and samples, if there are any, and write their nodes; then names, as other lists of the index. */
MAREY_WARN_UNUSED marey_status marey__page_read_trees(struct marey__page *page);
void marey__page_put_trees(const struct marey__page *page, struct marey__buf *json);
void marey__page_free_trees(struct marey__page *page);

/* ---- page_tracks.c ---- */

/* Callbacks of a walk; the context is a marey__page_process. */
extern const struct marey__walk_tap marey__page_tap;
/* At the end of a process: async ranges into rows, then those that never ended; both return false on out of memory. */
bool marey__page_place_asyncs(struct marey__page_process *process);
bool marey__page_add_open_asyncs(struct marey__page_process *process);
/* At the end of the log: ranges of the lane that are still open, and a final gap. */
bool marey__page_end_lane(struct marey__page_process *process, const struct marey__lane_walk *lane);

/* ---- page_process.c ---- */

/* Callback of the summary's walk; `ctx` is the page, whose `processes` has space for all. */
marey_status marey__page_begin_process(void *ctx, struct marey__process_walk *walk, size_t number);
marey_status marey__page_end_process(void *ctx, struct marey__process_walk *walk, size_t number);
void marey__page_process_fini(struct marey__page_process *process);
/* The same if there are too many processes for one timeline: only for the heat map. */
marey_status marey__page_begin_rank(void *ctx, struct marey__process_walk *walk, size_t number);
marey_status marey__page_end_rank(void *ctx, struct marey__process_walk *walk, size_t number);
/* After the summary: choose the ranks for the timeline. */
void marey__page_choose_ranks(struct marey__page *page);
bool marey__page_is_chosen(const struct marey__page *page, size_t process);

/* A timestamp of the process on the page's clock; not before the page's first. */
static inline uint64_t marey__page_ns(const struct marey__page_process *process, uint64_t ns)
{
    const uint64_t moved = ns + process->offset_ns;
    return MAREY_LIKELY(moved < (uint64_t)1 << 63) ? moved : 0;
}

/* Map the site to the page's, 0 for unknown ones; returns false if the filter excludes it. */
static inline bool marey__page_take_site(struct marey__page_process *process, uint32_t *site)
{
    *site = *site <= process->info->n_sites ? *site : 0;
    uint8_t *use = &process->uses[*site];
    if (*use == MAREY__SITE_SKIPPED)
        return false;
    if (MAREY_UNLIKELY(*use == MAREY__SITE_UNUSED))
        *use = MAREY__SITE_USED;
    return true;
}

/* ---- page_rows.c ---- */

void marey__page_thin_init(struct marey__page_process *process);
/* A range or work with a record of `n_words`, subject to the bound. Returns false on out of memory. */
bool marey__page_thin_add(struct marey__page_process *process, struct marey__page_row *row,
                          const struct marey__page_event *event, size_t n_words);
/* Flush merged ranges into the row before adding other events. */
bool marey__page_thin_flush(struct marey__page_process *process, struct marey__page_row *row);

/* Make space for one more event. */
bool marey__page_row_grow(struct marey__page *page, struct marey__page_row *row);

/*
 * Append a range to a row in which each begins no earlier and ends no earlier than the one before; false on out of
 * memory. Begins are adjusted, because clocks of CPU cores may differ by some nanoseconds. Takes values instead of a
 * struct: copying a struct in other pieces than it was written in would stall on store forwarding.
 */
static inline bool marey__page_row_put(struct marey__page *page, struct marey__page_row *row,
                                       uint64_t start_ns, uint64_t value, uint32_t id)
{
    if (MAREY_UNLIKELY(row->n == row->room) && !marey__page_row_grow(page, row))
        return false;
    struct marey__page_event *to = &row->events[row->n++];
    row->last_start_ns = to->start_ns = MAREY__MAX(start_ns, row->last_start_ns);
    to->value = value;
    to->id = id;
    return true;
}
/* Append an event to any row, and track the row's latest end. */
bool marey__page_row_add(struct marey__page *page, struct marey__page_row *row,
                         const struct marey__page_event *event);
/* Row number `i` of a track, created if needed; NULL on out of memory. */
struct marey__page_row *marey__page_track_grow(struct marey__page_track *track, size_t i);
static inline struct marey__page_row *marey__page_track_row(struct marey__page_track *track, size_t i)
{
    return MAREY_LIKELY(i < track->n_rows) ? &track->rows[i] : marey__page_track_grow(track, i);
}
/* The first row without an event at `start_ns`, for overlapping events; NULL on out of memory. */
struct marey__page_row *marey__page_free_row(struct marey__page_track *track, uint64_t start_ns);
void marey__page_track_finish(struct marey__page *page, struct marey__page_track *track);
void marey__page_track_fini(struct marey__page_track *track);

/* ---- page_index.c ---- */

/* Append the index: everything except events, and the positions of events. */
MAREY_WARN_UNUSED marey_status marey__page_index(const struct marey__page *page,
                                                 struct marey__buf *json);
/* Append the names of sites, and the mapping from each process's sites to them. */
MAREY_WARN_UNUSED marey_status marey__page_names(const struct marey__page *page,
                                                 struct marey__buf *json);

/* ---- page_json.c: each element ends with a comma, which closing removes ---- */

void marey__page_put_text(struct marey__buf *json, const char *key, const char *text);
void marey__page_put_number(struct marey__buf *json, const char *key, uint64_t value);
/* Some damage is found only while events are read. */
bool marey__page_is_damaged(marey_recording *const *recordings, size_t n);
void marey__page_put_bool(struct marey__buf *json, const char *key, bool value);
/* The start of an index: its format, the kind of page, version and title. */
void marey__page_put_start(struct marey__buf *json, const char *kind, const char *title);
/*
 * `"KEY":` and the bracket that opens an object or list; and the bracket that closes it, followed by a comma if
 * `bracket` has one.
 */
void marey__page_open(struct marey__buf *json, const char *key, const char *bracket);
void marey__page_close(struct marey__buf *json, const char *bracket);
/*
 * Table number `i` of a report in the page's format: columns of cells. `title` NULL: its name. `max_rows` 0: all. Nothing if
 * the report did not make it.
 */
void marey__page_table(struct marey__buf *json, const marey_report *report, size_t i,
                       const char *title, size_t max_rows);
/* The same for the call tree: if there are too many rows, the heaviest, and rows that stand for the others. */
void marey__page_tree(struct marey__buf *json, const marey_report *report, size_t i, size_t max_rows);

/* ---- page_tree.c ---- */

/*
 * Reduces a call tree to its `n_most` heaviest rows; after the children of each, one row stands for those omitted,
 * `*n_others` such rows in all. Returns false on out of memory.
 */
bool marey__page_reduce_tree(const marey_table *tree, size_t n_most, marey_table **out,
                             size_t *n_others);

/* ---- the templates built from viewer/ ---- */

/* Empty in a build without Node.js, which cannot write pages. The second one is for memory timelines. */
extern const char marey__page_template[], marey__memory_template[];
#define MAREY__PAGE_TITLE "<!--marey:title-->"
#define MAREY__PAGE_DATA "<!--marey:data-->"

/* page.c: the template up to the data. MAREY_EUNAVAILABLE for an empty template, with a message on how to get pages. */
MAREY_WARN_UNUSED marey_status marey__page_head(int fd, const char *template, const char *title);
/* A page without a timeline. `make` writes blocks, if any, and the index into `json`. */
typedef marey_status marey__page_make(void *ctx, struct marey__page_packer *packer,
                                      const char *title, struct marey__buf *json);
MAREY_WARN_UNUSED marey_status marey__page_put_all(int fd, const char *template, const char *title,
                                                   marey__page_make *make, void *ctx);
/* The processes of the program in all recordings, followed by those that measured them. */
const struct marey_process *marey__page_nth_process(const struct marey__page *page, size_t i);

/* ---- page_heat.c: duration of each iteration on each rank ---- */

/* Allocate the map for the page's ranks. Returns false on out of memory. Destroy accepts NULL. */
MAREY_WARN_UNUSED bool marey__heat_create(struct marey__page *page, struct marey__heat **out);
void marey__heat_destroy(struct marey__heat *heat);

/*
 * A line for process `number` of the page; `*out` stays NULL if it is not a rank. Both return false on out of memory.
 */
MAREY_WARN_UNUSED bool marey__heat_line_begin(struct marey__heat *heat,
                                              struct marey__process_walk *walk, size_t number,
                                              struct marey__heat_line **out);
/* Add an iteration, after marey__iteration_stats_take(). */
MAREY_WARN_UNUSED bool marey__heat_line_take(struct marey__heat_line *line,
                                             const struct marey__iteration *iteration);
/* Merge it into the map, from any thread. */
MAREY_WARN_UNUSED bool marey__heat_line_end(struct marey__heat_line *line);
void marey__heat_line_destroy(struct marey__heat_line *line);

/* After all lines: write the block, and append its part of the index; nothing if the map would be useless. */
MAREY_WARN_UNUSED marey_status marey__page_put_heat_block(struct marey__page *page);
void marey__page_put_heat(const struct marey__page *page, struct marey__buf *json);

#endif
