/* One tensor to a stream, in a form that other tools read. */
#include <string.h>

#include "container/container_internal.h"
#include <kymo/dumpfile.h>

static bool put_bytes(void *ctx, const char *bytes, size_t len)
{
    return len == 0 || fwrite(bytes, 1, len, ctx) == len;
}

static kymo_status write_head(struct kymo__buf *head, const struct kymo_tensor *tensor,
                              enum kymo_dump_type form, const char *name)
{
    if (form == KYMO_DUMP_NPY) {
        kymo__npy_header_put(head, tensor);
    } else if (form == KYMO_DUMP_SAFETENSORS) {
        struct kymo__safetensors file = {0};
        kymo__safetensors_add(&file, name, strlen(name), tensor);
        const kymo_status status = kymo__safetensors_head_put(head, &file, 0, -1, 0);
        kymo__safetensors_fini(&file);
        KYMO_TRY(status);
    }
    return head->failed ? kymo__fail(KYMO_ENOMEM, "no memory to write %s", name) : KYMO_OK;
}

static kymo_status write_form(struct kymo__buf *head, const struct kymo_tensor *tensor,
                              enum kymo_dump_type form, const char *name, FILE *out)
{
    static const struct kymo__json_style style;
    if (form == KYMO_DUMP_JSON) {
        KYMO_TRY(kymo__json_tensor_write(tensor, &style, put_bytes, out));
        return put_bytes(out, "\n", 1) ? KYMO_OK : kymo__fail_errno("write %s", name);
    }
    KYMO_TRY(write_head(head, tensor, form, name));
    if (!put_bytes(out, head->data, head->len) ||
        !put_bytes(out, tensor->data, (size_t)kymo_tensor_bytes(tensor)))
        return kymo__fail_errno("write %s", name);
    return KYMO_OK;
}

kymo_status kymo_tensor_write(const struct kymo_tensor *tensor, enum kymo_dump_type form,
                              const char *name, FILE *out)
{
    struct kymo__buf head = {0};
    if (form != KYMO_DUMP_BINARY && form != KYMO_DUMP_NPY && form != KYMO_DUMP_SAFETENSORS &&
        form != KYMO_DUMP_JSON)
        return kymo__fail(KYMO_EINVAL, "a tensor is written as binary, npy, safetensors or JSON");
    KYMO_TRY(kymo_tensor_check(tensor));
    if (!kymo_tensor_is_row_major(tensor))
        return kymo__fail(KYMO_EINVAL, "%s is not row-major", name);
    kymo_status status = write_form(&head, tensor, form, name, out);
    kymo__buf_fini(&head);
    if (status == KYMO_OK && fflush(out) != 0)
        status = kymo__fail_errno("write %s", name);
    return status;
}
