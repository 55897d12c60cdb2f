/*
 * samples: stack samples of a job's threads.
 *
 *   samples_read.c      definitions of all samplers' logs merged into one store; rounds in order of time
 *   samples_import.c    files of other samplers: their ranges as stacks
 *   samples_join.c      ranges and iterations of the sampled processes, as spans of time
 *   samples_filter.c, samples_names.c   which samples count: one choice for all outputs
 *   samples_play.c      rounds, one after another
 *        |
 *   samples_sums.c      sums by thread, stack and wait --> samples_tables.c, samples_audit.c
 *   samples_slow.c, samples_library.c   samples in slow iterations; by library
 *   samples_report.c, samples_text.c    the report
 *
 * Input: recordings with samples. Output: tables. analyze/calls makes a call tree of the same samples. Does not know
 * how a stack was read: neither sampler/remote nor sampler/loop.
 */
#ifndef MAREY_ANALYZE_SAMPLES_INTERNAL_H
#define MAREY_ANALYZE_SAMPLES_INTERNAL_H

#include "analyze/walk/internal.h"
#include "base/internal.h"
#include "read/internal.h"
#include "report/internal.h"
#include "sampler/store/internal.h"

/* ---- samples_read.c ---- */

/* Maps numbers of a log, from 1, to the store's. */
struct marey__samples_numbers {
    uint32_t *of;
    size_t n, cap;
};
/* 0 for an undefined number. */
static inline uint32_t marey__samples_number(const struct marey__samples_numbers *numbers,
                                             uint64_t number)
{
    return number != 0 && number <= numbers->n ? numbers->of[number - 1] : 0;
}

/* A log of a sampler. */
struct marey__samples_source {
    marey_recording *recording; /* borrowed */
    size_t log;                 /* its number there */
    struct marey__samples_numbers processes, threads, functions, locations, stacks;
    double rate_hz;    /* 0: unknown */
    char strategy[16]; /* "" unknown */
    struct marey_samples_counts counts;
    uint64_t first_ns, last_ns; /* of its rounds */
    uint64_t n_rounds;
};

/* Further data of a process in the store. */
struct marey__samples_target {
    marey_recording *recording; /* of its sampler; borrowed */
    uint32_t log;               /* its own log there; MAREY__NO_LOG: none */
    uint32_t source;            /* the last sampler that saw it */
    uint32_t parent;            /* index in the store; 0: none */
    uint64_t first_ns, last_ns;
    uint64_t n_rounds;
    /* Set by the latest visit with a choice. */
    uint64_t known_ns, cpu_ns; /* of its main threads; on a CPU core, of all threads */
    uint64_t counted_ns;       /* of samples that count, whether or not the process is idle */
    bool is_idle, is_launcher; /* its samples do not count */
};
#define MAREY__NO_LOG UINT32_MAX

/* Samples with one stack from a file of another sampler, which has no rounds. */
struct marey__samples_imported {
    uint32_t process, thread, stack;
    uint64_t n, at_ns, weight_ns; /* weight: sum over all of them */
};

/* The name of the row for samples of threads without Python frames. */
#define MAREY__NO_FRAMES "(no Python frames)"

struct marey__samples_set {
    marey_samples *samples; /* all definitions, and counts by process */
    struct marey__samples_source *sources;
    size_t n_sources, sources_cap;
    struct marey__samples_target *targets;    /* by process, from 1 */
    struct marey__samples_imported *imported; /* if there is no sampler's log */
    size_t n_imported, imported_cap;
    uint64_t n_imported_samples;
    uint64_t startup_ns;   /* of samples that a visit excluded as start-up */
    uint64_t task_wait_ns; /* of samples of workers waiting for their next task */
    uint64_t idle_ns;      /* of samples of idle processes, */
    uint32_t n_idle, n_launchers,
        longest_idle; /* how many processes, and the one with the most idle time */
};

/*
 * Read the definitions and counts of samplers in `n` recordings, which must live until fini. The set has no sources if
 * there are none. On failure fini has run on it. Fails with MAREY_ENOMEM or MAREY_EIO.
 */
MAREY_WARN_UNUSED marey_status marey__samples_open(struct marey__samples_set *set,
                                                   marey_recording *const *recordings, size_t n);
void marey__samples_fini(struct marey__samples_set *set);

/*
 * A round: numbers are the store's, the time is CLOCK_MONOTONIC of its machine, the weight is always set. `seen` has
 * the samples that count, possibly none, and is valid during the call.
 */
typedef marey_status marey__samples_visitor(void *ctx, const struct marey_samples_round *round);

struct marey__samples_chosen;
/*
 * Visit all rounds of all samplers in order of time (across machines, by their wall clocks); rounds of a process keep
 * their order. `chosen` NULL: all samples count. An error from the visitor ends the visit.
 *
 * Idle processes are known only at the end: the caller must exclude samples of targets with `is_idle` from its sums.
 */
MAREY_WARN_UNUSED marey_status marey__samples_visit(struct marey__samples_set *set,
                                                    const struct marey__samples_chosen *chosen,
                                                    marey__samples_visitor *visitor, void *ctx);
/* The same, and `seen` includes samples that only `mode` excludes. */
MAREY_WARN_UNUSED marey_status marey__samples_visit_modes(struct marey__samples_set *set,
                                                          const struct marey__samples_chosen *chosen,
                                                          marey__samples_visitor *visitor, void *ctx);

/* The same for all threads, and `seen` includes samples of workers that wait for a task. */
MAREY_WARN_UNUSED marey_status marey__samples_visit_waits(struct marey__samples_set *set,
                                                          const struct marey__samples_chosen *chosen,
                                                          marey__samples_visitor *visitor, void *ctx);

/* ---- samples_import.c ---- */

/* Whether one of these has samples from marey's sampler; whether they include files of other samplers. */
bool marey__samples_are_there(marey_recording *const *recordings, size_t n);
bool marey__samples_are_imported(marey_recording *const *recordings, size_t n);
/* Add their processes, stacks and samples to the store and `imported`. */
MAREY_WARN_UNUSED marey_status marey__samples_take_imports(struct marey__samples_set *set,
                                                           marey_recording *const *recordings,
                                                           size_t n);
/* From the first imported sample to the last. */
uint64_t marey__samples_imported_ns(const struct marey__samples_set *set);
/* Pass each on as a separate round. */
typedef marey_status marey__samples_round_visitor(void *ctx, struct marey_samples_round *round);
MAREY_WARN_UNUSED marey_status marey__samples_visit_imported(struct marey__samples_set *set,
                                                             marey__samples_round_visitor *hand,
                                                             void *ctx);

/* ---- samples_names.c ---- */

enum {
    MAREY__IN_IMPORT = 1,
    MAREY__IN_STARTUP = 2,
    MAREY__IN_FUNCTION = 4,
    MAREY__IN_TASK_LOOP = 8, /* the frame is a worker's loop over tasks, */
    MAREY__IN_TASK_WAIT = 16 /* or it is below, where it waits for the next one */
};
/* Flags of a frame, given those of the frame around it; 0 for the outermost. */
uint8_t marey__import_flags(uint8_t around, bool is_python, const char *name, const char *file);
/* Flags of all kinds, by stack; NULL on out of memory. */
uint8_t *marey__samples_stack_flags(const marey_samples *samples);
bool marey__is_importlib(const char *file);
/*
 * Whether it is the top-level code of a file, which starts at line 1 and whose frames are identified by the executed
 * line.
 */
bool marey__is_top_level(const struct marey_samples_function *function);
/* Whether a forked process's own frames begin with this one. */
bool marey__is_worker_entry(const struct marey_samples_function *function);

/* ---- samples_filter.c ---- */

/*
 * Which samples count, as the settings of the analysis say. Zeroed: main threads by wall clock, others while on a CPU core;
 * without idle processes, if another process works and no thread, rank or process is selected: those on a CPU core for less
 * than 5 % of their time that have no rank, or are workers of one, and count no steps; launchers, from which ranks descend;
 * and workers while they wait for their next task. Notes list the omitted times.
 */
struct marey__samples_filter {
    const char *mode; /* NULL: "wall" */
    int idle;
    /* These use the log of the process; if it has none, the last three use its parent's. */
    const char *range, *iterations, *epochs, *phase;
    const char *thread, *rank, *process;
    int startup; /* count imports at start-up, and show the frames of importlib */
};

/* From settings of the analysis "samples"; lends their text. NULL: the defaults. MAREY_EINVAL: a wrong setting. */
MAREY_WARN_UNUSED marey_status marey__samples_filter_parse(const char *const *settings,
                                                           struct marey__samples_filter *out);
/* Whether `which` selects the process: see struct marey__samples_filter; NULL: any. */
bool marey__process_matches(const char *which, int64_t pid, int32_t worker, const char *command);

/* Checks what can be checked without samples. */
MAREY_WARN_UNUSED marey_status marey__samples_check(const struct marey__samples_filter *filter);
/*
 * Prepare a filter (NULL: the default one): selects threads by name and rank, reads spans of ranges and iterations.
 * `is_complete`: start-up and idle processes always count, for complete exports.
 */
MAREY_WARN_UNUSED marey_status marey__samples_choose(struct marey__samples_set *set,
                                                     const struct marey__samples_filter *filter,
                                                     bool is_complete,
                                                     struct marey__samples_chosen **out);
void marey__samples_chosen_destroy(struct marey__samples_chosen *chosen);
/* Filter by process, time and thread state. */
bool marey__samples_matches(const struct marey__samples_chosen *chosen, uint32_t process,
                            uint64_t at_ns, uint32_t thread);
bool marey__samples_is_of_mode(const struct marey__samples_chosen *chosen,
                               const struct marey_samples_seen *seen);
/* Whether it is start-up, regardless of other filters; false if the choice is complete. */
bool marey__samples_is_startup(const struct marey__samples_chosen *chosen, uint32_t process,
                               uint64_t at_ns, uint32_t stack);
/* Whether a worker waits for its next task in this stack, and the choice excludes that. */
bool marey__samples_is_task_wait(const struct marey__samples_chosen *chosen, uint32_t stack);
/*
 * Whether start-up counts, so importlib's frames are shown. Otherwise, as in tracebacks, an import's time belongs to
 * the frame around importlib.
 */
bool marey__samples_shows_imports(const struct marey__samples_chosen *chosen);
/* The choice in words, without a full stop: "main thread: wall clock; other threads: on-CPU only". */
const char *marey__samples_chosen_what(const struct marey__samples_chosen *chosen);

/* Add a sample to the work of its process; imports are not work. */
void marey__samples_note_work(struct marey__samples_set *set, const struct marey_samples_round *round,
                              const struct marey_samples_seen *seen);
/* After a visit: mark idle processes if the choice excludes them. */
void marey__samples_find_idle(struct marey__samples_set *set,
                              const struct marey__samples_chosen *chosen);

/* The report of samples (samples_report.c) and the data for its tables. */

enum marey__samples_table {
    MAREY__SAMPLES_FUNCTIONS,
    MAREY__SAMPLES_LINES,
    MAREY__SAMPLES_FILES,
    MAREY__SAMPLES_MODULES,
    MAREY__SAMPLES_THREADS,
    MAREY__SAMPLES_PROCESSES,
    MAREY__SAMPLES_RANKS,
    MAREY__SAMPLES_STACKS,
    MAREY__SAMPLES_CONTACTS,
    MAREY__SAMPLES_LEAVES,
    MAREY__SAMPLES_LEAF_PATHS,
    MAREY__SAMPLES_WAITS,
    MAREY__SAMPLES_GIL,
    MAREY__SAMPLES_AUDIT,
    MAREY__SAMPLES_TOTALS,
    MAREY__SAMPLES_NOTES,
    MAREY__N_SAMPLES_TABLES,
};

/* Sums of samples. */
struct marey__samples_sum {
    uint64_t n, ns;
    uint64_t known_ns, cpu_ns; /* of those with known state; of those on a CPU core */
    uint64_t gil_ns;
};
void marey__samples_sum_add(struct marey__samples_sum *into, const struct marey__samples_sum *from);

/* Samples of one thread with one stack and one wait. */
struct marey__samples_cell {
    uint32_t thread, stack; /* a stack without hidden frames */
    uint32_t wait;          /* of samples off-CPU; else 0 */
    /* Whether it counts; if not, it is only for the tables of waits and of the GIL. The last member of the key. */
    uint32_t is_chosen;
    struct marey__samples_sum sum;
    double squares;    /* sum over squared weights */
    uint64_t wants_ns; /* waited for the GIL */
    uint64_t gc_ns;    /* without frames, in garbage collection */
};

struct marey__samples_sums {
    struct marey__samples_cell *cells;
    size_t n_cells, cells_cap;
    struct marey__key_map by_key;
    struct marey__samples_sum whole; /* of those that count */
    double squares;                  /* of their weights */
    uint32_t *folds;                 /* by stack of the logs: the stack without hidden frames */
    /* By source and function: innermost functions of snapshot samples, and of threads stopped at random. */
    uint64_t *snapshots, *audits;
    size_t n_functions;
};

struct marey__samples_report {
    struct marey__samples_set set;
    struct marey__samples_chosen *chosen;
    struct {
        struct marey__samples_filter filter;
        const char *sort; /* self, total, samples, name; "-" before it reverses */
        /*
         * For tables `contacts`, `leaves`, `leaf_paths`: the library. A folder or file in a frame's path has this name,
         * ignoring extensions, or matches it if it contains one of *?[; "torch/nn" and "torch.nn" are nested. NULL:
         * these tables are empty.
         */
        const char *library;
        const char *names; /* rows whose name contains this; does not change sums */
        bool native; /* native frames count as functions; else their time belongs to the Python frame around them */
    } options;
    struct marey__samples_sums sums;
    marey_table *const *tables; /* of the report, by enum marey__samples_table */
};

/* samples_text.c */
marey__put_answer marey__samples_text;

/* ---- samples_sums.c ---- */

/* One pass over all rounds. Fails with MAREY_ENOMEM or a read error. */
MAREY_WARN_UNUSED marey_status marey__samples_sums_make(struct marey__samples_report *report);
void marey__samples_sums_fini(struct marey__samples_sums *sums);

/* The entities of a table's rows: one per frame of a stack. */
struct marey__samples_entities {
    const uint32_t *of_location; /* by location; 0: none */
    uint32_t n;                  /* the last one */
};
/*
 * By entity; 0 is for samples without a frame. `wait` is the most frequent wait of its own samples; total counts each
 * sample once, however often the entity is in its stack.
 */
struct marey__samples_row {
    struct marey__samples_sum own;
    uint64_t total_ns;
    uint32_t wait;
};
/* An array by entity, which the caller frees; NULL on out of memory. */
struct marey__samples_row *marey__samples_rows(const struct marey__samples_report *report,
                                               const struct marey__samples_entities *entities);
/* The same for an entity of the cell itself, such as its thread; without totals. */
typedef uint32_t marey__samples_entity(const void *ctx, const struct marey__samples_report *report,
                                       const struct marey__samples_cell *cell);
struct marey__samples_row *marey__samples_rows_of_cells(const struct marey__samples_report *report,
                                                        marey__samples_entity *entity,
                                                        const void *ctx, uint32_t n);
/* Half of the confidence interval of a share. */
double marey__samples_error(const struct marey__samples_sums *sums, uint64_t ns);

/* Samples grouped by a few numbers. */
struct marey__samples_group {
    uint32_t key[3];
    struct marey__samples_sum sum;
};
/* Merge equal groups, sorted by key; returns how many remain. In samples_tables.c. */
size_t marey__samples_groups_add(struct marey__samples_group *groups, size_t n);

/* The location of the innermost frame. */
static inline uint32_t marey__samples_leaf(const struct marey__samples_report *report, uint32_t stack)
{
    return marey_samples_get_stack(report->set.samples, stack).location;
}

/* ---- samples_tables.c, samples_library.c, samples_audit.c: fill tables; false on out of memory ---- */

bool marey__samples_put_frames(struct marey__samples_report *report);
bool marey__samples_put_owners(struct marey__samples_report *report);
bool marey__samples_put_library_calls(struct marey__samples_report *report);
bool marey__samples_put_waits(struct marey__samples_report *report);
bool marey__samples_put_gil(struct marey__samples_report *report);
bool marey__samples_put_audit(struct marey__samples_report *report);
void marey__samples_put_totals(struct marey__samples_report *report);
bool marey__samples_put_notes(struct marey__samples_report *report);

/* Name, file and line of a location; nulls for 0. */
void marey__samples_put_place(marey_table *table, const marey_samples *samples, uint32_t location);

/* The module of a function: a library's file name, or the name for Python's import; "" unknown. */
void marey__samples_module(struct marey__buf *module, const struct marey_samples_function *function);

/* samples_slow.c: the function that makes slow steps slow. */

struct marey__slow_function {
    uint32_t function; /* 0: none explains it, or no step is slow */
    uint64_t n_slow;   /* steps longer than 1.5 times the median of their process */
    double extra_ns,
        typical_ns;   /* per slow step: its time beyond `typical_ns`, its time in other steps */
    double longer_ns; /* excess of a slow step over others */
};
/* Fails with MAREY_ENOMEM or a read error. */
MAREY_WARN_UNUSED marey_status marey__samples_slow_function(struct marey__samples_set *set,
                                                            struct marey__slow_function *out);

/* Times in which samples count: spans of ranges, iterations, epochs and phases (samples_join.c). */

/* After finishing: in order and not adjacent. */
struct marey__spans {
    struct marey__time_span {
        uint64_t begin_ns, end_ns; /* half open */
    } * items;
    size_t n, cap;
};
bool marey__spans_have(const struct marey__spans *spans, uint64_t ns);
void marey__spans_fini(struct marey__spans *spans);

/* Iterations or epochs from `first` to `last`, slow iterations, or phases by name or pattern. */
struct marey__spans_choice {
    enum marey__span_kind kind;
    bool is_slow;
    uint64_t first, last;
    const char *name;
};

/* Slow iterations of all processes. */
struct marey__slow_found {
    uint64_t n_iterations, n_slow;
    bool is_by_rank; /* none was above the limit: the slowest of each process */
};

/* Ranges by the name or pattern `name`, by thread of the store. `*is_there` is false if no site has the name. */
MAREY_WARN_UNUSED marey_status marey__samples_join_ranges(struct marey__samples_set *set,
                                                          const char *name,
                                                          struct marey__spans *by_thread,
                                                          bool *is_there);
/* Spans by process of the store; a process without a log has none. */
MAREY_WARN_UNUSED marey_status marey__samples_join_spans(struct marey__samples_set *set,
                                                         const struct marey__spans_choice *which,
                                                         struct marey__spans *by_process,
                                                         struct marey__slow_found *slow);

#endif
