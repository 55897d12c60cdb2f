/*
 * gpu: activity of NVIDIA GPUs, through CUPTI.
 *
 *   a CUDA call   -- callback, on its thread --> a range with a LAUNCH record, on the thread's lane  (gpu_calls.c)
 *   GPU activity  -- buffers, on CUPTI's thread --> GPU records, on a lane of its stream  (gpu_buffers.c, gpu_decode.c)
 *
 *   gpu.c                                on and off, by iterations, pauses for another tool
 *   gpu_session.c, gpu_orders.c          taking CUPTI and returning it, in the background where the caller cannot wait
 *   gpu_cost.c                           the cost of tracing per call, from a calibration
 *   cupti_library.c                      CUPTI, opened at run time; layouts of its records are in this header
 *
 * Input: CUPTI's records and callbacks. Output: events of the recording. CUPTI takes our ticks as its clock, so both
 * sides share one time. Does not know which kernel belongs to which range: analyses join them by correlation id.
 *
 * Locks, outermost first: gpu.turn (the owner of CUPTI) > gpu.lock (the requested state) > work.lock (decoding) > those
 * of the recording. CUPTI's threads may take these locks while we call CUPTI, so we hold none of them then.
 */
#ifndef MAREY_INSTRUMENT_GPU_INTERNAL_H
#define MAREY_INSTRUMENT_GPU_INTERNAL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "record/internal.h"
#include <marey/gpu.h>

enum marey__cupti_result {
    MAREY__CUPTI_SUCCESS = 0,
    MAREY__CUPTI_NO_PRIVILEGE = 35,
    MAREY__CUPTI_TAKEN = 39, /* there is another subscriber */
};

enum {
    MAREY__CUPTI_VERSION_MIN = 18, /* CUDA 12.0 */
    MAREY__CUPTI_SAFE_NULL = 27,   /* from here on a buffer request may be refused */
    MAREY__CUPTI_FLUSH_FORCED = 1,
    MAREY__CUPTI_PER_THREAD_BUFFER = 9, /* an attribute */
};

enum marey__cupti_domain { MAREY__CUPTI_DRIVER = 1, MAREY__CUPTI_RUNTIME = 2 };

enum marey__cupti_kind {
    MAREY__CUPTI_MEMCPY = 1,
    MAREY__CUPTI_MEMSET = 2,
    MAREY__CUPTI_KERNEL = 10, /* the concurrent kind: the plain one would serialize kernels */
    MAREY__CUPTI_MEMCPY_PEER = 22,
    MAREY__CUPTI_SYNC = 38,
    MAREY__CUPTI_MEMORY = 49,
};

/* Offsets of fields; each record begins with its kind, a u32. Times are u64, all others u32 unless noted. */
enum marey__cupti_field {
    MAREY__KERNEL_REGISTERS = 6, /* u16 */
    MAREY__KERNEL_START = 16,
    MAREY__KERNEL_END = 24,
    MAREY__KERNEL_DEVICE = 40,
    MAREY__KERNEL_STREAM = 48,
    MAREY__KERNEL_GRID =
        52, /* three, followed by three of the block, static and dynamic shared memory */
    MAREY__KERNEL_CORRELATION = 92,
    MAREY__KERNEL_NAME = 104,       /* a pointer */
    MAREY__KERNEL_GRAPH_NODE = 144, /* u64 */
    MAREY__KERNEL_GRAPH = 156,

    /* For both copies and memsets. */
    MAREY__COPY_KIND = 4, /* u8; so are the next two */
    MAREY__COPY_FROM = 5,
    MAREY__COPY_TO = 6,
    MAREY__COPY_BYTES = 8, /* u64 */
    MAREY__COPY_START = 16,
    MAREY__COPY_END = 24,
    MAREY__COPY_DEVICE = 32,
    MAREY__COPY_STREAM = 40,
    MAREY__COPY_CORRELATION = 44,
    MAREY__SET_MEMORY = 50, /* u16 */
    MAREY__COPY_GRAPH_NODE = 64,
    MAREY__COPY_GRAPH = 72,
    MAREY__PEER_CORRELATION = 60, /* for copies between devices */
    MAREY__PEER_GRAPH_NODE = 72,
    MAREY__PEER_GRAPH = 80,

    MAREY__SYNC_TYPE = 4,
    MAREY__SYNC_START = 8,
    MAREY__SYNC_END = 16,
    MAREY__SYNC_CORRELATION = 24,
    MAREY__SYNC_STREAM = 32,

    MAREY__MEMORY_OPERATION = 4, /* 1 allocated, 2 freed */
    MAREY__MEMORY_KIND = 8,
    MAREY__MEMORY_CORRELATION = 12,
    MAREY__MEMORY_ADDRESS = 16, /* u64 */
    MAREY__MEMORY_BYTES = 24,
    MAREY__MEMORY_TIME = 32,
    MAREY__MEMORY_DEVICE = 52,
    MAREY__MEMORY_STREAM = 60,
};

/* A call, as passed to callbacks. */
struct marey__cupti_call {
    int site; /* 0 begin, 1 end */
    const char *function_name;
    const void *params;
    void *result;
    const char *symbol_name;
    void *context;
    uint32_t context_uid;
    uint64_t *correlation_data;
    uint32_t correlation;
};

typedef void marey__cupti_callback(void *ctx, int domain, uint32_t number,
                                   const struct marey__cupti_call *call);
typedef void marey__cupti_request(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void marey__cupti_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                                   size_t valid);
typedef uint64_t marey__cupti_clock(void);

struct marey__cupti_subscription {
    size_t struct_size;
    const char *name;
    char *old_name; /* name of the previous subscriber, if any */
    size_t old_name_size;
};

/* X(field, symbol, result, arguments) of every required function. */
#define MAREY__CUPTI_FUNCTIONS(X)                                                                   \
    X(get_version, "cuptiGetVersion", int, (uint32_t * version))                                    \
    X(subscribe, "cuptiSubscribe", int,                                                             \
      (void **subscriber, marey__cupti_callback *callback, void *ctx))                              \
    X(unsubscribe, "cuptiUnsubscribe", int, (void *subscriber))                                     \
    X(enable_callback, "cuptiEnableCallback", int,                                                  \
      (uint32_t on, void *subscriber, int domain, uint32_t number))                                 \
    X(enable_domain, "cuptiEnableDomain", int, (uint32_t on, void *subscriber, int domain))         \
    X(callback_name, "cuptiGetCallbackName", int, (int domain, uint32_t number, const char **name)) \
    X(register_clock, "cuptiActivityRegisterTimestampCallback", int, (marey__cupti_clock * clock))  \
    X(register_buffers, "cuptiActivityRegisterCallbacks", int,                                      \
      (marey__cupti_request * request, marey__cupti_complete * complete))                           \
    X(enable, "cuptiActivityEnable", int, (int kind))                                               \
    X(disable, "cuptiActivityDisable", int, (int kind))                                             \
    X(flush, "cuptiActivityFlushAll", int, (uint32_t flags))                                        \
    X(next_record, "cuptiActivityGetNextRecord", int,                                               \
      (uint8_t * buffer, size_t valid, const uint8_t **record))                                     \
    X(n_dropped, "cuptiActivityGetNumDroppedRecords", int,                                          \
      (void *context, uint32_t stream, size_t *n))                                                  \
    X(set_attribute, "cuptiActivitySetAttribute", int, (int attribute, size_t *size, void *value))  \
    X(finalize, "cuptiFinalize", int, (void))                                                       \
    X(result_text, "cuptiGetResultString", int, (int result, const char **text))

struct marey__cupti {
#define MAREY__CUPTI_FIELD(field, symbol, result, arguments) result(*field) arguments;
    MAREY__CUPTI_FUNCTIONS(MAREY__CUPTI_FIELD)
#undef MAREY__CUPTI_FIELD
    /* Since CUDA 13.0; else NULL. */
    int (*subscribe_named)(void **subscriber, marey__cupti_callback *callback, void *ctx,
                           struct marey__cupti_subscription *subscription);
    uint32_t version;
    char path[512];
};

/* ---- cupti_library.c ---- */

/* CUPTI, opened once and never closed. NULL with a message in marey_last_error() if it is unusable. */
const struct marey__cupti *marey__cupti_open(void);

/* ---- gpu.c: on and off ---- */

/* Which CUDA calls are recorded. */
enum marey__gpu_calls { MAREY__GPU_NO_CALLS, MAREY__GPU_ALL_CALLS, MAREY__GPU_EARLIER_CALLS };

struct marey__gpu {
    pthread_mutex_t turn; /* held while CUPTI is taken and returned, however long that takes */
    uint32_t n_pauses; /* while not 0, another tool has CUPTI. Under the turn, like the next two */
    char pause_reason[320]; /* a sentence, or "" */
    void *subscriber;

    pthread_mutex_t lock; /* guards the fields below, unless noted as atomic; held briefly */
    bool is_on;           /* as seen by the user */
    bool is_armed; /* CUDA is not loaded yet: it will call marey_gpu_injected(). Also loaded without the lock */
    bool is_child;       /* forked from a process with CUDA: CUDA does not work here */
    bool is_said_traced; /* as recorded: atomic */
    bool is_tracing; /* CUPTI is ours. Changed under turn and lock, so either suffices to read it */
    struct marey_gpu_options schedule;

    bool has_graphs;  /* CUDA graphs exist: CUPTI is no longer finalized. Relaxed */
    bool is_injected; /* CUDA is being initialized: do not call its driver. Relaxed */
    bool awaits_context; /* records are enabled with the first call in a context. Acquire and release */

    bool wants_syncs; /* waits of streams are recorded too, which slows each launch. Relaxed */
    const struct marey__cupti *cupti; /* constant once set; relaxed, as CUPTI's threads read it */
    int tells;                        /* an enum marey__gpu_calls. Atomic */
    uint64_t before; /* with EARLIER_CALLS: the first call not recorded, with bit 32; else 0. Relaxed */
    uint64_t first;     /* first call recorded by this session, with bit 32; 0: none yet. Relaxed */
    void *context;      /* CUDA context of the last launch. Relaxed */
    uint64_t keep_from; /* ticks; earlier work is dropped, UINT64_MAX: all. Relaxed */
    uint64_t own_until; /* ticks; earlier activity may be ours, UINT64_MAX while ours runs. Relaxed */
    uint32_t session;   /* counts sessions: each numbers correlations anew. Relaxed */
    struct marey_gpu_counts counts; /* each incremented atomically */
};
extern struct marey__gpu marey__gpu;

/* Whether only some steps are traced. Caller holds the lock. */
static inline bool marey__gpu_has_schedule(void)
{
    return marey__gpu.schedule.active != 0 || marey__gpu.schedule.window_gap != 0;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): it is added to. */
static inline void marey__gpu_count(uint64_t *count, uint64_t n)
{
    __atomic_fetch_add(count, n, __ATOMIC_RELAXED);
}

/* CUPTI's 32 bits, made unique in the process. */
static inline uint64_t marey__gpu_correlation(uint32_t correlation)
{
    return (uint64_t)__atomic_load_n(&marey__gpu.session, __ATOMIC_RELAXED) << 32 | correlation;
}

static inline uint64_t marey__gpu_keep_from(void)
{
    return __atomic_load_n(&marey__gpu.keep_from, __ATOMIC_RELAXED);
}

/* Whether GPU activity that began at `begin` belongs to the recording. */
static inline bool marey__gpu_is_kept(uint64_t begin)
{
    return begin >= marey__gpu_keep_from() &&
           begin >= __atomic_load_n(&marey__gpu.own_until, __ATOMIC_RELAXED);
}

/*
 * Whether a call of this session came before the end of tracing, by CUPTI's numbers, which count the calls of all
 * threads and may wrap. Work has the number of the call that launched it; 0: none.
 */
static inline bool marey__gpu_is_earlier(uint32_t correlation)
{
    const uint64_t before = __atomic_load_n(&marey__gpu.before, __ATOMIC_RELAXED);
    return before == 0 || correlation == 0 || (int32_t)(correlation - (uint32_t)before) < 0;
}

/* Prints a failure that no caller waits for, and adds a note to the recording. */
void marey__gpu_report_failure(void);
/* The session cannot continue: reports the last failure and stops recording. */
void marey__gpu_give_up(void);
/* Adds a note about missing work to the recording. */
void marey__gpu_note_losses(void);
/* Adds a note that a pause leaves a gap. Caller holds the turn. */
void marey__gpu_pause_note(void);

/* ---- gpu_session.c: CUPTI is ours; the turn is held ---- */
/* Drops records until marey__gpu_keep(). During a pause it starts nothing and returns MAREY_OK. */
marey_status marey__gpu_session_start(void);
/* What to wait for before returning CUPTI: the current device's work, that of a context, or nothing at exit. */
struct marey__gpu_ending {
    bool is_exit;
    bool is_ordered; /* by another thread, which used `context`; NULL: there is no work */
    void *context;
};
void marey__gpu_session_stop(struct marey__gpu_ending ending);
/* Keeps records from now on, if CUPTI is ours and tracing is on. Caller holds the lock. */
void marey__gpu_keep(void);
/* Records that a window begins or ends, if tracing uses windows and that is not recorded yet. */
void marey__gpu_put_traced(bool is_traced);
/* Before the first call in a context: enables records, which an injected session postpones until now. */
void marey__gpu_session_enable_context(void *context);
/* In a forked child. */
void marey__gpu_session_forget(void);
/* Call once CUDA is loaded, so that its handlers come after ours: at exit, collect CUPTI's records. */
void marey__gpu_expect_exit(void);

/* ---- gpu_cost.c: the cost of tracing a call; calls made here are not recorded ---- */
/* Times calls in `context` (NULL: none) before CUPTI's records are enabled, and after. Only the first time counts. */
void marey__gpu_cost_untraced(void *context);
void marey__gpu_cost_traced(void *context);
/* A recording begins: start counting calls. */
void marey__gpu_cost_reset(void);
/* Writes the cost so far into the recording. */
void marey__gpu_cost_record(void);

/*
 * ---- gpu_orders.c: work for a background thread; callers hold the lock. False: no thread could be started, and
 * marey_gpu_settle() does it ----
 */
/* Orders the thread to take CUPTI. */
bool marey__gpu_order_start(bool is_kept);
/*
 * Stops recording calls and orders the thread to return CUPTI. Work launched before has numbers below `*bound` and is
 * kept. Drops a pending start.
 */
bool marey__gpu_order_stop(uint64_t *bound);
void marey__gpu_order_drop(void);
/* In a forked child: there is no thread, and its orders belong to the parent. False if there were none. */
bool marey__gpu_orders_forget(void);

/* ---- gpu_calls.c: calls on the host ---- */
/* Requests callbacks for the calls that are recorded; creates sites the first time. */
void marey__gpu_calls_enable(const struct marey__cupti *cupti, void *subscriber);
marey__cupti_callback marey__gpu_call;
/* Stops recording later calls. Returns a number above that of all launches so far, as in GPU and LAUNCH records. */
uint64_t marey__gpu_calls_mark(void);
/* Marks calls of this thread as marey's own, which are not recorded, or ends that. */
void marey__gpu_calls_set_own(bool is_own);
/* Stops recording calls and waits for the end of open ones, at most a tenth of a second. */
void marey__gpu_calls_end(void);
/* Makes a driver call and finalizes CUPTI at its end. False if that did not happen. */
bool marey__gpu_finalize_in_call(const struct marey__cupti *cupti, void *subscriber);

/* ---- gpu_buffers.c: records from CUPTI ---- */
marey__cupti_request marey__gpu_buffer_request;
marey__cupti_complete marey__gpu_buffer_complete;
/* Waits for buffers that other threads are decoding. */
void marey__gpu_buffers_settle(void);
/* Starts the thread that flushes CUPTI's buffers, so that a kill loses little. */
void marey__gpu_poll_start(const struct marey__cupti *cupti);
void marey__gpu_poll_stop(void);

/* ---- gpu_decode.c: records to events ---- */
enum { MAREY__GPU_BATCH = 512 };
/* `n` is at most MAREY__GPU_BATCH; the records are lent. */
void marey__gpu_decode(const uint8_t *const *records, size_t n);
/* Around fork. The child has no lanes. */
void marey__gpu_decode_before_fork(void);
void marey__gpu_decode_after_fork(bool in_child);

#endif
