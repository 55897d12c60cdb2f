/*
 * marey/nvtx.h: ranges for NVTX tools, and the range wrapper that waits for the GPU and checks the order.
 *
 * Where an NVTX tool listens (Nsight Systems, or any library that NVTX_INJECTION64_PATH names), every range, async range
 * and mark of <marey/range.h> goes there as well: with its domain, color, category and payload, its name as a
 * registered string. No recording need be open, and neither CUDA nor torch is needed. Without a tool it costs nothing:
 * the bit MAREY_ON_NVTX of the enable word stays clear. The option nvtx=0 keeps ranges from tools.
 *
 * The wrapper (marey_nvtx_enable and below; NVTXRangeWrapper in Python) has its own switch. Off, a push or pop is a
 * load and a branch. On, a push may wait for the GPU first, so that a range begins when earlier work is done and ends
 * with its own, and a pop may be checked. What it pushes are ordinary ranges: they go to the recording when one is
 * open, and to the tool. Any thread may call anything here; keep it out of signal handlers.
 */
#ifndef MAREY_NVTX_H
#define MAREY_NVTX_H

#include <marey/range.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Look for a tool, unless one was found. Called at load and by marey_start and marey_nvtx_enable; call it after setting
 * NVTX_INJECTION64_PATH later than that. 1 when ranges go to a tool from now on, else 0. Ranges that are open already
 * are not told to it, nor are their ends.
 */
MAREY_API int marey_nvtx_attach(void);

/* How it stands, in a sentence without a full stop: which tool listens, or why none does. Lent until the next call. */
MAREY_API const char *marey_nvtx_state(void);

/* The version of NVTX this library was built with ("3"); "" when its headers were missing, and ranges stay here. */
MAREY_API const char *marey_nvtx_version(void);

/* ---- the wrapper ---- */

struct marey_nvtx_options {
    uint32_t sync_on_push; /* non-zero: wait for the GPU (marey_cuda_sync) before each push */
    uint32_t sync_on_pop;  /* non-zero: and before each pop */
    uint32_t keep_track_of_range_order; /* non-zero: from now on, all ranges of all threads are checked to nest */
};

/* Switch the wrapper on. MAREY_ESTATE when it is on already: disable it first. `options` lent; NULL: all zero. */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_nvtx_enable_sized(const struct marey_nvtx_options *options, size_t size);
static inline MAREY_WARN_UNUSED marey_status marey_nvtx_enable(const struct marey_nvtx_options *options)
{
    return marey_nvtx_enable_sized(options, sizeof *options);
}

/*
 * Switch it off. Ranges that this thread has open through it are ended; the pops that were meant for them do nothing
 * any more. Ranges of other threads stay open.
 */
MAREY_API void marey_nvtx_disable(void);

static inline int marey_nvtx_is_enabled(void)
{
    return (marey_on() & MAREY_ON_WRAPPER) != 0;
}

/* Out of line; they test the switch again. */
MAREY_API void marey_nvtx_push_on(marey_id id);
MAREY_API MAREY_WARN_UNUSED marey_status marey_nvtx_pop_on(const char *name);
MAREY_API MAREY_WARN_UNUSED marey_status marey_nvtx_pop_id_on(marey_id id);

/* Wait for the GPU if asked to, then begin a range. By id: MAREY_ID("forward"). */
static inline void marey_nvtx_push(marey_id id)
{
    if (MAREY_UNLIKELY(marey_nvtx_is_enabled()))
        marey_nvtx_push_on(id);
}

/*
 * Wait for the GPU if asked to, then end the range that was begun last. With the order kept track of, a `name` (NULL:
 * any) that is not what was pushed last, or nothing pushed, gives MAREY_EMISMATCH and a sentence with both names, the
 * stack, the thread and where the push was; nothing is waited for and nothing is popped. Else `name` is ignored.
 */
static inline MAREY_WARN_UNUSED marey_status marey_nvtx_pop(const char *name)
{
    return MAREY_UNLIKELY(marey_nvtx_is_enabled()) ? marey_nvtx_pop_on(name) : MAREY_OK;
}

/* The same, by id as the push; 0: any. Names are compared still, so that another site of the name fits. */
static inline MAREY_WARN_UNUSED marey_status marey_nvtx_pop_id(marey_id id)
{
    return MAREY_UNLIKELY(marey_nvtx_is_enabled()) ? marey_nvtx_pop_id_on(id) : MAREY_OK;
}

/* ---- handles, for compiled code that keeps a number: the same name gives the same handle in every process ---- */

/* Register `name` (`len` bytes, copied). Never 0. */
MAREY_API uint64_t marey_nvtx_register(const char *name, size_t len);
/* Begin and end a range by handle, whether the wrapper is on or not. One that nobody registered is "(unregistered)". */
MAREY_API void marey_nvtx_push_handle(uint64_t handle);
MAREY_API void marey_nvtx_pop_handle(void);

#ifdef __cplusplus
}
#endif
#endif
