/*
 * Writes a trace like PyTorch's profiler, of any size, reproducibly:
 *
 *   kineto_trace MEGABYTES RANK WORLD_SIZE FILE
 *
 * Steps of a data-parallel training: nested operators with shapes, a launch and its kernel for most
 * of the innermost ones, flows between the two, all-reduces on a separate stream that overlap with
 * the backward pass, copies at the start of a step. Sizes and numbers of events match a real job of
 * 128 ranks: an operator has about 290 bytes, a launch 200, a kernel 700 with a name of 300.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PID = 4037,
    MAIN_THREAD = 4037,
    AUTOGRAD_THREAD = 23695,
    COMPUTE_STREAM = 7,
    COMM_STREAM = 20,
    N_LAYERS = 48
};

struct trace {
    FILE *out;
    uint64_t n_bytes, max_bytes;
    uint64_t host_ns, gpu_ns, comm_ns; /* current time of the host and of the two streams */
    uint64_t external_id, correlation, sequence;
    uint32_t random;
    int rank, world_size;
};

/* Times are relative to this value at the end of the file, as in current traces. */
static const uint64_t base_ns = UINT64_C(1719853884000000000);

static uint32_t draw(struct trace *t, uint32_t n)
{
    t->random = t->random * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)t->random * n >> 32);
}

__attribute__((format(printf, 2, 3))) static void put(struct trace *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int n = vfprintf(t->out, fmt, args);
    va_end(args);
    t->n_bytes += n > 0 ? (uint64_t)n : 0;
}

#define US(ns) (ns) / 1000, (ns) % 1000
#define US_FMT "%" PRIu64 ".%03" PRIu64

static void put_head(struct trace *t, const char *category, const char *name, int pid, int tid,
                     uint64_t ns, uint64_t duration_ns)
{
    put(t,
        "  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d,\n"
        "    \"ts\": " US_FMT ", \"dur\": " US_FMT ",\n    \"args\": {\n      ",
        category, name, pid, tid, US(ns), US(duration_ns));
}

static void put_operator(struct trace *t, const char *name, int tid, uint64_t ns, uint64_t duration_ns)
{
    static const char *const shapes[] = {"[[8, 1024, 4096], [4096, 4096], []]", "[[8192, 4096]]",
                                         "[[8, 32, 1024, 128], [8, 32, 128, 1024], [], []]",
                                         "[[4096], [4096], [], [], []]"};
    static const char *const types[] = {"[\"c10::BFloat16\", \"c10::BFloat16\", \"Scalar\"]",
                                        "[\"c10::BFloat16\"]", "[\"float\", \"float\", \"\", \"\"]",
                                        "[\"float\", \"float\", \"Scalar\", \"Scalar\", \"\"]"};
    const uint32_t i = draw(t, 4);
    t->external_id++;
    put_head(t, "cpu_op", name, PID, tid, ns, duration_ns);
    put(t,
        "\"External id\": %" PRIu64 ",\"Record function id\": 0, \"Sequence number\": %" PRIu64
        ", \"Fwd thread id\": 0, \"Input type\": %s, \"Input Dims\": %s, \"Ev Idx\": %" PRIu64
        "\n    }\n  },\n",
        t->external_id, t->sequence, types[i], shapes[i], t->external_id - 1);
}

static void put_annotation(struct trace *t, const char *name, uint64_t ns, uint64_t duration_ns)
{
    t->external_id++;
    put_head(t, "user_annotation", name, PID, MAIN_THREAD, ns, duration_ns);
    put(t,
        "\"External id\": %" PRIu64 ",\"Record function id\": 0, \"Ev Idx\": %" PRIu64
        "\n    }\n  },\n",
        t->external_id, t->external_id - 1);
}

static void put_flow(struct trace *t, char phase, int pid, int tid, uint64_t ns)
{
    put(t,
        "  {\n    \"ph\": \"%c\", \"id\": %" PRIu64 ", \"pid\": %d, \"tid\": %d, \"ts\": " US_FMT
        ",\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"%s\n  },\n",
        phase, t->correlation, pid, tid, US(ns), phase == 'f' ? ", \"bp\": \"e\"" : "");
}

/* Dozens of template names of a few hundred bytes. */
static const char *kernel_name(struct trace *t, char *name, size_t size)
{
    static const char *const functors[] = {
        "BinaryFunctor", "CUDAFunctor_add",         "MulFunctor",
        "silu_kernel",   "direct_copy_kernel_cuda", "FillFunctor"};
    const uint32_t kind = draw(t, 4), which = draw(t, 6), width = 1u << draw(t, 3);
    if (kind == 0)
        snprintf(name, size, "ampere_bf16_s16816gemm_bf16_128x%u_ldg8_f2f_stages_32x%u_%s",
                 64 * width, width + 2, which % 2 ? "nn" : "tn");
    else if (kind == 1)
        snprintf(name, size,
                 "void at::native::vectorized_elementwise_kernel<%u, at::native::%s<c10::BFloat16, "
                 "c10::BFloat16, c10::BFloat16, "
                 "at::native::binary_internal::%s<float> >, at::detail::Array<char*, 3> >(int, "
                 "at::native::%s<c10::BFloat16, "
                 "c10::BFloat16, c10::BFloat16, at::native::binary_internal::%s<float> >, "
                 "at::detail::Array<char*, 3>)",
                 width, functors[which], functors[(which + 1) % 6], functors[which],
                 functors[(which + 1) % 6]);
    else if (kind == 2)
        snprintf(name, size,
                 "void at::native::reduce_kernel<512, %u, at::native::ReduceOp<float, "
                 "at::native::func_wrapper_t<float, "
                 "at::native::%s(at::TensorIterator&)::{lambda()#1}::operator()() "
                 "const::{lambda()#4}::operator()() "
                 "const::{lambda(float, float)#1}>, unsigned int, float, 4> "
                 ">(at::native::ReduceOp<float, "
                 "at::native::func_wrapper_t<float, "
                 "at::native::%s(at::TensorIterator&)::{lambda()#1}::operator()() "
                 "const::{lambda()#4}::operator()() const::{lambda(float, float)#1}>, unsigned "
                 "int, float, 4>)",
                 width, functors[which], functors[which]);
    else
        snprintf(name, size,
                 "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, %u, 4, false, false, "
                 "cutlass::bfloat16_t, "
                 "Flash_kernel_traits<128, 128, %u, 4, cutlass::bfloat16_t> >, false, true, false, "
                 "false, true, true, "
                 "false>(Flash_fwd_params)",
                 32 * width, 32 * width);
    return name;
}

static void put_launch(struct trace *t, const char *name, int tid, uint64_t ns, int cbid)
{
    t->correlation++;
    put_head(t, "cuda_runtime", name, PID, tid, ns, 2000 + draw(t, 4000));
    put(t,
        "\"External id\": %" PRIu64 ",      \"cbid\": %d, \"correlation\": %" PRIu64
        "\n    }\n  },\n",
        t->external_id, cbid, t->correlation);
    put_flow(t, 's', PID, tid, ns);
}

static void put_kernel(struct trace *t, const char *name, int stream, uint64_t ns,
                       uint64_t duration_ns, const char *more)
{
    put_head(t, "kernel", name, t->rank % 8, stream, ns, duration_ns);
    put(t,
        "\"External id\": %" PRIu64
        ",\n      \"queued\": 0, \"device\": %d, \"context\": 1,\n      \"stream\": %d, "
        "\"correlation\": %" PRIu64
        ",\n      \"registers per thread\": %u,\n      \"shared memory\": %u,\n"
        "      \"blocks per SM\": %u.925926,\n      \"warps per SM\": %u.703703,\n      \"grid\": "
        "[%u, 16, 1],\n"
        "      \"block\": [128, 1, 1],\n      \"est. achieved occupancy %%\": %u%s\n    }\n  },\n",
        t->external_id, t->rank % 8, stream, t->correlation, 32 + draw(t, 96), 1024 * draw(t, 48),
        draw(t, 40), draw(t, 64), 1 + draw(t, 4096), draw(t, 101), more);
    put_flow(t, 'f', t->rank % 8, stream, ns);
}

/* An operator with two nested ones, the innermost of which launches a kernel. */
static void put_layer_operator(struct trace *t, int tid)
{
    static const char *const outers[] = {"aten::linear",
                                         "aten::matmul",
                                         "aten::layer_norm",
                                         "aten::silu",
                                         "autograd::engine::evaluate_function: MmBackward0",
                                         "aten::add_"};
    static const char *const inners[] = {"aten::addmm", "aten::mm",    "aten::native_layer_norm",
                                         "aten::mul",   "MmBackward0", "aten::copy_"};
    char name[1024];
    const uint32_t i = draw(t, 6);
    const uint64_t begin = t->host_ns, length = 12000 + draw(t, 20000);
    t->sequence++;
    put_operator(t, outers[i], tid, begin, length);
    put_operator(t, inners[i], tid, begin + 1500, length - 2500);
    if (draw(t, 4) == 0)
        put_operator(t, "aten::empty", tid, begin + 2001, 999);
    const uint64_t launch = begin + length / 2;
    put_launch(t, "cudaLaunchKernel", tid, launch, 211);
    const uint64_t start = (t->gpu_ns > launch + 4000 ? t->gpu_ns : launch + 4000) + 900;
    const uint64_t duration = 1500 + draw(t, draw(t, 8) == 0 ? 200000 : 30000);
    put_kernel(t, kernel_name(t, name, sizeof name), COMPUTE_STREAM, start, duration, "");
    t->gpu_ns = start + duration;
    t->host_ns = begin + length + 500;
}

static void put_all_reduce(struct trace *t, int tid)
{
    char more[512];
    const uint64_t begin = t->host_ns;
    put_operator(t, "record_param_comms", tid, begin, 30000);
    put_launch(t, "cudaLaunchKernelExC", tid, begin + 8000, 430);
    snprintf(more, sizeof more,
             ",\n      \"Collective name\": \"allreduce\", \"In msg nelems\": 13107200, \"Out msg "
             "nelems\": 13107200, "
             "\"Group size\": %d, \"dtype\": \"BFloat16\", \"In split size\": \"[]\", \"Out split "
             "size\": \"[]\", "
             "\"Process Group Name\": \"0\", \"Process Group Description\": \"default_pg\", "
             "\"Process Group Ranks\": "
             "\"[0, 1, 2, 3, 4, 5, 6, 7]\", \"Seq\": %" PRIu64,
             t->world_size, t->sequence);
    const uint64_t start = t->comm_ns > begin + 14000 ? t->comm_ns : begin + 14000;
    const uint64_t duration = 200000 + draw(t, 400000);
    put_kernel(t, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
               COMM_STREAM, start, duration, more);
    t->comm_ns = start + duration;
    t->host_ns = begin + 32000;
}

static void put_copy(struct trace *t)
{
    put_launch(t, "cudaMemcpyAsync", MAIN_THREAD, t->host_ns, 41);
    const uint64_t start = t->gpu_ns > t->host_ns ? t->gpu_ns : t->host_ns + 6000;
    put_head(t, "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", t->rank % 8, COMPUTE_STREAM, start,
             80000);
    put(t,
        "\"External id\": %" PRIu64
        ",\n      \"device\": %d, \"context\": 1,\n      \"stream\": %d, \"correlation\": "
        "%" PRIu64
        ",\n      \"bytes\": 1048576, \"memory bandwidth (GB/s)\": 13.107200\n    }\n  },\n",
        t->external_id, t->rank % 8, COMPUTE_STREAM, t->correlation);
    put_flow(t, 'f', t->rank % 8, COMPUTE_STREAM, start);
    t->gpu_ns = start + 80000;
    t->host_ns += 9000;
}

static void put_step(struct trace *t, unsigned number)
{
    char name[64];
    const uint64_t begin = t->host_ns;
    t->host_ns += 5000;
    put_copy(t);
    for (unsigned layer = 0; layer < N_LAYERS; layer++)
        for (unsigned i = 0; i < 8; i++)
            put_layer_operator(t, MAIN_THREAD);
    const uint64_t middle = t->host_ns;
    for (unsigned layer = 0; layer < N_LAYERS; layer++) {
        for (unsigned i = 0; i < 16; i++)
            put_layer_operator(t, AUTOGRAD_THREAD);
        if (layer % 4 == 3)
            put_all_reduce(t, AUTOGRAD_THREAD);
    }
    put_annotation(t, "## forward ##", begin + 1000, middle - begin - 1000);
    put_annotation(t, "## backward ##", middle, t->host_ns - middle);
    /* The host waits for both streams at a step's end. */
    const uint64_t end = t->gpu_ns > t->comm_ns ? t->gpu_ns : t->comm_ns;
    t->host_ns = end > t->host_ns ? end + 20000 : t->host_ns;
    snprintf(name, sizeof name, "ProfilerStep#%u", number);
    put_annotation(t, name, begin, t->host_ns - begin);
}

static void put_frame(struct trace *t)
{
    put(t, "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n");
    for (int i = 0; i < 8; i++)
        put(t,
            "    {\n      \"id\": %d, \"name\": \"NVIDIA A100-SXM4-80GB\", \"totalGlobalMem\": "
            "85051572224,\n"
            "      \"computeMajor\": 8, \"computeMinor\": 0, \"numSms\": 108\n    }%s\n",
            i, i < 7 ? "," : "");
    put(t,
        "  ],\n  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, \"world_size\": %d},\n "
        " \"record_shapes\": 1,\n"
        "  \"traceEvents\": [\n",
        t->rank, t->world_size);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "kineto_trace MEGABYTES RANK WORLD_SIZE FILE\n");
        return 2;
    }
    struct trace t = {.max_bytes = strtoull(argv[1], NULL, 10) * 1000000,
                      .rank = atoi(argv[2]),
                      .world_size = atoi(argv[3]),
                      .host_ns = UINT64_C(4458676983543183),
                      .random = 1 + (uint32_t)atoi(argv[2])};
    t.out = fopen(argv[4], "w");
    if (t.out == NULL) {
        perror(argv[4]);
        return 1;
    }
    static char buffer[1 << 20];
    setvbuf(t.out, buffer, _IOFBF, sizeof buffer);
    put_frame(&t);
    for (unsigned step = 1; step == 1 || t.n_bytes < t.max_bytes; step++)
        put_step(&t, step);
    put(&t,
        "  {\n    \"name\": \"process_name\", \"ph\": \"M\", \"ts\": 1, \"pid\": %d, \"tid\": 0,\n "
        "   \"args\": {\n"
        "      \"name\": \"python\"\n    }\n  }\n  ],\"traceName\": \"trace.json\", "
        "\"displayTimeUnit\": \"ms\", "
        "\"baseTimeNanoseconds\": %" PRIu64 "\n}\n",
        PID, base_ns);
    if (fclose(t.out) != 0) {
        perror(argv[4]);
        return 1;
    }
    return 0;
}
