/*
 * marey/stopwatch.h: named time measurements over the iterations of a program, with statistics while it runs.
 *
 *     marey_stopwatch_enable(&(struct marey_stopwatch_options){.warmup = 5, .print_every = 100});
 *     for (...) {
 *         marey_stopwatch_start(MAREY_ID("forward")); ... marey_stopwatch_stop(MAREY_ID("forward"));
 *         marey_stopwatch_finish_iteration();
 *     }
 *     marey_stopwatch_print(stdout);
 *
 * One stopwatch per process. While disabled, a start or stop is a load and a branch. Enabled, start and stop cost one clock
 * read each and little else; sums are kept per thread, without locks. It needs no recording; with an open recording, each
 * measurement is also a range, from the same clock reads. Measurements are identified by name: one may start in C and stop
 * in Python, and two call sites with the same name are one measurement.
 *
 * Different names may nest and overlap; a name does not nest with itself. A name may run on several threads independently.
 * A stop on a thread where the name does not run stops it on the other thread where it runs, if there is exactly one; its
 * range in the recording then ends when that thread starts the name again.
 *
 * Warm-up iterations are not measured. A measurement that starts in warm-up and stops later counts from the end of warm-up.
 * A measurement that spans several iterations counts entirely for the iteration in which it stops.
 *
 * Misuse (a stop without a start, a second start) changes nothing. It is counted, reported once, listed in the report, and
 * returned as a status for strict callers. MAREY_ENOMEM: that measurement is lost.
 *
 * Memory: a name takes 1.5 kB with its first measurement and 23 kB when its series is full (16 kB of it), plus 0.5 kB for
 * each power of two in the spread of its times; each further thread that measures it takes 1.5 kB until the thread ends. A
 * forked child starts without results; running measurements of its thread continue and count from the fork. Any thread;
 * not from signal handlers.
 */
#ifndef MAREY_STOPWATCH_H
#define MAREY_STOPWATCH_H

#include <stdio.h>

#include <marey/iteration.h>
#include <marey/table.h>

MAREY_BEGIN_C

enum marey_stopwatch_gpu {
    MAREY_GPU_NONE = 0,
    MAREY_GPU_SYNC, /* wait for the GPU (marey_cuda_sync) before the clock is read, at both ends */
    MAREY_GPU_EVENTS, /* CUDA events on the current stream; does not wait, results are available later */
};

struct marey_stopwatch_options {
    uint64_t warmup;      /* iterations to skip from now on; as marey_iteration_set_warmup() */
    uint64_t print_every; /* measured iterations between two reports on stdout; 0: none */
    enum marey_stopwatch_gpu gpu;
    uint32_t sync_one_time; /* non-zero: one-time measurements wait for the GPU as well */
};

/*
 * Clears the results and enables. MAREY_ESTATE: already enabled. `options` lent; NULL: all zero. If this machine cannot
 * measure GPU times, prints a message and omits them.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_stopwatch_enable_sized(const struct marey_stopwatch_options *options, size_t size);
static inline MAREY_WARN_UNUSED marey_status
marey_stopwatch_enable(const struct marey_stopwatch_options *options)
{
    return marey_stopwatch_enable_sized(options, sizeof *options);
}
/* Disable; results stay readable until the next enable or reset. Drops running measurements. */
MAREY_API void marey_stopwatch_disable(void);
/* Clear results and running measurements; keeps options, usage and warm-up. Enabled or not. */
MAREY_API void marey_stopwatch_reset(void);

static inline int marey_stopwatch_is_enabled(void)
{
    return (marey_on() & MAREY_ON_STOPWATCH) != 0;
}

/* Out of line; they test the switch again. MAREY_ESTATE on misuse; the message has the name. */
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

/* Returns 1 while a measurement with the name of `id` runs on this thread, else 0. */
MAREY_API int marey_stopwatch_is_running(marey_id id);

/* Drop the running measurement `id` of this thread, as if not started; for a block that failed. */
MAREY_API void marey_stopwatch_cancel(marey_id id);

/*
 * Finish the iteration: only calls marey_iteration_finish_by(driver, samples), so any other driver of iterations works as
 * well. Does nothing while disabled. MAREY_ESTATE: a measurement of this thread still runs after warm-up. It continues and
 * counts for the iteration in which it stops. The second uses the driver "marey_stopwatch_finish_iteration".
 */
MAREY_API marey_status marey_stopwatch_finish_iteration_by(marey_driver driver, double samples);
MAREY_API marey_status marey_stopwatch_finish_iteration(double samples);

/*
 * MAREY_ESTATE if a measurement of this thread still runs; the message has its name. For callers that then do not finish
 * the iteration. Does not count or report misuse.
 */
MAREY_API marey_status marey_stopwatch_check_stopped(void);

/*
 * One-time measurements, independent of iterations and warm-up: set-up, the whole run. Any thread may stop them. Their names
 * are separate from those of other measurements. In a recording they are async ranges.
 */
MAREY_API marey_status marey_stopwatch_once_start(marey_id id);
MAREY_API marey_status marey_stopwatch_once_stop(marey_id id);

/*
 * Resource usage to measure besides time, over exactly the intervals of `id`, from its next start on. Replaces earlier
 * settings; 0: none. Costs microseconds for each start and stop. MAREY_EINVAL: unknown bit. MAREY_EUNAVAILABLE: not
 * supported by the kernel. Does nothing while disabled.
 */
enum marey_stopwatch_usage {
    MAREY_USAGE_THREAD_CPU = 1u << 0,  /* of the thread that starts and stops it */
    MAREY_USAGE_PROCESS_CPU = 1u << 1, /* of all threads of the process; 1.0 is one busy CPU core */
    MAREY_USAGE_TREE_CPU = 1u << 2,    /* of the process and its living descendants */
    MAREY_USAGE_MACHINE_CPU = 1u << 3, /* of the machine, 0..number of CPU cores */
    MAREY_USAGE_FAULTS = 1u << 4,      /* page faults and context switches of the thread */
    MAREY_USAGE_RSS = 1u << 5,         /* growth of the resident set */
};
MAREY_API marey_status marey_stopwatch_measure_usage(marey_id id, uint32_t usage);

/* Number of measured iterations: finished, without warm-up. */
MAREY_API uint64_t marey_stopwatch_n_measured(void);

/*
 * The results so far, as tables; the caller destroys them. `name`:
 *   intervals   name threads count total_ns mean_ns std_ns min_ns p50_ns p90_ns p99_ns max_ns self_ns running
 *   iterations  name iterations total_ns mean_ns ... max_ns share   (time per iteration; number of iterations in which it ran)
 *   iteration   iterations total_ns mean_ns ... max_ns samples samples_per_s        (one row: the iterations themselves)
 *   threads     name thread tid count total_ns mean_ns ... max_ns self_ns thread_cpu
 *   gpu         name count total_ns mean_ns ... max_ns pending
 *   usage       name thread_cpu process_cpu tree_cpu machine_cpu (1.0: one CPU core) context_switches
 *               involuntary_switches page_faults major_faults rss_bytes; null: not requested, or unknown: machine_cpu
 *               needs half a second, because the kernel counts it in ticks of 10 ms
 *   once        name total_ns running
 *   series      iteration name total_ns          (the latest 4096 iterations; "(iteration)" is the iteration itself)
 *   outliers    iteration name total_ns median_ns times        (iterations far above the rest, worst first)
 *   misuse      name what count
 * Names are in the order of their first start; names that ran only in warm-up have zeros. Quantiles are within 0.8 %; std is
 * the sample standard deviation. A measured iteration in which a name did not run counts as zero in `iterations`. An outlier
 * is more than 6 scaled median absolute deviations and 20 % above the median; at most 20 per name. MAREY_EINVAL: unknown
 * `name`.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_stopwatch_table(const char *name, marey_table **out);

/* Print the report, with the sections of print_eval_times. MAREY_EIO on a write error. */
MAREY_API marey_status marey_stopwatch_print(FILE *out);

/*
 * Receives the reports of `print_every` instead of stdout: `len` bytes, lent for the call. Called on the thread that
 * finished the iteration, without a lock held. NULL restores stdout.
 */
typedef void marey_stopwatch_printer(void *ctx, const char *text, size_t len);
MAREY_API void marey_stopwatch_set_printer(marey_stopwatch_printer *printer, void *ctx);

/*
 * Merge the results of several processes without files: each process packs its results, one receives the bytes and merges
 * them. The bytes hold counts, sums and sketches by name, a few kilobytes per name; see docs/formats/stopwatch.md. The
 * caller frees `*data` with free().
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_stopwatch_pack(int64_t rank, void **data, size_t *len);

typedef struct marey_stopwatch_merged marey_stopwatch_merged;
MAREY_API MAREY_WARN_UNUSED marey_status marey_stopwatch_merged_create(marey_stopwatch_merged **out);
MAREY_API void marey_stopwatch_merged_destroy(marey_stopwatch_merged *merged);
/* `data` is lent. MAREY_EFORMAT: not written by marey_stopwatch_pack(); nothing is added. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_stopwatch_merged_add(marey_stopwatch_merged *merged,
                                                                    const void *data, size_t len);
/*
 * Tables of the merged results; the caller destroys them:
 *   ranks       name ranks min_ns mean_ns max_ns slowest_rank imbalance
 *               minimum, mean and maximum over ranks of the mean time per iteration; imbalance is max / mean - 1.
 *               Ranks without the name do not count.
 *   intervals   name ranks count total_ns mean_ns std_ns min_ns p50_ns p90_ns p99_ns max_ns      over all ranks
 *   iterations  the same columns for the time per iteration; `count`: iterations of all ranks
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_stopwatch_merged_table(
    const marey_stopwatch_merged *merged, const char *name, marey_table **out);

MAREY_END_C
#endif
