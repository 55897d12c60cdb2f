/* Any bytes as a .npy: what is accepted has all its numbers in the file. */
#include "fuzz.h"
#include "padded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"x.npy", "x.bf16.npy", "x.float8_e5m2.npy"};
    struct kymo__map text = padded_copy(data, size);
    for (size_t i = 0; i < KYMO__COUNT_OF(names); i++) {
        struct kymo__npy npy;
        uint64_t n_bytes;
        if (kymo__npy_parse(names[i], text.data, text.len, &npy) != KYMO_OK)
            continue;
        KYMO_ASSERT(kymo_dtype_size(npy.shape.dtype) > 0 && npy.shape.rank <= KYMO_MAX_RANK);
        KYMO_ASSERT(kymo__shape_bytes(&npy.shape, &n_bytes));
        KYMO_ASSERT(npy.data_at <= text.len && n_bytes <= text.len - npy.data_at);
    }
    free(text.data);
    return 0;
}
