/*
 * device: where the time of GPUs and ranks goes.
 *
 *   a process's log -- work.c, work_link.c: GPU activity, launches, steps -------+
 *                   -- work_host.c: processes without a GPU ----------------------+--> struct marey__work_set
 *                   -- rules.c: the class of each name ---------------------------+
 *   work set -- sweep.c: atoms within windows --+-- breakdown*.c: computation, communication, copies, idle
 *            -- idle*.c: why a device is idle --+
 *            -- collectives*.c: over all ranks -+
 *            -- gpu_*.c: kernels, launches, waits (gpu_report.h)
 *
 * Input: recordings. Output: the breakdown and the GPU report. Memory grows with GPU activity, launches and steps,
 * not with the log.
 */
#ifndef MAREY_ANALYZE_DEVICE_INTERNAL_H
#define MAREY_ANALYZE_DEVICE_INTERNAL_H

#include "analyze/walk/internal.h"
#include "base/internal.h"
#include "report/internal.h"
#include <marey/breakdown.h>

/* Bits of an atom. Work of class 0 is left out of every sum: a rule says "ignore", or a thread waits. */
enum marey__work_class {
    MAREY__IGNORED = 0,
    MAREY__COMPUTES = 1,
    MAREY__COMMUNICATES = 2,
    MAREY__COPIES = 4
};
enum { MAREY__N_CLASSES = 3, MAREY__N_ATOMS = 8 };

/* ---- rules.c: what class something is, by rules that are data (docs/formats/rules.md) ---- */

/* Besides those of enum marey_work_kind: a range of a thread, where there is no GPU. */
enum { MAREY__KIND_RANGE = 0 };

enum marey__rule_look {
    MAREY__LOOK_KIND,       /* kernel, copy, set, range */
    MAREY__LOOK_NAME,       /* of GPU work */
    MAREY__LOOK_RANGE,      /* the name of a range */
    MAREY__LOOK_CATEGORY,   /* of either */
    MAREY__LOOK_COLLECTIVE, /* of a record COMMUNICATION with either: all_reduce, send, ... */
};

struct marey__rule {
    const char *name, *pattern;
    enum marey__rule_look look;
    uint8_t class; /* enum marey__work_class; of rules about idle time enum marey__idle_reason */
};

/* In order: the first that fits decides, and the last ones fit everything. Read by several threads at once. */
struct marey__rules {
    struct marey__rule *rules;
    size_t n, cap;
    struct marey__rule *idle; /* rules about idle time: idle_tables.c */
    size_t n_idle, idle_cap;
    struct marey__arena texts;
};

/* The rules of the file at `path` (NULL: none), then marey's own. fini() accepts a partially initialized object. */
MAREY_WARN_UNUSED marey_status marey__rules_load(struct marey__rules *rules, const char *path);
void marey__rules_fini(struct marey__rules *rules);
/* Add those of a text; `source` is what sentences call it. */
MAREY_WARN_UNUSED marey_status marey__rules_parse(struct marey__rules *rules, const char *source,
                                                  const char *text, size_t len);
const char *marey__rule_look_name(enum marey__rule_look look);
const char *marey__class_name(uint8_t class);
/* "all_reduce"; "unknown". */
const char *marey__collective_name(enum marey_collective what);

/* Whether a pattern is in a text, or with * and ? in it, is all of it. Letters of either case are one. */
bool marey__pattern_fits(const char *pattern, const char *text, size_t len);

/* What a rule checks. */
struct marey__rule_subject {
    const struct marey_site_info *site;
    uint8_t kind; /* enum marey_work_kind or MAREY__KIND_RANGE */
    bool has_collective;
    enum marey_collective what;
};
/* The number of the rule that decides. */
uint16_t marey__rules_find(const struct marey__rules *rules,
                           const struct marey__rule_subject *subject);

/* What a rule matched. */
struct marey__caught {
    uint64_t count, ns;
};

/* The rules for one process: each site is looked at once for what it is mostly used for. */
struct marey__classifier {
    const struct marey__rules *rules;
    marey_recording *recording;
    const struct marey_process *process;
    struct marey__rule_memo *memos; /* two for each site: without and with a collective */
};
MAREY_WARN_UNUSED bool marey__classifier_init(struct marey__classifier *classifier,
                                              const struct marey__rules *rules,
                                              marey_recording *recording,
                                              const struct marey_process *process);
void marey__classifier_fini(struct marey__classifier *classifier);
/* `communication` NULL: it has none. */
uint16_t marey__classify(struct marey__classifier *classifier, uint32_t site, uint8_t kind,
                         const struct marey_communication *communication);

/* ---- work.c, work_link.c, work_host.c ---- */

/* Something a device did, or a thread of a process without one. 48 bytes. */
struct marey__work {
    uint64_t begin_ns, end_ns;
    uint64_t correlation; /* 0: none */
    uint32_t site;        /* 0: a thread between its ranges */
    uint32_t lane;        /* its stream, or thread */
    uint32_t launch;      /* in marey__work_set.launches, or MAREY__NO_INDEX */
    uint32_t collective;  /* in marey__work_set.collectives, or MAREY__NO_INDEX */
    uint32_t facts;       /* in marey__work_set.facts, where these are kept, or MAREY__NO_INDEX */
    uint16_t rule;        /* that decided */
    uint8_t class;        /* enum marey__work_class */
    uint8_t kind;         /* enum marey_work_kind, or MAREY__KIND_RANGE */
};

/* How a kernel was launched. Zeroed, so that equal ones have equal bytes; what is not known is 0. */
struct marey__launch_shape {
    uint64_t grid[3], block[3];
    uint64_t registers;    /* of a thread */
    uint64_t shared_bytes; /* of a block */
};

/* What is known of a piece of work besides. */
struct marey__work_facts {
    uint64_t bytes;
    uint32_t shape; /* in marey__work_set.shapes, or MAREY__NO_INDEX */
};

/* A call on the host that launched work. 48 bytes. */
struct marey__launch_call {
    uint64_t begin_ns, end_ns;
    uint64_t correlation;
    uint32_t lane; /* its thread */
    uint32_t site; /* cudaLaunchKernel; 0: outside all ranges */
    uint32_t around; /* site of the innermost range around it other than runtime calls: the operator; 0: none */
    uint32_t range; /* the innermost in marey__work_set.ranges, where these are kept; else MAREY__NO_INDEX */
    uint32_t collective; /* of the innermost range around it that has one; else MAREY__NO_INDEX */
    uint32_t chained;    /* another launch of the same call, or MAREY__NO_INDEX */
};

/*
 * Something that ranks do together. Of GPU work: with the times of that work; where only the host's range says what is
 * communicated, the work launched in it has a copy with its own times. Several may share one group and sequence.
 */
struct marey__collective_call {
    struct marey_communication what;
    uint64_t begin_ns, end_ns; /* of the work, or of the range on the host */
    uint32_t site;             /* of that */
    bool is_on_host;
    bool is_joined; /* it is the wait for an earlier one, and part of that: collectives.c */
};

/* A device of one process, or its host. Work is in order of begin; zero-length and negative work is left out. */
struct marey__device_work {
    int32_t device; /* -1: the process itself, which has no GPU work */
    struct marey__work *work;
    size_t n_work, work_cap;
    uint64_t n_unlinked; /* no launch is known of */
};

/* An iteration of the process: ProfilerStep#n of torch, marey.iteration(). */
struct marey__step {
    uint64_t begin_ns, end_ns; /* on the host */
    uint64_t number;
};

/* A range of a thread: of a process with GPU work each that launched some, else each of the main thread. */
struct marey__host_range {
    uint64_t begin_ns, end_ns;
    uint32_t site;
    uint32_t parent; /* in this list, before it; MAREY__NO_INDEX: none */
};

/* What a process did. Zeroed and then read; fini() accepts a partially initialized object. */
struct marey__work_set {
    marey_recording *recording;
    const struct marey_process *process;
    struct marey__device_work *devices; /* by device */
    size_t n_devices, devices_cap;
    struct marey__launch_call *launches; /* each thread's in order of begin */
    size_t n_launches, launches_cap;
    struct marey__collective_call *collectives;
    size_t n_collectives, collectives_cap;
    struct marey__step *steps; /* in order of begin; they do not overlap */
    size_t n_steps, steps_cap;
    uint32_t step_lane;               /* the thread that recorded the last one */
    uint64_t first_ns, last_ns;       /* of all its events; both 0 without any */
    struct marey__host_range *ranges; /* where asked for */
    size_t n_ranges, ranges_cap;
    struct marey__work_facts *facts; /* where asked for */
    size_t n_facts, facts_cap;
    struct marey__names shapes; /* each text is a struct marey__launch_shape, in `shape_texts` */
    struct marey__arena shape_texts;
    struct marey__caught *caught; /* by rule */
    uint64_t n_too_deep;          /* ranges left out, nested too deep */
    uint64_t n_unmatched; /* begins and ends of async ranges, more being in flight than can wait */
    uint64_t n_negative;  /* GPU work that ends before it begins, of all devices: left out */
    uint64_t n_ignored_kinds; /* other records of GPU lanes: annotations, synchronisation */
    int64_t main_tid;         /* of a process without GPU work: the thread that computes */
    uint64_t n_waits;         /* of that: ranges in which it waits */
    bool is_unknown;          /* of that: computation cannot be separated from communication */
};

struct marey__work_options {
    const struct marey__rules *rules;
    bool wants_ranges; /* keep them in marey__work_set.ranges */
    /* Keep them in marey__work_set.facts, and work of zero length too, for counts. */
    bool wants_facts;
};

MAREY_WARN_UNUSED marey_status marey__work_set_read(struct marey__work_set *set,
                                                    marey_recording *recording, size_t process,
                                                    const struct marey__work_options *options);
void marey__work_set_fini(struct marey__work_set *set);

/* The step under way at `ns`, in `set->steps`; MAREY__NO_INDEX for none. */
uint32_t marey__step_at(const struct marey__work_set *set, uint64_t ns);
/* The step that work belongs to: that of its launch, else that of its begin. */
static inline uint32_t marey__step_of(const struct marey__work_set *set,
                                      const struct marey__work *work)
{
    return marey__step_at(set, work->launch != MAREY__NO_INDEX ? set->launches[work->launch].begin_ns
                                                               : work->begin_ns);
}

static inline const struct marey_site_info *marey__work_site(const struct marey__work_set *set,
                                                             uint32_t site)
{
    return marey_recording_site(set->recording, set->process->index, site);
}
/* Free work, launches, ranges and facts once they are summed up. */
void marey__work_set_drop_work(struct marey__work_set *set);

/* Run for 0 to n - 1 on several threads, as the request says. In breakdown.c. */
MAREY_WARN_UNUSED marey_status marey__run_for_each(const struct marey__request *request, size_t n,
                                                   marey_status (*run)(void *ctx, size_t i),
                                                   void *ctx);

/* Whether a site is a call of a runtime or driver ("cuda_runtime"), by its category. */
bool marey__is_runtime_call(const struct marey_site_info *site);

/*
 * While reading: a record COMMUNICATION of something that began at `begin_ns`. It replaces record `said`
 * (MAREY__NO_INDEX: none). Returns its index, or MAREY__NO_INDEX on out of memory.
 */
uint32_t marey__work_set_communicate(struct marey__work_set *set, uint32_t said,
                                     const uint64_t *words, uint64_t begin_ns, uint32_t site,
                                     bool is_on_host);
/* Append a collective; returns its index, or MAREY__NO_INDEX on out of memory. */
uint32_t marey__work_set_add_collective(struct marey__work_set *set,
                                        const struct marey__collective_call *call);
/* Append an open range; returns its index plus one, or 0 on out of memory. */
uint32_t marey__work_set_add_range(struct marey__work_set *set, const struct marey__frame *call,
                                   uint32_t parent);
/* The device, made when new; NULL on out of memory. Devices are asked for in ascending order. */
struct marey__device_work *marey__work_set_device(struct marey__work_set *set, int32_t device);
/* Put work in order and find each one's launch; then the class of each. Returns false on out of memory. In work_link.c. */
MAREY_WARN_UNUSED bool marey__work_set_link(struct marey__work_set *set);
MAREY_WARN_UNUSED bool marey__work_set_classify(struct marey__work_set *set,
                                                struct marey__classifier *classifier);
/* The shape in a JSON object with Kineto's keys. Returns false when it has none. In work_facts.c. */
MAREY_WARN_UNUSED bool marey__launch_shape_read(const char *text, size_t len,
                                                struct marey__launch_shape *shape);
/* Shape number `i` of `shapes`. */
struct marey__launch_shape marey__launch_shape_at(const struct marey__names *shapes, uint32_t i);
/*
 * While reading: take bytes and shape of a piece of work from its record, the site of its details, or the arguments that
 * follow it. Returns false on out of memory. `site_shapes`, by site, caches shapes, plus one.
 */
MAREY_WARN_UNUSED bool marey__work_facts_take(struct marey__work_set *set, struct marey__work *work,
                                              const uint64_t *words, uint32_t *site_shapes);
MAREY_WARN_UNUSED bool marey__work_facts_arguments(struct marey__work_set *set,
                                                   struct marey__work *work, const uint64_t *words);
/* Make the device -1 of a process without GPU work, by reading once more. In work_host.c. */
MAREY_WARN_UNUSED marey_status marey__work_host_read(struct marey__work_set *set,
                                                     const struct marey__work_options *options,
                                                     struct marey__classifier *classifier);

/* ---- sweep.c: atoms ---- */

/* Half open. Those of zero length count for nothing. */
struct marey__interval {
    uint64_t begin_ns, end_ns;
};

/* Intervals in any order as their union: in order, none touching another. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__intervals_unite(struct marey__interval *intervals, size_t *n);
/* How long all are together; of a union. */
uint64_t marey__intervals_length(const struct marey__interval *intervals, size_t n);

struct marey__atoms {
    uint64_t ns[MAREY__N_ATOMS]; /* by the classes under way; [0]: none */
    uint64_t sum_of_durations_ns;
    uint64_t n_work;
};

/*
 * Each nanosecond of the windows goes to one atom, by the classes that are under way in it: begin, then add intervals in
 * order of their begin, then finish. All atoms together are then as long as the windows.
 */
struct marey__sweep {
    const struct marey__interval *windows; /* lent; a union */
    size_t n_windows;
    size_t window;                       /* the first that is not over at `now_ns` */
    uint64_t now_ns;                     /* everything before has gone to its atom */
    uint64_t until_ns[MAREY__N_CLASSES]; /* up to when something of the class is under way */
    struct marey__atoms atoms;
};
void marey__sweep_begin(struct marey__sweep *sweep, const struct marey__interval *windows,
                        size_t n_windows);
/* Something of class `class`; of class 0 it counts for nothing. */
void marey__sweep_add(struct marey__sweep *sweep, uint64_t begin_ns, uint64_t end_ns, uint8_t class);
void marey__sweep_finish(struct marey__sweep *sweep);

/* ---- breakdown_rows.c: one process ---- */

enum marey__window { MAREY__WINDOW_SPAN, MAREY__WINDOW_STEPS };

/* What a device did in some windows. Texts are lent by the recording. */
struct marey__device_row {
    int32_t device;
    enum marey__window window; /* in `by` of a step or range: its own */
    uint64_t span_ns;
    struct marey__atoms atoms;
    /* In `by`: what it is of. */
    uint64_t number;  /* of a step or stream */
    uint32_t lane;    /* of a stream */
    const char *text; /* the name of a range or group, not ended by a NUL; NULL: none */
    size_t len;
};

struct marey__device_rows {
    struct marey__device_row *rows;
    size_t n, cap;
};
static inline void marey__device_rows_fini(struct marey__device_rows *rows)
{
    marey__free(rows->rows);
}

/* Times that count, all of device d of the work set. */
struct marey__device_windows {
    struct marey__interval *spans; /* [d]: from the first work to the last; of a host, its events */
    struct marey__interval *steps; /* [d * n_steps + i]: step i, to the end of the last work launched in it */
    struct marey__interval *united; /* [d * n_steps + i]: the union of these, n_united[d] intervals of it */
    size_t *n_united;
};
MAREY_WARN_UNUSED bool marey__device_windows_make(struct marey__device_windows *windows,
                                                  const struct marey__work_set *set);
void marey__device_windows_fini(struct marey__device_windows *windows);

enum marey__by {
    MAREY__BY_NOTHING,
    MAREY__BY_STEP,
    MAREY__BY_RANGE,
    MAREY__BY_STREAM,
    MAREY__BY_GROUP
};

/* A row for each device and window. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__device_rows_make(struct marey__device_rows *rows,
                                               const struct marey__work_set *set,
                                               const struct marey__device_windows *windows);
/* A row for each step, range, stream or group of each device. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__by_rows_make(struct marey__device_rows *rows,
                                           const struct marey__work_set *set,
                                           const struct marey__device_windows *windows,
                                           enum marey__by by, enum marey__window window);

/* Of atoms: the numbers of which every nanosecond is one. */
static inline uint64_t marey__computing_ns(const struct marey__atoms *atoms)
{
    return atoms->ns[1] + atoms->ns[3] + atoms->ns[5] + atoms->ns[7];
}
static inline uint64_t marey__exposed_comm_ns(const struct marey__atoms *atoms)
{
    return atoms->ns[2] + atoms->ns[6];
}
static inline uint64_t marey__exposed_mem_ns(const struct marey__atoms *atoms)
{
    return atoms->ns[4];
}
static inline uint64_t marey__hidden_comm_ns(const struct marey__atoms *atoms)
{
    return atoms->ns[3] + atoms->ns[7];
}

/* ==== idle ==== */

/*
 * idle: why a device had nothing to do.
 *
 *   idle.c ── the times in which no stream of a device was busy, each split at the call that launched what came next;
 *             when so much was launched ahead that the call blocked
 *   idle_host.c ── what the launching thread did before that call: one more visit of the log
 *   idle_sums.c ── sums by reason, by step, by operator
 *   idle_tables.c ── names of reasons, rules that find them, tables
 *
 *   device   ██████                       ██████      work
 *   thread         ─[aten::mm]──[ launch ]─
 *                  '── host ────'─ latency ─'
 *
 * Each nanosecond of a gap has one reason, so that the reasons add up to the idle time of the device. Memory grows with
 * gaps, which are fewer than pieces of work, and with steps; not with the log.
 */

enum marey__idle_reason {
    /* What the launching thread did before it launched. */
    MAREY__IDLE_HOST,        /* it ran, and no rule says at what */
    MAREY__IDLE_DATA,        /* it fetched data */
    MAREY__IDLE_SYNCHRONISE, /* it waited for the device */
    MAREY__IDLE_ALLOCATE,    /* it got or gave back memory of the device */
    MAREY__IDLE_OPTIMIZER,
    MAREY__IDLE_COMMUNICATE, /* it was in a collective of the host */
    MAREY__IDLE_LOAD,        /* it loaded the code of kernels */
    MAREY__IDLE_PROFILER,    /* the profiler's own work */
    MAREY__IDLE_WAIT,        /* a range of category idle or wait says so */
    MAREY__N_HOST_REASONS,   /* those that a rule may give */
    /* Launched, and not begun. */
    MAREY__IDLE_LATENCY = MAREY__N_HOST_REASONS, /* from the launch on, for as long as launching takes */
    MAREY__IDLE_LAUNCH_CALL, /* the call itself took longer than that: code is loaded, a driver is busy */
    MAREY__IDLE_KERNEL_GAP, /* a short time between two pieces of work */
    MAREY__IDLE_QUEUED, /* it waited for something else: another stream, an event, another device */
    MAREY__IDLE_QUEUE_FULL, /* the same, with so many launches outstanding that the host waits too */
    MAREY__IDLE_UNKNOWN, /* who launched is not known; of a process without devices, no range is open */
    MAREY__N_IDLE_REASONS,
};

/* As tables call it, and as people read it. */
struct marey__idle_words {
    const char *id, *title;
};
extern const struct marey__idle_words marey__idle_words[MAREY__N_IDLE_REASONS];

enum {
    /* From the begin of a launch call to that of its work on an idle device. */
    MAREY__LAUNCH_LATENCY_NS = 20000,
    /* What is left then is the device's own time between two pieces of work, when it is not longer than this. */
    MAREY__KERNEL_GAP_NS = 10000,
    /* Launches of a stream that have not begun while the call blocks: of 1024 places a driver keeps a few for itself. */
    MAREY__LAUNCH_QUEUE = 1000,
};

/* Idle time of one reason and one operator, on all threads. */
struct marey__idle_row {
    enum marey__idle_reason reason;
    uint32_t name; /* of the operator, in marey__idle.names, or MAREY__NO_NAME */
    uint64_t ns;
    uint64_t count; /* gaps with such a time, each thread's apart */
};

struct marey__idle_device {
    int32_t device;
    uint64_t ns[MAREY__N_IDLE_REASONS];    /* in the whole that was asked for */
    uint64_t count[MAREY__N_IDLE_REASONS]; /* gaps that have it */
    struct marey__idle_row *rows;          /* the longest first */
    size_t n_rows;
    uint64_t *step_ns; /* by step, then reason: in the step's window */
    /* In which a stream had MAREY__LAUNCH_QUEUE launches outstanding, busy or not. */
    uint64_t queue_full_ns;
};

struct marey__idle {
    struct marey__idle_device *devices; /* as in the work set */
    size_t n_devices, n_steps;
    struct marey__names names; /* texts lent by the recording */
};

/* Which times are looked at; all lent. */
struct marey__idle_windows {
    const struct marey__interval *whole; /* [d * stride + i]: what is to be explained of device d, a union */
    const size_t *n_whole;               /* by device; NULL: one each */
    size_t stride;
    const struct marey__interval *steps; /* by device, then step, in order of begin; NULL: none are wanted */
};

/* Why the devices of `set` were idle. On failure `idle` is empty; fini takes that. */
MAREY_WARN_UNUSED marey_status marey__idle_find(struct marey__idle *idle,
                                                const struct marey__work_set *set,
                                                const struct marey__rules *rules,
                                                const struct marey__idle_windows *windows);
void marey__idle_fini(struct marey__idle *idle);

/* Add the rows of one process to the tables, whose columns are these. */
enum {
    MAREY__N_IDLE_COLUMNS = 7,
    MAREY__N_IDLE_OPERATOR_COLUMNS = 7,
    MAREY__N_IDLE_STEP_COLUMNS = 6,
};
extern const struct marey_column marey__idle_columns[MAREY__N_IDLE_COLUMNS];
extern const struct marey_column marey__idle_operator_columns[MAREY__N_IDLE_OPERATOR_COLUMNS];
extern const struct marey_column marey__idle_step_columns[MAREY__N_IDLE_STEP_COLUMNS];
void marey__idle_put(marey_table *table, const struct marey__work_set *set,
                     const struct marey__idle *idle);
void marey__idle_put_operators(marey_table *table, const struct marey__work_set *set,
                               const struct marey__idle *idle);
void marey__idle_put_steps(marey_table *table, const struct marey__work_set *set,
                           const struct marey__idle *idle);

/* The work that ended a gap: of the work that begins with work[i], what was launched first. */
const struct marey__work *marey__first_launched(const struct marey__work_set *set,
                                                const struct marey__device_work *device, size_t i);

/* ---- inside ---- */

/* A gap that the host explains in part. */
struct marey__idle_gap {
    uint32_t device; /* in the work set */
    uint32_t other_lane; /* whom to ask where the launching thread has no range open; MAREY__NO_INDEX: nobody */
    uint16_t reasons; /* bits: which it has so far */
};

/* A part of a gap that a thread is to explain. */
struct marey__idle_part {
    uint64_t begin_ns, end_ns;
    uint32_t lane, gap;
};

/* One sum; those of different threads are put together at the end. */
struct marey__idle_sum {
    uint64_t key; /* see idle_sums.c */
    uint64_t ns, count;
    uint32_t last_gap;
};

struct marey__idle_finder {
    struct marey__idle *idle;
    const struct marey__work_set *set;
    const struct marey__rules *rules;
    const struct marey__idle_windows *windows;
    uint32_t *siblings;  /* by lane: the first of the same thread, plus one; 0: not looked for */
    uint64_t *latest_ns; /* as windows->steps: the latest end of this one and those before it */
    struct marey__idle_gap *gaps;
    size_t n_gaps, gaps_cap;
    struct marey__idle_part *parts;
    size_t n_parts, parts_cap;
    struct marey__idle_sum *sums;
    size_t n_sums, sums_cap;
    struct marey__key_map by_key;
};

/* Some time of a gap, and what it is due to. Times of one lane and device come in order of their gaps. */
struct marey__idle_time {
    struct marey__idle_gap *gap;
    uint32_t gap_number;
    uint32_t lane;
    enum marey__idle_reason reason;
    uint32_t name; /* of the operator */
    uint64_t begin_ns, end_ns;
};
/* Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__idle_add(struct marey__idle_finder *finder,
                                       const struct marey__idle_time *time);
/* The rows of all devices from the sums. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__idle_make_rows(struct marey__idle_finder *finder);

/* Have the parts explained by their threads' ranges. */
MAREY_WARN_UNUSED marey_status marey__idle_ask_host(struct marey__idle_finder *finder);

/* The number of an operator's name, MAREY__NO_NAME for a site that names none. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__idle_name(struct marey__idle_finder *finder, uint32_t site,
                                        uint32_t *out);

/* The number of the rule that a range fits. Of those that the open ranges of a thread fit, the lowest counts. */
#define MAREY__NO_IDLE_RULE UINT16_MAX
uint16_t marey__idle_rule_of(const struct marey__rules *rules, const struct marey_site_info *site);
/* Whether it names an operator: not a call of the runtime, and not a step. */
bool marey__is_operator(const struct marey_site_info *site);

/* ==== collectives ==== */

/*
 * collectives: what ranks do together, matched over all of them.
 *
 *   collectives.c ── the calls of each process
 *   collectives_match.c ── which of them are one collective, and how the clocks of hosts relate
 *   collectives_tables.c
 *
 *   rank 0   ──────[ wait ███████ transfer ]──
 *   rank 1   ────────────[██████ transfer ]───     the last to arrive waits for nobody
 *
 * A collective cannot move data before all ranks have come. So the shortest of its durations is what moving takes, and
 * what a rank needed beyond that it waited for others.
 *
 * The i-th call of a kind in a group on one rank belongs to the i-th on another: by the group's own sequence number where
 * the trace has it, else in order of begin. Sends and receives are between two and are not matched.
 */

/* How the clocks of ranks relate. */
enum marey__clocks {
    MAREY__CLOCKS_APART,   /* not at all: no skew */
    MAREY__CLOCKS_WALL,    /* by the time of day, as good as the hosts keep it */
    MAREY__CLOCKS_ALIGNED, /* by what ranks of all hosts did together */
    MAREY__CLOCKS_SAME,    /* one machine */
};

/* How the clocks of machines were aligned. */
struct marey__alignment {
    uint64_t n_nodes;
    uint64_t uncertainty_ns; /* the largest of a machine */
    uint64_t n_aligned_by;   /* collectives */
    bool has_drifted;        /* clocks ran apart meanwhile */
};

/* One call on one rank. 72 bytes. */
struct marey__rank_call {
    uint64_t begin_ns, end_ns; /* of its process's clock */
    uint64_t bytes;
    uint64_t sequence; /* in its group; UINT64_MAX: unknown */
    /* Once matched: what it took beyond the shortest; how long after the first it began; what others waited for it. */
    uint64_t wait_ns, late_ns, held_ns;
    uint32_t turn;   /* the how manieth of those that are alike on its rank */
    uint32_t kind;   /* in marey__collectives.kinds */
    uint32_t member; /* in marey__collectives.members */
    bool is_matched, is_first, is_last;
};

/* A process that takes part. */
struct marey__member {
    const struct marey_process *process;
    uint32_t job;     /* those of one are matched with one another */
    int64_t shift_ns; /* where clocks are aligned: to be added to this one's */
};

/* Calls that are matched with one another: of one group and sort. */
struct marey__collective_kind {
    const char *what;
    uint32_t group; /* in marey__collectives.groups */
    enum marey_collective collective;
    uint32_t group_size; /* 0: unknown */
    bool is_between_two; /* a send or receive */
    bool is_by_order;    /* some have no sequence number */
    /* Once matched. Of those that at least two ranks have: */
    uint64_t n_matched, n_ranks;          /* ranks: the most that one has */
    uint64_t bytes, transfer_ns, skew_ns; /* sums */
    double wait_ns;                       /* a sum of means over ranks */
    uint64_t timed_bytes, timed_ns;       /* of those whose bytes and transfer are known */
    uint64_t n_apart;                     /* not all of them overlap */
    uint64_t n_short;                     /* some rank that has others of the kind is missing */
    uint64_t n_lone;                      /* calls that no other rank has */
    uint32_t slowest; /* member whom others waited for longest; MAREY__NO_INDEX: none */
    uint64_t n_slowest, slowest_held_ns; /* how often it came last; what others waited then */
};

/* What one member did in one group. */
struct marey__member_sum {
    uint32_t member, group;
    union {
        struct {
            uint64_t n_calls, n_between_two, ns; /* all */
            uint64_t n_matched, wait_ns, transfer_ns, late_ns, held_ns, n_first, n_last;
        };
        uint64_t sums[10];
    };
};

/* Texts are lent by the recordings, or lie in the arena. */
struct marey__collectives {
    struct marey__names keys, groups;
    struct marey__arena texts;
    struct marey__collective_kind *kinds; /* by key */
    size_t kinds_cap;
    struct marey__member *members;
    size_t n_members, members_cap;
    struct marey__rank_call *calls;
    size_t n_calls, calls_cap;
    struct marey__member_sum *sums; /* by member, then group */
    size_t n_sums, sums_cap;
    enum marey__clocks clocks;
    struct marey__alignment alignment; /* of MAREY__CLOCKS_ALIGNED */
};

/*
 * Leave in `set->collectives` what is to be compared with other ranks. Indices of them do not hold any more. False without
 * memory.
 */
MAREY_WARN_UNUSED bool marey__collectives_keep(struct marey__work_set *set);
/* Take the calls of a process; the recordings lend their texts until the tables are made. Starts from zeroes. */
MAREY_WARN_UNUSED marey_status marey__collectives_add(struct marey__collectives *all, uint32_t job,
                                                      const struct marey__work_set *set);
/* Once all are there. */
MAREY_WARN_UNUSED marey_status marey__collectives_match(struct marey__collectives *all);
void marey__collectives_fini(struct marey__collectives *all);

enum { MAREY__N_COLLECTIVE_COLUMNS = 13, MAREY__N_COLLECTIVE_RANK_COLUMNS = 9 };
extern const struct marey_column marey__collective_columns[MAREY__N_COLLECTIVE_COLUMNS];
extern const struct marey_column marey__collective_rank_columns[MAREY__N_COLLECTIVE_RANK_COLUMNS];
void marey__collectives_put(marey_table *table, const struct marey__collectives *all);
void marey__collectives_put_ranks(marey_table *table, const struct marey__collectives *all);
/* Sentences about what could not be matched, into a table of one column of text. */
void marey__collectives_put_warnings(marey_table *table, const struct marey__collectives *all);

/* Bus bandwidth is this times bytes over time, with `n` ranks: the convention of nccl-tests. */
double marey__bus_factor(enum marey_collective what, uint32_t n);

/* ==== breakdown ==== */

/* What is known of one process. */
struct marey__process_breakdown {
    marey_recording *recording;
    size_t process;
    struct marey__work_set set; /* once it is done: without work, launches and ranges */
    struct marey__device_windows windows;
    struct marey__device_rows devices, by;
    struct marey__idle idle;
    uint64_t n_work, n_outside, outside_ns; /* work, and that which was launched in no step */
    bool is_left_out;                       /* it helps others, such as a data loader */
};

enum marey__breakdown_table {
    MAREY__BREAKDOWN_SUMMARY,
    MAREY__BREAKDOWN_DEVICES,
    MAREY__BREAKDOWN_BY,
    MAREY__BREAKDOWN_IDLE,
    MAREY__BREAKDOWN_IDLE_OPERATORS,
    MAREY__BREAKDOWN_IDLE_STEPS,
    MAREY__BREAKDOWN_COLLECTIVES,
    MAREY__BREAKDOWN_COLLECTIVE_RANKS,
    MAREY__BREAKDOWN_RULES,
    MAREY__BREAKDOWN_WARNINGS,
    MAREY__N_BREAKDOWN_TABLES,
};
extern const struct marey_table_definition marey__breakdown_tables[MAREY__N_BREAKDOWN_TABLES];

/* marey_report.data: the settings, and what the text says beyond the tables. */
struct marey__breakdown_facts {
    enum marey__by by;
    enum marey__window window;
    enum marey__clocks clocks; /* by which collectives are compared */
    struct marey__alignment alignment;
};

/* A breakdown while it is made. */
struct marey__breakdown {
    struct marey__breakdown_facts *facts; /* of the report */
    struct marey__rules rules;
    struct marey__process_breakdown *processes;
    size_t n_processes;
    struct marey__collectives collectives;
};

MAREY_WARN_UNUSED marey_status marey__breakdown_fill_tables(marey_table **tables,
                                                            const struct marey__breakdown *breakdown,
                                                            const struct marey__request *request);
/* Fill the table of warnings. In breakdown_notes.c. */
void marey__breakdown_put_warnings(marey_table *table, const struct marey__breakdown *breakdown,
                                   const struct marey__request *request);
/* In breakdown_text.c. */
marey__put_answer marey__breakdown_text, marey__breakdown_json;
/* As tables and options call them. */
extern const char *const marey__window_names[2];
extern const char *const marey__by_names[5];

#endif
