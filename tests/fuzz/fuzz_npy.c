/* Any bytes as a .npy: an accepted file contains all its numbers. */
#include "fuzz.h"
#include "padded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"x.npy", "x.bf16.npy", "x.float8_e5m2.npy"};
    struct marey__map text = padded_copy(data, size);
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++) {
        struct marey__npy npy;
        uint64_t n_bytes;
        if (marey__npy_parse(names[i], text.data, text.len, &npy) != MAREY_OK)
            continue;
        MAREY_ASSERT(marey_dtype_size(npy.shape.dtype) > 0 && npy.shape.rank <= MAREY_MAX_RANK);
        MAREY_ASSERT(marey__shape_bytes(&npy.shape, &n_bytes));
        MAREY_ASSERT(npy.data_at <= text.len && n_bytes <= text.len - npy.data_at);
    }
    free(text.data);
    return 0;
}
