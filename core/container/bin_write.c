/* What ACCV-Lab puts beside a .bin and a .png, so that its readers know what is in there. */
#include <inttypes.h>

#include "container/container_internal.h"

void kymo__bin_meta_put(struct kymo__buf *out, const struct kymo_tensor *tensor)
{
    kymo__buf_puts(out, "{\"file_data_shape\": [");
    for (uint32_t i = 0; i < tensor->rank; i++)
        kymo__buf_printf(out, "%s%" PRId64, i > 0 ? ", " : "", tensor->sizes[i]);
    kymo__buf_printf(out, "], \"file_data_dtype\": \"torch.%s\"}", kymo_dtype_name(tensor->dtype));
}

void kymo__image_meta_put(struct kymo__buf *out, double min, double max, const char *format)
{
    kymo__buf_puts(out, "{\"original_range\": [");
    kymo__json_double_put(out, min);
    kymo__buf_puts(out, ", ");
    kymo__json_double_put(out, max);
    kymo__buf_printf(out, "], \"image_format\": \"%s\"}", format);
}
