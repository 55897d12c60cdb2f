/*
 * calls: which functions ran, how often and how long, called from where and with which arguments.
 *
 *   calls_read.c     CALLS blocks of recordings, GPU time   \
 *   samples_tree.c   stack samples, where there are none     > one tree: struct marey__calls
 *   calls_ranges.c   ranges, where there is neither         /
 *        |
 *   calls_merge.c    the tree: strings to numbers, paths to nodes, merged over processes
 *   calls_walk.c     what follows from it: outermost calls, callers, sums of callees
 *        |
 *   calls_report.c   tables (calls_text.c: text)
 *
 * Input: recordings. Output: tables; exports of call profiles read the tree itself.
 */
#ifndef MAREY_ANALYZE_CALLS_INTERNAL_H
#define MAREY_ANALYZE_CALLS_INTERNAL_H

#include "analyze/walk/internal.h"
#include "base/internal.h"
#include "report/internal.h"

enum marey__call_kind { MAREY__CALL_PYTHON, MAREY__CALL_BUILTIN, MAREY__CALL_COMPILED };

struct marey__call_function {
    const char *name, *qualified, *file,
        *module; /* name as cProfile spells it; file "~" for built-ins */
    uint32_t line;
    uint8_t kind; /* enum marey__call_kind, or one of a later version */
};

struct marey__call_signature {
    uint32_t function;
    const char *text; /* "a:ndarray(dtype=float32, shape=(16,)), b:int" */
    double elements;  /* of all arrays in it; 0: not known */
};

struct marey__call_thread {
    int64_t pid, tid; /* of tid 0 nothing is known */
    int32_t rank;     /* -1: none */
    const char *name; /* "" where it has none */
};

struct marey__call_node {
    uint32_t parent;                      /* index; parents come first; 0 is the root */
    uint32_t function, signature, thread; /* with `parent` the key */
    uint64_t calls;                       /* resumes among them, as cProfile counts */
    uint64_t resumes;                     /* times that a generator or coroutine went on */
    uint64_t self_ns, total_ns, max_ns;   /* total: with what was called; max 0: not known */
    uint64_t gpu_ns; /* of GPU work that was launched by the function itself, not by what it called */
};

/* Of what profilers were told to do; those of the format. */
enum marey__calls_flags {
    MAREY__CALLS_SIGNATURES = 1,
    MAREY__CALLS_BUILTINS = 2,
    MAREY__CALLS_CPU_TIMER = 4,
    MAREY__CALLS_OWN_TIMER = 8,
};

struct marey__calls {
    /* Element 0 of the first two is none: "(other paths)", and no signature. The root is node 0, of function 0. */
    struct marey__call_function *functions;
    struct marey__call_signature *signatures;
    struct marey__call_thread *threads;
    struct marey__call_node *nodes;
    size_t n_functions, n_signatures, n_threads, n_nodes;
    uint64_t other_paths; /* calls whose path was no longer followed, because the budget was used up */
    uint64_t widened;     /* signatures that were put together as others */
    uint64_t cost_ps; /* of measuring a call, the mean over profiles by their calls; 0: not known */
    unsigned flags;   /* of all profiles together */
    uint32_t n_profiles;
    /* Processes of which calls are missing: up to some seconds of them, and those that were under way. */
    uint32_t n_killed, n_running, n_refused; /* the last: a write failed */
    bool has_gpu;                            /* any node has time on a GPU */
    bool from_ranges;                        /* nothing was profiled: these are ranges */
    uint64_t startup_ns;                     /* left out: imports at start-up */
    uint64_t n_too_deep;                     /* ranges left out, nested too deep */
    uint64_t idle_ns;                        /* left out: samples of idle processes and workers */
    bool from_samples;                       /* calls are samples, and times what these represent */

    /* How texts and paths are found again. */
    size_t functions_cap, signatures_cap, threads_cap, nodes_cap;
    struct marey__arena texts;
    struct marey__names function_keys, signature_keys, thread_keys;
    struct marey__key_map nodes_by_key; /* but for the root */
};

/* ---- calls_read.c ---- */

/*
 * Read the calls of `n` recordings, merged over processes and ranks; threads stay apart. Where none of them has any, from
 * samples, and where there are none of those either, from ranges. Lent recordings; `calls` is the caller's to fini, on failure it is left finished. MAREY_ENOMEM, MAREY_EIO.
 */
MAREY_WARN_UNUSED marey_status marey__calls_read(struct marey__calls *calls,
                                                 marey_recording *const *recordings, size_t n);
void marey__calls_fini(struct marey__calls *calls);
/* Whether a process of these recordings was profiled. */
bool marey__calls_are_there(marey_recording *const *recordings, size_t n);

/* ---- samples_tree.c ---- */

struct marey_samples_filter;
/*
 * The tree of samples: those that `filter` lets count (NULL: the defaults), or where it `is_complete` also start-up and
 * idle processes. Native frames are functions in it. As marey__calls_read, and MAREY_EINVAL for a filter that cannot
 * be.
 */
MAREY_WARN_UNUSED marey_status marey__calls_read_samples(struct marey__calls *calls,
                                                         marey_recording *const *recordings, size_t n,
                                                         const struct marey_samples_filter *filter,
                                                         bool is_complete);

/* ---- calls_ranges.c ---- */

/* Of a process whose ranges become calls: a function for each name. `key` distinguishes processes. */
MAREY_WARN_UNUSED marey_status marey__calls_add_ranges(struct marey__calls *calls,
                                                       marey_recording *recording, size_t process,
                                                       uint64_t key);

/* ---- calls_merge.c ---- */

#define MAREY__NO_CALL UINT32_MAX

MAREY_WARN_UNUSED bool marey__calls_init(struct marey__calls *calls);
/* Numbers of what has these texts, made when new (then copied); MAREY__NO_CALL on out of memory. */
uint32_t marey__calls_function(struct marey__calls *calls,
                               const struct marey__call_function *function);
uint32_t marey__calls_signature(struct marey__calls *calls,
                                const struct marey__call_signature *signature);
/* `process` distinguishes processes whose numbers are the same. */
uint32_t marey__calls_thread(struct marey__calls *calls, const struct marey__call_thread *thread,
                             uint64_t process);
/* The node of this path, made when new; 0 on out of memory. */
uint32_t marey__calls_node(struct marey__calls *calls, uint32_t parent, uint32_t function,
                           uint32_t signature, uint32_t thread);
void marey__call_node_add(struct marey__call_node *into, const struct marey__call_node *from);

/*
 * Take the profiler's own cost out of the times: half of a call's lies in it, half in what it was called from. Times do not
 * go below 0. Returns how many nanoseconds were taken.
 */
uint64_t marey__calls_subtract(struct marey__calls *calls);
/*
 * Leave out imports that a script makes at module level, with all that they call; the time is taken out of what is around
 * them, too, and is in `startup_ns`. Returns false on out of memory.
 */
MAREY_WARN_UNUSED bool marey__calls_drop_startup(struct marey__calls *calls);
/* The label of a function, with a signature other than 0 with its arguments. In calls_report.c. */
void marey__call_label(struct marey__buf *label, const struct marey__calls *calls,
                       uint32_t function, uint32_t signature);

/* ---- calls_walk.c: what follows from the tree ---- */

/* Who is called: a function, or a function with a signature. */
struct marey__call_sum {
    uint64_t calls, primitive, resumes; /* primitive: not within another call of the same */
    uint64_t self_ns, total_ns, max_ns; /* total: of primitive calls alone */
    uint64_t gpu_ns;                    /* as total */
};
struct marey__call_edge {
    uint32_t caller, callee;    /* entities; the key */
    struct marey__call_sum sum; /* primitive: not within another call of the same by the same */
};
struct marey__call_sums {
    bool by_signature;
    size_t n_functions;
    struct marey__call_sum *entities; /* by entity; those without calls are none */
    size_t n_entities;
    struct marey__call_edge *edges;
    size_t n_edges, edges_cap;
    struct marey__key_map by_key;
};
/* Returns false on out of memory, with `sums` finished. */
MAREY_WARN_UNUSED bool marey__call_sums_make(struct marey__call_sums *sums,
                                             const struct marey__calls *calls, bool by_signature);
void marey__call_sums_fini(struct marey__call_sums *sums);

/* With signatures, those come after all functions. */
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
 * All nodes but the root, depth first, the heaviest of siblings first; `gpu_ns`, by node, gets what was launched by a node
 * and below it. Both have room for all nodes. Returns false on out of memory.
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

/* The data of a report: what text has beyond the tables. */
struct marey__calls_report {
    struct marey__calls calls;
    struct {
        const char *filter; /* of functions by their name; NULL: all. Sums do not change by it */
        const char *sort;   /* self, total, calls, percall, name; "-" before it reverses */
        bool by_signature; /* `callers`, `callees`: a function with other arguments is another one */
        bool subtract;     /* the cost of measuring is taken out of the times */
        bool startup;      /* imports at module level count */
    } options;             /* its strings are lent while the report is made */
    uint64_t subtracted_ns;
    marey_table *const *tables; /* of the report, by enum marey__calls_table */
};
/* calls_text.c */
marey__put_answer marey__calls_text;

#endif
