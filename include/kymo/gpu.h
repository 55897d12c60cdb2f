/*
 * kymo/gpu.h: what NVIDIA GPUs do: kernels, copies, memsets, and the CUDA calls that cause them.
 *
 * Usually switched on from outside, by `kymo run --gpu` or by the option gpu=1 of kymo_start(). It uses CUPTI's activity
 * records, of whichever CUPTI the process has or finds; nothing of CUDA is linked. Work goes to the recording as events of
 * its stream, calls as ranges of the calling thread, so that work is joined with whatever range launched it.
 *
 * CUPTI serves one tool in a process. Where torch.profiler or Nsight is there already, starting fails with a sentence
 * that says so. Stopping gives CUPTI back whole, so that the program runs as fast as before and others may use it.
 */
#ifndef KYMO_GPU_H
#define KYMO_GPU_H

#include <kymo/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Which iterations (see <kymo/iteration.h>) are traced: `wait` are left out, in the next `warmup` CUPTI is on and its
 * records are thrown away, then `active` are kept; and again, `repeat` times in all, 0 for ever. All zero: everything from
 * now on.
 */
struct kymo_gpu_options {
    uint32_t wait, warmup, active, repeat;
};

/*
 * Trace from now on, or by the schedule; `options` may be NULL. A process without CUDA so far is traced from the moment
 * it initialises CUDA. KYMO_ESTATE while it is on, and without a recording; KYMO_EUNAVAILABLE where CUPTI is missing, too old (before CUDA 12) or
 * taken. Any thread, not from a CUDA or CUPTI callback.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_gpu_start_sized(const struct kymo_gpu_options *options,
                                                           size_t size);
static inline KYMO_WARN_UNUSED kymo_status kymo_gpu_start(const struct kymo_gpu_options *options)
{
    return kymo_gpu_start_sized(options, sizeof *options);
}

/*
 * Wait for the current device, take the records that are there, and give CUPTI back. Nothing when it is off. kymo_stop()
 * and the end of the process do the same, the latter without waiting.
 */
KYMO_API void kymo_gpu_stop(void);

/*
 * The same without waiting: both come back at once, and a thread does the rest, which takes some milliseconds and for a
 * stop as long as the GPU has work that was given to it before. Each of the functions here waits for what is under way, or
 * is done behind it; so do kymo_stop(), a fork and the end of the process.
 *
 * What is wrong with the call is told at once. Where CUPTI cannot be had, tracing is off a little later, with the
 * sentence said to the user and noted in the recording. Work is recorded from the moment CUPTI is there: kymo_gpu_settle() waits for it.
 *
 * Calls that come after the stop are not recorded. Work that was launched before it is, whenever it runs, and has numbers
 * (the correlations of its records) below the one that is returned; work that was launched after it is not. 0 when it was off.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_gpu_start_later_sized(const struct kymo_gpu_options *options,
                                                                 size_t size);
static inline KYMO_WARN_UNUSED kymo_status kymo_gpu_start_later(const struct kymo_gpu_options *options)
{
    return kymo_gpu_start_later_sized(options, sizeof *options);
}
KYMO_API uint64_t kymo_gpu_stop_later(void);
/* Wait until what was asked for so far is done. */
KYMO_API void kymo_gpu_settle(void);
/* 1 when nothing is under way; else 0. */
KYMO_API int kymo_gpu_is_settled(void);

/*
 * Give CUPTI back for a while, because somebody else in this process is about to use it, and go on afterwards. Pauses may
 * nest; tracing that would begin in one begins when it is over. `why`, copied, is a sentence for the user and for the
 * reader of the recording, said once and only when something is left out by the pause; NULL says nothing.
 */
KYMO_API void kymo_gpu_pause(const char *why);
/*
 * End a pause. When CUPTI cannot be had again, KYMO_EUNAVAILABLE, and the pause goes on: try again, or stop. Nothing
 * without a pause.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_gpu_resume(void);

/* 1 while it is on, also in a pause and in iterations that its schedule leaves out; else 0. */
KYMO_API int kymo_gpu_is_on(void);

/* Of this process so far; what its schedule left out is not counted. */
struct kymo_gpu_counts {
    uint64_t kernels, copies, sets, syncs, memory_operations;
    uint64_t calls;      /* of CUDA, on the host */
    uint64_t dropped;    /* records that CUPTI had no room for */
    uint64_t incomplete; /* work that had not ended when it was asked for */
    uint64_t lost;       /* not taken by the recording, whose budget was spent */
};
KYMO_API void kymo_gpu_counts_get(struct kymo_gpu_counts *out);

/* For libkymo-cuda.so, which CUDA_INJECTION64_PATH names: CUDA is being initialised. Starts what waits for that. */
KYMO_API void kymo_gpu_injected(void);

#ifdef __cplusplus
}
#endif
#endif
