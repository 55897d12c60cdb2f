/* Any bytes as a safetensors file: tensors of an accepted file tile the data. */
#include "fuzz.h"
#include "padded.h"

static marey_status visit(void *ctx, const char *name, size_t len, const struct marey__shape *shape,
                          uint64_t offset)
{
    uint64_t *const end = ctx, n_bytes;
    MAREY_ASSERT(strlen(name) <= len && offset == *end && marey__shape_bytes(shape, &n_bytes));
    *end += n_bytes;
    return MAREY_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct marey__map text = padded_copy(data, size);
    uint64_t end = 0;
    size_t data_at;
    if (marey__safetensors_parse("fuzzed", text.data, text.len, visit, &end, &data_at) == MAREY_OK)
        MAREY_ASSERT(data_at + end == text.len);
    free(text.data);
    return 0;
}
