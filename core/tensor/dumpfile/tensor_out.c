/* One tensor to a stream, in a form that other tools read. */
#include <string.h>

#include "tensor/container/internal.h"
#include <marey/dumpfile.h>

static bool put_bytes(void *ctx, const char *bytes, size_t len)
{
    return len == 0 || fwrite(bytes, 1, len, ctx) == len;
}

static marey_status write_head(struct marey__buf *head, const struct marey_tensor *tensor,
                               enum marey_dump_type form, const char *name)
{
    if (form == MAREY_DUMP_NPY) {
        marey__npy_header_put(head, tensor);
    } else if (form == MAREY_DUMP_SAFETENSORS) {
        struct marey__safetensors file = {0};
        marey__safetensors_add(&file, name, strlen(name), tensor);
        const marey_status status = marey__safetensors_head_put(head, &file, 0, -1, 0);
        marey__safetensors_fini(&file);
        MAREY_TRY(status);
    }
    return head->failed ? marey__no_memory() : MAREY_OK;
}

static marey_status write_form(struct marey__buf *head, const struct marey_tensor *tensor,
                               enum marey_dump_type form, const char *name, FILE *out)
{
    static const struct marey__json_style style;
    if (form == MAREY_DUMP_JSON) {
        MAREY_TRY(marey__json_tensor_write(tensor, &style, put_bytes, out));
        return put_bytes(out, "\n", 1) ? MAREY_OK : marey__fail_errno("write %s", name);
    }
    MAREY_TRY(write_head(head, tensor, form, name));
    if (!put_bytes(out, head->data, head->len) ||
        !put_bytes(out, tensor->data, (size_t)marey_tensor_bytes(tensor)))
        return marey__fail_errno("write %s", name);
    return MAREY_OK;
}

marey_status marey_tensor_write(const struct marey_tensor *tensor, enum marey_dump_type form,
                                const char *name, FILE *out)
{
    struct marey__buf head = {0};
    if (form != MAREY_DUMP_BINARY && form != MAREY_DUMP_NPY && form != MAREY_DUMP_SAFETENSORS &&
        form != MAREY_DUMP_JSON)
        return marey__fail(MAREY_EINVAL, "a tensor is written as binary, npy, safetensors or JSON");
    MAREY_TRY(marey_tensor_check(tensor));
    if (!marey_tensor_is_row_major(tensor))
        return marey__fail(MAREY_EINVAL, "%s is not row-major", name);
    marey_status status = write_form(&head, tensor, form, name, out);
    marey__buf_fini(&head);
    if (status == MAREY_OK && fflush(out) != 0)
        status = marey__fail_errno("write %s", name);
    return status;
}
