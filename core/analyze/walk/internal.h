/*
 * walk: the replay of a process's events.
 *
 *   process_walk.c            one process: its lanes, names (site_names.c), iterations
 *   lane_walk.c, lane_plain.c its visitor for sums; the fast case
 *   lane_replay.h, .c         the one replay of a lane: rules for names, gaps, unmatched ends, depth
 *   range_walk.c              open ranges of each thread, for analyses that need single events instead of sums
 *   call_tree.c, pairs.c      paths to nodes; sets of pairs
 *   async_match.c, progress.c, iteration_walk.c, iteration_stats.c, gpu_walk.c   async ranges, steps, GPU activity
 *   series.c, tasks.c, process_runs.c   times per iteration; threads over processes; processes of one run
 *
 * Input: batches of words (read/). Output: sums and callbacks per process. Each process has its own name numbers; code
 * that merges processes maps them. Strings belong to the recordings. Does not know log files, tables or output.
 */
#ifndef MAREY_ANALYZE_WALK_INTERNAL_H
#define MAREY_ANALYZE_WALK_INTERNAL_H

#include "analyze/walk/lane_replay.h"
#include "base/internal.h"
#include "report/internal.h"
#include "switchboard/internal.h"
#include <marey/recording.h>
#include <marey/report.h>
#include <marey/table.h>

/* ---- site_names.c ---- */

/* Whether `name` passes the filter (NULL: all): a pattern if it contains one of * ? [, else a substring. */
bool marey__name_matches(const char *filter, const char *name, size_t len);

/*
 * Whether a range of this name waits for others: communication, barriers, synchronization. A long wait is an effect of
 * another rank, never the cause.
 */
bool marey__name_is_wait(const char *name, size_t len);

/* All properties that identify a site, as one key: processes of one program share their sites. */
void marey__site_key(struct marey__buf *key, const struct marey_site_info *site);
/* The length of a function's name, without the " (file:line)" that importers of profiles append. */
size_t marey__function_name_len(const struct marey_site_info *site);

/*
 * Number the names of a process's sites for a replay; sites without a name, and unknown ones, share "(unnamed)".
 * Returns false on out of memory. The caller frees `site_names`. In process_walk.c.
 */
MAREY_WARN_UNUSED bool marey__replay_init(struct marey__replay *replay, marey_recording *recording,
                                          size_t process, struct marey__names *names);

/* ---- call_tree.c: nodes are (parent, name) ---- */

/*
 * Below this depth, ranges of one name share one node below the last regular node ("folded") instead of one per path,
 * so that a runaway recursion does not create a tree as large as the recording.
 */
enum { MAREY__TREE_DEPTH = 400, MAREY__TREE_NODES = 1 << 22 };

struct marey__node {
    uint32_t name, parent; /* the key */
    uint64_t count, total_ns, self_ns;
    uint32_t depth;    /* the root has 0 */
    uint32_t n_active; /* folded nodes: how many times it is on the stack */
    uint32_t next_inside,
        next_behind;   /* the nodes begun last after its begin, and after its end; 0: unknown */
    bool is_outermost; /* no ancestor has this name */
    uint32_t round;    /* number of ended iterations at its last change */
    uint64_t self_before_ns; /* if `round` is the walk's: self time up to the end of the latest iteration */
};

struct marey__tree {
    struct marey__node *nodes; /* the root is 0; parents come before their children */
    size_t n, cap;
    struct marey__key_map by_key; /* without the root */
};

MAREY_WARN_UNUSED bool marey__tree_init(struct marey__tree *tree);
void marey__tree_fini(struct marey__tree *tree);
/* A new node; 0 on out of memory. When the tree is full, ranges of all names share one node, named `other`. */
uint32_t marey__tree_add(struct marey__tree *tree, uint32_t parent, uint32_t name, uint32_t other);
/* Add counts and times of another tree, whose name i is `names[i]` here. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__tree_join(struct marey__tree *into, const struct marey__tree *tree,
                                        const uint32_t *names, uint32_t other);
/* The name of ranges without a node. */
#define MAREY__OTHER_RANGES "(other)"

/* The child of `parent` named `name`, created if needed; 0 on out of memory. */
static inline uint32_t marey__tree_child(struct marey__tree *tree, uint32_t parent, uint32_t name,
                                         uint32_t other)
{
    const uint64_t key = marey__pair_key(name, parent);
    const uint32_t number = MAREY__MAP_FIND(&tree->by_key, tree->nodes, key);
    return number != 0 ? number - 1 : marey__tree_add(tree, parent, name, other);
}

/* Compare two siblings: negative if `a` comes first. */
typedef int marey__sibling_order(const struct marey__node *a, const struct marey__node *b,
                                 const void *ctx);

/*
 * The nodes with `keep` set (by node), and their ancestors, depth first with siblings in order, into `order`, which
 * needs space for all. Returns how many, or MAREY__NO_ORDER on out of memory.
 */
#define MAREY__NO_ORDER SIZE_MAX
MAREY_WARN_UNUSED size_t marey__tree_order(const struct marey__tree *tree, uint8_t *keep,
                                           marey__sibling_order *compare, const void *ctx,
                                           uint32_t *order);

/* ---- async_match.c: the two ends of async ranges, in any order ---- */

struct marey__async_half {
    uint64_t handle; /* 0: an empty slot */
    uint64_t ns;
    uint32_t name;
    uint32_t lane;
    bool is_begin;
};

struct marey__async_match {
    struct marey__async_half *slots;
    size_t n, n_slots;
    uint64_t n_dropped; /* beyond the limit on waiting halves */
};

/*
 * Add one half. Returns true if the other half was waiting: `*other` is that one, now removed. Otherwise this half
 * waits; `*failed` is set on out of memory.
 */
bool marey__async_match(struct marey__async_match *match, const struct marey__async_half *half,
                        struct marey__async_half *other, bool *failed);
void marey__async_match_fini(struct marey__async_match *match);

/* ---- pairs.c: a set of pairs of numbers ---- */

struct marey__pairs {
    uint64_t *pairs; /* both in one */
    size_t n, cap;
    struct marey__key_map by_key;
};

/* Add (a, b). Returns true if it is new; sets `*failed` on out of memory. */
bool marey__pairs_add(struct marey__pairs *pairs, uint32_t a, uint32_t b, bool *failed);
void marey__pairs_fini(struct marey__pairs *pairs);

/* ---- progress.c: iterations, epochs and phases of a process, from its records in order of time ---- */

enum marey__span_kind { MAREY__SPAN_ITERATION, MAREY__SPAN_EPOCH, MAREY__SPAN_PHASE };

enum marey__iteration_flag {
    MAREY__ITERATION_WARMUP = 1,
    /* Events or its begin were lost: its times are incomplete. */
    MAREY__ITERATION_CUT = 2,
};

/* A span that has ended. */
struct marey__span {
    enum marey__span_kind kind;
    uint64_t begin_ns, end_ns;
    uint64_t number;       /* the program's number; not for phases */
    uint32_t site;         /* of a phase */
    uint32_t flags;        /* of an iteration */
    double samples;        /* of an iteration, or the sum over an epoch; 0: unknown */
    uint64_t n_iterations; /* ended within the epoch or phase */
    bool is_open;          /* an epoch or phase that the process never ended */
};

enum { MAREY__HINT_LOADERS = 16 };
struct marey__progress {
    uint64_t begin_ns; /* of the current iteration, as far as known */
    uint64_t next_number, begun_number;
    bool is_begun;                   /* by a begin record, for `begun_number` */
    struct marey__span epoch, phase; /* current, if `is_open` */
    struct marey__step_plan plan;    /* for steps from hints */
    uint64_t n_updates;
    double step_samples[MAREY__HINT_LOADERS]; /* of the batches since the last step, by loader */
    uint32_t last_loader;                     /* that delivered a batch */
    bool has_batch;                           /* delivered since the last request */
};

/* The number of the loader, of a hint on batches; 0: unknown. */
static inline uint32_t marey__hint_loader(uint64_t word)
{
    return (uint32_t)(word >> 32);
}
/* `first_ns` is the process's first event. */
void marey__progress_init(struct marey__progress *progress, const struct marey_process *process,
                          uint64_t first_ns);
/* Whether a record is about the whole process. */
static inline bool marey__is_progress(uint32_t record_type)
{
    return (record_type >= MAREY_RECORD_ITERATION && record_type <= MAREY_RECORD_PHASE) ||
           record_type == MAREY_RECORD_STEP_HINT;
}
/* Process such a record. Returns true if it ends a span, which is then in `*span`. */
bool marey__progress_take(struct marey__progress *progress, const uint64_t *words, uint64_t ns,
                          struct marey__span *span);
/* At the end of the process: returns each open span, until false. */
bool marey__progress_finish(struct marey__progress *progress, uint64_t last_ns,
                            struct marey__span *span);

/* ---- gpu_walk.c: the work of streams, by name and by the range that launched it ---- */

/* Work of one name and kind in a process. */
struct marey__work_stats {
    struct marey__sketch calls;
    uint64_t bytes, bytes_ns; /* of work with known bytes */
    uint32_t name, kind;      /* enum marey_work_kind */
    uint32_t next;            /* of the same name and another kind, plus one; 0: none */
    uint32_t last_lane;       /* the lane seen last; MAREY__NO_LANE at first */
    uint32_t n_streams, n_devices;
};
#define MAREY__NO_LANE UINT32_MAX

/* Work launched in a range itself, excluding nested ranges. */
struct marey__gpu_time {
    uint64_t count, ns;
};

/* By correlation: the launching range, or work that waits for its launch. */
struct marey__gpu_launch {
    uint64_t correlation;
    uint32_t lane, node; /* lane MAREY__NO_LANE: unknown so far */
    struct marey__gpu_time waiting;
};

struct marey__gpu_walk {
    bool has_streams; /* without streams, launches are not stored */
    struct marey__work_stats *works;
    size_t n_works, works_cap;
    uint32_t *by_name;         /* the first of `works` for a name, plus one; NULL while empty */
    struct marey__pairs where; /* pairs of a work and its stream, and of a work and its device */
    struct marey__gpu_launch *launches;
    size_t n_launches, launches_cap;
    struct marey__key_map by_correlation;
};

/* Whether it is work, rather than a record about work. */
static inline bool marey__is_work(uint32_t kind)
{
    return kind >= MAREY_WORK_KERNEL && kind <= MAREY_WORK_SET;
}

/* "kernel", "copy": for tables and exports. In gpu_tables.c. */
const char *marey__work_kind_name(uint32_t kind);
struct marey__process_walk;
struct marey__lane_walk;
void marey__gpu_walk_init(struct marey__process_walk *walk);
void marey__gpu_walk_fini(struct marey__gpu_walk *gpu);
/* Process a batch of a stream. */
MAREY_WARN_UNUSED marey_status marey__gpu_walk_batch(struct marey__process_walk *walk,
                                                     const struct marey_batch *batch);
/* Record that the lane's innermost open range launched the work of a correlation. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__gpu_walk_launch(struct marey__process_walk *walk,
                                              struct marey__lane_walk *lane, uint64_t correlation);

/* ---- one process ---- */

struct marey__counter {
    uint64_t count, last_ns;
    double min, max, sum, last;
};

/* The time of a name in the current iteration; outdated if `round` is not the walk's. */
struct marey__name_time {
    uint64_t ns;
    uint32_t round;
};

/* An iteration that has ended, and the names that ran in it, on all threads together. */
struct marey__iteration {
    struct marey__span span;
    const uint32_t *ran; /* `n_ran` names */
    size_t n_ran;
    const struct marey__name_time *times; /* by name; valid for those in `ran` */
    uint64_t no_range_ns; /* of the thread that records iterations, while it has no open range */
};

/*
 * Called at the end of each span of a process; `iteration` is NULL for epochs and phases. Returns false on out of
 * memory.
 */
typedef bool marey__span_visitor(void *ctx, const struct marey__span *span,
                                 const struct marey__iteration *iteration);

/* iteration_walk.c: the time of the ranges of all lanes in each iteration. */
struct marey__iteration_walk {
    struct marey__progress progress;
    struct marey__name_time *times; /* by name */
    uint32_t *ran;                  /* names with a time in this round */
    size_t n_ran;
    uint32_t round;
    uint32_t n_ended;                /* iterations */
    bool is_cut;                     /* events were lost since the iteration began */
    uint32_t n_blind;                /* lanes whose next words are missing */
    struct marey__lane_walk **lanes; /* with words in this round, or with an open range */
    size_t n_lanes, lanes_cap;
    const struct marey__lane_walk *counting; /* the lane with the iteration records; NULL: none yet */
    uint64_t covered_ns;                     /* its time in ranges at the begin of the iteration */
    marey__span_visitor *visitor;
    void *visitor_ctx;
};

/* Values of one name, or of whole iterations: one per iteration in which it ran. */
struct marey__iteration_values {
    struct marey__sketch ns;
    marey__u128 sum_of_squares; /* integers, so the order does not matter */
    uint64_t first_ns; /* of the sum: first iterations of processes without marked warm-up, excluded from shares */
};

/* One of the longest iterations, and the names with at least a hundredth of its time. */
enum { MAREY__N_LONGEST = 16, MAREY__N_LONGEST_NAMES = 256 };
struct marey__long_iteration {
    struct marey__span span;
    uint64_t ns;
    struct marey__long_part {
        uint32_t name;
        uint64_t ns;
    } * parts; /* space for MAREY__N_LONGEST_NAMES */
    size_t n_parts;
};

/*
 * iteration_stats.c: sums over the iterations of one process. `by_name` and `whole` exclude warm-up and incomplete
 * iterations. Four bytes per iteration; the rest grows with names and epochs.
 */
struct marey__iteration_stats {
    uint64_t n_iterations; /* all */
    uint64_t n_warmup, n_cut;
    struct marey__iteration_values whole, no_range;
    struct marey__iteration_values *by_name; /* NULL while empty */
    uint64_t n_first; /* 1: the first one that counts is in `first_ns` of values */
    /*
     * The steady part: from the end of the warm-up, or of the first iteration if none is marked, to the end of the last
     * iteration. It exists only if `n_steady` iterations have ended in it.
     */
    uint64_t n_steady, steady_begin_ns, steady_end_ns;
    double samples;      /* of iterations in `whole` with known samples */
    uint64_t samples_ns; /* their duration */
    /* Durations in nanoseconds by place; 0: excluded, as warm-up. Limited in number. */
    float *durations;
    size_t n_durations, durations_cap;
    uint64_t first_place; /* of the iteration with number 0 since the last reset */
    uint64_t place;       /* of the latest one; UINT64_MAX: it was left out */
    uint64_t last_number;
    struct marey__long_iteration longest[MAREY__N_LONGEST]; /* unordered */
    size_t n_longest;
    struct marey__span *epochs;
    size_t n_epochs, epochs_cap;
    struct marey__phase_stats {
        uint64_t count, total_ns;
        uint64_t n_iterations; /* within the phase, or that contain it */
        uint64_t steady_ns;    /* of the total: in the steady part */
        uint64_t late_ns;      /* after the latest iteration; assigned when the next one ends */
    } * phases;                /* by name; NULL while empty */
    uint64_t *phase_ends;      /* by name: latest end since the last iteration; 0: none */
    uint32_t *ended;           /* names with such an end */
    size_t n_ended;
};

struct marey__lane_walk {
    struct marey__lane_stack stack; /* always has space for one more; must be the first member */
    struct marey__tree tree;
    struct marey__gpu_time *gpu; /* by node of `tree`; may cover fewer nodes, or none */
    size_t n_gpu, gpu_cap;
    /* For a further lane of an imported thread, with overlapping ranges: the thread's first lane; else NULL. */
    const struct marey__lane_walk *first; /* set after the walk has run */
    uint64_t *steady_from; /* by node: self time before the steady part; NULL: no steady part */
    size_t n_steady_from;  /* later nodes were added within it */
    /* a further lane corrected by COVERED; without correction (earlier versions) self times count as 0 */
    bool has_self_times;
    bool is_listed; /* in marey__iteration_walk.lanes */
    bool is_blind;  /* its next words are missing */
};

/*
 * Receives single events while the walk adds them up, so that they are read only once. Each function returns false on
 * out of memory, which ends the walk; all but `call` may be NULL.
 */
struct marey__walk_tap {
    /* A range has ended; the lane's stack is as high as before it began. */
    bool (*call)(void *ctx, const struct marey__lane_walk *lane, const struct marey__frame *frame,
                 uint64_t end_ns);
    /* The same for a range cut by a gap; `last_ns` is the last timestamp before it. */
    bool (*cut)(void *ctx, const struct marey__lane_walk *lane, const struct marey__frame *frame,
                uint64_t last_ns);
    bool (*mark)(void *ctx, const struct marey__lane_walk *lane, uint32_t site, uint64_t ns);
    /* The begin of a range with a payload, before it is on the stack, or any record that a visitor's `record` gets. */
    bool (*record)(void *ctx, const struct marey__lane_walk *lane, const uint64_t *words,
                   uint64_t ns);
    /* As for a visitor. */
    bool (*gap)(void *ctx, const struct marey__lane_walk *lane, uint64_t ns, uint64_t n_events);
    /* Some records of a GPU stream. */
    bool (*gpu)(void *ctx, const struct marey_batch *batch);
};

struct marey__process_walk {
    marey_recording *recording;
    uint32_t recording_number; /* within the summary, from 0 */
    const struct marey_process *info;
    struct marey__names names;
    struct marey__replay replay;
    uint32_t other;               /* the name of ranges without a node */
    struct marey__sketch *ranges; /* these four by name */
    struct marey__sketch *async;  /* NULL while empty */
    struct marey__counter *counters;
    uint64_t *marks;
    struct marey__lane_walk **lanes; /* by number; NULL: no events */
    struct marey__async_match pending;
    struct marey__gpu_walk gpu;
    struct marey__iteration_walk iterations;
    struct marey__iteration_stats iteration_stats; /* if marey__iteration_stats_take is the visitor */
    const struct marey__walk_tap *tap;             /* NULL: none */
    void *tap_ctx;
    uint64_t n_words_done;
    uint64_t *progress; /* words done, shared by all walks; NULL: no progress */
    void (*tell)(void *ctx);
    void *tell_ctx;
};

/* fini() accepts a partially initialized one. */
MAREY_WARN_UNUSED marey_status marey__process_walk_init(struct marey__process_walk *walk,
                                                        marey_recording *recording, size_t process);
MAREY_WARN_UNUSED marey_status marey__process_walk_run(struct marey__process_walk *walk);
void marey__process_walk_fini(struct marey__process_walk *walk);

/* Process one batch of the lane. */
MAREY_WARN_UNUSED marey_status marey__lane_walk_batch(struct marey__process_walk *walk,
                                                      struct marey__lane_walk *lane,
                                                      const struct marey_batch *batch);
/*
 * Process plain begins and ends only, from `word` of the batch on; returns the first other word. For walks without a
 * tap, while the lane has no frames beyond the limit and no repeat. In lane_plain.c.
 */
const uint64_t *marey__lane_walk_plain(struct marey__process_walk *walk,
                                       struct marey__lane_walk *lane,
                                       const struct marey_batch *batch, const uint64_t *word);
/* A mark, counter or async event with its record. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__process_walk_record(struct marey__process_walk *walk, uint32_t lane,
                                                  const uint64_t *words, uint64_t ns);

/* Start without an iteration. Returns false on out of memory. */
bool marey__iteration_walk_init(struct marey__process_walk *walk);
void marey__iteration_walk_fini(struct marey__iteration_walk *iterations);
/* Call before walking a batch of the lane. Returns false on out of memory. */
bool marey__iteration_walk_batch(struct marey__process_walk *walk, struct marey__lane_walk *lane,
                                 const struct marey_batch *batch);
/* A record about the whole process. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__iteration_walk_record(struct marey__process_walk *walk,
                                                    const struct marey__lane_walk *lane,
                                                    const uint64_t *words, uint64_t ns);
/* Call after the last batch. */
MAREY_WARN_UNUSED marey_status marey__iteration_walk_finish(struct marey__process_walk *walk);

/* A visitor of spans that fills `iteration_stats`; `ctx` is the process walk. */
bool marey__iteration_stats_take(void *ctx, const struct marey__span *span,
                                 const struct marey__iteration *iteration);
void marey__iteration_stats_fini(struct marey__iteration_stats *stats, size_t n_names);
MAREY_WARN_UNUSED bool marey__iteration_values_merge(struct marey__iteration_values *into,
                                                     const struct marey__iteration_values *from);

/* A range, outermost of its name, ran from `start_ns` to `end_ns`: add its part within the current iteration. */
static inline void marey__iteration_add(struct marey__iteration_walk *it, uint32_t name,
                                        uint64_t start_ns, uint64_t end_ns)
{
    struct marey__name_time *time = &it->times[name];
    const uint64_t from = MAREY__MAX(start_ns, it->progress.begin_ns);
    if (MAREY_UNLIKELY(time->round != it->round)) {
        *time = (struct marey__name_time){.round = it->round};
        it->ran[it->n_ran++] = name;
    }
    time->ns += end_ns > from ? end_ns - from : 0;
}

/* Add self time of a range that ended after `n_ended` iterations. */
static inline void marey__node_add_self(struct marey__node *node, uint32_t n_ended, uint64_t ns)
{
    if (MAREY_UNLIKELY(node->round != n_ended)) {
        node->round = n_ended;
        node->self_before_ns = node->self_ns;
    }
    node->self_ns += ns;
}

/* Self time up to the end of the latest of `n_ended` iterations. */
static inline uint64_t marey__node_self_before(const struct marey__node *node, uint32_t n_ended)
{
    return node->round == n_ended ? node->self_before_ns : node->self_ns;
}

/* Self time of a node in the steady part; 0 if there is none. Call after the walk. */
uint64_t marey__lane_steady_ns(const struct marey__process_walk *walk,
                               const struct marey__lane_walk *lane, size_t node);

static inline uint32_t marey__name_of_site(const struct marey__process_walk *walk, uint32_t site)
{
    return marey__replay_name(&walk->replay, site);
}

#define MAREY__NO_INDEX UINT32_MAX

/* ---- range_walk.c ---- */

/*
 * Replays the threads of a process in batches for a visitor; `record` also gets records of streams, with an empty
 * stack. Ranges still open at the end of the log are cut there.
 */
struct marey__range_walk {
    marey_recording *recording;
    const struct marey_process *process;
    const struct marey__lane_visitor *visitor;
    void *ctx;
    struct marey__lane_stack *lanes; /* by number */
    struct marey__replay replay;
    uint64_t first_ns, last_ns; /* of all words so far; UINT64_MAX and 0 without any */
};
/* Visit the process in order. The caller sets the first four members. */
MAREY_WARN_UNUSED marey_status marey__range_walk(struct marey__range_walk *walk);

/* ==== tasks ==== */

/* tasks: runs one function for each of several items, such as logs of processes, in parallel. */

/* Item `i`, from 0, on any thread. */
typedef marey_status marey__task(void *ctx, size_t i);

struct marey__tasks {
    marey__task *run;
    void *ctx;
    size_t n;
    size_t n_jobs;            /* threads; 0: one per CPU core */
    marey_progress *progress; /* called with the completed share, on the caller's thread; NULL: none */
    void *progress_ctx;
};

/* Run all items, even after a failure. Returns the first failure, with its message, or MAREY_OK. */
MAREY_WARN_UNUSED marey_status marey__tasks_run(const struct marey__tasks *tasks);

/* process_runs.c: groups processes that were started together. */

struct marey__process_run {
    const char *id; /* borrowed from the recording */
    uint64_t start_unix_ns;
    uint32_t number; /* in the order of discovery */
};

struct marey__process_runs {
    struct marey__process_run *list;
    size_t n, cap;
};

/* The number of a process's run, added to the list if new. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__process_runs_find(struct marey__process_runs *runs,
                                                const struct marey_process *process, uint32_t *out);
/* Order by start; also how many runs come before `run`, a number in an unsorted list. */
bool marey__process_run_is_before(const struct marey__process_run *a,
                                  const struct marey__process_run *b);
uint32_t marey__process_runs_place(const struct marey__process_runs *runs, uint32_t run);

/* stacks.c: times by path, of recordings and of those they are compared with. */

enum marey__side { MAREY__NEW, MAREY__OLD, MAREY__N_SIDES };

struct marey__stack_times {
    uint64_t count, self_ns;
    uint64_t total_ns; /* self times of it and its descendants, including open ranges */
};

/* Options of stacks. */
struct marey__stacks_options {
    const char *filter; /* ranges it excludes count as time of the range around them */
    /* Rewrites a range's name; NULL: unchanged. Names that become equal are merged. */
    void (*clean)(struct marey__buf *buf, const char *text, size_t len);
    /* The outermost frame for a thread; NULL: none. */
    void (*label)(struct marey__buf *buf, const struct marey_process *process,
                  const struct marey_lane_info *lane);
    bool numbers_labels; /* a label already used in this recording gets " #2" appended; else it is shared */
    marey_progress *progress;
    void *progress_ctx;
    uint64_t n_words; /* of all recordings to be added, for the progress */
};

struct marey__stacks {
    const struct marey__stacks_options *options;
    struct marey__names names;
    struct marey__arena texts;
    struct marey__tree tree; /* node 0 is the whole; the sums are in `times`, not in the nodes */
    struct marey__stack_times *times[MAREY__N_SIDES]; /* by node */
    size_t n_times[MAREY__N_SIDES], cap[MAREY__N_SIDES];
    uint64_t n_processes[MAREY__N_SIDES], n_threads[MAREY__N_SIDES], lost_events[MAREY__N_SIDES];
    bool has_async;      /* there are async ranges, which stacks cannot contain */
    uint64_t n_too_deep; /* ranges excluded, nested too deep */
    uint64_t n_words_done;
};

/* fini() accepts a partially initialized one. */
MAREY_WARN_UNUSED marey_status marey__stacks_init(struct marey__stacks *stacks,
                                                  const struct marey__stacks_options *options);
void marey__stacks_fini(struct marey__stacks *stacks);
/* Add recordings, which must outlive the stacks. */
MAREY_WARN_UNUSED marey_status marey__stacks_add(struct marey__stacks *stacks, enum marey__side side,
                                                 marey_recording *const *recordings, size_t n);
/* Compute totals after adding everything. */
MAREY_WARN_UNUSED marey_status marey__stacks_finish(struct marey__stacks *stacks);

/* ==== series ==== */

/*
 * Series: the time of each range in each iteration of one process, as arrays, for analyses that need single values, not
 * their distribution (comparisons, the export of the series).
 *
 * Memory: 4 bytes per name and iteration up to the last one in which it ran, plus 17 per iteration. 50 names
 * and a million iterations are 217 MB, up to twice that because arrays double. Nothing else grows with the recording.
 */

struct marey__series_name {
    const char *text; /* borrowed from the recording */
    size_t len;
    /*
     * By iteration: nanoseconds of the range in it, on all threads together, recursion counted once. 24 bits of
     * precision. 0: it did not run.
     */
    float *ns;
    uint64_t n_ran; /* iterations with a time, including warm-up and cut ones */
};

struct marey__series {
    size_t n_iterations; /* ended, in order of time */
    uint8_t *flags;      /* by iteration: enum marey__iteration_flag */
    uint64_t *numbers;   /* by iteration, the program's number; may go back if the count is reset */
    float *ns;           /* by iteration: duration */
    float *samples;      /* by iteration; 0: unknown */
    size_t n_names;      /* that ran in some iteration, unordered */
    struct marey__series_name *names;
};

/*
 * Read process `process` of the recording, which owns the texts. A process without iterations gives an empty series.
 * MAREY_ENOMEM, with a message, if it would take more than `max_bytes` (0: 4 GiB). On failure `series` is empty, and
 * fini is allowed. Different threads may read different processes at the same time.
 */
MAREY_WARN_UNUSED marey_status marey__series_read(struct marey__series *series,
                                                  marey_recording *recording, size_t process,
                                                  uint64_t max_bytes);
void marey__series_fini(struct marey__series *series);

#endif
