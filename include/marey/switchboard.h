/*
 * marey/switchboard.h: switch measuring on and off, from one place, for the whole process.
 *
 * One word of enable bits decides whether an instrument does anything. Off costs a load and a branch. On and off are
 * said once, in the main program, by the environment (MAREY=RUN.marey, MAREY_OPTIONS=key=value,...), or by `marey run`;
 * nothing is passed around. Handles and ids taken before marey_start() work after it.
 *
 * marey_start, marey_stop and marey_reset may be called from any thread, not from a signal handler. A forked child goes
 * on recording into a log of its own beside its parent's; a child made by a raw clone() stays off.
 */
#ifndef MAREY_SWITCHBOARD_H
#define MAREY_SWITCHBOARD_H

#include <marey/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of the enable word. */
enum marey_on {
    MAREY_ON_RECORD = 1u << 0, /* a recording is open: events go to this thread's lane */
    MAREY_ON_CHECK = 1u << 1,  /* the recording asks for begin and end to be checked for nesting */
    MAREY_ON_NVTX = 1u << 2,   /* an NVTX tool may be listening: ranges and marks go there too */
    MAREY_ON_WRAPPER =
        1u << 3, /* the range wrapper of <marey/nvtx.h> is on; the next three are its options */
    MAREY_ON_ORDER = 1u << 4,          /* it asks for begin and end to be checked for nesting */
    MAREY_ON_SYNC_PUSH = 1u << 5,      /* it waits for the GPU before a push */
    MAREY_ON_SYNC_POP = 1u << 6,       /* and before a pop */
    MAREY_ON_STOPWATCH = 1u << 7,      /* the stopwatch of <marey/stopwatch.h> is on */
    MAREY_ON_STOPWATCH_SYNC = 1u << 8, /* and waits for the GPU at each start and stop */
    MAREY_ON_DUMP = 1u << 9,           /* the dumper of <marey/dump.h> is on */
    MAREY_ON_MEMORY = 1u << 10,        /* allocations are told, see <marey/memory.h> */
};
/* Begin and end are checked, whoever asked for it. */
#define MAREY_ON_CHECKED (MAREY_ON_CHECK | MAREY_ON_ORDER)

/*
 * The enable word is element 0; the rest pads it to a page of its own, which a forked child sees as zeros. Weak, so
 * that position-independent programs read it through the GOT. Written by the library alone.
 */
extern MAREY_API __attribute__((weak)) uint32_t marey_switch[1024];

/* The enable bits now. */
static inline uint32_t marey_on(void)
{
    return __atomic_load_n(&marey_switch[0], __ATOMIC_RELAXED);
}

/* What happens to new events when the pool is full because the disk does not keep up or the budget is spent. */
enum marey_policy {
    MAREY_KEEP_OLDEST = 0, /* new events are dropped and counted, with their time range */
    MAREY_KEEP_NEWEST, /* flight recorder: the pool is a ring written out at the end; the oldest go */
    MAREY_BLOCK, /* the thread waits for room, at most 100 ms for each chunk; then as KEEP_OLDEST */
};

enum marey_clock {
    MAREY_CLOCK_AUTO = 0, /* the time-stamp counter where it can be trusted, else CLOCK_MONOTONIC */
    MAREY_CLOCK_TSC,      /* the time-stamp counter; marey_start fails where it cannot be trusted */
    MAREY_CLOCK_MONOTONIC, /* CLOCK_MONOTONIC */
};

/* Zero means the default for every field. */
struct marey_options {
    const char *path; /* the recording, a directory; NULL: $MAREY, else "run.marey" */
    const char *text; /* further options as MAREY_OPTIONS writes them; they win over the fields below */
    uint64_t pool_bytes; /* memory budget, default 32 MiB */
    uint64_t disk_bytes; /* budget of this process's log, default min(4 GiB, a tenth of what is free) */
    enum marey_policy policy;
    enum marey_clock clock;
    uint32_t check_nesting; /* non-zero: begin and end are checked */
    uint32_t no_follow;     /* non-zero: a forked child stays off */
};

/*
 * Begin a recording. `options` (lent, may be NULL) is copied. Fails with MAREY_ESTATE while one is open, except that
 * the first start joins a recording that MAREY or `marey run` began: theirs is the last word on where and how, and one
 * sentence tells when `path` is another one. The flush thread inherits where this thread may run: start before pinning.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_start_sized(const struct marey_options *options,
                                                           size_t size);
static inline MAREY_WARN_UNUSED marey_status marey_start(const struct marey_options *options)
{
    return marey_start_sized(options, sizeof *options);
}

/*
 * End the recording: no new events are taken, what is in memory is written, the log is finalized. MAREY_OK as well when
 * none is open. MAREY_EIO when something could not be written; the sentence says what. Called at exit by itself.
 */
MAREY_API marey_status marey_stop(void);

/* Stop, and forget the options and the nesting stacks, as if nothing had been started. Names and ids stay valid. */
MAREY_API void marey_reset(void);

/* 1 while a recording is open, else 0. */
MAREY_API int marey_enabled(void);

/* The directory of the recording that is open or was last; "" before any. Lent until the next marey_start. */
MAREY_API const char *marey_recording_path(void);

/* Say which rank this process is, when RANK, OMPI_*, PMI_* and SLURM_* do not. Before or during a recording. */
MAREY_API void marey_set_rank(int rank, int world_size);

/* Which rank it is and of how many, by marey_set_rank(), the options or those variables; -1: nobody said. */
MAREY_API void marey_rank_get(int *rank, int *world_size);

/*
 * Say that this process loads data for its rank, and is its loader's worker of that number, from 0; reports then tell how busy
 * workers were. Before or during a recording; a negative number is none.
 */
MAREY_API void marey_set_worker(int worker);

/*
 * The id that processes of one run share, as MAREY_RUN_ID or the launcher says it, cut where it is longer than `size`
 * allows; 64 bytes are enough. 1, or 0 when nobody says: then a recording makes one at random.
 */
MAREY_API int marey_run_id(char *out, size_t size);

/*
 * Say which versions the figures depend on, "Python 3.11.7, torch 2.13.0"; marey's Python package does so. `marey compare`
 * warns where two runs differ in it. Before or during a recording; what is past 255 bytes is cut.
 */
MAREY_API void marey_set_versions(const char *text);

/*
 * Say what this run is to be compared with, for reports of scaling: an experiment, "mnist", and a strategy, "torch-ddp",
 * of which each is a series. NULL: as it is, by the options of these names. Before or during a recording; what is past 63
 * bytes is cut.
 */
MAREY_API void marey_set_experiment(const char *experiment, const char *strategy);

/*
 * Let a sampling profiler of the same user attach to this process and to the children that it forks from now on, where the
 * kernel's Yama otherwise allows that to its parents alone: `pid` and what that starts, 0 for any. Without Yama
 * nothing needs to be said, and it is MAREY_OK. MAREY_EUNAVAILABLE where a process cannot allow it (kernel.yama.ptrace_scope 2 or 3), with
 * what to do. Not from a signal handler.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_allow_attach(int64_t pid);

/*
 * Check options in the syntax of MAREY_OPTIONS without applying them: MAREY_EINVAL and a sentence that lists the valid
 * keys. `marey_options_help` is one line per key: name, default, meaning; a static text.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_options_check(const char *text);
MAREY_API const char *marey_options_help(void);

/*
 * Where the library's own sentences go (a full disk, a second copy, a nesting error). The default writes one line to
 * stderr and says each sentence once. `sink` NULL restores it. `sink` may be called from any thread.
 */
typedef void marey_sink(void *ctx, const char *sentence);
MAREY_API void marey_set_sink(marey_sink *sink, void *ctx);

/* What the open recording, or else the last one, has taken and lost so far. Any thread; a snapshot. */
struct marey_counts {
    uint64_t events;      /* taken; a range is two: its begin and its end */
    uint64_t lost_events; /* events not taken */
    uint64_t log_bytes;   /* written to this process's log */
    uint64_t pool_bytes;  /* of memory in use by the pool */
    uint32_t n_threads;   /* lanes so far */
    uint32_t nesting_errors;
};
MAREY_API void marey_counts_get(struct marey_counts *out);

#ifdef __cplusplus
}
#endif
#endif
