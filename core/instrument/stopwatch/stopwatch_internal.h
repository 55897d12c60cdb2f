/*
 * stopwatch: named measurements, added up where they happen.
 *
 *   id --cells[id]--> cell (one name on one thread)  --slot-->  slot (one name)
 *                     start, sums, sketch                       sums of ended threads, per iteration, series
 *
 * A cell is written by its thread alone, with relaxed stores and no lock. Whoever ends an iteration or wants a table adds
 * up the cells of each slot under the lock; since sums only grow, an iteration's time is what they grew by. Everything
 * that is not the plain case (warm-up, a recording, the GPU, usage, the other clock) is a bit in the cell's `mode`, so
 * that the quick way tests one word.
 *
 *   stopwatch.c            start and stop
 *   stopwatch_slots.c      names
 *   stopwatch_cells.c      names on threads; threads
 *   stopwatch_switch.c     on, off, reset, options, forks
 *   stopwatch_extra.c      what is measured besides time
 *   stopwatch_iteration.c  what an iteration adds: sums, series
 *   stopwatch_outliers.c   iterations far above the rest
 *   stopwatch_misuse.c     what is told and counted when it is used wrongly
 *   stopwatch_once.c       one-time measurements
 *   stopwatch_stats.c      sums to statistics
 *   stopwatch_tables.c     marey_stopwatch_table
 *   stopwatch_rows.c       what stands in the tables
 *   stopwatch_print.c      the report; stopwatch_lines.c its lines
 *   stopwatch_running.c    what runs on this thread
 *   stopwatch_pack.c       results as bytes, for other processes; stopwatch_merge.h has that side
 *
 * `marey__watch.lock` is taken with no other lock held, and nothing is recorded, interned or said under it.
 */
#ifndef MAREY_STOPWATCH_INTERNAL_H
#define MAREY_STOPWATCH_INTERNAL_H

#include <pthread.h>

#include "base/table_internal.h"
#include "record/clock_internal.h"
#include "record/usage_internal.h"
#include "switchboard/iteration_internal.h"
#include <marey/stopwatch.h>

/* Sums of durations in ticks, or in nanoseconds; `squares` are of the distances from `shift`, the first value. */
struct marey__watch_sum {
    struct marey__sketch sketch; /* with count, sum, min and max */
    double shift, squares;       /* relaxed, as `self` */
    uint64_t self;               /* without what was measured inside */
};

enum marey__watch_mode {
    MAREY__WATCH_CLOCK = 1u << 0,     /* ticks are nanoseconds of CLOCK_MONOTONIC */
    MAREY__WATCH_WARMUP = 1u << 1,    /* nothing is added up */
    MAREY__WATCH_STRADDLES = 1u << 2, /* started in warm-up, which ended meanwhile */
    MAREY__WATCH_SYNC = 1u << 3,      /* wait for the GPU first */
    MAREY__WATCH_EVENTS = 1u << 4,    /* the GPU notes the time */
    MAREY__WATCH_USAGE = 1u << 5,     /* more than time is measured */
    MAREY__WATCH_STALE = 1u << 6,     /* from before a reset: the owner starts it anew */
    MAREY__WATCH_TAKEN = 1u << 7,     /* another thread stopped it; still in its thread's chain */
    MAREY__WATCH_OVERLAPS = 1u << 8,  /* it started inside one that stopped before it */
    MAREY__WATCH_ABSENT = 1u << 9,    /* stands for the cells of ids that have none */
    /* What ends with the measurement that runs. */
    MAREY__WATCH_OF_ONE_RUN = MAREY__WATCH_STRADDLES | MAREY__WATCH_OVERLAPS,
};

/* One name on one thread. Written by its thread, but for what is said. */
struct marey__watch_cell {
    uint64_t start; /* ticks; 0: it does not run. Relaxed; a thread that stops it for another one swaps in 0 */
    uint32_t mode; /* bits above. Changed atomically under the lock; the owner loads it relaxed */
    uint64_t inner_from; /* where it begins to be a part of the one around it, when it overlaps */
    uint64_t children;   /* ticks of those inside */
    struct marey__watch_cell *outer;  /* what ran already when it started */
    struct marey__watch_slot *slot;   /* for good */
    struct marey__watch_extra *extra; /* NULL until the GPU or usage is measured */
    uint64_t latest; /* the latest interval in ticks, and one more; 0: none. In the sums, but not yet in the sketch's pages */
    struct marey__watch_sum sum;
    struct marey__watch_thread *thread;
    struct marey__watch_cell *next_of_slot, *next_of_thread; /* guarded by the lock */
    void *block;                                             /* the memory it lies in */
} __attribute__((aligned(64)));

/* What is measured besides time. Its thread's; `usage` is guarded by the lock. */
struct marey__watch_extra {
    uint32_t usage_now; /* what the measurement that runs counts; 0: nothing */
    uint32_t span;      /* on the GPU, of the measurement that runs; 0: none */
    struct marey__usage usage_begin, usage;
};

/* Time per iteration. Guarded by the lock. */
struct marey__watch_periods {
    struct marey__watch_sum sum; /* of iterations in which it ran */
    float *series;     /* of measured iteration i at i % cap, up to n_series; NULL: none */
    uint32_t cap;      /* a power of two, at most MAREY__WATCH_SERIES */
    uint64_t n_series; /* iterations that are in it or have left it; later ones are 0 */
};
enum { MAREY__WATCH_SERIES = 4096 };

enum marey__watch_misuse {
    MAREY__WATCH_STARTED_TWICE,
    MAREY__WATCH_NOT_STARTED,
    MAREY__WATCH_RUNS_ON, /* at the end of an iteration */
    MAREY__WATCH_THREAD_ENDED,
    MAREY__WATCH_ONCE_TWICE,
    MAREY__WATCH_ONCE_NOT_STARTED,
    MAREY__WATCH_N_MISUSES,
};

/* One name. Guarded by the lock; never freed. */
struct marey__watch_slot {
    uint64_t last_total; /* of all threads at the end of the last iteration */
    struct marey__watch_cell *cells;
    struct marey__watch_sum gone; /* of threads that ended */
    struct marey__watch_periods periods;
    struct marey__watch_sum gpu; /* nanoseconds */
    uint32_t n_gone;             /* threads that ended and had measured it */
    uint32_t usage;      /* enum marey_stopwatch_usage. Loaded relaxed by whoever starts it */
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

struct marey__watch_thread {
    int64_t tid;
    char name[16];
    struct marey__watch_cell *cells; /* guarded by the lock */
    struct marey__watch_thread *next, **link;
};

struct marey__watch_slots {
    struct marey__watch_slot **all;
    size_t n, cap;
};

struct marey__watch {
    pthread_mutex_t lock; /* guards everything below */
    struct marey_stopwatch_options options;
    uint32_t mode; /* of new cells */
    bool is_tsc; /* which clock; stands still while it is on. Relaxed, as any thread that starts loads it */
    struct marey__moment begun; /* when it was enabled, on both clocks */
    double tick_ns;             /* what a tick is worth as far as is known; 0: not yet */
    uint64_t tick_baseline_ns;  /* from how long a time that is known */
    uint64_t warmup_first;      /* iterations that were finished when it was enabled */
    uint64_t measured_from;     /* ticks when warm-up ended */
    uint64_t n_measured;
    uint64_t last_number; /* of the latest measured iteration */
    double n_samples;
    struct marey__watch_periods whole; /* the iterations themselves, in nanoseconds */
    struct marey__watch_slots slots;   /* every name ever */
    struct marey__watch_slots listed;  /* those started since the last reset, in that order */
    struct marey__watch_slots once;    /* one-time ones, in order */
    struct marey__watch_slot **by_id;  /* of sites of bare names */
    size_t n_by_id;
    struct marey__watch_thread *threads;
    uint64_t n_lost; /* measurements that found no memory */
};
extern struct marey__watch marey__watch;

/* What a thread finds its cells by. The thread's own. */
struct marey__watch_self {
    struct marey__watch_cell **cells; /* by id; marey__watch_absent where there is none */
    size_t n;
    struct marey__watch_cell *top; /* started last of those that run */
    struct marey__watch_thread *thread;
    bool ran_on; /* something ran at the end of the last iteration that this thread ended */
};
extern __thread struct marey__watch_self marey__watch_self
    __attribute__((tls_model("initial-exec")));

/* One that takes nothing, so that the quick way need not ask whether there is one. */
extern struct marey__watch_cell marey__watch_absent;

static inline void marey__watch_lock(void)
{
    pthread_mutex_lock(&marey__watch.lock);
}
static inline void marey__watch_unlock(void)
{
    pthread_mutex_unlock(&marey__watch.lock);
}
static inline uint64_t marey__watch_ticks(void)
{
    return marey__clock_ticks_of(__atomic_load_n(&marey__watch.is_tsc, __ATOMIC_RELAXED));
}
static inline uint32_t marey__watch_mode_of(const struct marey__watch_cell *cell)
{
    return __atomic_load_n(&cell->mode, __ATOMIC_RELAXED);
}
static inline uint64_t marey__watch_start_of(const struct marey__watch_cell *cell)
{
    return __atomic_load_n(&cell->start, __ATOMIC_RELAXED);
}

/* ---- sums: stopwatch_stats.c ---- */

static inline void marey__watch_store(double *to, double value)
{
    double *const place = to; /* clang-tidy takes the store for a read of the parameter */
    __atomic_store(place, &value, __ATOMIC_RELAXED);
}

/* Add one value; false without memory. One thread adds, others may merge. */
static inline bool marey__watch_sum_add(struct marey__watch_sum *sum, uint64_t value, uint64_t self)
{
    if (MAREY_UNLIKELY(sum->sketch.count == 0))
        marey__watch_store(&sum->shift, (double)value);
    if (MAREY_UNLIKELY(!marey__sketch_add(&sum->sketch, value)))
        return false;
    const double distance = (double)value - sum->shift;
    marey__watch_store(&sum->squares, sum->squares + distance * distance);
    __atomic_store_n(&sum->self, sum->self + self, __ATOMIC_RELAXED);
    return true;
}
/* False without memory; `into` then has part of it. */
bool marey__watch_sum_merge(struct marey__watch_sum *into, const struct marey__watch_sum *from);
/* The same of a cell that its thread may be adding to. */
bool marey__watch_cell_merge(struct marey__watch_sum *into, const struct marey__watch_cell *cell);
void marey__watch_sum_clear(struct marey__watch_sum *sum);

struct marey__watch_stats {
    uint64_t count; /* zeros among them */
    double total, mean, std, min, p50, p90, p99, max, self;
};
/* Of the values in `sum` and `n_zeros` zeros, times `scale`. */
void marey__watch_stats_of(const struct marey__watch_sum *sum, uint64_t n_zeros, double scale,
                           struct marey__watch_stats *out);
/* All threads of a slot in one; free it with marey__watch_sum_clear(). False without memory. The lock is held. */
bool marey__watch_sum_of_threads(const struct marey__watch_slot *slot, struct marey__watch_sum *sum,
                                 uint64_t *n_threads);
/* 0 of what is not above 0. */
double marey__watch_square_root(double x);
/* Nanoseconds of a tick, the better known the longer it has been on. The lock is held. */
double marey__watch_tick_ns(void);

/* ---- slots, cells, threads: stopwatch_slots.c, stopwatch_cells.c ---- */

/* Memory on cache lines of its own, zeroed. It is freed by what comes back through `block`, or never. */
void *marey__watch_calloc(size_t size, void **block);
/* Room for `id` in an array of pointers by id; new places are `empty`. */
bool marey__watch_grow_by_id(void *array, size_t *n, marey_id id, void *empty);
/* The site of the bare name of `id`. */
marey_id marey__watch_bare_site(marey_id id);

/* The slot of the name of `id`, made if need be; NULL without memory. Takes the lock. */
struct marey__watch_slot *marey__watch_slot_get(marey_id id);
/* False without memory. The lock is held. */
bool marey__watch_slots_add(struct marey__watch_slots *slots, struct marey__watch_slot *slot);
/* This thread's cell of `id`; made, listed, and started anew after a reset. NULL without memory, which is counted. */
struct marey__watch_cell *marey__watch_cell_get(marey_id id);
/* This thread's cell of `id` or of its name, as it is; NULL when there is none. */
struct marey__watch_cell *marey__watch_cell_find(marey_id id);
/* Take it out of this thread's chain, wherever it is. */
void marey__watch_unlink(struct marey__watch_cell *cell);
/* Set and clear bits in the modes of all cells. The lock is held. */
void marey__watch_mode_all(uint32_t clear, uint32_t set);
/* What runs counts from the end of warm-up. The lock is held. */
void marey__watch_mark_straddling(void);
/* Ticks of all threads so far. The lock is held. */
uint64_t marey__watch_total(const struct marey__watch_slot *slot);
/* Whether it runs on some thread. The lock is held. */
bool marey__watch_runs(const struct marey__watch_slot *slot);
/* Forget all results. The lock is held. */
void marey__watch_forget(void);
/* In a forked child: other threads' cells go; what this one runs counts from now. The lock is held. */
void marey__watch_cells_after_fork(void);

/* Make it appear in reports. The lock is held. */
void marey__watch_list(struct marey__watch_slot *slot);

/* ---- besides time: stopwatch_extra.c ---- */
/* Around an interval, for a cell in a mode that asks for it. */
void marey__watch_extra_begin(struct marey__watch_cell *cell, uint32_t mode);
void marey__watch_extra_end(struct marey__watch_cell *cell);
void marey__watch_extra_drop(struct marey__watch_cell *cell);
/* Take what the GPU has finished. The lock is not held. */
void marey__watch_gpu_collect(void);
/* Of all threads. The lock is held. */
void marey__watch_usage_of(const struct marey__watch_slot *slot, struct marey__usage *out);

/* ---- iterations: stopwatch_iteration.c ---- */
extern const struct marey__iteration_subscriber marey__watch_subscriber;
/* Whether the iteration that runs is warm-up changed. */
void marey__watch_set_warmup(bool in_warmup);
void marey__watch_periods_add(struct marey__watch_periods *periods, uint64_t index, uint64_t value);
void marey__watch_periods_clear(struct marey__watch_periods *periods);
/* The value of measured iteration `index`, which must still be kept. */
double marey__watch_periods_at(const struct marey__watch_periods *periods, uint64_t index);
/* The first measured iteration that the series still has. The lock is held. */
uint64_t marey__watch_series_first(const struct marey__watch_periods *periods);

/* The number that the first measured iteration had, if they all follow one another. The lock is held. */
static inline uint64_t marey__watch_first_number(void)
{
    const uint64_t n = marey__watch.n_measured, behind_last = marey__watch.last_number + 1;
    return behind_last > n ? behind_last - n : 0;
}

/* The name under which the iterations themselves stand in tables. */
#define MAREY__WATCH_WHOLE "(iteration)"
/* ---- rows of tables: stopwatch_rows.c, stopwatch_outliers.c. The lock is held ---- */
typedef marey_status marey__watch_put(marey_table *table, double tick_ns);
marey__watch_put marey__watch_put_intervals, marey__watch_put_iterations, marey__watch_put_iteration,
    marey__watch_put_threads, marey__watch_put_gpu, marey__watch_put_usage, marey__watch_put_once,
    marey__watch_put_series, marey__watch_put_outliers, marey__watch_put_misuse;

/* The report that is due, to stdout or whoever takes it. */
void marey__watch_print_by_itself(void);

/* ---- misuse: stopwatch_misuse.c ---- */
/* Count it, say it once, MAREY_ESTATE with a sentence. Takes the lock. */
marey_status marey__watch_misused(marey_id id, enum marey__watch_misuse what);
/* In a few words, for the table. */
const char *marey__watch_misuse_text(enum marey__watch_misuse what);
marey_status marey__watch_no_memory(marey_id id);

#endif
