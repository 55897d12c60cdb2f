/*
 * idle: why a device had nothing to do.
 *
 *   idle.c ── the times in which no stream of a device was busy, each split at the call that launched what came next
 *   idle_queue.c ── when so much was launched ahead that the call blocked
 *   idle_host.c ── what the launching thread did before that call: one more visit of the log
 *   idle_sums.c ── sums by reason, by step, by operator
 *   idle_rules.c ── which names of ranges tell a reason
 *   idle_tables.c
 *
 *   device   ██████                       ██████      work
 *   thread         ─[aten::mm]──[ launch ]─
 *                  '── host ────'─ latency ─'
 *
 * Each nanosecond of a gap has one reason, so that the reasons add up to the idle time of the device. Memory grows with
 * gaps, which are fewer than pieces of work, and with steps; not with the log.
 */
#ifndef MAREY_IDLE_H
#define MAREY_IDLE_H

#include "analyze/device/breakdown_internal.h"
#include "base/map.h"

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

/* ---- inside ---- */

/* A gap of which some part is to be told by the host. */
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
/* False without memory. */
MAREY_WARN_UNUSED bool marey__idle_add(struct marey__idle_finder *finder,
                                       const struct marey__idle_time *time);
/* The rows of all devices from the sums. False without memory. */
MAREY_WARN_UNUSED bool marey__idle_make_rows(struct marey__idle_finder *finder);

/* Have the parts explained by their threads' ranges. */
MAREY_WARN_UNUSED marey_status marey__idle_ask_host(struct marey__idle_finder *finder);

/* The number of an operator's name, MAREY__NO_NAME for a site that names none. False without memory. */
MAREY_WARN_UNUSED bool marey__idle_name(struct marey__idle_finder *finder, uint32_t site,
                                        uint32_t *out);

/* The times in which a launch queue of the device was full, in order, freed with marey__free. False without memory. */
MAREY_WARN_UNUSED bool marey__idle_find_full(const struct marey__work_set *set,
                                             const struct marey__device_work *device,
                                             struct marey__interval **out, size_t *n_out);

/* The number of the rule that a range fits. Of those that the open ranges of a thread fit, the lowest counts. */
#define MAREY__NO_IDLE_RULE UINT16_MAX
uint16_t marey__idle_rule_of(const struct marey__rules *rules, const struct marey_site_info *site);
/* Whether it names an operator: not a call of the runtime, and not a step. */
bool marey__is_operator(const struct marey_site_info *site);

#endif
