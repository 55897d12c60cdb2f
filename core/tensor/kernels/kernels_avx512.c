/* The kernels for AVX-512 (F, BW, DQ, VL), compiled with separate flags. */
#include <stddef.h>
#include <stdint.h>

#define KERNELS marey__kernels_avx512
#define KERNELS_NAME "avx512"
#define VECTOR_BYTES 64
#include "tensor/kernels/kernels.h"
