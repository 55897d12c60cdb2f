/* The kernels for any CPU. */
#include <stddef.h>
#include <stdint.h>

#define KERNELS marey__kernels_plain
#define KERNELS_NAME "plain"
#define VECTOR_BYTES 16
#include "tensor/kernels/kernels.h"
