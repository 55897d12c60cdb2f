/*
 * What marey uses of CUPTI, as its binary interface has it from CUDA 12.0 to 13.4: numbers, and where fields lie in
 * records. Records grew at their ends only in that time, so that one table fits all.
 */
#ifndef MAREY_CUPTI_H
#define MAREY_CUPTI_H

#include <stddef.h>
#include <stdint.h>

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
        52, /* three, and three of the block behind them, then static and dynamic shared memory */
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

/* What a callback is told of a call. */
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

#endif
