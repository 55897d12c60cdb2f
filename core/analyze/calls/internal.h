/*
 * calls: which functions ran, how often and how long, called from where and with which arguments.
 *
 *   calls_read.c     CALLS blocks of recordings, GPU time   \
 *   samples_tree.c   stack samples, if there are none        > one tree: struct marey__calls
 *   calls_ranges.c   ranges, if there are neither           /
 *        |
 *   calls_merge.c    the tree: strings to numbers, paths to nodes, merged over processes
 *   calls_walk.c     sums: outermost calls, callers, callees
 *        |
 *   calls_report.c   tables (calls_text.c: text)
 *
 * Input: recordings. Output: tables; exports of call profiles read the tree itself. Does not know the profiler that
 * recorded the calls (instrument/calls, the extension), nor the formats of exports.
 */
#ifndef MAREY_ANALYZE_CALLS_INTERNAL_H
#define MAREY_ANALYZE_CALLS_INTERNAL_H

#include "analyze/walk/internal.h"
#include "base/internal.h"
#include "report/internal.h"

enum marey__call_kind { MAREY__CALL_PYTHON, MAREY__CALL_BUILTIN, MAREY__CALL_COMPILED };

struct marey__call_function {
    const char *name, *qualified, *file,
        *module; /* name as cProfile writes it; file "~" for built-ins */
    uint32_t line;
    uint8_t kind; /* enum marey__call_kind, or one of a later version */
};

struct marey__call_signature {
    uint32_t function;
    const char *text; /* "a:ndarray(dtype=float32, shape=(16,)), b:int" */
    double elements;  /* of all its arrays; 0: unknown */
};

struct marey__call_thread {
    int64_t pid, tid; /* tid 0: unknown */
    int32_t rank;     /* -1: none */
    const char *name; /* "" if it has none */
};

struct marey__call_node {
    uint32_t parent;                      /* index; parents come first; 0 is the root */
    uint32_t function, signature, thread; /* with `parent` the key */
    uint64_t calls;                       /* including resumes, as in cProfile */
    uint64_t resumes;                     /* how often a generator or coroutine was resumed */
    uint64_t self_ns, total_ns, max_ns;   /* total: including callees; max 0: unknown */
    uint64_t gpu_ns; /* of GPU work launched by the function itself, not by its callees */
};

/* Options of the profilers, as stored in the log. */
enum marey__calls_flags {
    MAREY__CALLS_SIGNATURES = 1,
    MAREY__CALLS_BUILTINS = 2,
    MAREY__CALLS_CPU_TIMER = 4,
    MAREY__CALLS_OWN_TIMER = 8,
};

struct marey__calls {
    /* Element 0 of the first two is special: "(other paths)", and no signature. The root is node 0, of function 0. */
    struct marey__call_function *functions;
    struct marey__call_signature *signatures;
    struct marey__call_thread *threads;
    struct marey__call_node *nodes;
    size_t n_functions, n_signatures, n_threads, n_nodes;
    uint64_t other_paths; /* calls whose path was not recorded, because the budget was used up */
    uint64_t widened;     /* signatures that were merged */
    uint64_t cost_ps; /* cost of measuring a call, the mean over profiles weighted by calls; 0: unknown */
    unsigned flags; /* union over all profiles */
    uint32_t n_profiles;
    /* Processes with missing calls: the last few seconds, and those in progress. */
    uint32_t n_killed, n_running, n_refused; /* the last: a write failed */
    bool has_gpu;                            /* any node has GPU time */
    bool from_ranges;                        /* nothing was profiled: these are ranges */
    uint64_t startup_ns;                     /* excluded: imports at start-up */
    uint64_t n_too_deep;                     /* ranges excluded, nested too deep */
    uint64_t idle_ns;                        /* excluded: samples of idle processes and workers */
    bool from_samples; /* calls are samples, and times are those of the samples */

    /* Indexes of texts and paths. */
    size_t functions_cap, signatures_cap, threads_cap, nodes_cap;
    struct marey__arena texts;
    struct marey__names function_keys, signature_keys, thread_keys;
    struct marey__key_map nodes_by_key; /* without the root */
};

/* ---- calls_read.c ---- */

/*
 * Read the calls of `n` recordings, merged over processes and ranks, per thread. Without any recorded calls, from
 * samples, and without samples from ranges. The recordings are borrowed; call fini on `calls`, which is already done on
 * failure. Fails with MAREY_ENOMEM or MAREY_EIO.
 */
MAREY_WARN_UNUSED marey_status marey__calls_read(struct marey__calls *calls,
                                                 marey_recording *const *recordings, size_t n);
void marey__calls_fini(struct marey__calls *calls);
/* Whether any process of these recordings was profiled. */
bool marey__calls_are_there(marey_recording *const *recordings, size_t n);

/* ---- samples_tree.c ---- */

struct marey__samples_filter;
/*
 * The tree of the samples that pass `filter` (NULL: the default one); `is_complete` adds start-up and idle processes.
 * Native frames are functions. Fails like marey__calls_read, and with MAREY_EINVAL for an invalid filter.
 */
MAREY_WARN_UNUSED marey_status marey__calls_read_samples(struct marey__calls *calls,
                                                         marey_recording *const *recordings, size_t n,
                                                         const struct marey__samples_filter *filter,
                                                         bool is_complete);

/* ---- calls_ranges.c ---- */

/* Add the ranges of a process as calls, one function per name. `key` identifies the process. */
MAREY_WARN_UNUSED marey_status marey__calls_add_ranges(struct marey__calls *calls,
                                                       marey_recording *recording, size_t process,
                                                       uint64_t key);

/* ---- calls_merge.c ---- */

#define MAREY__NO_CALL UINT32_MAX

MAREY_WARN_UNUSED bool marey__calls_init(struct marey__calls *calls);
/* The number for these texts, created if needed (with copies); MAREY__NO_CALL on out of memory. */
uint32_t marey__calls_function(struct marey__calls *calls,
                               const struct marey__call_function *function);
uint32_t marey__calls_signature(struct marey__calls *calls,
                                const struct marey__call_signature *signature);
/* `process` distinguishes processes with equal ids. */
uint32_t marey__calls_thread(struct marey__calls *calls, const struct marey__call_thread *thread,
                             uint64_t process);
/* The node of this path, created if needed; 0 on out of memory. */
uint32_t marey__calls_node(struct marey__calls *calls, uint32_t parent, uint32_t function,
                           uint32_t signature, uint32_t thread);
void marey__call_node_add(struct marey__call_node *into, const struct marey__call_node *from);

/*
 * Subtract the profiler's cost from the times: half of a call's cost is in its own time, half in its caller's. Times
 * stay at 0 or above. Returns the nanoseconds subtracted.
 */
uint64_t marey__calls_subtract(struct marey__calls *calls);
/*
 * Remove a script's module-level imports with all their callees; their time is subtracted from the callers, too, and
 * stored in `startup_ns`. Returns false on out of memory.
 */
MAREY_WARN_UNUSED bool marey__calls_drop_startup(struct marey__calls *calls);
/* The label of a function, with its arguments if `signature` is not 0. In calls_report.c. */
void marey__call_label(struct marey__buf *label, const struct marey__calls *calls,
                       uint32_t function, uint32_t signature);

/* ---- calls_walk.c: sums over the tree ---- */

/* Sums of an entity: a function, or a function with a signature. */
struct marey__call_sum {
    uint64_t calls, primitive, resumes; /* primitive: not within another call of the same entity */
    uint64_t self_ns, total_ns, max_ns; /* total: of primitive calls only */
    uint64_t gpu_ns;                    /* likewise */
};
struct marey__call_edge {
    uint32_t caller, callee;    /* entities; the key */
    struct marey__call_sum sum; /* primitive: not within another call of the same pair */
};
struct marey__call_sums {
    bool by_signature;
    size_t n_functions;
    struct marey__call_sum *entities; /* by entity; unused ones have no calls */
    size_t n_entities;
    struct marey__call_edge *edges;
    size_t n_edges, edges_cap;
    struct marey__key_map by_key;
};
/* Returns false on out of memory, with `sums` already finalized. */
MAREY_WARN_UNUSED bool marey__call_sums_make(struct marey__call_sums *sums,
                                             const struct marey__calls *calls, bool by_signature);
void marey__call_sums_fini(struct marey__call_sums *sums);

/* Entities with signatures come after all functions. */
static inline uint32_t marey__call_entity(const struct marey__call_sums *sums, uint32_t function,
                                          uint32_t signature)
{
    return sums->by_signature && signature != 0 ? (uint32_t)sums->n_functions + signature : function;
}
static inline uint32_t marey__entity_signature(const struct marey__call_sums *sums, uint32_t entity)
{
    return entity > sums->n_functions ? entity - (uint32_t)sums->n_functions : 0;
}
static inline uint32_t marey__entity_function(const struct marey__call_sums *sums,
                                              const struct marey__calls *calls, uint32_t entity)
{
    return entity > sums->n_functions ? calls->signatures[entity - sums->n_functions].function
                                      : entity;
}

/*
 * All nodes but the root, depth first, the heaviest sibling first; `gpu_ns`, by node, gets the GPU time of a node and
 * its descendants. Both need space for all nodes. Returns false on out of memory.
 */
MAREY_WARN_UNUSED bool marey__calls_order(const struct marey__calls *calls, uint32_t *order);
void marey__calls_gpu_totals(const struct marey__calls *calls, uint64_t *gpu_ns);

/* ---- calls_report.c ---- */

enum marey__calls_table {
    MAREY__CALLS_FUNCTIONS,
    MAREY__CALLS_BY_SIGNATURE,
    MAREY__CALLS_CALLERS,
    MAREY__CALLS_CALLEES,
    MAREY__CALLS_PATHS,
    MAREY__CALLS_SHAPES,
    MAREY__CALLS_THREADS,
    MAREY__CALLS_TOTALS,
    MAREY__CALLS_NOTES,
    MAREY__N_CALLS_TABLES,
};

/* The data of a report that text shows besides the tables. */
struct marey__calls_report {
    struct marey__calls calls;
    struct {
        const char *filter; /* of functions by name; NULL: all. Does not change sums */
        const char *sort;   /* self, total, calls, percall, name; "-" before it reverses */
        bool by_signature;  /* `callers`, `callees`: signatures are separate entities */
        bool subtract;      /* subtract the cost of measuring from the times */
        bool startup;       /* include imports at module level */
    } options;              /* strings borrowed while the report is created */
    uint64_t subtracted_ns;
    marey_table *const *tables; /* of the report, by enum marey__calls_table */
};
/* calls_text.c */
marey__put_answer marey__calls_text;

#endif
