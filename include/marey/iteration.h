/*
 * marey/iteration.h: iterations (training steps), epochs and phases of the program.
 *
 * A process has one iteration count. The driver that finishes the first iteration (a stopwatch, a training callback, the
 * program) keeps counting from then on. A second driver gets one warning and does not count, so no iteration is counted
 * twice. With an open recording, each iteration, epoch and phase is recorded and applies to all threads of the process.
 * Without one they are still counted, for instruments that work by iterations.
 *
 * An iteration lasts from marey_iteration_begin() to marey_iteration_finish(). Without a begin it starts at the end of the
 * previous iteration or the start of its epoch or phase, whichever is later. The first `warmup` iterations are marked.
 *
 * Any thread; not from signal handlers. About 100 ns per call. A forked child counts from zero and has no driver.
 */
#ifndef MAREY_ITERATION_H
#define MAREY_ITERATION_H

#include <marey/range.h>

MAREY_BEGIN_C

/* Name of the driver. A string that stays valid: "marey_iteration_finish", "Stopwatch.finish_iter". */
typedef const char *marey_driver;

/* Start an iteration; not needed if iterations follow one another directly. */
MAREY_API void marey_iteration_begin_by(marey_driver driver);
/*
 * Finish an iteration of `samples` training samples (0: unknown). Returns 1 if it counts, 0 if another driver counts.
 * Instruments that work by iterations run inside this call: a stopwatch may print its report.
 */
MAREY_API int marey_iteration_finish_by(marey_driver driver, double samples);

static inline void marey_iteration_begin(void)
{
    marey_iteration_begin_by("marey_iteration_finish");
}
static inline int marey_iteration_finish(void)
{
    return marey_iteration_finish_by("marey_iteration_finish", 0);
}

/* The first `n` iterations of the process are warm-up, as with the option warmup=N. Call before or during them. */
MAREY_API void marey_iteration_set_warmup(uint64_t n);

/* Epochs count from 0 and do not nest. A begin ends an open epoch. */
MAREY_API void marey_epoch_begin(void);
/* The same with a number, for training that resumes from a checkpoint. Later epochs count up from it. */
MAREY_API void marey_epoch_begin_at(uint64_t number);
MAREY_API void marey_epoch_end(void);

/* A phase: "train", "evaluate". Phases do not nest; 0 ends the one that is open. */
MAREY_API void marey_phase(marey_id name);

/* Times of the last finished epoch. phases[].ns and none_ns add up to duration_ns. */
enum { MAREY_EPOCH_PHASES = 16 };
struct marey_epoch_times {
    uint64_t number, duration_ns, iterations;
    double samples;   /* of iterations with known samples */
    uint64_t none_ns; /* outside phases, or in phases beyond MAREY_EPOCH_PHASES */
    uint32_t n_phases;
    struct {
        marey_id name;
        uint64_t ns;
    } phases[MAREY_EPOCH_PHASES]; /* in the order of first occurrence */
};
/* Returns 1; or 0 with `*out` zeroed if no epoch has ended. Also works without a recording. */
MAREY_API int marey_epoch_last(struct marey_epoch_times *out);

/*
 * Hints from which training steps are derived in a program that counts no iterations; `marey run` adds them to
 * unmodified training scripts. An optimizer update ends a step; with several optimizers, the period of their sequence
 * does. Without updates, a step lasts from the request for a batch to the next request. Once iterations are counted,
 * later hints are ignored. About 200 ns, more while the sequence of optimizers is new.
 */
enum marey_step_hint {
    MAREY_STEP_UPDATE =
        1, /* the optimizer `who` has updated parameters, or was asked to and skipped it */
    MAREY_STEP_FETCH =
        2, /* the program requests a batch from the loader with the number `who`; 0: unknown */
    MAREY_STEP_BATCH = 3, /* and receives it, with `samples` training samples; 0: unknown */
};
MAREY_API void marey_step_hint(enum marey_step_hint what, uint64_t who, double samples);
/* Whether the option auto=1 requests such hints, and phases. */
MAREY_API int marey_auto_is_on(void);

struct marey_progress_counts {
    uint64_t iterations; /* finished, including warm-up */
    uint64_t warmup;     /* finished warm-up iterations */
    uint64_t epochs;     /* ended; after marey_epoch_begin_at() the number of the next */
    int in_epoch;        /* an epoch is open */
    marey_driver driver; /* NULL before the first iteration */
};
MAREY_API void marey_iteration_counts(struct marey_progress_counts *out);

/* Reset driver, warm-up and all counts. marey_reset() does the same. */
MAREY_API void marey_iteration_reset(void);

MAREY_END_C
#endif
