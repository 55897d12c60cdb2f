/* The kernels for any processor. */
#include <stddef.h>
#include <stdint.h>

#define KERNELS marey__kernels_plain
#define KERNELS_NAME "plain"
#include "tensor/kernels/vector_plain.h"

#include "tensor/kernels/kernels.h"
