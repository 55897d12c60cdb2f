/*
 * kymo/recording.h: read a recording (libkymo-tools).
 *
 * A recording is a directory NAME.kymo with one log per process. Opening it seals the logs of processes that died
 * (their last events are still in their pools) and reads names, clocks and threads; events are then streamed block by
 * block, so memory stays bounded whatever the size. A single log is only read, with its pool. A recording that is still
 * being written can be read as well: what was published when it was opened is there. Damaged bytes are stepped over
 * with a warning, kymo_recording_is_damaged() tells, and what is whole behind them is read.
 *
 * One recording is used by one thread at a time; different processes' logs of one recording may be visited by
 * different threads at the same time.
 */
#ifndef KYMO_RECORDING_H
#define KYMO_RECORDING_H

#include <kymo/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kymo_recording kymo_recording;

/*
 * Open `path`: a NAME.kymo directory or a single .klog file. KYMO_EIO when it cannot be read, KYMO_EFORMAT when
 * nothing in it is a log of ours (a directory with meta.json and no log yet is fine, with no processes).
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_recording_open(const char *path, kymo_recording **out);
KYMO_API void kymo_recording_close(kymo_recording *recording);

/*
 * Open some logs of the directory `path`, by their names in it; there may be none. For processes that share the logs of a
 * recording (<kymo/partial.h>). Nothing is sealed: one of them calls kymo_recording_seal before. A log that cannot be
 * read is a warning, even when it is the only one. `n_jobs` threads, 0: as many as there are cores.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_recording_open_logs(const char *path,
                                                               const char *const *names, size_t n,
                                                               uint32_t n_jobs, kymo_recording **out);

/* Finish the logs of dead processes in directory `path`, as open does: `kymo run` calls it. Part of libkymo. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_recording_seal(const char *path);

/*
 * Make the directory `path` (its parent must exist) with a meta.json that names `command`; a recording that is already
 * there stays as it is. KYMO_EIO when it cannot be made or written into. Part of libkymo: kymo_start does the same.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_recording_create(const char *path, const char *command);

/* A program that has ended, as waitid() and getrusage() describe it. */
struct kymo_run_end {
    const char *command;
    uint64_t wall_ns, cpu_ns;
    int wait_status;
};
/*
 * Add a run to the recording `path`, under the run id of the environment (KYMO_RUN_ID): `kymo run` calls it when its program has
 * ended. Any thread. KYMO_EIO when it cannot be written. Part of libkymo.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_recording_add_run(const char *path,
                                                             const struct kymo_run_end *run);

/*
 * Some processes of `whole` as a separate recording, with everything that measured them: "4711" by PID; "worker" workers of data
 * loaders, "worker2" one of them; "main" all others; else those with this in their command, or that matches it where it has
 * one of *?[. Close it before `whole`, whose data it uses. KYMO_EINVAL if no process matches.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_recording_select(const kymo_recording *whole,
                                                            const char *process,
                                                            kymo_recording **out);

KYMO_API const char *kymo_recording_name(const kymo_recording *recording);

/* Sentences about what is missing or doubtful, in order; NULL past the last. */
KYMO_API const char *kymo_recording_warning(const kymo_recording *recording, size_t i);

/* 1 when some bytes are not as they were written, so that a warning tells of something missing; else 0. */
KYMO_API int kymo_recording_is_damaged(const kymo_recording *recording);

/* One process, that is one log. Everything lent until close. */
struct kymo_process {
    uint32_t index; /* its number in this recording, from 0, ordered by rank, then start */
    int64_t pid, ppid;
    int32_t rank, world_size, local_rank; /* -1: unknown */
    const char *host, *command, *run_id, *log_path;
    const char *end; /* "stop", "exit", "unclosed" (killed, or left by _exit), "write failed", or "running" */
    const char *clock;      /* "tsc" or "monotonic"; "trace": imported */
    const char *note;       /* sentences the process left about itself, one per line; "" for none */
    uint64_t start_unix_ns; /* wall clock at start */
    uint64_t first_ns, last_ns; /* of its events, CLOCK_MONOTONIC of its machine; both 0 without any */
    uint64_t n_events; /* as many as an imported file has; else a range is two, its begin and its end */
    uint64_t lost_events, lost_first_ns, lost_last_ns;
    uint64_t log_bytes;
    uint64_t flush_cpu_ns;   /* CPU time of the flush thread */
    double event_cost_ns;    /* of one event, measured by that process at start */
    int64_t mono_to_unix_ns; /* add to a first_ns to get a moment since 1970 */
    uint32_t n_sites, n_lanes;
    /* What figures depend on besides the program; "" and -1: not known. */
    const char *version;  /* of the library that recorded */
    const char *cpu;      /* model of the processor */
    const char *cpus;     /* how many the process might use, a number */
    const char *governor; /* of the processors' frequency */
    const char *gpu;      /* models of NVIDIA GPUs */
    const char *kernel;
    const char *versions; /* of Python and its libraries, as the program told them */
    double load;          /* average of the machine over the minute before the start */
    const char *source; /* the format it was imported from, "kineto"; "" for a recording of kymo's own */
    const char *backend; /* of communication, "nccl"; "" unknown */
    uint64_t n_words;    /* in the log */
    const char *devices; /* UUIDs of its CUDA devices in CUDA's order, comma-separated; "" unknown */
    const char *role; /* "energy", "sampler": it only measures; "run": see kymo_recording_run; "": the program, or a part of it */
    const char *energy_sources; /* a line for each device that it measured; "" none */
    uint64_t energy_cpu_ns;     /* CPU time of its energy thread; 0 none */
    int32_t worker;  /* it loads data for its rank, as this worker, from 0; -1: it does not */
    uint32_t is_cut; /* non-zero: the log has no end, and the pool with its last events is gone */
    const char *memory;                /* how its memory was measured, lines KEY=VALUE; "" not */
    const char *memory_counts;         /* what came of it, the same; "" unknown */
    const char *sampling;              /* how a sampler worked, lines KEY=VALUE; "" it is none */
    const char *experiment, *strategy; /* as the program or its options told; "" not */
    const char *gpu_cost, *calls_cost,
        *memory_cost;    /* what each cost, as kymo_cost has it; "" not used */
    uint64_t open_ns;    /* from the first clock sample of the log to the last */
    uint64_t start_time; /* of the process, field 22 of its /proc/PID/stat; 0 unknown */
    /* Of the role "run": a program that `kymo run` waited for. CPU time is that of the program and of the descendants that
     * were waited for, user and system. */
    uint64_t wall_ns, cpu_ns;
    const char *exit_status; /* "0" to "255", or "signal 9"; "" for other logs */
};

/* The range in which a worker of a data loader makes one batch; reports count them. */
#define KYMO_FETCH "fetch"

struct kymo_site_info {
    const char *name, *category, *domain, *file; /* any bytes, NUL-terminated besides; never NULL */
    uint32_t name_len, line, color;
};

enum kymo_lane_kind {
    KYMO_LANE_THREAD = 0,
    KYMO_LANE_GPU =
        1, /* a stream of a device: its events are records GPU, each with its duration; they may overlap */
};

struct kymo_lane_info {
    uint32_t lane;            /* its number in the process, from 0 */
    enum kymo_lane_kind kind; /* of later versions: not among those above */
    int64_t tid;              /* of a thread; several lanes may be of one */
    int32_t device;           /* these two of a stream, else 0 */
    uint32_t stream;
    const char *name; /* of the thread or stream; may be "" */
};

/*
 * The processes of the program. Behind them, up to kymo_recording_n_logs(), stand processes that only measured others (of a
 * role): kymo_recording_process(), _site(), _lane() and _visit() take those as well, and what counts processes does not.
 */
KYMO_API size_t kymo_recording_n_processes(const kymo_recording *recording);
KYMO_API size_t kymo_recording_n_logs(const kymo_recording *recording);
KYMO_API const struct kymo_process *kymo_recording_process(const kymo_recording *recording, size_t i);
/* Programs that `kymo run` waited for, in the order of their starts: wall_ns, cpu_ns, exit_status; NULL past the last. */
KYMO_API size_t kymo_recording_n_runs(const kymo_recording *recording);
KYMO_API const struct kymo_process *kymo_recording_run(const kymo_recording *recording, size_t i);
/* `site` from 1 to n_sites; an unknown one gives a nameless site, never NULL. */
KYMO_API const struct kymo_site_info *kymo_recording_site(const kymo_recording *recording,
                                                          size_t process, uint32_t site);
KYMO_API const struct kymo_lane_info *kymo_recording_lane(const kymo_recording *recording,
                                                          size_t process, uint32_t lane);

/* A word: 40 bits of ticks since the batch's base, 4 of kind, 20 of id. See docs/formats/recording.md. */
enum kymo_kind {
    KYMO_KIND_NONE = 0,
    KYMO_KIND_BEGIN = 1,
    KYMO_KIND_END = 2, /* id 0: whatever was begun last */
    KYMO_KIND_MARK = 3,
    KYMO_KIND_ITERATION = 4, /* reserved: 4 to 7 */
    KYMO_KIND_EPOCH = 5,
    KYMO_KIND_PHASE = 6,
    KYMO_KIND_GPU = 7,
    KYMO_KIND_RECORD =
        15, /* a longer record: 8 bits of type, 12 of length in words, this word counted */
};

enum kymo_record_type {
    KYMO_RECORD_BEGIN = 1,       /* site; payload */
    KYMO_RECORD_MARK = 2,        /* site; payload */
    KYMO_RECORD_COUNTER = 3,     /* site; a double */
    KYMO_RECORD_ASYNC_BEGIN = 4, /* site; handle */
    KYMO_RECORD_ASYNC_END = 5,   /* site (0: unknown); handle */
    KYMO_RECORD_GAP = 6, /* events lost on this thread: count; ticks from the first to the last lost */
    /* Of the whole process, on whichever thread told it; see <kymo/iteration.h>. */
    KYMO_RECORD_ITERATION =
        7, /* one ends: its number, from 0; flags, bit 0 warm-up; samples, a double, 0 unknown */
    KYMO_RECORD_ITERATION_BEGIN = 8, /* one begins: its number */
    KYMO_RECORD_EPOCH = 9,           /* its number; 1 it begins, 0 it ends */
    KYMO_RECORD_PHASE = 10,          /* site of its name; 0: the phase ends */
    KYMO_RECORD_END_OF =
        11, /* site: the innermost range of that name ends; those begun after it stay open */
    KYMO_RECORD_GPU =
        12, /* work of a stream: site, enum kymo_work_kind, details; duration in ticks; correlation; bytes, 0 none; of memory its address */
    /* What was launched, communicated, given, about the range begun last on this lane or the work before it. */
    KYMO_RECORD_LAUNCH =
        13, /* it launched the GPU work of this correlation; or, with KYMO_WORK_MEMORY behind it, asked for memory */
    KYMO_RECORD_COMMUNICATION = 14, /* see struct kymo_communication */
    KYMO_RECORD_ARGUMENTS = 15,     /* length in bytes; text, a JSON object */
    /* Further. */
    KYMO_RECORD_FLOW =
        16, /* site of its name; id; enum kymo_flow_end. From the range around it to another */
    KYMO_RECORD_REPEAT =
        17, /* the range that begins next on this lane stands for so many calls; 0: for some counted elsewhere */
    /* Memory of the process, on whichever thread wrote them; see struct kymo_memory_sample. */
    KYMO_RECORD_MEMORY_STACK =
        18, /* its number, from 1; sites of its frames, two to a word, the innermost first */
    KYMO_RECORD_MEMORY_TAKE = 19, /* a block was allocated */
    KYMO_RECORD_MEMORY_GIVE = 20, /* ticks since; number of the block that was freed */
    KYMO_RECORD_CALL_NODE =
        21, /* of the launch before: profile and node of the function that launches */
};

enum kymo_work_kind {
    KYMO_WORK_KERNEL = 1,
    KYMO_WORK_COPY = 2,
    KYMO_WORK_SET = 3,        /* memory set to a value */
    KYMO_WORK_ANNOTATION = 4, /* no work: the time in which work of a range of the host lies */
    KYMO_WORK_SYNC = 5,       /* no work: a stream or device waits, or is waited for */
    KYMO_WORK_MEMORY = 6,     /* no work: memory of a device is taken or given back */
};

enum kymo_flow_end { KYMO_FLOW_BEGIN = 0, KYMO_FLOW_STEP = 1, KYMO_FLOW_END = 2 };

/* What a communication does. */
enum kymo_collective {
    KYMO_COLLECTIVE_UNKNOWN = 0,
    KYMO_COLLECTIVE_ALL_REDUCE,
    KYMO_COLLECTIVE_ALL_GATHER,
    KYMO_COLLECTIVE_REDUCE_SCATTER,
    KYMO_COLLECTIVE_ALL_TO_ALL,
    KYMO_COLLECTIVE_BROADCAST,
    KYMO_COLLECTIVE_REDUCE,
    KYMO_COLLECTIVE_GATHER,
    KYMO_COLLECTIVE_SCATTER,
    KYMO_COLLECTIVE_BARRIER,
    KYMO_COLLECTIVE_SEND,
    KYMO_COLLECTIVE_RECV,
    KYMO_COLLECTIVE_OTHER, /* a scan, a wait for several at once: known by the range's name alone */
};

/* A record COMMUNICATION, decoded; the words behind its header are these fields in this order. */
struct kymo_communication {
    uint32_t group; /* site: its name is the group's, its domain the ranks in it as text; 0 unknown. Word 1, bits 0-19 */
    enum kymo_collective what; /* word 1, bits 20-27 */
    uint64_t bytes_in,
        bytes_out;       /* given by this rank and got by it; 0 none or unknown. Words 2 and 3 */
    uint64_t sequence;   /* the how manieth of its group; UINT64_MAX unknown. Word 4 */
    uint32_t group_size; /* ranks; 0 unknown. Word 5, bits 0-31 */
    int32_t peer;        /* or root; -1 none or unknown. Word 5, bits 32-63 */
};

/* A record MEMORY_TAKE, decoded; the words behind its header are these fields in this order. */
struct kymo_memory_sample {
    uint64_t age_ticks; /* since it was allocated */
    uint64_t number;    /* of the block; later ones have higher numbers */
    uint64_t bytes;
    uint64_t interval; /* a block of s bytes is told with the probability 1 - exp(-s / interval); 1: always */
    uint32_t stack;  /* 0: none. Word 5, bits 0-31 */
    uint32_t source; /* enum kymo_memory_source. Word 5, bits 32-39 */
    int64_t tid;     /* the thread that allocated it */
};

static inline uint64_t kymo_word_ticks(uint64_t word)
{
    return word >> 24;
}
static inline uint32_t kymo_word_kind(uint64_t word)
{
    return (uint32_t)(word >> 20) & 15u;
}
static inline uint32_t kymo_word_id(uint64_t word)
{
    return (uint32_t)word & 0xfffffu;
}
static inline uint32_t kymo_record_type_of(uint64_t word)
{
    return (uint32_t)(word >> 12) & 0xffu;
}
static inline uint32_t kymo_record_length(uint64_t word)
{
    return (uint32_t)word & 0xfffu;
}
/* The word after a record's header: 20 bits of site, 8 of payload type above them, 32 of text length on top. */
static inline uint32_t kymo_record_site(uint64_t word)
{
    return (uint32_t)word & 0xfffffu;
}
static inline uint32_t kymo_record_payload_type(uint64_t word)
{
    return (uint32_t)(word >> 20) & 0xffu;
}
static inline uint32_t kymo_record_text_len(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static inline uint32_t kymo_record_work_kind(uint64_t word)
{
    return (uint32_t)(word >> 20) & 0xffu;
}
/* Whether a record LAUNCH is of memory that was taken or given back, which is no work. */
static inline int kymo_record_launches_memory(const uint64_t *words)
{
    return kymo_record_length(words[0]) > 2 && words[2] == KYMO_WORK_MEMORY;
}
/* A site whose name is a JSON object: how the kernel was launched. Much work has the same; 0: nothing is known. */
static inline uint32_t kymo_record_work_details(uint64_t word)
{
    return (uint32_t)(word >> 28) & 0xfffffu;
}
/* `words` is a whole record COMMUNICATION. */
static inline void kymo_record_communication(const uint64_t *words, struct kymo_communication *out)
{
    out->group = kymo_record_site(words[1]);
    out->what = (enum kymo_collective)((words[1] >> 20) & 0xffu);
    out->bytes_in = words[2];
    out->bytes_out = words[3];
    out->sequence = words[4];
    out->group_size = (uint32_t)words[5];
    out->peer = (int32_t)(words[5] >> 32);
}

/* `words` is a whole record MEMORY_TAKE. */
static inline void kymo_record_memory_sample(const uint64_t *words, struct kymo_memory_sample *out)
{
    out->age_ticks = words[1];
    out->number = words[2];
    out->bytes = words[3];
    out->interval = words[4];
    out->stack = (uint32_t)words[5];
    out->source = (uint32_t)(words[5] >> 32) & 0xffu;
    out->tid = (int64_t)words[6];
}

/*
 * Some successive words of one lane. Records are whole: a header word is followed by its length - 1 others in the
 * same batch, and one of a known type has all the words its type asks for. `gap` says that words of this lane are
 * missing before this batch (lost, damaged, or reclaimed by the policy).
 */
struct kymo_batch {
    const struct kymo_process *process;
    const struct kymo_lane_info *lane;
    const uint64_t *words;
    size_t n;
    int gap;
    uint64_t base_ns; /* at 0 ticks */
    uint64_t ns_mult; /* nanoseconds for a tick, times 2^40 */
};

/* Ticks of the batch's clock as nanoseconds: a duration. */
static inline uint64_t kymo_batch_duration_ns(const struct kymo_batch *batch, uint64_t ticks)
{
    __extension__ typedef unsigned __int128 u128;
    return (uint64_t)(((u128)ticks * batch->ns_mult) >> 40);
}

/* Nanoseconds (CLOCK_MONOTONIC of the process's machine) of a word of the batch; not of a record's further words. */
static inline uint64_t kymo_batch_ns(const struct kymo_batch *batch, uint64_t word)
{
    __extension__ typedef unsigned __int128 u128;
    return batch->base_ns + (uint64_t)(((u128)kymo_word_ticks(word) * batch->ns_mult) >> 40);
}

/* Return KYMO_OK to go on; anything else ends the visit and is returned. */
typedef kymo_status kymo_visitor(void *ctx, const struct kymo_batch *batch);

/* Stream one process's events: each lane's in order of time, lanes interleaved as they were written. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_recording_visit(kymo_recording *recording, size_t process,
                                                           kymo_visitor *visitor, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
