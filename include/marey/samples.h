/*
 * marey/samples.h: what a sampler saw of other processes (libmarey-tools).
 *
 *   process --< thread          function --< location --< stack (a tree, the outermost frame at its root)
 *                  '---- round: at one time, for each thread that was read: its stack, and flags
 *
 * Each thing has a number, from 1, that stays while the samples live; 0 is none. The samples are made by a sampler
 * (<marey/sampler.h>), or are read from a recording (<marey/samples_report.h>). Whoever holds them looks from one thread at
 * a time.
 */
#ifndef MAREY_SAMPLES_H
#define MAREY_SAMPLES_H

#include <marey/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct marey_samples marey_samples;

MAREY_API void marey_samples_destroy(marey_samples *samples);

/* Texts are lent until the samples go; never NULL. A thread's name is lent until it is renamed. */
struct marey_samples_process {
    int64_t pid, ppid;   /* as the sampler sees them */
    uint64_t start_time; /* field 22 of /proc/PID/stat; 0 unknown */
    int32_t rank;        /* of a job; -1 none */
    int32_t worker;      /* of a data loader, from 0; -1 none */
    uint32_t python;     /* as sys.hexversion; 0 unknown */
    const char *command;
    const char *host; /* "": this one */
};
struct marey_samples_thread {
    uint32_t process;
    int64_t tid; /* as the sampler sees it; 0 unknown */
    const char *name;
    uint64_t interpreter; /* its number, 0 the main one */
    int is_main;          /* the first of its process */
};
enum marey_frame_kind {
    MAREY_FRAME_PYTHON = 0,
    MAREY_FRAME_NATIVE = 1,
    MAREY_FRAME_KERNEL = 2,
    MAREY_FRAME_MARK = 3, /* no function: "(truncated)", "(no frames)", the name of a task */
};
struct marey_samples_function {
    enum marey_frame_kind kind;
    const char *name;    /* qualified, where Python has that */
    const char *file;    /* of the source; "" unknown */
    const char *module;  /* of a native one its library; else, or when unknown, "" */
    uint32_t first_line; /* 0 unknown */
};
struct marey_samples_location {
    uint32_t function, line; /* line 0: unknown */
};
struct marey_samples_stack {
    uint32_t parent;   /* the caller's; 0: this is the outermost */
    uint32_t location; /* of its innermost frame */
    uint32_t depth;    /* frames, from 1 */
};

/* How many there are, which is the last number. */
MAREY_API uint32_t marey_samples_n_processes(const marey_samples *samples);
MAREY_API uint32_t marey_samples_n_threads(const marey_samples *samples);
MAREY_API uint32_t marey_samples_n_functions(const marey_samples *samples);
MAREY_API uint32_t marey_samples_n_locations(const marey_samples *samples);
MAREY_API uint32_t marey_samples_n_stacks(const marey_samples *samples);
/* The one of a number; one with empty texts and zeros for a number that there is none of. Lent until more come. */
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
    MAREY_SAMPLE_ON_CPU = 1 << 0, /* with neither of these two it is not known */
    MAREY_SAMPLE_OFF_CPU = 1 << 1,
    MAREY_SAMPLE_GIL = 1 << 2,       /* it holds the interpreter lock */
    MAREY_SAMPLE_WANTS_GIL = 1 << 3, /* it waits for it */
    MAREY_SAMPLE_EXCEPTION = 1 << 4, /* it handles an exception */
    MAREY_SAMPLE_GC = 1 << 5,        /* it collects garbage */
    MAREY_SAMPLE_UNSTABLE = 1 << 6,  /* the stack changed while it was copied */
    MAREY_SAMPLE_EXACT = 1 << 7,     /* the thread was stopped while it was read */
    MAREY_SAMPLE_AUDIT =
        1 << 8, /* to be stopped by chance, to judge the others by; without EXACT it did not stop in time */
    MAREY_SAMPLE_TRUNCATED = 1 << 9,       /* outer frames are missing */
    MAREY_SAMPLE_NO_FRAMES = 1 << 10,      /* it runs no Python */
    MAREY_SAMPLE_NATIVE = 1 << 11,         /* native frames are in the stack */
    MAREY_SAMPLE_MERGE_MISMATCH = 1 << 12, /* native frames and Python's do not fit together */
    MAREY_SAMPLE_NATIVE_CUT = 1 << 13,     /* native frames end before the thread's start */
};

/* What was seen of one thread. */
struct marey_samples_seen {
    uint32_t thread, stack; /* stack 0: no frames */
    uint32_t flags;
    uint32_t wait; /* what it waits in: a code of the sampler's; 0: nothing, or not known */
};
/* All threads of a process that were read together. */
struct marey_samples_round {
    uint32_t process;
    uint64_t at_ns;     /* CLOCK_MONOTONIC */
    uint64_t weight_ns; /* the time it stands for; 0: as long as since this process's round before */
    uint64_t n_same; /* how many equal rounds this one stands for, their weights added up; 0: itself alone */
    const struct marey_samples_seen *seen;
    size_t n_seen;
};

/* What sampling was like so far; of one process, or of all of a sampler. */
struct marey_samples_counts {
    uint64_t asked;                  /* rounds that were due */
    uint64_t done;                   /* rounds that were made */
    uint64_t missed;                 /* rounds that were not, as the sampler was late */
    uint64_t late_ns;                /* by how much rounds came after their time, all together */
    uint64_t samples;                /* stacks of threads */
    uint64_t rejected;               /* threads of which nothing could be made */
    uint64_t unstable, exact, audit; /* of the samples */
    uint64_t stops, stop_ns, stop_max_ns; /* of threads of the target, to read them */
    uint64_t sampler_cpu_ns;              /* user and system time of the sampler */
    uint64_t reads, bytes_read;           /* system calls that copied from the target */
    uint64_t gil_switches;                /* hand-offs of the interpreter lock */
    uint64_t skipped;                     /* child processes that run no Python */
    uint64_t slowed; /* rounds that were left out to keep the budget of --max-slowdown */
};
/* Of `process`, or with 0 of the whole. */
MAREY_API struct marey_samples_counts marey_samples_get_counts(const marey_samples *samples,
                                                               uint32_t process);

#ifdef __cplusplus
}
#endif
#endif
