/*
 * marey/gpu.h: GPU tracing (NVIDIA): kernels, copies, memsets, and the CUDA calls that launch them.
 *
 * Usually enabled by `marey run --gpu` or by the option gpu=1 of marey_start(). It uses the activity records of the CUPTI
 * library that the process has loaded or that is found; CUDA is not linked. GPU activity is recorded as events of its
 * stream, CUDA calls as ranges of the calling thread, so activity can be attributed to the range that launched it.
 *
 * CUPTI serves one tool per process. Starting fails while torch.profiler or Nsight uses it. Stopping releases CUPTI
 * completely: no overhead remains, and other tools can use it.
 */
#ifndef MAREY_GPU_H
#define MAREY_GPU_H

#include <marey/base.h>

MAREY_BEGIN_C

/*
 * Which iterations (see <marey/iteration.h>) are traced: `wait` are skipped, the next `warmup` run with CUPTI on but their
 * records discarded, then `active` are recorded. The cycle repeats `repeat` times, 0: without end. All zero: trace
 * everything.
 *
 * `window_gap` instead: windows of 5 training steps (iterations, or steps derived from hints) or 2 s, whichever ends
 * first. One window in each `window_gap` steps, at step numbers that all ranks of a job choose alike.
 */
struct marey_gpu_options {
    uint32_t wait, warmup, active, repeat;
    uint32_t window_gap; /* 0: no windows; at least 16 */
};

/*
 * Trace from now on, or by the schedule; `options` may be NULL. A process that has not initialized CUDA is traced once
 * it does. MAREY_ESTATE: already on, or no recording. MAREY_EUNAVAILABLE: CUPTI is missing, too old (before CUDA 12) or
 * in use by another tool. Any thread; not from a CUDA or CUPTI callback.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_gpu_start_sized(const struct marey_gpu_options *options,
                                                               size_t size);
static inline MAREY_WARN_UNUSED marey_status marey_gpu_start(const struct marey_gpu_options *options)
{
    return marey_gpu_start_sized(options, sizeof *options);
}

/*
 * Wait for the current device, record the available records, and release CUPTI. Does nothing when off. marey_stop() does
 * the same; so does process exit, without waiting.
 */
MAREY_API void marey_gpu_stop(void);

/*
 * Asynchronous start and stop: both return immediately, and a thread does the rest. That takes a few milliseconds; a stop
 * also waits for GPU work launched before it. Other functions of this header, marey_stop(), fork and process exit wait for
 * a pending start or stop, or are queued after it.
 *
 * Invalid calls fail immediately. If CUPTI is unavailable, tracing turns off shortly afterwards, and the reason is printed
 * and noted in the recording. Recording begins once CUPTI is ready: marey_gpu_settle() waits for it.
 *
 * Calls after the stop are not recorded. Work launched before it is recorded, whenever it runs, and has correlation ids
 * below the returned number; work launched after it is not. Returns 0 when off.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_gpu_start_later_sized(const struct marey_gpu_options *options, size_t size);
static inline MAREY_WARN_UNUSED marey_status marey_gpu_start_later(const struct marey_gpu_options *options)
{
    return marey_gpu_start_later_sized(options, sizeof *options);
}
MAREY_API uint64_t marey_gpu_stop_later(void);
/* The program makes a CUDA graph. From then on CUPTI stays initialized between windows; safe to call any number of times. */
MAREY_API void marey_gpu_note_graph(void);
/*
 * A capture of a CUDA graph begins (1) or has ended (0). CUDA forbids most calls of other threads meanwhile, so this waits
 * for pending starts and stops, and schedules pause until the capture ends.
 */
MAREY_API void marey_gpu_capture(int begins);
/* Wait for pending starts and stops. */
MAREY_API void marey_gpu_settle(void);
/* Returns 1 if no start or stop is pending, else 0. */
MAREY_API int marey_gpu_is_settled(void);

/*
 * Release CUPTI temporarily, for another tool in this process. Pauses nest; tracing that is started during a pause begins
 * after it. `why` (copied) is a sentence that is printed and noted in the recording, once and only if the pause omits
 * activity; NULL: none.
 */
MAREY_API void marey_gpu_pause(const char *why);
/*
 * End a pause. MAREY_EUNAVAILABLE: CUPTI is still in use, and the pause continues: try again, or stop. Does nothing
 * without a pause.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_gpu_resume(void);

/* Returns 1 while on, also in a pause and in iterations that the schedule skips; else 0. */
MAREY_API int marey_gpu_is_on(void);

/* Counts of this process so far, without activity that the schedule skips. */
struct marey_gpu_counts {
    uint64_t kernels, copies, sets, syncs, memory_operations;
    uint64_t calls;      /* CUDA calls on the host */
    uint64_t dropped;    /* records that CUPTI dropped for lack of buffers */
    uint64_t incomplete; /* work that had not ended when records were read */
    uint64_t lost;       /* dropped because the recording's budget was exhausted */
};
MAREY_API void marey_gpu_counts_get(struct marey_gpu_counts *out);

/* Called by libmarey-cuda.so (CUDA_INJECTION64_PATH) when CUDA initializes. Starts tracing that waits for it. */
MAREY_API void marey_gpu_injected(void);

MAREY_END_C
#endif
