/*
 * diagnosis: why a training is slow, where in the code, and what a fix can gain at most.
 *
 *   logs, samples ── facts_read.c ── steps with their phases; samples by phase and stack
 *   torch's traces ── facts_import.c ── phases, by ranges of torch
 *   GPU activity  ── facts_device.c ── traced steps: what devices do; idle time by its cause
 *                 ── facts.c, facts_cost.c, facts_system.c ── warm-up, medians; cost of recording; contention
 *                 ── facts_slow.c ── outlier steps, and what they do that others do not; garbage collections
 *                 ── facts_place.c, facts_native.c ── the line of the user's code that a set of samples is in
 *                 ── facts_gpu.c ── clocks of GPUs, and why they are reduced
 *                 ── startup.c ── what a program does before its steps count
 *                 ── finding_*.c ── one rule each: when it fires, what it claims; evidence.c: when it was seen
 *                 ── diagnosis.c ── sorts and limits them; the verdict; tables ── diagnosis_*.c: text, JSON, Markdown
 *
 * Input: recordings of `marey run`, and imported traces. Output: a report of tables, text, and the JSON of
 * docs/formats/diagnosis.md. A finding claims only time that a program waits for ("exposed"); each nanosecond belongs
 * to one finding. What is unknown is null, never 0. Does not know the command line, the page or compare/, which read
 * its report.
 */
#ifndef MAREY_ANALYZE_DIAGNOSIS_INTERNAL_H
#define MAREY_ANALYZE_DIAGNOSIS_INTERNAL_H

#include "analyze/device/internal.h"
#include "analyze/samples/internal.h"
#include "analyze/walk/internal.h"
#include "report/internal.h"
#include "sampler/store/internal.h"

/* ---- facts_read.c ---- */

enum marey__fact_phase {
    MAREY__FACT_DATA,
    MAREY__FACT_FORWARD,
    MAREY__FACT_BACKWARD,
    MAREY__FACT_OPTIMIZER,
    MAREY__FACT_RECOMPUTE,
    MAREY__FACT_EVALUATION,
    MAREY__FACT_CHECKPOINT,
    MAREY__FACT_LOGGING,
    MAREY__FACT_OTHER, /* in none of these */
    MAREY__FACT_PHASES,
    MAREY__FACT_STARTUP = MAREY__FACT_PHASES, /* before steps count; without steps, imports */
    MAREY__FACT_FIRST_STEPS,                  /* of that, in phases: steps of warm-up */
    MAREY__FACT_WORKER, /* samples of data-loader workers, while steps count */
    /* Of steps that count, again: where the host leaves a device idle; where it waits for one that runs dry. */
    MAREY__FACT_HOST_GAP,
    MAREY__FACT_HOST_WAIT,
    /* Other threads that hold the interpreter lock while the main thread waits for it; the same with threads for stacks. */
    MAREY__FACT_HOLDER,
    MAREY__FACT_HOLDER_THREAD,
    MAREY__FACT_KINDS,
    /* Added to a phase: of samples in outlier steps. */
    MAREY__FACT_SLOW = 32,
};
/* Sets of kinds. */
#define MAREY__FACT_ONLY(kind) (UINT64_C(1) << (kind))
#define MAREY__FACT_BOTH(kind)                                                                     \
    (MAREY__FACT_ONLY(kind) | MAREY__FACT_ONLY((kind) + MAREY__FACT_SLOW))
#define MAREY__FACT_TYPICAL_STEPS (MAREY__FACT_ONLY(MAREY__FACT_PHASES) - 1)
#define MAREY__FACT_SLOW_STEPS (MAREY__FACT_TYPICAL_STEPS << MAREY__FACT_SLOW)
#define MAREY__FACT_STEPS (MAREY__FACT_TYPICAL_STEPS | MAREY__FACT_SLOW_STEPS)
/* Phases with a finding of their own. */
#define MAREY__FACT_KNOWN                                                                          \
    (MAREY__FACT_BOTH(MAREY__FACT_DATA) | MAREY__FACT_BOTH(MAREY__FACT_CHECKPOINT) |               \
     MAREY__FACT_BOTH(MAREY__FACT_EVALUATION) | MAREY__FACT_BOTH(MAREY__FACT_LOGGING))
/* As the JSON names them. */
extern const char *const marey__fact_phase_names[MAREY__FACT_PHASES + 1];

/* A training step of a process. */
struct marey__fact_step {
    uint64_t begin_ns, end_ns;
    double samples; /* 0: unknown */
    uint64_t phase_ns[MAREY__FACT_PHASES];
    uint64_t gc_ns;    /* garbage collections, outside of data */
    bool is_in_window; /* of GPU tracing */
    bool is_slow;      /* an outlier */
};

/* A garbage collection of any thread: it holds the interpreter lock. */
struct marey__fact_pause {
    uint64_t begin_ns, end_ns;
    uint32_t generation;
};

/* Memory statistics of torch's allocator at a time; below 0: unknown. */
struct marey__fact_allocator {
    uint64_t ns;
    long device, reserved, total, retries, ooms;
};

struct marey__fact_phase_span {
    uint64_t begin_ns, end_ns;
    enum marey__fact_phase phase;
};

/* A process with training steps; without any, the first process that was sampled. */
struct marey__trainer {
    const struct marey_process *info; /* NULL: it has no log */
    marey_recording *recording;
    uint32_t target; /* in the set of samples; 0: not sampled */
    struct marey__fact_step *steps;
    size_t n_steps, steps_cap;
    size_t n_warmup; /* of these, the first ones */
    uint64_t median_ns;
    struct marey__fact_phase_span *phases; /* in order */
    size_t n_phases, phases_cap, at_phase, at_step;
    struct marey__fact_pause *pauses;
    size_t n_pauses, pauses_cap;
    struct marey__fact_allocator *allocators;
    size_t n_allocators, allocators_cap;
    /* In traced steps, unions: times in which the host leaves a device idle; waits that do so. */
    struct marey__interval *host_gaps, *waits;
    size_t n_host_gaps, host_gaps_cap, at_host_gap, n_waits, waits_cap, at_wait;
    uint64_t start_ns, end_ns; /* of the process, as far as is known */
    char *compiled;            /* JSON of what torch.compile did; NULL: nothing */
    char *loader;              /* JSON of the DataLoader that was constructed first; NULL: none */
};

/* Times within a traced step; all but the first are idle time of the device. */
enum marey__traced_part {
    MAREY__TRACED_DATA, /* the phase, whatever the device does */
    MAREY__TRACED_DATA_IDLE,
    MAREY__TRACED_SYNC,
    MAREY__TRACED_HOST,
    MAREY__TRACED_HOST_SHORT, /* of that, in gaps below MAREY__SHORT_GAP_NS */
    MAREY__TRACED_PARTS,
};
enum { MAREY__SHORT_GAP_NS = 50000 };

/* A step, as far as it is traced, on one device. */
struct marey__traced_step {
    uint64_t ns, part_ns[MAREY__TRACED_PARTS];
};

/* Sums over the traced steps of all devices. The middle four are all of `traced_ns`; communication and copies are exposed. */
struct marey__fact_device {
    uint64_t traced_ns, computing_ns, communication_ns, copy_ns, idle_ns;
    struct marey__traced_step *steps;
    size_t n_steps, steps_cap;
    bool is_untypical; /* what was traced is not like the other steps, and is left out */
};

struct marey__fact_sum {
    uint64_t n, ns;
    uint64_t gil_ns;   /* of these, while the thread held the interpreter lock */
    uint64_t gc_ns;    /* of these, in a garbage collection */
    uint64_t wants_ns; /* of these, while it waited for the lock */
    uint64_t off_ns;   /* of these, off the CPU */
};
/* Samples of a kind with one stack. */
struct marey__sample_bucket {
    uint64_t key; /* among those by rank the trainer's number; the kind, 8 bits; 32 bits of the stack */
    struct marey__fact_sum sum;
};
static inline uint32_t marey__sample_bucket_stack(const struct marey__sample_bucket *bucket)
{
    return (uint32_t)bucket->key;
}
static inline bool marey__sample_bucket_has_kind(const struct marey__sample_bucket *bucket, uint64_t kinds)
{
    return (kinds >> (bucket->key >> 32 & 0xff) & 1) != 0;
}

/* Garbage collections in steps that count, outside of data. */
struct marey__fact_pauses {
    uint64_t n, ns, longest_ns, by_generation[3];
};

/* What only some steps do. */
enum marey__occasional {
    MAREY__OCCASIONAL_CHECKPOINT,
    MAREY__OCCASIONAL_EVALUATION,
    MAREY__OCCASIONAL_LOGGING,
    MAREY__OCCASIONAL_GC,
    MAREY__OCCASIONAL_OUTLIER, /* takes much longer than the median, whatever it does */
    MAREY__OCCASIONAL_KINDS,
};
/* Steps that do it. Their time is that of it; of outliers, what they take longer than the median. */
struct marey__fact_occasional {
    uint64_t n, ns;
    double squares;  /* of the times */
    uint64_t period; /* every so many steps; 0: irregular */
};

/* A sample in an outlier step. */
struct marey__fact_slow_sample {
    uint32_t step, stack; /* the step's number in its process */
    uint64_t ns;
};

/* A function and the line in it that most of the samples are in. */
struct marey__fact_place {
    uint32_t function; /* 0: none */
    uint32_t line;     /* that runs most */
    double share;      /* of the samples that were searched */
    uint64_t ns;       /* of samples in it */
};

enum { MAREY__RESIDENT_PARTS = 8 };

/* A GPU that trainers may use. */
struct marey__fact_gpu {
    const char *name, *device, *host; /* "GPU 0 throttle reasons", "UUID|..." */
    double mhz, highest_mhz;          /* of the SM clock: last, highest; 0: unknown */
    struct marey__fact_clock {
        double mhz;
        uint64_t reasons; /* why clocks are reduced, in NVML's bits */
    } * clocks;           /* in steps that count */
    size_t n_clocks, clocks_cap;
};

struct marey__facts {
    struct marey__samples_set set;
    bool has_samples, has_device;
    bool is_imported; /* traces of torch.profiler */
    struct marey__trainer *trainers;
    size_t n_trainers, trainers_cap;
    /* Main threads of trainers by kind and stack. */
    struct marey__sample_bucket *buckets;
    size_t n_buckets, buckets_cap;
    struct marey__key_map buckets_by_key;
    /* The same in steps that count, for each trainer, where there are several; the key has its number, too. */
    struct marey__sample_bucket *rank_buckets;
    size_t n_rank_buckets, rank_buckets_cap;
    struct marey__key_map rank_buckets_by_key;
    uint8_t *stack_flags; /* by stack: enum marey__fact_flag */
    uint8_t claimed;      /* by findings that were made: other rules leave such stacks out */
    struct marey__fact_slow_sample *slow_samples; /* outside of phases with a finding of their own */
    size_t n_slow_samples, slow_samples_cap;
    uint32_t n_stacks;
    uint64_t run_ns;                                  /* from the first start to the last end */
    uint64_t n_steps, n_warmup, median_ns, mean_ns;   /* of the trainer with the longest median */
    uint64_t steady_ns, phase_ns[MAREY__FACT_PHASES]; /* summed over steps that count */
    double samples_per_s;                             /* summed over trainers; 0: unknown */
    uint64_t startup_ns;
    struct marey__fact_device device;
    struct marey__fact_pauses pauses;
    struct marey__fact_occasional occasional[MAREY__OCCASIONAL_KINDS];
    uint64_t typical_ns; /* the median without data */
    struct marey__system_facts {
        size_t n_values;                        /* of each counter; 0: not recorded */
        double counted_ns;                      /* the time that they are of */
        double resident[MAREY__RESIDENT_PARTS]; /* means over equal parts of the steps; 0: unknown */
        double mean[MAREY__SYSTEM_COUNTERS];    /* while steps count; without steps, of the run */
        /* Of main threads, at the same times. */
        uint64_t n_main, main_ns,
            io_ns; /* io: waits for files, outside of phases with a finding of their own */
        uint64_t io_lines_ns; /* of all samples at lines that surely wait for files in some of them */
        struct marey__fact_memory {
            double peak, limit; /* bytes, where they are closest; 0: unknown */
            bool is_group;      /* the limit is that of a cgroup */
            uint64_t peak_ns;
        } memory;
        uint32_t io_wait; /* the most frequent one, a code */
        struct marey__fact_place io_place;
    } system;
    struct marey__fact_gpu *gpus;
    size_t n_gpus, gpus_cap;
    const char *detected_by; /* NULL: no steps */
    struct marey_cost cost;
    bool is_cost_measured;
    double cost_share, cost_low,
        cost_high; /* of the program's time; the last two where it is measured */
};
MAREY_WARN_UNUSED marey_status marey__facts_read(struct marey__facts *facts,
                                                 const struct marey__request *request);
void marey__facts_fini(struct marey__facts *facts);
/* The number after "key": in a mark's JSON (NULL: none); below 0 when there is none. */
long marey__fact_number(const char *json, const char *key);

/* ---- facts_import.c ---- */

static inline bool marey__is_torch_trace(const struct marey_process *process)
{
    return strcmp(process->source, "kineto") == 0;
}
/* Phases of such a trace, after its steps. */
MAREY_WARN_UNUSED marey_status marey__facts_read_import(struct marey__trainer *trainer);

/* ---- facts_device.c ---- */

/* After the steps are judged. */
MAREY_WARN_UNUSED marey_status marey__facts_read_device(struct marey__facts *facts);
/* The share of a part outside of data in a step, and its standard error over traced steps. */
void marey__facts_traced_share(const struct marey__facts *facts, enum marey__traced_part part,
                               double *share, double *error);
/* The share of the phase data in which devices are idle; 1 where no step with that phase was traced. */
double marey__facts_exposed_data(const struct marey__facts *facts);

/* ---- facts.c ---- */

/* After the steps are read, and before the samples: warm-up, medians, sums. Returns false on out of memory. */
bool marey__facts_summarize_steps(struct marey__facts *facts);

/* Sorts them; 0 for none. */
uint64_t marey__fact_median(uint64_t *values, size_t n);

/* The share of a phase in steps that count, and its standard error over them. */
void marey__facts_share(const struct marey__facts *facts, enum marey__fact_phase phase,
                        double *share, double *error);

/* facts_cost.c: after the steps are judged and devices read. */
void marey__facts_measure_cost(struct marey__facts *facts);

/* Sum of the samples of some kinds. */
struct marey__fact_sum marey__facts_sum(const struct marey__facts *facts, uint64_t kinds);

/* ---- facts_slow.c ---- */

/* After devices are read, and before the samples: what only some steps do, and which are outliers. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__facts_find_slow(struct marey__facts *facts);
/*
 * The largest distance at which at least two of three steps are among the `n` at `at`, which are most of these; 0: there is
 * none, or no memory.
 */
uint64_t marey__facts_find_period(const uint64_t *at, size_t n, size_t n_steps);

/* ---- facts_place.c ---- */

/* What a frame of a stack shows that it does. */
enum marey__fact_flag {
    MAREY__FACT_COMPILES = 1, /* torch.compile */
    MAREY__FACT_LOGS = 2, /* in a library for logging, or a function of the user's with such a name */
    MAREY__FACT_IDLES = 4,        /* waits at a queue of multiprocessing */
    MAREY__FACT_COMMUNICATES = 8, /* torch.distributed */
};
/* Sets the flags of all stacks. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__facts_flag_stacks(struct marey__facts *facts);

/* Which samples a place is searched in. */
enum marey__fact_samples {
    MAREY__FACT_ALL,
    MAREY__FACT_PYTHON, /* that hold the interpreter lock in users' code, or in Python code of numpy and torch that it calls */
    MAREY__FACT_GC,     /* in garbage collections */
    MAREY__FACT_COMPILING, /* with the flag */
    MAREY__FACT_LOGGED,    /* with the flag, or in the phase logging */
    MAREY__FACT_IDLE,      /* with the flag */
    MAREY__FACT_WAITING,   /* off the CPU in the phase backward, or in torch.distributed */
    MAREY__FACT_USER_STARTUP, /* that hold the interpreter lock for users' code: not for imports or installed packages */
};
/* Of a bucket, the time of such samples. */
uint64_t marey__fact_weight(const struct marey__facts *facts, const struct marey__sample_bucket *bucket,
                            enum marey__fact_samples which);
/* The time of such samples, and their number. */
uint64_t marey__facts_weigh(const struct marey__facts *facts, uint64_t kinds,
                            enum marey__fact_samples which, uint64_t *n);
/* The share of garbage collections that no finding claims; 1 where no sample is of one. */
double marey__facts_unclaimed_gc(const struct marey__facts *facts);
/*
 * The innermost function that at least half of the samples of some kinds are in: of the user's code, where one is; else of a
 * library, unless only users' code counts. Returns false on out of memory.
 */
MAREY_WARN_UNUSED bool marey__facts_find_place(const struct marey__facts *facts, uint64_t kinds,
                                               enum marey__fact_samples which,
                                               struct marey__fact_place *out);
/* The same for all samples of some kinds, of functions that samples of `others` are rarely in; of any where there is none. */
MAREY_WARN_UNUSED bool marey__facts_find_typical_place(const struct marey__facts *facts,
                                                       uint64_t kinds, uint64_t others,
                                                       struct marey__fact_place *out);
/* The same for samples by stack, of which each has a weight. */
MAREY_WARN_UNUSED bool marey__facts_find_place_of(const struct marey__facts *facts,
                                                  const uint64_t *weights, bool is_loading,
                                                  bool only_users, struct marey__fact_place *out);
/*
 * The time of samples in a function, with all it calls: at lines of it where at least a tenth of the samples are Python's,
 * as opposed to kernels that do their work. Returns 0 on out of memory.
 */
uint64_t marey__facts_weigh_lines(const struct marey__facts *facts, uint64_t kinds,
                                  uint32_t function);

/* Outside of the standard library, of installed packages and of what is frozen into Python. */
bool marey__facts_is_users(const struct marey_samples_function *f);

/* ---- facts_ranks.c: ranks of a training that wait for each other on the CPU ---- */

struct marey__fact_rank {
    const struct marey__trainer *trainer;
    double step_ns, wait_ns; /* of a mean step; of this, in which it waits for other ranks */
    double error_ns;         /* of the latter */
    double phase_ns[MAREY__FACT_PHASES]; /* of a mean step, without waits */
};
struct marey__fact_ranks {
    struct marey__fact_rank *list;
    size_t n;
    const struct marey__fact_rank *slowest; /* waits least */
    bool has_nodes, is_slow_node; /* several hosts; all ranks of the slowest one's host are late */
    double step_ns, excess_ns,
        error_ns; /* of the slowest: what it works longer than the median of the others */
    enum marey__fact_phase phase; /* in which it does so the longest */
};
/* False: there are no several ranks, or they do not wait for each other in equal steps; or out of memory. fini takes what was made. */
bool marey__fact_ranks_read(const struct marey__facts *facts, struct marey__fact_ranks *out);
void marey__fact_ranks_fini(struct marey__fact_ranks *ranks);
/* The place of a rank's samples in a phase. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__fact_ranks_find_place(const struct marey__facts *facts,
                                                    const struct marey__fact_rank *rank,
                                                    enum marey__fact_phase phase,
                                                    struct marey__fact_place *out);

/* ---- startup.c ---- */

/* Rows by time: what, its share of start-up as time, and as a number. Samples tell; no row without them. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__facts_put_startup(const struct marey__facts *facts, marey_table *table);

/* ---- findings ---- */

/* The tables of the report. */
enum {
    MAREY__FINDINGS_TABLE,
    MAREY__STEP_TABLE,
    MAREY__STARTUP_TABLE,
    MAREY__DEVICE_TABLE,
    MAREY__STEPS_TABLE,
    MAREY__EVIDENCE_TABLE,
    MAREY__DIAGNOSIS_TABLES
};

enum { MAREY__MAX_FINDINGS = 5, MAREY__MAX_CAUSES = 3, MAREY__FINDING_TEXT = 400 };

/* Why a finding is so. */
struct marey__cause {
    const char *id;
    char claim[MAREY__FINDING_TEXT], action[MAREY__FINDING_TEXT];
    struct marey__fact_place place;
    enum marey__fact_phase phase;
    double share; /* of the median step; below 0: unknown */
};

struct marey__finding {
    struct marey__cause statement; /* the finding itself */
    bool is_risk, is_severe; /* a severe risk comes before findings of time, another one after them */
    bool is_experimental;    /* left out, unless asked for */
    char detail[MAREY__FINDING_TEXT];
    double at_most, gain_low, gain_high; /* factors; 0: a risk */
    double confidence;
    struct marey__cause because[MAREY__MAX_CAUSES];
    size_t n_because;
    uint8_t claims;                       /* stacks with these flags are explained by it */
    const struct marey__trainer *trainer; /* that it is about; NULL: all of them */
};

/* The share of a step that a fix removes at most, its standard error, and the gains that follow. */
void marey__finding_set_share(struct marey__finding *f, double share, double error);
/* The same for a share that is between two; nothing else becomes faster. */
void marey__finding_set_between(struct marey__finding *f, double least, double most, double error);
/* The same for a share that was measured in full: the error is what other runs differ by. */
void marey__finding_set_measured(struct marey__finding *f, double share, double error);

/* ---- facts_system.c: after the steps are judged ---- */

MAREY_WARN_UNUSED marey_status marey__facts_read_system(struct marey__facts *facts);

/* ---- facts_native.c: programs without Python ---- */

struct marey__native {
    const marey_samples *samples;
    uint64_t n, work_ns, lock_ns; /* samples on a CPU core or at a lock; their time */
    uint64_t calls_ns;            /* of work, in functions that take and release locks */
    struct marey__native_process {
        uint64_t run_ns, busy_ns, threads_ns; /* of rounds; of those with such a sample; of these */
    } * processes;
    uint64_t *hot_by_location, *hot_by_function;   /* outside of locks, where users' code is */
    uint64_t *lock_by_location, *lock_by_function; /* at locks, the same */
};
/* False without samples of such a program, or without memory; fini takes what was made. */
bool marey__native_read(const struct marey__facts *facts, struct marey__native *out);
void marey__native_fini(struct marey__native *native);
/* The function with most of the time, and its line with most. */
void marey__place_find_heaviest(const marey_samples *samples, const uint64_t *by_function,
                       const uint64_t *by_location, struct marey__fact_place *place);
/* Code of the program, not of a system's library: it has source lines, or is in the program's file. */
bool marey__native_is_users(const struct marey_samples_function *f);
/* Appends a sentence on the function with most of the CPU time, if one has at least a third. */
void marey__native_append_hottest(const struct marey__facts *facts, char *text, size_t size, size_t *len);
/* Returns `part_ns` as a share of the time of threads that could work; the finding gets its share of the run. */
double marey__native_share(const struct marey__native *native, uint64_t part_ns,
                           struct marey__finding *out);

/* facts_gpu.c: after the steps are judged. */
MAREY_WARN_UNUSED marey_status marey__facts_read_gpus(struct marey__facts *facts,
                                                      const struct marey__request *request);

struct marey__diagnosis {
    struct marey__facts facts;
    struct marey__finding findings[MAREY__MAX_FINDINGS];
    size_t n_findings;
    char verdict[2 * MAREY__FINDING_TEXT];
    char missing[MAREY__FINDING_TEXT]; /* what an imported trace lacks; "": nothing */
};
/* The finding with an id, of those that were made so far; NULL: none. */
const struct marey__finding *marey__diagnosis_find(const struct marey__diagnosis *d, const char *id);

/* What a rule is called with; it fills `*out`, which is zero but for unknown shares, and returns true when it fires. */
typedef bool marey__finding_rule(const struct marey__diagnosis *d, struct marey__finding *out);
marey__finding_rule marey__find_input_bound, marey__find_sync_bound, marey__find_host_bound,
    marey__find_recompilation, marey__find_logging_in_step, marey__find_slow_steps,
    marey__find_gil_contention, marey__find_startup_dominates, marey__find_gc_pauses,
    marey__find_hot_function, marey__find_lock_contention, marey__find_io_bound,
    marey__find_cpu_oversubscribed, marey__find_straggler, marey__find_exposed_communication,
    marey__find_memory_leak, marey__find_memory_near_limit, marey__find_throttled;

extern const char marey__gc_action[];

/* A time finding is worth printing from this gain on, by its lower end from that. */
#define MAREY__GAIN_LEAST 1.03
#define MAREY__GAIN_LOW_LEAST 1.01

/* evidence.c: times in which findings were seen, the longest first. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__diagnosis_put_evidence(const struct marey__diagnosis *d,
                                                     marey_table *table);

/* ---- diagnosis.c ---- */

struct marey__report_writer;
marey_status marey__diagnosis_text(struct marey__report_writer *writer);
marey_status marey__diagnosis_json(struct marey__report_writer *writer);
marey_status marey__diagnosis_markdown(struct marey__report_writer *writer);
/* diagnosis_text.c: "augment (data.py:26) is 71 % of loading"; the factor of a gain, nothing of a risk. */
void marey__finding_put_place(struct marey__buf *line, const struct marey__facts *facts,
                              const struct marey__finding *f, const char *bold, const char *plain);
void marey__finding_put_gain(struct marey__buf *line, const struct marey__finding *f,
                             const char *before, const char *after);

#endif
