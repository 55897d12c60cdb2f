/*
 * gpu: what NVIDIA GPUs do, by CUPTI's activity records.
 *
 *   a call of CUDA  -- callback, on its thread --> range with a record LAUNCH, on the thread's own lane  (gpu_calls.c)
 *   the GPU's work  -- buffers, on CUPTI's thread --> records GPU, on a lane of its stream  (gpu_buffers.c, gpu_decode.c)
 *
 * CUPTI takes our ticks as its clock, so that both are in one time. Calls come by callbacks rather than as records:
 * they lie in the thread's lane where they happened, under whatever range is open, at no more cost.
 *
 * Locks, outermost first: gpu.lock (on and off) > work.lock (what is decoded) > those of the recording. None is held
 * while CUPTI is called that CUPTI's own threads may want: work.lock never is.
 */
#ifndef KYMO_GPU_INTERNAL_H
#define KYMO_GPU_INTERNAL_H

#include <pthread.h>

#include "gpu/cupti.h"
#include "record/record_internal.h"
#include <kymo/gpu.h>

/* ---- cupti_library.c ---- */

/* CUPTI, opened once and for good. NULL with a sentence in kymo_last_error() when it cannot be used. */
const struct kymo__cupti *kymo__cupti_open(void);
/* Whether the process has loaded the driver of CUDA. */
bool kymo__cuda_is_loaded(void);

/* ---- gpu.c: on and off ---- */

struct kymo__gpu {
    pthread_mutex_t lock; /* guards everything but the counts */
    bool is_on;           /* as the user sees it */
    bool is_armed;        /* CUDA is not there yet: it will call kymo_gpu_injected() */
    bool is_tracing;      /* CUPTI is ours */
    bool wants_syncs;     /* streams that wait are told too, at the price of each launch. Relaxed */
    bool is_child;        /* forked from a process with CUDA: there is none here */
    uint32_t n_pauses;    /* while there are any, CUPTI is somebody else's */
    char pause_reason[320]; /* a sentence; "" for none */
    struct kymo_gpu_options schedule;
    const struct kymo__cupti *cupti; /* relaxed: CUPTI's threads read it, and it stands still once it is set */
    void *subscriber;
    bool takes_calls;   /* calls that begin now are told. Atomic */
    uint64_t keep_from; /* ticks; earlier work is thrown away, UINT64_MAX all. Relaxed */
    uint32_t session;   /* counts how often CUPTI was ours: it numbers correlations anew. Relaxed */
    struct kymo_gpu_counts counts; /* each added to atomically */
};
extern struct kymo__gpu kymo__gpu;

/* NOLINTNEXTLINE(readability-non-const-parameter): it is added to. */
static inline void kymo__gpu_count(uint64_t *count, uint64_t n)
{
    __atomic_fetch_add(count, n, __ATOMIC_RELAXED);
}

/* CUPTI's 32 bits, unique in the process. */
static inline uint64_t kymo__gpu_correlation(uint32_t correlation)
{
    return (uint64_t)__atomic_load_n(&kymo__gpu.session, __ATOMIC_RELAXED) << 32 | correlation;
}

static inline uint64_t kymo__gpu_keep_from(void)
{
    return __atomic_load_n(&kymo__gpu.keep_from, __ATOMIC_RELAXED);
}

/*
 * The lock is held by who calls these three. Records are kept from now on if `is_kept`, else thrown away. In a pause a
 * session is not started, and that is no failure.
 */
kymo_status kymo__gpu_session_start(bool is_kept);
/* Waits for the current device, unless CUDA is going down. */
void kymo__gpu_session_stop(bool is_exit);
void kymo__gpu_keep(void);

/* ---- gpu_pause.c ---- */
/* The lock is held: a pause leaves something out. */
void kymo__gpu_pause_tell(void);

/* ---- gpu_calls.c: calls on the host ---- */
/* Ask to be called for what is worth a range; sites are made the first time. */
void kymo__gpu_calls_enable(const struct kymo__cupti *cupti, void *subscriber);
kymo__cupti_callback kymo__gpu_call;
/* No call is told any more, and those that were have ended, unless one takes longer than a tenth of a second. */
void kymo__gpu_calls_end(void);
/* Call something of the driver and finalize CUPTI at the end of that call. False when it did not come to that. */
bool kymo__gpu_finalize_in_call(const struct kymo__cupti *cupti, void *subscriber);

/* ---- gpu_buffers.c: records from CUPTI ---- */
kymo__cupti_request kymo__gpu_buffer_request;
kymo__cupti_complete kymo__gpu_buffer_complete;
/* Wait for buffers that other threads have brought and not yet decoded. */
void kymo__gpu_buffers_settle(void);
/* The thread that asks CUPTI for what it has, so that a kill loses little. */
void kymo__gpu_poll_start(const struct kymo__cupti *cupti);
void kymo__gpu_poll_stop(void);

/* ---- gpu_decode.c: records to events ---- */
enum { KYMO__GPU_BATCH = 512 };
/* At most KYMO__GPU_BATCH records, which are lent. */
void kymo__gpu_decode(const uint8_t *const *records, size_t n);
/* Around fork. The child has no lanes. */
void kymo__gpu_decode_before_fork(void);
void kymo__gpu_decode_after_fork(bool in_child);

/* ---- gpu_names.c: names of work; work.lock is held ---- */
kymo_id kymo__gpu_kernel_site(const char *mangled);
struct kymo__gpu_shape {
    uint32_t grid[3], block[3], static_memory, dynamic_memory;
    uint32_t registers, graph;
    uint64_t graph_node;
};
/* The site of details; 0 when there is nothing to say, or too much was said already. */
kymo_id kymo__gpu_shape_site(const struct kymo__gpu_shape *shape);
/* By CUPTI's numbers. */
kymo_id kymo__gpu_copy_site(uint32_t kind, uint32_t from, uint32_t to);
kymo_id kymo__gpu_set_site(uint32_t memory);
kymo_id kymo__gpu_sync_site(uint32_t type);
/* 0 for what is not told. */
kymo_id kymo__gpu_memory_site(uint32_t operation, uint32_t memory);

/* ---- gpu_schedule.c: iterations ---- */
/* gpu.lock is held: follow gpu.schedule from the iteration that runs; true when tracing begins with it. */
bool kymo__gpu_schedule_begin(bool *is_kept);
/* gpu.lock is held: whether the iteration that runs is to be traced, and kept. */
bool kymo__gpu_schedule_is_due(bool *is_kept);
void kymo__gpu_schedule_end(void);

#endif
