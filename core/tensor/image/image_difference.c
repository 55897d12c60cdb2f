/* Two pictures against one another: how far each pixel is from the other, over all its channels. */
#include <string.h>

#include "tensor/image/internal.h"

/* 0..65535, whatever the depth. */
static int64_t sample_at(const struct marey_image *image, size_t i)
{
    uint16_t sample;
    if (image->depth == 8)
        return ((const uint8_t *)image->samples)[i] * 257;
    memcpy(&sample, (const uint8_t *)image->samples + 2 * i, 2);
    return sample;
}

static int64_t distance_at(const struct marey_image *a, const struct marey_image *b, size_t pixel)
{
    int64_t most = 0;
    for (uint32_t c = 0; c < a->n_channels; c++) {
        const size_t i = pixel * a->n_channels + c;
        const int64_t apart = sample_at(a, i) - sample_at(b, i);
        most = MAREY__MAX(most, apart < 0 ? -apart : apart);
    }
    return most;
}

marey_status marey_images_difference(const struct marey_image *a, const struct marey_image *b,
                                     enum marey_color_map map, marey_images **out)
{
    marey_images *images;
    uint8_t colors[256][3];
    int64_t most = 0;
    if (map >= MAREY_N_MAPS)
        return marey__fail(MAREY_EINVAL, "there is no such colour map");
    if (a->width != b->width || a->height != b->height || a->n_channels != b->n_channels)
        return marey__fail(
            MAREY_EINVAL,
            "pictures of %u x %u pixels with %u channels and of %u x %u with %u have no "
            "difference to draw",
            a->width, a->height, a->n_channels, b->width, b->height, b->n_channels);
    const struct marey_image like = {
        .width = a->width, .height = a->height, .n_channels = 3, .depth = 8};
    MAREY_TRY(marey__images_alloc(&like, 1, &images));
    marey__color_map_fill(map, colors);
    const size_t n = (size_t)a->width * a->height;
    for (size_t i = 0; i < n; i++)
        most = MAREY__MAX(most, distance_at(a, b, i));
    for (size_t i = 0; i < n; i++) {
        const int64_t step = most != 0 ? (distance_at(a, b, i) * 255 + most / 2) / most : 0;
        memcpy(images->samples + 3 * i, colors[step], 3);
    }
    images->images[0].low = 0;
    images->images[0].high = (double)most / 65535; /* of the whole range of samples */
    *out = images;
    return MAREY_OK;
}
