/*
 * walk: the replay of a process's events.
 *
 *   process_walk.c            one process: its lanes, names, iterations
 *   lane_walk.c, lane_plain.c its visitor for sums; the fast case
 *   lane_replay.h             the one replay of a lane: rules for names, gaps, unmatched ends, depth
 *   range_walk.c              open ranges of each thread, for analyses that need times instead of sums
 *   call_tree.c, pairs.c      paths to nodes; sets of pairs
 *   async_match.c, progress.c, iteration_walk.c, iteration_stats.c, gpu_walk.c   async ranges, steps, GPU activity
 *   series.c, tasks.c, process_runs.c   times per iteration; threads over processes; processes of one run
 *
 * Input: batches of words (read/). Output: sums and callbacks per process. A process numbers its names for itself;
 * code that merges processes maps them. Strings are lent by the recordings. Knows no table and no output.
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

/* Whether `name` passes the filter (NULL: all do): a pattern when it has one of * ? [, else a word found anywhere. */
bool marey__name_matches(const char *filter, const char *name, size_t len);

/*
 * Whether a range of this name waits for others: communication, barriers, synchronization. That a rank waits long is an
 * effect of what another one does, never the cause.
 */
bool marey__name_is_wait(const char *name, size_t len);

/* Everything that makes a site one, as one text: processes of one program share theirs. */
void marey__site_key(struct marey__buf *key, const struct marey_site_info *site);
/* The length of a function's name, without the " (file:line)" that importers of profiles append. */
size_t marey__function_name_len(const struct marey_site_info *site);

/*
 * Number the names of a process's sites for a replay; sites without a name, and unknown ones, share "(unnamed)". Returns
 * false on out of memory. The caller frees `site_names`. In process_walk.c.
 */
MAREY_WARN_UNUSED bool marey__replay_init(struct marey__replay *replay, marey_recording *recording,
                                          size_t process, struct marey__names *names);

/* ---- call_tree.c: nodes are (parent, name) ---- */

/*
 * Below this depth ranges no longer get a node for every path: all of one name share one below the last proper node
 * ("folded"), so that a runaway recursion does not become a tree as large as the recording.
 */
enum { MAREY__TREE_DEPTH = 400, MAREY__TREE_NODES = 1 << 22 };

struct marey__node {
    uint32_t name, parent; /* the key */
    uint64_t count, total_ns, self_ns;
    uint32_t depth;    /* of the root: 0 */
    uint32_t n_active; /* folded nodes: how many times it is on the stack */
    uint32_t next_inside,
        next_behind;   /* begun next when it had begun, when it had ended; 0: not known */
    bool is_outermost; /* no ancestor has this name */
    uint32_t round;    /* iterations that had ended when it last changed */
    uint64_t self_before_ns; /* where `round` is the walk's: self time up to the end of the latest iteration */
};

struct marey__tree {
    struct marey__node *nodes; /* the root is 0; parents come before their children */
    size_t n, cap;
    struct marey__key_map by_key; /* but for the root */
};

MAREY_WARN_UNUSED bool marey__tree_init(struct marey__tree *tree);
void marey__tree_fini(struct marey__tree *tree);
/* A new node; 0 on out of memory. When the tree is full, ranges of all names share one node, named `other`. */
uint32_t marey__tree_add(struct marey__tree *tree, uint32_t parent, uint32_t name, uint32_t other);
/* Add counts and times of another tree, whose name i is `names[i]` here. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__tree_join(struct marey__tree *into, const struct marey__tree *tree,
                                        const uint32_t *names, uint32_t other);
/* How ranges are called that have found no node. */
#define MAREY__OTHER_RANGES "(other)"

/* The child of `parent` called `name`, made when new; 0 on out of memory. */
static inline uint32_t marey__tree_child(struct marey__tree *tree, uint32_t parent, uint32_t name,
                                         uint32_t other)
{
    const uint64_t key = marey__pair_key(name, parent);
    const uint32_t number = MAREY__MAP_FIND(&tree->by_key, tree->nodes, key);
    return number != 0 ? number - 1 : marey__tree_add(tree, parent, name, other);
}

/* Which of two siblings comes first: negative for `a`. */
typedef int marey__sibling_order(const struct marey__node *a, const struct marey__node *b,
                                 const void *ctx);

/*
 * The nodes for which `keep` (by node) is set, and with them their parents, depth first and siblings in order, into
 * `order`, which has room for all. MAREY__NO_ORDER on out of memory, else how many.
 */
#define MAREY__NO_ORDER SIZE_MAX
MAREY_WARN_UNUSED size_t marey__tree_order(const struct marey__tree *tree, uint8_t *keep,
                                           marey__sibling_order *compare, const void *ctx,
                                           uint32_t *order);

/* ---- async_match.c: the two ends of async ranges, which may come in any order ---- */

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
    uint64_t n_dropped; /* beyond what is kept waiting */
};

/*
 * Offer one half. True when its other half was waiting: `*other` is that one, which no longer waits. Otherwise it waits
 * itself; `*failed` is set on out of memory.
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

/* Add (a, b). Returns true when it is new; `*failed` is set on out of memory. */
bool marey__pairs_add(struct marey__pairs *pairs, uint32_t a, uint32_t b, bool *failed);
void marey__pairs_fini(struct marey__pairs *pairs);

/* ---- progress.c: iterations, epochs and phases of a process, from its records in order of time ---- */

enum marey__span_kind { MAREY__SPAN_ITERATION, MAREY__SPAN_EPOCH, MAREY__SPAN_PHASE };

enum marey__iteration_flag {
    MAREY__ITERATION_WARMUP = 1,
    /* Events were lost in it, or its begin was: its times are not complete. */
    MAREY__ITERATION_CUT = 2,
};

/* One that has ended. */
struct marey__span {
    enum marey__span_kind kind;
    uint64_t begin_ns, end_ns;
    uint64_t number;       /* as the program counts it; not of phases */
    uint32_t site;         /* of a phase */
    uint32_t flags;        /* of an iteration */
    double samples;        /* of an iteration, or of all in an epoch; 0: not known */
    uint64_t n_iterations; /* that ended in an epoch or phase */
    bool is_open;          /* an epoch or phase that the process never ended */
};

struct marey__progress {
    uint64_t begin_ns; /* of the iteration under way, as far as is known */
    uint64_t next_number, begun_number;
    bool is_begun;                   /* by a record of its own, for `begun_number` */
    struct marey__span epoch, phase; /* under way, where `is_open` */
    struct marey__step_plan plan;    /* of steps that hints show */
    uint64_t n_updates;
    double step_samples; /* of the batches since the last step */
    bool has_batch;      /* delivered since the last request */
};

/* `first_ns` is the process's first event. */
void marey__progress_init(struct marey__progress *progress, const struct marey_process *process,
                          uint64_t first_ns);
/* Whether a record is about the whole process. */
static inline bool marey__is_progress(uint32_t record_type)
{
    return (record_type >= MAREY_RECORD_ITERATION && record_type <= MAREY_RECORD_PHASE) ||
           record_type == MAREY_RECORD_STEP_HINT;
}
/* Take such a record, whole. True when something ends by it, which is then in `*span`. */
bool marey__progress_take(struct marey__progress *progress, const uint64_t *words, uint64_t ns,
                          struct marey__span *span);
/* At the end of the process: what is still open, one after the other, until false. */
bool marey__progress_finish(struct marey__progress *progress, uint64_t last_ns,
                            struct marey__span *span);

/* ---- gpu_walk.c: the work of streams, by name and by the range that launched it ---- */

/* Work of one name and kind in a process. */
struct marey__work_stats {
    struct marey__sketch calls;
    uint64_t bytes, bytes_ns; /* of those that tell their bytes */
    uint32_t name, kind;      /* enum marey_work_kind */
    uint32_t next;            /* of the same name and another kind, plus one; 0: none */
    uint32_t last_lane;       /* on which it was met last; MAREY__NO_LANE at first */
    uint32_t n_streams, n_devices;
};
#define MAREY__NO_LANE UINT32_MAX

/* What was launched in a range itself, not in those within it. */
struct marey__gpu_time {
    uint64_t count, ns;
};

/* By correlation: who launched, or what waits for its launch to come. */
struct marey__gpu_launch {
    uint64_t correlation;
    uint32_t lane, node; /* lane MAREY__NO_LANE: not known so far */
    struct marey__gpu_time waiting;
};

struct marey__gpu_walk {
    bool has_streams; /* else launches lead nowhere, and none is remembered */
    struct marey__work_stats *works;
    size_t n_works, works_cap;
    uint32_t *by_name; /* the first of `works` for a name, plus one; NULL until there is one */
    struct marey__pairs where; /* a work and its stream; a work and its device */
    struct marey__gpu_launch *launches;
    size_t n_launches, launches_cap;
    struct marey__key_map by_correlation;
};

/* Whether it is work at all, rather than something said about it. */
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
/* A batch of a stream. */
MAREY_WARN_UNUSED marey_status marey__gpu_walk_batch(struct marey__process_walk *walk,
                                                     const struct marey_batch *batch);
/* The range on top of the lane's stack has launched the work of a correlation. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__gpu_walk_launch(struct marey__process_walk *walk,
                                              struct marey__lane_walk *lane, uint64_t correlation);

/* ---- one process ---- */

struct marey__counter {
    uint64_t count, last_ns;
    double min, max, sum, last;
};

/* How long a range of some name ran in the iteration under way; of an earlier one when `round` is not the walk's. */
struct marey__name_time {
    uint64_t ns;
    uint32_t round;
};

/* An iteration that has ended, and the names that ran in it, on all threads together. */
struct marey__iteration {
    struct marey__span span;
    const uint32_t *ran; /* names, `n_ran` of them */
    size_t n_ran;
    const struct marey__name_time *times; /* by name; holds for those in `ran` */
    uint64_t no_range_ns; /* of the thread that counts, while it has no range open */
};

/* Called for each span of a process when it ends; `iteration` is NULL for epochs and phases. Returns false on out of memory. */
typedef bool marey__span_visitor(void *ctx, const struct marey__span *span,
                                 const struct marey__iteration *iteration);

/* iteration_walk.c: what the ranges of all lanes take in each iteration. */
struct marey__iteration_walk {
    struct marey__progress progress;
    struct marey__name_time *times; /* by name */
    uint32_t *ran;                  /* names that have a time in this round */
    size_t n_ran;
    uint32_t round;
    uint32_t n_ended;                /* iterations */
    bool is_cut;                     /* events were lost since the iteration began */
    uint32_t n_blind;                /* lanes whose next words are missing */
    struct marey__lane_walk **lanes; /* that had words in this round, or have a range open */
    size_t n_lanes, lanes_cap;
    const struct marey__lane_walk *counting; /* whose records begin and end iterations; NULL: none yet */
    uint64_t covered_ns;                     /* of its time, in ranges, when the iteration began */
    marey__span_visitor *visitor;
    void *visitor_ctx;
};

/* Values of one name, or of whole iterations: one for each iteration in which it ran. */
struct marey__iteration_values {
    struct marey__sketch ns;
    marey__u128 sum_of_squares; /* whole numbers: in any order the same */
    uint64_t first_ns; /* of the sum: in first iterations of processes that mark no warm-up. Shares are without. */
};

/* One of the longest iterations, and what ran in it for a hundredth of its time or more. */
enum { MAREY__N_LONGEST = 16, MAREY__N_LONGEST_NAMES = 256 };
struct marey__long_iteration {
    struct marey__span span;
    uint64_t ns;
    struct marey__long_part {
        uint32_t name;
        uint64_t ns;
    } * parts; /* room for MAREY__N_LONGEST_NAMES */
    size_t n_parts;
};

/*
 * iteration_stats.c: the iterations of one process, summed up. `by_name` and `whole` are without warm-up and without
 * those that are not complete. Four bytes for each iteration, the rest grows with names and epochs.
 */
struct marey__iteration_stats {
    uint64_t n_iterations; /* all */
    uint64_t n_warmup, n_cut;
    struct marey__iteration_values whole, no_range;
    struct marey__iteration_values *by_name; /* NULL until there is one */
    uint64_t n_first; /* 1: the first one that counts is in `first_ns` of values */
    /*
     * The steady part: from the end of the warm-up, or of the first iteration where none is marked, to the end of the last
     * iteration. There is none before `n_steady` iterations have ended in it.
     */
    uint64_t n_steady, steady_begin_ns, steady_end_ns;
    double samples;      /* of those in `whole` that say it */
    uint64_t samples_ns; /* how long those took */
    /* The duration of each in nanoseconds, by its place; 0: not counted, as warm-up. Not more than some. */
    float *durations;
    size_t n_durations, durations_cap;
    uint64_t first_place; /* of the iteration with number 0 since the last reset */
    uint64_t place;       /* of the latest one; UINT64_MAX: it was left out */
    uint64_t last_number;
    struct marey__long_iteration longest[MAREY__N_LONGEST]; /* in no order */
    size_t n_longest;
    struct marey__span *epochs;
    size_t n_epochs, epochs_cap;
    struct marey__phase_stats {
        uint64_t count, total_ns;
        uint64_t n_iterations; /* that were in the phase, or that it was in */
        uint64_t steady_ns;    /* of the total: in the steady part */
        uint64_t late_ns;      /* after the latest iteration, so that the next one decides */
    } * phases;                /* by name; NULL until there is one */
    uint64_t *phase_ends;      /* by name: of the latest since the last iteration; 0: none */
    uint32_t *ended;           /* names that have one */
    size_t n_ended;
};

struct marey__lane_walk {
    struct marey__lane_stack stack; /* always with room; comes first */
    struct marey__tree tree;
    struct marey__gpu_time *gpu; /* by node of `tree`; may know fewer nodes, or none */
    size_t n_gpu, gpu_cap;
    /* The first lane of an imported thread, where this is a further one, of ranges that overlap others; else NULL. */
    const struct marey__lane_walk *first; /* known once the walk has run */
    uint64_t *steady_from; /* by node: self time before the steady part; NULL: there is no steady part */
    size_t n_steady_from; /* nodes after these were added in it */
    bool has_self_times; /* a further lane on which COVERED corrects them; those of earlier versions count as 0 */
    bool is_listed; /* in marey__iteration_walk.lanes */
    bool is_blind;  /* its next words are missing */
};

/*
 * Somebody who wants to know of single events while the walk adds them up, so that they are read once for both. Each
 * returns false on out of memory, which ends the walk; each but `call` may be NULL.
 */
struct marey__walk_tap {
    /* A range has ended; the lane's stack is as high as it was before it began. */
    bool (*call)(void *ctx, const struct marey__lane_walk *lane, const struct marey__frame *frame,
                 uint64_t end_ns);
    /* The same for a range cut by a gap; `last_ns` is the last timestamp before it. */
    bool (*cut)(void *ctx, const struct marey__lane_walk *lane, const struct marey__frame *frame,
                uint64_t last_ns);
    bool (*mark)(void *ctx, const struct marey__lane_walk *lane, uint32_t site, uint64_t ns);
    /* The begin of a range with a payload, before it is on the stack, or any record that `record` of a visitor gets. */
    bool (*record)(void *ctx, const struct marey__lane_walk *lane, const uint64_t *words,
                   uint64_t ns);
    /* As that of a visitor. */
    bool (*gap)(void *ctx, const struct marey__lane_walk *lane, uint64_t ns, uint64_t n_events);
    /* Some records of a GPU's stream. */
    bool (*gpu)(void *ctx, const struct marey_batch *batch);
};

struct marey__process_walk {
    marey_recording *recording;
    uint32_t recording_number; /* among those of the summary, from 0 */
    const struct marey_process *info;
    struct marey__names names;
    struct marey__replay replay;
    uint32_t other;               /* the name of ranges that have found no node */
    struct marey__sketch *ranges; /* these four by name */
    struct marey__sketch *async;  /* NULL until there is one */
    struct marey__counter *counters;
    uint64_t *marks;
    struct marey__lane_walk **lanes; /* by number; NULL: had no events */
    struct marey__async_match pending;
    struct marey__gpu_walk gpu;
    struct marey__iteration_walk iterations;
    struct marey__iteration_stats iteration_stats; /* where marey__iteration_stats_take is the visitor */
    const struct marey__walk_tap *tap;             /* NULL: nobody else listens */
    void *tap_ctx;
    uint64_t n_words_done;
    uint64_t *progress; /* words done, shared by all walks; NULL: nobody wants to know */
    void (*tell)(void *ctx);
    void *tell_ctx;
};

/* Fini accepts a partially initialized one. */
MAREY_WARN_UNUSED marey_status marey__process_walk_init(struct marey__process_walk *walk,
                                                        marey_recording *recording, size_t process);
MAREY_WARN_UNUSED marey_status marey__process_walk_run(struct marey__process_walk *walk);
void marey__process_walk_fini(struct marey__process_walk *walk);

/* Take one batch of the lane. */
MAREY_WARN_UNUSED marey_status marey__lane_walk_batch(struct marey__process_walk *walk,
                                                      struct marey__lane_walk *lane,
                                                      const struct marey_batch *batch);
/*
 * Only the usual case, from `word` of the batch on; the first word that is not of it. For walks without a tap, while the
 * lane has neither frames that found no room nor a repeat. In lane_plain.c.
 */
const uint64_t *marey__lane_walk_plain(struct marey__process_walk *walk,
                                       struct marey__lane_walk *lane,
                                       const struct marey_batch *batch, const uint64_t *word);
/* A mark, counter or async event with its record. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__process_walk_record(struct marey__process_walk *walk, uint32_t lane,
                                                  const uint64_t *words, uint64_t ns);

/* Begin with no iteration. Returns false on out of memory. */
bool marey__iteration_walk_init(struct marey__process_walk *walk);
void marey__iteration_walk_fini(struct marey__iteration_walk *iterations);
/* A batch of the lane is about to be walked. Returns false on out of memory. */
bool marey__iteration_walk_batch(struct marey__process_walk *walk, struct marey__lane_walk *lane,
                                 const struct marey_batch *batch);
/* A record about the whole process. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__iteration_walk_record(struct marey__process_walk *walk,
                                                    const struct marey__lane_walk *lane,
                                                    const uint64_t *words, uint64_t ns);
/* Nothing comes any more. */
MAREY_WARN_UNUSED marey_status marey__iteration_walk_finish(struct marey__process_walk *walk);

/* A visitor of spans, `ctx` the process walk, that fills its `iteration_stats`. */
bool marey__iteration_stats_take(void *ctx, const struct marey__span *span,
                                 const struct marey__iteration *iteration);
void marey__iteration_stats_fini(struct marey__iteration_stats *stats, size_t n_names);
MAREY_WARN_UNUSED bool marey__iteration_values_merge(struct marey__iteration_values *into,
                                                     const struct marey__iteration_values *from);

/* A range, outermost of its name, ran from `start_ns` to `end_ns`: the iteration under way has the part in it. */
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

/* Self time of a node in the steady part; 0 when there is none. Once the walk has run. */
uint64_t marey__lane_steady_ns(const struct marey__process_walk *walk,
                               const struct marey__lane_walk *lane, size_t node);

static inline uint32_t marey__name_of_site(const struct marey__process_walk *walk, uint32_t site)
{
    return marey__replay_name(&walk->replay, site);
}

#define MAREY__NO_INDEX UINT32_MAX

/* ---- range_walk.c ---- */

/*
 * Threads of a process, replayed one batch at a time for a visitor; `record` also gets those of streams, with an empty
 * stack. Ranges that are open at the end of the log are cut there.
 */
struct marey__range_walk {
    marey_recording *recording;
    const struct marey_process *process;
    const struct marey__lane_visitor *visitor;
    void *ctx;
    struct marey__lane_stack *lanes; /* by number */
    struct marey__replay replay;
    uint64_t first_ns, last_ns; /* of all words so far; without any UINT64_MAX and 0 */
};
/* Visit the process in order. The caller sets the first four members. */
MAREY_WARN_UNUSED marey_status marey__range_walk(struct marey__range_walk *walk);

/* ==== tasks ==== */

/* tasks: the same for each of several things, such as the logs of processes, several at a time. */

/* Number `i`, from 0, on any thread. */
typedef marey_status marey__task(void *ctx, size_t i);

struct marey__tasks {
    marey__task *run;
    void *ctx;
    size_t n;
    size_t n_jobs;            /* threads; 0: as many as there are cores */
    marey_progress *progress; /* called with the share that is done, on the caller's thread; NULL: nobody */
    void *progress_ctx;
};

/* Run all, also behind one that failed. The first failure with its sentence, or MAREY_OK. */
MAREY_WARN_UNUSED marey_status marey__tasks_run(const struct marey__tasks *tasks);

/* process_runs.c: which processes were started together. */

struct marey__process_run {
    const char *id; /* lent by the recording */
    uint64_t start_unix_ns;
    uint32_t number; /* in the order in which they were found */
};

struct marey__process_runs {
    struct marey__process_run *list;
    size_t n, cap;
};

/* The number of the run that a process is of, put into the list when new. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__process_runs_find(struct marey__process_runs *runs,
                                                const struct marey_process *process, uint32_t *out);
/* By start; how many runs come before `run`, a number in a list that is not sorted yet. */
bool marey__process_run_is_before(const struct marey__process_run *a,
                                  const struct marey__process_run *b);
uint32_t marey__process_runs_place(const struct marey__process_runs *runs, uint32_t run);

/* stacks.c: times by path, of recordings and of those to compare them with. */

enum marey__side { MAREY__NEW, MAREY__OLD, MAREY__N_SIDES };

struct marey__stack_times {
    uint64_t count, self_ns;
    uint64_t total_ns; /* its own and its children's self times: those of ranges left open count, too */
};

/* How to make stacks. */
struct marey__stacks_options {
    const char *filter; /* ranges it leaves out count as time of the one around them */
    /* A range's name as it shall be; NULL: as it is. Names that become equal are one. */
    void (*clean)(struct marey__buf *buf, const char *text, size_t len);
    /* The outermost frame for a thread; NULL: none. */
    void (*label)(struct marey__buf *buf, const struct marey_process *process,
                  const struct marey_lane_info *lane);
    bool numbers_labels; /* a label that was used in this recording gets " #2" behind it, else it is shared */
    marey_progress *progress;
    void *progress_ctx;
    uint64_t n_words; /* of all recordings to be added, for the progress */
};

struct marey__stacks {
    const struct marey__stacks_options *options;
    struct marey__names names;
    struct marey__arena texts;
    struct marey__tree tree; /* node 0 is the whole; the sums are not in the nodes but in `times` */
    struct marey__stack_times *times[MAREY__N_SIDES]; /* by node */
    size_t n_times[MAREY__N_SIDES], cap[MAREY__N_SIDES];
    uint64_t n_processes[MAREY__N_SIDES], n_threads[MAREY__N_SIDES], lost_events[MAREY__N_SIDES];
    bool has_async;      /* async ranges were met, which no stack can hold */
    uint64_t n_too_deep; /* ranges left out, being nested too deep */
    uint64_t n_words_done;
};

/* Fini accepts a partially initialized one. */
MAREY_WARN_UNUSED marey_status marey__stacks_init(struct marey__stacks *stacks,
                                                  const struct marey__stacks_options *options);
void marey__stacks_fini(struct marey__stacks *stacks);
/* Add what was recorded. The recordings lend their texts until fini. */
MAREY_WARN_UNUSED marey_status marey__stacks_add(struct marey__stacks *stacks, enum marey__side side,
                                                 marey_recording *const *recordings, size_t n);
/* Once all are added: sum up the totals. */
MAREY_WARN_UNUSED marey_status marey__stacks_finish(struct marey__stacks *stacks);

/* ==== series ==== */

/*
 * Series: how long each range ran in each iteration of one process, as arrays, for analyses that need the single values and
 * not their distribution (comparisons, the export of the series).
 *
 * Memory: 4 bytes for each name and iteration in which, or before which, it ran, 17 for each iteration besides. 50 names
 * and a million iterations are 217 MB, and up to twice that because arrays double. Nothing else grows with the recording.
 */

struct marey__series_name {
    const char *text; /* lent by the recording */
    size_t len;
    /* By iteration: nanoseconds of the range in it, on all threads together, a recursive one counted once. 24 bits of
     * precision. 0: it did not run. */
    float *ns;
    uint64_t n_ran; /* iterations with a time, warm-up and cut ones among them */
};

struct marey__series {
    size_t n_iterations; /* that have ended, in order of time */
    uint8_t *flags;      /* by iteration: enum marey__iteration_flag of analyze_internal.h */
    uint64_t *numbers; /* by iteration, as the program counts; not always in order: a count may be reset */
    float *ns;         /* by iteration: from its begin to its end */
    float *samples; /* by iteration; 0: not known */
    size_t n_names; /* that ran in some iteration, in no order */
    struct marey__series_name *names;
};

/*
 * Read process `process` of the recording, which lends its texts. A process without iterations gives an empty series.
 * MAREY_ENOMEM when it would take more than `max_bytes` (0: 4 GiB), with a sentence. On failure `series` is empty; fini
 * takes that, too. Different processes may be read by different threads at the same time.
 */
MAREY_WARN_UNUSED marey_status marey__series_read(struct marey__series *series,
                                                  marey_recording *recording, size_t process,
                                                  uint64_t max_bytes);
void marey__series_fini(struct marey__series *series);

#endif
