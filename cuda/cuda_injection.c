/* The driver of CUDA calls this while it is initialised, in any program: start tracing now. */
#include <marey/gpu.h>

MAREY_API int InitializeInjection(void);

int InitializeInjection(void)
{
    marey_gpu_injected();
    return 1;
}
