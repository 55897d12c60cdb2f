/*
 * A fake GPU: libraries with the names of CUDA's runtime, driver and CUPTI, for tests of GPU
 * tracing on machines without a GPU. The runtime reports its calls to the fake CUPTI, which calls
 * back and delivers records like the real one.
 */
#ifndef MAREY_TEST_STAND_IN_H
#define MAREY_TEST_STAND_IN_H

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

enum { DOMAIN_DRIVER = 1, DOMAIN_RUNTIME = 2 };

/* Numbers of calls, as CUPTI has them for these names. */
enum {
    CALL_GET_DEVICE = 17,
    CALL_MALLOC = 20,
    CALL_FREE = 22,
    CALL_HOST_ALLOC = 27,
    CALL_MEMCPY_ASYNC = 41,
    CALL_MEMSET_ASYNC = 51,
    CALL_STREAM_SYNC = 131,
    CALL_DEVICE_SYNC = 165,
    CALL_LAUNCH_KERNEL = 211,
    CALL_GRAPH_LAUNCH = 311,
    CALL_CU_DEVICE_GET_COUNT = 4, /* of the driver, as the next */
    CALL_CU_LAUNCH_KERNEL = 307,
};

enum { MEMSET_TRACED_NS = 20000 }; /* what tracing adds to a memset of the driver */

enum { KIND_MEMCPY = 1, KIND_MEMSET = 2, KIND_KERNEL = 10, KIND_SYNC = 38, KIND_MEMORY = 49 };

/* Records as CUDA 12.0 has them; later ones are longer. */
struct kernel_record {
    uint32_t kind;
    uint8_t cache_config, shared_config;
    uint16_t registers;
    uint32_t partitioned_requested, partitioned_executed;
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3], static_memory, dynamic_memory;
    uint32_t local_per_thread, local_total, correlation;
    int64_t grid_id;
    const char *name;
    void *reserved;
    uint64_t queued, submitted;
    uint8_t launch_type, is_shared_requested, carveout_requested, carveout_executed;
    uint32_t shared_executed;
    uint64_t graph_node;
    uint32_t shared_limit, graph;
    char rest[64];
};

struct copy_record { /* and memsets */
    uint32_t kind;
    uint8_t copy_kind, from, to, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint16_t set_flags, set_memory;
    uint32_t runtime_correlation;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
    char rest[32];
};

struct sync_record {
    uint32_t kind, type;
    uint64_t start, end;
    uint32_t correlation, context, stream, event;
    char rest[24];
};

struct memory_record {
    uint32_t kind, operation, memory, correlation;
    uint64_t address, bytes, timestamp, pc;
    uint32_t process, device, context, stream;
    char rest[96];
};

/* ---- functions of the fake CUPTI for the other libraries ---- */
typedef void standin_call_fn(int domain, uint32_t number, int is_end, uint32_t correlation);
typedef void standin_record_fn(const void *record, size_t size);
typedef uint64_t standin_clock_fn(void);
typedef void standin_release_fn(uint64_t end);
typedef uint32_t standin_number_fn(void);
typedef void standin_gate_fn(int is_shut);

/* ---- of the runtime, for programs ---- */
EXPORT void gpu_launch(const char *name, uint32_t stream, uint32_t grid, uint32_t block);
EXPORT void gpu_launch_by_driver(const char *name, uint32_t stream);
EXPORT void gpu_graph(uint32_t n_kernels, uint32_t stream, uint32_t graph);
EXPORT void gpu_copy(uint64_t bytes, uint32_t stream);
EXPORT void gpu_set(uint64_t bytes, uint32_t stream);
EXPORT uint64_t gpu_take(uint64_t bytes); /* the address */
EXPORT void gpu_give(uint64_t address, uint64_t bytes);
EXPORT void gpu_take_pinned(uint64_t bytes);
EXPORT void gpu_ask(void); /* cudaGetDevice, of which programs call thousands */
EXPORT int cudaDeviceSynchronize(void);
/* From now on work has not ended, until cudaDeviceSynchronize(). */
EXPORT void gpu_hold(void);
/* A launch whose work the GPU did before the last one's. */
EXPORT void gpu_launch_late(const char *name, uint32_t stream);

#endif
