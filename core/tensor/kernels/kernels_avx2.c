/* The kernels for AVX2, FMA and F16C, compiled with separate flags. */
#include <stddef.h>
#include <stdint.h>

#define KERNELS marey__kernels_avx2
#define KERNELS_NAME "avx2"
#define VECTOR_BYTES 32
#include "tensor/kernels/kernels.h"
