/*
 * marey/switchboard.h: turn measuring on and off for the whole process.
 *
 * One word of enable bits turns each instrument on or off. Off costs a load and a branch. Measuring is enabled in one place:
 * the main program, the environment (MAREY=RUN.marey, MAREY_OPTIONS=key=value,...) or `marey run`. Handles and ids created
 * before marey_start() stay valid after it.
 *
 * Any thread may call marey_start, marey_stop and marey_reset, but not a signal handler. A forked child keeps recording,
 * into a separate log in the same directory; a child of a raw clone() stays off.
 */
#ifndef MAREY_SWITCHBOARD_H
#define MAREY_SWITCHBOARD_H

#include <marey/base.h>

MAREY_BEGIN_C

/* Bits of the enable word. */
enum marey_on {
    MAREY_ON_RECORD = 1u << 0, /* a recording is open: events go to this thread's lane */
    MAREY_ON_CHECK = 1u << 1,  /* the recording checks begin and end for nesting */
    MAREY_ON_NVTX = 1u << 2,   /* an NVTX tool may be attached: it also receives ranges and marks */
    MAREY_ON_WRAPPER =
        1u << 3, /* the range wrapper of <marey/nvtx.h> is on; the next three are its options */
    MAREY_ON_ORDER = 1u << 4,          /* the wrapper checks begin and end for nesting */
    MAREY_ON_SYNC_PUSH = 1u << 5,      /* the wrapper waits for the GPU before a push */
    MAREY_ON_SYNC_POP = 1u << 6,       /* and before a pop */
    MAREY_ON_STOPWATCH = 1u << 7,      /* the stopwatch of <marey/stopwatch.h> is on */
    MAREY_ON_STOPWATCH_SYNC = 1u << 8, /* and waits for the GPU at each start and stop */
    MAREY_ON_DUMP = 1u << 9,           /* the dumper of <marey/dump.h> is on */
    MAREY_ON_MEMORY = 1u << 10,        /* allocations are sampled, see <marey/memory.h> */
};
/* Begin and end are checked for nesting, by either option. */
#define MAREY_ON_CHECKED (MAREY_ON_CHECK | MAREY_ON_ORDER)

/*
 * The enable word is element 0; the rest pads it to a separate page, which is zero in a forked child. Weak, so that
 * position-independent programs read it through the GOT. Only the library writes it.
 */
extern MAREY_API __attribute__((weak)) uint32_t marey_switch[1024];

/* The current enable bits. */
static inline uint32_t marey_on(void)
{
    return __atomic_load_n(&marey_switch[0], __ATOMIC_RELAXED);
}

/* Handling of new events when the pool is full: the disk is too slow, or the budget is exhausted. */
enum marey_policy {
    MAREY_KEEP_OLDEST = 0, /* new events are dropped and counted, with their time range */
    MAREY_KEEP_NEWEST, /* flight recorder: the pool is a ring buffer, written at the end; drops the oldest events */
    MAREY_BLOCK, /* the thread waits for space, at most 100 ms per chunk; then as KEEP_OLDEST */
};

enum marey_clock {
    MAREY_CLOCK_AUTO = 0,  /* the time-stamp counter if reliable, else CLOCK_MONOTONIC */
    MAREY_CLOCK_TSC,       /* the time-stamp counter; marey_start fails if it is not reliable */
    MAREY_CLOCK_MONOTONIC, /* CLOCK_MONOTONIC */
};

/* Zero means the default for every field. */
struct marey_options {
    const char *path; /* the recording, a directory; NULL: $MAREY, else "run.marey" */
    const char *text; /* further options in the syntax of MAREY_OPTIONS; override the fields below */
    uint64_t pool_bytes; /* memory budget, default 32 MiB */
    uint64_t disk_bytes; /* budget of this process's log, default min(4 GiB, 10 % of the free space) */
    enum marey_policy policy;
    enum marey_clock clock;
    uint32_t check_nesting; /* non-zero: check begin and end for nesting */
    uint32_t no_follow;     /* non-zero: a forked child stays off */
};

/*
 * Start a recording. `options` (lent, may be NULL) is copied. MAREY_ESTATE: a recording is open, except that the first start
 * joins a recording that MAREY or `marey run` began. Its path and options then take precedence; a different `path` prints a
 * warning. The flush thread inherits the CPU affinity of this thread: start before pinning.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_start_sized(const struct marey_options *options,
                                                           size_t size);
static inline MAREY_WARN_UNUSED marey_status marey_start(const struct marey_options *options)
{
    return marey_start_sized(options, sizeof *options);
}

/*
 * Stop the recording: write the events in memory and finalize the log. MAREY_OK also if none is open. MAREY_EIO: write
 * error. Called automatically at exit.
 */
MAREY_API marey_status marey_stop(void);

/* Stop, and clear options and nesting stacks, as if nothing had been started. Names and ids stay valid. */
MAREY_API void marey_reset(void);

/* 1 while a recording is open, else 0. */
MAREY_API int marey_enabled(void);

/* The directory of the open or last recording; "" before any. Lent until the next marey_start. */
MAREY_API const char *marey_recording_path(void);

/* Set the rank of this process, if RANK, OMPI_*, PMI_* and SLURM_* do not. Before or during a recording. */
MAREY_API void marey_set_rank(int rank, int world_size);

/* Rank and world size from marey_set_rank(), the options or those variables; -1: unknown. */
MAREY_API void marey_rank_get(int *rank, int *world_size);

/*
 * Mark this process as data-loader worker number `worker`, from 0, of its rank; reports then show how busy workers were.
 * Before or during a recording; negative: not a worker.
 */
MAREY_API void marey_set_worker(int worker);

/*
 * The id that processes of one run share, from MAREY_RUN_ID or the launcher, truncated to `size`; 64 bytes are enough.
 * Returns 1, or 0 if not set: a recording then generates a random one.
 */
MAREY_API int marey_run_id(char *out, size_t size);

/*
 * Set the software versions of the run, "Python 3.11.7, torch 2.13.0"; marey's Python package does so. `marey compare` warns
 * if two runs differ in them. Before or during a recording; truncated to 255 bytes.
 */
MAREY_API void marey_set_versions(const char *text);

/*
 * Set the experiment ("mnist") and strategy ("torch-ddp") of this run, for scaling reports; each strategy is a series. NULL:
 * unchanged, from the options of these names. Before or during a recording; truncated to 63 bytes.
 */
MAREY_API void marey_set_experiment(const char *experiment, const char *strategy);

/*
 * Allow a sampling profiler of the same user to attach to this process and to children that it forks from now on, if the
 * kernel's Yama restricts that to ancestors: `pid` and its descendants, 0: any process. MAREY_OK without Yama.
 * MAREY_EUNAVAILABLE: a process cannot allow it (kernel.yama.ptrace_scope 2 or 3); the message describes the fix. Not from a
 * signal handler.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_allow_attach(int64_t pid);

/*
 * Check options in the syntax of MAREY_OPTIONS without applying them. MAREY_EINVAL: invalid; the message lists the valid
 * keys. marey_options_help() has one line per key: name, default, meaning; static.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_options_check(const char *text);
MAREY_API const char *marey_options_help(void);

/*
 * Receives the library's messages (a full disk, a second copy, a nesting error). The default prints each message once, as
 * one line on stderr; NULL restores it. Called from any thread.
 */
typedef void marey_sink(void *ctx, const char *sentence);
MAREY_API void marey_set_sink(marey_sink *sink, void *ctx);

/* Counts of the open recording, or else of the last one. Any thread; a snapshot. */
struct marey_counts {
    uint64_t events;      /* recorded; a range is two: begin and end */
    uint64_t lost_events; /* dropped */
    uint64_t log_bytes;   /* written to this process's log */
    uint64_t pool_bytes;  /* memory in use by the pool */
    uint32_t n_threads;   /* lanes so far */
    uint32_t nesting_errors;
};
MAREY_API void marey_counts_get(struct marey_counts *out);

MAREY_END_C
#endif
