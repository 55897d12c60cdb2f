/* Any text as what stands beside a .bin. */
#include "fuzz.h"
#include "padded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kymo__map text = padded_copy(data, size);
    struct kymo__shape shape;
    uint64_t n_bytes;
    if (kymo__bin_meta_parse("fuzzed", text.data, text.len, &shape) == KYMO_OK)
        KYMO_ASSERT(kymo_dtype_size(shape.dtype) > 0 && shape.rank <= KYMO_MAX_RANK &&
                    kymo__shape_bytes(&shape, &n_bytes));
    free(text.data);
    return 0;
}
