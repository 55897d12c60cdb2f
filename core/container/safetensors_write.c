/* The header of a safetensors file. Its entries must tile the data, so that alignment takes entries of its own. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "container/container_internal.h"

/* The format's own name for a type, or for what stands in for it. */
static const char *type_of(enum kymo_dtype dtype)
{
    switch (dtype) {
    case KYMO_BOOL:
        return "BOOL";
    case KYMO_I8:
        return "I8";
    case KYMO_U16:
        return "U16";
    case KYMO_I16:
        return "I16";
    case KYMO_U32:
        return "U32";
    case KYMO_I32:
        return "I32";
    case KYMO_U64:
        return "U64";
    case KYMO_I64:
        return "I64";
    case KYMO_F16:
    case KYMO_C32:
        return "F16";
    case KYMO_BF16:
        return "BF16";
    case KYMO_F32:
        return "F32";
    case KYMO_F64:
    case KYMO_C128:
        return "F64";
    case KYMO_C64:
        return "C64";
    case KYMO_F8_E4M3FN:
        return "F8_E4M3";
    case KYMO_F8_E5M2:
        return "F8_E5M2";
    case KYMO_F8_E4M3FNUZ:
        return "F8_E4M3FNUZ";
    case KYMO_F8_E5M2FNUZ:
        return "F8_E5M2FNUZ";
    case KYMO_F8_E8M0FNU:
        return "F8_E8M0";
    default:
        return "U8";
    }
}

static void put_entry(struct kymo__safetensors *file, const char *name, size_t len,
                      const struct kymo_tensor *tensor, uint64_t n_bytes)
{
    struct kymo__buf *const out = &file->entries;
    kymo__buf_puts(out, ",");
    kymo__json_put(out, name, len);
    kymo__buf_puts(out, ":{\"dtype\":\"");
    kymo__buf_puts(out, type_of(tensor->dtype));
    kymo__buf_puts(out, "\",\"shape\":[");
    for (uint32_t i = 0; i < tensor->rank; i++) {
        kymo__buf_puts(out, i > 0 ? "," : "");
        kymo__buf_put_i64(out, tensor->sizes[i]);
    }
    if (tensor->dtype == KYMO_C32 || tensor->dtype == KYMO_C128)
        kymo__buf_puts(out, tensor->rank > 0 ? ",2" : "2");
    kymo__buf_puts(out, "],\"data_offsets\":[");
    kymo__buf_put_u64(out, file->n_bytes);
    kymo__buf_put(out, ",", 1);
    file->n_bytes += n_bytes;
    kymo__buf_put_u64(out, file->n_bytes);
    kymo__buf_put(out, "]}", 2);
}

uint64_t kymo__safetensors_add(struct kymo__safetensors *file, const char *name, size_t len,
                               const struct kymo_tensor *tensor)
{
    /* A large one begins a page, so that it can go to the disk from where it lies, past the page cache. */
    const uint64_t align = kymo_tensor_bytes(tensor) < KYMO__SAFETENSORS_LARGE
                               ? KYMO__SAFETENSORS_ALIGN
                               : KYMO__SAFETENSORS_PAGE;
    const uint64_t over = file->n_bytes % align;
    if (over != 0) {
        const int64_t gap = (int64_t)(align - over);
        const struct kymo_tensor pad = {.dtype = KYMO_U8, .rank = 1, .sizes = &gap};
        char pad_name[32];
        const int n = snprintf(pad_name, sizeof pad_name, "__pad__%" PRIu64, file->n_pads++);
        put_entry(file, pad_name, (size_t)n, &pad, (uint64_t)gap);
    }
    const uint64_t offset = file->n_bytes;
    put_entry(file, name, len, tensor, kymo_tensor_bytes(tensor));
    return offset;
}

kymo_status kymo__safetensors_head_put(struct kymo__buf *out, const struct kymo__safetensors *file,
                                       uint64_t step, int64_t rank, uint64_t data_start)
{
    const size_t start = out->len;
    void *const length = kymo__buf_extend(out, 8);
    kymo__buf_printf(out, "{\"__metadata__\":{\"kymo_dump\":\"1\",\"step\":\"%" PRIu64 "\"", step);
    if (rank >= 0)
        kymo__buf_printf(out, ",\"rank\":\"%" PRId64 "\"", rank);
    kymo__buf_puts(out, "}");
    kymo__buf_put(out, file->entries.data, file->entries.len);
    kymo__buf_puts(out, "}");
    const uint64_t used = out->len - start;
    if (data_start == 0)
        data_start = (used + KYMO__SAFETENSORS_PAGE - 1) & ~(uint64_t)(KYMO__SAFETENSORS_PAGE - 1);
    if (!out->failed && !file->entries.failed && used > data_start)
        return kymo__fail(KYMO_EINVAL,
                          "a safetensors header of %" PRIu64 " bytes does not fit into %" PRIu64,
                          used, data_start);
    void *const blanks = kymo__buf_extend(out, (size_t)(data_start - used));
    if (length == NULL || blanks == NULL || file->entries.failed)
        return kymo__fail(KYMO_ENOMEM, "out of memory for a safetensors header");
    memset(blanks, ' ', (size_t)(data_start - used));
    for (unsigned i = 0; i < 8; i++)
        out->data[start + i] = (char)((data_start - 8) >> (8 * i) & 255);
    return KYMO_OK;
}

void kymo__safetensors_fini(struct kymo__safetensors *file)
{
    kymo__buf_fini(&file->entries);
    *file = (struct kymo__safetensors){0};
}
