/* The header of numpy's .npy, version 1.0. */
#include <inttypes.h>
#include <string.h>

#include "tensor/container/internal.h"

/* Types that numpy has none for are stored as unsigned integers of their width. */
static const char *descr_of(enum marey_dtype dtype)
{
    switch (dtype) {
    case MAREY_BOOL:
        return "|b1";
    case MAREY_I8:
        return "|i1";
    case MAREY_U16:
    case MAREY_BF16:
        return "<u2";
    case MAREY_I16:
        return "<i2";
    case MAREY_U32:
    case MAREY_C32:
        return "<u4";
    case MAREY_I32:
        return "<i4";
    case MAREY_U64:
        return "<u8";
    case MAREY_I64:
        return "<i8";
    case MAREY_F16:
        return "<f2";
    case MAREY_F32:
        return "<f4";
    case MAREY_F64:
        return "<f8";
    case MAREY_C64:
        return "<c8";
    case MAREY_C128:
        return "<c16";
    default:
        return "|u1";
    }
}

const char *marey__npy_suffix(enum marey_dtype dtype)
{
    switch (dtype) {
    case MAREY_BF16:
        return ".bf16.npy";
    case MAREY_C32:
        return ".complex32.npy";
    case MAREY_F8_E4M3FN:
        return ".float8_e4m3fn.npy";
    case MAREY_F8_E5M2:
        return ".float8_e5m2.npy";
    case MAREY_F8_E4M3FNUZ:
        return ".float8_e4m3fnuz.npy";
    case MAREY_F8_E5M2FNUZ:
        return ".float8_e5m2fnuz.npy";
    case MAREY_F8_E8M0FNU:
        return ".float8_e8m0fnu.npy";
    case MAREY_F4_E2M1X2:
        return ".float4_e2m1fn_x2.npy";
    case MAREY_I4X2:
        return ".int4x2.npy";
    case MAREY_U4X2:
        return ".uint4x2.npy";
    default:
        return ".npy";
    }
}

void marey__npy_header_put(struct marey__buf *out, const struct marey_tensor *tensor)
{
    static const char magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, 0, 0};
    const size_t start = out->len;
    marey__buf_put(out, magic, sizeof magic);
    marey__buf_printf(out, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                      descr_of(tensor->dtype));
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
