/* The lines of a manifest. */
#include <inttypes.h>
#include <string.h>

#include "tensor/container/internal.h"

const char *marey__dump_type_name(enum marey_dump_type type)
{
    static const char *const names[MAREY_N_DUMP_TYPES] = {
        [MAREY_DUMP_CONTAINER] = "container",     [MAREY_DUMP_JSON] = "json",
        [MAREY_DUMP_BINARY] = "binary",           [MAREY_DUMP_IMAGE_RGB] = "image_rgb",
        [MAREY_DUMP_IMAGE_BGR] = "image_bgr",     [MAREY_DUMP_IMAGE_I] = "image_i",
        [MAREY_DUMP_PICKLE] = "pickle",           [MAREY_DUMP_NPY] = "npy",
        [MAREY_DUMP_SAFETENSORS] = "safetensors",
    };
    return (size_t)type < MAREY__COUNT_OF(names) ? names[type] : NULL;
}

static void put_key(struct marey__buf *out, const char *key)
{
    marey__buf_put(out, ",\"", 2);
    marey__buf_puts(out, key);
    marey__buf_put(out, "\":", 2);
}

static void put_text(struct marey__buf *out, const char *key, const char *text)
{
    put_key(out, key);
    if (text != NULL)
        marey__json_put(out, text, strlen(text));
    else
        marey__buf_puts(out, "null");
}

static void put_count(struct marey__buf *out, const char *key, uint64_t value)
{
    put_key(out, key);
    marey__buf_put_u64(out, value);
}

static void put_rank(struct marey__buf *out, const char *key, int64_t value)
{
    if (value >= 0)
        put_count(out, key, (uint64_t)value);
    else
        put_text(out, key, NULL);
}

void marey__manifest_step_put(struct marey__buf *out, const struct marey_dumped_step *step,
                              uint64_t data_start)
{
    marey__buf_printf(out, "{\"marey_dump\":1,\"step\":%" PRIu64, step->step);
    put_rank(out, "rank", step->rank);
    put_rank(out, "world", step->world);
    put_count(out, "pid", step->pid);
    put_text(out, "host", step->host);
    put_text(out, "run", step->run);
    put_count(out, "unix_ns", step->unix_ns);
    put_text(out, "mode", step->mode);
    put_count(out, "data_start", data_start);
    put_text(out, "reason", step->reason);
    marey__buf_puts(out, "}\n");
}

void marey__manifest_end_put(struct marey__buf *out, uint64_t n_tensors, uint64_t n_values,
                             uint64_t n_bytes)
{
    marey__buf_puts(out, "{\"end\":true");
    put_count(out, "tensors", n_tensors);
    put_count(out, "values", n_values);
    put_count(out, "bytes", n_bytes);
    marey__buf_puts(out, "}\n");
}

static void put_list(struct marey__buf *out, const char *key, const int64_t *numbers, uint32_t n)
{
    put_key(out, key);
    marey__buf_puts(out, "[");
    for (uint32_t i = 0; i < n; i++) {
        marey__buf_puts(out, i > 0 ? "," : "");
        marey__buf_put_i64(out, numbers[i]);
    }
    marey__buf_puts(out, "]");
}

static void put_digest(struct marey__buf *out, const struct marey_digest *digest)
{
    char text[2 * sizeof digest->bytes + 2];
    static const char digits[] = "0123456789abcdef";
    text[0] = text[sizeof text - 1] = '"';
    for (size_t i = 0; i < sizeof digest->bytes; i++) {
        text[1 + 2 * i] = digits[digest->bytes[i] >> 4];
        text[2 + 2 * i] = digits[digest->bytes[i] & 15];
    }
    marey__buf_put(out, text, sizeof text);
}

static void put_digests(struct marey__buf *out, const struct marey_dumped_value *value)
{
    if (value->digest == NULL)
        return;
    marey__buf_puts(out, ",\"digest\":");
    put_digest(out, value->digest);
    if (value->blocks == NULL || value->n_blocks < 2)
        return;
    marey__buf_puts(out, ",\"blocks\":[");
    for (size_t i = 0; i < value->n_blocks; i++) {
        marey__buf_puts(out, i > 0 ? "," : "");
        put_digest(out, &value->blocks[i]);
    }
    marey__buf_puts(out, "]");
}

#define COUNT(KEY, FIELD) .key = KEY, .offset = offsetof(struct marey_tensor_stats, FIELD)
#define REAL(FIELD) COUNT(#FIELD, FIELD), .is_real = true

const struct marey__stats_field *marey__stats_fields(void)
{
    static const struct marey__stats_field fields[] = {{COUNT("n", n)},
                                                       {COUNT("nan", n_nan)},
                                                       {COUNT("pos_inf", n_pos_inf)},
                                                       {COUNT("neg_inf", n_neg_inf)},
                                                       {COUNT("zero", n_zero)},
                                                       {COUNT("denormal", n_denormal)},
                                                       {COUNT("negative", n_negative)},
                                                       {REAL(min)},
                                                       {REAL(max)},
                                                       {REAL(mean)},
                                                       {REAL(std)},
                                                       {REAL(l2)},
                                                       {0}};
    return fields;
}

static void put_stats(struct marey__buf *out, const struct marey_tensor_stats *stats)
{
    marey__buf_puts(out, ",\"stats\":{\"n\":");
    marey__buf_put_u64(out, stats->n);
    for (const struct marey__stats_field *field = marey__stats_fields() + 1; field->key != NULL;
         field++) {
        const void *const at = (const char *)stats + field->offset;
        put_key(out, field->key);
        if (field->is_real)
            marey__json_double_put(out, *(const double *)at);
        else
            marey__buf_put_u64(out, *(const uint64_t *)at);
    }
    marey__buf_puts(out, ",\"histogram\":{");
    const char *before = "\"";
    for (unsigned i = 0; i < MAREY_STATS_BINS; i++)
        if (stats->histogram[i] != 0) {
            marey__buf_puts(out, before);
            marey__buf_put_u64(out, i);
            marey__buf_put(out, "\":", 2);
            marey__buf_put_u64(out, stats->histogram[i]);
            before = ",\"";
        }
    marey__buf_puts(out, "}}");
}

static void put_path(struct marey__buf *out, const struct marey_dumped_value *value)
{
    marey__buf_puts(out, ",\"path\":[");
    for (size_t i = 0; i < value->n_parts; i++) {
        marey__buf_puts(out, i > 0 ? "," : "");
        if (value->parts[i].key != NULL)
            marey__json_put(out, value->parts[i].key, value->parts[i].key_len);
        else
            marey__buf_put_u64(out, value->parts[i].index);
    }
    marey__buf_puts(out, "],\"name\":");
    struct marey__buf name MAREY__FINALLY(marey__buf_fini) = {0};
    marey__name_put(&name, value->tree, value->parts, value->n_parts);
    out->failed |= name.failed;
    marey__json_put(out, name.data, name.len);
}

static void put_tensor(struct marey__buf *out, const struct marey_dumped_value *value, uint64_t offset)
{
    put_text(out, "type", marey__dump_type_name(value->type));
    if (value->kind == MAREY_DUMP_TENSOR) {
        put_text(out, "dtype", marey_dtype_name(value->dtype));
        put_list(out, "shape", value->sizes, value->rank);
        if (value->strides != NULL)
            put_list(out, "strides", value->strides, value->rank);
    }
    if (offset != MAREY__NO_OFFSET)
        put_count(out, "offset", offset);
    if (offset != MAREY__NO_OFFSET || value->n_files > 0)
        put_count(out, "bytes", value->n_bytes);
    put_digests(out, value);
    if (value->stats != NULL)
        put_stats(out, value->stats);
    if (value->n_files == 0)
        return;
    marey__buf_puts(out, ",\"files\":[");
    for (size_t i = 0; i < value->n_files; i++) {
        marey__buf_puts(out, i > 0 ? "," : "");
        marey__json_put(out, value->files[i], strlen(value->files[i]));
    }
    marey__buf_puts(out, "]");
}

static void put_value(struct marey__buf *out, const struct marey_dumped_value *value)
{
    marey__buf_puts(out, ",\"value\":");
    if (value->kind == MAREY_DUMP_TEXT)
        marey__json_put(out, value->text, value->text_len);
    else if (value->kind == MAREY_DUMP_LITERAL)
        marey__buf_put(out, value->text, value->text_len);
    else
        marey__buf_puts(out, value->kind == MAREY_DUMP_DICT ? "{}" : "[]");
}

void marey__manifest_value_put(struct marey__buf *out, const struct marey_dumped_value *value,
                               uint64_t offset)
{
    marey__buf_puts(out, "{\"seq\":");
    marey__buf_put_u64(out, value->seq);
    marey__buf_puts(out, value->tree == MAREY_DUMP_GRADIENTS ? ",\"tree\":\"gradients\""
                                                             : ",\"tree\":\"tensors\"");
    put_path(out, value);
    if (value->kind == MAREY_DUMP_TENSOR || value->kind == MAREY_DUMP_BYTES)
        put_tensor(out, value, offset);
    else
        put_value(out, value);
    if (value->phase != NULL)
        put_text(out, "phase", value->phase);
    if (value->source != NULL)
        put_text(out, "source", value->source);
    if (value->missing != NULL)
        put_text(out, "missing", value->missing);
    marey__buf_puts(out, "}\n");
}
