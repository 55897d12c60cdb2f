/*
 * A program that uses CUDA by its driver alone and knows nothing of marey: what GPU tracing is judged by. It says what it
 * did, one "name number" a line.
 *
 *   cuda_program count       kernels on two streams, copies, a memset
 *   cuda_program times       kernels of 5 ms, each timed by events
 *   cuda_program overlap     computation and communication on two streams, a known part of it at the same time
 *   cuda_program graph       a graph of three kernels, launched ten times
 *   cuda_program exit        leaves while a kernel runs
 *   cuda_program fork        forks after CUDA was initialised, and goes on
 *   cuda_program endless     launches until it is killed
 *   cuda_program clocks      one kernel at a time, with the host waiting for each
 *
 * CUDA's names are declared here as far as they are used; the library is opened at run time.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void *handle;

/* Each kernel spins for a number of nanoseconds. */
#define KERNEL(name)                                                                               \
    ".visible .entry " name "(.param .u64 ns) {\n"                                                 \
    " .reg .u64 %begin, %now, %ns; .reg .pred %p;\n"                                               \
    " ld.param.u64 %ns, [ns];\n"                                                                   \
    " mov.u64 %begin, %globaltimer;\n"                                                             \
    "again: mov.u64 %now, %globaltimer;\n"                                                         \
    " sub.u64 %now, %now, %begin;\n"                                                               \
    " setp.lt.u64 %p, %now, %ns;\n"                                                                \
    " @%p bra again;\n"                                                                            \
    " ret;\n}\n"
static const char module_text[] =
    ".version 6.0\n.target sm_60\n.address_size 64\n" KERNEL("_Z4spinm") KERNEL("gemm_compute")
        KERNEL("ncclDevKernel_AllReduce_Sum_f32_RING_LL");

#define FUNCTIONS(X)                                                                               \
    X(cuInit, "cuInit", (unsigned flags))                                                          \
    X(cuDeviceGet, "cuDeviceGet", (int *device, int ordinal))                                      \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (handle * context, int device))        \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", (handle context))                                        \
    X(cuCtxSynchronize, "cuCtxSynchronize", (void))                                                \
    X(cuModuleLoadData, "cuModuleLoadData", (handle * module, const void *image))                  \
    X(cuModuleGetFunction, "cuModuleGetFunction",                                                  \
      (handle * function, handle module, const char *name))                                        \
    X(cuStreamCreate, "cuStreamCreate", (handle * stream, unsigned flags))                         \
    X(cuStreamSynchronize, "cuStreamSynchronize", (handle stream))                                 \
    X(cuLaunchKernel, "cuLaunchKernel",                                                            \
      (handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,           \
       unsigned bz, unsigned shared, handle stream, void **params, void **extra))                  \
    X(cuMemAlloc, "cuMemAlloc_v2", (uint64_t * address, size_t bytes))                             \
    X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                                   \
      (uint64_t to, const void *from, size_t bytes, handle stream))                                \
    X(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void *to, uint64_t from, size_t bytes))                    \
    X(cuMemsetD8Async, "cuMemsetD8Async", (uint64_t at, uint8_t value, size_t n, handle stream))   \
    X(cuEventCreate, "cuEventCreate", (handle * event, unsigned flags))                            \
    X(cuEventRecord, "cuEventRecord", (handle event, handle stream))                               \
    X(cuEventElapsedTime, "cuEventElapsedTime", (float *ms, handle begin, handle end))             \
    X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (handle stream, int mode))                  \
    X(cuStreamEndCapture, "cuStreamEndCapture", (handle stream, handle * graph))                   \
    X(cuGraphInstantiate, "cuGraphInstantiateWithFlags",                                           \
      (handle * executable, handle graph, unsigned long long flags))                               \
    X(cuGraphLaunch, "cuGraphLaunch", (handle executable, handle stream))

#define DECLARE(name, symbol, arguments) static int(*name) arguments;
FUNCTIONS(DECLARE)

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const int error_ = (call);                                                                 \
        if (error_ != 0) {                                                                         \
            fprintf(stderr, "%s: error %d\n", #call, error_);                                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static handle streams[2], spin, compute, communicate;

static handle function_of(handle module, const char *name)
{
    handle function;
    TRY(cuModuleGetFunction(&function, module, name));
    return function;
}

static void set_up(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(77);
    }
#define FIND(name, symbol, arguments) *(void **)&name = dlsym(driver, symbol);
    FUNCTIONS(FIND)
    handle context, module;
    int device;
    TRY(cuInit(0));
    TRY(cuDeviceGet(&device, 0));
    TRY(cuDevicePrimaryCtxRetain(&context, device));
    TRY(cuCtxSetCurrent(context));
    TRY(cuModuleLoadData(&module, module_text));
    spin = function_of(module, "_Z4spinm");
    compute = function_of(module, "gemm_compute");
    communicate = function_of(module, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    for (int i = 0; i < 2; i++)
        TRY(cuStreamCreate(&streams[i], 1)); /* does not wait for the default stream */
}

static void launch(handle function, int stream, uint64_t ns)
{
    void *params[] = {&ns};
    TRY(cuLaunchKernel(function, 3, 2, 1, 32, 1, 1, 0, streams[stream], params, NULL));
}

static void count(void)
{
    enum { BYTES = 1 << 20, A = 700, B = 300, COPIES = 5 };
    uint64_t at;
    char *host = calloc(1, BYTES);
    TRY(cuMemAlloc(&at, BYTES));
    for (int i = 0; i < A; i++) {
        launch(spin, 0, 1000);
        if (i < B)
            launch(compute, 1, 1000);
    }
    for (int i = 0; i < COPIES; i++)
        TRY(cuMemcpyHtoDAsync(at, host, BYTES, streams[0]));
    TRY(cuMemsetD8Async(at, 1, BYTES, streams[0]));
    TRY(cuCtxSynchronize());
    TRY(cuMemcpyDtoH(host, at, BYTES));
    printf("spin %d\ncompute %d\ncopies_in %d\ncopies_out 1\nsets 1\nbytes %d\nfirst %d\n", A, B,
           COPIES, BYTES, host[0]);
}

static void times(void)
{
    enum { N = 20 };
    handle begin[N], end[N];
    for (int i = 0; i < N; i++) {
        TRY(cuEventCreate(&begin[i], 0));
        TRY(cuEventCreate(&end[i], 0));
        TRY(cuEventRecord(begin[i], streams[0]));
        launch(spin, 0, 5000000);
        TRY(cuEventRecord(end[i], streams[0]));
    }
    TRY(cuCtxSynchronize());
    double sum = 0;
    for (int i = 0; i < N; i++) {
        float ms;
        TRY(cuEventElapsedTime(&ms, begin[i], end[i]));
        sum += ms;
    }
    printf("kernels %d\nmicroseconds %.0f\n", N, sum * 1000);
}

/* Both begin together: communication of 60 ms, of which 40 lie under computation. */
static void overlap(void)
{
    launch(compute, 0, 1); /* the code of a kernel is loaded with its first launch */
    launch(communicate, 1, 1);
    TRY(cuCtxSynchronize());
    for (int i = 0; i < 5; i++) {
        launch(compute, 0, 40000000);
        launch(communicate, 1, 60000000);
        TRY(cuCtxSynchronize());
    }
    puts("compute_ms 200\nhidden_ms 200\nexposed_ms 100");
}

static void graph(void)
{
    handle captured, executable;
    TRY(cuStreamBeginCapture(streams[0], 0));
    for (int i = 0; i < 3; i++)
        launch(spin, 0, 20000);
    TRY(cuStreamEndCapture(streams[0], &captured));
    TRY(cuGraphInstantiate(&executable, captured, 0));
    for (int i = 0; i < 10; i++)
        TRY(cuGraphLaunch(executable, streams[0]));
    TRY(cuCtxSynchronize());
    puts("kernels 30\nlaunches 10\nnodes 3");
}

static void leave(void)
{
    for (int i = 0; i < 10; i++)
        launch(spin, 0, 1000);
    TRY(cuCtxSynchronize());
    launch(compute, 0, 500000000);
    puts("spin 10");
}

static void fork_and_go_on(void)
{
    launch(spin, 0, 1000);
    const pid_t child = fork();
    if (child == 0)
        exit(0);
    waitpid(child, NULL, 0);
    launch(spin, 0, 1000);
    TRY(cuCtxSynchronize());
    puts("spin 2");
}

static void endless(void)
{
    for (int i = 0;; i++) {
        launch(spin, 0, 100000);
        TRY(cuCtxSynchronize());
        if (i == 5000) {
            puts("ready");
            fflush(stdout);
        }
    }
}

static void clocks(void)
{
    for (int i = 0; i < 500; i++) {
        launch(spin, 0, 100000);
        TRY(cuStreamSynchronize(streams[0]));
    }
    puts("kernels 500");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"count", count},     {"times", times},  {"overlap", overlap},
                 {"graph", graph},     {"exit", leave},   {"fork", fork_and_go_on},
                 {"endless", endless}, {"clocks", clocks}};
    set_up();
    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && argc > 1; i++)
        if (strcmp(argv[1], modes[i].name) == 0) {
            modes[i].run();
            return 0;
        }
    return 2;
}
