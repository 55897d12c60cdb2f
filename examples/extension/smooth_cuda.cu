/*
 * The running mean in CUDA. A range around a launch has the time of the launch on the host. The
 * kernel continues to run, and the host waits for it in the range "wait".
 */
#include "smooth.h"

#include <cuda_runtime.h>
#include <marey/marey.h>

namespace {

__global__ void mean_kernel(const double *in, double *out, size_t n, size_t width)
{
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const size_t first = i > width ? i - width : 0;
    const size_t end = n - i > width ? i + width + 1 : n;
    double sum = 0;
    for (size_t j = first; j < end; j++)
        sum += in[j];
    out[i] = sum / (double)(end - first);
}

/* GPU memory, freed on every return. */
class device_values {
  public:
    explicit device_values(size_t n) : status(cudaMalloc(&values, n * sizeof *values))
    {
    }
    ~device_values()
    {
        cudaFree(values);
    }
    device_values(const device_values &) = delete;
    device_values &operator=(const device_values &) = delete;

    double *values = nullptr;
    cudaError_t status;
};

cudaError_t run(const double *in, double *out, size_t n, size_t width)
{
    constexpr unsigned block = 256;
    device_values from(n), to(n);
    cudaError_t status = from.status != cudaSuccess ? from.status : to.status;
    if (status != cudaSuccess)
        return status;
    MAREY_RANGE ("copy in", .category = "gpu")
        status = cudaMemcpy(from.values, in, n * sizeof *in, cudaMemcpyHostToDevice);
    if (status != cudaSuccess)
        return status;
    {
        marey::scope scope(MAREY_ID("launch", .category = "gpu"));
        mean_kernel<<<(unsigned)((n + block - 1) / block), block>>>(from.values, to.values, n, width);
        status = cudaGetLastError();
    }
    if (status != cudaSuccess)
        return status;
    MAREY_RANGE ("wait", .category = "gpu")
        status = cudaDeviceSynchronize();
    if (status != cudaSuccess)
        return status;
    MAREY_SCOPE("copy out", .category = "gpu");
    return cudaMemcpy(out, to.values, n * sizeof *out, cudaMemcpyDeviceToHost);
}

} // namespace

const char *smooth_cuda(const double *in, double *out, size_t n, size_t width)
{
    MAREY_SCOPE("mean on the GPU", .category = "gpu");
    const cudaError_t status = n > 0 ? run(in, out, n, width) : cudaSuccess;
    return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
