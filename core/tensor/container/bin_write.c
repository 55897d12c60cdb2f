/* What ACCV-Lab puts beside a .bin and a .png, so that its readers know what is in there. */
#include <inttypes.h>
#include <math.h>

#include "tensor/container/internal.h"

void marey__bin_meta_put(struct marey__buf *out, const struct marey_tensor *tensor)
{
    marey__buf_puts(out, "{\n  \"file_data_shape\": [");
    for (uint32_t i = 0; i < tensor->rank; i++)
        marey__buf_printf(out, "%s\n    %" PRId64, i > 0 ? "," : "", tensor->sizes[i]);
    marey__buf_printf(out, "%s],\n  \"file_data_dtype\": \"torch.%s\"\n}",
                      tensor->rank > 0 ? "\n  " : "", marey_dtype_name(tensor->dtype));
}

void marey__image_meta_put(struct marey__buf *out, enum marey_dtype dtype, double min, double max,
                           const char *format)
{
    const double range[] = {min, max};
    int64_t integers[] = {0, 0};
    const bool is_integer =
        dtype >= MAREY_U8 && dtype <= MAREY_I64 && fabs(min) < 0x1p63 && fabs(max) < 0x1p63;
    for (int i = 0; i < 2 && is_integer; i++)
        integers[i] = (int64_t)range[i];
    const struct marey_tensor both = {.data = is_integer ? (const void *)integers : range,
                                      .dtype = is_integer ? MAREY_I64 : MAREY_F64,
                                      .rank = 1,
                                      .sizes = (const int64_t[]){2}};
    const struct marey__json_style style = {.nan = MAREY__NAN_WORD, .level = 1, .is_python = true};
    marey__buf_puts(out, "{\n  \"original_range\": ");
    if (marey__json_tensor_put(out, &both, &style) != MAREY_OK)
        out->failed = true;
    marey__buf_printf(out, ",\n  \"image_format\": \"%s\"\n}", format);
}
