/*
 * samples_*.c: where samplers found the threads of a job.
 *
 *   samples_read.c    definitions of all samplers' logs, merged into one store; their rounds, in order of time
 *   samples_import.c  files of other samplers: their ranges as stacks
 *   samples_join.c    ranges and iterations of the processes that were sampled, as spans of time
 *   samples_filter.c  which samples count: one choice for reports, comparisons, pages and exports
 *   samples_idle.c    which processes only wait
 *        |
 *   samples_sums.c    sums by thread, stack and what is waited for ──> samples_tables.c, samples_more.c, samples_audit.c
 *        |
 *   samples_tree.c    the same as a tree of calls, for exports
 */
#ifndef MAREY_SAMPLES_SET_H
#define MAREY_SAMPLES_SET_H

#include "analyze/walk/internal.h"
#include "sampler/store/samples.h"
#include <marey/samples_report.h>

/* ---- samples_read.c ---- */

/* A log of a sampler. */
struct marey__samples_source {
    marey_recording *recording; /* lent */
    size_t log;                 /* its number there */
    uint32_t *processes, *threads, *functions, *locations,
        *stacks; /* numbers of the store, by those of the log */
    size_t n_processes, n_threads, n_functions, n_locations, n_stacks;
    size_t processes_cap, threads_cap, functions_cap, locations_cap, stacks_cap;
    double rate_hz;    /* 0: not said */
    char strategy[16]; /* "" not said */
    struct marey_samples_counts counts;
    uint64_t first_ns, last_ns; /* of its rounds */
    uint64_t n_rounds;
};

/* What is known of a process of the store besides. */
struct marey__samples_target {
    marey_recording *recording; /* of its sampler; lent */
    uint32_t log;               /* its own log there; MAREY__NO_LOG: none */
    uint32_t source;            /* the last sampler that saw it */
    uint32_t parent;            /* among the processes of the store; 0: none */
    uint64_t first_ns, last_ns;
    uint64_t n_rounds;
    /* By the latest visit with a choice. */
    uint64_t known_ns, cpu_ns; /* of its main threads; on a CPU core, of all threads */
    uint64_t counted_ns;       /* of samples that count, or would if it were not idle */
    bool is_idle, is_launcher; /* its samples do not count: see samples_idle.c */
};
#define MAREY__NO_LOG UINT32_MAX

/* Samples with one stack, of a file of another sampler: they are not in rounds. */
struct marey__samples_told {
    uint32_t process, thread, stack;
    uint64_t n, at_ns, weight_ns; /* weight: of all of them */
};

/* The name of the row for samples of threads without Python frames. */
#define MAREY__NO_FRAMES "(no Python frames)"

struct marey__samples_set {
    marey_samples *samples; /* definitions of all, and counts by process */
    struct marey__samples_source *sources;
    size_t n_sources, sources_cap;
    struct marey__samples_target *targets; /* by process, from 1 */
    struct marey__samples_told *told;      /* where there is no sampler's log */
    size_t n_told, told_cap;
    uint64_t n_told_samples;
    uint64_t startup_ns;   /* of samples that a visit left out as start-up */
    uint64_t task_wait_ns; /* of samples in which a worker waits for its next task */
    uint64_t idle_ns;      /* of samples of idle processes, */
    uint32_t n_idle, n_launchers, longest_idle; /* how many processes, and the one with most of it */
};

/*
 * Read the definitions and counts that samplers left in `n` recordings, which are lent until fini. A set without sources when
 * there are none. On failure it is left finished. MAREY_ENOMEM, MAREY_EIO.
 */
MAREY_WARN_UNUSED marey_status marey__samples_open(struct marey__samples_set *set,
                                                   marey_recording *const *recordings, size_t n);
void marey__samples_fini(struct marey__samples_set *set);

/*
 * A round: numbers are the store's, its time is CLOCK_MONOTONIC of its machine, the weight is always there. `seen` has the
 * samples that count, maybe none; lent for the call.
 */
typedef marey_status marey__samples_visitor(void *ctx, const struct marey_samples_round *round);

struct marey__samples_chosen;
/*
 * All rounds of all samplers in order of time (by the clocks' settings, over machines); each of a process in its own order.
 * `chosen` NULL: every sample counts. What the visitor fails with ends it.
 *
 * Which processes are idle is known at the end: the caller leaves samples of targets with `is_idle` out of its sums.
 */
MAREY_WARN_UNUSED marey_status marey__samples_visit(struct marey__samples_set *set,
                                                    const struct marey__samples_chosen *chosen,
                                                    marey__samples_visitor *visitor, void *ctx);
/* The same, and samples that only `mode` leaves out are among the seen. */
MAREY_WARN_UNUSED marey_status marey__samples_visit_modes(struct marey__samples_set *set,
                                                          const struct marey__samples_chosen *chosen,
                                                          marey__samples_visitor *visitor, void *ctx);

/* ---- samples_import.c ---- */

/* Whether a sampler of ours left something in one of these; whether files of other samplers are among them. */
bool marey__samples_are_there(marey_recording *const *recordings, size_t n);
bool marey__samples_are_imported(marey_recording *const *recordings, size_t n);
/* Their processes, stacks and samples into the store and `told`. */
MAREY_WARN_UNUSED marey_status marey__samples_take_imports(struct marey__samples_set *set,
                                                           marey_recording *const *recordings,
                                                           size_t n);
/* From the first of them to the last. */
uint64_t marey__samples_told_ns(const struct marey__samples_set *set);
/* Hand each on as a round by itself. */
typedef marey_status marey__samples_handing(void *ctx, struct marey_samples_round *round);
MAREY_WARN_UNUSED marey_status marey__samples_tell(struct marey__samples_set *set,
                                                   marey__samples_handing *hand, void *ctx);

/* ---- samples_startup.c ---- */

enum {
    MAREY__IN_IMPORT = 1,
    MAREY__IN_STARTUP = 2,
    MAREY__IN_FUNCTION = 4,
    MAREY__IN_TASK_LOOP = 8, /* the frame is a worker's loop over tasks, */
    MAREY__IN_TASK_WAIT = 16 /* or it is below, where it waits for the next one */
};
/* Of a frame, by those of the frame around it; 0 for the outermost. */
uint8_t marey__import_flags(uint8_t around, bool is_python, const char *name, const char *file);
/* Flags of all kinds by stack; NULL without memory. */
uint8_t *marey__samples_stack_flags(const marey_samples *samples);
bool marey__is_importlib(const char *file);
/* Whether it is the top-level code of a file, whose frames are known by the line that runs: it begins with line 1. */
bool marey__is_top_level(const struct marey_samples_function *function);
/* Whether a forked process's own frames begin with this one. */
bool marey__is_worker_entry(const struct marey_samples_function *function);

/* ---- select.c ---- */

/* Whether a process is the one that `which` means: see struct marey_samples_filter; NULL: any. */
bool marey__process_matches(const char *which, int64_t pid, int32_t worker, const char *command);

/* ---- samples_filter.c ---- */

/*
 * A filter (NULL: the defaults) made ready: threads by name and rank are chosen, spans of ranges and iterations are read.
 * `is_complete`: start-up and idle processes count whatever the filter says, for exports that have everything.
 */
MAREY_WARN_UNUSED marey_status marey__samples_choose(struct marey__samples_set *set,
                                                     const struct marey_samples_filter *filter,
                                                     bool is_complete,
                                                     struct marey__samples_chosen **out);
void marey__samples_chosen_destroy(struct marey__samples_chosen *chosen);
/* Who and when, and what the thread did. */
bool marey__samples_is_there(const struct marey__samples_chosen *chosen, uint32_t process,
                             uint64_t at_ns, uint32_t thread);
bool marey__samples_is_of_mode(const struct marey__samples_chosen *chosen,
                               const struct marey_samples_seen *seen);
/* Whether it is of start-up, whatever else holds for it; false where the choice is complete. */
bool marey__samples_is_startup(const struct marey__samples_chosen *chosen, uint32_t process,
                               uint64_t at_ns, uint32_t stack);
/* Whether a worker waits for its next task in this stack, and the choice leaves that out. */
bool marey__samples_is_task_wait(const struct marey__samples_chosen *chosen, uint32_t stack);
/* Whether start-up counts and importlib has frames. Else, as in tracebacks, an import's time is that of the frame around importlib. */
bool marey__samples_shows_imports(const struct marey__samples_chosen *chosen);
/* Whether idle processes are left out: nobody chose a mode, a thread or a process, or asked for all of it. */
bool marey__samples_drops_idle(const struct marey__samples_chosen *chosen);
/* Whether the process itself counts steps; known where idle processes are left out. */
bool marey__samples_has_steps(const struct marey__samples_chosen *chosen, uint32_t process);
/* What counts, as a sentence without its full stop: "main thread: wall clock; other threads: on-CPU only". */
const char *marey__samples_chosen_what(const struct marey__samples_chosen *chosen);

/* ---- samples_idle.c ---- */

/* Add a sample to what its process does; imports are not its work. */
void marey__samples_note_work(struct marey__samples_set *set, const struct marey_samples_round *round,
                              const struct marey_samples_seen *seen);
/* After a visit: mark idle processes, where the choice leaves them out. */
void marey__samples_find_idle(struct marey__samples_set *set,
                              const struct marey__samples_chosen *chosen);

#endif
