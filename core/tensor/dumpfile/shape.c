/* Sizes of tensors: as JSON, and as bytes. */
#include "tensor/dumpfile/internal.h"

bool marey__shape_read(struct marey__json *json, struct marey__shape *out)
{
    out->rank = 0;
    if (!marey__json_expect(json, MAREY__JSON_ARRAY, "an array of sizes is missing"))
        return false;
    while (marey__json_peek(json) != ']') {
        uint64_t size;
        if (!marey__json_count(json, &size))
            return false;
        if (out->rank == MAREY_MAX_RANK) {
            marey__json_fail(json, "there are more than 64 axes");
            return false;
        }
        out->sizes[out->rank++] = (int64_t)size;
    }
    return marey__json_next(json) == MAREY__JSON_ARRAY_END;
}

bool marey__shape_bytes(const struct marey__shape *shape, uint64_t *out)
{
    uint64_t n = marey_dtype_size(shape->dtype);
    bool is_empty = false;
    for (uint32_t i = 0; i < shape->rank; i++)
        is_empty |= shape->sizes[i] == 0;
    for (uint32_t i = 0; i < shape->rank && !is_empty; i++)
        if (__builtin_mul_overflow(n, (uint64_t)shape->sizes[i], &n) || n > INT64_MAX)
            return false;
    *out = is_empty ? 0 : n;
    return true;
}
