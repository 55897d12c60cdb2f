/*
 * diagnosis: why a training is slow, where in the code, and what a fix can gain at most.
 *
 *   logs, samples ── facts_read.c ── steps with their phases; samples by phase and stack
 *   torch's traces ── facts_import.c ── phases, by ranges of torch
 *   GPU activity  ── facts_device.c ── traced steps: activity of devices; idle time by cause
 *                 ── facts.c, facts_cost.c, facts_system.c ── warm-up, medians; cost of recording; contention
 *                 ── facts_slow.c ── occasional work, outlier steps, garbage collections
 *                 ── facts_place.c, facts_native.c ── the line of the user's code for a set of samples
 *                 ── facts_gpu.c ── clocks of GPUs, and why they are reduced
 *                 ── startup.c ── start-up by activity
 *                 ── finding_*.c ── one rule each: condition and claim; evidence.c: times of observation
 *                 ── diagnosis.c ── sorts and limits them; verdict; tables
 *                 ── diagnosis_*.c ── text, JSON, Markdown
 *
 * Input: recordings of `marey run`, and imported traces. Output: a report of tables, text, and the
 * JSON of docs/formats/diagnosis.md. A finding claims only time that the program waits for
 * ("exposed"); each nanosecond belongs to one finding. Unknown values are null, never 0. Does not
 * know the command line, the page or compare/, which read its report.
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
    MAREY__FACT_OTHER, /* outside of the phases above */
    MAREY__FACT_PHASES,
    MAREY__FACT_STARTUP = MAREY__FACT_PHASES, /* until warm-up ends; without steps, imports */
    MAREY__FACT_FIRST_STEPS,                  /* of that, phases of warm-up steps */
    MAREY__FACT_WORKER,                       /* samples of data-loader workers, after warm-up */
    /*
     * Again, of steps after warm-up: the host leaves a device idle; the host waits until a device's
     * queue drains.
     */
    MAREY__FACT_HOST_GAP,
    MAREY__FACT_HOST_WAIT,
    /* Holders of the interpreter lock while the main thread waits for it: by stack; by thread. */
    MAREY__FACT_HOLDER,
    MAREY__FACT_HOLDER_THREAD,
    MAREY__FACT_KINDS,
    /* Added to a phase, for samples in outlier steps. */
    MAREY__FACT_SLOW = 32,
};
/* Sets of kinds. */
#define MAREY__FACT_ONLY(kind) (UINT64_C(1) << (kind))
#define MAREY__FACT_BOTH(kind)                                                                     \
    (MAREY__FACT_ONLY(kind) | MAREY__FACT_ONLY((kind) + MAREY__FACT_SLOW))
#define MAREY__FACT_TYPICAL_STEPS (MAREY__FACT_ONLY(MAREY__FACT_PHASES) - 1)
#define MAREY__FACT_SLOW_STEPS (MAREY__FACT_TYPICAL_STEPS << MAREY__FACT_SLOW)
#define MAREY__FACT_STEPS (MAREY__FACT_TYPICAL_STEPS | MAREY__FACT_SLOW_STEPS)
/* Phases that have their own finding. */
#define MAREY__FACT_KNOWN                                                                          \
    (MAREY__FACT_BOTH(MAREY__FACT_DATA) | MAREY__FACT_BOTH(MAREY__FACT_CHECKPOINT) |               \
     MAREY__FACT_BOTH(MAREY__FACT_EVALUATION) | MAREY__FACT_BOTH(MAREY__FACT_LOGGING))
/* Their names in the JSON. */
extern const char *const marey__fact_phase_names[MAREY__FACT_PHASES + 1];

/* A training step of a process. */
struct marey__fact_step {
    uint64_t begin_ns, end_ns;
    double samples; /* 0: unknown */
    uint64_t phase_ns[MAREY__FACT_PHASES];
    uint64_t gc_ns;             /* garbage collections, outside of data */
    uint64_t start_of_epoch_ns; /* of the phase data: up to the first batch of an epoch, and after the last */
    bool is_in_window; /* of GPU tracing */
    bool is_slow;      /* an outlier */
};

/* A garbage collection of any thread; it holds the interpreter lock. */
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
    /* Of data: the number of the loader, 0 unknown; whether it is not just the wait for a batch after the first. */
    uint32_t loader;
    bool is_start_of_epoch;
};

/* A DataLoader; number 0 stands for unknown ones. */
struct marey__fact_loader {
    char *text;                      /* JSON; NULL: unknown */
    uint64_t data_ns;                /* in steps */
    uint64_t n_trained, n_evaluated; /* batches, by what the program did next */
    uint64_t batch_at;               /* the event of its last batch */
    bool is_pending;                 /* what that batch was for is unknown */
    bool is_starting;                /* its next batch is the first of an epoch */
};

/* A process with training steps; without any, the first process that was sampled. */
struct marey__trainer {
    const struct marey_process *info; /* NULL: no log */
    marey_recording *recording;
    uint32_t target; /* in the set of samples; 0: not sampled */
    int64_t tid;     /* of the thread that ends steps */
    uint32_t thread; /* the same in the set of samples; 0: the main thread */
    struct marey__fact_step *steps;
    size_t n_steps, steps_cap;
    size_t n_warmup; /* the first of these */
    uint64_t median_ns;
    struct marey__fact_phase_span *phases; /* in order */
    size_t n_phases, phases_cap, at_phase, at_step;
    struct marey__fact_pause *pauses;
    size_t n_pauses, pauses_cap;
    struct marey__fact_allocator *allocators;
    size_t n_allocators, allocators_cap;
    /*
     * In traced steps, without overlaps: times in which the host leaves a device idle; waits that
     * cause idle time.
     */
    struct marey__interval *host_gaps, *waits;
    size_t n_host_gaps, host_gaps_cap, at_host_gap, n_waits, waits_cap, at_wait;
    uint64_t start_ns, end_ns;          /* of the process, as known */
    bool has_device;                    /* used its memory */
    char *compiled;                     /* JSON about torch.compile; NULL: not used */
    struct marey__fact_loader *loaders; /* by number */
    size_t n_loaders, loaders_cap;
    const char *loader; /* JSON of the loader with most waiting time, else of the first; NULL: none */
};

/* Times within a traced step; all but the first are idle time of the device. */
enum marey__traced_part {
    MAREY__TRACED_DATA, /* the phase, regardless of the device */
    MAREY__TRACED_DATA_IDLE,
    MAREY__TRACED_SYNC,
    MAREY__TRACED_HOST,
    MAREY__TRACED_HOST_SHORT, /* of host, in gaps below MAREY__SHORT_GAP_NS */
    MAREY__TRACED_PARTS,
};
enum { MAREY__SHORT_GAP_NS = 50000 };

/* The traced part of a step, on one device. */
struct marey__traced_step {
    uint64_t ns, part_ns[MAREY__TRACED_PARTS];
    uint32_t trainer;
};

/*
 * Sums over the traced steps of all devices. The other four add up to `traced_ns`; communication
 * and copies: exposed.
 */
struct marey__fact_device {
    uint64_t traced_ns, computing_ns, communication_ns, copy_ns, idle_ns;
    struct marey__traced_step *steps;
    size_t n_steps, steps_cap;
    uint64_t sync_ns,
        upload_ns;     /* idle after waits; of that, after waits for copies from pageable memory */
    bool is_untypical; /* traced steps differ from the others and are ignored */
};

#define MAREY__FACT_SEVERAL UINT32_MAX
/* The process of samples of two: of the second one, if that is the first that counts. */
static inline uint32_t marey__fact_process_of(bool is_first, uint32_t a, uint32_t b)
{
    return is_first || a == b ? b : MAREY__FACT_SEVERAL;
}
struct marey__fact_sum {
    uint64_t n, ns;
    uint32_t process;  /* of the samples; MAREY__FACT_SEVERAL */
    uint64_t gil_ns;   /* of `ns`, while the thread held the interpreter lock */
    uint64_t gc_ns;    /* of `ns`, in a garbage collection */
    uint64_t wants_ns; /* of `ns`, while it waited for the lock */
    uint64_t off_ns;   /* of `ns`, off the CPU */
};
/* Samples of one kind with one stack. */
struct marey__sample_bucket {
    uint64_t key; /* bits 0-31: stack; 32-39: kind; from 40, in rank_buckets: trainer's number */
    struct marey__fact_sum sum;
};
static inline uint32_t marey__sample_bucket_stack(const struct marey__sample_bucket *bucket)
{
    return (uint32_t)bucket->key;
}
static inline bool marey__sample_bucket_has_kind(const struct marey__sample_bucket *bucket,
                                                 uint64_t kinds)
{
    return (kinds >> (bucket->key >> 32 & 0xff) & 1) != 0;
}

/* Garbage collections in steps after warm-up, outside of data. */
struct marey__fact_pauses {
    uint64_t n, ns, longest_ns, by_generation[3];
};

/* Work that only some steps do. */
enum marey__occasional {
    MAREY__OCCASIONAL_CHECKPOINT,
    MAREY__OCCASIONAL_EVALUATION,
    MAREY__OCCASIONAL_LOGGING,
    MAREY__OCCASIONAL_GC,
    MAREY__OCCASIONAL_OUTLIER, /* the step takes much longer than the median, for any reason */
    MAREY__OCCASIONAL_KINDS,
};
/* Number of such steps and the time of the work; for outliers, the time above the median. */
struct marey__fact_occasional {
    uint64_t n, ns;
    double squares;  /* of the times */
    uint64_t period; /* in steps; 0: irregular */
};

/* A sample in an outlier step. */
struct marey__fact_slow_sample {
    uint32_t trainer, step, stack; /* the step's number in its process */
    uint64_t ns;
};

/* A function, and its line with the most samples. */
struct marey__fact_place {
    uint32_t function; /* 0: none */
    uint32_t line;     /* with the most samples */
    double share;      /* of the searched samples */
    uint64_t ns;       /* of samples in the function */
    uint32_t process;  /* of the searched samples; 0: that of the finding; MAREY__FACT_SEVERAL */
    bool is_unknown;   /* there were too few samples */
    uint32_t caller, caller_line; /* in the user's code, around all samples of steps; 0: none */
};

enum { MAREY__MEMORY_PARTS = 8 };

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
    /* Training threads by kind and stack. */
    struct marey__sample_bucket *buckets;
    size_t n_buckets, buckets_cap;
    struct marey__key_map buckets_by_key;
    /* The same for each trainer, after warm-up; empty with a single trainer. */
    struct marey__sample_bucket *rank_buckets;
    size_t n_rank_buckets, rank_buckets_cap;
    struct marey__key_map rank_buckets_by_key;
    uint8_t *stack_flags; /* by stack: enum marey__fact_flag */
    const char *package; /* the path of the installed package that the program is; not terminated */
    size_t package_len;  /* 0: not installed */
    struct {
        uint64_t n, ns, step; /* steps that compile; the time and number of the last one */
        double squares;       /* of the times of the earlier ones */
    } compiling;
    uint8_t claimed; /* flags claimed by findings: later rules ignore stacks with them */
    struct marey__fact_slow_sample *slow_samples; /* outside of phases with their own finding */
    size_t n_slow_samples, slow_samples_cap;
    uint32_t n_stacks;
    uint64_t run_ns;                                  /* from the first start to the last end */
    uint64_t n_steps, n_warmup, median_ns, mean_ns;   /* of the slowest trainer, by median */
    uint64_t steady_ns, phase_ns[MAREY__FACT_PHASES]; /* summed over steps after warm-up */
    /*
     * Steps after warm-up of all trainers. If ranks wait for each other in each step, each number is there once, with the
     * mean length and the longest time of each phase; otherwise the trainers follow one another.
     */
    struct marey__fact_step *joint;
    size_t n_joint;
    uint64_t joint_ns;
    bool is_synchronous;  /* ranks wait for each other in each step */
    double samples_per_s; /* summed over trainers; 0: unknown */
    uint64_t startup_ns;
    uint64_t start_of_epoch_ns; /* of the phase data */
    bool has_workers;           /* samples of data-loader workers, while steps count */
    double workers_idle;        /* share of time of the busiest ones; below 0: unknown */
    struct marey__fact_device device;
    struct marey__fact_pauses pauses;
    struct marey__fact_occasional occasional[MAREY__OCCASIONAL_KINDS];
    uint64_t typical_ns; /* the median without data */
    struct marey__system_facts {
        size_t n_values;                       /* of each counter; 0: not recorded */
        double counted_ns;                     /* the time that they cover */
        double anonymous[MAREY__MEMORY_PARTS]; /* means by part of the steps; 0: unknown */
        double mean[MAREY__SYSTEM_COUNTERS];   /* after warm-up; without steps, of the run */
        /* Of main threads, over the same time. */
        uint64_t n_main, main_ns,
            io_ns; /* io: waits for files, outside of phases that have their own finding */
        uint64_t io_lines_ns; /* of all samples at lines with stable samples of file waits */
        uint64_t io_slow_ns, io_logged_ns; /* of io: in outlier steps; otherwise in logging */
        struct marey__fact_memory {
            double peak, limit; /* bytes, where they are closest; 0: unknown */
            bool is_group;      /* the limit is that of a cgroup */
            uint64_t peak_ns;
        } memory;
        uint32_t io_wait; /* the most frequent wait, as a code */
        struct marey__fact_place io_place;
    } system;
    struct marey__fact_gpu *gpus;
    size_t n_gpus, gpus_cap;
    const char *detected_by; /* NULL: no steps */
    struct marey_cost cost;
    bool is_cost_measured;
    double cost_share, cost_low, cost_high; /* of the program's time; bounds only if measured */
};
MAREY_WARN_UNUSED marey_status marey__facts_read(struct marey__facts *facts,
                                                 const struct marey__request *request);
void marey__facts_fini(struct marey__facts *facts);
/* The sample of the training thread: the thread that ends steps, else the main one. NULL: the round has none. */
const struct marey_samples_seen *marey__facts_find_training(const struct marey__facts *facts,
                                                            const struct marey__trainer *trainer,
                                                            const struct marey_samples_round *round);
/* The number after "key": in a mark's JSON, which may be NULL; negative if missing. */
long marey__fact_number(const char *json, const char *key);

/* ---- facts_import.c ---- */

static inline bool marey__is_torch_trace(const struct marey_process *process)
{
    return strcmp(process->source, "kineto") == 0;
}
/* Reads phases of such a trace. Call after its steps are read. */
MAREY_WARN_UNUSED marey_status marey__facts_read_import(struct marey__trainer *trainer);

/* ---- facts_device.c ---- */

/* Call after marey__facts_summarize_steps(). */
MAREY_WARN_UNUSED marey_status marey__facts_read_device(struct marey__facts *facts);
/* The share of a part outside of data, of all steps, and its standard error over traced steps. */
void marey__facts_traced_share(const struct marey__facts *facts, enum marey__traced_part part,
                               double *share, double *error);
/* The share of the phase data in which devices are idle; below 0 if no traced step has that phase. */
double marey__facts_exposed_data(const struct marey__facts *facts);

/* ---- facts.c ---- */

/*
 * Finds warm-up, medians, sums. Call after the steps are read, before the samples. Returns false on
 * out of memory.
 */
bool marey__facts_summarize_steps(struct marey__facts *facts);

/* The index of a trainer's step in `joint`; n_joint: in warm-up. */
size_t marey__facts_joint_step(const struct marey__facts *facts, const struct marey__trainer *t,
                               size_t step);

/* Sorts the values; 0 for none. */
uint64_t marey__fact_median(uint64_t *values, size_t n);

/* The length of a step for claims: the median, or the mean if both differ by more than a fifth. */
double marey__facts_step_ns(const struct marey__facts *facts);
/* The share of a phase in steps after warm-up, and its standard error over them. */
void marey__facts_share(const struct marey__facts *facts, enum marey__fact_phase phase,
                        double *share, double *error);

/* facts_cost.c. Call after marey__facts_read_device(). */
void marey__facts_measure_cost(struct marey__facts *facts);

/* Sum of the samples of some kinds. */
struct marey__fact_sum marey__facts_sum(const struct marey__facts *facts, uint64_t kinds);

/* ---- facts_slow.c ---- */

/*
 * Finds occasional work and outlier steps. Call after devices are read, before the samples. Returns
 * false on out of memory.
 */
MAREY_WARN_UNUSED bool marey__facts_find_slow(struct marey__facts *facts);
/*
 * The largest period at which at least two of three steps are among the `n` at `at`, and which holds three of four of the
 * `n`. 0: irregular, or out of memory.
 */
uint64_t marey__facts_find_period(const uint64_t *at, size_t n, size_t n_steps);

/* ---- facts_place.c ---- */

/* Activities that a frame of a stack reveals. */
enum marey__fact_flag {
    MAREY__FACT_COMPILES = 1, /* torch.compile */
    MAREY__FACT_LOGS = 2, /* in a logging library, or a function of the user's named like logging */
    MAREY__FACT_IN_WORKER = 4,    /* of a DataLoader */
    MAREY__FACT_COMMUNICATES = 8, /* torch.distributed */
    MAREY__FACT_MODEL = 16,       /* calls a torch.nn.Module */
    MAREY__FACT_SCALES = 32,      /* torch's gradient scaler, which has to know of overflows */
};
/* Sets the flags of all stacks. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__facts_flag_stacks(struct marey__facts *facts);

/* Selects the samples to search for a place. */
enum marey__fact_samples {
    MAREY__FACT_ALL,
    /* Hold the interpreter lock in users' code, or in Python code of numpy and torch called by it. */
    MAREY__FACT_PYTHON,
    MAREY__FACT_GC,        /* in garbage collections */
    MAREY__FACT_COMPILING, /* with the flag */
    MAREY__FACT_LOGGED,    /* with the flag, or in the phase logging */
    MAREY__FACT_SCALING,   /* with the flag */
    MAREY__FACT_WAITING,   /* off the CPU in the phase backward, or in torch.distributed */
    MAREY__FACT_USER_STARTUP, /* that hold the interpreter lock in users' code, not in imports or installed packages */
};
/* The time of such samples in a bucket. */
uint64_t marey__fact_weight(const struct marey__facts *facts,
                            const struct marey__sample_bucket *bucket,
                            enum marey__fact_samples which);
/* The time of such samples, and their number. */
uint64_t marey__facts_weigh(const struct marey__facts *facts, uint64_t kinds,
                            enum marey__fact_samples which, uint64_t *n);
/* The share of garbage collections that no finding claims; 1 without samples of any. */
double marey__facts_unclaimed_gc(const struct marey__facts *facts);
/*
 * The innermost function that contains at least half of the samples of some kinds: in the user's
 * code if there is one, else in a library. Returns false on out of memory.
 */
MAREY_WARN_UNUSED bool marey__facts_find_place(const struct marey__facts *facts, uint64_t kinds,
                                               enum marey__fact_samples which,
                                               struct marey__fact_place *out);
/*
 * The same among functions that rarely contain samples of kinds `others`; if there is none, among
 * all functions.
 */
MAREY_WARN_UNUSED bool marey__facts_find_typical_place(const struct marey__facts *facts,
                                                       uint64_t kinds, uint64_t others,
                                                       struct marey__fact_place *out);
/* The same for weights by stack. `only_users`: never in a library. */
MAREY_WARN_UNUSED bool marey__facts_find_place_of(const struct marey__facts *facts,
                                                  const uint64_t *weights, bool is_loading,
                                                  bool only_users, struct marey__fact_place *out);
struct marey__fact_lines {
    uint32_t first, last;
};
/*
 * Where a function's own code is hot: adjacent lines of it have at least half of its Python samples, or it is a loop of its own
 * that has. Code of the user's that it calls is not its own. Sets the line and time of `place`, which is that function; to
 * none where its time is spread over lines or calls. Returns false on out of memory.
 */
MAREY_WARN_UNUSED bool marey__facts_find_hot_lines(const struct marey__facts *facts, uint64_t kinds,
                                                   struct marey__fact_place *place,
                                                   struct marey__fact_lines *lines);
/*
 * The time of samples at these lines of a function, with all they call: of those where at least a tenth of the samples are
 * Python's, as opposed to kernels that do their work. Returns 0 on out of memory.
 */
uint64_t marey__facts_weigh_lines(const struct marey__facts *facts, uint64_t kinds,
                                  uint32_t function, const struct marey__fact_lines *lines);

/*
 * Outside of the standard library, of installed packages and of what is frozen into Python; or in the package that the program
 * is, as `python -m PACKAGE` runs it.
 */
bool marey__facts_is_users(const struct marey__facts *facts, const struct marey_samples_function *f);

/* ---- facts_ranks.c: ranks of a training on CPUs that wait for each other ---- */

struct marey__fact_rank {
    const struct marey__trainer *trainer;
    double step_ns, wait_ns; /* of a mean step; of that, waits for other ranks */
    double error_ns;         /* of the latter */
    double apart_ns; /* of a mean step, in checkpoints and evaluation, which belong to slow-steps */
    double phase_ns[MAREY__FACT_PHASES]; /* of a mean step, without waits */
};
struct marey__fact_ranks {
    struct marey__fact_rank *list;
    size_t n;
    const struct marey__fact_rank *slowest; /* it waits least */
    bool has_nodes, is_slow_node; /* several hosts; all ranks of the slowest one's host are late */
    double step_ns, excess_ns, error_ns; /* of the slowest: work beyond the others' median */
    enum marey__fact_phase phase;        /* with the largest excess */
};
/*
 * False: fewer than two ranks, or they do not wait for each other in equal steps, or out of memory.
 * Always call fini.
 */
bool marey__fact_ranks_read(const struct marey__facts *facts, struct marey__fact_ranks *out);
void marey__fact_ranks_fini(struct marey__fact_ranks *ranks);
/* The place of a rank's samples in a phase. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__fact_ranks_find_place(const struct marey__facts *facts,
                                                    const struct marey__fact_rank *rank,
                                                    enum marey__fact_phase phase,
                                                    struct marey__fact_place *out);

/* ---- startup.c ---- */

/* The part of a path after the last `folder`; NULL if it is not in the path. */
const char *marey__path_below(const char *file, const char *folder);
/*
 * Rows by time: activity, time, share of start-up. Without samples the table is empty. Returns
 * false on out of memory.
 */
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

/* A finding's statement, or a cause of it. */
struct marey__cause {
    const char *id;
    char claim[MAREY__FINDING_TEXT], action[MAREY__FINDING_TEXT];
    struct marey__fact_place place;
    enum marey__fact_phase phase;
    double share; /* of the median step; below 0: unknown */
};

struct marey__finding {
    struct marey__cause statement; /* its id, claim and place */
    bool is_risk, is_severe;       /* severe risks come before time findings, others after them */
    bool is_experimental;          /* reported only on request */
    char detail[MAREY__FINDING_TEXT];
    double at_most, gain_low, gain_high; /* factors; 0 for a risk */
    double confidence;
    struct marey__cause because[MAREY__MAX_CAUSES];
    size_t n_because;
    uint8_t claims;                       /* it explains stacks with these flags */
    const struct marey__trainer *trainer; /* the trainer that it is about; NULL: all */
};

/*
 * Sets the largest share of a step that a fix can remove, and the resulting gains. `error`: its
 * standard error.
 */
void marey__finding_set_share(struct marey__finding *f, double share, double error);
/* The same for a share between two bounds; assumes that nothing else becomes faster. */
void marey__finding_set_between(struct marey__finding *f, double least, double most, double error);
/* The same for a share that was measured completely: the error is the variation between runs. */
void marey__finding_set_measured(struct marey__finding *f, double share, double error);

/* ---- facts_system.c: call after marey__facts_summarize_steps() ---- */

MAREY_WARN_UNUSED marey_status marey__facts_read_system(struct marey__facts *facts);

/* ---- facts_native.c: programs without Python ---- */

struct marey__native {
    const marey_samples *samples;
    uint64_t n, work_ns, lock_ns; /* number of samples; time on a CPU core, and at a lock */
    uint64_t calls_ns;            /* of work, in functions that take or release locks */
    struct marey__native_process {
        uint64_t run_ns, busy_ns,
            threads_ns; /* of all rounds; of rounds with such a sample; of such samples */
    } * processes;
    uint64_t *hot_by_location, *hot_by_function;   /* outside of locks, at the user's code */
    uint64_t *lock_by_location, *lock_by_function; /* at locks, likewise */
};
/* Returns false without enough samples of such a program, or on out of memory. Always call fini. */
bool marey__native_read(const struct marey__facts *facts, struct marey__native *out);
void marey__native_fini(struct marey__native *native);
/* The function with the most time, and its line with the most. */
void marey__place_find_heaviest(const marey_samples *samples, const uint64_t *by_function,
                                const uint64_t *by_location, struct marey__fact_place *place);
/*
 * Whether it is the program's code, not a system library's: it has source lines, or is in the
 * program's file.
 */
bool marey__native_is_users(const struct marey_samples_function *f);
/* Appends a sentence on the function with the most CPU time, if it has at least a third. */
void marey__native_append_hottest(const struct marey__facts *facts, char *text, size_t size,
                                  size_t *len);
/*
 * Returns the share of `part_ns` in the time that threads work or wait for locks, and sets the
 * finding's share of the run.
 */
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
    char missing[MAREY__FINDING_TEXT]; /* what an imported trace lacks; may be empty */
};
/* The finding with this id among those made so far; NULL: none. */
const struct marey__finding *marey__diagnosis_find(const struct marey__diagnosis *d, const char *id);

/* A rule fills `*out`, zeroed except for unknown shares, and returns true if it applies. */
typedef bool marey__finding_rule(const struct marey__diagnosis *d, struct marey__finding *out);
marey__finding_rule marey__find_input_bound, marey__find_sync_bound, marey__find_host_bound,
    marey__find_recompilation, marey__find_logging_in_step, marey__find_slow_steps,
    marey__find_gil_contention, marey__find_startup_dominates, marey__find_gc_pauses,
    marey__find_hot_function, marey__find_lock_contention, marey__find_io_bound,
    marey__find_cpu_oversubscribed, marey__find_straggler, marey__find_exposed_communication,
    marey__find_memory_leak, marey__find_memory_near_limit, marey__find_throttled;

extern const char marey__gc_action[];
/* io-bound as a cause, where waits for files are at least half of a finding. */
void marey__finding_add_io(const struct marey__facts *facts, uint64_t io_ns,
                           struct marey__finding *f);

/* The smallest gain of a time finding that is reported, and of its lower bound. */
#define MAREY__GAIN_LEAST 1.03
#define MAREY__GAIN_LOW_LEAST 1.01

/*
 * evidence.c: the times at which findings were observed, longest first. Returns false on out of
 * memory.
 */
MAREY_WARN_UNUSED bool marey__diagnosis_put_evidence(const struct marey__diagnosis *d,
                                                     marey_table *table);

/* ---- diagnosis.c ---- */

struct marey__report_writer;
marey_status marey__diagnosis_text(struct marey__report_writer *writer);
marey_status marey__diagnosis_json(struct marey__report_writer *writer);
marey_status marey__diagnosis_markdown(struct marey__report_writer *writer);
/*
 * diagnosis_text.c: "augment (data.py:26) is 71 % of loading"; the factor of a gain, nothing for a
 * risk.
 */
void marey__finding_put_place(struct marey__buf *line, const struct marey__facts *facts,
                              const struct marey__finding *f, const char *bold, const char *plain);
void marey__finding_put_gain(struct marey__buf *line, const struct marey__finding *f,
                             const char *before, const char *after);

#endif
