/* Called by the CUDA driver during its initialization, in any program: starts tracing. */
#include <marey/gpu.h>

MAREY_API int InitializeInjection(void);

int InitializeInjection(void)
{
    marey_gpu_injected();
    return 1;
}
