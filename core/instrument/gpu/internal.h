/*
 * gpu: activity of NVIDIA GPUs, through CUPTI.
 *
 *   a CUDA call   -- callback, on its thread --> a range with a LAUNCH record, on the thread's lane  (gpu_calls.c)
 *   GPU activity  -- buffers, on CUPTI's thread --> GPU records, on a lane of its stream  (gpu_buffers.c, gpu_decode.c)
 *
 *   gpu.c                                on and off, by iterations, pauses for another tool
 *   gpu_session.c, gpu_orders.c          taking CUPTI and returning it, in the background where the caller cannot wait
 *   gpu_cost.c                           what tracing costs a call, from a calibration
 *   cupti_library.c                      CUPTI, opened at run time; layouts of its records are in this header
 *
 * Input: CUPTI's records and callbacks. Output: events of the recording. CUPTI takes our ticks as its clock, so
 * both sides share one time.
 *
 * Locks, outermost first: gpu.turn (who has CUPTI) > gpu.lock (what is wanted) > work.lock (decoding) > those of the
 * recording. CUPTI's threads may take these locks while we call CUPTI, so we hold none of them then.
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
    MAREY__CUPTI_TAKEN = 39, /* another subscriber is there */
};

enum {
    MAREY__CUPTI_VERSION_MIN = 18, /* CUDA 12.0 */
    MAREY__CUPTI_SAFE_NULL = 27,   /* from here on a request for a buffer may be refused */
    MAREY__CUPTI_FLUSH_FORCED = 1,
    MAREY__CUPTI_PER_THREAD_BUFFER = 9, /* an attribute */
};

enum marey__cupti_domain { MAREY__CUPTI_DRIVER = 1, MAREY__CUPTI_RUNTIME = 2 };

enum marey__cupti_kind {
    MAREY__CUPTI_MEMCPY = 1,
    MAREY__CUPTI_MEMSET = 2,
    MAREY__CUPTI_KERNEL = 10, /* concurrent ones: the plain kind would make kernels run one by one */
    MAREY__CUPTI_MEMCPY_PEER = 22,
    MAREY__CUPTI_SYNC = 38,
    MAREY__CUPTI_MEMORY = 49,
};

/* Where fields lie; each record begins with its kind, a u32. Times are u64, all others u32 unless said. */
enum marey__cupti_field {
    MAREY__KERNEL_REGISTERS = 6, /* u16 */
    MAREY__KERNEL_START = 16,
    MAREY__KERNEL_END = 24,
    MAREY__KERNEL_DEVICE = 40,
    MAREY__KERNEL_STREAM = 48,
    MAREY__KERNEL_GRID =
        52, /* three, and three of the block after them, then static and dynamic shared memory */
    MAREY__KERNEL_CORRELATION = 92,
    MAREY__KERNEL_NAME = 104,       /* a pointer */
    MAREY__KERNEL_GRAPH_NODE = 144, /* u64 */
    MAREY__KERNEL_GRAPH = 156,

    /* Of copies and sets alike. */
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
    MAREY__PEER_CORRELATION = 60, /* of copies between devices */
    MAREY__PEER_GRAPH_NODE = 72,
    MAREY__PEER_GRAPH = 80,

    MAREY__SYNC_TYPE = 4,
    MAREY__SYNC_START = 8,
    MAREY__SYNC_END = 16,
    MAREY__SYNC_CORRELATION = 24,
    MAREY__SYNC_STREAM = 32,

    MAREY__MEMORY_OPERATION = 4, /* 1 taken, 2 given back */
    MAREY__MEMORY_KIND = 8,
    MAREY__MEMORY_CORRELATION = 12,
    MAREY__MEMORY_ADDRESS = 16, /* u64 */
    MAREY__MEMORY_BYTES = 24,
    MAREY__MEMORY_TIME = 32,
    MAREY__MEMORY_DEVICE = 52,
    MAREY__MEMORY_STREAM = 60,
};

/* A call, as callbacks get it. */
struct marey__cupti_call {
    int site; /* 0 it begins, 1 it ends */
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
    char *old_name; /* who was there, when somebody was */
    size_t old_name_size;
};

/* X(field, symbol, result, arguments) of every function that must be there. */
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
    /* From CUDA 13.0 on; else NULL. */
    int (*subscribe_named)(void **subscriber, marey__cupti_callback *callback, void *ctx,
                           struct marey__cupti_subscription *subscription);
    uint32_t version;
    char path[512];
};

/* ---- cupti_library.c ---- */

/* CUPTI, opened once and for good. NULL with a sentence in marey_last_error() when it cannot be used. */
const struct marey__cupti *marey__cupti_open(void);

/* ---- gpu.c: on and off ---- */

/* Which calls of CUDA are recorded. */
enum marey__gpu_calls { MAREY__GPU_NO_CALLS, MAREY__GPU_ALL_CALLS, MAREY__GPU_EARLIER_CALLS };

struct marey__gpu {
    pthread_mutex_t turn; /* held while CUPTI is taken and given back, for as long as that takes */
    uint32_t n_pauses; /* while there are any, CUPTI is somebody else's. Under the turn, as the next two */
    char pause_reason[320]; /* a sentence; "" for none */
    void *subscriber;

    pthread_mutex_t lock; /* guards what follows, but for what is said to be atomic; held for moments */
    bool is_on;           /* as the user sees it */
    bool is_armed; /* CUDA is not there yet: it will call marey_gpu_injected(). Loaded without the lock too */
    bool is_child;       /* forked from a process with CUDA: there is none here */
    bool is_said_traced; /* as the recording has it: atomic */
    bool is_tracing; /* CUPTI is ours. Changed with the turn as well, so that one of both is enough to read it */
    struct marey_gpu_options schedule;

    bool has_graphs;  /* CUDA graphs exist: CUPTI is not finalized any more. Relaxed */
    bool is_injected; /* CUDA is being initialised: its driver must not be called. Relaxed */
    bool awaits_context; /* records are enabled with the first call of a context. Acquire and release */

    bool wants_syncs; /* waits of streams are recorded too, which slows each launch. Relaxed */
    const struct marey__cupti *cupti; /* relaxed: CUPTI's threads read it, and it is constant once it is set */
    int tells;                        /* an enum marey__gpu_calls. Atomic */
    uint64_t before; /* with EARLIER_CALLS: the first call that is not recorded, with bit 32; else 0. Relaxed */
    uint64_t first;     /* call that this session recorded, with bit 32; 0: none yet. Relaxed */
    void *context;      /* of CUDA, in which work was launched last. Relaxed */
    uint64_t keep_from; /* ticks; earlier work is thrown away, UINT64_MAX all. Relaxed */
    uint64_t own_until; /* ticks; earlier activity may be ours, UINT64_MAX while it is. Relaxed */
    uint32_t session;   /* counts how often CUPTI was ours: it numbers correlations anew. Relaxed */
    struct marey_gpu_counts counts; /* each added to atomically */
};
extern struct marey__gpu marey__gpu;

/* Whether only some steps are traced. The lock is held. */
static inline bool marey__gpu_has_schedule(void)
{
    return marey__gpu.schedule.active != 0 || marey__gpu.schedule.window_gap != 0;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): it is added to. */
static inline void marey__gpu_count(uint64_t *count, uint64_t n)
{
    __atomic_fetch_add(count, n, __ATOMIC_RELAXED);
}

/* CUPTI's 32 bits, unique in the process. */
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
 * Whether a call of this session came before tracing was to end, by CUPTI's numbers, which count all threads' calls and may
 * wrap. Work has the number of the call that launched it; 0 is none.
 */
static inline bool marey__gpu_is_earlier(uint32_t correlation)
{
    const uint64_t before = __atomic_load_n(&marey__gpu.before, __ATOMIC_RELAXED);
    return before == 0 || correlation == 0 || (int32_t)(correlation - (uint32_t)before) < 0;
}

/* Print a failure that no caller waits for, and note it in the recording. */
void marey__gpu_report_failure(void);
/* The session cannot go on: report the last failure and record no more. */
void marey__gpu_give_up(void);
/* Work is missing: a note in the recording. */
void marey__gpu_note_losses(void);
/* The turn is held: a pause leaves something out. */
void marey__gpu_pause_note(void);

/* ---- gpu_session.c: CUPTI is ours; the turn is held ---- */
/* Records are thrown away until marey__gpu_keep(). In a pause none is started, which is not a failure. */
marey_status marey__gpu_session_start(void);
/* What is waited for before CUPTI is given back: the current device's work, that of a context, or none at exit. */
struct marey__gpu_ending {
    bool is_exit;
    bool is_ordered; /* by another thread, which had `context`; NULL: there is no work */
    void *context;
};
void marey__gpu_session_stop(struct marey__gpu_ending ending);
/* The lock is held: keep records from now on, if CUPTI is ours and tracing is on. */
void marey__gpu_keep(void);
/* Record that a window begins or has ended, where tracing goes by windows; what is known already is not said again. */
void marey__gpu_put_traced(bool is_traced);
/* Before the first call of a context: enable records, which an injected session leaves until now. */
void marey__gpu_session_meet_context(void *context);
/* In a forked child. */
void marey__gpu_session_forget(void);
/* Once CUDA is there, so that its own handlers come after ours: at exit, take what CUPTI has. */
void marey__gpu_expect_exit(void);

/* ---- gpu_cost.c: what tracing costs a call; the calls made here are not recorded ---- */
/* Time calls of `context` (NULL: none) before CUPTI's records are enabled, and after. The first time counts. */
void marey__gpu_cost_untraced(void *context);
void marey__gpu_cost_traced(void *context);
/* A recording begins: calls are counted from here. */
void marey__gpu_cost_reset(void);
/* Write the cost so far into the recording. */
void marey__gpu_cost_record(void);

/* ---- gpu_orders.c: what a thread does; the lock is held. False: no thread could be started, and marey_gpu_settle() does it ---- */
/* Have CUPTI taken. */
bool marey__gpu_order_start(bool is_kept);
/* Report no more and give CUPTI back. Work launched before has numbers below `*bound` and is kept. Drops a pending start. */
bool marey__gpu_order_stop(uint64_t *bound);
void marey__gpu_order_drop(void);
/* In a forked child: there is no thread, and what it had to do is the parent's. False: there was nothing. */
bool marey__gpu_orders_forget(void);

/* ---- gpu_calls.c: calls on the host ---- */
/* Ask to be called for what is worth a range; sites are made the first time. */
void marey__gpu_calls_enable(const struct marey__cupti *cupti, void *subscriber);
marey__cupti_callback marey__gpu_call;
/* Report no later call. What was launched so far has a number below the one returned, as in records GPU and LAUNCH. */
uint64_t marey__gpu_calls_mark(void);
/* Calls of this thread are marey's own, and not recorded, until it says otherwise. */
void marey__gpu_calls_set_own(bool is_own);
/* No call is recorded any more, and those that were have ended, unless one takes longer than a tenth of a second. */
void marey__gpu_calls_end(void);
/* Call something of the driver and finalize CUPTI at the end of that call. False when it did not come to that. */
bool marey__gpu_finalize_in_call(const struct marey__cupti *cupti, void *subscriber);

/* ---- gpu_buffers.c: records from CUPTI ---- */
marey__cupti_request marey__gpu_buffer_request;
marey__cupti_complete marey__gpu_buffer_complete;
/* Wait for buffers that other threads have brought and not yet decoded. */
void marey__gpu_buffers_settle(void);
/* The thread that asks CUPTI for what it has, so that a kill loses little. */
void marey__gpu_poll_start(const struct marey__cupti *cupti);
void marey__gpu_poll_stop(void);

/* ---- gpu_decode.c: records to events ---- */
enum { MAREY__GPU_BATCH = 512 };
/* At most MAREY__GPU_BATCH records, which are lent. */
void marey__gpu_decode(const uint8_t *const *records, size_t n);
/* Around fork. The child has no lanes. */
void marey__gpu_decode_before_fork(void);
void marey__gpu_decode_after_fork(bool in_child);

#endif
