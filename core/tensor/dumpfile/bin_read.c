/* The .meta.json beside a .bin: its shape and its type. */
#include "tensor/dumpfile/internal.h"

struct meta {
    struct marey__shape shape;
    bool has_shape;
};

static bool read_shape(struct marey__json *json, void *into)
{
    struct meta *const meta = into;
    return meta->has_shape = marey__shape_read(json, &meta->shape);
}

static bool read_dtype(struct marey__json *json, void *into)
{
    struct meta *const meta = into;
    if (!marey__json_string(json))
        return false;
    meta->shape.dtype = marey_dtype_find(json->text);
    if (meta->shape.dtype == MAREY_DTYPE_NONE)
        marey__json_fail(json, "an unknown type");
    return json->mistake == NULL;
}

marey_status marey__bin_meta_parse(const char *path, const char *text, size_t len,
                                   struct marey__shape *out)
{
    static const struct marey__json_key keys[] = {
        {"file_data_shape", read_shape}, {"file_data_dtype", read_dtype}, {NULL, NULL}};
    struct marey__json json;
    struct meta meta = {0};
    uint64_t n_bytes;
    marey_status status = MAREY_OK;
    marey__json_init_text(&json, text, len, MAREY__DUMP_JSON);
    if (marey__json_object(&json, keys, &meta) && marey__json_end(&json) &&
        (!meta.has_shape || meta.shape.dtype == MAREY_DTYPE_NONE))
        marey__json_fail(&json, "file_data_shape or file_data_dtype is missing");
    if (json.mistake != NULL)
        status = marey__json_status(&json, path, "the description of a .bin");
    else if (!marey__shape_bytes(&meta.shape, &n_bytes))
        status = marey__fail(MAREY_EFORMAT, "%s has a shape of too many bytes", path);
    else
        *out = meta.shape;
    marey__json_fini(&json);
    return status;
}
