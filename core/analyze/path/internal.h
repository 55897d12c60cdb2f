/*
 * path: the critical path of training steps, the chain of calls, launches and GPU activity that determines their length.
 *
 *   a process's log ── work_set (analyze/device) ── path_walk.c ── from the end of a step backward, always to the
 *                   │                                              predecessor that arrived last: struct marey__path_part
 *                   └─ path_host.c ── times in which threads wait; finally, what the threads on the path ran
 *   path.c ── the registry entry, sums over processes, tables, text
 *
 *   thread   [ step: ──launch──────────────[ synchronize ]──]
 *   stream              '─>[ kernel ]───────────'wake-up
 *
 * Each nanosecond of a step is in exactly one segment, so the segments add up to the step. Time without a known reason is
 * `unexplained`. The rules are in docs/internals/critical-path.md.
 *
 * Input: recordings with GPU activity or steps. Output: a report of three tables and notes. Memory grows with GPU activity,
 * launches, calls that wait and segments, not with the log. Does not know CUPTI or which tool traced the GPU.
 */
#ifndef MAREY_ANALYZE_PATH_INTERNAL_H
#define MAREY_ANALYZE_PATH_INTERNAL_H

#include "analyze/device/internal.h"
#include "report/internal.h"

enum marey__path_class {
    MAREY__PATH_COMPUTE, /* of the device */
    MAREY__PATH_COMMUNICATION,
    MAREY__PATH_COPY,
    MAREY__PATH_PYTHON, /* of a thread: what its innermost open range is */
    MAREY__PATH_OPERATOR,
    MAREY__PATH_CALL, /* of a runtime or driver */
    MAREY__PATH_OTHER,
    MAREY__PATH_LATENCY, /* from a launch to the begin of its work */
    MAREY__PATH_GAP,     /* from the end of other work to the begin of work */
    MAREY__PATH_WAKE_UP, /* from the end of work to the end of the call that waited for it */
    MAREY__PATH_UNEXPLAINED,
    MAREY__N_PATH_CLASSES,
};

/* Columns of the table `steps`. */
enum marey__path_side {
    MAREY__PATH_DEVICE,
    MAREY__PATH_HOST,
    MAREY__PATH_BETWEEN, /* latency, gaps, wake-up */
    MAREY__PATH_UNKNOWN,
    MAREY__N_PATH_SIDES,
};

enum marey__path_place {
    MAREY__PATH_STEP_THREAD,
    MAREY__PATH_OTHER_THREAD,
    MAREY__PATH_STREAM,
};

/* Segments of one name. The key has no padding. */
struct marey__path_part {
    struct marey__path_key {
        uint32_t name, around; /* in `names`; MAREY__NO_NAME: none */
        uint32_t class, place;
    } key;
    uint64_t count, ns;
};

struct marey__path_parts {
    struct marey__path_part *list;
    size_t n, cap;
    struct marey__key_map by_key;
    struct marey__names names; /* texts borrowed from recordings */
};

/* Add segments. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__path_add(struct marey__path_parts *parts,
                                       const struct marey__path_key *key, uint64_t count,
                                       uint64_t ns);
void marey__path_parts_fini(struct marey__path_parts *parts);

/* A step, or the traced time of a process without steps. */
struct marey__path_step {
    uint64_t begin_ns, end_ns, number;
    uint64_t ns[MAREY__N_PATH_SIDES];
};

enum {
    /* The step's thread without an event for this long may wait for another thread. */
    MAREY__PATH_QUIET_NS = 10000,
};

/* A time in which a thread may have waited, or had an open range. */
struct marey__path_time {
    uint64_t begin_ns, end_ns;
    uint32_t thread;  /* its first lane */
    uint32_t site;    /* of a wait: the innermost range; 0: none */
    bool is_call;     /* of a wait: for the device; else the thread had no event */
    bool is_backward; /* likewise: without an event, in a range or phase of backward */
};

/* By thread, then begin. */
struct marey__path_times {
    struct marey__path_time *list;
    size_t n, cap;
};

/* Time of a thread on the path, to be divided among its ranges. */
struct marey__path_stretch {
    uint64_t begin_ns, end_ns;
    uint32_t lane;
};

/* A process while its path is found. Zero-initialize; fini() accepts a partially initialized object. */
struct marey__path_process {
    marey_recording *recording;
    size_t process;
    struct marey__work_set set;
    uint32_t main_lane; /* of the step's thread; MAREY__NO_INDEX: no thread */
    bool is_window;     /* without steps: the one step is the traced time */
    struct marey__path_step *steps;
    size_t n_steps, steps_cap;
    uint64_t n_untraced; /* steps outside of windows of GPU tracing, excluded */
    uint64_t n_inferred; /* edges between streams that follow from time only */
    struct marey__path_parts parts;
    uint32_t *site_names;  /* by site: in parts.names, plus one; 0: not numbered yet */
    uint32_t *first_lanes; /* by lane: the first lane of its thread or stream */
    uint32_t *next_lanes;  /* by lane: the next of the same, plus one; 0: none */
    uint8_t *is_autograd;  /* by thread: it runs the backward pass */
    struct marey__path_times waits, busy; /* busy: of threads other than the step's */
    struct marey__interval *traced;       /* windows of GPU tracing, in order of begin */
    size_t n_traced, traced_cap;
    struct marey__path_stretch *stretches;
    size_t n_stretches, stretches_cap;
};

/* path_host.c: fill waits, busy and traced from the log. */
MAREY_WARN_UNUSED marey_status marey__path_read_host(struct marey__path_process *p);
/* Divide the stretches among the ranges open in them: add parts. */
MAREY_WARN_UNUSED marey_status marey__path_divide_host(struct marey__path_process *p);

/* path_walk.c: walk each step; adds parts, stretches and the times of steps. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__path_walk(struct marey__path_process *p);

/* The number of a site's name, without the number of a step; MAREY__NO_NAME on out of memory. */
uint32_t marey__path_name(struct marey__path_process *p, uint32_t site);

static inline bool marey__path_is_on_gpu(const struct marey__work_set *set)
{
    return set->n_devices != 0 && set->devices[0].device >= 0;
}

#endif
