/*
 * Pictures that wait in the dumper. Of an earlier one nothing is there but pixels, so those of the new one are drawn as its
 * files would have them. A batch is one value in a manifest, and a list of them in ACCV-Lab's JSON.
 */
#include <stdio.h>
#include <string.h>

#include "diff/diff_pending.h"
#include <kymo/image.h>

/* As the layout of the reference has them. */
static kymo_status draw(const struct kymo__waiting *w, const struct kymo_dump_value *value,
                        kymo_images **out)
{
    static const struct kymo_image_options accvlab = {.truncates = 1};
    struct kymo_dumped_step step;
    KYMO_TRY(kymo_dumps_step(w->reference.ctx, w->reference.number, &step));
    const bool is_accvlab = step.layout == KYMO_DUMP_LAYOUT_ACCVLAB && value->image == NULL;
    const enum kymo_image_type type = value->type == KYMO_DUMP_IMAGE_RGB   ? KYMO_IMAGE_RGB
                                      : value->type == KYMO_DUMP_IMAGE_BGR ? KYMO_IMAGE_BGR
                                                                           : KYMO_IMAGE_GREY;
    return kymo_images_create(&value->tensor, type, is_accvlab ? &accvlab : value->image, out);
}

/* Let `n` pictures in a row be the value that is looked at. */
static void look_at(struct kymo__waiting *w, const struct kymo_image *image, const void *samples,
                    size_t n)
{
    uint32_t rank = 0;
    if (n > 1)
        w->sizes[rank++] = (int64_t)n;
    w->sizes[rank++] = image->height;
    w->sizes[rank++] = image->width;
    if (image->n_channels > 1)
        w->sizes[rank++] = image->n_channels;
    w->tensor = (struct kymo_tensor){.data = samples,
                                     .dtype = image->depth == 16 ? KYMO_U16 : KYMO_U8,
                                     .rank = rank,
                                     .sizes = w->sizes};
    w->value.name = w->name.data;
    w->value.dtype = w->tensor.dtype;
    w->value.rank = rank;
    w->value.sizes = w->sizes;
    w->value.n_bytes = kymo_tensor_bytes(&w->tensor);
}

static size_t image_bytes(const struct kymo_image *image)
{
    return (size_t)image->width * image->height * image->n_channels * (image->depth / 8);
}

/* All of them against one value. */
static kymo_status judge_batch(struct kymo__waiting *w, const kymo_images *images, size_t reference)
{
    const size_t n = kymo_images_count(images);
    const struct kymo_image *const first = kymo_images_get(images, 0);
    const size_t size = image_bytes(first);
    if (n == 1) {
        look_at(w, first, first->samples, 1);
        return kymo__diff_judge_waiting(w, reference);
    }
    char *const all = kymo__alloc(n * size);
    if (all == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory to compare pictures");
    for (size_t i = 0; i < n; i++)
        memcpy(all + i * size, kymo_images_get(images, i)->samples, size);
    look_at(w, first, all, n);
    const kymo_status status = kymo__diff_judge_waiting(w, reference);
    kymo__free(all);
    return status;
}

/* Put "[1][0]" behind the name, whose length without it and its NUL is `len`. */
static bool name_picture(struct kymo__buf *name, size_t len, const kymo_images *images, size_t i)
{
    const int64_t *sizes;
    size_t place[KYMO_MAX_RANK];
    const uint32_t n_axes = kymo_images_axes(images, &sizes);
    for (uint32_t axis = n_axes; axis-- > 0; i /= (size_t)sizes[axis])
        place[axis] = i % (size_t)sizes[axis];
    name->len = len;
    for (uint32_t axis = 0; axis < n_axes; axis++)
        kymo__buf_printf(name, "[%zu]", place[axis]);
    kymo__buf_put(name, "", 1);
    return !name->failed;
}

/* Each against a value of its own. */
static kymo_status judge_each(struct kymo__waiting *w, const kymo_images *images)
{
    const size_t len = w->name.len - 1;
    kymo_status status = KYMO_OK;
    for (size_t i = 0; status == KYMO_OK && i < kymo_images_count(images); i++) {
        const struct kymo_image *const image = kymo_images_get(images, i);
        if (!name_picture(&w->name, len, images, i))
            return kymo__fail(KYMO_ENOMEM, "no memory to compare pictures");
        look_at(w, image, image->samples, 1);
        status = kymo__diff_judge_waiting(w, kymo__diff_find_reference(w, w->name.data));
    }
    return status;
}

kymo_status kymo__diff_judge_pictures(struct kymo__waiting *w, const struct kymo_dump_entry *entry)
{
    const size_t reference = kymo__diff_find_reference(w, w->value.name);
    kymo_images *images;
    KYMO_TRY(draw(w, &entry->value, &images));
    const kymo_status status = reference != KYMO__DIFF_NONE && kymo_images_count(images) > 0
                                   ? judge_batch(w, images, reference)
                                   : judge_each(w, images);
    kymo_images_destroy(images);
    return status;
}
