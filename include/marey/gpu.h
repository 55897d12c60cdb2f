/*
 * marey/gpu.h: what NVIDIA GPUs do: kernels, copies, memsets, and the CUDA calls that cause them.
 *
 * Usually switched on from outside, by `marey run --gpu` or by the option gpu=1 of marey_start(). It uses CUPTI's activity
 * records, of whichever CUPTI the process has or finds; nothing of CUDA is linked. Work goes to the recording as events of
 * its stream, calls as ranges of the calling thread, so that work is joined with whatever range launched it.
 *
 * CUPTI serves one tool in a process. Where torch.profiler or Nsight is there already, starting fails with a sentence
 * that says so. Stopping gives CUPTI back whole, so that the program runs as fast as before and others may use it.
 */
#ifndef MAREY_GPU_H
#define MAREY_GPU_H

#include <marey/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Which iterations (see <marey/iteration.h>) are traced: `wait` are left out, in the next `warmup` CUPTI is on and its
 * records are thrown away, then `active` are kept; and again, `repeat` times in all, 0 for ever. All zero: everything from
 * now on.
 */
struct marey_gpu_options {
    uint32_t wait, warmup, active, repeat;
};

/*
 * Trace from now on, or by the schedule; `options` may be NULL. A process without CUDA so far is traced from the moment
 * it initialises CUDA. MAREY_ESTATE while it is on, and without a recording; MAREY_EUNAVAILABLE where CUPTI is missing, too old (before CUDA 12) or
 * taken. Any thread, not from a CUDA or CUPTI callback.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_gpu_start_sized(const struct marey_gpu_options *options,
                                                               size_t size);
static inline MAREY_WARN_UNUSED marey_status marey_gpu_start(const struct marey_gpu_options *options)
{
    return marey_gpu_start_sized(options, sizeof *options);
}

/*
 * Wait for the current device, take the records that are there, and give CUPTI back. Nothing when it is off. marey_stop()
 * and the end of the process do the same, the latter without waiting.
 */
MAREY_API void marey_gpu_stop(void);

/*
 * The same without waiting: both come back at once, and a thread does the rest, which takes some milliseconds and for a
 * stop as long as the GPU has work that was given to it before. Each of the functions here waits for what is under way, or
 * is done behind it; so do marey_stop(), a fork and the end of the process.
 *
 * What is wrong with the call is told at once. Where CUPTI cannot be had, tracing is off a little later, with the
 * sentence said to the user and noted in the recording. Work is recorded from the moment CUPTI is there: marey_gpu_settle() waits for it.
 *
 * Calls that come after the stop are not recorded. Work that was launched before it is, whenever it runs, and has numbers
 * (the correlations of its records) below the one that is returned; work that was launched after it is not. 0 when it was off.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_gpu_start_later_sized(const struct marey_gpu_options *options, size_t size);
static inline MAREY_WARN_UNUSED marey_status marey_gpu_start_later(const struct marey_gpu_options *options)
{
    return marey_gpu_start_later_sized(options, sizeof *options);
}
MAREY_API uint64_t marey_gpu_stop_later(void);
/* Wait until what was asked for so far is done. */
MAREY_API void marey_gpu_settle(void);
/* 1 when nothing is under way; else 0. */
MAREY_API int marey_gpu_is_settled(void);

/*
 * Give CUPTI back for a while, because somebody else in this process is about to use it, and go on afterwards. Pauses may
 * nest; tracing that would begin in one begins when it is over. `why`, copied, is a sentence for the user and for the
 * reader of the recording, said once and only when something is left out by the pause; NULL says nothing.
 */
MAREY_API void marey_gpu_pause(const char *why);
/*
 * End a pause. When CUPTI cannot be had again, MAREY_EUNAVAILABLE, and the pause goes on: try again, or stop. Nothing
 * without a pause.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_gpu_resume(void);

/* 1 while it is on, also in a pause and in iterations that its schedule leaves out; else 0. */
MAREY_API int marey_gpu_is_on(void);

/* Of this process so far; what its schedule left out is not counted. */
struct marey_gpu_counts {
    uint64_t kernels, copies, sets, syncs, memory_operations;
    uint64_t calls;      /* of CUDA, on the host */
    uint64_t dropped;    /* records that CUPTI had no room for */
    uint64_t incomplete; /* work that had not ended when it was asked for */
    uint64_t lost;       /* not taken by the recording, whose budget was spent */
};
MAREY_API void marey_gpu_counts_get(struct marey_gpu_counts *out);

/* For libmarey-cuda.so, which CUDA_INJECTION64_PATH names: CUDA is being initialised. Starts what waits for that. */
MAREY_API void marey_gpu_injected(void);

#ifdef __cplusplus
}
#endif
#endif
