/* Lists of images; color maps; the difference of two images. */
#include <math.h>
#include <string.h>

#include "tensor/image/internal.h"

size_t marey__image_bytes(const struct marey_image *image)
{
    return (size_t)image->width * image->height * image->n_channels * (image->depth / 8);
}

marey_status marey__images_alloc(const struct marey_image *like, size_t n, marey_images **out)
{
    const uint64_t pixels = (uint64_t)like->width * like->height;
    if (n == 0 || pixels == 0)
        return marey__fail(MAREY_EINVAL, "%zu images of %u x %u pixels have nothing to show", n,
                           like->width, like->height);
    if (pixels > MAREY__MAX_SAMPLES / like->n_channels)
        return marey__fail(MAREY_EINVAL,
                           "an image of %u x %u pixels is too large: 2^30 samples are the most",
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
    MAREY__FREE_ALL(images->images, images->samples, images);
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

/* ---- color maps: a few colors each, linearly interpolated ---- */

static const uint32_t viridis[] = {0x440154, 0x482878, 0x3e4a89, 0x31688e, 0x26828e,
                                   0x1f9e89, 0x35b779, 0x6ece58, 0xb5de2b, 0xfde725};
static const uint32_t heat[] = {0x000000, 0x3b0a2a, 0x8c1127, 0xd4361b,
                                0xf7801a, 0xfcc740, 0xfffbe0};
static const uint32_t diverging[] = {0x1a3f8f, 0x5b86cf, 0xaec8ea, 0xf7f7f7,
                                     0xf1b7a5, 0xd56253, 0x8f1326};
static const uint32_t grey[] = {0x000000, 0xffffff};

static const struct {
    const uint32_t *colors;
    size_t n;
} maps[MAREY_N_MAPS] = {
    [MAREY_MAP_NONE] = {grey, MAREY__COUNT_OF(grey)},
    [MAREY_MAP_VIRIDIS] = {viridis, MAREY__COUNT_OF(viridis)},
    [MAREY_MAP_HEAT] = {heat, MAREY__COUNT_OF(heat)},
    [MAREY_MAP_DIVERGING] = {diverging, MAREY__COUNT_OF(diverging)},
};

void marey__color_map_fill(enum marey_color_map map, uint8_t table[256][3])
{
    const size_t n_between = maps[map].n - 1;
    for (size_t i = 0; i < 256; i++) {
        const size_t place = i * n_between; /* in 255ths */
        const size_t left = MAREY__MIN(place / 255, n_between - 1), rest = place - left * 255;
        for (uint32_t c = 0; c < 3; c++) {
            const size_t a = maps[map].colors[left] >> (16 - 8 * c) & 0xff;
            const size_t b = maps[map].colors[left + 1] >> (16 - 8 * c) & 0xff;
            table[i][c] = (uint8_t)((a * (255 - rest) + b * rest + 127) / 255);
        }
    }
}

/* ---- difference: the largest distance over the channels of each pixel ---- */

/* Scaled to 0..65535 for any depth. */
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
            "images of %u x %u pixels with %u channels and of %u x %u with %u have no "
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
    images->images[0].high = (double)most / 65535; /* relative to the sample range */
    *out = images;
    return MAREY_OK;
}
