/*
 * analyze: from batches of words to tables.
 *
 *   for each process, several at a time            then, one process after the other        at the end
 *   process_walk.c ── lane_walk.c (stacks)     ──> summary_merge.c (by name, tree, rows) ──> summary_tables.c
 *                     call_tree.c, async_match.c
 *                     gpu_walk.c (streams)         gpu_merge.c
 *
 * A process numbers its names for itself (several sites may share one) and the merge maps them to the summary's own
 * numbers. Texts are lent by the recordings until the tables are made.
 */
#ifndef KYMO_ANALYZE_INTERNAL_H
#define KYMO_ANALYZE_INTERNAL_H

#include "base/base_internal.h"
#include "table/table_internal.h"
#include <kymo/recording.h>
#include <kymo/report.h>

/* ---- names.c: texts to numbers from 0 ---- */

struct kymo__name {
    const char *text; /* lent */
    size_t len;
    uint64_t hash;
};

struct kymo__names {
    struct kymo__name *names;
    size_t n, cap;
    uint32_t *slots; /* number + 1; 0: empty */
    size_t n_slots;  /* a power of two */
};

#define KYMO__NO_NAME UINT32_MAX

/* The number of a text, a new one when it is new; KYMO__NO_NAME without memory. */
uint32_t kymo__names_number(struct kymo__names *names, const char *text, size_t len);
/* The number of a text; KYMO__NO_NAME when it has none. */
uint32_t kymo__names_find(const struct kymo__names *names, const char *text, size_t len);
void kymo__names_fini(struct kymo__names *names);
/* Which of two names comes first by its bytes, negative for `a`: numbers depend on who was added first. */
int kymo__names_compare(const struct kymo__names *names, uint32_t a, uint32_t b);

/* Whether `name` passes the filter (NULL: all do): a pattern when it has one of * ? [, else a word found anywhere. */
bool kymo__name_matches(const char *filter, const char *name, size_t len);

/*
 * Whether a range of this name waits for others: communication, barriers, synchronization. That a rank waits long is an
 * effect of what another one does, never the cause.
 */
bool kymo__name_is_wait(const char *name, size_t len);

/* Everything that makes a site one, as one text: processes of one program share theirs. In summary_notes.c. */
void kymo__site_key(struct kymo__buf *key, const struct kymo_site_info *site);

/* ---- call_tree.c: nodes are (parent, name) ---- */

/*
 * Below this depth ranges no longer get a node for every path: all of one name share one below the last proper node
 * ("folded"), so that a runaway recursion does not become a tree as large as the recording.
 */
enum { KYMO__TREE_DEPTH = 400, KYMO__TREE_NODES = 1 << 22 };

struct kymo__node {
    uint64_t count, total_ns, self_ns;
    uint32_t name, parent;
    uint32_t depth;    /* of the root: 0 */
    uint32_t n_active; /* folded nodes: how many times it is on the stack */
    uint32_t next_inside,
        next_behind;   /* begun next when it had begun, when it had ended; 0: not known */
    bool is_outermost; /* no ancestor has this name */
};

struct kymo__tree {
    struct kymo__node *nodes; /* the root is 0; parents come before their children */
    size_t n, cap;
    uint32_t *slots; /* node number; 0: empty */
    uint32_t n_slots_log2;
};

KYMO_WARN_UNUSED bool kymo__tree_init(struct kymo__tree *tree);
void kymo__tree_fini(struct kymo__tree *tree);
/* A new node; 0 without memory. When the tree is full, ranges of all names share one node, named `other`. */
uint32_t kymo__tree_add(struct kymo__tree *tree, uint32_t parent, uint32_t name, uint32_t other);
/* Add counts and times of another tree, whose name i is `names[i]` here. False without memory. */
KYMO_WARN_UNUSED bool kymo__tree_join(struct kymo__tree *into, const struct kymo__tree *tree,
                                      const uint32_t *names, uint32_t other);
/* How ranges are called that have found no node. */
#define KYMO__OTHER_RANGES "(other)"

static inline size_t kymo__tree_slot(const struct kymo__tree *tree, uint32_t parent, uint32_t name)
{
    const uint64_t key = (uint64_t)parent << 32 | name;
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - tree->n_slots_log2));
}

/* The child of `parent` called `name`, made when new; 0 without memory. */
static inline uint32_t kymo__tree_child(struct kymo__tree *tree, uint32_t parent, uint32_t name,
                                        uint32_t other)
{
    const size_t mask = ((size_t)1 << tree->n_slots_log2) - 1;
    for (size_t slot = kymo__tree_slot(tree, parent, name);; slot = (slot + 1) & mask) {
        const uint32_t node = tree->slots[slot];
        if (node == 0)
            return kymo__tree_add(tree, parent, name, other);
        if (tree->nodes[node].parent == parent && tree->nodes[node].name == name)
            return node;
    }
}

/* Which of two siblings comes first: negative for `a`. */
typedef int kymo__sibling_order(const struct kymo__node *a, const struct kymo__node *b,
                                const void *ctx);

/*
 * The nodes for which `keep` (by node) is set, and with them their parents, depth first and siblings in order, into
 * `order`, which has room for all. KYMO__NO_ORDER without memory, else how many.
 */
#define KYMO__NO_ORDER SIZE_MAX
KYMO_WARN_UNUSED size_t kymo__tree_order(const struct kymo__tree *tree, uint8_t *keep,
                                         kymo__sibling_order *compare, const void *ctx,
                                         uint32_t *order);

/* ---- async_match.c: the two ends of async ranges, which may come in any order ---- */

struct kymo__async_half {
    uint64_t handle; /* 0: an empty slot */
    uint64_t ns;
    uint32_t name;
    uint32_t lane;
    bool is_begin;
};

struct kymo__async_match {
    struct kymo__async_half *slots;
    size_t n, n_slots;
    uint64_t n_dropped; /* beyond what is kept waiting */
};

/*
 * Offer one half. True when its other half was waiting: `*other` is that one, which no longer waits. Otherwise it waits
 * itself; `*failed` is set without memory.
 */
bool kymo__async_match(struct kymo__async_match *match, const struct kymo__async_half *half,
                       struct kymo__async_half *other, bool *failed);
void kymo__async_match_fini(struct kymo__async_match *match);

/* ---- pairs.c: a set of pairs of numbers ---- */

struct kymo__pairs {
    uint64_t *slots; /* both in one, plus one; 0: empty */
    size_t n, n_slots;
};

/* Put (a, b) in; `a` below 2^32 - 1. True when it is new; `*failed` is set without memory. */
bool kymo__pairs_add(struct kymo__pairs *pairs, uint32_t a, uint32_t b, bool *failed);
void kymo__pairs_fini(struct kymo__pairs *pairs);

/* ---- progress.c: iterations, epochs and phases of a process, from its records in order of time ---- */

enum kymo__span_kind { KYMO__SPAN_ITERATION, KYMO__SPAN_EPOCH, KYMO__SPAN_PHASE };

enum kymo__iteration_flag {
    KYMO__ITERATION_WARMUP = 1,
    /* Events were lost in it, or its begin was: its times are not complete. */
    KYMO__ITERATION_CUT = 2,
};

/* One that has ended. */
struct kymo__span {
    enum kymo__span_kind kind;
    uint64_t begin_ns, end_ns;
    uint64_t number;       /* as the program counts it; not of phases */
    uint32_t site;         /* of a phase */
    uint32_t flags;        /* of an iteration */
    double samples;        /* of an iteration, or of all in an epoch; 0: not known */
    uint64_t n_iterations; /* that ended in an epoch or phase */
    bool is_open;          /* an epoch or phase that the process never ended */
};

struct kymo__progress {
    uint64_t begin_ns; /* of the iteration under way, as far as is known */
    uint64_t next_number, begun_number;
    bool is_begun;                  /* by a record of its own, for `begun_number` */
    struct kymo__span epoch, phase; /* under way, where `is_open` */
};

/* `first_ns` is the process's first event. */
void kymo__progress_init(struct kymo__progress *progress, uint64_t first_ns);
/* Whether a record is about the whole process. */
static inline bool kymo__is_progress(uint32_t record_type)
{
    return record_type >= KYMO_RECORD_ITERATION && record_type <= KYMO_RECORD_PHASE;
}
/* Take such a record, whole. True when something ends by it, which is then in `*span`. */
bool kymo__progress_take(struct kymo__progress *progress, const uint64_t *words, uint64_t ns,
                         struct kymo__span *span);
/* At the end of the process: what is still open, one after the other, until false. */
bool kymo__progress_finish(struct kymo__progress *progress, uint64_t last_ns,
                           struct kymo__span *span);

/* ---- gpu_walk.c: the work of streams, by name and by the range that launched it ---- */

/* Work of one name and kind in a process. */
struct kymo__work_stats {
    struct kymo__sketch calls;
    uint64_t bytes, bytes_ns; /* of those that tell their bytes */
    uint32_t name, kind;      /* enum kymo_work_kind */
    uint32_t next;            /* of the same name and another kind, plus one; 0: none */
    uint32_t last_lane;       /* on which it was met last; KYMO__NO_LANE at first */
    uint32_t n_streams, n_devices;
};
#define KYMO__NO_LANE UINT32_MAX

/* What was launched in a range itself, not in those within it. */
struct kymo__gpu_time {
    uint64_t count, ns;
};

/* By correlation: who launched, or what waits for its launch to come. */
struct kymo__gpu_launch {
    uint64_t correlation; /* 0: an empty slot */
    uint32_t lane, node;  /* lane KYMO__NO_LANE: not known so far */
    struct kymo__gpu_time waiting;
};

struct kymo__gpu_walk {
    bool has_streams; /* else launches lead nowhere, and none is remembered */
    struct kymo__work_stats *works;
    size_t n_works, works_cap;
    uint32_t *by_name; /* the first of `works` for a name, plus one; NULL until there is one */
    struct kymo__pairs where; /* a work and its stream; a work and its device */
    struct kymo__gpu_launch *launches;
    size_t n_launches, n_slots;
};

/* Whether it is work at all, rather than something said about it. */
static inline bool kymo__is_work(uint32_t kind)
{
    return kind >= KYMO_WORK_KERNEL && kind <= KYMO_WORK_SET;
}

/* "kernel", "copy": for tables and exports. In gpu_tables.c. */
const char *kymo__work_kind_name(uint32_t kind);
struct kymo__process_walk;
struct kymo__lane_walk;
void kymo__gpu_walk_init(struct kymo__process_walk *walk);
void kymo__gpu_walk_fini(struct kymo__gpu_walk *gpu);
/* A batch of a stream. */
KYMO_WARN_UNUSED kymo_status kymo__gpu_walk_batch(struct kymo__process_walk *walk,
                                                  const struct kymo_batch *batch);
/* The range on top of the lane's stack has launched the work of a correlation. */
KYMO_WARN_UNUSED kymo_status kymo__gpu_walk_launch(struct kymo__process_walk *walk,
                                                   struct kymo__lane_walk *lane,
                                                   uint64_t correlation);

/* ---- one process ---- */

struct kymo__counter {
    uint64_t count, last_ns;
    double min, max, sum, last;
};

/* Calls that one range may stand for; sums of what a damaged file says must not run over. */
#define KYMO__MAX_REPEAT (UINT64_C(1) << 40)

/* A range that has begun. */
struct kymo__frame {
    uint64_t start_ns;
    uint64_t children_ns;
    uint64_t repeat; /* calls that it stands for, plus one; 0: nothing is said, so it is one */
    uint32_t node;
    uint32_t name;
    uint32_t site; /* where it began */
};

/* How long a range of some name ran in the iteration under way; of an earlier one when `round` is not the walk's. */
struct kymo__name_time {
    uint64_t ns;
    uint32_t round;
};

/* An iteration that has ended, and the names that ran in it, on all threads together. */
struct kymo__iteration {
    struct kymo__span span;
    const uint32_t *ran; /* names, `n_ran` of them */
    size_t n_ran;
    const struct kymo__name_time *times; /* by name; holds for those in `ran` */
    uint64_t no_range_ns;                /* of the thread that counts, while it has no range open */
};

/* Told each span of a process as it ends; `iteration` is NULL for epochs and phases. False without memory. */
typedef bool kymo__span_visitor(void *ctx, const struct kymo__span *span,
                                const struct kymo__iteration *iteration);

/* iteration_walk.c: what the ranges of all lanes take in each iteration. */
struct kymo__iteration_walk {
    struct kymo__progress progress;
    struct kymo__name_time *times; /* by name */
    uint32_t *ran;                 /* names that have a time in this round */
    size_t n_ran;
    uint32_t round;
    bool is_cut;                    /* events were lost since the iteration began */
    uint32_t n_blind;               /* lanes whose next words are missing */
    struct kymo__lane_walk **lanes; /* that had words in this round, or have a range open */
    size_t n_lanes, lanes_cap;
    const struct kymo__lane_walk *counting; /* whose records begin and end iterations; NULL: none yet */
    uint64_t covered_ns;                    /* of its time, in ranges, when the iteration began */
    kymo__span_visitor *visitor;
    void *visitor_ctx;
};

__extension__ typedef unsigned __int128 kymo__u128;

/* Values of one name, or of whole iterations: one for each iteration in which it ran. */
struct kymo__iteration_values {
    struct kymo__sketch ns;
    kymo__u128 sum_of_squares; /* whole numbers: in any order the same */
    uint64_t first_ns; /* of the sum: in first iterations of processes that mark no warm-up. Shares are without. */
};

/* One of the longest iterations, and what ran in it for a hundredth of its time or more. */
enum { KYMO__N_LONGEST = 16, KYMO__N_LONGEST_NAMES = 256 };
struct kymo__long_iteration {
    struct kymo__span span;
    uint64_t ns;
    struct kymo__long_part {
        uint32_t name;
        uint64_t ns;
    } * parts; /* room for KYMO__N_LONGEST_NAMES */
    size_t n_parts;
};

/*
 * iteration_stats.c: the iterations of one process, summed up. `by_name` and `whole` are without warm-up and without
 * those that are not complete. Four bytes for each iteration, the rest grows with names and epochs.
 */
struct kymo__iteration_stats {
    uint64_t n_iterations; /* all */
    uint64_t n_warmup, n_cut;
    struct kymo__iteration_values whole, no_range;
    struct kymo__iteration_values *by_name; /* NULL until there is one */
    uint64_t n_first;    /* 1: the first one that counts is in `first_ns` of values */
    double samples;      /* of those in `whole` that say it */
    uint64_t samples_ns; /* how long those took */
    /* The duration of each in nanoseconds, by its place; 0: not counted, as warm-up. Not more than some. */
    float *durations;
    size_t n_durations, durations_cap;
    uint64_t first_place; /* of the iteration with number 0 since the last reset */
    uint64_t place;       /* of the latest one; UINT64_MAX: it was left out */
    uint64_t last_number;
    struct kymo__long_iteration longest[KYMO__N_LONGEST]; /* in no order */
    size_t n_longest;
    struct kymo__span *epochs;
    size_t n_epochs, epochs_cap;
    struct kymo__phase_stats {
        uint64_t count, total_ns;
        uint64_t n_iterations; /* that were in the phase, or that it was in */
    } * phases;                /* by name; NULL until there is one */
    uint64_t *phase_ends;      /* by name: of the latest since the last iteration; 0: none */
    uint32_t *ended;           /* names that have one */
    size_t n_ended;
};

struct kymo__lane_walk {
    struct kymo__tree tree;
    struct kymo__frame *frames; /* frames[0] stands for the thread itself */
    size_t n_frames, frames_cap;
    uint64_t n_too_deep; /* begun while no frame was to be had */
    uint64_t repeat;     /* of the next range, as kymo__frame has it */
    const struct kymo_lane_info *info;
    struct kymo__gpu_time *gpu; /* by node of `tree`; may know fewer nodes, or none */
    size_t n_gpu, gpu_cap;
    bool is_beside; /* a further lane of its thread, of ranges that overlap others; known once the walk has run */
    bool is_listed; /* in kymo__iteration_walk.lanes */
    bool is_blind;  /* its next words are missing */
};

struct kymo__process_walk;

/*
 * Somebody who wants to know of single events while the walk adds them up, so that they are read once for both. Each
 * returns false without memory, which ends the walk; each but `call` may be NULL.
 */
struct kymo__walk_tap {
    /* A range has ended; the lane's stack is as high as it was before it began. */
    bool (*call)(void *ctx, const struct kymo__lane_walk *lane, const struct kymo__frame *frame,
                 uint64_t end_ns);
    bool (*mark)(void *ctx, const struct kymo__lane_walk *lane, uint32_t site, uint64_t ns);
    /* Any record, whole, before the walk takes it. */
    bool (*record)(void *ctx, const struct kymo__lane_walk *lane, const uint64_t *words, uint64_t ns);
    /* Words of the lane are missing before this batch; what is on its stack is about to be given up. */
    bool (*gap)(void *ctx, const struct kymo__lane_walk *lane, const struct kymo_batch *batch);
    /* Some records of a GPU's stream. */
    bool (*gpu)(void *ctx, const struct kymo_batch *batch);
};

struct kymo__process_walk {
    kymo_recording *recording;
    uint32_t recording_number; /* among those of the summary, from 0 */
    const struct kymo_process *info;
    struct kymo__names names;
    uint32_t *site_names; /* name number by site, 0 to n_sites; 0 also stands for unknown sites */
    uint32_t other;       /* the name of ranges that have found no node */
    struct kymo__sketch *ranges; /* these four by name */
    struct kymo__sketch *async;  /* NULL until there is one */
    struct kymo__counter *counters;
    uint64_t *marks;
    struct kymo__lane_walk **lanes; /* by number; NULL: had no events */
    struct kymo__async_match pending;
    struct kymo__gpu_walk gpu;
    struct kymo__iteration_walk iterations;
    struct kymo__iteration_stats iteration_stats; /* where kymo__iteration_stats_take is the visitor */
    size_t n_frames;                              /* room taken by stacks, over all lanes */
    uint64_t n_orphans;                           /* ends without a begin */
    uint64_t n_cut_off;                           /* begun before a gap: their ends are not known */
    uint64_t n_unwound;                           /* ended by the end of an outer one */
    uint64_t n_too_deep;                          /* begun while no frame was to be had */
    const struct kymo__walk_tap *tap;             /* NULL: nobody else listens */
    void *tap_ctx;
    uint64_t n_words_done;
    uint64_t *progress; /* words done, shared by all walks; NULL: nobody wants to know */
    void (*tell)(void *ctx);
    void *tell_ctx;
};

/* Fini takes a half-made one, too. */
KYMO_WARN_UNUSED kymo_status kymo__process_walk_init(struct kymo__process_walk *walk,
                                                     kymo_recording *recording, size_t process);
KYMO_WARN_UNUSED kymo_status kymo__process_walk_run(struct kymo__process_walk *walk);
void kymo__process_walk_fini(struct kymo__process_walk *walk);

/* The stack machine: take one batch of the lane. */
KYMO_WARN_UNUSED kymo_status kymo__lane_walk_batch(struct kymo__process_walk *walk,
                                                   struct kymo__lane_walk *lane,
                                                   const struct kymo_batch *batch);
/*
 * The usual case alone, from `word` of the batch on; the first word that is not of it. For walks without a tap, while the
 * lane has neither frames that found no room nor a repeat. In lane_plain.c.
 */
const uint64_t *kymo__lane_walk_plain(struct kymo__process_walk *walk, struct kymo__lane_walk *lane,
                                      const struct kymo_batch *batch, const uint64_t *word);
/* A record other than the begin of a range. `words` is whole and of the length its type needs. */
KYMO_WARN_UNUSED kymo_status kymo__process_walk_record(struct kymo__process_walk *walk, uint32_t lane,
                                                       const uint64_t *words, uint64_t ns);

/* Begin with no iteration. False without memory. */
bool kymo__iteration_walk_init(struct kymo__process_walk *walk);
void kymo__iteration_walk_fini(struct kymo__iteration_walk *iterations);
/* A batch of the lane is about to be walked. False without memory. */
bool kymo__iteration_walk_batch(struct kymo__process_walk *walk, struct kymo__lane_walk *lane,
                                const struct kymo_batch *batch);
/* A record about the whole process. */
KYMO_WARN_UNUSED kymo_status kymo__iteration_walk_record(struct kymo__process_walk *walk,
                                                         const struct kymo__lane_walk *lane,
                                                         const uint64_t *words, uint64_t ns);
/* Nothing comes any more. */
KYMO_WARN_UNUSED kymo_status kymo__iteration_walk_finish(struct kymo__process_walk *walk);

/* A visitor of spans, `ctx` the process walk, that fills its `iteration_stats`. */
bool kymo__iteration_stats_take(void *ctx, const struct kymo__span *span,
                                const struct kymo__iteration *iteration);
void kymo__iteration_stats_fini(struct kymo__iteration_stats *stats, size_t n_names);
KYMO_WARN_UNUSED bool kymo__iteration_values_merge(struct kymo__iteration_values *into,
                                                   const struct kymo__iteration_values *from);

/* A range, outermost of its name, ran from `start_ns` to `end_ns`: the iteration under way has the part in it. */
static inline void kymo__iteration_add(struct kymo__iteration_walk *it, uint32_t name,
                                       uint64_t start_ns, uint64_t end_ns)
{
    struct kymo__name_time *time = &it->times[name];
    const uint64_t from = KYMO__MAX(start_ns, it->progress.begin_ns);
    if (KYMO_UNLIKELY(time->round != it->round)) {
        *time = (struct kymo__name_time){.round = it->round};
        it->ran[it->n_ran++] = name;
    }
    time->ns += end_ns > from ? end_ns - from : 0;
}

static inline uint32_t kymo__name_of_site(const struct kymo__process_walk *walk, uint32_t site)
{
    return walk->site_names[KYMO_LIKELY(site <= walk->info->n_sites) ? site : 0];
}

/* ---- all processes ---- */

#include "analyze/merge.h" /* needs all of the above */

/* ---- the summary ---- */

enum kymo__summary_table {
    KYMO__TABLE_RANGES,
    KYMO__TABLE_TREE,
    KYMO__TABLE_THREADS,
    KYMO__TABLE_RANKS,
    KYMO__TABLE_PROCESSES,
    KYMO__TABLE_ASYNC,
    KYMO__TABLE_COUNTERS,
    KYMO__TABLE_MARKS,
    KYMO__TABLE_OPEN,
    KYMO__TABLE_ITERATIONS,
    KYMO__TABLE_ITERATION_RANKS,
    KYMO__TABLE_THROUGHPUT,
    KYMO__TABLE_EPOCHS,
    KYMO__TABLE_PHASES,
    KYMO__TABLE_OUTLIERS,
    KYMO__TABLE_KERNELS,
    KYMO__TABLE_COPIES,
    KYMO__TABLE_GPU_RANGES,
    KYMO__TABLE_WORKERS,
    KYMO__TABLE_RANK_SPREAD,
    KYMO__TABLE_RANK_TIMES,
    KYMO__TABLE_RANK_OUTLIERS,
    KYMO__TABLE_RANK_HOSTS,
    KYMO__TABLE_SITES,
    KYMO__TABLE_WARNINGS,
    KYMO__N_TABLES,
};

struct kymo_summary {
    kymo_table *tables[KYMO__N_TABLES];
    int32_t straggler; /* its row in the table iteration_ranks; -1: none */
    struct kymo_cost cost;
    char source[24]; /* what all was imported from; "" when something was not */
    uint64_t n_threads;
    char *title; /* the recordings' names */
};

/* "a.kymo", "a.kymo and b.kymo", "a.kymo and 7 more", freed with kymo__free; NULL without memory. */
char *kymo__recordings_title(kymo_recording *const *recordings, size_t n);

/*
 * Somebody who listens to every process of a summary. `begin` may set the walk's tap and the visitor of its spans, `end`
 * comes behind its last event; both on the thread that walks it, several processes at a time.
 */
struct kymo__summary_tap {
    kymo_status (*begin)(void *ctx, struct kymo__process_walk *walk, size_t number);
    kymo_status (*end)(void *ctx, struct kymo__process_walk *walk, size_t number);
    void *ctx;
};
/* kymo_summary_create; `tap` may be NULL. `number` above counts the processes of all recordings, from 0. */
KYMO_WARN_UNUSED kymo_status kymo__summary_create(kymo_recording *const *recordings, size_t n,
                                                  const struct kymo_summary_options *options,
                                                  const struct kymo__summary_tap *tap,
                                                  kymo_summary **out);

KYMO_WARN_UNUSED kymo_status kymo__summary_make_tables(kymo_summary *summary,
                                                       const struct kymo__merge *merge,
                                                       const struct kymo_summary_options *options);
/*
 * The two halves of it: all processes of the recordings added up, which lend their texts, and the summary of what was
 * added up, by this and by kymo__merge_join.
 */
KYMO_WARN_UNUSED kymo_status kymo__summary_merge(kymo_recording *const *recordings, size_t n,
                                                 const struct kymo_summary_options *options,
                                                 const struct kymo__summary_tap *tap,
                                                 struct kymo__merge *merge);
KYMO_WARN_UNUSED kymo_status kymo__summary_make(struct kymo__merge *merge,
                                                kymo_recording *const *recordings, size_t n,
                                                const struct kymo_summary_options *options,
                                                kymo_summary **out);

/* Whether somebody wants the table called so, which grows with ranks times names. In summary_tables.c. */
bool kymo__is_table_wanted(const struct kymo_summary_options *options, const char *name);

/* ---- tables in the making ---- */

struct kymo__ranks;
struct kymo__making {
    const struct kymo__merge *merge;
    const char *filter;
    const struct kymo_cost *cost;
    const struct kymo__ranks *ranks; /* in ranks.h */
    uint32_t max_depth;              /* of ranges that are shown; 0: all are */
    const uint8_t *shallow;          /* by name: whether a range of it is; NULL: all are */
};

#define KYMO__NAME_COLUMN                                                                          \
    {                                                                                              \
        "name", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE                                               \
    }
#define KYMO__RANK_COLUMN                                                                          \
    {                                                                                              \
        "rank", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE                                                \
    }
#define KYMO__PID_COLUMN                                                                           \
    {                                                                                              \
        "pid", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE                                                 \
    }
#define KYMO__COUNT_COLUMN                                                                         \
    {                                                                                              \
        "count", NULL, KYMO_TYPE_U64, KYMO_UNIT_COUNT                                              \
    }
#define KYMO__NS_COLUMN(name, title)                                                               \
    {                                                                                              \
        name, title, KYMO_TYPE_U64, KYMO_UNIT_NS                                                   \
    }
/* The title has what it is a share of. */
#define KYMO__SHARE_COLUMN(title)                                                                  \
    {                                                                                              \
        "share", title, KYMO_TYPE_F64, KYMO_UNIT_SHARE                                             \
    }
#define KYMO__NUMBER_COLUMN(name, title)                                                           \
    {                                                                                              \
        name, title, KYMO_TYPE_F64, KYMO_UNIT_NONE                                                 \
    }
#define KYMO__TALLY_COLUMN(name, title)                                                            \
    {                                                                                              \
        name, title, KYMO_TYPE_U64, KYMO_UNIT_COUNT                                                \
    }

void kymo__put_string(kymo_table *table, const char *text);
/* Its rank, null when that is unknown, and its pid. */
void kymo__put_process(kymo_table *table, const struct kymo_process *process);
void kymo__put_name(kymo_table *table, const struct kymo__making *m, uint32_t name);
/* Whether they are two ranks; else one is a repeat of the other. Those without a rank are two if they ran at one time. */
bool kymo__is_other_rank(const struct kymo_process *a, const struct kymo_process *b);
/* Null when there is no whole. */
void kymo__put_share(kymo_table *table, uint64_t part_ns, uint64_t whole_ns);
/* Whether the name passes the filter. */
bool kymo__is_wanted(const struct kymo__making *m, uint32_t name);
/* And whether ranges of that name are shown, by their depth. */
bool kymo__is_range_wanted(const struct kymo__making *m, uint32_t name);
void kymo__sort_by(kymo_table *table, const char *column, int descending);

enum { KYMO__N_TREE_COLUMNS = 6, KYMO__N_SITE_COLUMNS = 6 };
extern const struct kymo_column kymo__tree_columns[KYMO__N_TREE_COLUMNS];
extern const struct kymo_column kymo__site_columns[KYMO__N_SITE_COLUMNS];
extern const struct kymo_column kymo__warning_columns[1];
/* A process's own sentences, one per line of its note; which process is said when it is not alone. */
void kymo__put_notes(kymo_table *table, const struct kymo_process *process, bool is_alone);
KYMO_WARN_UNUSED kymo_status kymo__fill_tree(kymo_table *table, const struct kymo__making *m);
KYMO_WARN_UNUSED kymo_status kymo__fill_sites(kymo_table *table, const struct kymo__making *m);
KYMO_WARN_UNUSED kymo_status kymo__fill_warnings(kymo_table *table, const struct kymo__making *m);

/* What a table of the summary is called, its columns, and who fills it. */
struct kymo__table_kind {
    const char *name;
    const struct kymo_column *columns;
    size_t n_columns;
    kymo_status (*fill)(kymo_table *table, const struct kymo__making *m);
};
#define KYMO__TABLE_KIND(name, columns, fill)                                                      \
    {                                                                                              \
        name, columns, KYMO__COUNT_OF(columns), fill                                               \
    }
/* iteration_tables.c: those from KYMO__TABLE_ITERATIONS on. */
enum { KYMO__N_ITERATION_TABLES = 6 };
extern const struct kymo__table_kind kymo__iteration_kinds[KYMO__N_ITERATION_TABLES];
/* rank_tables.c: those from KYMO__TABLE_RANK_SPREAD on. */
enum { KYMO__N_RANK_TABLES = 4 };
extern const struct kymo__table_kind kymo__rank_kinds[KYMO__N_RANK_TABLES];
/* How the row of whole iterations is called. */
#define KYMO__WHOLE_ITERATION "(whole iteration)"
#define KYMO__NO_RANGE "(no range)"
/*
 * The row of `iterations` of the rank that is slowest more often than chance would have it, or NULL: more than three
 * standard deviations above its due, and at least half as often again.
 */
const struct kymo__iteration_row *kymo__find_straggler(const struct kymo__iteration_merge *iterations);

#endif
