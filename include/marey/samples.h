/*
 * marey/samples.h: stack samples of other processes (libmarey-tools).
 *
 *   process --< thread          function --< location --< stack (a tree, the outermost frame at its root)
 *                  '---- round: at one time, stack and flags of each thread that was read
 *
 * Each object has a number, from 1, valid until the samples are destroyed; 0: none. Samples come from a sampler
 * (<marey/sampler.h>) or from a recording. One thread at a time may use them.
 */
#ifndef MAREY_SAMPLES_H
#define MAREY_SAMPLES_H

#include <marey/base.h>

MAREY_BEGIN_C

typedef struct marey_samples marey_samples;

MAREY_API void marey_samples_destroy(marey_samples *samples);

/* Strings are lent until destroy; never NULL. A thread's name is lent until it is renamed. */
struct marey_samples_process {
    int64_t pid, ppid;   /* as the sampler sees them */
    uint64_t start_time; /* field 22 of /proc/PID/stat; 0 unknown */
    int32_t rank;        /* in its job; -1 none */
    int32_t worker;      /* of a data loader, from 0; -1 none */
    uint32_t python;     /* as sys.hexversion; 0 unknown */
    const char *command;
    const char *host; /* "": this one */
};
struct marey_samples_thread {
    uint32_t process;
    int64_t tid; /* as the sampler sees it; 0 unknown */
    const char *name;
    uint64_t interpreter; /* interpreter number, 0: main */
    int is_main;          /* the main thread of its process */
};
enum marey_frame_kind {
    MAREY_FRAME_PYTHON = 0,
    MAREY_FRAME_NATIVE = 1,
    MAREY_FRAME_KERNEL = 2,
    MAREY_FRAME_MARK = 3, /* not a function: "(truncated)", "(no frames)", the name of a task */
};
struct marey_samples_function {
    enum marey_frame_kind kind;
    const char *name;    /* qualified, if Python has the qualified name */
    const char *file;    /* source file; "" unknown */
    const char *module;  /* library of a native function; else "" */
    uint32_t first_line; /* 0 unknown */
};
struct marey_samples_location {
    uint32_t function, line; /* line 0: unknown */
};
struct marey_samples_stack {
    uint32_t parent;   /* stack of the caller; 0: outermost frame */
    uint32_t location; /* of the innermost frame */
    uint32_t depth;    /* frames, from 1 */
};

/* Counts; also the highest number. */
MAREY_API uint32_t marey_samples_n_processes(const marey_samples *samples);
MAREY_API uint32_t marey_samples_n_threads(const marey_samples *samples);
MAREY_API uint32_t marey_samples_n_functions(const marey_samples *samples);
MAREY_API uint32_t marey_samples_n_locations(const marey_samples *samples);
MAREY_API uint32_t marey_samples_n_stacks(const marey_samples *samples);
/* The object of a number; an unknown number has empty strings and zeros. Lent until samples are added. */
MAREY_API const struct marey_samples_process *marey_samples_get_process(const marey_samples *samples,
                                                                        uint32_t process);
MAREY_API const struct marey_samples_thread *marey_samples_get_thread(const marey_samples *samples,
                                                                      uint32_t thread);
MAREY_API const struct marey_samples_function *
marey_samples_get_function(const marey_samples *samples, uint32_t function);
MAREY_API struct marey_samples_location marey_samples_get_location(const marey_samples *samples,
                                                                   uint32_t location);
MAREY_API struct marey_samples_stack marey_samples_get_stack(const marey_samples *samples,
                                                             uint32_t stack);

enum marey_sample_flags {
    MAREY_SAMPLE_ON_CPU = 1 << 0, /* unknown if neither ON_CPU nor OFF_CPU is set */
    MAREY_SAMPLE_OFF_CPU = 1 << 1,
    MAREY_SAMPLE_GIL = 1 << 2,       /* holds the GIL */
    MAREY_SAMPLE_WANTS_GIL = 1 << 3, /* waits for the GIL */
    MAREY_SAMPLE_EXCEPTION = 1 << 4, /* handles an exception */
    MAREY_SAMPLE_GC = 1 << 5,        /* runs the garbage collector */
    MAREY_SAMPLE_UNSTABLE = 1 << 6, /* the stack changed while it was copied, or its thread woke up */
    MAREY_SAMPLE_EXACT = 1 << 7,    /* the thread was stopped while it was read */
    MAREY_SAMPLE_AUDIT =
        1 << 8, /* randomly chosen exact sample, to measure the error of others; without EXACT it did not stop in time */
    MAREY_SAMPLE_TRUNCATED = 1 << 9,       /* outer frames are missing */
    MAREY_SAMPLE_NO_FRAMES = 1 << 10,      /* runs no Python */
    MAREY_SAMPLE_NATIVE = 1 << 11,         /* native frames are in the stack */
    MAREY_SAMPLE_MERGE_MISMATCH = 1 << 12, /* native and Python frames could not be merged */
    MAREY_SAMPLE_NATIVE_CUT = 1 << 13,     /* the native stack is incomplete at its outer end */
};

/* Sample of one thread. */
struct marey_samples_seen {
    uint32_t thread, stack; /* stack 0: no frames */
    uint32_t flags;
    uint32_t wait; /* wait reason, see marey_sampler_wait_text(); 0: none or unknown */
};
/* The threads of a process that were sampled together. */
struct marey_samples_round {
    uint32_t process;
    uint64_t at_ns;     /* CLOCK_MONOTONIC */
    uint64_t weight_ns; /* time it represents; 0: the time since the process's previous round */
    uint64_t n_same; /* number of equal rounds merged into this one, weights summed; 0: only itself */
    const struct marey_samples_seen *seen;
    size_t n_seen;
};

/* Sampling statistics so far, of one process or of a whole sampler. */
struct marey_samples_counts {
    uint64_t asked;                       /* rounds that were due */
    uint64_t done;                        /* rounds completed */
    uint64_t missed;                      /* rounds skipped because the sampler was late */
    uint64_t late_ns;                     /* total delay of rounds */
    uint64_t samples;                     /* stacks of threads */
    uint64_t rejected;                    /* threads whose stack could not be read */
    uint64_t unstable, exact, audit;      /* of the samples */
    uint64_t stops, stop_ns, stop_max_ns; /* stops of target threads to read them */
    uint64_t sampler_cpu_ns;              /* user and system time of the sampler */
    uint64_t reads, bytes_read;           /* system calls that copied from the target */
    uint64_t gil_switches;                /* hand-offs of the interpreter lock */
    uint64_t skipped;                     /* child processes that run no Python */
    uint64_t slowed;                      /* rounds skipped to keep the --max-slowdown budget */
};
/* Of `process`; 0: of all. */
MAREY_API struct marey_samples_counts marey_samples_get_counts(const marey_samples *samples,
                                                               uint32_t process);

MAREY_END_C
#endif
