/*
 * stopwatch: named measurements over iterations, aggregated in the process.
 *
 *   id --cells[id]--> cell (one name on one thread)  --slot-->  slot (one name)
 *                     start, sums, sketch                       sums of ended threads, per iteration, series
 *
 * A cell is written by its thread with relaxed stores and no lock. Ending an iteration, or a table, adds up the cells of
 * each slot under the lock; sums only grow, so an iteration's time is their growth. Everything beyond the plain case
 * (warm-up, a recording, the GPU, CPU usage, the other clock) is a bit in the cell's `mode`, so the fast path tests one
 * word.
 *
 *   stopwatch.c, stopwatch_once.c                 start and stop; one-time measurements
 *   stopwatch_slots.c, stopwatch_cells.c          names; names on threads
 *   stopwatch_switch.c                            on, off, reset, options, forks
 *   stopwatch_extra.c, stopwatch_iteration.c      usage and GPU time; sums per iteration
 *   stopwatch_misuse.c                            wrong use, counted
 *   stopwatch_stats.c, stopwatch_tables.c, stopwatch_print.c   results
 *   stopwatch_merge.c                             results as bytes, merged over processes
 *
 * Input: start and stop. Output: tables, the printed report, range words while a recording is open. The lock is
 * taken with no other lock held, and nothing is recorded, interned or printed under it.
 */
#ifndef MAREY_INSTRUMENT_STOPWATCH_INTERNAL_H
#define MAREY_INSTRUMENT_STOPWATCH_INTERNAL_H

#include <pthread.h>

#include "base/internal.h"
#include "record/internal.h"
#include "switchboard/internal.h"
#include <marey/stopwatch.h>

/* Sums of durations in ticks, or in nanoseconds; `squares` are of the distances from `shift`, the first value. */
struct marey__stopwatch_sum {
    struct marey__sketch sketch; /* with count, sum, min and max */
    double shift, squares;       /* relaxed, as `self` */
    uint64_t self;               /* without what was measured inside */
};

enum marey__stopwatch_mode {
    MAREY__WATCH_CLOCK = 1u << 0,     /* ticks are nanoseconds of CLOCK_MONOTONIC */
    MAREY__WATCH_WARMUP = 1u << 1,    /* nothing is added up */
    MAREY__WATCH_STRADDLES = 1u << 2, /* started in warm-up, which ended meanwhile */
    MAREY__WATCH_SYNC = 1u << 3,      /* wait for the GPU first */
    MAREY__WATCH_EVENTS = 1u << 4,    /* the GPU notes the time */
    MAREY__WATCH_USAGE = 1u << 5,     /* more than time is measured */
    MAREY__WATCH_STALE = 1u << 6,     /* from before a reset: the owner starts it anew */
    MAREY__WATCH_TAKEN = 1u << 7,     /* another thread stopped it; still in its thread's chain */
    MAREY__WATCH_OVERLAPS = 1u << 8,  /* it started inside one that stopped before it */
    MAREY__WATCH_ABSENT = 1u << 9,    /* the cell of ids that have none */
    /* What ends with the measurement that runs. */
    MAREY__WATCH_OF_ONE_RUN = MAREY__WATCH_STRADDLES | MAREY__WATCH_OVERLAPS,
};

/* One name on one thread. Written by its thread, but for what is said. */
struct marey__stopwatch_cell {
    uint64_t start; /* ticks; 0: it does not run. Relaxed; a thread that stops it for another one swaps in 0 */
    uint32_t mode; /* bits above. Changed atomically under the lock; the owner loads it relaxed */
    uint64_t inner_from; /* where it begins to be a part of the one around it, when it overlaps */
    uint64_t children;   /* ticks of those inside */
    struct marey__stopwatch_cell *outer;  /* what ran already when it started */
    struct marey__stopwatch_slot *slot;   /* for good */
    struct marey__stopwatch_extra *extra; /* NULL until the GPU or usage is measured */
    uint64_t latest; /* the latest interval in ticks, and one more; 0: none. In the sums, but not yet in the sketch's pages */
    struct marey__stopwatch_sum sum;
    struct marey__stopwatch_thread *thread;
    struct marey__stopwatch_cell *next_of_slot, *next_of_thread; /* guarded by the lock */
    void *block;                                                 /* the memory it lies in */
} __attribute__((aligned(64)));

/* What is measured besides time. Its thread's; `usage` is guarded by the lock. */
struct marey__stopwatch_extra {
    uint32_t usage_now; /* what the measurement that runs counts; 0: nothing */
    uint32_t span;      /* on the GPU, of the measurement that runs; 0: none */
    struct marey__usage usage_begin, usage;
};

/* Time per iteration. Guarded by the lock. */
struct marey__stopwatch_periods {
    struct marey__stopwatch_sum sum; /* of iterations in which it ran */
    float *series;     /* of measured iteration i at i % cap, up to n_series; NULL: none */
    uint32_t cap;      /* a power of two, at most MAREY__WATCH_SERIES */
    uint64_t n_series; /* iterations that are in it or have left it; later ones are 0 */
};
enum { MAREY__WATCH_SERIES = 4096 };

enum marey__stopwatch_misuse {
    MAREY__WATCH_STARTED_TWICE,
    MAREY__WATCH_NOT_STARTED,
    MAREY__WATCH_RUNS_ON, /* at the end of an iteration */
    MAREY__WATCH_THREAD_ENDED,
    MAREY__WATCH_ONCE_TWICE,
    MAREY__WATCH_ONCE_NOT_STARTED,
    MAREY__WATCH_N_MISUSES,
};

/* One name. Guarded by the lock; never freed. */
struct marey__stopwatch_slot {
    uint64_t last_total; /* of all threads at the end of the last iteration */
    struct marey__stopwatch_cell *cells;
    struct marey__stopwatch_sum gone; /* of threads that ended */
    struct marey__stopwatch_periods periods;
    struct marey__stopwatch_sum gpu; /* nanoseconds */
    uint32_t n_gone;                 /* threads that ended and had measured it */
    uint32_t usage;      /* enum marey_stopwatch_usage. Loaded relaxed by a thread that starts it */
    uint32_t usage_ever; /* what was asked for since it was enabled */
    struct marey__usage gone_usage; /* of threads that ended */
    uint64_t n_gpu;                 /* spans on the GPU that were ended */
    bool is_listed;                 /* it was started since the last reset */
    marey_id id;                    /* the site of the bare name */
    uint64_t misuses[MAREY__WATCH_N_MISUSES];
    uint64_t once_start, once_ticks; /* of the one-time measurement of this name */
    bool is_once, once_runs;         /* it was started; it runs */
    uint64_t once_async;             /* its range in the recording */
} __attribute__((aligned(64)));

struct marey__stopwatch_thread {
    int64_t tid;
    char name[16];
    struct marey__stopwatch_cell *cells; /* guarded by the lock */
    struct marey__stopwatch_thread *next, **link;
};

struct marey__stopwatch_slots {
    struct marey__stopwatch_slot **all;
    size_t n, cap;
};

struct marey__stopwatch_state {
    pthread_mutex_t lock; /* guards everything below */
    struct marey_stopwatch_options options;
    uint32_t mode; /* of new cells */
    bool is_tsc; /* which clock; constant while it is on. Relaxed, as any thread that starts loads it */
    struct marey__moment begun; /* when it was enabled, on both clocks */
    double tick_ns;             /* what a tick is worth as far as is known; 0: not yet */
    uint64_t tick_baseline_ns;  /* from how long a time that is known */
    uint64_t warmup_first;      /* iterations that were finished when it was enabled */
    uint64_t measured_from;     /* ticks when warm-up ended */
    uint64_t n_measured;
    uint64_t last_number; /* of the latest measured iteration */
    double n_samples;
    struct marey__stopwatch_periods whole; /* the iterations themselves, in nanoseconds */
    struct marey__stopwatch_slots slots;   /* every name ever */
    struct marey__stopwatch_slots listed;  /* those started since the last reset, in that order */
    struct marey__stopwatch_slots once;    /* one-time ones, in order */
    struct marey__stopwatch_slot **by_id;  /* of sites of bare names */
    size_t n_by_id;
    struct marey__stopwatch_thread *threads;
    uint64_t n_lost; /* measurements that found no memory */
};
extern struct marey__stopwatch_state marey__stopwatch_state;

/* What a thread finds its cells by. The thread's own. */
struct marey__stopwatch_self {
    struct marey__stopwatch_cell **cells; /* by id; marey__stopwatch_absent where there is none */
    size_t n;
    struct marey__stopwatch_cell *top; /* started last of those that run */
    struct marey__stopwatch_thread *thread;
    bool ran_on; /* something ran at the end of the last iteration that this thread ended */
};
extern __thread struct marey__stopwatch_self marey__stopwatch_self
    __attribute__((tls_model("initial-exec")));

/* One that takes nothing, so that the quick way need not ask whether there is one. */
extern struct marey__stopwatch_cell marey__stopwatch_absent;

static inline void marey__stopwatch_lock(void)
{
    pthread_mutex_lock(&marey__stopwatch_state.lock);
}
static inline void marey__stopwatch_unlock(void)
{
    pthread_mutex_unlock(&marey__stopwatch_state.lock);
}
/* Up to the end of the block. */
#define MAREY__WATCH_HOLD() MAREY__HOLD(&marey__stopwatch_state.lock)
static inline uint64_t marey__stopwatch_ticks(void)
{
    return marey__clock_ticks_of(__atomic_load_n(&marey__stopwatch_state.is_tsc, __ATOMIC_RELAXED));
}
static inline uint32_t marey__stopwatch_mode_of(const struct marey__stopwatch_cell *cell)
{
    return __atomic_load_n(&cell->mode, __ATOMIC_RELAXED);
}
static inline uint64_t marey__stopwatch_start_of(const struct marey__stopwatch_cell *cell)
{
    return __atomic_load_n(&cell->start, __ATOMIC_RELAXED);
}

/* ---- sums: stopwatch_stats.c ---- */

static inline void marey__stopwatch_store(double *to, double value)
{
    double *const place = to; /* clang-tidy takes the store for a read of the parameter */
    __atomic_store(place, &value, __ATOMIC_RELAXED);
}

/* Add one value; false without memory. One thread adds, others may merge. */
static inline bool marey__stopwatch_sum_add(struct marey__stopwatch_sum *sum, uint64_t value,
                                            uint64_t self)
{
    if (MAREY_UNLIKELY(sum->sketch.count == 0))
        marey__stopwatch_store(&sum->shift, (double)value);
    if (MAREY_UNLIKELY(!marey__sketch_add(&sum->sketch, value)))
        return false;
    const double distance = (double)value - sum->shift;
    marey__stopwatch_store(&sum->squares, sum->squares + distance * distance);
    __atomic_store_n(&sum->self, sum->self + self, __ATOMIC_RELAXED);
    return true;
}
/* False without memory; `into` then has part of it. */
bool marey__stopwatch_sum_merge(struct marey__stopwatch_sum *into,
                                const struct marey__stopwatch_sum *from);
/* The same of a cell that its thread may be adding to. */
bool marey__stopwatch_cell_merge(struct marey__stopwatch_sum *into,
                                 const struct marey__stopwatch_cell *cell);
void marey__stopwatch_sum_clear(struct marey__stopwatch_sum *sum);

struct marey__stopwatch_stats {
    uint64_t count; /* zeros among them */
    double total, mean, std, min, p50, p90, p99, max, self;
};
/* Of the values in `sum` and `n_zeros` zeros, times `scale`. */
void marey__stopwatch_stats_of(const struct marey__stopwatch_sum *sum, uint64_t n_zeros,
                               double scale, struct marey__stopwatch_stats *out);
/* All threads of a slot in one; free it with marey__stopwatch_sum_clear(). False without memory. The lock is held. */
bool marey__stopwatch_sum_of_threads(const struct marey__stopwatch_slot *slot,
                                     struct marey__stopwatch_sum *sum, uint64_t *n_threads);
/* 0 of what is not above 0. */
double marey__stopwatch_square_root(double x);
/* Measure `tick_ns`, the better the longer it has been on. The lock is held. */
void marey__stopwatch_know_tick(void);

/* ---- slots, cells, threads: stopwatch_slots.c, stopwatch_cells.c ---- */

/* Memory on cache lines of its own, zeroed. It is freed by what comes back through `block`, or never. */
void *marey__stopwatch_calloc(size_t size, void **block);
/* Room for `id` in an array of pointers by id; new places are `empty`. */
bool marey__stopwatch_grow_by_id(void *array, size_t *n, marey_id id, void *empty);
/* The site of the bare name of `id`. */
marey_id marey__stopwatch_bare_site(marey_id id);

/* The slot of the name of `id`, made if need be; NULL without memory. Takes the lock. */
struct marey__stopwatch_slot *marey__stopwatch_slot_get(marey_id id);
/* False without memory. The lock is held. */
bool marey__stopwatch_slots_add(struct marey__stopwatch_slots *slots,
                                struct marey__stopwatch_slot *slot);
/* This thread's cell of `id`; made, listed, and started anew after a reset. NULL without memory, which is counted. */
struct marey__stopwatch_cell *marey__stopwatch_cell_get(marey_id id);
/* This thread's cell of `id` or of its name, as it is; NULL when there is none. */
struct marey__stopwatch_cell *marey__stopwatch_cell_find(marey_id id);
/* Take it out of this thread's chain, wherever it is. */
void marey__stopwatch_unlink(struct marey__stopwatch_cell *cell);
/* Set and clear bits in the modes of all cells. The lock is held. */
void marey__stopwatch_mode_all(uint32_t clear, uint32_t set);
/* What runs counts from the end of warm-up. The lock is held. */
void marey__stopwatch_mark_straddling(void);
/* Ticks of all threads so far. The lock is held. */
uint64_t marey__stopwatch_total(const struct marey__stopwatch_slot *slot);
/* Whether it runs on some thread. The lock is held. */
bool marey__stopwatch_runs(const struct marey__stopwatch_slot *slot);
/* Forget all results. The lock is held. */
void marey__stopwatch_forget(void);
/* In a forked child: other threads' cells go; what this one runs counts from now. The lock is held. */
void marey__stopwatch_cells_after_fork(void);

/* Make it appear in reports. The lock is held. */
void marey__stopwatch_list(struct marey__stopwatch_slot *slot);

/* ---- besides time: stopwatch_extra.c ---- */
/* Around an interval, for a cell in a mode that asks for it. */
void marey__stopwatch_extra_begin(struct marey__stopwatch_cell *cell, uint32_t mode);
void marey__stopwatch_extra_end(struct marey__stopwatch_cell *cell);
void marey__stopwatch_extra_drop(struct marey__stopwatch_cell *cell);
/* Take what the GPU has finished. The lock is not held. */
void marey__stopwatch_gpu_collect(void);
/* Of all threads. The lock is held. */
void marey__stopwatch_usage_of(const struct marey__stopwatch_slot *slot, struct marey__usage *out);

/* ---- iterations: stopwatch_iteration.c ---- */
extern const struct marey__iteration_subscriber marey__stopwatch_subscriber;
/* Whether the iteration that runs is warm-up changed. */
void marey__stopwatch_set_warmup(bool in_warmup);
void marey__stopwatch_periods_add(struct marey__stopwatch_periods *periods, uint64_t index,
                                  uint64_t value);
void marey__stopwatch_periods_clear(struct marey__stopwatch_periods *periods);
/* The value of measured iteration `index`, which must still be kept. */
double marey__stopwatch_periods_at(const struct marey__stopwatch_periods *periods, uint64_t index);
/* The first measured iteration that the series still has. The lock is held. */
uint64_t marey__stopwatch_series_first(const struct marey__stopwatch_periods *periods);

/* The name of the iterations themselves in tables. */
#define MAREY__WATCH_WHOLE "(iteration)"

/* Print the report that is due, to stdout or the printer that was set. */
void marey__stopwatch_print_by_itself(void);

/* ---- misuse: stopwatch_misuse.c ---- */
/* Count it, say it once, MAREY_ESTATE with a sentence. Takes the lock. */
marey_status marey__stopwatch_misused(marey_id id, enum marey__stopwatch_misuse what);
/* In a few words, for the table. */
const char *marey__stopwatch_misuse_text(enum marey__stopwatch_misuse what);
marey_status marey__stopwatch_no_memory(marey_id id);

/* ==== stopwatch_merge ==== */

/*
 * Results that go from process to process; docs/formats/stopwatch.md has the bytes.
 *
 * Sketches are of ticks, which are not as long on every machine. What is packed is nanoseconds: each bucket's middle, put
 * into buckets that are eight times finer, so that a quantile is within 0.9 % after that.
 */

/* A bucket: the value's single-precision bits without the lowest 14, so that keys are in the order of values. */
struct marey__point {
    uint32_t key;
    uint64_t count;
} __attribute__((packed)); /* as it is written */
enum { MAREY__POINT_SHIFT = 14, MAREY__POINT_MAX_KEY = 0x7f7fffff >> MAREY__POINT_SHIFT };

/* How some durations are spread. Nanoseconds. A zeroed one is empty. */
struct marey__spread {
    uint64_t count;
    double total, m2; /* m2: the sum of the squared distances from the mean */
    double min, max;
    struct marey__point *points; /* by key, each once */
    size_t n, cap;
};

/* The bucket of a duration, 0 or more, and its middle. */
uint32_t marey__point_key(double ns);
double marey__point_value(uint32_t key);

/* Of the values in `sum` and `n_zeros` zeros, times `scale`. False without memory. */
bool marey__spread_of(const struct marey__stopwatch_sum *sum, uint64_t n_zeros, double scale,
                      struct marey__spread *out);
void marey__spread_fini(struct marey__spread *spread);
/* Add `from`; false without memory or when a count would overflow, with `into` as it was. */
bool marey__spread_merge(struct marey__spread *into, const struct marey__spread *from);
double marey__spread_mean(const struct marey__spread *spread);
double marey__spread_std(const struct marey__spread *spread);
double marey__spread_quantile(const struct marey__spread *spread, double q);

#endif
