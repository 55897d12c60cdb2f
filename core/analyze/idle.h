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
#ifndef KYMO_IDLE_H
#define KYMO_IDLE_H

#include "analyze/breakdown_internal.h"

enum kymo__idle_reason {
    /* What the launching thread did before it launched. */
    KYMO__IDLE_HOST,        /* it ran, and no rule says at what */
    KYMO__IDLE_DATA,        /* it fetched data */
    KYMO__IDLE_SYNCHRONISE, /* it waited for the device */
    KYMO__IDLE_ALLOCATE,    /* it got or gave back memory of the device */
    KYMO__IDLE_OPTIMIZER,
    KYMO__IDLE_COMMUNICATE, /* it was in a collective of the host */
    KYMO__IDLE_LOAD,        /* it loaded the code of kernels */
    KYMO__IDLE_PROFILER,    /* the profiler's own work */
    KYMO__IDLE_WAIT,        /* a range of category idle or wait says so */
    KYMO__N_HOST_REASONS,   /* those that a rule may give */
    /* Launched, and not begun. */
    KYMO__IDLE_LATENCY = KYMO__N_HOST_REASONS, /* from the launch on, for as long as launching takes */
    KYMO__IDLE_LAUNCH_CALL, /* the call itself took longer than that: code is loaded, a driver is busy */
    KYMO__IDLE_KERNEL_GAP, /* a short time between two pieces of work */
    KYMO__IDLE_QUEUED, /* it waited for something else: another stream, an event, another device */
    KYMO__IDLE_QUEUE_FULL, /* the same, with so many launches outstanding that the host waits too */
    KYMO__IDLE_UNKNOWN, /* who launched is not known; of a process without devices, no range is open */
    KYMO__N_IDLE_REASONS,
};

/* As tables call it, and as people read it. */
struct kymo__idle_words {
    const char *id, *title;
};
extern const struct kymo__idle_words kymo__idle_words[KYMO__N_IDLE_REASONS];

enum {
    /* From the begin of a launch call to that of its work on an idle device. */
    KYMO__LAUNCH_LATENCY_NS = 20000,
    /* What is left then is the device's own time between two pieces of work, when it is not longer than this. */
    KYMO__KERNEL_GAP_NS = 10000,
    /* Launches of a stream that have not begun while the call blocks: of 1024 places a driver keeps a few for itself. */
    KYMO__LAUNCH_QUEUE = 1000,
};

/* Idle time of one reason and one operator, on all threads. */
struct kymo__idle_row {
    enum kymo__idle_reason reason;
    uint32_t name; /* of the operator, in kymo__idle.names, or KYMO__NO_NAME */
    uint64_t ns;
    uint64_t count; /* gaps with such a time, each thread's apart */
};

struct kymo__idle_device {
    int32_t device;
    uint64_t ns[KYMO__N_IDLE_REASONS];    /* in the whole that was asked for */
    uint64_t count[KYMO__N_IDLE_REASONS]; /* gaps that have it */
    struct kymo__idle_row *rows;          /* the longest first */
    size_t n_rows;
    uint64_t *step_ns; /* by step, then reason: in the step's window */
    /* In which a stream had KYMO__LAUNCH_QUEUE launches outstanding, busy or not. */
    uint64_t queue_full_ns;
};

struct kymo__idle {
    struct kymo__idle_device *devices; /* as in the work set */
    size_t n_devices, n_steps;
    struct kymo__names names; /* texts lent by the recording */
};

/* Which times are looked at; all lent. */
struct kymo__idle_windows {
    const struct kymo__interval *whole; /* [d * stride + i]: what is to be explained of device d, a union */
    const size_t *n_whole;              /* by device; NULL: one each */
    size_t stride;
    const struct kymo__interval *steps; /* by device, then step, in order of begin; NULL: none are wanted */
};

/* Why the devices of `set` were idle. On failure `idle` is empty; fini takes that. */
KYMO_WARN_UNUSED kymo_status kymo__idle_find(struct kymo__idle *idle,
                                             const struct kymo__work_set *set,
                                             const struct kymo__rules *rules,
                                             const struct kymo__idle_windows *windows);
void kymo__idle_fini(struct kymo__idle *idle);

/* Add the rows of one process to the tables, whose columns are these. */
enum {
    KYMO__N_IDLE_COLUMNS = 7,
    KYMO__N_IDLE_OPERATOR_COLUMNS = 7,
    KYMO__N_IDLE_STEP_COLUMNS = 6,
};
extern const struct kymo_column kymo__idle_columns[KYMO__N_IDLE_COLUMNS];
extern const struct kymo_column kymo__idle_operator_columns[KYMO__N_IDLE_OPERATOR_COLUMNS];
extern const struct kymo_column kymo__idle_step_columns[KYMO__N_IDLE_STEP_COLUMNS];
void kymo__idle_put(kymo_table *table, const struct kymo__work_set *set,
                    const struct kymo__idle *idle);
void kymo__idle_put_operators(kymo_table *table, const struct kymo__work_set *set,
                              const struct kymo__idle *idle);
void kymo__idle_put_steps(kymo_table *table, const struct kymo__work_set *set,
                          const struct kymo__idle *idle);

/* ---- inside ---- */

/* A gap of which some part is to be told by the host. */
struct kymo__idle_gap {
    uint32_t device; /* in the work set */
    uint32_t other_lane; /* whom to ask where the launching thread has no range open; KYMO__NO_INDEX: nobody */
    uint16_t reasons; /* bits: which it has so far */
};

/* A part of a gap that a thread is to explain. */
struct kymo__idle_part {
    uint64_t begin_ns, end_ns;
    uint32_t lane, gap;
};

/* One sum; those of different threads are put together at the end. */
struct kymo__idle_sum {
    uint64_t key; /* see idle_sums.c */
    uint64_t ns, count;
    uint32_t last_gap;
};

struct kymo__idle_finder {
    struct kymo__idle *idle;
    const struct kymo__work_set *set;
    const struct kymo__rules *rules;
    const struct kymo__idle_windows *windows;
    uint32_t *siblings;  /* by lane: the first of the same thread, plus one; 0: not looked for */
    uint64_t *latest_ns; /* as windows->steps: the latest end of this one and those before it */
    struct kymo__idle_gap *gaps;
    size_t n_gaps, gaps_cap;
    struct kymo__idle_part *parts;
    size_t n_parts, parts_cap;
    struct kymo__idle_sum *sums; /* a hash table; count 0: empty */
    size_t n_sums, n_slots;
};

/* Some time of a gap, and what it is due to. Times of one lane and device come in order of their gaps. */
struct kymo__idle_time {
    struct kymo__idle_gap *gap;
    uint32_t gap_number;
    uint32_t lane;
    enum kymo__idle_reason reason;
    uint32_t name; /* of the operator */
    uint64_t begin_ns, end_ns;
};
/* False without memory. */
KYMO_WARN_UNUSED bool kymo__idle_add(struct kymo__idle_finder *finder,
                                     const struct kymo__idle_time *time);
/* The rows of all devices from the sums. False without memory. */
KYMO_WARN_UNUSED bool kymo__idle_make_rows(struct kymo__idle_finder *finder);

/* Have the parts explained by their threads' ranges. */
KYMO_WARN_UNUSED kymo_status kymo__idle_ask_host(struct kymo__idle_finder *finder);

/* The number of an operator's name, KYMO__NO_NAME for a site that names none. False without memory. */
KYMO_WARN_UNUSED bool kymo__idle_name(struct kymo__idle_finder *finder, uint32_t site, uint32_t *out);

/* The times in which a launch queue of the device was full, in order, freed with kymo__free. False without memory. */
KYMO_WARN_UNUSED bool kymo__idle_find_full(const struct kymo__work_set *set,
                                           const struct kymo__device_work *device,
                                           struct kymo__interval **out, size_t *n_out);

/* The number of the rule that a range fits. Of those that the open ranges of a thread fit, the lowest counts. */
#define KYMO__NO_IDLE_RULE UINT16_MAX
uint16_t kymo__idle_rule_of(const struct kymo__rules *rules, const struct kymo_site_info *site);
/* Whether it names an operator: not a call of the runtime, and not a step. */
bool kymo__is_operator(const struct kymo_site_info *site);

#endif
