/* The lines of a manifest. */
#include <inttypes.h>
#include <string.h>

#include "container/container_internal.h"

const char *kymo__dump_type_name(enum kymo_dump_type type)
{
    static const char *const names[KYMO_N_DUMP_TYPES] = {
        [KYMO_DUMP_CONTAINER] = "container",     [KYMO_DUMP_JSON] = "json",
        [KYMO_DUMP_BINARY] = "binary",           [KYMO_DUMP_IMAGE_RGB] = "image_rgb",
        [KYMO_DUMP_IMAGE_BGR] = "image_bgr",     [KYMO_DUMP_IMAGE_I] = "image_i",
        [KYMO_DUMP_PICKLE] = "pickle",           [KYMO_DUMP_NPY] = "npy",
        [KYMO_DUMP_SAFETENSORS] = "safetensors",
    };
    return (size_t)type < KYMO__COUNT_OF(names) ? names[type] : NULL;
}

static void put_key(struct kymo__buf *out, const char *key)
{
    kymo__buf_put(out, ",\"", 2);
    kymo__buf_puts(out, key);
    kymo__buf_put(out, "\":", 2);
}

static void put_text(struct kymo__buf *out, const char *key, const char *text)
{
    put_key(out, key);
    if (text != NULL)
        kymo__json_put(out, text, strlen(text));
    else
        kymo__buf_puts(out, "null");
}

static void put_count(struct kymo__buf *out, const char *key, uint64_t value)
{
    put_key(out, key);
    kymo__buf_put_u64(out, value);
}

static void put_rank(struct kymo__buf *out, const char *key, int64_t value)
{
    if (value >= 0)
        put_count(out, key, (uint64_t)value);
    else
        put_text(out, key, NULL);
}

void kymo__manifest_step_put(struct kymo__buf *out, const struct kymo__manifest_step *step)
{
    kymo__buf_printf(out, "{\"kymo_dump\":1,\"step\":%" PRIu64, step->step);
    put_rank(out, "rank", step->rank);
    put_rank(out, "world", step->world);
    put_count(out, "pid", step->pid);
    put_text(out, "host", step->host);
    put_text(out, "run", step->run);
    put_count(out, "unix_ns", step->unix_ns);
    put_text(out, "mode", step->mode);
    put_count(out, "data_start", step->data_start);
    put_text(out, "reason", step->reason);
    kymo__buf_puts(out, "}\n");
}

void kymo__manifest_end_put(struct kymo__buf *out, uint64_t n_tensors, uint64_t n_values,
                            uint64_t n_bytes)
{
    kymo__buf_puts(out, "{\"end\":true");
    put_count(out, "tensors", n_tensors);
    put_count(out, "values", n_values);
    put_count(out, "bytes", n_bytes);
    kymo__buf_puts(out, "}\n");
}

static void put_list(struct kymo__buf *out, const char *key, const int64_t *numbers, uint32_t n)
{
    put_key(out, key);
    kymo__buf_puts(out, "[");
    for (uint32_t i = 0; i < n; i++) {
        kymo__buf_puts(out, i > 0 ? "," : "");
        kymo__buf_put_i64(out, numbers[i]);
    }
    kymo__buf_puts(out, "]");
}

static void put_digest(struct kymo__buf *out, const struct kymo_digest *digest)
{
    char text[2 * sizeof digest->bytes + 2];
    static const char digits[] = "0123456789abcdef";
    text[0] = text[sizeof text - 1] = '"';
    for (size_t i = 0; i < sizeof digest->bytes; i++) {
        text[1 + 2 * i] = digits[digest->bytes[i] >> 4];
        text[2 + 2 * i] = digits[digest->bytes[i] & 15];
    }
    kymo__buf_put(out, text, sizeof text);
}

static void put_digests(struct kymo__buf *out, const struct kymo__manifest_value *value)
{
    if (value->digest == NULL)
        return;
    kymo__buf_puts(out, ",\"digest\":");
    put_digest(out, value->digest);
    if (value->blocks == NULL || value->n_blocks < 2)
        return;
    kymo__buf_puts(out, ",\"blocks\":[");
    for (size_t i = 0; i < value->n_blocks; i++) {
        kymo__buf_puts(out, i > 0 ? "," : "");
        put_digest(out, &value->blocks[i]);
    }
    kymo__buf_puts(out, "]");
}

static void put_number(struct kymo__buf *out, const char *key, double value)
{
    put_key(out, key);
    kymo__json_double_put(out, value);
}

static void put_stats(struct kymo__buf *out, const struct kymo_tensor_stats *stats)
{
    kymo__buf_puts(out, ",\"stats\":{\"n\":");
    kymo__buf_put_u64(out, stats->n);
    put_count(out, "nan", stats->n_nan);
    put_count(out, "pos_inf", stats->n_pos_inf);
    put_count(out, "neg_inf", stats->n_neg_inf);
    put_count(out, "zero", stats->n_zero);
    put_count(out, "denormal", stats->n_denormal);
    put_count(out, "negative", stats->n_negative);
    put_number(out, "min", stats->min);
    put_number(out, "max", stats->max);
    put_number(out, "mean", stats->mean);
    put_number(out, "std", stats->std);
    put_number(out, "l2", stats->l2);
    kymo__buf_puts(out, ",\"histogram\":{");
    const char *before = "\"";
    for (unsigned i = 0; i < KYMO_STATS_BINS; i++)
        if (stats->histogram[i] != 0) {
            kymo__buf_puts(out, before);
            kymo__buf_put_u64(out, i);
            kymo__buf_put(out, "\":", 2);
            kymo__buf_put_u64(out, stats->histogram[i]);
            before = ",\"";
        }
    kymo__buf_puts(out, "}}");
}

static void put_path(struct kymo__buf *out, const struct kymo__manifest_value *value)
{
    kymo__buf_puts(out, ",\"path\":[");
    for (size_t i = 0; i < value->n_parts; i++) {
        kymo__buf_puts(out, i > 0 ? "," : "");
        if (value->parts[i].key != NULL)
            kymo__json_put(out, value->parts[i].key, value->parts[i].key_len);
        else
            kymo__buf_put_u64(out, value->parts[i].index);
    }
    kymo__buf_puts(out, "],\"name\":");
    struct kymo__buf name = {0};
    kymo__name_put(&name, value->tree, value->parts, value->n_parts);
    out->failed |= name.failed;
    kymo__json_put(out, name.data, name.len);
    kymo__buf_fini(&name);
}

static void put_tensor(struct kymo__buf *out, const struct kymo__manifest_value *value)
{
    const struct kymo_tensor *const tensor = &value->tensor;
    const char *const type = kymo__dump_type_name(value->type);
    put_text(out, "type", type);
    if (value->kind == KYMO_DUMP_TENSOR) {
        put_text(out, "dtype", kymo_dtype_name(tensor->dtype));
        put_list(out, "shape", tensor->sizes, tensor->rank);
        if (tensor->strides != NULL)
            put_list(out, "strides", tensor->strides, tensor->rank);
    }
    if (value->has_offset)
        put_count(out, "offset", value->offset);
    if (value->has_offset || value->n_files > 0)
        put_count(out, "bytes", value->n_bytes);
    put_digests(out, value);
    if (value->stats != NULL)
        put_stats(out, value->stats);
    if (value->n_files == 0)
        return;
    kymo__buf_puts(out, ",\"files\":[");
    for (size_t i = 0; i < value->n_files; i++) {
        kymo__buf_puts(out, i > 0 ? "," : "");
        kymo__json_put(out, value->files[i], strlen(value->files[i]));
    }
    kymo__buf_puts(out, "]");
}

static void put_value(struct kymo__buf *out, const struct kymo__manifest_value *value)
{
    kymo__buf_puts(out, ",\"value\":");
    if (value->kind == KYMO_DUMP_TEXT)
        kymo__json_put(out, value->text, value->text_len);
    else if (value->kind == KYMO_DUMP_LITERAL)
        kymo__buf_put(out, value->text, value->text_len);
    else
        kymo__buf_puts(out, value->kind == KYMO_DUMP_DICT ? "{}" : "[]");
}

void kymo__manifest_value_put(struct kymo__buf *out, const struct kymo__manifest_value *value)
{
    kymo__buf_puts(out, "{\"seq\":");
    kymo__buf_put_u64(out, value->seq);
    kymo__buf_puts(out, value->tree == KYMO_DUMP_GRADIENTS ? ",\"tree\":\"gradients\""
                                                           : ",\"tree\":\"tensors\"");
    put_path(out, value);
    if (value->kind == KYMO_DUMP_TENSOR || value->kind == KYMO_DUMP_BYTES)
        put_tensor(out, value);
    else
        put_value(out, value);
    if (value->phase != NULL)
        put_text(out, "phase", value->phase);
    if (value->file != NULL) {
        kymo__buf_puts(out, ",\"source\":");
        struct kymo__buf source = {0};
        kymo__buf_printf(&source, "%s:%u", value->file, value->line);
        out->failed |= source.failed;
        kymo__json_put(out, source.data, source.len);
        kymo__buf_fini(&source);
    }
    if (value->missing != NULL)
        put_text(out, "missing", value->missing);
    kymo__buf_puts(out, "}\n");
}
