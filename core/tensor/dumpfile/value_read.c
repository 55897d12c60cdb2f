/* Reads the numbers of a value from separate files. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tensor/dumpfile/internal.h"
#include <marey/image.h>

/* ---- sizes: as JSON, and as bytes ---- */

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

/* ---- files ---- */

/* The content of a file. */
struct found {
    struct marey__shape shape;
    void *data; /* free with marey__free; NULL: none, or only the shape was requested */
    struct marey__numbers_file file; /* where they are stored unconverted, from byte `at`; path NULL: nowhere */
    uint64_t at;
};

/* Reads the numbers of a shape, from byte `at` of a file. */
static marey_status load(const struct marey__numbers_file *file, uint64_t at, struct found *found)
{
    uint64_t n_bytes;
    if (!marey__shape_bytes(&found->shape, &n_bytes) || n_bytes == 0)
        return MAREY_OK;
    found->data = marey__alloc_large(n_bytes);
    MAREY__TRY_MEMORY(found->data != NULL);
    return marey__numbers_load(file, at, found->data, n_bytes);
}

/* ---- .npy ---- */

static void swap_bytes(char *data, uint64_t n_bytes, size_t size)
{
    for (uint64_t i = 0; i + size <= n_bytes; i += size)
        for (size_t k = 0; k < size / 2; k++) {
            const char kept = data[i + k];
            data[i + k] = data[i + size - 1 - k];
            data[i + size - 1 - k] = kept;
        }
}

static void found_fini(struct found *found)
{
    marey__free(found->data);
}

/* A row-major, little-endian copy. */
static marey_status straighten(const struct marey__npy *npy, struct found *found)
{
    uint64_t n_bytes = 0;
    int64_t strides[MAREY_MAX_RANK], stride = 1;
    for (uint32_t i = 0; i < npy->shape.rank; i++) {
        strides[i] = stride;
        stride *= npy->shape.sizes[i];
    }
    const struct marey_tensor tensor = {.data = found->data,
                                        .dtype = npy->shape.dtype,
                                        .rank = npy->shape.rank,
                                        .sizes = npy->shape.sizes,
                                        .strides = npy->is_fortran ? strides : NULL};
    if (!marey__shape_bytes(&npy->shape, &n_bytes) || n_bytes == 0)
        return MAREY_OK;
    void *copy MAREY__FREED = marey__alloc(n_bytes);
    MAREY__TRY_MEMORY(copy != NULL);
    MAREY_TRY(marey_tensor_gather(&tensor, copy));
    const bool is_complex = npy->shape.dtype == MAREY_C64 || npy->shape.dtype == MAREY_C128;
    if (npy->is_swapped)
        swap_bytes(copy, n_bytes, marey_dtype_size(npy->shape.dtype) / (is_complex ? 2 : 1));
    void *const as_it_was = found->data;
    found->data = copy;
    copy = as_it_was;
    return MAREY_OK;
}

static marey_status read_npy(const char *path, bool wants_data, struct found *found)
{
    struct marey__numbers_file file;
    struct marey__map head MAREY__FINALLY(marey__map_close) = {0};
    struct marey__npy npy;
    MAREY_TRY(marey__numbers_open(path, MAREY__NPY_HEAD, &file, &head));
    MAREY_TRY(marey__npy_parse(path, head.data, file.len, &npy));
    found->shape = npy.shape;
    if (!wants_data) {
        found->at = npy.data_at;
        found->file = file;
        if (npy.is_fortran || npy.is_swapped)
            found->file.path = NULL;
        return MAREY_OK;
    }
    MAREY_TRY(load(&file, npy.data_at, found));
    return npy.is_fortran || npy.is_swapped ? straighten(&npy, found) : MAREY_OK;
}

/* ---- .safetensors of one tensor ---- */

struct only {
    struct marey__shape shape;
    uint64_t offset;
    size_t n;
};

static marey_status take_only(void *ctx, const char *name, size_t len,
                              const struct marey__shape *shape, uint64_t offset)
{
    struct only *const only = ctx;
    (void)len;
    if (strncmp(name, "__pad__", 7) == 0)
        return MAREY_OK;
    only->shape = *shape;
    only->offset = offset;
    only->n++;
    return MAREY_OK;
}

static marey_status read_safetensors(const char *path, bool wants_data, struct found *found)
{
    struct marey__numbers_file file;
    struct marey__map head MAREY__FINALLY(marey__map_close) = {0};
    struct only only = {0};
    size_t data_at;
    MAREY_TRY(marey__safetensors_open(path, &file, &head));
    MAREY_TRY(marey__safetensors_parse(path, head.data, file.len, take_only, &only, &data_at));
    if (only.n != 1)
        return marey__fail(MAREY_EFORMAT, "%s holds %zu tensors where one was expected", path,
                           only.n);
    found->shape = only.shape;
    found->file = file;
    found->at = data_at + only.offset;
    return wants_data ? load(&file, found->at, found) : MAREY_OK;
}

/* ---- .bin, and the .meta.json beside it ---- */

struct meta {
    struct marey__shape shape;
    bool has_shape;
};

static bool meta_shape(struct marey__json *json, void *into)
{
    struct meta *const meta = into;
    return meta->has_shape = marey__shape_read(json, &meta->shape);
}

static bool meta_dtype(struct marey__json *json, void *into)
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
        {"file_data_shape", meta_shape}, {"file_data_dtype", meta_dtype}, {0}};
    struct marey__json json MAREY__FINALLY(marey__json_fini);
    struct meta meta = {0};
    uint64_t n_bytes;
    marey__json_init_text(&json, text, len, MAREY__DUMP_JSON);
    if (marey__json_object(&json, keys, &meta) && marey__json_end(&json) &&
        (!meta.has_shape || meta.shape.dtype == MAREY_DTYPE_NONE))
        marey__json_fail(&json, "file_data_shape or file_data_dtype is missing");
    if (json.mistake != NULL)
        return marey__json_status(&json, path, "the description of a .bin");
    if (!marey__shape_bytes(&meta.shape, &n_bytes))
        return marey__fail(MAREY_EFORMAT, "%s has a shape of too many bytes", path);
    *out = meta.shape;
    return MAREY_OK;
}

static marey_status read_meta(const char *path, struct marey__shape *out)
{
    char meta[PATH_MAX];
    struct marey__map map MAREY__FINALLY(marey__map_close) = {0};
    const int n = snprintf(meta, sizeof meta, "%s.meta.json", path);
    if (n < 0 || (size_t)n >= sizeof meta)
        return marey__fail(MAREY_EIO, "the path of %s is too long", path);
    MAREY_TRY(marey__map_text(meta, &map));
    return marey__bin_meta_parse(meta, map.data, map.len, out);
}

static marey_status read_bin(const char *path, bool wants_data, const struct marey__shape *shape,
                             struct found *found)
{
    struct marey__numbers_file file;
    uint64_t n_bytes;
    MAREY_TRY(marey__numbers_open(path, 0, &file, NULL));
    if (!marey__shape_bytes(shape, &n_bytes) || n_bytes != file.len)
        return marey__fail(MAREY_EFORMAT, "%s has %" PRIu64 " bytes, which does not match its shape",
                           path, file.len);
    found->shape = *shape;
    found->file = file;
    return wants_data ? load(&file, 0, found) : MAREY_OK;
}

/* ---- .json ---- */

/* The caller frees `found->data`, even on failure. */
static marey_status read_json(const char *path, const struct marey__shape *shape, struct found *found)
{
    struct marey__map map MAREY__FINALLY(marey__map_close) = {0};
    struct marey__numbers numbers = {0};
    MAREY_TRY(marey__map_text(path, &map));
    struct marey__json json MAREY__FINALLY(marey__json_fini);
    marey__json_init_padded(&json, map.data, map.len, MAREY__DUMP_JSON);
    const enum marey__numbers_result result =
        marey__numbers_read(&json, shape->dtype == MAREY_F32 || shape->dtype == MAREY_C64, &numbers);
    *found = (struct found){.shape = *shape, .data = numbers.data};
    if (result == MAREY__NUMBERS_NO_MEMORY)
        return marey__no_memory();
    if (result == MAREY__NUMBERS_NONE)
        return marey__fail(
            MAREY_EFORMAT,
            "%s is not a tensor as JSON: its lists differ in length, or hold no numbers", path);
    if (!marey__json_end(&json))
        return marey__json_status(&json, path, "a tensor as JSON");
    const marey_status status = marey__numbers_convert(&numbers, shape);
    found->data = numbers.data;
    return status;
}

/* ---- .png: pixels, of several files in a row ---- */

static struct marey__shape shape_of_pixels(const struct marey_image *image, size_t n_files)
{
    struct marey__shape shape = {.dtype = image->depth == 16 ? MAREY_U16 : MAREY_U8};
    if (n_files > 1)
        shape.sizes[shape.rank++] = (int64_t)n_files;
    shape.sizes[shape.rank++] = image->height;
    shape.sizes[shape.rank++] = image->width;
    if (image->n_channels > 1)
        shape.sizes[shape.rank++] = image->n_channels;
    return shape;
}

static marey_status take_pixels(const char *path, size_t i, size_t n_files,
                                const struct marey_image *image, struct found *found)
{
    const struct marey__shape shape = shape_of_pixels(image, n_files);
    uint64_t n_bytes;
    if (!marey__shape_bytes(&shape, &n_bytes))
        return marey__fail(MAREY_EFORMAT, "%s and the images with it are too large", path);
    if (i == 0) {
        char *const all = marey__alloc(n_bytes);
        MAREY__TRY_MEMORY(all != NULL);
        *found = (struct found){.shape = shape, .data = all};
    } else if (shape.dtype != found->shape.dtype || shape.rank != found->shape.rank ||
               memcmp(shape.sizes, found->shape.sizes, sizeof shape.sizes) != 0) {
        return marey__fail(MAREY_EFORMAT, "%s is not as large as the image before it", path);
    }
    memcpy((char *)found->data + i * (n_bytes / n_files), image->samples, n_bytes / n_files);
    return MAREY_OK;
}

static marey_status read_pixels(const struct marey_dumped_value *value, struct found *found)
{
    for (size_t i = 0; i < value->n_files; i++) {
        marey_images *images;
        MAREY_TRY(marey_png_open(value->files[i], &images));
        const marey_status status =
            take_pixels(value->files[i], i, value->n_files, marey_images_get(images, 0), found);
        marey_images_destroy(images);
        MAREY_TRY(status);
    }
    return MAREY_OK;
}

/* ---- any of them ---- */

static struct marey__shape shape_of(const struct marey_dumped_value *value)
{
    struct marey__shape shape = {.dtype = value->dtype, .rank = value->rank};
    if (value->rank > 0)
        memcpy(shape.sizes, value->sizes, value->rank * sizeof *shape.sizes);
    return shape;
}

static marey_status read_files(const struct marey_dumped_value *value, bool wants_data,
                               const struct marey__shape *wanted, struct found *found)
{
    if (marey__is_image(value->type))
        return read_pixels(value, found);
    switch (value->type) {
    case MAREY_DUMP_NPY:
        return read_npy(value->files[0], wants_data, found);
    case MAREY_DUMP_SAFETENSORS:
        return read_safetensors(value->files[0], wants_data, found);
    case MAREY_DUMP_BINARY:
        return read_bin(value->files[0], wants_data, wanted, found);
    case MAREY_DUMP_JSON:
        return read_json(value->files[0], wanted, found);
    default:
        return marey__fail(MAREY_ESTATE, "'%s' has files that are not read", value->name);
    }
}

/* Sets the tensor of a value's place, and takes ownership of `found`. */
static marey_status put_found(const struct marey_dumped_value *value,
                              struct marey__value_place *place, struct found *found)
{
    place->tensor = (struct marey_tensor){
        .data = found->data, .dtype = value->dtype, .rank = value->rank, .sizes = value->sizes};
    if (marey__is_image(value->type)) {
        place->sizes = marey__alloc((found->shape.rank + 1) * sizeof *place->sizes);
        MAREY__TRY_MEMORY(place->sizes != NULL);
        memcpy(place->sizes, found->shape.sizes, found->shape.rank * sizeof *place->sizes);
        place->tensor.dtype = found->shape.dtype;
        place->tensor.rank = found->shape.rank;
        place->tensor.sizes = place->sizes;
    }
    place->numbers = found->data;
    place->is_read = true;
    found->data = NULL;
    return MAREY_OK;
}

static marey_status check_bytes(const struct marey_dumped_value *value, const struct found *found)
{
    uint64_t n_found = 0;
    /* safetensors may have another type for it; the same number of bytes suffices. */
    if (marey__is_image(value->type) ||
        (marey__shape_bytes(&found->shape, &n_found) && n_found == value->n_bytes))
        return MAREY_OK;
    return marey__fail(MAREY_EFORMAT, "%s holds %" PRIu64 " bytes of numbers; '%s' has %" PRIu64,
                       value->n_files != 0 ? value->files[0] : "a file", n_found, value->name,
                       value->n_bytes);
}

marey_status marey__value_find(const struct marey__dumpfile_step *step, size_t i,
                               struct marey__numbers_file *file, uint64_t *at)
{
    const struct marey_dumped_value *const value = &step->values[i];
    const struct marey__shape shape = shape_of(value);
    struct found found MAREY__FINALLY(found_fini) = {.file = step->file, .at = step->places[i].at};
    if (!step->places[i].is_inside) {
        found.file.path = NULL;
        if (value->type != MAREY_DUMP_NPY && value->type != MAREY_DUMP_SAFETENSORS &&
            value->type != MAREY_DUMP_BINARY)
            return MAREY_OK;
        MAREY_TRY(read_files(value, false, &shape, &found));
        MAREY_TRY(check_bytes(value, &found));
    }
    *file = found.file;
    *at = found.at;
    return MAREY_OK;
}

marey_status marey__value_read(struct marey__dumpfile_step *step, size_t i)
{
    const struct marey_dumped_value *const value = &step->values[i];
    struct marey__value_place *const place = &step->places[i];
    const struct marey__shape shape = shape_of(value);
    struct found found MAREY__FINALLY(found_fini) = {.shape = shape};
    MAREY_TRY(place->is_inside ? load(&step->file, place->at, &found)
                               : read_files(value, true, &shape, &found));
    MAREY_TRY(check_bytes(value, &found));
    return put_found(value, place, &found);
}

marey_status marey__value_look(struct marey__dumpfile_step *step)
{
    const size_t i = step->n_values - 1;
    const struct marey_dumped_value *const value = &step->values[i];
    struct found found MAREY__FINALLY(found_fini) = {0};
    if (value->type == MAREY_DUMP_PICKLE)
        return MAREY_OK;
    MAREY_TRY(value->type == MAREY_DUMP_BINARY ? read_meta(value->files[0], &found.shape)
                                               : read_files(value, false, &found.shape, &found));
    MAREY_TRY(marey__step_shape(step, &found.shape));
    if (found.data != NULL)
        MAREY_TRY(put_found(value, &step->places[i], &found));
    step->places[i].has_numbers = true;
    return MAREY_OK;
}
