/*
 * marey/stopwatch.h: named measurements over the iterations of a program, with their statistics at hand while it runs.
 *
 *     marey_stopwatch_enable(&(struct marey_stopwatch_options){.warmup = 5, .print_every = 100});
 *     for (...) {
 *         marey_stopwatch_start(MAREY_ID("forward")); ... marey_stopwatch_stop(MAREY_ID("forward"));
 *         marey_stopwatch_finish_iteration();
 *     }
 *     marey_stopwatch_print(stdout);
 *
 * One stopwatch in a process, off until it is enabled: then a start or stop is a load and a branch. On, the two of them
 * cost two clock reads and next to nothing else; sums are kept in memory of the calling thread, and nothing is locked. It
 * needs no recording; with one open, each measurement is a range in it as well, for the same two clock reads. Names
 * decide: a measurement may start in C and stop in Python, and two places with one name are one measurement.
 *
 * Names nest and overlap as they like; one name does not nest with itself. A name may run on several threads at once, each
 * for itself. A stop on a thread where the name does not run stops it on the one other thread where it does, if there is
 * just one; its range in the recording then ends when that thread starts the name again.
 *
 * Nothing is measured in warm-up iterations. What starts in warm-up and stops after it counts from the end of warm-up.
 * What runs across the end of another iteration counts, as a whole, for the iteration in which it stops.
 *
 * Misuse (a stop without a start, a second start) changes nothing, is counted, told once and shown in the report; it
 * comes back as a status, which strict callers look at. So does MAREY_ENOMEM: that measurement is lost.
 *
 * Memory: a name takes 1.5 kB with its first measurement and 23 kB when its series is full (16 kB of it), with half a kB
 * more for each power of two that its times spread over; each further thread that measures it takes 1.5 kB until it ends.
 * A forked child starts without results; what its thread ran goes on and counts from the fork. From any thread, but not
 * from signal handlers.
 */
#ifndef MAREY_STOPWATCH_H
#define MAREY_STOPWATCH_H

#include <stdio.h>

#include <marey/iteration.h>
#include <marey/table.h>

#ifdef __cplusplus
extern "C" {
#endif

enum marey_stopwatch_gpu {
    MAREY_GPU_NONE = 0,
    MAREY_GPU_SYNC, /* wait for the GPU (marey_cuda_sync) before the clock is read, at both ends */
    MAREY_GPU_EVENTS, /* let the GPU note the times on the current stream; nobody waits, results come later */
};

struct marey_stopwatch_options {
    uint64_t warmup; /* iterations from now on that are left out; marey_iteration_set_warmup() works as well */
    uint64_t print_every; /* measured iterations between two reports on stdout; 0: none */
    enum marey_stopwatch_gpu gpu;
    uint32_t sync_one_time; /* non-zero: one-time measurements wait for the GPU as well */
};

/*
 * MAREY_ESTATE when it is on already. `options` lent; NULL: all zero. Starts with no results. GPU times that this machine
 * cannot give are told in a sentence and left out.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_stopwatch_enable_sized(const struct marey_stopwatch_options *options, size_t size);
static inline MAREY_WARN_UNUSED marey_status
marey_stopwatch_enable(const struct marey_stopwatch_options *options)
{
    return marey_stopwatch_enable_sized(options, sizeof *options);
}
/* Off; results stay readable until the next enable or reset. What runs is dropped. */
MAREY_API void marey_stopwatch_disable(void);
/* Forget the results and what runs; options, usage and warm-up stay as they are. On or off. */
MAREY_API void marey_stopwatch_reset(void);

static inline int marey_stopwatch_is_enabled(void)
{
    return (marey_on() & MAREY_ON_STOPWATCH) != 0;
}

/* Out of line; they test the switch again. MAREY_ESTATE for misuse, with a sentence that names the measurement. */
MAREY_API marey_status marey_stopwatch_start_on(marey_id id);
MAREY_API marey_status marey_stopwatch_stop_on(marey_id id);

static inline marey_status marey_stopwatch_start(marey_id id)
{
    return MAREY_UNLIKELY(marey_stopwatch_is_enabled()) ? marey_stopwatch_start_on(id) : MAREY_OK;
}
static inline marey_status marey_stopwatch_stop(marey_id id)
{
    return MAREY_UNLIKELY(marey_stopwatch_is_enabled()) ? marey_stopwatch_stop_on(id) : MAREY_OK;
}

/* 1 while a measurement under the name of `id` runs on this thread, started while it was on; else 0. */
MAREY_API int marey_stopwatch_is_running(marey_id id);

/* Drop what runs on this thread under `id`, as if it had not been started: a block that failed. */
MAREY_API void marey_stopwatch_cancel(marey_id id);

/*
 * The iteration ends: marey_iteration_finish_by(driver, samples) and nothing else, so that any other driver of iterations
 * will do as well; off, not even that. MAREY_ESTATE when a measurement of this thread still runs after warm-up: it goes
 * on, its time counts for the iteration in which it stops. The second names the driver "marey_stopwatch_finish_iteration".
 */
MAREY_API marey_status marey_stopwatch_finish_iteration_by(marey_driver driver, double samples);
MAREY_API marey_status marey_stopwatch_finish_iteration(double samples);

/*
 * MAREY_ESTATE, with a sentence that names it, when a measurement of this thread still runs: for those who would rather
 * not finish the iteration then. Counts nothing and tells nobody.
 */
MAREY_API marey_status marey_stopwatch_check_stopped(void);

/*
 * Once in a process, whatever the iteration: set-up, the whole run. Warm-up does not matter to them, any thread may stop
 * them, and their names are apart from those of the others. In a recording they are async ranges.
 */
MAREY_API marey_status marey_stopwatch_once_start(marey_id id);
MAREY_API marey_status marey_stopwatch_once_stop(marey_id id);

/*
 * What is measured besides time, over exactly the intervals of `id`, from its next start on. 0 ends it; it replaces what
 * was asked for before. Costs microseconds for each end of an interval. MAREY_EINVAL for a bit that is none of these,
 * MAREY_EUNAVAILABLE with a sentence where the kernel does not tell. Off, nothing happens.
 */
enum marey_stopwatch_usage {
    MAREY_USAGE_THREAD_CPU = 1u << 0, /* of the thread that starts and stops it */
    MAREY_USAGE_PROCESS_CPU =
        1u << 1, /* of all threads of the process; 1.0 is one processor busy all the time */
    MAREY_USAGE_TREE_CPU = 1u << 2,    /* of the process and its living descendants */
    MAREY_USAGE_MACHINE_CPU = 1u << 3, /* of the machine, 0..number of processors */
    MAREY_USAGE_FAULTS = 1u << 4,      /* page faults and context switches of the thread */
    MAREY_USAGE_RSS = 1u << 5,         /* growth of the resident set */
};
MAREY_API marey_status marey_stopwatch_measure_usage(marey_id id, uint32_t usage);

/* Iterations measured: finished ones without warm-up. */
MAREY_API uint64_t marey_stopwatch_n_measured(void);

/*
 * The results so far, as tables; the caller destroys them. `name`:
 *   intervals   name threads count total_ns mean_ns std_ns min_ns p50_ns p90_ns p99_ns max_ns self_ns running
 *   iterations  name iterations total_ns mean_ns ... max_ns share   (time per iteration; in how many it ran)
 *   iteration   iterations total_ns mean_ns ... max_ns samples samples_per_s        (one row: the iterations themselves)
 *   threads     name thread tid count total_ns mean_ns ... max_ns self_ns thread_cpu
 *   gpu         name count total_ns mean_ns ... max_ns pending
 *   usage       name thread_cpu process_cpu tree_cpu machine_cpu (1.0: one processor) context_switches
 *               involuntary_switches page_faults major_faults rss_bytes; null: not asked for, or not to be told:
 *               machine_cpu needs half a second, because the kernel counts it in ticks of 10 ms
 *   once        name total_ns running
 *   series      iteration name total_ns          (the latest 4096 iterations; "(iteration)" is the iteration itself)
 *   outliers    iteration name total_ns median_ns times        (iterations far above the rest, worst first)
 *   misuse      name what count
 * Names stand in the order of their first start; those seen in warm-up only have zeros. Quantiles are within 0.8 %; std is
 * that of a sample. A measured iteration in which a name did not run counts as zero in `iterations`. An outlier is more than
 * 6 deviations (by the median of distances, scaled) and a fifth above the median; at most 20 of a name. MAREY_EINVAL
 * for another name.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_stopwatch_table(const char *name, marey_table **out);

/* The report, sections as print_eval_times has them. MAREY_EIO when the stream refuses. */
MAREY_API marey_status marey_stopwatch_print(FILE *out);

/*
 * Who gets the reports that `print_every` makes, instead of stdout: `len` bytes, lent for the call, on the thread that
 * finished the iteration, with no lock held. NULL restores stdout.
 */
typedef void marey_stopwatch_printer(void *ctx, const char *text, size_t len);
MAREY_API void marey_stopwatch_set_printer(marey_stopwatch_printer *printer, void *ctx);

/*
 * The results of several processes as one, without files: each packs its own, one of them gets the bytes and merges.
 * Packed are counts, sums and sketches by name, a few kilobytes for each; docs/formats/stopwatch.md has the bytes.
 * `*data` is the caller's to free().
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_stopwatch_pack(int64_t rank, void **data, size_t *len);

typedef struct marey_stopwatch_merged marey_stopwatch_merged;
MAREY_API MAREY_WARN_UNUSED marey_status marey_stopwatch_merged_create(marey_stopwatch_merged **out);
MAREY_API void marey_stopwatch_merged_destroy(marey_stopwatch_merged *merged);
/* MAREY_EFORMAT for bytes that marey_stopwatch_pack() did not make; then nothing of them was added. `data` is lent. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_stopwatch_merged_add(marey_stopwatch_merged *merged,
                                                                    const void *data, size_t len);
/*
 * Tables of what was added; the caller destroys them:
 *   ranks       name ranks min_ns mean_ns max_ns slowest_rank imbalance
 *               the mean time per iteration of each rank: the least, the mean and the largest of them; imbalance is
 *               largest / mean - 1. A rank in which the name did not occur is not among its ranks.
 *   intervals   name ranks count total_ns mean_ns std_ns min_ns p50_ns p90_ns p99_ns max_ns      over all ranks
 *   iterations  the same columns, `count` being iterations of all ranks: the time per iteration
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_stopwatch_merged_table(
    const marey_stopwatch_merged *merged, const char *name, marey_table **out);

#ifdef __cplusplus
}
#endif
#endif
