/*
 * export: events of recordings in the formats of other tools.
 *
 *   export.c           marey_export: the registry of formats; events, calls or samples?
 *   calls_as_ranges.c, samples_as_ranges.c   calls and samples laid out as ranges, for formats of events
 *        |
 *   each process -- export_events.c, export_reader.c: batches in order --> export_walk.h: the stack
 *                                                                               |
 *             write(2) <-- draw/out.c <-- chrome*.c, kineto.c, *_csv.c, perfetto/, sqlite/, stacks/
 *
 *   export_details.c   payloads and arguments
 *
 * A format is one struct marey__export_format of functions. Its batch function walks the words with export_walk.h,
 * which is inlined into it.
 *
 * Input: recordings. Output: one file. Formats stream: memory does not grow with events. Knows formats in subfolders
 * only by their symbols in MAREY__EXPORT_FORMATS; does not know the page.
 */
#ifndef MAREY_PRESENT_EXPORT_INTERNAL_H
#define MAREY_PRESENT_EXPORT_INTERNAL_H

#include "analyze/device/internal.h"
#include "analyze/walk/internal.h"
#include "base/internal.h"
#include "import/sink/internal.h"
#include "present/draw/internal.h"
#include <marey/range.h>
#include <marey/report.h>

/* ---- export_reader.c: a thread in front of the encoder ---- */

/* marey__recording_visit_in_order, in the same order, with a thread that reads ahead while `visitor` works. */
MAREY_WARN_UNUSED marey_status marey__visit_ahead(marey_recording *recording, size_t process,
                                                  marey_visitor *visitor, void *ctx);

/* The source of processes whose ranges are stack samples (samples_as_ranges.c). */
#define MAREY__SAMPLES_SOURCE "samples"

/* ---- state of an export ---- */

/*
 * A payload as stored in the log; `text` is valid during the call. Also holds other rare data at the begin of a range.
 */
struct marey__payload {
    uint32_t type; /* enum marey_payload_type; 0: none */
    uint32_t len;
    uint64_t bits;
    const char *text;
    uint64_t repeat; /* calls that the range represents, plus one; 0: not recorded, so it is one */
    /* Whole records about it: launches, communication, arguments; FLOW if the format takes them here. Borrowed. */
    const uint64_t *records;
    uint32_t n_words; /* of `records` */
    uint32_t n_early; /* the first of these, already passed to `begin` */
};

/* The payload's record at word `*at`, which is advanced; NULL past the last. */
static inline const uint64_t *marey__next_record(const struct marey__payload *payload, uint32_t *at)
{
    if (*at >= payload->n_words)
        return NULL;
    const uint64_t *record = payload->records + *at;
    *at += marey_record_length(record[0]);
    return record;
}

/* A launch as JSON with Kineto's keys; returns the length. */
enum { MAREY__LAUNCH_JSON_MAX = 320 };
size_t marey__launch_json(const struct marey_launch *launch, char into[MAREY__LAUNCH_JSON_MAX]);

/*
 * Contents of records, for formats with one place for each: of several launches the first, otherwise the last record.
 */
struct marey__details {
    uint64_t correlation; /* of launched work; 0: none */
    bool communicates;
    struct marey_communication communication;
    const char *arguments; /* owned by the payload; NULL: none */
    size_t arguments_len;
    bool is_shared; /* the arguments describe only the launch: neither its device nor its communication */
    char launch[MAREY__LAUNCH_JSON_MAX]; /* storage of such arguments, unless a site has them */
};
void marey__details_of(const struct marey__payload *payload, struct marey__details *details);

/* Work of a stream, on the export's clock. `payload` has only its records, including FLOW. */
struct marey__stream_work {
    uint64_t ns, duration_ns;
    uint32_t site, kind; /* enum marey_work_kind */
    uint64_t correlation, bytes;
    uint32_t details; /* site whose name is a JSON object with launch parameters; 0: none */
    bool has_launch;
    struct marey_launch launch;
    struct marey__payload payload;
};
struct marey__export;
/* The same for GPU activity: without arguments it has those of its launch. */
void marey__work_details_of(const struct marey__export *x, const struct marey__stream_work *work,
                            struct marey__details *details);

struct marey__export_lane {
    struct marey__lane_stack stack; /* first member; for a stream, the format's */
    struct marey__buf payloads; /* of open ranges, stacked like them; for a stream, waiting work */
    uint32_t n_ahead; /* words of following records that were already passed to `begin` of the latest range */
    /* For a further lane of an imported thread, with overlapping ranges: the thread's first lane; else NULL. */
    const struct marey__export_lane *first;
    /* a further lane corrected by COVERED; without correction (earlier versions) self times count as 0 */
    bool has_self_times;
    struct marey__buf held; /* the format's: ranges held back */
    void *own;              /* the format's; freed with marey__free */
};

static inline struct marey__export_lane *marey__export_lane_of(struct marey__lane_stack *stack)
{
    return (struct marey__export_lane *)stack;
}

struct marey__export_format;

struct marey__export {
    const struct marey__export_format *format;
    const struct marey_export_options *options;
    marey_recording *const *recordings;
    size_t n_recordings;
    void *own;               /* the format's, for the whole export: `own_size` bytes, zeroed */
    marey_report *diagnosis; /* for formats that mark findings; NULL: none */
    struct marey__out out;
    marey_status status; /* of failures that the walk cannot return: memory */

    bool has_origin;    /* there is any event */
    uint64_t origin_ns; /* the earliest event, on the export's clock */
    int64_t origin_unix_ns;
    bool is_wall_clock; /* several machines: nanoseconds since 1970, else CLOCK_MONOTONIC */
    bool has_own_ids;   /* pids repeat (machines, containers, reuse): all are renumbered */

    /* The current process. */
    marey_recording *recording;
    const struct marey_process *process;
    uint32_t process_number; /* from 0, over all recordings */
    int64_t pid;             /* its pid in the file */
    int64_t shift_ns;        /* added to get the export's clock */
    uint8_t *skip;           /* by site: non-zero if filtered out; NULL: all are included */
    struct marey__replay replay;
    struct marey__export_lane *lanes;
    void *sites;                      /* the format's, by site; freed with marey__free */
    struct marey__buf texts;          /* the format's prepared texts for this process */
    struct marey__async_match asyncs; /* for formats that write both ends as one; `name` is the site */
    struct marey__progress progress; /* on the export's clock */
    uint32_t span_kinds;             /* the format's: a bit for each enum marey__span_kind seen */

    uint32_t n_lanes_before;              /* lanes of earlier processes */
    uint64_t n_done, n_total, n_reported; /* events, for the progress */
};

struct marey__export_format {
    struct marey_export_format info; /* for help, docs and Python */
    size_t own_size;
    void (*start)(struct marey__export *x);
    /* Called before and after the events of a process; process, lanes and skip are set. */
    marey_status (*process)(struct marey__export *x);
    marey_status (*batch)(struct marey__export *x, struct marey__export_lane *lane,
                          const struct marey_batch *batch);
    void (*process_done)(struct marey__export *x); /* all from here on may be NULL */
    void (*finish)(struct marey__export *x);
    void (*close)(struct marey__export *x); /* at the end, also of a failed export, before `own` is freed */
    /* An iteration, epoch or phase of the process; `is_open`: the process never ended it. */
    void (*span)(struct marey__export *x, const struct marey__span *span);
    /* Work of a stream, in order of begin; `batch` is never called for its lane. */
    void (*work)(struct marey__export *x, struct marey__export_lane *lane,
                 const struct marey__stream_work *work);
    /* The range at `depth`, from 0, loses self time to ranges on other lanes of its thread. */
    void (*covered)(struct marey__export *x, struct marey__export_lane *lane, size_t depth,
                    uint64_t ns);
    /*
     * One end of a flow: `words` is the record. Excludes those right after the begin of their range or work if the
     * format takes them with it: on streams, and if its walker looks ahead.
     */
    void (*flow)(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                 const uint64_t *words);
    /* If set, lanes come one after another, each in one piece, and this is called after each. */
    void (*lane_done)(struct marey__export *x, struct marey__export_lane *lane);
    /* If set, the format reads the recordings itself and no function above is called. */
    marey_status (*whole)(struct marey__export *x, marey_recording *const *recordings, size_t n);
    bool reads_profiles; /* `whole` reads calls and samples itself; for other formats they become ranges first */
    bool has_samples_beside; /* includes samples beside events if samples are selected */
    bool is_timeline;        /* and also if they are not */
    bool marks_findings;     /* uses `diagnosis` */
};

/*
 * The registry: a format is a file of its own that defines marey__export_NAME, and its name here, in the order shown to
 * users.
 */
/* clang-format off */
#define MAREY__EXPORT_FORMATS(X) \
    X(perfetto) X(perfetto_tar) X(perfetto_gpu) X(chrome) X(kineto) X(csv) X(sqlite) X(speedscope) \
    X(collapsed) X(flamegraph) X(pstats) X(callgrind) X(pyspy)
/* clang-format on */

#define MAREY__DECLARE_FORMAT(name) extern const struct marey__export_format marey__export_##name;
MAREY__EXPORT_FORMATS(MAREY__DECLARE_FORMAT)
#undef MAREY__DECLARE_FORMAT

/* ---- export_details.c: JSON arguments of an event ---- */

/*
 * Validate `len` bytes; false if they are not a valid object. `*found` gets a bit for each of the `n` (at most 32)
 * `keys` that the object has.
 */
bool marey__arguments_look(const char *text, size_t len, const char *const *keys, size_t n,
                           uint32_t *found);
/*
 * Append the members of a valid object, without its braces, unchanged, except that invalid UTF-8 becomes U+FFFD, and
 * NaN and infinities, which JSON lacks, become texts. Returns false if it has no members.
 */
bool marey__arguments_put(struct marey__buf *buf, const char *text, size_t len);

/* ---- export_events.c ---- */

/* A record of the whole process: of an iteration, epoch or phase. */
void marey__export_progress(struct marey__export *x, const uint64_t *words, uint64_t ns);
/* "iterations": the name of a track or thread for such spans. */
const char *marey__span_track(enum marey__span_kind kind);
/* "iteration 7", or the phase's name, into `buf`. */
void marey__span_name(const struct marey__export *x, struct marey__buf *buf,
                      const struct marey__span *span);
/* Whether this is the process's first span of this kind. */
bool marey__span_is_first(struct marey__export *x, enum marey__span_kind kind);

/* Write the buffer to the file; sets x->status on out of memory. The second function also frees it. */
void marey__export_put(struct marey__export *x, const struct marey__buf *buf);
void marey__export_put_last(struct marey__export *x, struct marey__buf *buf);

/* Process `number`, as in process_number; NULL past the last. */
const struct marey_process *marey__export_nth(const struct marey__export *x, uint32_t number);

/* For formats that write both ends of an async range as one: false until `half` has met the other. */
bool marey__export_async(struct marey__export *x, const struct marey__async_half *half,
                         struct marey__async_half *begin, struct marey__async_half *end);

/* The thread id of `lane` in the file. */
static inline int64_t marey__export_tid(const struct marey__export *x,
                                        const struct marey__export_lane *lane)
{
    return x->has_own_ids ? (int64_t)x->n_lanes_before + lane->stack.info->lane + 1
                          : lane->stack.info->tid;
}

/* A site's texts; any number is accepted. */
static inline const struct marey_site_info *marey__export_site(const struct marey__export *x,
                                                               uint32_t site)
{
    return marey_recording_site(x->recording, x->process->index, site);
}

/* Position of a site's text in x->texts. */
struct marey__site_text {
    uint32_t at, len;
};

/*
 * Prepare a text for each site with `put`, for marey__site_text to find. `spare` bytes after the last one may be read.
 */
MAREY_WARN_UNUSED marey_status marey__export_texts(struct marey__export *x,
                                                   void (*put)(struct marey__buf *buf,
                                                               const struct marey_site_info *site),
                                                   size_t spare);

/* The name of the nearest color to `argb` among those of Chrome's format. */
const char *marey__chrome_color(uint32_t argb);

/* A name such as "rank 3 train.py", into `buf`. */
void marey__export_process_name(const struct marey__export *x, struct marey__buf *buf);
/*
 * The file name of the program run by `command`: of the script if the first word is a Python, else of the first word.
 */
void marey__export_program(struct marey__buf *buf, const char *command);

/* export_events.c: all events, one process after another, through the format's callbacks. */
MAREY_WARN_UNUSED marey_status marey__export_events(struct marey__export *x,
                                                    marey_recording *const *recordings, size_t n);

/* ---- calls_as_ranges.c ---- */

struct marey__calls;
struct marey__samples_filter;

/*
 * The tree for an export: of samples if it has a filter for them, else from marey__calls_read. `is_complete`: with
 * start-up and idle processes, as the format's own profiler includes them.
 */
MAREY_WARN_UNUSED marey_status marey__calls_wanted(struct marey__calls *calls,
                                                   marey_recording *const *recordings, size_t n,
                                                   const struct marey_export_options *options,
                                                   bool is_complete);

/*
 * A recording whose ranges are the calls of `recordings`: each path is one range on its thread's track, its first
 * callee first, its self time last. It has only durations, no timestamps. The caller closes it.
 */
MAREY_WARN_UNUSED marey_status marey__calls_as_ranges(marey_recording *const *recordings, size_t n,
                                                      const struct marey_export_options *options,
                                                      marey_recording **out);
/* Make a recording named `name` from the events that `fill` puts into a sink. The caller closes it. */
MAREY_WARN_UNUSED marey_status marey__make_recording(const char *source, const char *name,
                                                     marey_status (*fill)(void *ctx,
                                                                          marey__sink *sink),
                                                     void *ctx, marey_recording **out);
/* Whether there are only calls, and no events. */
bool marey__calls_are_all(marey_recording *const *recordings, size_t n);

/* ---- samples_as_ranges.c ---- */

/*
 * A recording whose ranges are the samples of `recordings` that pass `filter` (NULL: the default one), on the clock of
 * their machines. `is_beside`: for one file with the recordings' events; its threads have distinct numbers and names.
 * The caller closes it.
 */
MAREY_WARN_UNUSED marey_status marey__samples_as_ranges(marey_recording *const *recordings, size_t n,
                                                        const struct marey__samples_filter *filter,
                                                        bool is_beside, marey_recording **out);
/* Whether there are only samples, and neither events nor calls. */
bool marey__samples_are_all(marey_recording *const *recordings, size_t n);

#endif
