/* The driver of CUDA calls this while it is initialised, in whatever program that is: the moment to start tracing. */
#include <kymo/gpu.h>

KYMO_API int InitializeInjection(void);

int InitializeInjection(void)
{
    kymo_gpu_injected();
    return 1;
}
