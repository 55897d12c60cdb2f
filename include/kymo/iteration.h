/*
 * kymo/iteration.h: iterations, epochs and phases, the program's own measure of progress.
 *
 * There is one count of iterations in a process. Whoever finishes the first iteration (a stopwatch, a training callback,
 * the program itself) drives it from then on; a second driver is told so, once, and counts nothing, so that no
 * iteration is counted twice. With a recording open, each iteration, epoch and phase is written into it and applies to
 * all threads of the process; without one they still count, for instruments that work by iterations.
 *
 * An iteration lasts from kymo_iteration_begin(), or where nobody calls that, from the end of the one before or the
 * begin of its epoch or phase, whichever is later, to kymo_iteration_finish(). The first `warmup` iterations are marked.
 *
 * Any thread may call these, one at a time makes sense; not from signal handlers. Some 100 ns each. A forked child counts
 * from zero and has no driver.
 */
#ifndef KYMO_ITERATION_H
#define KYMO_ITERATION_H

#include <kymo/range.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Who counts. A text that stays valid: "kymo_iteration_finish", "Stopwatch.finish_iter". */
typedef const char *kymo_driver;

/* An iteration begins here; not needed where iterations follow one another. */
KYMO_API void kymo_iteration_begin_by(kymo_driver driver);
/*
 * An iteration ends here; `samples` were worked on (0: not known). 1 when it counts, 0 when another driver does the
 * counting. Instruments that work by iterations run inside: a stopwatch may print its report.
 */
KYMO_API int kymo_iteration_finish_by(kymo_driver driver, double samples);

static inline void kymo_iteration_begin(void)
{
    kymo_iteration_begin_by("kymo_iteration_finish");
}
static inline int kymo_iteration_finish(void)
{
    return kymo_iteration_finish_by("kymo_iteration_finish", 0);
}

/* The first `n` iterations of the process are warm-up; also by the option warmup=N. Before or during them. */
KYMO_API void kymo_iteration_set_warmup(uint64_t n);

/* Epochs count from 0 and do not nest. A begin while one is open ends it. */
KYMO_API void kymo_epoch_begin(void);
/* The same with a number: a training that goes on from a checkpoint counts on from there. Behind it numbers count up. */
KYMO_API void kymo_epoch_begin_at(uint64_t number);
KYMO_API void kymo_epoch_end(void);

/* A phase: "train", "evaluate". Phases do not nest; 0 ends the one that is open. */
KYMO_API void kymo_phase(kymo_id name);

/* What the last epoch that ended was made of. Times in its phases and in none add up to its duration. */
enum { KYMO_EPOCH_PHASES = 16 };
struct kymo_epoch_times {
    uint64_t number, duration_ns, iterations;
    double samples;   /* of iterations that say it */
    uint64_t none_ns; /* in no phase, or in one that found no room below */
    uint32_t n_phases;
    struct {
        kymo_id name;
        uint64_t ns;
    } phases[KYMO_EPOCH_PHASES]; /* in the order in which they first came */
};
/* 1, or 0 and `*out` all zero when no epoch has ended. Also without a recording. */
KYMO_API int kymo_epoch_last(struct kymo_epoch_times *out);

struct kymo_progress_counts {
    uint64_t iterations; /* finished, warm-up among them */
    uint64_t warmup;     /* of these */
    uint64_t epochs;     /* ended; behind kymo_epoch_begin_at() the number of the next */
    int in_epoch;        /* one is open */
    kymo_driver driver;  /* NULL before the first iteration */
};
KYMO_API void kymo_iteration_counts(struct kymo_progress_counts *out);

/* As if no iteration had been: no driver, no warm-up, all counts zero. kymo_reset() does the same. */
KYMO_API void kymo_iteration_reset(void);

#ifdef __cplusplus
}
#endif
#endif
