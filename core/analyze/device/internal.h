/*
 * device: how GPUs and ranks spend their time.
 *
 *   a process's log -- work.c, work_link.c: GPU activity, launches, steps -------+
 *                   -- work_facts.c: bytes, launch shapes; work_host.c: no GPU ---+--> struct marey__work_set
 *                   -- rules.c: the class of each name ---------------------------+
 *   work set -- sweep.c: atoms within windows --+-- breakdown*.c: computation, communication, copies, idle
 *            -- idle*.c: why a device is idle --+
 *            -- collectives*.c: over all ranks -+
 *            -- gpu_*.c: kernels, launches, waits (gpu_report.h)
 *
 * Input: recordings. Output: the breakdown and the GPU report. Memory grows with GPU activity, launches and steps, not
 * with the log. Does not know CUPTI or which tool traced the GPU: imported traces have the same records.
 */
#ifndef MAREY_ANALYZE_DEVICE_INTERNAL_H
#define MAREY_ANALYZE_DEVICE_INTERNAL_H

#include "analyze/walk/internal.h"
#include "base/internal.h"
#include "report/internal.h"
#include <marey/breakdown.h>

/* Bits of an atom. Work of class 0 is excluded from all sums: a rule says "ignore", or a thread waits. */
enum marey__work_class {
    MAREY__IGNORED = 0,
    MAREY__COMPUTES = 1,
    MAREY__COMMUNICATES = 2,
    MAREY__COPIES = 4
};
enum { MAREY__N_CLASSES = 3, MAREY__N_ATOMS = 8 };

/* ---- rules.c: classification by rules, which are data (docs/formats/rules.md) ---- */

/* In addition to enum marey_work_kind: a range of a thread, in a process without a GPU. */
enum { MAREY__KIND_RANGE = 0 };

enum marey__rule_look {
    MAREY__LOOK_KIND,       /* kernel, copy, set, range */
    MAREY__LOOK_NAME,       /* of GPU work */
    MAREY__LOOK_RANGE,      /* the name of a range */
    MAREY__LOOK_CATEGORY,   /* of GPU work or a range */
    MAREY__LOOK_COLLECTIVE, /* of its record COMMUNICATION: all_reduce, send, ... */
};

struct marey__rule {
    const char *name, *pattern;
    enum marey__rule_look look;
    uint8_t class; /* enum marey__work_class; for rules about idle time enum marey__idle_reason */
};

/* In order of precedence: the first match decides, and the last rules match everything. Read by several threads. */
struct marey__rules {
    struct marey__rule *rules;
    size_t n, cap;
    struct marey__rule *idle; /* rules about idle time: idle_tables.c */
    size_t n_idle, idle_cap;
    struct marey__arena texts;
};

/*
 * Load the rules of the file at `path` (NULL: none), followed by marey's own. fini() accepts a partially initialized
 * object.
 */
MAREY_WARN_UNUSED marey_status marey__rules_load(struct marey__rules *rules, const char *path);
void marey__rules_fini(struct marey__rules *rules);
/* Add rules from a text; messages call it `source`. */
MAREY_WARN_UNUSED marey_status marey__rules_parse(struct marey__rules *rules, const char *source,
                                                  const char *text, size_t len);
const char *marey__rule_look_name(enum marey__rule_look look);
const char *marey__class_name(uint8_t class);
/* "all_reduce"; "unknown". */
const char *marey__collective_name(enum marey_collective what);

/* Whether a pattern occurs in a text or, if it contains * or ?, matches all of it. Ignores case. */
bool marey__pattern_fits(const char *pattern, const char *text, size_t len);

/* The properties that rules match. */
struct marey__rule_subject {
    const struct marey_site_info *site;
    uint8_t kind; /* enum marey_work_kind or MAREY__KIND_RANGE */
    bool has_collective;
    enum marey_collective what;
};
/* The number of the first matching rule. */
uint16_t marey__rules_find(const struct marey__rules *rules,
                           const struct marey__rule_subject *subject);

/* Names matched by a rule. */
struct marey__rule_matches {
    uint64_t count, ns;
};

/* The rules for one process; the result for each site is cached for its most recent use. */
struct marey__classifier {
    const struct marey__rules *rules;
    marey_recording *recording;
    const struct marey_process *process;
    struct marey__rule_memo *memos; /* two per site: without and with a collective */
};
MAREY_WARN_UNUSED bool marey__classifier_init(struct marey__classifier *classifier,
                                              const struct marey__rules *rules,
                                              marey_recording *recording,
                                              const struct marey_process *process);
void marey__classifier_fini(struct marey__classifier *classifier);
/* `communication` may be NULL. */
uint16_t marey__classify(struct marey__classifier *classifier, uint32_t site, uint8_t kind,
                         const struct marey_communication *communication);

/* ---- work.c, work_link.c, work_host.c ---- */

/* An activity of a device, or of a thread in a process without one. 48 bytes. */
struct marey__work {
    uint64_t begin_ns, end_ns;
    uint64_t correlation; /* 0: none */
    uint32_t site;        /* 0: a thread between its ranges */
    uint32_t lane;        /* its stream, or thread */
    uint32_t launch;      /* index in marey__work_set.launches, or MAREY__NO_INDEX */
    uint32_t collective;  /* index in marey__work_set.collectives, or MAREY__NO_INDEX */
    uint32_t facts;       /* index in marey__work_set.facts if kept, or MAREY__NO_INDEX */
    uint16_t rule;        /* number of the rule that matched */
    uint8_t class;        /* enum marey__work_class */
    uint8_t kind;         /* enum marey_work_kind, or MAREY__KIND_RANGE */
};

/* How a kernel was launched. Zero-initialized, so that equal shapes have equal bytes; 0 means unknown. */
struct marey__launch_config {
    uint64_t grid[3], block[3];
    uint64_t registers;    /* per thread */
    uint64_t shared_bytes; /* per block */
};

/* Details of a piece of work. */
struct marey__work_facts {
    uint64_t bytes;
    uint32_t shape; /* index in marey__work_set.shapes, or MAREY__NO_INDEX */
};

/* A call on the host that launched work. 48 bytes. */
struct marey__launch_call {
    uint64_t begin_ns, end_ns;
    uint64_t correlation;
    uint32_t lane; /* of its thread */
    uint32_t site; /* cudaLaunchKernel; 0: outside all ranges */
    uint32_t around; /* site of the operator, the innermost range around it other than runtime calls; 0: none */
    uint32_t range;      /* innermost in marey__work_set.ranges if kept; else MAREY__NO_INDEX */
    uint32_t collective; /* of the innermost range around it with a collective; else MAREY__NO_INDEX */
    uint32_t chained;    /* another launch of the same call, or MAREY__NO_INDEX */
};

/*
 * A rank's call of a collective. For GPU work it has that work's times; if only the host's range has the record, the
 * launched work gets a copy with its own times. Several calls may share one group and sequence.
 */
struct marey__collective_call {
    struct marey_communication what;
    uint64_t begin_ns, end_ns; /* of the work, or of the host's range */
    uint32_t site;             /* of the same */
    bool is_on_host;
    bool is_joined; /* the wait for an earlier call, and merged into it: collectives.c */
};

/* A device of a process, or its host. Work is ordered by begin; work of zero or negative length is excluded. */
struct marey__device_work {
    int32_t device; /* -1: the process itself, without GPU work */
    struct marey__work *work;
    size_t n_work, work_cap;
    uint64_t n_unlinked; /* work without a known launch */
};

/* An iteration of the process: torch's ProfilerStep#n, marey.iteration(). */
struct marey__step {
    uint64_t begin_ns, end_ns; /* on the host */
    uint64_t number;
};

/* A range of a thread. In a process with GPU work only those that launched some, else those of the main thread. */
struct marey__host_range {
    uint64_t begin_ns, end_ns;
    uint32_t site;
    uint32_t parent; /* index in this list, before this one; MAREY__NO_INDEX: none */
};

/* Activity of a process. Zero-initialize, then read; fini() accepts a partially initialized object. */
struct marey__work_set {
    marey_recording *recording;
    const struct marey_process *process;
    struct marey__device_work *devices; /* ordered by device number */
    size_t n_devices, devices_cap;
    struct marey__launch_call *launches; /* each thread's in order of begin */
    size_t n_launches, launches_cap;
    struct marey__collective_call *collectives;
    size_t n_collectives, collectives_cap;
    struct marey__step *steps; /* in order of begin, without overlaps */
    size_t n_steps, steps_cap;
    uint32_t step_lane;               /* the thread that recorded the last one */
    uint64_t first_ns, last_ns;       /* of all its events; both 0 without events */
    struct marey__host_range *ranges; /* if `wants_ranges` */
    size_t n_ranges, ranges_cap;
    struct marey__work_facts *facts; /* if `wants_facts` */
    size_t n_facts, facts_cap;
    struct marey__names shapes; /* each text is a struct marey__launch_config, in `shape_texts` */
    struct marey__arena shape_texts;
    struct marey__rule_matches *matches; /* by rule */
    uint64_t n_too_deep;                 /* ranges excluded, nested too deep */
    uint64_t n_unmatched;     /* begins and ends of async ranges beyond the limit on waiting ones */
    uint64_t n_negative;      /* GPU work on any device that ends before it begins: excluded */
    uint64_t n_ignored_kinds; /* other records of GPU lanes: annotations, synchronization */
    int64_t main_tid;         /* of a process without GPU work: the thread that computes */
    uint64_t n_waits;         /* likewise: ranges in which it waits */
    bool is_unknown;          /* likewise: computation cannot be separated from communication */
};

struct marey__work_options {
    const struct marey__rules *rules;
    bool wants_ranges; /* keep them in marey__work_set.ranges */
    /* Keep them in marey__work_set.facts, and also work of zero length, for counts. */
    bool wants_facts;
};

MAREY_WARN_UNUSED marey_status marey__work_set_read(struct marey__work_set *set,
                                                    marey_recording *recording, size_t process,
                                                    const struct marey__work_options *options);
void marey__work_set_fini(struct marey__work_set *set);

/* The step at `ns`, in `set->steps`; MAREY__NO_INDEX for none. */
uint32_t marey__step_at(const struct marey__work_set *set, uint64_t ns);
/* The step of work: that of its launch, else that of its begin. */
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
/* Free work, launches, ranges and facts after summing up. */
void marey__work_set_drop_work(struct marey__work_set *set);

/* Call `run` for 0 to n - 1 on several threads, with the request's options. In breakdown.c. */
MAREY_WARN_UNUSED marey_status marey__run_for_each(const struct marey__request *request, size_t n,
                                                   marey_status (*run)(void *ctx, size_t i),
                                                   void *ctx);

/* Whether a site is a call of a runtime or driver ("cuda_runtime"), by its category. */
bool marey__is_runtime_call(const struct marey_site_info *site);

/*
 * While reading: a record COMMUNICATION for something that began at `begin_ns`. Replaces record `said`
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
/* The device, created if needed; NULL on out of memory. Call in ascending order of devices. */
struct marey__device_work *marey__work_set_device(struct marey__work_set *set, int32_t device);
/* Sort work, link it to its launches and classify it. Returns false on out of memory. In work_link.c. */
MAREY_WARN_UNUSED bool marey__work_set_link(struct marey__work_set *set);
MAREY_WARN_UNUSED bool marey__work_set_classify(struct marey__work_set *set,
                                                struct marey__classifier *classifier);
/* Read the shape from a JSON object with Kineto's keys. Returns false if it has none. In work_facts.c. */
static inline struct marey__launch_config marey__launch_config_of(const struct marey_launch *launch)
{
    return (struct marey__launch_config){
        .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .block = {launch->block[0], launch->block[1], launch->block[2]},
        .registers = launch->registers,
        .shared_bytes = (uint64_t)launch->static_shared_bytes + launch->dynamic_shared_bytes};
}
MAREY_WARN_UNUSED bool marey__launch_config_read(const char *text, size_t len,
                                                 struct marey__launch_config *shape);
/* Shape number `i` of `shapes`. */
struct marey__launch_config marey__launch_config_at(const struct marey__names *shapes, uint32_t i);
/*
 * While reading: take bytes and shape of work from its record, the site of its details, or the following arguments.
 * Returns false on out of memory. `site_shapes` caches shapes plus one, by site.
 */
MAREY_WARN_UNUSED bool marey__work_facts_take(struct marey__work_set *set, struct marey__work *work,
                                              const uint64_t *words, uint32_t *site_shapes);
MAREY_WARN_UNUSED bool marey__work_facts_arguments(struct marey__work_set *set,
                                                   struct marey__work *work, const uint64_t *words);
/* Create the device -1 of a process without GPU work, by reading the log again. In work_host.c. */
MAREY_WARN_UNUSED marey_status marey__work_host_read(struct marey__work_set *set,
                                                     const struct marey__work_options *options,
                                                     struct marey__classifier *classifier);

/* ---- sweep.c: atoms ---- */

/* Half open. Intervals of zero length are ignored. */
struct marey__interval {
    uint64_t begin_ns, end_ns;
};

/* Sort and merge intervals to their union. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__intervals_unite(struct marey__interval *intervals, size_t *n);
/* The total length of a union. */
uint64_t marey__intervals_length(const struct marey__interval *intervals, size_t n);

struct marey__atoms {
    uint64_t ns[MAREY__N_ATOMS]; /* by the set of active classes; [0]: none */
    uint64_t sum_of_durations_ns;
    uint64_t n_work;
};

/*
 * Assigns each nanosecond of the windows to an atom, by the classes active in it: begin, add intervals in order of
 * begin, finish. The atoms then add up to the windows.
 */
struct marey__sweep {
    const struct marey__interval *windows; /* borrowed; a union */
    size_t n_windows;
    size_t window;                       /* the first that is not over at `now_ns` */
    uint64_t now_ns;                     /* everything before is assigned */
    uint64_t until_ns[MAREY__N_CLASSES]; /* by class: active until then */
    struct marey__atoms atoms;
};
void marey__sweep_begin(struct marey__sweep *sweep, const struct marey__interval *windows,
                        size_t n_windows);
/* Add an activity of class `class`; class 0 is ignored. */
void marey__sweep_add(struct marey__sweep *sweep, uint64_t begin_ns, uint64_t end_ns, uint8_t class);
void marey__sweep_finish(struct marey__sweep *sweep);

/* ---- breakdown_rows.c: rows of one process ---- */

enum marey__window { MAREY__WINDOW_SPAN, MAREY__WINDOW_STEPS };

/* Atoms of a device in some windows. Texts are borrowed from the recording. */
struct marey__device_row {
    int32_t device;
    enum marey__window window; /* for `by` step or range: its own */
    uint64_t span_ns;
    struct marey__atoms atoms;
    /* The subject of a row of `by`: */
    uint64_t number;  /* of a step or stream */
    uint32_t lane;    /* of a stream */
    const char *text; /* name of a range or group, without a NUL; NULL: none */
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

/* Windows of device d of the work set. */
struct marey__device_windows {
    struct marey__interval *spans; /* [d]: from the first work to the last; for a host, its events */
    struct marey__interval *steps; /* [d * n_steps + i]: step i, to the end of the last work launched in it */
    struct marey__interval *united; /* [d * n_steps + i]: their union, n_united[d] intervals */
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

/* A row per device and window. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__device_rows_make(struct marey__device_rows *rows,
                                               const struct marey__work_set *set,
                                               const struct marey__device_windows *windows);
/* A row per step, range, stream or group of each device. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__by_rows_make(struct marey__device_rows *rows,
                                           const struct marey__work_set *set,
                                           const struct marey__device_windows *windows,
                                           enum marey__by by, enum marey__window window);

/* Sums of atoms. */
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
 * idle: why a device was idle.
 *
 *   idle.c ── the times in which no stream of a device was busy, each split at the call that launched the next work;
 *             times in which the launch queue was full
 *   idle_host.c ── activity of the launching thread before that call: visits the log again
 *   idle_sums.c ── sums by reason, by step, by operator
 *   idle_tables.c ── names of reasons, their rules, tables
 *
 *   device   ██████                       ██████      work
 *   thread         ─[aten::mm]──[ launch ]─
 *                  '── host ────'─ latency ─'
 *
 * Each nanosecond of a gap has one reason, so the reasons add up to the idle time of the device. Memory grows with
 * gaps, which are fewer than pieces of work, and with steps, not with the log.
 */

enum marey__idle_reason {
    /* Activity of the launching thread before the launch. */
    MAREY__IDLE_HOST,        /* it ran, and no rule matches */
    MAREY__IDLE_DATA,        /* it fetched data */
    MAREY__IDLE_SYNCHRONISE, /* it waited for the device */
    MAREY__IDLE_ALLOCATE,    /* it allocated or freed device memory */
    MAREY__IDLE_OPTIMIZER,
    MAREY__IDLE_COMMUNICATE, /* in a collective of the host */
    MAREY__IDLE_LOAD,        /* loading the code of kernels */
    MAREY__IDLE_PROFILER,    /* the profiler's own work */
    MAREY__IDLE_WAIT,        /* in a range of category idle or wait */
    MAREY__N_HOST_REASONS,   /* reasons that a rule may give */
    /* Launched but not started. */
    MAREY__IDLE_LATENCY = MAREY__N_HOST_REASONS, /* from the launch on, for a typical launch latency */
    MAREY__IDLE_LAUNCH_CALL, /* a longer call: code is loaded, or a driver is busy */
    MAREY__IDLE_KERNEL_GAP,  /* a short time between two pieces of work */
    MAREY__IDLE_QUEUED, /* waited for something else: another stream, an event, another device */
    MAREY__IDLE_QUEUE_FULL, /* likewise, with so many launches outstanding that the host waits too */
    MAREY__IDLE_UNKNOWN,    /* unknown launch; for a process without devices, no open range */
    MAREY__N_IDLE_REASONS,
};

/* Names in tables and in text. */
struct marey__idle_words {
    const char *id, *title;
};
extern const struct marey__idle_words marey__idle_words[MAREY__N_IDLE_REASONS];

enum {
    /* Maximum time from the begin of a launch call to the begin of its work on an idle device. */
    MAREY__LAUNCH_LATENCY_NS = 20000,
    /* The rest is the device's own time between two pieces of work, up to this long. */
    MAREY__KERNEL_GAP_NS = 10000,
    /* Outstanding launches of a stream at which the call blocks: of 1024 places, a driver reserves a few. */
    MAREY__LAUNCH_QUEUE = 1000,
};

/* Idle time by reason and operator, over all threads. */
struct marey__idle_row {
    enum marey__idle_reason reason;
    uint32_t name; /* of the operator, in marey__idle.names, or MAREY__NO_NAME */
    uint64_t ns;
    uint64_t count; /* gaps with such a time, counted per thread */
};

struct marey__idle_device {
    int32_t device;
    uint64_t ns[MAREY__N_IDLE_REASONS];    /* within the whole window */
    uint64_t count[MAREY__N_IDLE_REASONS]; /* gaps with this reason */
    struct marey__idle_row *rows;          /* the longest first */
    size_t n_rows;
    uint64_t *step_ns; /* by step, then reason: within the step's window */
    /* Time with a stream that had MAREY__LAUNCH_QUEUE launches outstanding, whether busy or not. */
    uint64_t queue_full_ns;
};

struct marey__idle {
    struct marey__idle_device *devices; /* as in the work set */
    size_t n_devices, n_steps;
    struct marey__names names; /* texts borrowed from the recording */
};

/* The windows; all borrowed. */
struct marey__idle_windows {
    const struct marey__interval *whole; /* [d * stride + i]: times of device d to explain, a union */
    const size_t *n_whole;               /* by device; NULL: one each */
    size_t stride;
    const struct marey__interval *steps; /* by device, then step, in order of begin; NULL: not needed */
};

/* Find why the devices of `set` were idle. On failure `idle` is empty; fini is allowed. */
MAREY_WARN_UNUSED marey_status marey__idle_find(struct marey__idle *idle,
                                                const struct marey__work_set *set,
                                                const struct marey__rules *rules,
                                                const struct marey__idle_windows *windows);
void marey__idle_fini(struct marey__idle *idle);

/* Append the rows of one process to the tables, with these columns. */
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

/* The work that ended a gap: of the work that begins together with work[i], the one launched first. */
const struct marey__work *marey__first_launched(const struct marey__work_set *set,
                                                const struct marey__device_work *device, size_t i);

/* ---- internal to idle ---- */

/* A gap that is partly explained by the host. */
struct marey__idle_gap {
    uint32_t device; /* index in the work set */
    uint32_t other_lane; /* lane to use where the launching thread has no open range; MAREY__NO_INDEX: none */
    uint16_t reasons; /* bits: its reasons so far */
};

/* A part of a gap to be explained by a thread. */
struct marey__idle_part {
    uint64_t begin_ns, end_ns;
    uint32_t lane, gap;
};

/* One sum; those of different threads are merged in the end. */
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
    uint32_t *siblings;  /* by lane: the first of the same thread, plus one; 0: not searched yet */
    uint64_t *latest_ns; /* like windows->steps: the latest end of this step and all before it */
    struct marey__idle_gap *gaps;
    size_t n_gaps, gaps_cap;
    struct marey__idle_part *parts;
    size_t n_parts, parts_cap;
    struct marey__idle_sum *sums;
    size_t n_sums, sums_cap;
    struct marey__key_map by_key;
};

/* A part of a gap with its reason. Those of one lane and device come in order of gaps. */
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
/* Make the rows of all devices from the sums. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__idle_make_rows(struct marey__idle_finder *finder);

/* Explain the parts by their threads' ranges. */
MAREY_WARN_UNUSED marey_status marey__idle_ask_host(struct marey__idle_finder *finder);

/* The number of an operator's name, MAREY__NO_NAME if the site is not an operator. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__idle_name(struct marey__idle_finder *finder, uint32_t site,
                                        uint32_t *out);

/*
 * The number of the first rule that matches a range. Of the open ranges of a thread, the lowest number takes
 * precedence.
 */
#define MAREY__NO_IDLE_RULE UINT16_MAX
uint16_t marey__idle_rule_of(const struct marey__rules *rules, const struct marey_site_info *site);
/* Whether it is an operator: not a runtime call, and not a step. */
bool marey__is_operator(const struct marey_site_info *site);

/* ==== collectives ==== */

/*
 * collectives: matches the collective operations of all ranks.
 *
 *   collectives.c ── the calls of each process
 *   collectives_match.c ── which calls are one collective, and how the clocks of hosts relate
 *   collectives_tables.c
 *
 *   rank 0   ──────[ wait ███████ transfer ]──
 *   rank 1   ────────────[██████ transfer ]───     the last to arrive does not wait
 *
 * A collective cannot move data before all ranks have arrived. So its shortest duration is the transfer time, and
 * any longer duration of a rank is waiting for others.
 *
 * The i-th call of a kind in a group on one rank matches the i-th on another: by the group's sequence number if
 * the trace has it, else in order of begin. Sends and receives involve two ranks and are not matched.
 */

/* How the clocks of ranks relate. */
enum marey__clocks {
    MAREY__CLOCKS_APART,   /* unrelated: no skew */
    MAREY__CLOCKS_WALL,    /* by the time of day of the hosts */
    MAREY__CLOCKS_ALIGNED, /* by collectives over all hosts */
    MAREY__CLOCKS_SAME,    /* one machine */
};

/* The result of aligning the clocks of machines. */
struct marey__alignment {
    uint64_t n_nodes;
    uint64_t uncertainty_ns; /* maximum over machines */
    uint64_t n_aligned_by;   /* number of collectives used */
    bool has_drifted;        /* clocks drifted during the run */
};

/* One call on one rank. 72 bytes. */
struct marey__rank_call {
    uint64_t begin_ns, end_ns; /* by its process's clock */
    uint64_t bytes;
    uint64_t sequence; /* in its group; UINT64_MAX: unknown */
    /*
     * After matching: its time beyond the shortest call; its begin after the first one; how long others waited for it.
     */
    uint64_t wait_ns, late_ns, held_ns;
    uint32_t turn;   /* index among equal calls on its rank */
    uint32_t kind;   /* index in marey__collectives.kinds */
    uint32_t member; /* index in marey__collectives.members */
    bool is_matched, is_first, is_last;
};

/* A process that takes part. */
struct marey__member {
    const struct marey_process *process;
    uint32_t job;     /* only members of one job are matched with one another */
    int64_t shift_ns; /* added to its clock if clocks are aligned */
};

/* Calls that are matched with one another: of one group and kind. */
struct marey__collective_kind {
    const char *what;
    uint32_t group; /* index in marey__collectives.groups */
    enum marey_collective collective;
    uint32_t group_size; /* 0: unknown */
    bool is_between_two; /* a send or receive */
    bool is_by_order;    /* some lack a sequence number */
    /* After matching, for collectives found on at least two ranks: */
    uint64_t n_matched, n_ranks;          /* n_ranks: the maximum over collectives */
    uint64_t bytes, transfer_ns, skew_ns; /* sums */
    double wait_ns;                       /* a sum of means over ranks */
    uint64_t timed_bytes, timed_ns;       /* of those with known bytes and transfer */
    uint64_t n_apart;                     /* not all calls overlap */
    uint64_t n_short;                     /* a rank that has others of the kind is missing */
    uint64_t n_lone;                      /* calls found on one rank only */
    uint32_t slowest; /* member for which others waited longest; MAREY__NO_INDEX: none */
    uint64_t n_slowest, slowest_held_ns; /* how often it arrived last; how long others waited then */
};

/* Sums of one member in one group. */
struct marey__member_sum {
    uint32_t member, group;
    union {
        struct {
            uint64_t n_calls, n_between_two, ns; /* all calls */
            uint64_t n_matched, wait_ns, transfer_ns, late_ns, held_ns, n_first, n_last;
        };
        uint64_t sums[10];
    };
};

/* Texts are borrowed from the recordings, or stored in the arena. */
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
    struct marey__alignment alignment; /* for MAREY__CLOCKS_ALIGNED */
};

/*
 * Reduce `set->collectives` to the calls to be compared with other ranks; indices into it become invalid. Returns false
 * on out of memory.
 */
MAREY_WARN_UNUSED bool marey__collectives_keep(struct marey__work_set *set);
/* Add the calls of a process; the recordings must live until the tables are made. Zero-initialize `all` first. */
MAREY_WARN_UNUSED marey_status marey__collectives_add(struct marey__collectives *all, uint32_t job,
                                                      const struct marey__work_set *set);
/* Match the calls after adding all processes. */
MAREY_WARN_UNUSED marey_status marey__collectives_match(struct marey__collectives *all);
void marey__collectives_fini(struct marey__collectives *all);

enum { MAREY__N_COLLECTIVE_COLUMNS = 13, MAREY__N_COLLECTIVE_RANK_COLUMNS = 9 };
extern const struct marey_column marey__collective_columns[MAREY__N_COLLECTIVE_COLUMNS];
extern const struct marey_column marey__collective_rank_columns[MAREY__N_COLLECTIVE_RANK_COLUMNS];
void marey__collectives_put(marey_table *table, const struct marey__collectives *all);
void marey__collectives_put_ranks(marey_table *table, const struct marey__collectives *all);
/* Add notes on unmatched calls to a table with one text column. */
void marey__collectives_put_warnings(marey_table *table, const struct marey__collectives *all);

/* Bus bandwidth is this factor times bytes over time, with `n` ranks, as in nccl-tests. */
double marey__bus_factor(enum marey_collective what, uint32_t n);

/* ==== breakdown ==== */

/* Data of one process. */
struct marey__process_breakdown {
    marey_recording *recording;
    size_t process;
    struct marey__work_set set; /* afterwards without work, launches and ranges */
    struct marey__device_windows windows;
    struct marey__device_rows devices, by;
    struct marey__idle idle;
    uint64_t n_work, n_outside, outside_ns; /* work, and work launched in no step */
    bool is_left_out;                       /* a helper of others, such as a data loader worker */
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

/* marey_report.data: the settings, and what text shows beyond the tables. */
struct marey__breakdown_facts {
    enum marey__by by;
    enum marey__window window;
    enum marey__clocks clocks; /* by which collectives are compared */
    struct marey__alignment alignment;
};

/* State of making a breakdown. */
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
/* Names in tables and options. */
extern const char *const marey__window_names[2];
extern const char *const marey__by_names[5];

#endif
