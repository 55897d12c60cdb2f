/*
 * marey/nvtx.h: ranges for NVTX tools, and the range wrapper that waits for the GPU and checks the order.
 *
 * If an NVTX tool is attached (Nsight Systems, or a library named by NVTX_INJECTION64_PATH), it also receives every range,
 * async range and mark of <marey/range.h>: with domain, color, category and payload, and the name as a registered string.
 * This needs no recording, CUDA or torch. Without a tool it costs nothing: the bit MAREY_ON_NVTX of the enable word stays
 * clear. The option nvtx=0 hides ranges from tools.
 *
 * The wrapper (marey_nvtx_enable and below; NVTXRangeWrapper in Python) has a separate switch. Off, a push or pop is a load
 * and a branch. On, push and pop may first wait for the GPU, so that a range covers exactly the GPU work launched in it,
 * and a pop may check the order. It pushes ordinary ranges: they go to the recording, if one is open, and to the tool. Any
 * thread; not from signal handlers.
 */
#ifndef MAREY_NVTX_H
#define MAREY_NVTX_H

#include <marey/range.h>

MAREY_BEGIN_C

/*
 * Search for a tool, unless one is attached. marey calls it at load, in marey_start and in marey_nvtx_enable; call it if
 * NVTX_INJECTION64_PATH is set later. Returns 1 if a tool is attached, else 0. The tool does not receive ranges that are
 * already open, nor their ends.
 */
MAREY_API int marey_nvtx_attach(void);

/* State, as a sentence without a full stop: which tool is attached, or why none is. Lent until the next call. */
MAREY_API const char *marey_nvtx_state(void);

/* NVTX version of this build ("3"); "": built without NVTX headers, ranges do not reach tools. */
MAREY_API const char *marey_nvtx_version(void);

/* ---- the wrapper ---- */

struct marey_nvtx_options {
    uint32_t sync_on_push; /* non-zero: wait for the GPU (marey_cuda_sync) before each push */
    uint32_t sync_on_pop;  /* non-zero: and before each pop */
    uint32_t keep_track_of_range_order; /* non-zero: from now on, all ranges of all threads are checked to nest */
};

/* Enable the wrapper. MAREY_ESTATE: already enabled. `options` lent; NULL: all zero. */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_nvtx_enable_sized(const struct marey_nvtx_options *options, size_t size);
static inline MAREY_WARN_UNUSED marey_status marey_nvtx_enable(const struct marey_nvtx_options *options)
{
    return marey_nvtx_enable_sized(options, sizeof *options);
}

/*
 * Disable the wrapper. Ends the ranges that this thread has open through it; later pops for them do nothing. Ranges of
 * other threads stay open.
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

/* Wait for the GPU if enabled, then begin a range. By id: MAREY_ID("forward"). */
static inline void marey_nvtx_push(marey_id id)
{
    if (MAREY_UNLIKELY(marey_nvtx_is_enabled()))
        marey_nvtx_push_on(id);
}

/*
 * Wait for the GPU if enabled, then end the innermost range. With keep_track_of_range_order: MAREY_EMISMATCH if `name` (NULL:
 * any) is not the name pushed last, or nothing was pushed; the message has both names, the stack, the thread and the
 * position of the push. A mismatch neither waits nor pops. Without it, `name` is ignored.
 */
static inline MAREY_WARN_UNUSED marey_status marey_nvtx_pop(const char *name)
{
    return MAREY_UNLIKELY(marey_nvtx_is_enabled()) ? marey_nvtx_pop_on(name) : MAREY_OK;
}

/* The same by id; 0: any. Compares names, so another call site with the same name matches. */
static inline MAREY_WARN_UNUSED marey_status marey_nvtx_pop_id(marey_id id)
{
    return MAREY_UNLIKELY(marey_nvtx_is_enabled()) ? marey_nvtx_pop_id_on(id) : MAREY_OK;
}

/* ---- handles, numbers that compiled code can store: equal names have equal handles in every process ---- */

/* Register `name` (`len` bytes, copied). Never 0. */
MAREY_API uint64_t marey_nvtx_register(const char *name, size_t len);
/* Begin and end a range by handle, also while the wrapper is off. An unknown handle is "(unregistered)". */
MAREY_API void marey_nvtx_push_handle(uint64_t handle);
MAREY_API void marey_nvtx_pop_handle(void);

MAREY_END_C
#endif
