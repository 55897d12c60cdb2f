/* The kernels for processors with AVX2, FMA and F16C, compiled with flags of their own. */
#include <stddef.h>
#include <stdint.h>

#define KERNELS marey__kernels_avx2
#define KERNELS_NAME "avx2"
#define VECTOR_BYTES 32
#include "tensor/kernels/kernels.h"
