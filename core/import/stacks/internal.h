/*
 * stacks: files with stacks and sums instead of events.
 *
 *   collapsed_in.c, collapsed_text.c   collapsed stacks, and py-spy's raw format
 *   austin_*.c, speedscope_*.c         Austin, speedscope
 *   pstats*.c                          cProfile's files
 *   python_values.c                    Python's marshal, for pstats; pickles, for snapshots of torch's CUDA allocator
 *   text_frames.c, paths.c             frames as sites; the tree of all stacks, laid out in time
 *
 * Such files have no timestamps. Stacks are laid out one after the other, equal prefixes next to each other, so that each
 * path is one range: its callees first, its self time last.
 *
 * Input: foreign files. Output: ranges, through the sink.
 */
#ifndef MAREY_IMPORT_STACKS_INTERNAL_H
#define MAREY_IMPORT_STACKS_INTERNAL_H

#include "base/internal.h"
#include "codec/internal.h"
#include "import/internal.h"
#include "import/sink/internal.h"

/* ---- text_frames.c ---- */

/* Called for each line, without its end; with NULL for one of more than 16 MiB. */
typedef marey_status marey__line_taker(void *ctx, const char *line, size_t len);
MAREY_WARN_UNUSED marey_status marey__read_lines(marey__byte_source *source,
                                                 marey__line_taker *take, void *ctx);

struct marey__text_frame {
    const char *name, *file;
    size_t name_len, file_len;
    uint32_t line;
    uint32_t name_number; /* once they are named: equal for equal names */
};

struct marey__frames {
    struct marey__arena texts;
    struct marey__text_frame *frames;
    size_t n, cap;
    uint64_t seed;
    struct marey__names known; /* what each frame was made of, by its number; empty where all were added */
    bool names_decide;         /* what has the same name is the same, wherever it is */
    bool names_lines;          /* functions of one name and file differ by their lines */
    bool *is_ambiguous;        /* by `name_number`: the name alone would represent two functions */
    uint32_t *sites;           /* by frame, of the process at hand; 0: not asked for */
    const marey__sink_process *sites_of;
};

#define MAREY__NO_FRAME UINT32_MAX

void marey__frames_init(struct marey__frames *frames);
void marey__frames_fini(struct marey__frames *frames);
/* A new frame with copies of the texts; MAREY__NO_FRAME on out of memory. */
uint32_t marey__frames_add(struct marey__frames *frames, const struct marey__text_frame *frame);
/*
 * The frame that is written like this, "name (file:line)", "name (file)" or "name"; made when new. MAREY__NO_FRAME without
 * memory.
 */
uint32_t marey__frames_of_text(struct marey__frames *frames, const char *text, size_t len);
/* The frame of exactly this function, made when new. MAREY__NO_FRAME on out of memory. */
uint32_t marey__frames_of_function(struct marey__frames *frames,
                                   const struct marey__text_frame *frame);
/* Once all are there: find names that need their file to tell functions apart. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__frames_name(struct marey__frames *frames);
/* The frame's site in a process; processes are best asked one after the other. 0 on out of memory. */
uint32_t marey__frames_site(struct marey__frames *frames, marey__sink_process *process,
                            uint32_t number);

/* ---- paths.c ---- */

struct marey__stack_path {
    uint32_t parent, frame;
    uint64_t self;  /* in any unit */
    uint64_t calls; /* that it represents; may be 0 */
    /* Once finished. */
    uint64_t total;
    uint32_t first_child; /* the heaviest; 0: none */
    uint32_t next;        /* child of its parent, not heavier; 0: none */
    bool is_used;         /* it, or something below, has time or calls */
};

struct marey__paths {
    struct marey__stack_path *paths; /* the root is 0; parents come before their children */
    size_t n, cap;
    uint32_t *slots; /* path number; 0: empty */
    uint32_t n_slots_log2;
};

/* More are not made, but for as many again of the outermost: a file must not fill the memory. */
enum { MAREY__MAX_PATHS = 1 << 23 };

MAREY_WARN_UNUSED bool marey__paths_init(struct marey__paths *paths);
void marey__paths_fini(struct marey__paths *paths);
/* The path that goes from `parent` on to `frame`, made when new; 0 on out of memory or beyond MAREY__MAX_PATHS. */
uint32_t marey__paths_child(struct marey__paths *paths, uint32_t parent, uint32_t frame);
/* Once all are there: totals, and an order. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__paths_finish(struct marey__paths *paths);
/* Lay what is used below `root` on a lane, from 0 on, `unit_ns` for each unit. Failures stay in the sink. */
void marey__paths_lay(const struct marey__paths *paths, uint32_t root, struct marey__frames *frames,
                      marey__sink_process *process, uint32_t lane, uint64_t unit_ns);

/* ---- collapsed_text.c: all texts are lent and need not end in a NUL ---- */

struct marey__text {
    const char *at;
    size_t len;
};

/*
 * Take a line apart: frames, then a number after a blank, which leaves `*stack` and is rounded. With `is_difference` there are two
 * numbers, of which the latter counts. A stack may have no frames. False for what is not a stack.
 */
bool marey__collapsed_line(const char *line, size_t len, bool is_difference,
                           struct marey__text *stack, uint64_t *count);
/* Whether each of these lines ends in two numbers; of the last one more may come. */
bool marey__collapsed_is_difference(const char *bytes, size_t len);
/* The next frame of a stack, which gets shorter by it; false when there is none. */
bool marey__collapsed_frame(struct marey__text *stack, struct marey__text *frame);
/* `process 12:"python x.py"` and `thread (0x7F): MainThread` as py-spy writes them; false for other frames. */
bool marey__collapsed_process(const struct marey__text *frame, int64_t *pid,
                              struct marey__text *command);
bool marey__collapsed_thread(const struct marey__text *frame, int64_t *tid, struct marey__text *name);

/* ---- pstats_tree.c ---- */

/* A function, and its calls from one caller; times in nanoseconds. */
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
    size_t max_paths;  /* heavier ones are followed first */
    uint64_t n_folded; /* set: paths that were not followed further */
    double folded_ns; /* set: the time below them, which is shown below the same function elsewhere */
    /* Set by marey__profile_check: functions whose total is another than it should be, and the one that is most so. */
    size_t n_off;
    uint32_t most_off;
    double most_off_ns;
};

/*
 * Make the paths below the root of `paths`, whose frames are functions. Calls and self times of each function add up to
 * what it has. Returns false on out of memory.
 */
MAREY_WARN_UNUSED bool marey__profile_expand(struct marey__profile *profile,
                                             struct marey__paths *paths);
/* Once the paths are finished: compare totals, of outermost calls, with those of the functions. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__profile_check(struct marey__profile *profile,
                                            const struct marey__paths *paths);

/* ---- python_values.c: plain values that Python wrote; those that a file refers to again are there once ---- */

enum marey__python_type {
    MAREY__PYTHON_NONE, /* and in marshal what no profile has */
    MAREY__PYTHON_BOOL, /* in marshal INT */
    MAREY__PYTHON_INT,
    MAREY__PYTHON_FLOAT,
    MAREY__PYTHON_TEXT,
    MAREY__PYTHON_LIST, /* tuples are lists */
    MAREY__PYTHON_DICT, /* keys and values take turns */
};

struct marey__python_value {
    uint8_t type; /* enum marey__python_type */
    uint32_t n;   /* bytes of a text, items of a list, twice the pairs of a dict */
    uint32_t cap;
    union {
        int64_t number; /* also of a bool; one that does not fit is the nearest that does */
        double real;
        const char *text; /* lent by the bytes; UTF-8 that nobody has checked, without a NUL */
        uint32_t *items;  /* numbers of values. They may hold one another in a circle */
    } as;
};

struct marey__python_values {
    struct marey__python_value *values;
    size_t n, cap;
    uint32_t top;
    const char *mistake; /* what is wrong with the bytes, and where; NULL: nothing. Static */
    size_t offset;
};

/* Read `len` bytes, which are lent while the values are used; fini in any case. False: see `mistake`, NULL on out of memory. */
MAREY_WARN_UNUSED bool marey__unpickle(struct marey__python_values *pickle, const void *bytes,
                                       size_t len);
MAREY_WARN_UNUSED bool marey__unmarshal(struct marey__python_values *values, const void *bytes,
                                        size_t len);
void marey__python_values_fini(struct marey__python_values *pickle);

/* The value under `key`, NULL when `value` is NULL, no dict, or has it not. */
const struct marey__python_value *marey__python_get(const struct marey__python_values *pickle,
                                                    const struct marey__python_value *value,
                                                    const char *key);
/* Items of a list; 0 for anything else, also NULL. */
size_t marey__python_length(const struct marey__python_value *value);
const struct marey__python_value *marey__python_item(const struct marey__python_values *pickle,
                                                     const struct marey__python_value *list,
                                                     size_t i);
/* A number, whichever kind; false for anything else, also NULL. */
bool marey__python_number(const struct marey__python_value *value, double *out);
bool marey__python_whole(const struct marey__python_value *value, int64_t *out);
/* A text and its length; NULL for anything else. */
const char *marey__python_text(const struct marey__python_value *value, size_t *len);
bool marey__python_is(const struct marey__python_value *value, const char *text);

/* The tree of a profile in the making: see pstats_tree.c. */

enum { MAREY__PROFILE_DEPTH = 300 };

#define MAREY__NO_EDGE UINT32_MAX
#define MAREY__NO_CIRCLE UINT32_MAX

/* Of a function. */
struct marey__function_state {
    uint32_t first_out, n_out; /* its calls of others, in `out`, the longest first */
    uint32_t circle; /* of functions that call one another; MAREY__NO_CIRCLE: it is in none */
    double root_calls, root_self_ns, root_total_ns; /* from outside of what was profiled */
    double root_share; /* of time in its callees, of which all of these are 1 */
    double below_ns;   /* time in its callees */
    bool is_expanded;
    double expanded_share; /* sum over its paths that are expanded */
    uint32_t n_paths, n_expanded;
    uint32_t roomiest; /* path of a function in a circle that has most time left; 0: none */
    /* Sums over all its paths, and how much of that was dealt out. */
    double calls_weight, self_weight, calls_seen, self_seen;
    uint64_t calls_given, self_given;
};

/* Of a call of one function by another. */
struct marey__edge_state {
    double share;   /* of what the callee calls */
    bool is_inner;  /* both are in the same circle */
    double n_calls; /* of a caller in a circle: sum over the paths that it is on */
    uint64_t run;   /* in which it was last given to a path */
};

/* Of a path, by its number. */
struct marey__profile_step {
    uint32_t edge; /* from its caller; MAREY__NO_EDGE: it is outermost */
    uint32_t depth;
    double share;
    double n_calls, total_ns; /* about; for functions in circles */
    double left_ns;           /* of the latter, for which nothing was found that was called */
    bool is_expanded;
    bool is_spare;     /* outermost though the file has no such call */
    bool is_once_more; /* by a call that was given to a path before: around a circle */
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
    /* pstats_circles.c */
    struct marey__profile_circle {
        uint32_t n_edges;  /* calls by its functions */
        uint32_t n_new;    /* of these, not on any path so far */
        double entries_ns; /* total of all calls of its functions by others */
    } * circles;
    size_t n_circles;
    uint64_t n_runs;
    uint32_t *todo; /* paths */
    size_t n_todo, todo_cap;
    uint64_t n_looks; /* at calls, so far */
};

/* A new path from `parent` on to `function`. 0 on out of memory. */
uint32_t marey__profile_path(struct marey__profile_making *m, uint32_t parent, uint32_t function,
                             const struct marey__profile_step *step);
/* Make the path a candidate to be followed, if its function calls any. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__profile_candidate(struct marey__profile_making *m, uint32_t path);

/* ---- pstats_circles.c ---- */

/* Find functions that call one another in circles. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__circles_find(struct marey__profile_making *m);
/* Follow the path into the circle that its function is in. With `only_new`, only for calls that no path has. */
MAREY_WARN_UNUSED bool marey__circle_enter(struct marey__profile_making *m, uint32_t path,
                                           bool only_new);
/* Give calls in circles that found no place the least bad one. `*is_any` reports whether there were such. */
MAREY_WARN_UNUSED bool marey__circles_force(struct marey__profile_making *m, bool *is_any);

/* ==== austin_in ==== */

/*
 * Files of austin, in two forms.
 *
 *   austin_mojo.c ── the same as bytes: strings and frames are defined once and then meant by their keys
 *   austin_in.c ── P12;T0:13;train.py:main:3;train.py:step:9 10077        a line for each sample
 *                  samples to ranges: which come when, on which thread
 *
 * A file is read twice: names that represent two functions are known only when all frames are.
 */

/* A thread as austin saw it once. Frames are the outermost first; without any it was not in Python. */
struct marey__austin_sample {
    int64_t pid, tid;
    uint32_t interpreter;
    uint64_t time_us;
    int64_t bytes; /* that the process grew by since the last one */
    bool is_idle;
    const uint32_t *frames; /* lent */
    size_t n_frames;
};

/* Errors in a file. */
struct marey__austin_mistakes {
    uint64_t n_bad, first_bad; /* lines that are not samples; frames that were never defined */
    const char *ends; /* why a file of bytes cannot be read further; NULL: it can. Static */
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

/* Read all of `bytes`. MAREY_EIO, MAREY_ENOMEM; other errors are in the visitor's mistakes. */
MAREY_WARN_UNUSED marey_status marey__austin_mojo(marey__byte_source *bytes,
                                                  const struct marey__austin_visitor *visitor);
/* The digits that a text begins with, which are stepped over; false without any, or beyond 2^58. */
bool marey__austin_number(struct marey__text *text, unsigned base, int64_t *number);

/* Between the two readings of a file of speedscope: see speedscope_in.c. */

enum marey__speedscope_type {
    MAREY__SPEEDSCOPE_UNKNOWN,
    MAREY__SPEEDSCOPE_EVENTED,
    MAREY__SPEEDSCOPE_SAMPLED,
};

/* What a profile says about itself. */
struct marey__speedscope_profile {
    enum marey__speedscope_type type;
    const char *name;         /* "" for none */
    const char *unit;         /* as the file has it; lent for ever */
    int scale;                /* a number times ten to this power is nanoseconds */
    int64_t start_ns, end_ns; /* 0: not said */
};

struct marey__speedscope {
    struct marey__frames frames;
    struct marey__speedscope_profile *profiles;
    size_t n_profiles, profiles_cap;
    struct marey__arena texts;
    bool *is_owner;      /* by frame: py-spy names a process or a thread by it */
    int64_t base_ns;     /* the earliest begin of a profile where that is below 0, else 0 */
    size_t n_unknown;    /* profiles of no known type */
    uint64_t mistake_at; /* where the file stops being JSON, and why; NULL: it does not */
    const char *mistake;
};

/*
 * Read frames and profiles, from the begin of the file; `import->bytes` is left as it is. MAREY_EFORMAT with a sentence
 * when there is no frame or no profile. Fini in any case.
 */
MAREY_WARN_UNUSED marey_status marey__speedscope_read_outline(struct marey__speedscope *outline,
                                                              const struct marey__import *import);
void marey__speedscope_fini(struct marey__speedscope *outline);
/* Leave sentences about units and about what could not be read. */
void marey__speedscope_put_notes(const struct marey__speedscope *outline,
                                 marey__sink_process *process, const char *path);

#endif
