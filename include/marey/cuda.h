/*
 * marey/cuda.h: wait for the GPU, and name the stream one works on, with whatever CUDA the process has.
 *
 * Nothing of CUDA is linked: its libraries are found at run time, so that one binary works with and without a GPU.
 */
#ifndef MAREY_CUDA_H
#define MAREY_CUDA_H

#include <marey/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Wait until the current device has done all work given to it (cudaDeviceSynchronize). The runtime that the process has
 * loaded is used; when it has only the driver, the runtime library is opened. A process that uses no CUDA has nothing
 * to wait for, and no context is made for it; one sentence then tells so, once. A wait that fails is told once and
 * changes nothing. 1 when it waited, else 0. Any thread; not while a CUDA graph is being captured.
 */
MAREY_API int marey_cuda_sync(void);

/*
 * A better way to wait, for a host that has one (marey's Python package goes through torch when torch uses CUDA). The hook
 * is asked first: 1 when it waited, 0 when there is nothing to wait for now, -1 to leave it to us. NULL removes it.
 */
typedef int marey_cuda_sync_hook(void);
MAREY_API void marey_cuda_set_sync_hook(marey_cuda_sync_hook *hook);

/*
 * The stream that the calling thread gives its GPU work to, for times measured on the GPU (MAREY_GPU_EVENTS): a CUstream or
 * cudaStream_t through `stream`. 1 when it is told, 0 when this thread uses no GPU now, -1 to leave it to us, which means
 * CUDA's legacy default stream. It is called at both ends of each measurement, on any thread. marey's Python package gives
 * torch's current stream. NULL removes it.
 */
typedef int marey_cuda_stream_hook(void **stream);
MAREY_API void marey_cuda_set_stream_hook(marey_cuda_stream_hook *hook);

/* How it stands, in a sentence without a full stop: which library waits, or why none can. Lent until the next call. */
MAREY_API const char *marey_cuda_state(void);

#ifdef __cplusplus
}
#endif
#endif
