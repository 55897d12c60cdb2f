/*
 * breakdown: from recordings to computation, communication and other.
 *
 *   a process's log ── range_walk.c: a stack for each thread
 *                      work.c, work_link.c: GPU work, launches, steps ──────┐
 *                      work_host.c: of a process without a GPU ─────────────┼──> struct marey__work_set
 *                      rules.c, rules_parse.c: which class each thing is ───┘
 *   work set ── sweep.c: atoms within windows ───┬── breakdown.c, breakdown_by.c, breakdown_tables.c
 *            ── idle.c: why nothing ran ─────────┤
 *            ── collectives.c: over all ranks ───┘
 *
 * Memory grows with GPU work, launches and steps, and with ranges where they are asked for; not with the log.
 */
#ifndef MAREY_BREAKDOWN_INTERNAL_H
#define MAREY_BREAKDOWN_INTERNAL_H

#include "analyze/walk/internal.h"
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
    struct marey__rule *idle; /* which ranges tell why nothing was launched: idle_rules.c */
    size_t n_idle, idle_cap;
    struct marey__arena texts;
};

/* The rules of the file at `path` (NULL: none), then marey's own. Fini takes a half-made one, and what failed. */
MAREY_WARN_UNUSED marey_status marey__rules_load(struct marey__rules *rules, const char *path);
void marey__rules_fini(struct marey__rules *rules);
/* Add those of a text; `source` is what sentences call it. In rules_parse.c. */
MAREY_WARN_UNUSED marey_status marey__rules_parse(struct marey__rules *rules, const char *source,
                                                  const char *text, size_t len);
const char *marey__rule_look_name(enum marey__rule_look look);
const char *marey__class_name(uint8_t class);
/* "all_reduce"; "unknown". */
const char *marey__collective_name(enum marey_collective what);

/* Whether a pattern is in a text, or with * and ? in it, is all of it. Letters of either case are one. */
bool marey__pattern_fits(const char *pattern, const char *text, size_t len);

/* What a rule looks at. */
struct marey__rule_subject {
    const struct marey_site_info *site;
    uint8_t kind; /* enum marey_work_kind or MAREY__KIND_RANGE */
    bool has_collective;
    enum marey_collective what;
};
/* The number of the rule that decides. */
uint16_t marey__rules_find(const struct marey__rules *rules,
                           const struct marey__rule_subject *subject);

/* What a rule caught. */
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
    uint32_t around; /* site of the innermost range around it that is no runtime call: the operator; 0: none */
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
    bool is_joined; /* it is the wait for an earlier one, and part of that: collectives_join.c */
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

/* What a process did. Zeroed and then read; fini takes a half-made one. */
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
    uint32_t step_lane;               /* the thread that told the last one */
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
    uint64_t n_ignored_kinds; /* records of GPU lanes that are no work: annotations, synchronisation */
    int64_t main_tid;         /* of a process without GPU work: the thread that computes */
    uint64_t n_waits;         /* of that: ranges in which it waits */
    bool is_unknown;          /* of that: nothing recorded tells computation from communication */
};

struct marey__work_options {
    const struct marey__rules *rules;
    bool wants_ranges; /* keep them in marey__work_set.ranges */
    /* Keep them in marey__work_set.facts, and work of no length with the rest: whoever counts work wants all of it. */
    bool wants_facts;
};

MAREY_WARN_UNUSED marey_status marey__work_set_read(struct marey__work_set *set,
                                                    marey_recording *recording, size_t process,
                                                    const struct marey__work_options *options);
void marey__work_set_fini(struct marey__work_set *set);

/* The step under way at `ns`, in `set->steps`; MAREY__NO_INDEX for none. */
uint32_t marey__step_at(const struct marey__work_set *set, uint64_t ns);
/* The step that work belongs to: that of its launch, or where none is known of its own begin. */
static inline uint32_t marey__step_of(const struct marey__work_set *set,
                                      const struct marey__work *work)
{
    return marey__step_at(set, work->launch != MAREY__NO_INDEX ? set->launches[work->launch].begin_ns
                                                               : work->begin_ns);
}

/* Whether a site is a call of a runtime or driver ("cuda_runtime"), by its category. */
bool marey__is_runtime_call(const struct marey_site_info *site);

/*
 * Inside of reading. A record COMMUNICATION of something that began at `begin_ns`, in place of what was `said` of it
 * before (MAREY__NO_INDEX: nothing): its index, or MAREY__NO_INDEX without memory.
 */
uint32_t marey__work_set_communicate(struct marey__work_set *set, uint32_t said,
                                     const uint64_t *words, uint64_t begin_ns, uint32_t site,
                                     bool is_on_host);
/* The device, made when new; NULL without memory. Devices are asked for in ascending order. */
struct marey__device_work *marey__work_set_device(struct marey__work_set *set, int32_t device);
/* Put work in order and find each one's launch; then the class of each. False without memory. In work_link.c. */
MAREY_WARN_UNUSED bool marey__work_set_link(struct marey__work_set *set);
MAREY_WARN_UNUSED bool marey__work_set_classify(struct marey__work_set *set,
                                                struct marey__classifier *classifier);
/* Work in order of begin: for marey__sort_runs. */
bool marey__work_is_before(const void *a, const void *b);
/* The shape that a JSON object in Kineto's words tells. False when it tells none. In work_facts.c. */
MAREY_WARN_UNUSED bool marey__launch_shape_read(const char *text, size_t len,
                                                struct marey__launch_shape *shape);
/* Shape number `i` of `shapes`. */
struct marey__launch_shape marey__launch_shape_at(const struct marey__names *shapes, uint32_t i);
/*
 * Inside of reading: a piece of work has so many bytes, and a shape by the site of its details; arguments that come
 * behind it tell one, too. False without memory. `site_shapes`, by site, remembers those that were read, plus one.
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

/* Intervals in any order as their union: in order, none touching another. False without memory. */
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

/* ---- breakdown_rows.c, breakdown_by.c: one process ---- */

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

/* A row for each device and window. False without memory. */
MAREY_WARN_UNUSED bool marey__device_rows_make(struct marey__device_rows *rows,
                                               const struct marey__work_set *set,
                                               const struct marey__device_windows *windows);
/* A row for each step, range, stream or group of each device. False without memory. */
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

#endif
