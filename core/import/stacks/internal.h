/*
 * stacks: files with stacks and sums instead of events.
 *
 *   collapsed_in.c, collapsed_text.c   collapsed stacks, and py-spy's raw format
 *   austin_*.c, speedscope_*.c         Austin, speedscope
 *   pstats*.c                          cProfile's files
 *   python_values.c                    marshal, for pstats; pickles, for snapshots of torch's CUDA allocator
 *   text_frames.c, paths.c             frames as sites; the tree of all stacks, laid out in time
 *
 * Such files have no timestamps. Stacks are laid out one after another with equal prefixes side by side, so that each
 * path is one range: its callees first, its self time last.
 *
 * Input: foreign files. Output: ranges, through the sink. Does not know log blocks, analyses or kineto/.
 */
#ifndef MAREY_IMPORT_STACKS_INTERNAL_H
#define MAREY_IMPORT_STACKS_INTERNAL_H

#include "base/internal.h"
#include "codec/internal.h"
#include "import/internal.h"
#include "import/sink/internal.h"

/* ---- text_frames.c ---- */

/* Called for each line, without the line end; NULL for a line of more than 16 MiB. */
typedef marey_status marey__line_taker(void *ctx, const char *line, size_t len);
MAREY_WARN_UNUSED marey_status marey__read_lines(marey__byte_source *source,
                                                 marey__line_taker *take, void *ctx);

struct marey__text_frame {
    const char *name, *file;
    size_t name_len, file_len;
    uint32_t line;
    uint32_t name_number; /* after naming: equal for equal names */
};

struct marey__frames {
    struct marey__arena texts;
    struct marey__text_frame *frames;
    size_t n, cap;
    uint64_t seed;
    struct marey__names known; /* the text of each frame, by its number; empty if all were added */
    bool names_decide;         /* frames of equal names are the same, wherever they are */
    bool names_lines;          /* functions of one name and file differ by their lines */
    bool *is_ambiguous;        /* by `name_number`: the name alone would represent two functions */
    uint32_t *sites;           /* by frame, of the current process; 0: not looked up yet */
    const marey__sink_process *sites_of;
};

#define MAREY__NO_FRAME UINT32_MAX

void marey__frames_init(struct marey__frames *frames);
void marey__frames_fini(struct marey__frames *frames);
/* A new frame with copies of the texts; MAREY__NO_FRAME on out of memory. */
uint32_t marey__frames_add(struct marey__frames *frames, const struct marey__text_frame *frame);
/*
 * The frame for the text "name (file:line)", "name (file)" or "name", created if needed. MAREY__NO_FRAME on out of
 * memory.
 */
uint32_t marey__frames_of_text(struct marey__frames *frames, const char *text, size_t len);
/* The frame of exactly this function, created if needed. MAREY__NO_FRAME on out of memory. */
uint32_t marey__frames_of_function(struct marey__frames *frames,
                                   const struct marey__text_frame *frame);
/* After adding all frames: find names that need a file to distinguish functions. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__frames_name(struct marey__frames *frames);
/* The frame's site in a process; look up one process after another. 0 on out of memory. */
uint32_t marey__frames_site(struct marey__frames *frames, marey__sink_process *process,
                            uint32_t number);

/* ---- paths.c ---- */

struct marey__stack_path {
    uint32_t parent, frame;
    uint64_t self;  /* in any unit */
    uint64_t calls; /* number of calls represented; may be 0 */
    /* After finish. */
    uint64_t total;
    uint32_t first_child; /* the heaviest; 0: none */
    uint32_t next;        /* the next sibling, not heavier; 0: none */
    bool is_used;         /* it, or a descendant, has time or calls */
};

struct marey__paths {
    struct marey__stack_path *paths; /* the root is 0; parents come before their children */
    size_t n, cap;
    uint32_t *slots; /* path number; 0: empty */
    uint32_t n_slots_log2;
};

/* Limit on paths, so that a file cannot exhaust memory; as many again are allowed for outermost frames. */
enum { MAREY__MAX_PATHS = 1 << 23 };

MAREY_WARN_UNUSED bool marey__paths_init(struct marey__paths *paths);
void marey__paths_fini(struct marey__paths *paths);
/* The path from `parent` to `frame`, created if needed; 0 on out of memory or beyond MAREY__MAX_PATHS. */
uint32_t marey__paths_child(struct marey__paths *paths, uint32_t parent, uint32_t frame);
/* After adding all paths: totals and order. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__paths_finish(struct marey__paths *paths);
/* Lay out the used paths below `root` on a lane, from 0 on, `unit_ns` per unit. Failures stay in the sink. */
void marey__paths_write_ranges(const struct marey__paths *paths, uint32_t root,
                               struct marey__frames *frames, marey__sink_process *process,
                               uint32_t lane, uint64_t unit_ns);

/* ---- collapsed_text.c: all texts are borrowed and need no NUL ---- */

struct marey__text {
    const char *at;
    size_t len;
};

/*
 * Split a line into frames and a number after a blank, which is removed from `*stack` and rounded. With `is_difference`
 * there are two numbers, of which the second counts. A stack may have no frames. Returns false if it is not a stack.
 */
bool marey__collapsed_line(const char *line, size_t len, bool is_difference,
                           struct marey__text *stack, uint64_t *count);
/* Whether each of these lines ends in two numbers; the last line may be incomplete. */
bool marey__collapsed_is_difference(const char *bytes, size_t len);
/* Remove the next frame from a stack; false at the end. */
bool marey__collapsed_frame(struct marey__text *stack, struct marey__text *frame);
/* py-spy's `process 12:"python x.py"` and `thread (0x7F): MainThread`; false for other frames. */
bool marey__collapsed_process(const struct marey__text *frame, int64_t *pid,
                              struct marey__text *command);
bool marey__collapsed_thread(const struct marey__text *frame, int64_t *tid, struct marey__text *name);

/* ---- pstats_tree.c ---- */

/* A function, or its calls from one caller; times in nanoseconds. */
struct marey__profiled {
    uint64_t n_calls, self_ns;
    double total_ns;
};
struct marey__profiled_edge {
    uint32_t caller, callee;
    double n_calls, self_ns, total_ns;
};

struct marey__profile {
    struct marey__profiled *functions; /* by frame */
    size_t n_functions;
    struct marey__profiled_edge *edges;
    size_t n_edges;
    size_t max_paths;  /* followed in order of weight */
    uint64_t n_folded; /* set: paths that were not followed further */
    double folded_ns;  /* set: the time below them, shown below the same function elsewhere */
    /* Set by marey__profile_check: functions whose total differs from the file, and the one that differs most. */
    size_t n_off;
    uint32_t most_off;
    double most_off_ns;
};

/*
 * Create the paths below the root of `paths`, whose frames are functions. Calls and self times of each function add up
 * to its own. Returns false on out of memory.
 */
MAREY_WARN_UNUSED bool marey__profile_expand(struct marey__profile *profile,
                                             struct marey__paths *paths);
/*
 * After finishing the paths: compare totals of outermost calls with those of the functions. Returns false on out of
 * memory.
 */
MAREY_WARN_UNUSED bool marey__profile_check(struct marey__profile *profile,
                                            const struct marey__paths *paths);

/* ---- python_values.c: plain values written by Python; shared ones are stored once ---- */

enum marey__python_type {
    MAREY__PYTHON_NONE, /* and unused types of marshal */
    MAREY__PYTHON_BOOL, /* INT in marshal */
    MAREY__PYTHON_INT,
    MAREY__PYTHON_FLOAT,
    MAREY__PYTHON_TEXT,
    MAREY__PYTHON_LIST, /* and tuples */
    MAREY__PYTHON_DICT, /* keys and values alternate */
};

struct marey__python_value {
    uint8_t type; /* enum marey__python_type */
    uint32_t n;   /* bytes of a text, items of a list, twice the pairs of a dict */
    uint32_t cap;
    union {
        int64_t number; /* also of a bool; clamped to 64 bits */
        double real;
        const char *text; /* points into the bytes; unchecked UTF-8, without a NUL */
        uint32_t *items;  /* numbers of values. They may refer to one another in a cycle */
    } as;
};

struct marey__python_values {
    struct marey__python_value *values;
    size_t n, cap;
    uint32_t top;
    const char *mistake; /* what is wrong with the bytes, and where; NULL: nothing. Static */
    size_t offset;
};

/*
 * Read `len` bytes, which must outlive the values; call fini in any case. Returns false with `mistake`, which is NULL
 * on out of memory.
 */
MAREY_WARN_UNUSED bool marey__unpickle(struct marey__python_values *pickle, const void *bytes,
                                       size_t len);
MAREY_WARN_UNUSED bool marey__unmarshal(struct marey__python_values *values, const void *bytes,
                                        size_t len);
void marey__python_values_fini(struct marey__python_values *pickle);

/* The value of `key`; NULL if `value` is NULL, not a dict, or lacks the key. */
const struct marey__python_value *marey__python_get(const struct marey__python_values *pickle,
                                                    const struct marey__python_value *value,
                                                    const char *key);
/* Items of a list; 0 for anything else, including NULL. */
size_t marey__python_length(const struct marey__python_value *value);
const struct marey__python_value *marey__python_item(const struct marey__python_values *pickle,
                                                     const struct marey__python_value *list,
                                                     size_t i);
/* A number of any type; false for anything else, including NULL. */
bool marey__python_number(const struct marey__python_value *value, double *out);
bool marey__python_whole(const struct marey__python_value *value, int64_t *out);
/* A text and its length; NULL for anything else. */
const char *marey__python_text(const struct marey__python_value *value, size_t *len);
bool marey__python_is(const struct marey__python_value *value, const char *text);

/* State of building a profile's tree: see pstats_tree.c. */

enum { MAREY__PROFILE_DEPTH = 300 };

#define MAREY__NO_EDGE UINT32_MAX
#define MAREY__NO_CYCLE UINT32_MAX

/* State of a function. */
struct marey__function_state {
    uint32_t first_out, n_out; /* its calls of others, in `out`, the longest first */
    uint32_t cycle;            /* of functions that call one another; MAREY__NO_CYCLE: none */
    double root_calls, root_self_ns, root_total_ns; /* called from outside the profile */
    double root_share; /* of time in its callees; the shares of all functions add up to 1 */
    double below_ns;   /* time in its callees */
    bool is_expanded;
    double expanded_share; /* sum over its expanded paths */
    uint32_t n_paths, n_expanded;
    uint32_t roomiest; /* path of a function in a cycle with the most time left; 0: none */
    /* Sums over all its paths, and how much of them is distributed. */
    double calls_weight, self_weight, calls_seen, self_seen;
    uint64_t calls_given, self_given;
};

/* State of a call of one function by another. */
struct marey__edge_state {
    double share;   /* of the callee's calls */
    bool is_inner;  /* both are in the same cycle */
    double n_calls; /* for a caller in a cycle: sum over its paths */
    uint64_t run;   /* in which it was last assigned to a path */
};

/* State of a path, by its number. */
struct marey__profile_step {
    uint32_t edge; /* from its caller; MAREY__NO_EDGE: outermost */
    uint32_t depth;
    double share;
    double n_calls, total_ns; /* estimates, for functions in cycles */
    double left_ns;           /* of total_ns, not yet assigned to callees */
    bool is_expanded;
    bool is_spare;     /* outermost although the file has no such call */
    bool is_once_more; /* from a call already assigned to a path: around a cycle */
};

struct marey__profile_making {
    struct marey__profile *profile;
    struct marey__paths *paths;
    struct marey__function_state *functions;
    struct marey__edge_state *edges;
    uint32_t *out; /* edges by caller */
    struct marey__profile_step *steps;
    size_t steps_cap;
    struct marey__profile_candidate {
        double ns;
        uint32_t path;
    } * heap; /* the heaviest first */
    size_t n_heap, heap_cap;
    /* pstats_cycles.c */
    struct marey__call_cycle {
        uint32_t n_edges;  /* calls by its functions */
        uint32_t n_new;    /* of these, not on any path so far */
        double entries_ns; /* total of all calls of its functions by others */
    } * cycles;
    size_t n_cycles;
    uint64_t n_runs;
    uint32_t *todo; /* paths */
    size_t n_todo, todo_cap;
    uint64_t n_looks; /* calls checked so far */
};

/* A new path from `parent` to `function`. 0 on out of memory. */
uint32_t marey__profile_path(struct marey__profile_making *m, uint32_t parent, uint32_t function,
                             const struct marey__profile_step *step);
/* Queue the path to be followed if its function calls any. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__profile_candidate(struct marey__profile_making *m, uint32_t path);

/* ---- pstats_cycles.c ---- */

/* Find cycles of functions that call one another. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__call_cycles_find(struct marey__profile_making *m);
/* Follow the path into its function's cycle. With `only_new`, use only calls that no path has. */
MAREY_WARN_UNUSED bool marey__call_cycle_enter(struct marey__profile_making *m, uint32_t path,
                                               bool only_new);
/* Assign calls in cycles that fit nowhere to the least bad place. `*is_any`: whether there were any. */
MAREY_WARN_UNUSED bool marey__call_cycles_force(struct marey__profile_making *m, bool *is_any);

/* ==== austin_in ==== */

/*
 * Austin's files, in two formats.
 *
 *   austin_mojo.c ── binary: strings and frames are defined once and then referenced by keys
 *   austin_in.c ── P12;T0:13;train.py:main:3;train.py:step:9 10077        a line per sample
 *                  also turns samples into ranges, per thread
 *
 * A file is read twice: ambiguous names are known only after all frames.
 */

/* One sample of a thread. Frames are outermost first; without any the thread was not in Python. */
struct marey__austin_sample {
    int64_t pid, tid;
    uint32_t interpreter;
    uint64_t time_us;
    int64_t bytes; /* growth of the process since the last sample */
    bool is_idle;
    const uint32_t *frames; /* borrowed */
    size_t n_frames;
};

/* Errors in a file. */
struct marey__austin_mistakes {
    uint64_t n_bad, first_bad; /* lines that are not samples; frames without a definition */
    const char *ends;          /* why a binary file cannot be read further; NULL: it can. Static */
    uint64_t ends_at;
};

/* Receives the contents of a file; both functions return false on out of memory. */
struct marey__austin_visitor {
    bool (*meta)(void *ctx, struct marey__text key, struct marey__text value);
    bool (*sample)(void *ctx, const struct marey__austin_sample *sample);
    void *ctx;
    struct marey__frames *frames; /* to add to */
    struct marey__austin_mistakes *mistakes;
};

/* Read all of `bytes`. Fails with MAREY_EIO or MAREY_ENOMEM; other errors are in the visitor's mistakes. */
MAREY_WARN_UNUSED marey_status marey__austin_mojo(marey__byte_source *bytes,
                                                  const struct marey__austin_visitor *visitor);
/* Parse and skip the digits at the start of a text; false if there are none, or beyond 2^58. */
bool marey__austin_number(struct marey__text *text, unsigned base, int64_t *number);

/* Kept between the two passes over a speedscope file: see speedscope_in.c. */

enum marey__speedscope_type {
    MAREY__SPEEDSCOPE_UNKNOWN,
    MAREY__SPEEDSCOPE_EVENTED,
    MAREY__SPEEDSCOPE_SAMPLED,
};

/* Metadata of a profile. */
struct marey__speedscope_profile {
    enum marey__speedscope_type type;
    const char *name;         /* "" for none */
    const char *unit;         /* as in the file; never freed */
    int scale;                /* nanoseconds are numbers times ten to this power */
    int64_t start_ns, end_ns; /* 0: unknown */
};

struct marey__speedscope {
    struct marey__frames frames;
    struct marey__speedscope_profile *profiles;
    size_t n_profiles, profiles_cap;
    struct marey__arena texts;
    bool *is_owner;      /* by frame: py-spy's name of a process or thread */
    int64_t base_ns;     /* the earliest start of a profile if negative, else 0 */
    size_t n_unknown;    /* profiles of unknown type */
    uint64_t mistake_at; /* where the file stops being JSON, and why; NULL: nowhere */
    const char *mistake;
};

/*
 * Read frames and profiles from the start of the file; `import->bytes` stays open. MAREY_EFORMAT with a message if
 * there is no frame or no profile. Call fini in any case.
 */
MAREY_WARN_UNUSED marey_status marey__speedscope_read_outline(struct marey__speedscope *outline,
                                                              const struct marey__import *import);
void marey__speedscope_fini(struct marey__speedscope *outline);
/* Add notes about units and about unreadable data. */
void marey__speedscope_put_notes(const struct marey__speedscope *outline,
                                 marey__sink_process *process, const char *path);

#endif
