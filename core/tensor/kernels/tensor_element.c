/* One element as text. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/internal.h"
#include "tensor/kernels/internal.h"

/* Room for one part, with a NUL. */
enum { PART_TEXT = MAREY__NUMBER_ROOM + 1 };

/* Without the ".0" of floats: the type is known. */
static void end_text(const char *out, char *end)
{
    *end = '\0';
    if (end - out > 2 && strcmp(end - 2, ".0") == 0)
        end[-2] = '\0';
}

static marey_status put_finite(const struct marey__dtype *type, const unsigned char *element,
                               size_t k, double value, char *out)
{
    const enum marey_dtype part = (enum marey_dtype)type->part;
    if (part == MAREY_F64) {
        end_text(out, marey__f64_text(out, value));
        return MAREY_OK;
    }
    if (part == MAREY_F32) {
        end_text(out, marey__f32_text(out, (float)value));
        return MAREY_OK;
    }
    const struct marey__small_text *texts = marey__small_texts(part);
    MAREY__TRY_MEMORY(texts != NULL);
    uint16_t bits = element[0];
    if (type->part_bits == 16)
        memcpy(&bits, element + 2 * k, sizeof bits);
    else if (type->part_bits == 4)
        bits = k == 0 ? element[0] & 15 : element[0] >> 4;
    memcpy(out, texts[bits].text, texts[bits].len);
    end_text(out, out + texts[bits].len);
    return MAREY_OK;
}

static marey_status put_part(const struct marey__dtype *type, const unsigned char *element,
                             size_t k, char *out)
{
    double values[2];
    uint64_t unsigned_one;
    int64_t signed_one;
    if (type->part == MAREY_U64) {
        memcpy(&unsigned_one, element, sizeof unsigned_one);
        *marey__u64_text(out, unsigned_one) = '\0';
        return MAREY_OK;
    }
    if (type->part == MAREY_I64) {
        memcpy(&signed_one, element, sizeof signed_one);
        *marey__i64_text(out, signed_one) = '\0';
        return MAREY_OK;
    }
    marey__widen_to_double((enum marey_dtype)type->part, element, type->n_parts, values);
    if (type->kind == MAREY__IS_BOOL)
        snprintf(out, PART_TEXT, "%s", values[k] != 0 ? "true" : "false");
    else if (type->kind != MAREY__IS_FLOAT)
        *marey__i64_text(out, (int64_t)values[k]) = '\0';
    else if (!isfinite(values[k]))
        snprintf(out, PART_TEXT, "%s",
                 isnan(values[k]) ? "NaN"
                 : values[k] > 0  ? "Infinity"
                                  : "-Infinity");
    else
        return put_finite(type, element, k, values[k], out);
    return MAREY_OK;
}

marey_status marey_tensor_element(const struct marey_tensor *tensor, uint64_t i, char *out,
                                  size_t size)
{
    MAREY_TRY(marey__tensor_check_readable(tensor));
    const uint64_t n = marey_tensor_count(tensor);
    if (i >= n)
        return marey__fail(MAREY_EINVAL, "element %" PRIu64 " of a tensor with %" PRIu64, i, n);
    struct marey__tensor_view view;
    marey__tensor_view_of(tensor, &view);
    unsigned char room[16];
    const unsigned char *element = marey__tensor_view_block(&view, i, 1, room);
    MAREY_TRY(marey__tensor_read_status(tensor));
    char parts[2][PART_TEXT];
    for (size_t k = 0; k < view.type->n_parts; k++)
        MAREY_TRY(put_part(view.type, element, k, parts[k]));
    const int len = view.type->n_parts == 2 ? snprintf(out, size, "(%s,%s)", parts[0], parts[1])
                                            : snprintf(out, size, "%s", parts[0]);
    return len >= 0 && (size_t)len < size
               ? MAREY_OK
               : marey__fail(MAREY_EINVAL, "%zu bytes for the text of an element; it takes %d",
                             size, len + 1);
}
