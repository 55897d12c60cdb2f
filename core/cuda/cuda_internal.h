/* cuda: the few things of CUDA's runtime that libkymo calls, found at run time. Its API is <kymo/cuda.h>. */
#ifndef KYMO_CUDA_INTERNAL_H
#define KYMO_CUDA_INTERNAL_H

#include "base/base_internal.h"
#include <kymo/cuda.h>

/* In a forked child, whose parent's other threads may have held the lock. */
void kymo__cuda_after_fork(void);

#endif
