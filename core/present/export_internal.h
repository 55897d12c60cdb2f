/*
 * Exports: what the formats share. Presenters of events stream; nothing here grows with the number
 * of events.
 *
 *   kymo_export -- each process --> visit in order -- batch --> export_walk.h (the stack)
 *                                                                        |
 *              write(2) <-- kymo__out <-- perfetto, chrome, speedscope  <'
 *                                     <-- collapsed, flamegraph  <-- analyze/stacks.c (sums by path)
 *
 * A format is a table of functions. Its batch function walks the words with export_walk.h, which is
 * inlined into it, so that formats share one stack machine at the price of none.
 */
#ifndef KYMO_EXPORT_INTERNAL_H
#define KYMO_EXPORT_INTERNAL_H

#include <pthread.h>
#include <string.h>

#include <kymo/range.h>
#include <kymo/report.h>

#include "analyze/analyze_internal.h"
#include "analyze/breakdown_internal.h"
#include "base/base_internal.h"

/* ---- export_writer.c: a thread behind a regular file ---- */

struct kymo__writer {
    bool is_running;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    int fd;
    const char *bytes; /* on their way, `len` of them; lent by whoever fills the buffers */
    size_t len;
    bool is_ending;
    int error; /* the first errno */
};
bool kymo__writer_start(struct kymo__writer *writer, int fd);
/* Write `bytes`, which stay as they are until the next call returns. 0, or the errno of an earlier write. */
int kymo__writer_put(struct kymo__writer *writer, const char *bytes, size_t len);
/* Wait for what is on its way, then go on into `fd`. 0 or the errno. */
int kymo__writer_drain(struct kymo__writer *writer, int fd);
/* Wait for what is on its way and end the thread, if there is one. 0 or the errno. */
int kymo__writer_stop(struct kymo__writer *writer);

/* ---- export_reader.c: a thread in front of the encoder ---- */

/* kymo__recording_visit_in_order, with a thread that reads ahead while `visitor` works; in the same order. */
KYMO_WARN_UNUSED kymo_status kymo__visit_ahead(kymo_recording *recording, size_t process,
                                               kymo_visitor *visitor, void *ctx);

/* ---- output: one large buffer in front of write(2), or two in turns in front of the writer ---- */

#define KYMO__OUT_BYTES (1u << 20)
/* What one event of plain words may take in any format; a single reservation covers it. */
#define KYMO__OUT_EVENT 256u

struct kymo__out {
    int fd;
    kymo_status status; /* the first failure; what comes after is swallowed */
    char *p;            /* where the next byte goes */
    char *limit;        /* past this, KYMO__OUT_EVENT bytes no longer fit */
    char *data;
    uint64_t n_flushed; /* bytes that have left the buffer */
    char *other;        /* the buffer that the writer may be writing; NULL without a writer */
    struct kymo__writer writer;
};

KYMO_WARN_UNUSED kymo_status kymo__out_init(struct kymo__out *out, int fd);
void kymo__out_fini(struct kymo__out *out);
/* Hand what is there to write(2), or to the writer. */
void kymo__out_flush(struct kymo__out *out);
/* Flush, and wait until it is written; `status` then tells. */
void kymo__out_drain(struct kymo__out *out);
/* Drain, then go on into `fd`. */
void kymo__out_redirect(struct kymo__out *out, int fd);
/* The last drain: it also ends the writer. */
void kymo__out_finish(struct kymo__out *out);
/* Append `len` bytes, however many. */
void kymo__out_put(struct kymo__out *out, const void *bytes, size_t len);

static inline void kymo__out_puts(struct kymo__out *out, const char *text)
{
    kymo__out_put(out, text, strlen(text));
}

/* How many bytes have been put so far. */
static inline uint64_t kymo__out_tell(const struct kymo__out *out)
{
    return out->n_flushed + (uint64_t)(out->p - out->data);
}

/* Byte number `at` while it has not left the buffer, else NULL. */
static inline char *kymo__out_at(const struct kymo__out *out, uint64_t at)
{
    return at >= out->n_flushed ? out->data + (at - out->n_flushed) : NULL;
}

/* Room for KYMO__OUT_EVENT bytes; the caller writes them and moves out->p itself. */
static inline char *kymo__out_room(struct kymo__out *out)
{
    if (KYMO_UNLIKELY(out->p > out->limit))
        kymo__out_flush(out);
    return out->p;
}

/* ---- temporary.c ---- */

/* Put the whole file, one of kymo__temporary_open, into `out`. */
KYMO_WARN_UNUSED kymo_status kymo__temporary_copy(int fd, struct kymo__out *out);

/* ---- numbers as text ---- */

/*
 * Write at `p`, without a terminator, and return the place behind; up to 32 bytes from `p` on are
 * overwritten.
 */
char *kymo__put_u64(char *p, uint64_t value);
/* Nanoseconds as microseconds with three decimals: 1234567 is 1234.567. */
char *kymo__put_us(char *p, uint64_t ns);
/* The shortest text that reads back as `value`; "null" when it is not finite. */
char *kymo__put_f64(char *p, double value);
/* The same for CSV: nan, inf and -inf, which spreadsheets and pandas know. */
char *kymo__put_f64_csv(char *p, double value);

static inline char *kymo__put_i64(char *p, int64_t value)
{
    if (value < 0)
        *p++ = '-';
    return kymo__put_u64(p, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* ---- one export under way ---- */

/*
 * A payload as it stands in the words; `text` is lent for the call. Whatever else a range may begin with, and seldom
 * does, is here too.
 */
struct kymo__payload {
    uint32_t type; /* enum kymo_payload_type; 0: none */
    uint32_t len;
    uint64_t bits;
    const char *text;
    uint64_t repeat; /* calls that the range stands for, plus one; 0: nothing is said, so it is one */
    /* Whole records about it: what it launched, communicated, was given; FLOW where the format takes them so. Lent. */
    const uint64_t *records;
    uint32_t n_words; /* of `records` */
    uint32_t n_early; /* the first of these, which `begin` was told of */
};

/* The next of a payload's records from word `*at` on, which moves behind it; NULL past the last. */
static inline const uint64_t *kymo__next_record(const struct kymo__payload *payload, uint32_t *at)
{
    if (*at >= payload->n_words)
        return NULL;
    const uint64_t *record = payload->records + *at;
    *at += kymo_record_length(record[0]);
    return record;
}

/* What records say, for formats that have one place for each: of several the first launch, and else the last. */
struct kymo__details {
    uint64_t correlation; /* of work that was launched; 0: none */
    bool communicates;
    struct kymo_communication communication;
    const char *arguments; /* lent by the payload; NULL: none */
    size_t arguments_len;
    bool is_shared; /* the arguments are of all work launched so: neither where it ran nor what it communicates */
};
void kymo__details_of(const struct kymo__payload *payload, struct kymo__details *details);

/* Work of a stream, on the clock of the export. `payload` has its records, FLOW among them, and nothing else. */
struct kymo__stream_work {
    uint64_t ns, duration_ns;
    uint32_t site, kind; /* enum kymo_work_kind */
    uint64_t correlation, bytes;
    uint32_t details; /* site whose name is a JSON object: how it was launched; 0: none */
    struct kymo__payload payload;
};
struct kymo__export;
/* The same of work: without arguments of its own it has those of its details' site. */
void kymo__work_details_of(const struct kymo__export *x, const struct kymo__stream_work *work,
                           struct kymo__details *details);

/*
 * A range that has begun. `payload` is where its payload lies in the lane's `payloads`, plus one;
 * 0: none.
 */
struct kymo__open_range {
    uint64_t start_ns;
    uint32_t site;
    uint32_t payload;
};

struct kymo__export_lane {
    struct kymo__open_range *open; /* outermost first */
    size_t n_open, cap_open;
    uint64_t n_too_deep; /* begun while the stack was at its limit */
    struct kymo__buf payloads; /* of open ranges, stacked as the ranges are; of a stream, work that waits */
    struct kymo__payload next; /* of the range that begins next, where `repeat` is set */
    uint64_t last_ns;          /* of the latest event */
    const struct kymo_lane_info *info;
    /* The first lane of the thread, where this is a further one, of ranges that overlap others; else NULL. */
    const struct kymo__export_lane *first;
    struct kymo__buf held; /* the format's: ranges that wait to be written */
    void *own;             /* the format's; freed with kymo__free */
};

struct kymo__export_format;

struct kymo__export {
    const struct kymo__export_format *format;
    const struct kymo_export_options *options;
    kymo_recording *const *recordings;
    size_t n_recordings;
    void *own; /* the format's, for the whole export; its `close` frees it */
    struct kymo__out out;
    kymo_status status; /* of what cannot fail loudly inside the walk: memory */

    bool has_origin;    /* there is an event at all */
    uint64_t origin_ns; /* the earliest event, on the clock of the export */
    int64_t origin_unix_ns;
    bool is_wall_clock; /* several machines: nanoseconds since 1970, else CLOCK_MONOTONIC */
    bool has_own_ids;   /* pids repeat (machines, containers, reuse): all are numbered anew */

    /* The process at hand. */
    kymo_recording *recording;
    const struct kymo_process *process;
    uint32_t process_number; /* from 0, over all recordings */
    int64_t pid;             /* as the file calls it */
    int64_t shift_ns;        /* adds up to the clock of the export */
    uint8_t *skip;           /* by site: non-zero when the filter leaves it out; NULL: all stay */
    uint32_t *names;         /* by site: sites of one name have one number */
    struct kymo__export_lane *lanes;
    void *sites;                     /* the format's, by site; freed with kymo__free */
    struct kymo__buf texts;          /* the format's pieces of text for this process */
    struct kymo__async_match asyncs; /* for formats that write both ends as one; `name` is the site */
    struct kymo__progress progress; /* on the clock of the export */
    uint32_t span_kinds; /* the format's: a bit for each enum kymo__span_kind that has come */

    uint32_t n_lanes_before;          /* lanes of earlier processes */
    uint64_t n_done, n_total, n_told; /* events, for the progress */
};

struct kymo__export_format {
    const char *name;
    const char *missing; /* NULL, or a sentence: why this build does not have it */
    void (*start)(struct kymo__export *x);
    /* Around the events of one process: process, lanes and skip are set. */
    kymo_status (*process)(struct kymo__export *x);
    kymo_status (*batch)(struct kymo__export *x, struct kymo__export_lane *lane,
                         const struct kymo_batch *batch);
    void (*process_done)(struct kymo__export *x); /* all from here on may be NULL */
    void (*finish)(struct kymo__export *x);
    void (*close)(struct kymo__export *x); /* at the end, also of an export that has failed */
    /* An iteration, epoch or phase of the process; where `is_open`, the process never ended it. */
    void (*span)(struct kymo__export *x, const struct kymo__span *span);
    /* Work of a stream, whose lane never comes to `batch`; in order of begin. */
    void (*work)(struct kymo__export *x, struct kymo__export_lane *lane,
                 const struct kymo__stream_work *work);
    /*
     * One end of a flow: `words` is the record. Not those that stand right behind the begin of what they belong to
     * where the format takes them with it: on streams, and where its walker looks ahead.
     */
    void (*flow)(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                 const uint64_t *words);
    /* When set, lanes come one after the other, each in one piece, and this is called behind each. */
    void (*lane_done)(struct kymo__export *x, struct kymo__export_lane *lane);
    /* When set, the format reads the recordings by itself and nothing above is called but `close`. */
    kymo_status (*whole)(struct kymo__export *x, kymo_recording *const *recordings, size_t n);
    bool adds_up;      /* knows the options `by` and `baseline` */
    bool takes_window; /* knows `from_ns`, `until_ns` and `about` */
    bool has_calls;    /* is made of calls in any case */
    bool draws_time;   /* samples stand in it beside events, where both are asked for */
    bool is_timeline;  /* and without being asked for */
};

extern const struct kymo__export_format kymo__export_perfetto;
extern const struct kymo__export_format kymo__export_perfetto_gpu;
extern const struct kymo__export_format kymo__export_perfetto_tar;
extern const struct kymo__export_format kymo__export_chrome;
extern const struct kymo__export_format kymo__export_kineto;
extern const struct kymo__export_format kymo__export_csv;
extern const struct kymo__export_format kymo__export_sqlite;
extern const struct kymo__export_format kymo__export_speedscope;
extern const struct kymo__export_format kymo__export_collapsed;
extern const struct kymo__export_format kymo__export_flamegraph;
extern const struct kymo__export_format kymo__export_pstats;
extern const struct kymo__export_format kymo__export_callgrind;
extern const struct kymo__export_format kymo__export_pyspy;

/* ---- export_work.c: lanes that are streams ---- */

/* A batch of a stream: `work` of the format is called for each piece. */
KYMO_WARN_UNUSED kymo_status kymo__export_work(struct kymo__export *x, struct kymo__export_lane *lane,
                                               const struct kymo_batch *batch);
/* The lane has ended: the last piece, which may have waited for records about it. */
void kymo__export_work_end(struct kymo__export *x, struct kymo__export_lane *lane);

/* ---- export_arguments.c: the JSON that an event was given ---- */

/*
 * Look through `len` bytes: false when they are no sound object. Of `keys`, `n` of them and 32 at most, `*found` gets a
 * bit for each that the object has.
 */
bool kymo__arguments_look(const char *text, size_t len, const char *const *keys, size_t n,
                          uint32_t *found);
/*
 * Put the members of a sound object, without its braces, as they are; but bytes that are no UTF-8 become U+FFFD, and NaN and
 * infinities, which JSON does not have, texts. False when it has none.
 */
bool kymo__arguments_put(struct kymo__buf *buf, const char *text, size_t len);

/* ---- export_progress.c: iterations, epochs and phases ---- */

/* Before a process's first event; a record of the whole process; behind its last event. */
void kymo__export_progress_start(struct kymo__export *x);
void kymo__export_progress(struct kymo__export *x, const uint64_t *words, uint64_t ns);
void kymo__export_progress_end(struct kymo__export *x);
/* "iterations": what a track or thread of such spans is called. */
const char *kymo__span_track(enum kymo__span_kind kind);
/* "iteration 7", or the phase's name, into `buf`. */
void kymo__span_name(const struct kymo__export *x, struct kymo__buf *buf,
                     const struct kymo__span *span);
/* Whether the process has had none of this kind before; it has from now on. */
bool kymo__span_is_first(struct kymo__export *x, enum kymo__span_kind kind);

/* Process `number`, as process_number counts; NULL past the last. */
const struct kymo_process *kymo__export_nth(const struct kymo__export *x, uint32_t number);

/* For formats that write both ends of an async range as one: false until `half` has met the other. */
bool kymo__export_async(struct kymo__export *x, const struct kymo__async_half *half,
                        struct kymo__async_half *begin, struct kymo__async_half *end);

/* The number of `lane` as the file calls its thread. */
static inline int64_t kymo__export_tid(const struct kymo__export *x,
                                       const struct kymo__export_lane *lane)
{
    return x->has_own_ids ? (int64_t)x->n_lanes_before + lane->info->lane + 1 : lane->info->tid;
}

/* A site's texts; any number is fine. */
static inline const struct kymo_site_info *kymo__export_site(const struct kymo__export *x,
                                                             uint32_t site)
{
    return kymo_recording_site(x->recording, x->process->index, site);
}

/* Where the text of a site lies in x->texts. */
struct kymo__site_text {
    uint32_t at, len;
};

/*
 * Prepare a text for each site by `put`, for kymo__site_text to find. `spare` bytes behind the last
 * one may be read.
 */
KYMO_WARN_UNUSED kymo_status kymo__export_texts(struct kymo__export *x,
                                                void (*put)(struct kymo__buf *buf,
                                                            const struct kymo_site_info *site),
                                                size_t spare);

/* The name of the color nearest to `argb` among those that Chrome's format knows. */
const char *kymo__chrome_color(uint32_t argb);

/* "rank 3 train.py" and the like, into `buf`. */
void kymo__export_process_name(const struct kymo__export *x, struct kymo__buf *buf);
/* The file name of what `command` runs: of the script where the first word is a Python, else of the first word. */
void kymo__export_program(struct kymo__buf *buf, const char *command);

#endif
