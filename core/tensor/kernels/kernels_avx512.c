/* The kernels for processors with AVX-512 (F, BW, DQ, VL), compiled with flags of their own. */
#include <stddef.h>
#include <stdint.h>

#define KERNELS marey__kernels_avx512
#define KERNELS_NAME "avx512"
#define VECTOR_BYTES 64
#include "tensor/kernels/kernels.h"
