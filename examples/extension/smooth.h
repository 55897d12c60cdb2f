/* A running mean of `width` values to both sides, less at the edges. `in` and `out` have `n` values and do not overlap. */
#ifndef SMOOTH_H
#define SMOOTH_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void smooth_cpu(const double *in, double *out, size_t n, size_t width);

/* The same on the GPU. Returns NULL or an error message. */
const char *smooth_cuda(const double *in, double *out, size_t n, size_t width);

#ifdef __cplusplus
}
#endif
#endif
