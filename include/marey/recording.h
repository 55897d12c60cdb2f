/*
 * marey/recording.h: read a recording (libmarey-tools).
 *
 * A recording is a directory NAME.marey with one log per process. Opening it finalizes the logs of processes that died
 * (their last events are still in their pools) and reads names, clocks and threads; events are then streamed block by
 * block, so memory stays bounded for any size. A single log is read with its pool, and not finalized. A recording that is still
 * being written can be read up to the events published before the open. Damaged bytes are skipped with a warning, see
 * marey_recording_is_damaged(), and the intact data after them is read.
 *
 * One thread at a time may use a recording; several threads may visit logs of different processes concurrently.
 */
#ifndef MAREY_RECORDING_H
#define MAREY_RECORDING_H

#include <marey/base.h>

MAREY_BEGIN_C

typedef struct marey_recording marey_recording;

/*
 * Open `path`: a NAME.marey directory or a single .klog file. MAREY_EIO: unreadable. MAREY_EFORMAT: contains no log of
 * marey. A directory with meta.json and no log yet is valid and has no processes.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_recording_open(const char *path,
                                                              marey_recording **out);
MAREY_API void marey_recording_close(marey_recording *recording);

/*
 * Between keep and drop, several reports of the same recordings decode each log once: its events stay in memory, if all of
 * them take at most 256 MiB together. Calls nest; closing a recording drops its events, too.
 */
MAREY_API void marey_recordings_keep_events(marey_recording *const *recordings, size_t n);
MAREY_API void marey_recordings_drop_events(marey_recording *const *recordings, size_t n);

/*
 * Open some logs of the directory `path`, by file name; `n` may be 0. For processes that share the logs of a recording
 * (<marey/partial.h>). Does not finalize: one of them calls marey_recording_finalize first. An unreadable log is a warning,
 * even if it is the only one. `n_jobs` threads, 0: one per core.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_recording_open_logs(const char *path,
                                                                   const char *const *names,
                                                                   size_t n, uint32_t n_jobs,
                                                                   marey_recording **out);

/* Finalize the logs of dead processes in directory `path`, as open does: `marey run` calls it. Part of libmarey. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_recording_finalize(const char *path);
#define marey_recording_seal marey_recording_finalize /* the earlier name */

/*
 * Create the directory `path` (its parent must exist) with a meta.json that has `command`; an existing recording is not
 * changed. MAREY_EIO: cannot be created or written. Part of libmarey: marey_start does the same.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_recording_create(const char *path,
                                                                const char *command);

/* A program that has ended, as waitid() and getrusage() describe it. */
struct marey_run_end {
    const char *command;
    uint64_t wall_ns, cpu_ns;
    int wait_status;
};
/*
 * Add a run to the recording `path`, under the run id of the environment (MAREY_RUN_ID): `marey run` calls it after its
 * program has ended. Any thread. MAREY_EIO: cannot be written. Part of libmarey.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_recording_add_run(const char *path,
                                                                 const struct marey_run_end *run);

/*
 * Some processes of `whole` as a separate recording, with all measurements of them. `process`: "4711", a PID; "worker", all
 * data-loader workers; "worker2", one of them; "main", all others; else a substring of the command, or a pattern if it has
 * one of *?[. Close it before `whole`, whose data it uses. MAREY_EINVAL: no process matches.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_recording_select(const marey_recording *whole,
                                                                const char *process,
                                                                marey_recording **out);

MAREY_API const char *marey_recording_name(const marey_recording *recording);

/* Warnings about missing or doubtful data, in order; NULL past the last. */
MAREY_API const char *marey_recording_warning(const marey_recording *recording, size_t i);

/* Returns 1 if the recording has damaged bytes, so events are missing (see the warnings); else 0. */
MAREY_API int marey_recording_is_damaged(const marey_recording *recording);

/* One process, which is one log. Everything is lent until close. */
struct marey_process {
    uint32_t index; /* its number in this recording, from 0, ordered by rank, then start */
    int64_t pid, ppid;
    int32_t rank, world_size, local_rank; /* -1: unknown */
    const char *host, *command, *run_id, *log_path;
    const char *end; /* "stop", "exit", "unclosed" (killed, or left by _exit), "write failed", or "running" */
    const char *clock;          /* "tsc" or "monotonic"; "trace": imported */
    const char *note;           /* notes of the process, one sentence per line; "": none */
    uint64_t start_unix_ns;     /* wall clock at start */
    uint64_t first_ns, last_ns; /* of its events, CLOCK_MONOTONIC of its machine; both 0 without any */
    uint64_t n_events; /* events of an imported file; else a range is two events, begin and end */
    uint64_t lost_events, lost_first_ns, lost_last_ns;
    uint64_t log_bytes;
    uint64_t flush_cpu_ns;   /* CPU time of the flush thread */
    double event_cost_ns;    /* of one event, measured by that process at start */
    int64_t mono_to_unix_ns; /* add to first_ns to get Unix time */
    uint32_t n_sites, n_lanes;
    /* The environment of the measurement; "" and -1: unknown. */
    const char *version;  /* of the library that recorded */
    const char *cpu;      /* CPU model */
    const char *cpus;     /* number of CPU cores the process may use */
    const char *governor; /* CPU frequency governor */
    const char *gpu;      /* models of NVIDIA GPUs */
    const char *kernel;
    const char *versions; /* of Python and its libraries, see marey_set_versions() */
    double load;          /* one-minute load average at the start */
    const char *source;   /* the format it was imported from, "kineto"; "": recorded by marey */
    const char *backend;  /* of communication, "nccl"; "" unknown */
    uint64_t n_words;     /* in the log */
    const char *devices; /* UUIDs of its CUDA devices in CUDA's order, comma-separated; "" unknown */
    const char *role; /* "energy", "sampler": only measures; "run": see marey_recording_run; "": process of the program */
    const char *energy_sources; /* one line per measured device; "" none */
    uint64_t energy_cpu_ns;     /* CPU time of its energy thread; 0 none */
    int32_t worker;             /* data-loader worker of its rank, from 0; -1: not a worker */
    uint32_t is_cut; /* non-zero: the log is truncated, and the pool with its last events is lost */
    const char *memory;                /* memory measurement settings, lines KEY=VALUE; "" off */
    const char *memory_counts;         /* memory measurement results, the same; "" unknown */
    const char *sampling;              /* sampler statistics, lines KEY=VALUE; "" not a sampler */
    const char *experiment, *strategy; /* see marey_set_experiment(); "" unknown */
    const char *gpu_cost, *calls_cost, *memory_cost; /* cost of each, see marey_cost; "" not used */
    uint64_t open_ns;    /* from the first clock sample of the log to the last */
    uint64_t start_time; /* of the process, field 22 of its /proc/PID/stat; 0 unknown */
    /* Role "run": a program that `marey run` waited for. CPU time is user and system time of the program and of its
     * descendants that were waited for. */
    uint64_t wall_ns, cpu_ns;
    const char *exit_status; /* "0" to "255", or "signal 9"; "" for other logs */
    const char *steps; /* how training steps are found: "updates 0:1", "batches", "driver NAME"; "" only by iterations */
};

/* The range in which a data-loader worker creates one batch; reports count these ranges. */
#define MAREY_FETCH "fetch"

struct marey_site_info {
    const char *name, *category, *domain, *file; /* any bytes, NUL-terminated besides; never NULL */
    uint32_t name_len, line, color;
};

enum marey_lane_kind {
    MAREY_LANE_THREAD = 0,
    MAREY_LANE_GPU =
        1, /* a CUDA stream: its events are records GPU, each with a duration; they may overlap */
};

struct marey_lane_info {
    uint32_t lane;             /* its number in the process, from 0 */
    enum marey_lane_kind kind; /* later versions may have other kinds */
    int64_t tid;               /* of a thread; a thread may have several lanes */
    int32_t device;            /* device and stream of a stream, else 0 */
    uint32_t stream;
    const char *name; /* of the thread or stream; may be "" */
};

/*
 * The processes of the program. Processes with a role, which only measured others, follow up to marey_recording_n_logs():
 * marey_recording_process(), _site(), _lane() and _visit() accept them; counts of processes exclude them.
 */
MAREY_API size_t marey_recording_n_processes(const marey_recording *recording);
MAREY_API size_t marey_recording_n_logs(const marey_recording *recording);
MAREY_API const struct marey_process *marey_recording_process(const marey_recording *recording,
                                                              size_t i);
/* Programs that `marey run` waited for, in the order of their starts: wall_ns, cpu_ns, exit_status; NULL past the last. */
MAREY_API size_t marey_recording_n_runs(const marey_recording *recording);
MAREY_API const struct marey_process *marey_recording_run(const marey_recording *recording, size_t i);
/* `site` from 1 to n_sites; returns a nameless site for an unknown one, never NULL. */
MAREY_API const struct marey_site_info *marey_recording_site(const marey_recording *recording,
                                                             size_t process, uint32_t site);
MAREY_API const struct marey_lane_info *marey_recording_lane(const marey_recording *recording,
                                                             size_t process, uint32_t lane);

/* An event word: 40 bits of ticks since the batch's base, 4 of kind, 20 of id. See docs/formats/recording.md. */
enum marey_kind {
    MAREY_KIND_NONE = 0,
    MAREY_KIND_BEGIN = 1,
    MAREY_KIND_END = 2, /* id 0: the innermost range */
    MAREY_KIND_MARK = 3,
    MAREY_KIND_ITERATION = 4, /* reserved: 4 to 7 */
    MAREY_KIND_EPOCH = 5,
    MAREY_KIND_PHASE = 6,
    MAREY_KIND_GPU = 7,
    MAREY_KIND_RECORD =
        15, /* a longer record: 8 bits of type, 12 of length in words, including this one */
};

enum marey_record_type {
    MAREY_RECORD_BEGIN = 1,       /* site; payload */
    MAREY_RECORD_MARK = 2,        /* site; payload */
    MAREY_RECORD_COUNTER = 3,     /* site; a double */
    MAREY_RECORD_ASYNC_BEGIN = 4, /* site; handle */
    MAREY_RECORD_ASYNC_END = 5,   /* site (0: unknown); handle */
    MAREY_RECORD_GAP = 6, /* events lost on this thread: count; ticks from the first to the last lost */
    /* Of the whole process, on the lane of the recording thread; see <marey/iteration.h>. */
    MAREY_RECORD_ITERATION =
        7, /* end: number, from 0; flags, bit 0 warm-up; samples, a double, 0 unknown */
    MAREY_RECORD_ITERATION_BEGIN = 8, /* begin: number */
    MAREY_RECORD_EPOCH = 9,           /* number; 1 begin, 0 end */
    MAREY_RECORD_PHASE = 10,          /* site of its name; 0: the phase ends */
    MAREY_RECORD_END_OF =
        11, /* site: ends the innermost range of that name; ranges begun after it stay open */
    MAREY_RECORD_GPU =
        12, /* activity of a stream: site, enum marey_work_kind, details; duration in ticks; correlation; bytes, 0 none;
               address of memory, else 0 or missing; then, if known, struct marey_launch */
    /* Details of the range begun last on this lane, or of the activity before it. */
    MAREY_RECORD_LAUNCH =
        13, /* launched the GPU activity of this correlation; if followed by MAREY_WORK_MEMORY, a memory operation */
    MAREY_RECORD_COMMUNICATION = 14, /* see struct marey_communication */
    MAREY_RECORD_ARGUMENTS = 15,     /* length in bytes; text, a JSON object */
    /* Others. */
    MAREY_RECORD_FLOW =
        16, /* site of its name; id; enum marey_flow_end. Connects the enclosing range to another */
    MAREY_RECORD_REPEAT =
        17, /* number of calls that the next range on this lane represents; 0: counted elsewhere */
    /* Memory of the process, on the lane of the writing thread; see struct marey_memory_sample. */
    MAREY_RECORD_MEMORY_STACK =
        18, /* number, from 1; sites of its frames, two per word, innermost first */
    MAREY_RECORD_MEMORY_TAKE = 19, /* a block was allocated */
    MAREY_RECORD_MEMORY_GIVE = 20, /* ticks since the free; number of the block */
    MAREY_RECORD_CALL_NODE =
        21, /* of the preceding launch: profile and node of the launching function */
    /* Ranges of an imported thread that overlap others and are on an additional lane. */
    MAREY_RECORD_COVERED =
        22, /* site; nanoseconds of self time that the innermost range of that name loses to ranges of other lanes */
    MAREY_RECORD_AROUND =
        23, /* number of sites; sites of the ranges around the outermost range that begins next on this lane, outermost first */
    /* Of the whole process, as ITERATION. */
    MAREY_RECORD_STEP_HINT =
        24, /* bits 20-27: enum marey_step_hint; training samples of a batch, a double, 0 unknown */
    MAREY_RECORD_TRACED = 25, /* 1: a window of GPU tracing begins; 0: it has ended */
};

enum marey_work_kind {
    MAREY_WORK_KERNEL = 1,
    MAREY_WORK_COPY = 2,
    MAREY_WORK_SET = 3,        /* memset */
    MAREY_WORK_ANNOTATION = 4, /* not work: time span of the activity of a host range */
    MAREY_WORK_SYNC = 5,       /* not work: a stream or device waits, or is waited for */
    MAREY_WORK_MEMORY = 6,     /* not work: device memory is allocated or freed */
};

enum marey_flow_end { MAREY_FLOW_BEGIN = 0, MAREY_FLOW_STEP = 1, MAREY_FLOW_END = 2 };

/* Operation of a communication. */
enum marey_collective {
    MAREY_COLLECTIVE_UNKNOWN = 0,
    MAREY_COLLECTIVE_ALL_REDUCE,
    MAREY_COLLECTIVE_ALL_GATHER,
    MAREY_COLLECTIVE_REDUCE_SCATTER,
    MAREY_COLLECTIVE_ALL_TO_ALL,
    MAREY_COLLECTIVE_BROADCAST,
    MAREY_COLLECTIVE_REDUCE,
    MAREY_COLLECTIVE_GATHER,
    MAREY_COLLECTIVE_SCATTER,
    MAREY_COLLECTIVE_BARRIER,
    MAREY_COLLECTIVE_SEND,
    MAREY_COLLECTIVE_RECV,
    MAREY_COLLECTIVE_OTHER, /* a scan, a wait for several: identified only by the range's name */
};

/* A record COMMUNICATION, decoded; these fields are the words after its header, in this order. */
struct marey_communication {
    uint32_t group; /* site: name is the group's name, domain its list of ranks; 0 unknown. Word 1, bits 0-19 */
    enum marey_collective what; /* word 1, bits 20-27 */
    uint64_t bytes_in,
        bytes_out;       /* sent by this rank, received by it; 0 none or unknown. Words 2 and 3 */
    uint64_t sequence;   /* number within its group; UINT64_MAX unknown. Word 4 */
    uint32_t group_size; /* ranks; 0 unknown. Word 5, bits 0-31 */
    int32_t peer;        /* or root; -1 none or unknown. Word 5, bits 32-63 */
};

/* A record MEMORY_TAKE, decoded; these fields are the words after its header, in this order. */
struct marey_memory_sample {
    uint64_t age_ticks; /* since it was allocated */
    uint64_t number;    /* of the block; later ones have higher numbers */
    uint64_t bytes;
    uint64_t interval; /* a block of s bytes is sampled with probability 1 - exp(-s / interval); 1: always */
    uint32_t stack;  /* 0: none. Word 5, bits 0-31 */
    uint32_t source; /* enum marey_memory_source. Word 5, bits 32-39 */
    int64_t tid;     /* the thread that allocated it */
};

static inline uint64_t marey_word_ticks(uint64_t word)
{
    return word >> 24;
}
static inline uint32_t marey_word_kind(uint64_t word)
{
    return (uint32_t)(word >> 20) & 15u;
}
static inline uint32_t marey_word_id(uint64_t word)
{
    return (uint32_t)word & 0xfffffu;
}
static inline uint32_t marey_record_type_of(uint64_t word)
{
    return (uint32_t)(word >> 12) & 0xffu;
}
static inline uint32_t marey_record_length(uint64_t word)
{
    return (uint32_t)word & 0xfffu;
}
/* The word after a record's header: 20 bits of site, 8 of payload type above them, 32 of text length on top. */
static inline uint32_t marey_record_site(uint64_t word)
{
    return (uint32_t)word & 0xfffffu;
}
static inline uint32_t marey_record_payload_type(uint64_t word)
{
    return (uint32_t)(word >> 20) & 0xffu;
}
/* Of a STEP_HINT: enum marey_step_hint. */
static inline uint32_t marey_record_step_hint(uint64_t word)
{
    return (uint32_t)(word >> 20) & 0xffu;
}
static inline uint32_t marey_record_text_len(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static inline uint32_t marey_record_work_kind(uint64_t word)
{
    return (uint32_t)(word >> 20) & 0xffu;
}
/* Whether a record LAUNCH is a memory operation (allocate or free), which is not work. */
static inline int marey_record_launches_memory(const uint64_t *words)
{
    return marey_record_length(words[0]) > 2 && words[2] == MAREY_WORK_MEMORY;
}
/* Older recordings: a site whose name is a JSON object with the launch parameters. 0: unknown. */
static inline uint32_t marey_record_work_details(uint64_t word)
{
    return (uint32_t)(word >> 28) & 0xfffffu;
}
/* Launch parameters of a kernel or CUDA graph node: a record GPU from word 6 on. */
struct marey_launch {
    uint32_t grid[3];   /* word 6: x in 32 bits, y and z in 16 each */
    uint32_t block[3];  /* word 7: x, y and z in 16 bits each; all 0 for copies and memsets */
    uint32_t registers; /* per thread; word 7, bits 48-63 */
    uint32_t static_shared_bytes, dynamic_shared_bytes; /* per block; word 8: 32 bits each */
    uint32_t graph;      /* graph id; word 9, or 0 if the record is shorter */
    uint64_t graph_node; /* word 10 */
};
/* `words` is a complete record GPU. Returns 0 without a launch; see marey_record_work_details() for older recordings. */
static inline int marey_record_launch(const uint64_t *words, struct marey_launch *out)
{
    const uint32_t length = marey_record_length(words[0]);
    if (length < 9)
        return 0;
    out->grid[0] = (uint32_t)words[6];
    out->grid[1] = (uint32_t)(words[6] >> 32) & 0xffffu;
    out->grid[2] = (uint32_t)(words[6] >> 48);
    out->block[0] = (uint32_t)words[7] & 0xffffu;
    out->block[1] = (uint32_t)(words[7] >> 16) & 0xffffu;
    out->block[2] = (uint32_t)(words[7] >> 32) & 0xffffu;
    out->registers = (uint32_t)(words[7] >> 48);
    out->static_shared_bytes = (uint32_t)words[8];
    out->dynamic_shared_bytes = (uint32_t)(words[8] >> 32);
    out->graph = length > 10 ? (uint32_t)words[9] : 0;
    out->graph_node = length > 10 ? words[10] : 0;
    return 1;
}
/* `words` is a complete record COMMUNICATION. */
static inline void marey_record_communication(const uint64_t *words, struct marey_communication *out)
{
    out->group = marey_record_site(words[1]);
    out->what = (enum marey_collective)((words[1] >> 20) & 0xffu);
    out->bytes_in = words[2];
    out->bytes_out = words[3];
    out->sequence = words[4];
    out->group_size = (uint32_t)words[5];
    out->peer = (int32_t)(words[5] >> 32);
}

/* `words` is a complete record MEMORY_TAKE. */
static inline void marey_record_memory_sample(const uint64_t *words, struct marey_memory_sample *out)
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
 * Successive words of one lane. Records are complete: a header word is followed by its length - 1 others in the same batch,
 * and a record of a known type has all words of its type. `gap`: words of this lane are missing before this batch (lost,
 * damaged, or reclaimed by the policy).
 */
struct marey_batch {
    const struct marey_process *process;
    const struct marey_lane_info *lane;
    const uint64_t *words;
    size_t n;
    int gap;
    uint64_t base_ns; /* at 0 ticks */
    uint64_t ns_mult; /* nanoseconds per tick, times 2^40 */
};

/* Convert a duration from ticks of the batch's clock to nanoseconds. */
static inline uint64_t marey_batch_duration_ns(const struct marey_batch *batch, uint64_t ticks)
{
    __extension__ typedef unsigned __int128 u128;
    return (uint64_t)(((u128)ticks * batch->ns_mult) >> 40);
}

/* Timestamp of an event word or record header, in nanoseconds of CLOCK_MONOTONIC of its machine. */
static inline uint64_t marey_batch_ns(const struct marey_batch *batch, uint64_t word)
{
    __extension__ typedef unsigned __int128 u128;
    return batch->base_ns + (uint64_t)(((u128)marey_word_ticks(word) * batch->ns_mult) >> 40);
}

/* Return MAREY_OK to continue; any other status ends the visit and is returned. */
typedef marey_status marey_visitor(void *ctx, const struct marey_batch *batch);

/* Stream the events of one process: each lane in order of time, lanes interleaved as written. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_recording_visit(marey_recording *recording,
                                                               size_t process,
                                                               marey_visitor *visitor, void *ctx);

MAREY_END_C
#endif
