/*
 * The report page: one HTML file with everything in it. docs/formats/page.md has the bytes.
 *
 *   summary walk -- tap --> page_process.c, page_tracks.c, page_details.c (events of a lane, row by row)
 *                                | chunks of one row
 *                                v
 *                           page_pack.c (threads: columns, planes, deflate, base64) --> write(2)
 *   summary tables -----> page_index.c (one JSON of tables, processes, tracks)     --> write(2)
 *
 * Events are read once, for the tables and for the timeline. Sections of packed events leave for the file while the
 * walk goes on, so memory does not grow with events; the index, which says where each lies, comes last.
 */
#ifndef KYMO_PAGE_INTERNAL_H
#define KYMO_PAGE_INTERNAL_H

#include <pthread.h>

#include "analyze/analyze_internal.h"
#include "present/export_internal.h"
#include <kymo/breakdown.h>
#include <kymo/energy_report.h>
#include <kymo/epochs.h>
#include <kymo/page.h>
#include <kymo/samples_report.h>

/* ---- rows: events of one kind, in order of their begin ---- */

/* What the values of a row are; written with each chunk. */
enum kymo__page_values {
    KYMO__PAGE_DURATIONS = 0,
    KYMO__PAGE_DOUBLES = 1, /* their bits */
    KYMO__PAGE_NUMBERS = 2,
};

struct kymo__page_event {
    uint64_t start_ns; /* since the page's origin */
    uint64_t value;
    uint32_t id; /* a site of the process; of iterations and epochs a number; of losses 0 */
};

/* Some successive events of a row: made by the walk, packed by whichever thread is free, then empty. */
struct kymo__page_chunk {
    struct kymo__page_chunk *next;   /* of its row */
    struct kymo__page_chunk *queued; /* behind it in the queue */
    struct kymo__page_event *events; /* gone once it is packed */
    uint32_t n;
    uint8_t values;             /* enum kymo__page_values */
    uint64_t first_ns, last_ns; /* begin of the first, latest end */
    uint32_t section, offset;   /* where it lies; once it is packed */
};

enum {
    KYMO__PAGE_CHUNK = 16384, /* events */
    KYMO__PAGE_DEPTH = 256,   /* rows of a thread; what is nested deeper is counted and not drawn */
    KYMO__PAGE_TABLE_ROWS = 20000,
    KYMO__PAGE_MANY = 64,   /* processes; of more the timeline has some */
    KYMO__PAGE_CHOSEN = 16, /* these */
};

/* Short ranges that follow one another, to be drawn as one. */
struct kymo__page_short {
    struct kymo__page_event first;
    uint64_t end_ns;
    uint32_t n; /* 0: none */
};

struct kymo__page_row {
    struct kymo__page_event *events; /* of the chunk under way */
    size_t n, cap;
    size_t room; /* for events before the chunk is full or must grow */
    uint64_t last_start_ns, last_end_ns;
    struct kymo__page_short *shorts; /* under way; NULL until there is one */
    struct kymo__page_chunk *first, *last;
    uint32_t id;    /* what a row of counters or series is about: a site or name */
    uint8_t values; /* enum kymo__page_values; begins of numbers need not be in order */
};

enum kymo__page_track_kind {
    KYMO__TRACK_THREAD,   /* a row for each depth */
    KYMO__TRACK_GPU,      /* rows as many as there is at a time */
    KYMO__TRACK_ASYNC,    /* the same, of a process's async ranges */
    KYMO__TRACK_COUNTERS, /* a row for each counter */
    KYMO__TRACK_PROGRESS, /* rows: iterations, epochs, phases */
    KYMO__TRACK_SERIES,   /* a row for each name: its time in each iteration */
    KYMO__N_TRACK_KINDS,
};

/* A range whose end is not known: never ended, or its end was lost. */
struct kymo__page_unfinished {
    uint64_t start_ns, last_ns; /* the last moment known of it */
    uint32_t site, depth;
    bool is_lost; /* its end was lost; else it was open at the end */
};

struct kymo__page_track {
    enum kymo__page_track_kind kind;
    const struct kymo_lane_info *lane; /* of threads and streams, else NULL */
    struct kymo__page_row *rows;
    size_t n_rows, rows_cap;
    struct kymo__page_row marks;
    struct kymo__page_row losses; /* from the last event known to the next; the id is how many, 0 unknown */
    struct kymo__page_row texts; /* of events: the value is where it lies in the process's texts */
    struct kymo__page_row links; /* launches, and the work of streams: the value is a correlation */
    struct kymo__page_row flows; /* the value is a flow's id, the id an enum kymo_flow_end */
    struct kymo__page_unfinished *unfinished;
    size_t n_unfinished, unfinished_cap;
    uint64_t last_ns;   /* of its events so far */
    uint32_t last_site; /* of a stream's latest work */
    uint64_t n_too_deep;
    struct kymo__name *labels; /* of a series, by row; texts lent by the recording */
};

/*
 * page_thin.c: keeps a process to its share of the page's ranges. What is shorter than `below_ns` is merged with its
 * neighbours; that bound follows how many were kept lately against how many were due.
 */
struct kymo__page_thinning {
    uint64_t below_ns; /* 0: all are kept */
    uint64_t n_seen;   /* words */
    uint64_t n_kept, n_merged;
    uint64_t n_kept_before; /* at the last look */
    uint64_t n_expected;    /* words of the process */
    uint64_t n_most;        /* ranges and work of it that are to be kept */
    uint64_t next_look;     /* when so many were seen */
};

struct kymo__heat;
struct kymo__heat_line;
struct kymo__page_process {
    struct kymo__page *page;
    kymo_recording *recording;
    const struct kymo_process *info;
    struct kymo__process_walk *walk; /* while it is walked */
    uint64_t offset_ns;              /* adds up to the page's times, modulo 2^64 */
    struct kymo__page_track *lanes;  /* by number */
    struct kymo__page_track async, counters, progress, series;
    struct kymo__async_match pending;
    struct kymo__page_event *asyncs; /* in no order, until all are there */
    size_t n_asyncs, asyncs_cap;
    uint32_t *counter_rows; /* by site: row + 1 */
    uint8_t *uses;          /* by site: enum kymo__site_use */
    uint64_t n_iterations;
    uint64_t n_series; /* times of names in iterations */
    struct kymo__buf texts;
    uint64_t n_texts_left_out;
    uint32_t *shared_texts; /* by the site of details: where its text lies, plus one; NULL until there is one */
    struct kymo__page_thinning thin;
    struct kymo__heat_line *line; /* of the heat map, while it is walked; NULL: it has none, or has it already */
};

enum kymo__site_use { KYMO__SITE_UNUSED, KYMO__SITE_USED, KYMO__SITE_SKIPPED };

/* ---- page_pack.c: threads that pack ---- */

struct kymo__page_packer;

/* Start `n` threads that pack into `fd`. Stop waits for what is queued; both status and sentence come from there. */
KYMO_WARN_UNUSED kymo_status kymo__page_packer_start(int fd, size_t n,
                                                     struct kymo__page_packer **out);
KYMO_WARN_UNUSED kymo_status kymo__page_packer_stop(struct kymo__page_packer *packer);
void kymo__page_packer_free(struct kymo__page_packer *packer);
/* Hand a chunk over; it stays the row's, its events go. Waits while too much is queued. Any thread. */
void kymo__page_packer_take(struct kymo__page_packer *packer, struct kymo__page_chunk *chunk);
/* Room for KYMO__PAGE_CHUNK events, the caller's; NULL without memory. Any thread. */
struct kymo__page_event *kymo__page_packer_events(struct kymo__page_packer *packer);
/* After stop: write a text as a section of their own with this name. */
KYMO_WARN_UNUSED kymo_status kymo__page_packer_put(struct kymo__page_packer *packer,
                                                   const char *name, const char *text, size_t n);

/* ---- the page in the making ---- */

struct kymo__page {
    const struct kymo_page_options *options;
    kymo_recording *const *recordings;
    size_t n_recordings;
    int fd;
    bool is_wall_clock; /* several machines: nanoseconds since 1970, else CLOCK_MONOTONIC */
    uint64_t origin_ns; /* on that clock */
    int64_t origin_unix_ns;
    uint64_t duration_ns;
    struct kymo__page_process *processes;
    size_t n_processes;
    struct kymo__page_packer *packer;
    kymo_summary *summary;
    kymo_breakdown *breakdown; /* NULL: there is nothing to break down */
    struct kymo_gpu_report *gpu;
    struct kymo_memory_report *memory; /* NULL: nothing of it was recorded */
    kymo_energy_report *energy;        /* NULL: none was measured */
    kymo_epoch_report *epochs;         /* NULL: the program told of none */
    struct kymo__heat *heat;           /* in page_heat.h */
    struct kymo__buf heat_index;       /* what the index says of it; empty where there is no map */
    size_t n_of_program;               /* processes; those behind only measured others */
    bool has_many;                     /* of these, so that the timeline has some of them */
    uint32_t chosen[KYMO__PAGE_CHOSEN];
    size_t n_chosen;
    struct kymo__calls *calls;    /* NULL: none were profiled */
    struct kymo__calls *samples;  /* NULL: nothing was sampled */
    kymo_samples_report *sampled; /* with it */
};

/* ---- page_breakdown.c ---- */

/* Break the recordings down where they have GPU work or communication: others would not be worth reading twice for. */
KYMO_WARN_UNUSED kymo_status kymo__page_break_down(struct kymo__page *page);
/* The tables, as one more list of the index. */
void kymo__page_put_breakdown(const struct kymo__page *page, struct kymo__buf *json);

/* ---- page_gpu.c ---- */

/* Read the work of GPUs; recordings without any are not read again. */
KYMO_WARN_UNUSED kymo_status kymo__page_look_at_gpus(struct kymo__page *page);
/* The tables, as one more list of the index, where there is any. */
void kymo__page_put_gpus(const struct kymo__page *page, struct kymo__buf *json);

/* ---- page_memory.c ---- */

/* Read what was allocated, where memory was measured or CUPTI told of it. */
KYMO_WARN_UNUSED kymo_status kymo__page_look_at_memory(struct kymo__page *page);
/* The tables, as one more list of the index, where there are any. */
void kymo__page_put_memory(const struct kymo__page *page, struct kymo__buf *json);

/* ---- page_energy.c ---- */

/* The energy of the recordings, where some was measured; and its tables, behind the summary's. */
KYMO_WARN_UNUSED kymo_status kymo__page_measure(struct kymo__page *page);
void kymo__page_put_energy(const struct kymo__page *page, struct kymo__buf *json);

/* ---- page_epochs.c ---- */

/* The times of epochs, where the program told of some; and their tables, behind the summary's. */
KYMO_WARN_UNUSED kymo_status kymo__page_time_epochs(struct kymo__page *page);
void kymo__page_put_epochs(const struct kymo__page *page, struct kymo__buf *json);

/* ---- page_samples.c ---- */

/* Read the samples, where there are some, and put their nodes; then names and tables, as one more object of the index. */
KYMO_WARN_UNUSED kymo_status kymo__page_sample(struct kymo__page *page);
void kymo__page_put_samples(const struct kymo__page *page, struct kymo__buf *json);
void kymo__page_free_samples(struct kymo__page *page);

/* ---- page_calls.c ---- */

/* The nodes of a tree as a block of this name, and its names as an object. */
KYMO_WARN_UNUSED kymo_status kymo__page_put_nodes(struct kymo__page_packer *packer,
                                                  const struct kymo__calls *calls, const char *name);
void kymo__page_put_profile(struct kymo__buf *json, const struct kymo__calls *calls,
                            const char *title);

/* Read the calls, where some were profiled, and put their nodes; then the names, as one more list of the index. */
KYMO_WARN_UNUSED kymo_status kymo__page_profile(struct kymo__page *page);
void kymo__page_put_calls(const struct kymo__page *page, struct kymo__buf *json);
void kymo__page_free_calls(struct kymo__page *page);

/* ---- page_tracks.c ---- */

/* What a walk tells; the context is a kymo__page_process. */
extern const struct kymo__walk_tap kymo__page_tap;
/* At the end of a process: async ranges into rows, then those that never ended; false without memory, as the next. */
bool kymo__page_place_asyncs(struct kymo__page_process *process);
bool kymo__page_add_open_asyncs(struct kymo__page_process *process);
/* What is on the stack of a lane will not be seen to end; the last that is known of it was at `last_ns`. */
bool kymo__page_add_unfinished(struct kymo__page_process *process,
                               const struct kymo__lane_walk *lane, bool is_lost, uint64_t last_ns);

/* ---- page_process.c ---- */

/* Listens to the summary's walk; `ctx` is the page, whose `processes` has room for all. */
kymo_status kymo__page_begin_process(void *ctx, struct kymo__process_walk *walk, size_t number);
kymo_status kymo__page_end_process(void *ctx, struct kymo__process_walk *walk, size_t number);
void kymo__page_process_fini(struct kymo__page_process *process);
/* Who it is: all that is known of one whose events are not on the timeline. */
void kymo__page_name_process(struct kymo__page *page, struct kymo__page_process *process,
                             struct kymo__process_walk *walk);

/* ---- page_ranks.c: where there are too many processes for one timeline ---- */

/* Listens to the summary's walk for the heat map alone. */
kymo_status kymo__page_begin_rank(void *ctx, struct kymo__process_walk *walk, size_t number);
kymo_status kymo__page_end_rank(void *ctx, struct kymo__process_walk *walk, size_t number);
/* Once the summary is there: which of them shall be on the timeline. */
void kymo__page_choose_ranks(struct kymo__page *page);
bool kymo__page_is_chosen(const struct kymo__page *page, size_t process);

/* A moment of the process as one of the page, which has none before its first. */
static inline uint64_t kymo__page_ns(const struct kymo__page_process *process, uint64_t ns)
{
    const uint64_t moved = ns + process->offset_ns;
    return KYMO_LIKELY(moved < (uint64_t)1 << 63) ? moved : 0;
}

/* The site as the page knows it, 0 for unknown ones; false where the filter leaves it out. */
static inline bool kymo__page_take_site(struct kymo__page_process *process, uint32_t *site)
{
    *site = *site <= process->info->n_sites ? *site : 0;
    uint8_t *use = &process->uses[*site];
    if (*use == KYMO__SITE_SKIPPED)
        return false;
    if (KYMO_UNLIKELY(*use == KYMO__SITE_UNUSED))
        *use = KYMO__SITE_USED;
    return true;
}

/* ---- page_thin.c ---- */

void kymo__page_thin_init(struct kymo__page_process *process);
/* A range or work whose record takes `n_words`, where there is a bound. False without memory. */
bool kymo__page_thin_add(struct kymo__page_process *process, struct kymo__page_row *row,
                         const struct kymo__page_event *event, size_t n_words);
/* What is under way goes into the row, before anything else does. */
bool kymo__page_thin_flush(struct kymo__page_process *process, struct kymo__page_row *row);

/* ---- page_details.c: each takes a whole record; false without memory ---- */

/* The payload of a range or mark that begins at `ns`. */
bool kymo__page_add_payload(struct kymo__page_process *process, struct kymo__page_track *track,
                            const uint64_t *words, uint64_t ns);
/* How many calls a range stands for. */
bool kymo__page_add_calls(struct kymo__page_process *process, struct kymo__page_track *track,
                          const struct kymo__frame *frame);
/* Arguments or communication of the event of this begin and site. */
bool kymo__page_add_about(struct kymo__page_process *process, struct kymo__page_track *track,
                          const uint64_t *words, uint64_t ns, uint32_t site);
/* The correlation and bytes of GPU work. */
bool kymo__page_add_work_details(struct kymo__page_process *process, struct kymo__page_track *track,
                                 const uint64_t *words, uint64_t ns, uint32_t site);
bool kymo__page_add_launch(struct kymo__page_process *process, struct kymo__page_track *track,
                           const uint64_t *words, uint64_t ns);
bool kymo__page_add_flow(struct kymo__page_process *process, struct kymo__page_track *track,
                         const uint64_t *words, uint64_t ns);

/* ---- page_rows.c ---- */

/* Make room for one more event. */
bool kymo__page_row_grow(struct kymo__page *page, struct kymo__page_row *row);

/*
 * Append a range to a row in which none begins before the one before it or ends after it; false without memory. Begins
 * are made to be so: clocks of different processors may differ by some nanoseconds. It takes values and no event, since
 * a struct that is copied in halves other than it was written in waits for memory.
 */
static inline bool kymo__page_row_put(struct kymo__page *page, struct kymo__page_row *row,
                                      uint64_t start_ns, uint64_t value, uint32_t id)
{
    if (KYMO_UNLIKELY(row->n == row->room) && !kymo__page_row_grow(page, row))
        return false;
    struct kymo__page_event *to = &row->events[row->n++];
    row->last_start_ns = to->start_ns = KYMO__MAX(start_ns, row->last_start_ns);
    to->value = value;
    to->id = id;
    return true;
}
/* Append an event to any row, and keep account of the latest end in it. */
bool kymo__page_row_add(struct kymo__page *page, struct kymo__page_row *row,
                        const struct kymo__page_event *event);
/* Hand over what is left. */
void kymo__page_row_finish(struct kymo__page *page, struct kymo__page_row *row);
void kymo__page_row_fini(struct kymo__page_row *row);
/* Row number `i` of a track, made when new; NULL without memory. */
struct kymo__page_row *kymo__page_track_grow(struct kymo__page_track *track, size_t i);
static inline struct kymo__page_row *kymo__page_track_row(struct kymo__page_track *track, size_t i)
{
    return KYMO_LIKELY(i < track->n_rows) ? &track->rows[i] : kymo__page_track_grow(track, i);
}
/* The first row in which nothing runs at `start_ns`, for events that overlap; NULL without memory. */
struct kymo__page_row *kymo__page_free_row(struct kymo__page_track *track, uint64_t start_ns);
void kymo__page_track_finish(struct kymo__page *page, struct kymo__page_track *track);
void kymo__page_track_fini(struct kymo__page_track *track);

/* ---- page_index.c ---- */

/* Append the index: everything of the page that is no event, and where the events are. */
KYMO_WARN_UNUSED kymo_status kymo__page_index(const struct kymo__page *page, struct kymo__buf *json);
/* Append the names that sites stand for, and which site of each process stands for which. */
KYMO_WARN_UNUSED kymo_status kymo__page_names(const struct kymo__page *page, struct kymo__buf *json);

/* ---- page_json.c: each puts a comma behind itself, which closing takes back ---- */

void kymo__page_put_string(struct kymo__buf *json,
                           const char *text); /* without a comma, as the next three */
void kymo__page_put_key(struct kymo__buf *json, const char *key);
void kymo__page_put_i64(struct kymo__buf *json, int64_t value);
void kymo__page_put_u64(struct kymo__buf *json, uint64_t value);
void kymo__page_put_text(struct kymo__buf *json, const char *key, const char *text);
void kymo__page_put_number(struct kymo__buf *json, const char *key, uint64_t value);
/* Put what closes an object or list, and a comma where the text has one. */
void kymo__page_close(struct kymo__buf *json, const char *bracket);
/* A table as the page reads it: columns of cells. `max_rows` 0: all. */
void kymo__page_table(struct kymo__buf *json, const kymo_table *table, size_t max_rows);
/* The same under another name. */
void kymo__page_named_table(struct kymo__buf *json, const char *name, const kymo_table *table,
                            size_t max_rows);
/* The table of the call tree: of more rows the heaviest, and rows that stand for the others. */
void kymo__page_tree(struct kymo__buf *json, const kymo_table *tree, size_t max_rows);

/* ---- page_tree.c ---- */

/*
 * A table of the `n_most` heaviest rows of a call tree that has more; behind the children of each, one row stands for
 * those that are left out, `*n_others` such rows in all. False without memory.
 */
bool kymo__page_reduce_tree(const kymo_table *tree, size_t n_most, kymo_table **out,
                            size_t *n_others);

/* ---- the templates that viewer/ is built into ---- */

/* Empty where the build had no Node: pages then have plain tables. The second is of memory timelines. */
extern const char kymo__page_template[], kymo__memory_template[];
#define KYMO__PAGE_TITLE "<!--kymo:title-->"
#define KYMO__PAGE_DATA "<!--kymo:data-->"

/* page.c: the template up to where the data goes, and from there on. */
KYMO_WARN_UNUSED kymo_status kymo__page_head(int fd, const char *template, const char *title);
KYMO_WARN_UNUSED kymo_status kymo__page_tail(int fd, const char *template);

/* page_plain.c: a whole page of tables, without a template; those without rows are left out. */
KYMO_WARN_UNUSED kymo_status kymo__page_plain(kymo_table *const *tables, size_t n,
                                              const char *title, int fd);

#endif
