/* The numbers of a value that has files of its own. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "dumpfile/dumpfile_internal.h"
#include <kymo/image.h>

/* What a file turned out to hold. */
struct found {
    struct kymo__shape shape;
    void *data; /* kymo__free; NULL: there are none, or only the shape was wanted */
    struct kymo__numbers_file file; /* where they lie as they are, from byte `at` on; path NULL: nowhere */
    uint64_t at;
};

static kymo_status no_memory(const char *path)
{
    return kymo__fail(KYMO_ENOMEM, "out of memory while reading %s", path);
}

/* The numbers of a shape, from byte `at` of a file on. */
static kymo_status load(const struct kymo__numbers_file *file, uint64_t at, struct found *found)
{
    enum { HUGE_PAGE = 2 << 20 };
    uint64_t n_bytes;
    if (!kymo__shape_bytes(&found->shape, &n_bytes) || n_bytes == 0)
        return KYMO_OK;
    found->data = kymo__alloc(n_bytes);
    if (found->data == NULL)
        return no_memory(file->path);
    /* Most of the time of a large read goes into pages that are touched for the first time. */
    const uintptr_t begin = ((uintptr_t)found->data + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    const uintptr_t end = ((uintptr_t)found->data + n_bytes) & ~(uintptr_t)(HUGE_PAGE - 1);
    if (end > begin)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
    return kymo__numbers_load(file, at, found->data, n_bytes);
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
static kymo_status straighten(const char *path, const struct kymo__npy *npy, struct found *found)
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
    if (copy == NULL)
        return no_memory(path);
    const kymo_status status = kymo_tensor_gather(&tensor, copy);
    if (status != KYMO_OK) {
        kymo__free(copy);
        return status;
    }
    const bool is_complex = npy->shape.dtype == KYMO_C64 || npy->shape.dtype == KYMO_C128;
    if (npy->is_swapped)
        swap_bytes(copy, n_bytes, kymo_dtype_size(npy->shape.dtype) / (is_complex ? 2 : 1));
    kymo__free(found->data);
    found->data = copy;
    return KYMO_OK;
}

static kymo_status read_npy(const char *path, bool wants_data, struct found *found)
{
    struct kymo__numbers_file file;
    struct kymo__map head;
    struct kymo__npy npy;
    KYMO_TRY(kymo__numbers_open(path, KYMO__NPY_HEAD, &file, &head));
    const kymo_status status = kymo__npy_parse(path, head.data, file.len, &npy);
    kymo__map_close(&head);
    KYMO_TRY(status);
    found->shape = npy.shape;
    if (!wants_data) {
        found->at = npy.data_at;
        found->file = file;
        if (npy.is_fortran || npy.is_swapped)
            found->file.path = NULL;
        return KYMO_OK;
    }
    KYMO_TRY(load(&file, npy.data_at, found));
    return npy.is_fortran || npy.is_swapped ? straighten(path, &npy, found) : KYMO_OK;
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

static kymo_status read_safetensors(const char *path, bool wants_data, struct found *found)
{
    struct kymo__numbers_file file;
    struct kymo__map head;
    struct only only = {0};
    size_t data_at;
    KYMO_TRY(kymo__numbers_open(path, 8, &file, &head));
    const size_t n_head = kymo__safetensors_head(head.data, head.len);
    kymo__map_close(&head);
    KYMO_TRY(kymo__numbers_open(path, n_head, &file, &head));
    const kymo_status status =
        kymo__safetensors_parse(path, head.data, file.len, take_only, &only, &data_at);
    kymo__map_close(&head);
    KYMO_TRY(status);
    if (only.n != 1)
        return kymo__fail(KYMO_EFORMAT, "%s holds %zu tensors where one was expected", path, only.n);
    found->shape = only.shape;
    found->file = file;
    found->at = data_at + only.offset;
    return wants_data ? load(&file, found->at, found) : KYMO_OK;
}

/* ---- .bin ---- */

static kymo_status read_meta(const char *path, struct kymo__shape *out)
{
    char meta[PATH_MAX];
    struct kymo__map map;
    const int n = snprintf(meta, sizeof meta, "%s.meta.json", path);
    if (n < 0 || (size_t)n >= sizeof meta)
        return kymo__fail(KYMO_EIO, "the path of %s is too long", path);
    KYMO_TRY(kymo__map_text(meta, &map));
    const kymo_status status = kymo__bin_meta_parse(meta, map.data, map.len, out);
    kymo__map_close(&map);
    return status;
}

static kymo_status read_bin(const char *path, bool wants_data, const struct kymo__shape *shape,
                            struct found *found)
{
    struct kymo__numbers_file file;
    uint64_t n_bytes;
    KYMO_TRY(kymo__numbers_open(path, 0, &file, NULL));
    if (!kymo__shape_bytes(shape, &n_bytes) || n_bytes != file.len)
        return kymo__fail(KYMO_EFORMAT, "%s has %" PRIu64 " bytes, which does not match its shape",
                          path, file.len);
    found->shape = *shape;
    found->file = file;
    return wants_data ? load(&file, 0, found) : KYMO_OK;
}

/* ---- .json ---- */

static kymo_status read_json(const char *path, const struct kymo__shape *shape, struct found *found)
{
    struct kymo__map map;
    struct kymo__cursor cursor;
    struct kymo__numbers numbers = {0};
    KYMO_TRY(kymo__map_text(path, &map));
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

static kymo_status take_pixels(const char *path, size_t i, size_t n_files,
                               const struct kymo_image *image, struct found *found)
{
    const struct kymo__shape shape = shape_of_pixels(image, n_files);
    uint64_t n_bytes;
    if (!kymo__shape_bytes(&shape, &n_bytes))
        return kymo__fail(KYMO_EFORMAT, "%s and the pictures with it are too large", path);
    if (i == 0) {
        char *const all = kymo__alloc(n_bytes);
        if (all == NULL)
            return no_memory(path);
        *found = (struct found){.shape = shape, .data = all};
    } else if (shape.dtype != found->shape.dtype || shape.rank != found->shape.rank ||
               memcmp(shape.sizes, found->shape.sizes, sizeof shape.sizes) != 0) {
        return kymo__fail(KYMO_EFORMAT, "%s is not as large as the picture before it", path);
    }
    memcpy((char *)found->data + i * (n_bytes / n_files), image->samples, n_bytes / n_files);
    return KYMO_OK;
}

static kymo_status read_pixels(const struct kymo_dumped_value *value, struct found *found)
{
    for (size_t i = 0; i < value->n_files; i++) {
        kymo_images *images;
        KYMO_TRY(kymo_png_open(value->files[i], &images));
        const kymo_status status =
            take_pixels(value->files[i], i, value->n_files, kymo_images_get(images, 0), found);
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

static kymo_status read_files(const struct kymo_dumped_value *value, bool wants_data,
                              const struct kymo__shape *wanted, struct found *found)
{
    if (is_image(value->type))
        return read_pixels(value, found);
    switch (value->type) {
    case KYMO_DUMP_NPY:
        return read_npy(value->files[0], wants_data, found);
    case KYMO_DUMP_SAFETENSORS:
        return read_safetensors(value->files[0], wants_data, found);
    case KYMO_DUMP_BINARY:
        return read_bin(value->files[0], wants_data, wanted, found);
    case KYMO_DUMP_JSON:
        return read_json(value->files[0], wanted, found);
    default:
        return kymo__fail(KYMO_ESTATE, "'%s' has files that are not read", value->name);
    }
}

/* The tensor of a value's place, which takes what was found. */
static kymo_status put_found(const struct kymo_dumped_value *value, struct kymo__place *place,
                             struct found *found)
{
    place->tensor = (struct kymo_tensor){
        .data = found->data, .dtype = value->dtype, .rank = value->rank, .sizes = value->sizes};
    if (is_image(value->type)) {
        place->sizes = kymo__alloc((found->shape.rank + 1) * sizeof *place->sizes);
        if (place->sizes == NULL)
            return no_memory(value->name);
        memcpy(place->sizes, found->shape.sizes, found->shape.rank * sizeof *place->sizes);
        place->tensor.dtype = found->shape.dtype;
        place->tensor.rank = found->shape.rank;
        place->tensor.sizes = place->sizes;
    }
    place->numbers = found->data;
    place->is_read = true;
    found->data = NULL;
    return KYMO_OK;
}

static kymo_status check_bytes(const struct kymo_dumped_value *value, const struct found *found)
{
    uint64_t n_found = 0;
    /* safetensors may have another type for it: as many bytes will do. */
    if (is_image(value->type) ||
        (kymo__shape_bytes(&found->shape, &n_found) && n_found == value->n_bytes))
        return KYMO_OK;
    return kymo__fail(KYMO_EFORMAT, "%s holds %" PRIu64 " bytes of numbers; '%s' has %" PRIu64,
                      value->n_files != 0 ? value->files[0] : "a file", n_found, value->name,
                      value->n_bytes);
}

kymo_status kymo__value_find(const struct kymo__step *step, size_t i,
                             struct kymo__numbers_file *file, uint64_t *at)
{
    const struct kymo_dumped_value *const value = &step->values[i];
    const struct kymo__shape shape = shape_of(value);
    struct found found = {.file = step->file, .at = step->places[i].at};
    if (!step->places[i].is_inside) {
        found.file.path = NULL;
        if (value->type != KYMO_DUMP_NPY && value->type != KYMO_DUMP_SAFETENSORS &&
            value->type != KYMO_DUMP_BINARY)
            return KYMO_OK;
        KYMO_TRY(read_files(value, false, &shape, &found));
        KYMO_TRY(check_bytes(value, &found));
    }
    *file = found.file;
    *at = found.at;
    return KYMO_OK;
}

kymo_status kymo__value_read(struct kymo__step *step, size_t i)
{
    const struct kymo_dumped_value *const value = &step->values[i];
    struct kymo__place *const place = &step->places[i];
    const struct kymo__shape shape = shape_of(value);
    struct found found = {.shape = shape};
    kymo_status status = place->is_inside ? load(&step->file, place->at, &found)
                                          : read_files(value, true, &shape, &found);
    if (status == KYMO_OK)
        status = check_bytes(value, &found);
    if (status == KYMO_OK)
        status = put_found(value, place, &found);
    kymo__free(found.data);
    return status;
}

kymo_status kymo__value_look(struct kymo__step *step)
{
    const size_t i = step->n_values - 1;
    const struct kymo_dumped_value *const value = &step->values[i];
    struct found found = {0};
    if (value->type == KYMO_DUMP_PICKLE)
        return KYMO_OK;
    kymo_status status = value->type == KYMO_DUMP_BINARY
                             ? read_meta(value->files[0], &found.shape)
                             : read_files(value, false, &found.shape, &found);
    if (status == KYMO_OK)
        status = kymo__step_shape(step, &found.shape);
    if (status == KYMO_OK && found.data != NULL)
        status = put_found(value, &step->places[i], &found);
    step->places[i].has_numbers = status == KYMO_OK;
    kymo__free(found.data);
    return status;
}
