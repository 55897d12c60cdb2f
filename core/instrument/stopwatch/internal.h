/*
 * stopwatch: named measurements over iterations, aggregated in the process.
 *
 *   id --cells[id]--> cell (one name on one thread)  --slot-->  slot (one name)
 *                     start, sums, sketch                       sums of ended threads, per iteration, series
 *
 * A cell is written by its thread with relaxed stores and no lock. Ending an iteration, or a table, adds up the cells
 * of each slot under the lock; sums only grow, so an iteration's time is their growth. Everything beyond the plain case
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
 * Input: start and stop. Output: tables, the printed report, range words while a recording is open. Does not know log
 * files or analyses: its results exist without a recording. The lock is taken without other locks, and nothing is
 * recorded, interned or printed under it.
 */
#ifndef MAREY_INSTRUMENT_STOPWATCH_INTERNAL_H
#define MAREY_INSTRUMENT_STOPWATCH_INTERNAL_H

#include <pthread.h>

#include "base/internal.h"
#include "record/internal.h"
#include "switchboard/internal.h"
#include <marey/stopwatch.h>

/* Sums of durations in ticks, or in nanoseconds; `squares` are those of the distances from `shift`, the first value. */
struct marey__stopwatch_sum {
    struct marey__sketch sketch; /* with count, sum, min and max */
    double shift, squares;       /* relaxed, like `self` */
    uint64_t self;               /* without nested measurements */
};

enum marey__stopwatch_mode {
    MAREY__STOPWATCH_CLOCK = 1u << 0,     /* ticks are nanoseconds of CLOCK_MONOTONIC */
    MAREY__STOPWATCH_WARMUP = 1u << 1,    /* nothing is added to sums */
    MAREY__STOPWATCH_STRADDLES = 1u << 2, /* started in a warm-up that ended meanwhile */
    MAREY__STOPWATCH_SYNC = 1u << 3,      /* wait for the GPU first */
    MAREY__STOPWATCH_EVENTS = 1u << 4,    /* the GPU records the time */
    MAREY__STOPWATCH_USAGE = 1u << 5,     /* usage is measured too */
    MAREY__STOPWATCH_STALE = 1u << 6,     /* from before a reset: the owner resets it */
    MAREY__STOPWATCH_TAKEN = 1u << 7, /* another thread stopped it; still in its thread's chain */
    MAREY__STOPWATCH_OVERLAPS = 1u << 8, /* it started inside one that stopped before it */
    MAREY__STOPWATCH_ABSENT = 1u << 9,   /* the cell for ids without one */
    /* Bits that end with the running measurement. */
    MAREY__STOPWATCH_OF_ONE_RUN = MAREY__STOPWATCH_STRADDLES | MAREY__STOPWATCH_OVERLAPS,
};

/* One name on one thread. Written by its thread unless noted. */
struct marey__stopwatch_cell {
    uint64_t start; /* ticks; 0: not running. Relaxed; another thread that stops it swaps in 0 */
    uint32_t mode;  /* bits above. Changed atomically under the lock; the owner loads it relaxed */
    uint64_t inner_from; /* if it overlaps: from here on it counts as nested in the one around it */
    uint64_t children;   /* ticks of nested measurements */
    struct marey__stopwatch_cell *outer;  /* what was running when it started */
    struct marey__stopwatch_slot *slot;   /* constant */
    struct marey__stopwatch_extra *extra; /* NULL until the GPU or usage is measured */
    uint64_t latest; /* the last interval in ticks, plus one; 0: none. In the sums, but not yet in the sketch's pages */
    struct marey__stopwatch_sum sum;
    struct marey__stopwatch_thread *thread;
    struct marey__stopwatch_cell *next_of_slot, *next_of_thread; /* guarded by the lock */
    void *block;                                                 /* its allocation */
} __attribute__((aligned(64)));

/* Measurements besides time. Used by its thread; `usage` is guarded by the lock. */
struct marey__stopwatch_extra {
    uint32_t usage_now; /* the counters of the running measurement; 0: none */
    uint32_t span;      /* the GPU span of the running measurement; 0: none */
    struct marey__usage usage_begin, usage;
};

/* Time per iteration. Guarded by the lock. */
struct marey__stopwatch_periods {
    struct marey__stopwatch_sum sum; /* over iterations in which it ran */
    float *series;     /* measured iteration i at i % cap, up to n_series; NULL: none */
    uint32_t cap;      /* a power of two, at most MAREY__STOPWATCH_SERIES */
    uint64_t n_series; /* iterations stored so far, dropped ones included; later ones are 0 */
};
enum { MAREY__STOPWATCH_SERIES = 4096 };

enum marey__stopwatch_misuse {
    MAREY__STOPWATCH_STARTED_TWICE,
    MAREY__STOPWATCH_NOT_STARTED,
    MAREY__STOPWATCH_RUNS_ON, /* running at the end of an iteration */
    MAREY__STOPWATCH_THREAD_ENDED,
    MAREY__STOPWATCH_ONCE_TWICE,
    MAREY__STOPWATCH_ONCE_NOT_STARTED,
    MAREY__STOPWATCH_N_MISUSES,
};

/* One name. Guarded by the lock; never freed. */
struct marey__stopwatch_slot {
    uint64_t last_total; /* of all threads at the end of the last iteration */
    struct marey__stopwatch_cell *cells;
    struct marey__stopwatch_sum gone; /* of ended threads */
    struct marey__stopwatch_periods periods;
    struct marey__stopwatch_sum gpu; /* nanoseconds */
    uint32_t n_gone;                 /* ended threads that measured it */
    uint32_t usage;      /* enum marey_stopwatch_usage. Loaded relaxed by a thread that starts it */
    uint32_t usage_ever; /* requested since it was enabled */
    struct marey__usage gone_usage; /* of ended threads */
    uint64_t n_gpu;                 /* ended GPU spans */
    bool is_listed;                 /* started since the last reset */
    marey_id id;                    /* the site of the name */
    uint64_t misuses[MAREY__STOPWATCH_N_MISUSES];
    uint64_t once_start, once_ticks; /* of this name's one-time measurement */
    bool is_once, once_runs;         /* was started; is running */
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
    pthread_mutex_t lock; /* guards the fields below */
    struct marey_stopwatch_options options;
    uint32_t mode; /* of new cells */
    bool is_tsc; /* which clock; constant while it is on. Relaxed, as any starting thread loads it */
    struct marey__moment begun; /* when it was enabled, on both clocks */
    double tick_ns;             /* nanoseconds per tick, best estimate; 0: not yet known */
    uint64_t tick_baseline_ns;  /* the period over which that was measured */
    uint64_t warmup_first;      /* iterations finished when it was enabled */
    uint64_t measured_from;     /* ticks at the end of warm-up */
    uint64_t n_measured;
    uint64_t last_number; /* number of the last measured iteration */
    double n_samples;
    struct marey__stopwatch_periods whole; /* the iterations themselves, in nanoseconds */
    struct marey__stopwatch_slots slots;   /* all names */
    struct marey__stopwatch_slots listed;  /* started since the last reset, in that order */
    struct marey__stopwatch_slots once;    /* one-time ones, in order */
    struct marey__stopwatch_slot **by_id;  /* by id of a site with only a name */
    size_t n_by_id;
    struct marey__stopwatch_thread *threads;
    uint64_t n_lost; /* measurements lost because of out of memory */
};
extern struct marey__stopwatch_state marey__stopwatch_state;

/* A thread's cells. Used only by the thread. */
struct marey__stopwatch_self {
    struct marey__stopwatch_cell **cells; /* by id; marey__stopwatch_absent if there is none */
    size_t n;
    struct marey__stopwatch_cell *top; /* the running one that started last */
    struct marey__stopwatch_thread *thread;
    bool ran_on; /* something ran at the end of the last iteration that this thread ended */
};
extern __thread struct marey__stopwatch_self marey__stopwatch_self
    __attribute__((tls_model("initial-exec")));

/* A dummy cell, so that the fast path need not check for NULL. */
extern struct marey__stopwatch_cell marey__stopwatch_absent;

static inline void marey__stopwatch_lock(void)
{
    pthread_mutex_lock(&marey__stopwatch_state.lock);
}
static inline void marey__stopwatch_unlock(void)
{
    pthread_mutex_unlock(&marey__stopwatch_state.lock);
}
/* Holds the lock until the end of the block. */
#define MAREY__STOPWATCH_HOLD() MAREY__HOLD(&marey__stopwatch_state.lock)
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

/* Adds one value; false on out of memory. One thread adds, others may merge. */
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
/* False on out of memory; `into` then has part of it. */
bool marey__stopwatch_sum_merge(struct marey__stopwatch_sum *into,
                                const struct marey__stopwatch_sum *from);
/* The same for a cell that its thread may be adding to. */
bool marey__stopwatch_cell_merge(struct marey__stopwatch_sum *into,
                                 const struct marey__stopwatch_cell *cell);
void marey__stopwatch_sum_clear(struct marey__stopwatch_sum *sum);

struct marey__stopwatch_stats {
    uint64_t count; /* including zeros */
    double total, mean, std, min, p50, p90, p99, max, self;
};
/* Statistics of the values in `sum` and `n_zeros` zeros, times `scale`. */
void marey__stopwatch_stats_of(const struct marey__stopwatch_sum *sum, uint64_t n_zeros,
                               double scale, struct marey__stopwatch_stats *out);
/* Merges all threads of a slot; free it with marey__stopwatch_sum_clear(). False on out of memory. Caller holds the lock. */
bool marey__stopwatch_sum_of_threads(const struct marey__stopwatch_slot *slot,
                                     struct marey__stopwatch_sum *sum, uint64_t *n_threads);
/* 0 if x is not positive. */
double marey__stopwatch_square_root(double x);
/* Measures `tick_ns`, more accurately the longer the stopwatch is on. Caller holds the lock. */
void marey__stopwatch_know_tick(void);

/* ---- slots, cells, threads: stopwatch_slots.c, stopwatch_cells.c ---- */

/* Zeroed memory on separate cache lines. `block` gets the pointer to free, if it is ever freed. */
void *marey__stopwatch_calloc(size_t size, void **block);
/* Makes room for `id` in an array of pointers by id; new places are `empty`. */
bool marey__stopwatch_grow_by_id(void *array, size_t *n, marey_id id, void *empty);
/* The site that has only the name of `id`. */
marey_id marey__stopwatch_bare_site(marey_id id);

/* The slot for the name of `id`, created if missing; NULL on out of memory. Takes the lock. */
struct marey__stopwatch_slot *marey__stopwatch_slot_get(marey_id id);
/* False on out of memory. Caller holds the lock. */
bool marey__stopwatch_slots_add(struct marey__stopwatch_slots *slots,
                                struct marey__stopwatch_slot *slot);
/*
 * This thread's cell for `id`: created if missing, listed, and reset if stale. NULL on out of memory, which is counted.
 */
struct marey__stopwatch_cell *marey__stopwatch_cell_get(marey_id id);
/* This thread's existing cell for `id` or its name, or NULL. */
struct marey__stopwatch_cell *marey__stopwatch_cell_find(marey_id id);
/* Removes it from this thread's chain, at any position. */
void marey__stopwatch_unlink(struct marey__stopwatch_cell *cell);
/* Sets and clears bits in the modes of all cells. Caller holds the lock. */
void marey__stopwatch_mode_all(uint32_t clear, uint32_t set);
/* Running measurements count from the end of warm-up. Caller holds the lock. */
void marey__stopwatch_mark_straddling(void);
/* Ticks of all threads so far. Caller holds the lock. */
uint64_t marey__stopwatch_total(const struct marey__stopwatch_slot *slot);
/* Whether it is running on some thread. Caller holds the lock. */
bool marey__stopwatch_runs(const struct marey__stopwatch_slot *slot);
/* Drops all results. Caller holds the lock. */
void marey__stopwatch_forget(void);
/* In a forked child: drops other threads' cells; running ones of this thread count from now. Caller holds the lock. */
void marey__stopwatch_cells_after_fork(void);

/* Includes it in reports. Caller holds the lock. */
void marey__stopwatch_list(struct marey__stopwatch_slot *slot);

/* ---- besides time: stopwatch_extra.c ---- */
/* Called around an interval, for cells with such a mode. */
void marey__stopwatch_extra_begin(struct marey__stopwatch_cell *cell, uint32_t mode);
void marey__stopwatch_extra_end(struct marey__stopwatch_cell *cell);
void marey__stopwatch_extra_drop(struct marey__stopwatch_cell *cell);
/* Collects finished GPU spans. Caller does not hold the lock. */
void marey__stopwatch_gpu_collect(void);
/* Usage of all threads. Caller holds the lock. */
void marey__stopwatch_usage_of(const struct marey__stopwatch_slot *slot, struct marey__usage *out);

/* ---- iterations: stopwatch_iteration.c ---- */
extern const struct marey__iteration_subscriber marey__stopwatch_subscriber;
/* The running iteration became warm-up, or stopped being warm-up. */
void marey__stopwatch_set_warmup(bool in_warmup);
void marey__stopwatch_periods_add(struct marey__stopwatch_periods *periods, uint64_t index,
                                  uint64_t value);
void marey__stopwatch_periods_clear(struct marey__stopwatch_periods *periods);
/* The value of measured iteration `index`, which must still be stored. */
double marey__stopwatch_periods_at(const struct marey__stopwatch_periods *periods, uint64_t index);
/* The first measured iteration that is still stored. Caller holds the lock. */
uint64_t marey__stopwatch_series_first(const struct marey__stopwatch_periods *periods);

/* The name of whole iterations in tables. */
#define MAREY__STOPWATCH_WHOLE "(iteration)"

/* Prints the report when it is due, to stdout or the printer that was set. */
void marey__stopwatch_print_by_itself(void);

/* ---- misuse: stopwatch_misuse.c ---- */
/* Counts it, reports it once, returns MAREY_ESTATE with a message. Takes the lock. */
marey_status marey__stopwatch_misused(marey_id id, enum marey__stopwatch_misuse what);
/* A short description for the table. */
const char *marey__stopwatch_misuse_text(enum marey__stopwatch_misuse what);
marey_status marey__stopwatch_no_memory(marey_id id);

/* ==== stopwatch_merge ==== */

/*
 * Results passed between processes; docs/formats/stopwatch.md describes the bytes.
 *
 * Sketches hold ticks, whose length differs between machines. Packed results are nanoseconds: the middle of each
 * bucket, in buckets that are eight times finer, so that quantiles stay within 0.9 %.
 */

/* A bucket: the single-precision bits of the value without the lowest 14, so that keys sort like values. */
struct marey__point {
    uint32_t key;
    uint64_t count;
} __attribute__((packed)); /* as it is written */
enum { MAREY__POINT_SHIFT = 14, MAREY__POINT_MAX_KEY = 0x7f7fffff >> MAREY__POINT_SHIFT };

/* A distribution of durations in nanoseconds. Zero-initialized is empty. */
struct marey__spread {
    uint64_t count;
    double total, m2; /* m2: the sum of the squared distances from the mean */
    double min, max;
    struct marey__point *points; /* sorted by unique key */
    size_t n, cap;
};

/* The bucket of a duration (at least 0), and its middle. */
uint32_t marey__point_key(double ns);
double marey__point_value(uint32_t key);

/* The distribution of the values in `sum` and `n_zeros` zeros, times `scale`. False on out of memory. */
bool marey__spread_of(const struct marey__stopwatch_sum *sum, uint64_t n_zeros, double scale,
                      struct marey__spread *out);
void marey__spread_fini(struct marey__spread *spread);
/* Adds `from`; false on out of memory or if a count would overflow, with `into` unchanged. */
bool marey__spread_merge(struct marey__spread *into, const struct marey__spread *from);
double marey__spread_mean(const struct marey__spread *spread);
double marey__spread_std(const struct marey__spread *spread);
double marey__spread_quantile(const struct marey__spread *spread, double q);

#endif
