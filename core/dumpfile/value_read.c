/* The numbers of a value that has files of its own. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "dumpfile/dumpfile_internal.h"
#include <kymo/image.h>

/* What a file turned out to hold. */
struct found {
    struct kymo__shape shape;
    const void *data;
};

static kymo_status no_memory(const char *path)
{
    return kymo__fail(KYMO_ENOMEM, "out of memory while reading %s", path);
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

/* A copy in row-major order, the lowest byte first. */
static kymo_status straighten(struct kymo__step *step, const char *path,
                              const struct kymo__npy *npy, struct found *found)
{
    uint64_t n_bytes = 0;
    int64_t strides[KYMO_MAX_RANK], stride = 1;
    for (uint32_t i = 0; i < npy->shape.rank; i++) {
        strides[i] = stride;
        stride *= npy->shape.sizes[i];
    }
    const struct kymo_tensor tensor = {.data = found->data,
                                       .dtype = npy->shape.dtype,
                                       .rank = npy->shape.rank,
                                       .sizes = npy->shape.sizes,
                                       .strides = npy->is_fortran ? strides : NULL};
    if (!kymo__shape_bytes(&npy->shape, &n_bytes) || n_bytes == 0)
        return KYMO_OK;
    char *const copy = kymo__alloc(n_bytes);
    if (copy == NULL || !kymo__step_own(step, copy))
        return no_memory(path);
    KYMO_TRY(kymo_tensor_gather(&tensor, copy));
    const bool is_complex = npy->shape.dtype == KYMO_C64 || npy->shape.dtype == KYMO_C128;
    if (npy->is_swapped)
        swap_bytes(copy, n_bytes, kymo_dtype_size(npy->shape.dtype) / (is_complex ? 2 : 1));
    found->data = copy;
    return KYMO_OK;
}

static kymo_status read_npy(struct kymo__step *step, const char *path, struct found *found)
{
    struct kymo__map map;
    struct kymo__npy npy;
    KYMO_TRY(kymo__step_map(step, path, &map));
    KYMO_TRY(kymo__npy_parse(path, map.data, map.len, &npy));
    found->shape = npy.shape;
    found->data = map.data + npy.data_at;
    return npy.is_fortran || npy.is_swapped ? straighten(step, path, &npy, found) : KYMO_OK;
}

/* ---- .safetensors of one tensor ---- */

struct only {
    struct kymo__shape shape;
    uint64_t offset;
    size_t n;
};

static kymo_status take_only(void *ctx, const char *name, size_t len,
                             const struct kymo__shape *shape, uint64_t offset)
{
    struct only *const only = ctx;
    (void)len;
    if (strncmp(name, "__pad__", 7) == 0)
        return KYMO_OK;
    only->shape = *shape;
    only->offset = offset;
    only->n++;
    return KYMO_OK;
}

static kymo_status read_safetensors(struct kymo__step *step, const char *path, struct found *found)
{
    struct kymo__map map;
    struct only only = {0};
    size_t data_at;
    KYMO_TRY(kymo__step_map(step, path, &map));
    KYMO_TRY(kymo__safetensors_parse(path, map.data, map.len, take_only, &only, &data_at));
    if (only.n != 1)
        return kymo__fail(KYMO_EFORMAT, "%s holds %zu tensors where one was expected", path, only.n);
    *found = (struct found){.shape = only.shape, .data = map.data + data_at + only.offset};
    return KYMO_OK;
}

/* ---- .bin ---- */

static kymo_status read_meta(const char *path, struct kymo__shape *out)
{
    char meta[PATH_MAX];
    struct kymo__map map;
    const int n = snprintf(meta, sizeof meta, "%s.meta.json", path);
    if (n < 0 || (size_t)n >= sizeof meta)
        return kymo__fail(KYMO_EIO, "the path of %s is too long", path);
    KYMO_TRY(kymo__map_open(meta, &map));
    const kymo_status status = kymo__bin_meta_parse(meta, map.data, map.len, out);
    kymo__map_close(&map);
    return status;
}

static kymo_status read_bin(struct kymo__step *step, const char *path,
                            const struct kymo__shape *shape, struct found *found)
{
    struct kymo__map map;
    uint64_t n_bytes;
    KYMO_TRY(kymo__step_map(step, path, &map));
    if (!kymo__shape_bytes(shape, &n_bytes) || n_bytes != map.len)
        return kymo__fail(KYMO_EFORMAT, "%s has %zu bytes, which its shape does not want", path,
                          map.len);
    *found = (struct found){.shape = *shape, .data = map.data};
    return KYMO_OK;
}

/* ---- .json ---- */

static kymo_status read_json(struct kymo__step *step, const char *path,
                             const struct kymo__shape *shape, struct found *found)
{
    struct kymo__map map;
    struct kymo__cursor cursor;
    struct kymo__numbers numbers = {0};
    KYMO_TRY(kymo__map_open(path, &map));
    kymo__cursor_init(&cursor, map.data, map.len);
    kymo_status status = KYMO_OK;
    const enum kymo__numbers_result result =
        kymo__numbers_read(&cursor, shape->dtype == KYMO_F32 || shape->dtype == KYMO_C64, &numbers);
    if (result == KYMO__NUMBERS_NO_MEMORY)
        status = no_memory(path);
    else if (result == KYMO__NUMBERS_NONE)
        status = kymo__fail(
            KYMO_EFORMAT, "%s is no tensor as JSON: its lists differ in length, or hold no numbers",
            path);
    else if (!kymo__cursor_done(&cursor))
        status = kymo__cursor_status(&cursor, path, "tensor as JSON");
    else
        status = kymo__numbers_convert(&numbers, shape);
    kymo__cursor_fini(&cursor);
    kymo__map_close(&map);
    if (status != KYMO_OK) {
        kymo__free(numbers.data);
        return status;
    }
    if (numbers.data != NULL && !kymo__step_own(step, numbers.data))
        return no_memory(path);
    *found = (struct found){.shape = *shape, .data = numbers.data};
    return KYMO_OK;
}

/* ---- .png: pixels, of several files in a row ---- */

static struct kymo__shape shape_of_pixels(const struct kymo_image *image, size_t n_files)
{
    struct kymo__shape shape = {.dtype = image->depth == 16 ? KYMO_U16 : KYMO_U8};
    if (n_files > 1)
        shape.sizes[shape.rank++] = (int64_t)n_files;
    shape.sizes[shape.rank++] = image->height;
    shape.sizes[shape.rank++] = image->width;
    if (image->n_channels > 1)
        shape.sizes[shape.rank++] = image->n_channels;
    return shape;
}

static kymo_status take_pixels(struct kymo__step *step, const char *path, size_t i, size_t n_files,
                               const struct kymo_image *image, struct found *found)
{
    const struct kymo__shape shape = shape_of_pixels(image, n_files);
    uint64_t n_bytes;
    if (!kymo__shape_bytes(&shape, &n_bytes))
        return kymo__fail(KYMO_EFORMAT, "%s and the pictures with it are too large", path);
    if (i == 0) {
        char *const all = kymo__alloc(n_bytes);
        if (all == NULL || !kymo__step_own(step, all))
            return no_memory(path);
        *found = (struct found){.shape = shape, .data = all};
    } else if (shape.dtype != found->shape.dtype || shape.rank != found->shape.rank ||
               memcmp(shape.sizes, found->shape.sizes, sizeof shape.sizes) != 0) {
        return kymo__fail(KYMO_EFORMAT, "%s is not as large as the picture before it", path);
    }
    memcpy((char *)found->data + i * (n_bytes / n_files), image->samples, n_bytes / n_files);
    return KYMO_OK;
}

static kymo_status read_pixels(struct kymo__step *step, const struct kymo_dumped_value *value,
                               struct found *found)
{
    for (size_t i = 0; i < value->n_files; i++) {
        kymo_images *images;
        KYMO_TRY(kymo_png_open(value->files[i], &images));
        const kymo_status status =
            take_pixels(step, value->files[i], i, value->n_files, kymo_images_get(images, 0), found);
        kymo_images_destroy(images);
        KYMO_TRY(status);
    }
    return KYMO_OK;
}

/* ---- any of them ---- */

static struct kymo__shape shape_of(const struct kymo_dumped_value *value)
{
    struct kymo__shape shape = {.dtype = value->dtype, .rank = value->rank};
    if (value->rank > 0)
        memcpy(shape.sizes, value->sizes, value->rank * sizeof *shape.sizes);
    return shape;
}

static bool is_image(enum kymo_dump_type type)
{
    return type == KYMO_DUMP_IMAGE_RGB || type == KYMO_DUMP_IMAGE_BGR || type == KYMO_DUMP_IMAGE_I;
}

static kymo_status read_files(struct kymo__step *step, const struct kymo_dumped_value *value,
                              const struct kymo__shape *wanted, struct found *found)
{
    if (is_image(value->type))
        return read_pixels(step, value, found);
    switch (value->type) {
    case KYMO_DUMP_NPY:
        return read_npy(step, value->files[0], found);
    case KYMO_DUMP_SAFETENSORS:
        return read_safetensors(step, value->files[0], found);
    case KYMO_DUMP_BINARY:
        return read_bin(step, value->files[0], wanted, found);
    case KYMO_DUMP_JSON:
        return read_json(step, value->files[0], wanted, found);
    default:
        return kymo__fail(KYMO_ESTATE, "'%s' has files that are not read", value->name);
    }
}

kymo_status kymo__value_read(struct kymo__step *step, size_t i)
{
    const struct kymo_dumped_value *const value = &step->values[i];
    const struct kymo__shape wanted = shape_of(value);
    struct found found = {0};
    KYMO_TRY(read_files(step, value, &wanted, &found));
    if (is_image(value->type)) {
        int64_t *const sizes = kymo__step_keep(step, found.shape.rank * sizeof *sizes);
        if (sizes == NULL)
            return no_memory(value->files[0]);
        memcpy(sizes, found.shape.sizes, found.shape.rank * sizeof *sizes);
        kymo__step_numbers(step, i, found.data);
        step->places[i].tensor.dtype = found.shape.dtype;
        step->places[i].tensor.rank = found.shape.rank;
        step->places[i].tensor.sizes = sizes;
        return KYMO_OK;
    }
    uint64_t n_found;
    /* safetensors may have another type for it: as many bytes will do. */
    if (!kymo__shape_bytes(&found.shape, &n_found) || n_found != value->n_bytes)
        return kymo__fail(KYMO_EFORMAT, "%s holds %" PRIu64 " bytes of numbers; '%s' has %" PRIu64,
                          value->files[0], n_found, value->name, value->n_bytes);
    kymo__step_numbers(step, i, found.data);
    return KYMO_OK;
}

kymo_status kymo__value_look(struct kymo__step *step)
{
    const size_t i = step->n_values - 1;
    const struct kymo_dumped_value *const value = &step->values[i];
    struct found found = {0};
    if (value->type == KYMO_DUMP_PICKLE)
        return KYMO_OK;
    if (value->type == KYMO_DUMP_BINARY)
        KYMO_TRY(read_meta(value->files[0], &found.shape));
    else
        KYMO_TRY(read_files(step, value, &found.shape, &found));
    KYMO_TRY(kymo__step_shape(step, &found.shape));
    if (value->type == KYMO_DUMP_BINARY)
        step->places[i].has_numbers = true;
    else
        kymo__step_numbers(step, i, found.data);
    return KYMO_OK;
}
