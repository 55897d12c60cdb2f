/*
 * export: events of recordings in the formats of other tools.
 *
 *   each process -- export_events.c, export_reader.c: batches in order --> export_walk.h: the stack
 *                                                                               |
 *             write(2) <-- draw/out.c <-- chrome, csv, kineto, perfetto/, sqlite/, stacks/
 *
 *   export_details.c   payloads and arguments
 *
 * A format is one struct marey__export_format of functions. Its batch function walks the words with export_walk.h, which
 * is inlined into it.
 *
 * Input: recordings. Output: one file. Formats stream: memory does not grow with events. The list of formats is in
 * present/export.c.
 */
#ifndef MAREY_PRESENT_EXPORT_INTERNAL_H
#define MAREY_PRESENT_EXPORT_INTERNAL_H

#include "analyze/device/internal.h"
#include "analyze/walk/internal.h"
#include "base/internal.h"
#include "present/draw/internal.h"
#include <marey/range.h>
#include <marey/report.h>

/* ---- export_reader.c: a thread in front of the encoder ---- */

/* marey__recording_visit_in_order, with a thread that reads ahead while `visitor` works; in the same order. */
MAREY_WARN_UNUSED marey_status marey__visit_ahead(marey_recording *recording, size_t process,
                                                  marey_visitor *visitor, void *ctx);

/* The source of processes whose ranges are stack samples (samples_as_ranges.c). */
#define MAREY__SAMPLES_SOURCE "samples"

/* ---- one export under way ---- */

/*
 * A payload as it is in the words; `text` is lent for the call. Whatever else a range may begin with, and seldom
 * does, is here too.
 */
struct marey__payload {
    uint32_t type; /* enum marey_payload_type; 0: none */
    uint32_t len;
    uint64_t bits;
    const char *text;
    uint64_t repeat; /* calls that the range represents, plus one; 0: not recorded, so it is one */
    /* Whole records about it: what it launched, communicated, was given; FLOW where the format takes them so. Lent. */
    const uint64_t *records;
    uint32_t n_words; /* of `records` */
    uint32_t n_early; /* the first of these, which `begin` got */
};

/* The next of a payload's records from word `*at` on, which moves past it; NULL past the last. */
static inline const uint64_t *marey__next_record(const struct marey__payload *payload, uint32_t *at)
{
    if (*at >= payload->n_words)
        return NULL;
    const uint64_t *record = payload->records + *at;
    *at += marey_record_length(record[0]);
    return record;
}

/* A launch as JSON, as Kineto names its fields; returns the length. */
enum { MAREY__LAUNCH_JSON_MAX = 320 };
size_t marey__launch_json(const struct marey_launch *launch, char into[MAREY__LAUNCH_JSON_MAX]);

/* What records say, for formats that have one place for each: of several the first launch, and else the last. */
struct marey__details {
    uint64_t correlation; /* of work that was launched; 0: none */
    bool communicates;
    struct marey_communication communication;
    const char *arguments; /* lent by the payload; NULL: none */
    size_t arguments_len;
    bool is_shared; /* the arguments describe the launch only: neither where it ran nor what it communicates */
    char launch[MAREY__LAUNCH_JSON_MAX]; /* where such arguments are, unless a site has them */
};
void marey__details_of(const struct marey__payload *payload, struct marey__details *details);

/* Work of a stream, on the clock of the export. `payload` has its records, FLOW among them, and nothing else. */
struct marey__stream_work {
    uint64_t ns, duration_ns;
    uint32_t site, kind; /* enum marey_work_kind */
    uint64_t correlation, bytes;
    uint32_t details; /* site whose name is a JSON object: how it was launched; 0: none */
    bool has_launch;
    struct marey_launch launch;
    struct marey__payload payload;
};
struct marey__export;
/* The same of GPU activity: without arguments it has those of its launch. */
void marey__work_details_of(const struct marey__export *x, const struct marey__stream_work *work,
                            struct marey__details *details);

struct marey__export_lane {
    struct marey__lane_stack stack; /* comes first; of a stream, the format's */
    struct marey__buf payloads; /* of open ranges, stacked as the ranges are; of a stream, work that waits */
    uint32_t n_ahead; /* words of records that come next and that `begin` of the latest range was given */
    /* The first lane of the thread, where this is a further one, of ranges that overlap others; else NULL. */
    const struct marey__export_lane *first;
    bool has_self_times; /* a further lane on which COVERED corrects them; those of earlier versions count as 0 */
    struct marey__buf held; /* the format's: ranges that wait to be written */
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
    void *own; /* the format's, for the whole export: `own_size` bytes, all 0 at first */
    struct marey__out out;
    marey_status status; /* of what cannot fail loudly inside the walk: memory */

    bool has_origin;    /* there is an event at all */
    uint64_t origin_ns; /* the earliest event, on the clock of the export */
    int64_t origin_unix_ns;
    bool is_wall_clock; /* several machines: nanoseconds since 1970, else CLOCK_MONOTONIC */
    bool has_own_ids;   /* pids repeat (machines, containers, reuse): all are numbered anew */

    /* The process at hand. */
    marey_recording *recording;
    const struct marey_process *process;
    uint32_t process_number; /* from 0, over all recordings */
    int64_t pid;             /* as the file calls it */
    int64_t shift_ns;        /* adds up to the clock of the export */
    uint8_t *skip;           /* by site: non-zero when the filter leaves it out; NULL: all stay */
    struct marey__replay replay;
    struct marey__export_lane *lanes;
    void *sites;                      /* the format's, by site; freed with marey__free */
    struct marey__buf texts;          /* the format's pieces of text for this process */
    struct marey__async_match asyncs; /* for formats that write both ends as one; `name` is the site */
    struct marey__progress progress; /* on the clock of the export */
    uint32_t span_kinds; /* the format's: a bit for each enum marey__span_kind that has come */

    uint32_t n_lanes_before;              /* lanes of earlier processes */
    uint64_t n_done, n_total, n_reported; /* events, for the progress */
};

struct marey__export_format {
    struct marey_export_format info; /* what help, docs and Python say about it */
    size_t own_size;
    void (*start)(struct marey__export *x);
    /* Around the events of one process: process, lanes and skip are set. */
    marey_status (*process)(struct marey__export *x);
    marey_status (*batch)(struct marey__export *x, struct marey__export_lane *lane,
                          const struct marey_batch *batch);
    void (*process_done)(struct marey__export *x); /* all from here on may be NULL */
    void (*finish)(struct marey__export *x);
    void (*close)(struct marey__export *x); /* at the end, also of an export that has failed, before `own` goes */
    /* An iteration, epoch or phase of the process; where `is_open`, the process never ended it. */
    void (*span)(struct marey__export *x, const struct marey__span *span);
    /* Work of a stream, whose lane never comes to `batch`; in order of begin. */
    void (*work)(struct marey__export *x, struct marey__export_lane *lane,
                 const struct marey__stream_work *work);
    /* The range at `depth`, from 0, loses self time to ranges on other lanes of its thread. */
    void (*covered)(struct marey__export *x, struct marey__export_lane *lane, size_t depth,
                    uint64_t ns);
    /*
     * One end of a flow: `words` is the record. Not those that stand right behind the begin of what they belong to
     * where the format takes them with it: on streams, and where its walker looks ahead.
     */
    void (*flow)(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                 const uint64_t *words);
    /* When set, lanes come one after the other, each in one piece, and this is called behind each. */
    void (*lane_done)(struct marey__export *x, struct marey__export_lane *lane);
    /* When set, the format reads the recordings by itself and nothing above is called. */
    marey_status (*whole)(struct marey__export *x, marey_recording *const *recordings, size_t n);
    bool reads_profiles; /* `whole` reads calls and samples itself; for others they become ranges first */
    bool has_samples_beside; /* holds samples beside events, when samples are selected */
    bool is_timeline;        /* and also when they are not */
};

/* The registry: a format is its own file, which defines marey__export_NAME, and its name here. In this order for users. */
/* clang-format off */
#define MAREY__EXPORT_FORMATS(X) \
    X(perfetto) X(perfetto_tar) X(perfetto_gpu) X(chrome) X(kineto) X(csv) X(sqlite) X(speedscope) \
    X(collapsed) X(flamegraph) X(pstats) X(callgrind) X(pyspy)
/* clang-format on */

#define MAREY__DECLARE_FORMAT(name) extern const struct marey__export_format marey__export_##name;
MAREY__EXPORT_FORMATS(MAREY__DECLARE_FORMAT)
#undef MAREY__DECLARE_FORMAT

/* ---- export_details.c: the JSON that an event was given ---- */

/*
 * Look through `len` bytes: false when they are not a valid object. Of `keys`, `n` of them and 32 at most, `*found` gets a
 * bit for each that the object has.
 */
bool marey__arguments_look(const char *text, size_t len, const char *const *keys, size_t n,
                           uint32_t *found);
/*
 * Put the members of a sound object, without its braces, as they are; but bytes that are not UTF-8 become U+FFFD, and NaN and
 * infinities, which JSON does not have, texts. False when it has none.
 */
bool marey__arguments_put(struct marey__buf *buf, const char *text, size_t len);

/* ---- export_events.c ---- */

/* A record of the whole process: of an iteration, epoch or phase. */
void marey__export_progress(struct marey__export *x, const uint64_t *words, uint64_t ns);
/* "iterations": what a track or thread of such spans is called. */
const char *marey__span_track(enum marey__span_kind kind);
/* "iteration 7", or the phase's name, into `buf`. */
void marey__span_name(const struct marey__export *x, struct marey__buf *buf,
                      const struct marey__span *span);
/* Whether the process has had none of this kind before; it has from now on. */
bool marey__span_is_first(struct marey__export *x, enum marey__span_kind kind);

/* Put the buffer into the file; out of memory goes to x->status. The second function also frees it. */
void marey__export_put(struct marey__export *x, const struct marey__buf *buf);
void marey__export_put_last(struct marey__export *x, struct marey__buf *buf);

/* Process `number`, as process_number counts; NULL past the last. */
const struct marey_process *marey__export_nth(const struct marey__export *x, uint32_t number);

/* For formats that write both ends of an async range as one: false until `half` has met the other. */
bool marey__export_async(struct marey__export *x, const struct marey__async_half *half,
                         struct marey__async_half *begin, struct marey__async_half *end);

/* The number of `lane` as the file calls its thread. */
static inline int64_t marey__export_tid(const struct marey__export *x,
                                        const struct marey__export_lane *lane)
{
    return x->has_own_ids ? (int64_t)x->n_lanes_before + lane->stack.info->lane + 1
                          : lane->stack.info->tid;
}

/* A site's texts; any number is fine. */
static inline const struct marey_site_info *marey__export_site(const struct marey__export *x,
                                                               uint32_t site)
{
    return marey_recording_site(x->recording, x->process->index, site);
}

/* Where the text of a site lies in x->texts. */
struct marey__site_text {
    uint32_t at, len;
};

/*
 * Prepare a text for each site by `put`, for marey__site_text to find. `spare` bytes behind the last
 * one may be read.
 */
MAREY_WARN_UNUSED marey_status marey__export_texts(struct marey__export *x,
                                                   void (*put)(struct marey__buf *buf,
                                                               const struct marey_site_info *site),
                                                   size_t spare);

/* The name of the color nearest to `argb` among those that Chrome's format knows. */
const char *marey__chrome_color(uint32_t argb);

/* "rank 3 train.py" and the like, into `buf`. */
void marey__export_process_name(const struct marey__export *x, struct marey__buf *buf);
/* The file name of what `command` runs: of the script where the first word is a Python, else of the first word. */
void marey__export_program(struct marey__buf *buf, const char *command);

/* export_events.c: all events, one process after the other, through the format's callbacks. */
MAREY_WARN_UNUSED marey_status marey__export_events(struct marey__export *x,
                                                    marey_recording *const *recordings, size_t n);

#endif
