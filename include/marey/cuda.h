/*
 * marey/cuda.h: wait for the GPU, and identify the current stream, with the CUDA libraries that the process uses.
 *
 * CUDA is not linked but loaded at run time, so one binary works with and without a GPU.
 */
#ifndef MAREY_CUDA_H
#define MAREY_CUDA_H

#include <marey/base.h>

MAREY_BEGIN_C

/*
 * Wait until the current device has finished all its work (cudaDeviceSynchronize). Uses the CUDA runtime that the process
 * has loaded; if only the driver is loaded, opens the runtime library. Returns 1 if it waited, else 0. In a process without
 * CUDA it does not wait and creates no context; it prints that once. A failed wait is also printed once. Any thread; not
 * during the capture of a CUDA graph.
 */
MAREY_API int marey_cuda_sync(void);

/*
 * Replaces the wait, for hosts with a better one (marey's Python package waits through torch when torch uses CUDA). The hook
 * is called first and returns 1: it waited, 0: nothing to wait for, -1: wait as above. NULL removes it.
 */
typedef int marey_cuda_sync_hook(void);
MAREY_API void marey_cuda_set_sync_hook(marey_cuda_sync_hook *hook);

/*
 * Returns the current stream of the calling thread, a CUstream or cudaStream_t, in `stream`; for times measured on the GPU
 * (MAREY_GPU_EVENTS). Returns 1: `stream` is set, 0: this thread does not use a GPU now, -1: use CUDA's legacy default
 * stream. Called at both ends of each measurement, on any thread. marey's Python package returns torch's current stream.
 * NULL removes it.
 */
typedef int marey_cuda_stream_hook(void **stream);
MAREY_API void marey_cuda_set_stream_hook(marey_cuda_stream_hook *hook);

/* State, as a sentence without a full stop: which library waits, or why none can. Lent until the next call. */
MAREY_API const char *marey_cuda_state(void);

MAREY_END_C
#endif
