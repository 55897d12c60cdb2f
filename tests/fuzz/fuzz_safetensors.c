/* Any bytes as a safetensors file: what is accepted tiles the data. */
#include "fuzz.h"
#include "padded.h"

static kymo_status visit(void *ctx, const char *name, size_t len, const struct kymo__shape *shape,
                         uint64_t offset)
{
    uint64_t *const end = ctx, n_bytes;
    KYMO_ASSERT(strlen(name) <= len && offset == *end && kymo__shape_bytes(shape, &n_bytes));
    *end += n_bytes;
    return KYMO_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kymo__map text = padded_copy(data, size);
    uint64_t end = 0;
    size_t data_at;
    if (kymo__safetensors_parse("fuzzed", text.data, text.len, visit, &end, &data_at) == KYMO_OK)
        KYMO_ASSERT(data_at + end == text.len);
    free(text.data);
    return 0;
}
