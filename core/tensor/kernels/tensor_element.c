/* One element as text. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/internal.h"
#include "tensor/kernels/internal.h"

char *marey__part_text(const struct marey__dtype *type, const struct marey__small_text *texts,
                       const void *element, size_t k, bool is_wide, char *out, double *value)
{
    const enum marey_dtype part = (enum marey_dtype)type->part;
    uint64_t bits = 0;
    if (type->part_bits == 4)
        bits = *(const unsigned char *)element >> (4 * k) & 15;
    else
        memcpy(&bits, (const char *)element + k * (type->part_bits / 8u), type->part_bits / 8u);
    const unsigned shift = 64u - type->part_bits;
    const size_t n_word = bits != 0 ? 4 : 5;
    float narrow;
    switch ((enum marey__number_kind)type->kind) {
    case MAREY__IS_BOOL:
        memcpy(out, bits != 0 ? "true" : "false", n_word);
        return out + n_word;
    case MAREY__IS_UNSIGNED:
        return marey__u64_text(out, bits);
    case MAREY__IS_SIGNED:
        return marey__i64_text(out, (int64_t)(bits << shift) >> shift);
    case MAREY__IS_FLOAT:
        break;
    }
    if (part == MAREY_F64) {
        memcpy(value, &bits, sizeof *value);
        return isfinite(*value) ? marey__f64_text(out, *value) : NULL;
    }
    if (part == MAREY_F32) {
        memcpy(&narrow, &bits, sizeof narrow);
        *value = (double)narrow;
        if (!isfinite(narrow))
            return NULL;
        return is_wide ? marey__f64_text(out, *value) : marey__f32_text(out, narrow);
    }
    if (texts[bits].len == 0 || is_wide)
        *value = marey__small_value(part, (uint16_t)bits);
    if (texts[bits].len == 0)
        return NULL;
    if (is_wide)
        return marey__f64_text(out, *value);
    memcpy(out, texts[bits].text, sizeof texts[bits].text);
    return out + texts[bits].len;
}

/* Room for one part with its NUL. */
enum { PART_TEXT = MAREY__NUMBER_ROOM + 1 };

/* Floats without their ".0": the type is known. */
static marey_status put_part(const struct marey__dtype *type, const void *element, size_t k, char *out)
{
    const struct marey__small_text *const texts = marey__small_texts((enum marey_dtype)type->part);
    double value;
    MAREY__TRY_MEMORY(texts != NULL || !marey__is_small((enum marey_dtype)type->part));
    char *const end = marey__part_text(type, texts, element, k, false, out, &value);
    if (end == NULL)
        snprintf(out, PART_TEXT, "%s", isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
    else if (type->kind == MAREY__IS_FLOAT && end - out > 2 && memcmp(end - 2, ".0", 2) == 0)
        end[-2] = '\0';
    else
        *end = '\0';
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
