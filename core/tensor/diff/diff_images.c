/*
 * Images not yet written by the dumper. Earlier dumps have only pixels, so new ones are drawn. A batch is one value, or
 * a list in JSON.
 */
#include <stdio.h>
#include <string.h>

#include "tensor/diff/internal.h"
#include "tensor/image/internal.h"

/* Draws as the layout of the reference does. */
static marey_status draw(const struct marey__waiting *w, const struct marey_dump_value *value,
                         marey_images **out)
{
    static const struct marey_image_options accvlab = {.truncates = 1};
    struct marey_dumped_step step;
    MAREY_TRY(marey_dumps_step(w->reference.ctx, w->reference.number, &step));
    const bool is_accvlab = step.layout == MAREY_DUMP_LAYOUT_ACCVLAB && value->image == NULL;
    return marey_images_create(&value->tensor, marey__image_type(value->type),
                               is_accvlab ? &accvlab : value->image, out);
}

/* Makes `n` consecutive images the current value. */
static void set_current(struct marey__waiting *w, const struct marey_image *image,
                        const void *samples, size_t n)
{
    uint32_t rank = 0;
    if (n > 1)
        w->sizes[rank++] = (int64_t)n;
    w->sizes[rank++] = image->height;
    w->sizes[rank++] = image->width;
    if (image->n_channels > 1)
        w->sizes[rank++] = image->n_channels;
    w->tensor = (struct marey_tensor){.data = samples,
                                      .dtype = image->depth == 16 ? MAREY_U16 : MAREY_U8,
                                      .rank = rank,
                                      .sizes = w->sizes};
    w->value.name = w->name.data;
    w->value.dtype = w->tensor.dtype;
    w->value.rank = rank;
    w->value.sizes = w->sizes;
    w->value.n_bytes = marey_tensor_bytes(&w->tensor);
}

/* Compares all with one value. */
static marey_status compare_batch(struct marey__waiting *w, const marey_images *images,
                                  size_t reference)
{
    const size_t n = marey_images_count(images);
    const struct marey_image *const first = marey_images_get(images, 0);
    const size_t size = marey__image_bytes(first);
    char *const all MAREY__FREED = n > 1 ? marey__alloc(n * size) : NULL;
    MAREY__TRY_MEMORY(n == 1 || all != NULL);
    for (size_t i = 0; n > 1 && i < n; i++)
        memcpy(all + i * size, marey_images_get(images, i)->samples, size);
    set_current(w, first, n > 1 ? all : first->samples, n);
    return marey__diff_compare_waiting(w, reference);
}

/* Appends "[1][0]" to the name, whose length without it and its NUL is `len`. */
static bool name_image(struct marey__buf *name, size_t len, const marey_images *images, size_t i)
{
    const int64_t *sizes;
    uint64_t place[MAREY_MAX_RANK];
    const uint32_t n_axes = marey_images_axes(images, &sizes);
    marey__index_of(sizes, n_axes, i, place);
    name->len = len;
    for (uint32_t axis = 0; axis < n_axes; axis++)
        marey__buf_printf(name, "[%llu]", (unsigned long long)place[axis]);
    marey__buf_put(name, "", 1);
    return !name->failed;
}

/* Compares each with its own value. */
static marey_status compare_each(struct marey__waiting *w, const marey_images *images)
{
    const size_t len = w->name.len - 1;
    marey_status status = MAREY_OK;
    for (size_t i = 0; status == MAREY_OK && i < marey_images_count(images); i++) {
        const struct marey_image *const image = marey_images_get(images, i);
        MAREY__TRY_MEMORY(name_image(&w->name, len, images, i));
        set_current(w, image, image->samples, 1);
        status = marey__diff_compare_waiting(w, marey__diff_find_reference(w, w->name.data));
    }
    return status;
}

marey_status marey__diff_compare_images(struct marey__waiting *w, const struct marey_dump_entry *entry)
{
    const size_t reference = marey__diff_find_reference(w, w->value.name);
    marey_images *images;
    MAREY_TRY(draw(w, &entry->value, &images));
    const marey_status status = reference != MAREY__DIFF_NONE && marey_images_count(images) > 0
                                    ? compare_batch(w, images, reference)
                                    : compare_each(w, images);
    marey_images_destroy(images);
    return status;
}
