/*
 * marey/iteration.h: iterations, epochs and phases, the program's own measure of progress.
 *
 * There is one count of iterations in a process. Whoever finishes the first iteration (a stopwatch, a training callback,
 * the program itself) drives it from then on; a second driver is told so, once, and counts nothing, so that no
 * iteration is counted twice. With a recording open, each iteration, epoch and phase is written into it and applies to
 * all threads of the process; without one they still count, for instruments that work by iterations.
 *
 * An iteration lasts from marey_iteration_begin(), or where nobody calls that, from the end of the one before or the
 * begin of its epoch or phase, whichever is later, to marey_iteration_finish(). The first `warmup` iterations are marked.
 *
 * Any thread may call these, one at a time makes sense; not from signal handlers. Some 100 ns each. A forked child counts
 * from zero and has no driver.
 */
#ifndef MAREY_ITERATION_H
#define MAREY_ITERATION_H

#include <marey/range.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Who counts. A text that stays valid: "marey_iteration_finish", "Stopwatch.finish_iter". */
typedef const char *marey_driver;

/* An iteration begins here; not needed where iterations follow one another. */
MAREY_API void marey_iteration_begin_by(marey_driver driver);
/*
 * An iteration ends here; `samples` were worked on (0: not known). 1 when it counts, 0 when another driver does the
 * counting. Instruments that work by iterations run inside: a stopwatch may print its report.
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

/* The first `n` iterations of the process are warm-up; also by the option warmup=N. Before or during them. */
MAREY_API void marey_iteration_set_warmup(uint64_t n);

/* Epochs count from 0 and do not nest. A begin while one is open ends it. */
MAREY_API void marey_epoch_begin(void);
/* The same with a number: a training that goes on from a checkpoint counts on from there. Behind it numbers count up. */
MAREY_API void marey_epoch_begin_at(uint64_t number);
MAREY_API void marey_epoch_end(void);

/* A phase: "train", "evaluate". Phases do not nest; 0 ends the one that is open. */
MAREY_API void marey_phase(marey_id name);

/* What the last epoch that ended was made of. Times in its phases and in none add up to its duration. */
enum { MAREY_EPOCH_PHASES = 16 };
struct marey_epoch_times {
    uint64_t number, duration_ns, iterations;
    double samples;   /* of iterations that say it */
    uint64_t none_ns; /* in no phase, or in one that found no room below */
    uint32_t n_phases;
    struct {
        marey_id name;
        uint64_t ns;
    } phases[MAREY_EPOCH_PHASES]; /* in the order in which they first came */
};
/* 1, or 0 and `*out` all zero when no epoch has ended. Also without a recording. */
MAREY_API int marey_epoch_last(struct marey_epoch_times *out);

struct marey_progress_counts {
    uint64_t iterations; /* finished, warm-up among them */
    uint64_t warmup;     /* of these */
    uint64_t epochs;     /* ended; behind marey_epoch_begin_at() the number of the next */
    int in_epoch;        /* one is open */
    marey_driver driver; /* NULL before the first iteration */
};
MAREY_API void marey_iteration_counts(struct marey_progress_counts *out);

/* As if no iteration had been: no driver, no warm-up, all counts zero. marey_reset() does the same. */
MAREY_API void marey_iteration_reset(void);

#ifdef __cplusplus
}
#endif
#endif
