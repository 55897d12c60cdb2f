/* Pictures that are handed out together. */
#include <math.h>

#include "tensor/image/internal.h"

size_t marey__image_bytes(const struct marey_image *image)
{
    return (size_t)image->width * image->height * image->n_channels * (image->depth / 8);
}

marey_status marey__images_alloc(const struct marey_image *like, size_t n, marey_images **out)
{
    const uint64_t pixels = (uint64_t)like->width * like->height;
    if (n == 0 || pixels == 0)
        return marey__fail(MAREY_EINVAL, "%zu pictures of %u x %u pixels have nothing to show", n,
                           like->width, like->height);
    if (pixels > MAREY__MAX_SAMPLES / like->n_channels)
        return marey__fail(MAREY_EINVAL,
                           "a picture of %u x %u pixels is too large: 2^30 samples are the most",
                           like->width, like->height);
    const size_t bytes = marey__image_bytes(like);
    marey_images *images = marey__calloc(1, sizeof *images);
    MAREY__TRY_MEMORY(images != NULL);
    images->images = marey__calloc(n, sizeof *images->images);
    images->samples = marey__calloc(n, bytes);
    if (images->images == NULL || images->samples == NULL) {
        marey_images_destroy(images);
        return marey__no_memory();
    }
    images->n = n;
    for (size_t i = 0; i < n; i++) {
        images->images[i] = *like;
        images->images[i].samples = images->samples + i * bytes;
        images->images[i].low = images->images[i].high = NAN;
    }
    *out = images;
    return MAREY_OK;
}

uint8_t *marey__image_samples(marey_images *images, size_t i)
{
    return images->samples + i * marey__image_bytes(&images->images[i]);
}

void marey_images_destroy(marey_images *images)
{
    if (images == NULL)
        return;
    marey__free(images->images);
    marey__free(images->samples);
    marey__free(images);
}

size_t marey_images_count(const marey_images *images)
{
    return images->n;
}

const struct marey_image *marey_images_get(const marey_images *images, size_t i)
{
    return i < images->n ? &images->images[i] : NULL;
}

uint32_t marey_images_axes(const marey_images *images, const int64_t **sizes)
{
    *sizes = images->axes;
    return images->n_axes;
}
