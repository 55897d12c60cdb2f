/* One element as text. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/tensor_internal.h"

/* Room for one part. */
enum { PART_TEXT = 32 };

static bool reads_back(enum kymo_dtype part, const char *text, double value)
{
    const double read = strtod(text, NULL);
    if (part == KYMO_F64)
        return read == value;
    if (part == KYMO_F32)
        return (float)read == (float)value;
    float narrow;
    const uint32_t raw = kymo__narrow(part, read);
    kymo__widen(part, &raw, 1, &narrow);
    return narrow == (float)value;
}

static void put_float(enum kymo_dtype part, double value, char *out)
{
    if (isnan(value)) {
        strcpy(out, "NaN");
        return;
    }
    if (isinf(value)) {
        strcpy(out, value > 0 ? "Infinity" : "-Infinity");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, PART_TEXT, "%.*g", digits, value);
        if (reads_back(part, out, value))
            break;
    }
}

static void put_part(const struct kymo__dtype *type, const unsigned char *element, size_t k, char *out)
{
    double values[2];
    uint64_t unsigned_one;
    int64_t signed_one;
    switch (type->part) {
    case KYMO_BOOL:
        strcpy(out, element[0] != 0 ? "true" : "false");
        break;
    case KYMO_U64:
        memcpy(&unsigned_one, element, sizeof unsigned_one);
        snprintf(out, PART_TEXT, "%" PRIu64, unsigned_one);
        break;
    case KYMO_I64:
        memcpy(&signed_one, element, sizeof signed_one);
        snprintf(out, PART_TEXT, "%" PRId64, signed_one);
        break;
    default:
        kymo__widen_to_double((enum kymo_dtype)type->part, element, type->n_parts, values);
        if (type->kind == KYMO__IS_FLOAT)
            put_float((enum kymo_dtype)type->part, values[k], out);
        else
            snprintf(out, PART_TEXT, "%.0f", values[k]);
        break;
    }
}

kymo_status kymo_tensor_element(const struct kymo_tensor *tensor, uint64_t i, char *out, size_t size)
{
    KYMO_TRY(kymo__tensor_check_host(tensor));
    const uint64_t n = kymo_tensor_count(tensor);
    if (i >= n)
        return kymo__fail(KYMO_EINVAL, "element %" PRIu64 " of a tensor with %" PRIu64, i, n);
    struct kymo__tensor_view view;
    kymo__tensor_view_of(tensor, &view);
    unsigned char room[16];
    const unsigned char *element = kymo__tensor_view_block(&view, i, 1, room);
    char parts[2][PART_TEXT];
    for (size_t k = 0; k < view.type->n_parts; k++)
        put_part(view.type, element, k, parts[k]);
    const int len = view.type->n_parts == 2 ? snprintf(out, size, "(%s,%s)", parts[0], parts[1])
                                            : snprintf(out, size, "%s", parts[0]);
    return len >= 0 && (size_t)len < size
               ? KYMO_OK
               : kymo__fail(KYMO_EINVAL, "%zu bytes for the text of an element; it takes %d", size,
                            len + 1);
}
