/* The parts of tensor files besides the data: headers of .npy and .safetensors, the JSON beside .bin and .png. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/container/internal.h"
#include "tensor/kernels/internal.h"

/* ---- .npy, version 1.0 ---- */

const char *marey__npy_suffix(enum marey_dtype dtype)
{
    return marey__dtype_get(dtype)->npy_suffix;
}

void marey__npy_header_put(struct marey__buf *out, const struct marey_tensor *tensor)
{
    static const char magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, 0, 0};
    const size_t start = out->len;
    marey__buf_put(out, magic, sizeof magic);
    marey__buf_printf(out, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                      marey__dtype_get(tensor->dtype)->numpy);
    for (uint32_t i = 0; i < tensor->rank; i++)
        marey__buf_printf(out, "%s%" PRId64 "%s", i > 0 ? " " : "", tensor->sizes[i],
                          i + 1 < tensor->rank || i == 0 ? "," : "");
    marey__buf_puts(out, "), }");
    while ((out->len - start) % 64 != 63 && !out->failed)
        marey__buf_put(out, " ", 1);
    marey__buf_put(out, "\n", 1);
    if (out->failed)
        return;
    const size_t n = out->len - start - sizeof magic;
    out->data[start + 8] = (char)(n & 255);
    out->data[start + 9] = (char)(n >> 8);
}

/* ---- .safetensors: entries must be contiguous, so alignment needs entries that fill the gaps ---- */

static void put_entry(struct marey__safetensors *file, const char *name, size_t len,
                      const struct marey_tensor *tensor, uint64_t n_bytes)
{
    struct marey__buf *const out = &file->entries;
    marey__buf_puts(out, ",");
    marey__json_put(out, name, len);
    marey__buf_puts(out, ":{\"dtype\":\"");
    marey__buf_puts(out, marey__dtype_get(tensor->dtype)->safetensors);
    marey__buf_puts(out, "\",\"shape\":[");
    for (uint32_t i = 0; i < tensor->rank; i++) {
        marey__buf_puts(out, i > 0 ? "," : "");
        marey__buf_put_i64(out, tensor->sizes[i]);
    }
    if (tensor->dtype == MAREY_C32 || tensor->dtype == MAREY_C128)
        marey__buf_puts(out, tensor->rank > 0 ? ",2" : "2");
    marey__buf_puts(out, "],\"data_offsets\":[");
    marey__buf_put_u64(out, file->n_bytes);
    marey__buf_put(out, ",", 1);
    file->n_bytes += n_bytes;
    marey__buf_put_u64(out, file->n_bytes);
    marey__buf_put(out, "]}", 2);
}

uint64_t marey__safetensors_add(struct marey__safetensors *file, const char *name, size_t len,
                                const struct marey_tensor *tensor)
{
    /* Large tensors are page-aligned, so that they can be written directly, bypassing the page cache. */
    const uint64_t align = marey_tensor_bytes(tensor) < MAREY__SAFETENSORS_LARGE
                               ? MAREY__SAFETENSORS_ALIGN
                               : MAREY__SAFETENSORS_PAGE;
    const uint64_t over = file->n_bytes % align;
    if (over != 0) {
        const int64_t gap = (int64_t)(align - over);
        const struct marey_tensor pad = {.dtype = MAREY_U8, .rank = 1, .sizes = &gap};
        char pad_name[32];
        const int n = snprintf(pad_name, sizeof pad_name, "__pad__%" PRIu64, file->n_pads++);
        put_entry(file, pad_name, (size_t)n, &pad, (uint64_t)gap);
    }
    const uint64_t offset = file->n_bytes;
    put_entry(file, name, len, tensor, marey_tensor_bytes(tensor));
    return offset;
}

marey_status marey__safetensors_head_put(struct marey__buf *out,
                                         const struct marey__safetensors *file, uint64_t step,
                                         int64_t rank, uint64_t data_start)
{
    const size_t start = out->len;
    void *const length = marey__buf_extend(out, 8);
    marey__buf_printf(out, "{\"__metadata__\":{\"marey_dump\":\"1\",\"step\":\"%" PRIu64 "\"", step);
    if (rank >= 0)
        marey__buf_printf(out, ",\"rank\":\"%" PRId64 "\"", rank);
    marey__buf_puts(out, "}");
    marey__buf_put(out, file->entries.data, file->entries.len);
    marey__buf_puts(out, "}");
    const uint64_t used = out->len - start;
    if (data_start == 0)
        data_start = (used + MAREY__SAFETENSORS_PAGE - 1) & ~(uint64_t)(MAREY__SAFETENSORS_PAGE - 1);
    if (!out->failed && !file->entries.failed && used > data_start)
        return marey__fail(MAREY_EINVAL,
                           "a safetensors header of %" PRIu64 " bytes does not fit into %" PRIu64,
                           used, data_start);
    void *const blanks = marey__buf_extend(out, (size_t)(data_start - used));
    MAREY__TRY_MEMORY(length != NULL && blanks != NULL && !file->entries.failed);
    memset(blanks, ' ', (size_t)(data_start - used));
    for (unsigned i = 0; i < 8; i++)
        out->data[start + i] = (char)((data_start - 8) >> (8 * i) & 255);
    return MAREY_OK;
}

void marey__safetensors_fini(struct marey__safetensors *file)
{
    marey__buf_fini(&file->entries);
    *file = (struct marey__safetensors){0};
}

marey_status marey__tensor_header_put(struct marey__buf *out, const struct marey_tensor *tensor,
                                      enum marey_dump_type form, const char *name, size_t len,
                                      uint64_t step, int64_t rank)
{
    struct marey__safetensors file MAREY__FINALLY(marey__safetensors_fini) = {0};
    if (form == MAREY_DUMP_NPY) {
        marey__npy_header_put(out, tensor);
    } else if (form == MAREY_DUMP_SAFETENSORS) {
        marey__safetensors_add(&file, name, len, tensor);
        MAREY_TRY(marey__safetensors_head_put(out, &file, step, rank, 0));
    }
    return out->failed ? marey__no_memory() : MAREY_OK;
}

/* ---- metadata for ACCV-Lab's readers beside .bin and .png ---- */

void marey__bin_meta_put(struct marey__buf *out, const struct marey_tensor *tensor)
{
    marey__buf_puts(out, "{\n  \"file_data_shape\": [");
    for (uint32_t i = 0; i < tensor->rank; i++)
        marey__buf_printf(out, "%s\n    %" PRId64, i > 0 ? "," : "", tensor->sizes[i]);
    marey__buf_printf(out, "%s],\n  \"file_data_dtype\": \"torch.%s\"\n}",
                      tensor->rank > 0 ? "\n  " : "", marey_dtype_name(tensor->dtype));
}

void marey__image_meta_put(struct marey__buf *out, enum marey_dtype dtype, double min, double max,
                           const char *format)
{
    const double range[] = {min, max};
    int64_t integers[] = {0, 0};
    const bool is_integer =
        dtype >= MAREY_U8 && dtype <= MAREY_I64 && fabs(min) < 0x1p63 && fabs(max) < 0x1p63;
    for (int i = 0; i < 2 && is_integer; i++)
        integers[i] = (int64_t)range[i];
    const struct marey_tensor both = {.data = is_integer ? (const void *)integers : range,
                                      .dtype = is_integer ? MAREY_I64 : MAREY_F64,
                                      .rank = 1,
                                      .sizes = (const int64_t[]){2}};
    const struct marey__json_style style = {.level = 1, .is_python = true};
    marey__buf_puts(out, "{\n  \"original_range\": ");
    if (marey__json_tensor_put(out, &both, &style) != MAREY_OK)
        out->failed = true;
    marey__buf_printf(out, ",\n  \"image_format\": \"%s\"\n}", format);
}
