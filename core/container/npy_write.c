/* The header of numpy's .npy, version 1.0. */
#include <inttypes.h>
#include <string.h>

#include "container/container_internal.h"

/* Types that numpy has none for are stored as unsigned integers of their width. */
static const char *descr_of(enum kymo_dtype dtype)
{
    switch (dtype) {
    case KYMO_BOOL:
        return "|b1";
    case KYMO_I8:
        return "|i1";
    case KYMO_U16:
    case KYMO_BF16:
        return "<u2";
    case KYMO_I16:
        return "<i2";
    case KYMO_U32:
    case KYMO_C32:
        return "<u4";
    case KYMO_I32:
        return "<i4";
    case KYMO_U64:
        return "<u8";
    case KYMO_I64:
        return "<i8";
    case KYMO_F16:
        return "<f2";
    case KYMO_F32:
        return "<f4";
    case KYMO_F64:
        return "<f8";
    case KYMO_C64:
        return "<c8";
    case KYMO_C128:
        return "<c16";
    default:
        return "|u1";
    }
}

const char *kymo__npy_suffix(enum kymo_dtype dtype)
{
    switch (dtype) {
    case KYMO_BF16:
        return ".bf16.npy";
    case KYMO_C32:
        return ".complex32.npy";
    case KYMO_F8_E4M3FN:
        return ".float8_e4m3fn.npy";
    case KYMO_F8_E5M2:
        return ".float8_e5m2.npy";
    case KYMO_F8_E4M3FNUZ:
        return ".float8_e4m3fnuz.npy";
    case KYMO_F8_E5M2FNUZ:
        return ".float8_e5m2fnuz.npy";
    case KYMO_F8_E8M0FNU:
        return ".float8_e8m0fnu.npy";
    case KYMO_F4_E2M1X2:
        return ".float4_e2m1fn_x2.npy";
    case KYMO_I4X2:
        return ".int4x2.npy";
    case KYMO_U4X2:
        return ".uint4x2.npy";
    default:
        return ".npy";
    }
}

void kymo__npy_header_put(struct kymo__buf *out, const struct kymo_tensor *tensor)
{
    static const char magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, 0, 0};
    const size_t start = out->len;
    kymo__buf_put(out, magic, sizeof magic);
    kymo__buf_printf(out, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                     descr_of(tensor->dtype));
    for (uint32_t i = 0; i < tensor->rank; i++)
        kymo__buf_printf(out, "%s%" PRId64 "%s", i > 0 ? " " : "", tensor->sizes[i],
                         i + 1 < tensor->rank || i == 0 ? "," : "");
    kymo__buf_puts(out, "), }");
    while ((out->len - start) % 64 != 63 && !out->failed)
        kymo__buf_put(out, " ", 1);
    kymo__buf_put(out, "\n", 1);
    if (out->failed)
        return;
    const size_t n = out->len - start - sizeof magic;
    out->data[start + 8] = (char)(n & 255);
    out->data[start + 9] = (char)(n >> 8);
}
