/* The kernels for processors with AVX-512 (F, BW, DQ, VL), compiled with flags of their own. */
#include <stddef.h>
#include <stdint.h>

#define KERNELS marey__kernels_avx512
#define KERNELS_NAME "avx512"
#include "tensor/kernels/vector_avx512.h"

#include "tensor/kernels/kernels.h"
