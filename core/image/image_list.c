/* Pictures that are handed out together. */
#include <math.h>

#include "image/image_internal.h"

size_t kymo__image_bytes(const struct kymo_image *image)
{
    return (size_t)image->width * image->height * image->n_channels * (image->depth / 8);
}

kymo_status kymo__images_alloc(const struct kymo_image *like, size_t n, kymo_images **out)
{
    const uint64_t pixels = (uint64_t)like->width * like->height;
    if (n == 0 || pixels == 0)
        return kymo__fail(KYMO_EINVAL, "%zu pictures of %u x %u pixels have nothing to show", n,
                          like->width, like->height);
    if (pixels > KYMO__MAX_SAMPLES / like->n_channels)
        return kymo__fail(KYMO_EINVAL,
                          "a picture of %u x %u pixels is too large: 2^30 samples are the most",
                          like->width, like->height);
    const size_t bytes = kymo__image_bytes(like);
    kymo_images *images = kymo__calloc(1, sizeof *images);
    if (images == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for pictures");
    images->images = kymo__calloc(n, sizeof *images->images);
    images->samples = kymo__calloc(n, bytes);
    if (images->images == NULL || images->samples == NULL) {
        kymo_images_destroy(images);
        return kymo__fail(KYMO_ENOMEM, "no memory for %zu pictures of %u x %u pixels", n,
                          like->width, like->height);
    }
    images->n = n;
    for (size_t i = 0; i < n; i++) {
        images->images[i] = *like;
        images->images[i].samples = images->samples + i * bytes;
        images->images[i].low = images->images[i].high = NAN;
    }
    *out = images;
    return KYMO_OK;
}

uint8_t *kymo__image_samples(kymo_images *images, size_t i)
{
    return images->samples + i * kymo__image_bytes(&images->images[i]);
}

void kymo_images_destroy(kymo_images *images)
{
    if (images == NULL)
        return;
    kymo__free(images->images);
    kymo__free(images->samples);
    kymo__free(images);
}

size_t kymo_images_count(const kymo_images *images)
{
    return images->n;
}

const struct kymo_image *kymo_images_get(const kymo_images *images, size_t i)
{
    return i < images->n ? &images->images[i] : NULL;
}

uint32_t kymo_images_axes(const kymo_images *images, const int64_t **sizes)
{
    *sizes = images->axes;
    return images->n_axes;
}
