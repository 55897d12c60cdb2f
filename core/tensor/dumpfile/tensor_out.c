/* Writes one tensor to a stream, in a format that other tools read. */
#include <string.h>

#include "tensor/container/internal.h"
#include <marey/dumpfile.h>

static bool put_bytes(void *ctx, const char *bytes, size_t len)
{
    return len == 0 || fwrite(bytes, 1, len, ctx) == len;
}

marey_status marey_tensor_write(const struct marey_tensor *tensor, enum marey_dump_type form,
                                const char *name, FILE *out)
{
    struct marey__buf head MAREY__FINALLY(marey__buf_fini) = {0};
    if (form != MAREY_DUMP_BINARY && form != MAREY_DUMP_NPY && form != MAREY_DUMP_SAFETENSORS &&
        form != MAREY_DUMP_JSON)
        return marey__fail(MAREY_EINVAL, "a tensor is written as binary, npy, safetensors or JSON");
    MAREY_TRY(marey_tensor_check(tensor));
    if (!marey_tensor_is_row_major(tensor))
        return marey__fail(MAREY_EINVAL, "%s is not row-major", name);
    bool is_out;
    if (form == MAREY_DUMP_JSON) {
        MAREY_TRY(marey__json_tensor_write(tensor, &(struct marey__json_style){0}, put_bytes, out));
        is_out = put_bytes(out, "\n", 1);
    } else {
        MAREY_TRY(marey__tensor_header_put(&head, tensor, form, name, strlen(name), 0, -1));
        is_out = put_bytes(out, head.data, head.len) &&
                 put_bytes(out, tensor->data, (size_t)marey_tensor_bytes(tensor));
    }
    return is_out && fflush(out) == 0 ? MAREY_OK : marey__fail_errno("write %s", name);
}
