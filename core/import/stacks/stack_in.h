/*
 * Files that hold stacks and sums instead of events: what their importers share.
 *
 *   text_frames.c ── frames: a function, its file, a line. They become sites
 *   paths.c ── the tree of all stacks with what was spent at the end of each, laid out on a clock of its own
 *   collapsed_text.c ── the lines of collapsed stacks taken apart
 *   marshal.c ── what Python's marshal wrote, as values
 *   pstats_tree.c ── functions and their callers, as a tree of paths
 *
 * Such files do not say when anything happened. Stacks are laid one behind the other, those that begin alike next to one
 * another, so that each path is one range: what was called from it comes first, its own time last.
 */
#ifndef MAREY_STACK_IN_H
#define MAREY_STACK_IN_H

#include "base/table_internal.h"
#include "import/internal.h"
#include "import/sink/sink_internal.h"

/* ---- text_frames.c ---- */

struct marey__text_frame {
    const char *text; /* the whole, where frames are known by it */
    const char *name, *file;
    size_t text_len, name_len, file_len;
    uint32_t line;
};

struct marey__frames {
    struct marey__arena texts;
    struct marey__text_frame *frames;
    size_t n, cap;
    uint64_t seed;
    struct marey__index by_text;
    bool names_decide; /* what has the same name is the same, wherever it is */
    bool names_lines;  /* functions of one name and file differ by their lines */
    bool *is_ambiguous; /* by frame, once they are named: the name alone would stand for two functions */
    uint32_t *sites; /* by frame, of the process at hand; 0: not asked for */
    const marey__sink_process *sites_of;
};

#define MAREY__NO_FRAME UINT32_MAX

void marey__frames_init(struct marey__frames *frames);
void marey__frames_fini(struct marey__frames *frames);
/* A new frame with copies of the texts; MAREY__NO_FRAME without memory. */
uint32_t marey__frames_add(struct marey__frames *frames, const struct marey__text_frame *frame);
/*
 * The frame that is written like this, "name (file:line)", "name (file)" or "name"; made when new. MAREY__NO_FRAME without
 * memory.
 */
uint32_t marey__frames_of_text(struct marey__frames *frames, const char *text, size_t len);
/* The frame of exactly this function, made when new. MAREY__NO_FRAME without memory. */
uint32_t marey__frames_of_function(struct marey__frames *frames,
                                   const struct marey__text_frame *frame);
/* Once all are there: find names that need their file to tell functions apart. False without memory. */
MAREY_WARN_UNUSED bool marey__frames_name(struct marey__frames *frames);
/* The frame's site in a process; processes are best asked one after the other. 0 without memory. */
uint32_t marey__frames_site(struct marey__frames *frames, marey__sink_process *process,
                            uint32_t number);

/* ---- paths.c ---- */

struct marey__path {
    uint32_t parent, frame;
    uint64_t self;  /* in any unit */
    uint64_t calls; /* that it stands for; may be 0 */
    /* Once finished. */
    uint64_t total;
    uint32_t first_child; /* the heaviest; 0: none */
    uint32_t next;        /* child of its parent, not heavier; 0: none */
    bool is_used;         /* it, or something below, has time or calls */
};

struct marey__paths {
    struct marey__path *paths; /* the root is 0; parents come before their children */
    size_t n, cap;
    uint32_t *slots; /* path number; 0: empty */
    uint32_t n_slots_log2;
};

/* More are not made, but for as many again of the outermost: a file must not fill the memory. */
enum { MAREY__MAX_PATHS = 1 << 23 };

MAREY_WARN_UNUSED bool marey__paths_init(struct marey__paths *paths);
void marey__paths_fini(struct marey__paths *paths);
/* The path that goes from `parent` on to `frame`, made when new; 0 without memory or beyond MAREY__MAX_PATHS. */
uint32_t marey__paths_child(struct marey__paths *paths, uint32_t parent, uint32_t frame);
/* Once all are there: totals, and an order. False without memory. */
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
 * Take a line apart: frames, then a number behind a blank, which leaves `*stack` and is rounded. With `is_difference` there are two
 * numbers, of which the latter counts. A stack may have no frames. False for what is no stack.
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

/* ---- marshal.c: Python's marshal, all versions, bounded in depth and size ---- */

enum marey__marshal_kind {
    MAREY__MARSHAL_OTHER,   /* None and whatever else no profile has */
    MAREY__MARSHAL_INTEGER, /* what is beyond 64 bits is the nearest that fits; True is 1 */
    MAREY__MARSHAL_REAL,
    MAREY__MARSHAL_TEXT,
    MAREY__MARSHAL_LIST, /* a tuple, list or set */
    MAREY__MARSHAL_DICT, /* `n` pairs: a key, then its value */
};

struct marey__marshal_value {
    enum marey__marshal_kind kind;
    uint32_t n; /* elements, pairs, bytes */
    union {
        int64_t integer;
        double real;
        const char *text; /* lent by the bytes, no NUL behind */
        size_t first;     /* in `items` */
    } as;
};

struct marey__marshal {
    struct marey__marshal_value *values;
    size_t n_values, values_cap;
    uint32_t *items; /* numbers of values */
    size_t n_items, items_cap;
    const char *mistake; /* a few words: "a length beyond the end of the file"; lent for ever */
    size_t offset;       /* where */
};

/*
 * Read one value, and with it all that it holds; `*top` is its number. MAREY_EFORMAT with `mistake`, MAREY_ENOMEM. Fini
 * in any case; a zeroed one is fine.
 */
MAREY_WARN_UNUSED marey_status marey__marshal_read(struct marey__marshal *marshal,
                                                   const void *bytes, size_t len, uint32_t *top);
void marey__marshal_fini(struct marey__marshal *marshal);
/* Element `i` of a list; of a dict, twice the pair's number is its key, and one more its value. */
static inline const struct marey__marshal_value *
marey__marshal_item(const struct marey__marshal *marshal, const struct marey__marshal_value *of,
                    size_t i)
{
    return &marshal->values[marshal->items[of->as.first + i]];
}

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
 * what it has. False without memory.
 */
MAREY_WARN_UNUSED bool marey__profile_expand(struct marey__profile *profile,
                                             struct marey__paths *paths);
/* Once the paths are finished: compare totals, of outermost calls, with those of the functions. False without memory. */
MAREY_WARN_UNUSED bool marey__profile_check(struct marey__profile *profile,
                                            const struct marey__paths *paths);

#endif
