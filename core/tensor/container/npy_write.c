/* The header of numpy's .npy, version 1.0. */
#include <inttypes.h>

#include "tensor/container/internal.h"
#include "tensor/kernels/internal.h"

const char *marey__npy_suffix(enum marey_dtype dtype)
{
    return marey__dtype_get(dtype)->npy_suffix;
}

void marey__npy_header_put(struct marey__buf *out, const struct marey_tensor *tensor)
{
    static const char magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, 0, 0};
    const size_t start = out->len;
    marey__buf_put(out, magic, sizeof magic);
    marey__buf_printf(out, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                      marey__dtype_get(tensor->dtype)->numpy);
    for (uint32_t i = 0; i < tensor->rank; i++)
        marey__buf_printf(out, "%s%" PRId64 "%s", i > 0 ? " " : "", tensor->sizes[i],
                          i + 1 < tensor->rank || i == 0 ? "," : "");
    marey__buf_puts(out, "), }");
    while ((out->len - start) % 64 != 63 && !out->failed)
        marey__buf_put(out, " ", 1);
    marey__buf_put(out, "\n", 1);
    if (out->failed)
        return;
    const size_t n = out->len - start - sizeof magic;
    out->data[start + 8] = (char)(n & 255);
    out->data[start + 9] = (char)(n >> 8);
}
