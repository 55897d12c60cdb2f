/* Any text as the metadata of a .bin. */
#include "fuzz.h"
#include "padded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct marey__map text = padded_copy(data, size);
    struct marey__shape shape;
    uint64_t n_bytes;
    if (marey__bin_meta_parse("fuzzed", text.data, text.len, &shape) == MAREY_OK)
        MAREY_ASSERT(marey_dtype_size(shape.dtype) > 0 && shape.rank <= MAREY_MAX_RANK &&
                     marey__shape_bytes(&shape, &n_bytes));
    free(text.data);
    return 0;
}
