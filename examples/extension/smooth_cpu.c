/* The running mean in C. */
#include "smooth.h"

#include <marey/marey.h>

void smooth_cpu(const double *in, double *out, size_t n, size_t width)
{
    MAREY_SCOPE("mean", .category = "cpu");
    for (size_t i = 0; i < n; i++) {
        const size_t first = i > width ? i - width : 0;
        const size_t end = n - i > width ? i + width + 1 : n;
        double sum = 0;
        for (size_t j = first; j < end; j++)
            sum += in[j];
        out[i] = sum / (double)(end - first);
    }
}
