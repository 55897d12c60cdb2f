/*
 * image: tensors as images, images as PNG files.
 *
 *   image_make.c                numbers to pixels
 *   draw.c                      boxes, points and masks
 *   png_write.c, png_read.c     files                  image_list.c   images, color maps, differences
 *
 * Input: tensors, PNG files. Output: images, PNG files. Does not know dumps.
 */
#ifndef MAREY_TENSOR_IMAGE_INTERNAL_H
#define MAREY_TENSOR_IMAGE_INTERNAL_H

#include "base/internal.h"
#include <marey/image.h>

/* The maximum number of samples per image. */
#define MAREY__MAX_SAMPLES ((uint64_t)1 << 30)

/* ---- image_list.c ---- */
struct marey_images {
    struct marey_image *images; /* samples are consecutive in `samples` */
    size_t n;
    uint8_t *samples;
    uint32_t n_axes;
    int64_t axes[MAREY_MAX_RANK];
};
/* Allocates `n` black images like the given one; MAREY_EINVAL if they are empty or too large, MAREY_ENOMEM. */
MAREY_WARN_UNUSED marey_status marey__images_alloc(const struct marey_image *like, size_t n,
                                                   marey_images **out);
/* The samples of one image, for writing. */
uint8_t *marey__image_samples(marey_images *images, size_t i);
size_t marey__image_bytes(const struct marey_image *image);

/* ---- image_make.c ---- */
/* MAREY_EINVAL for an invalid tensor, or one whose elements are not single numbers. */
MAREY_WARN_UNUSED marey_status marey__image_check(const struct marey_tensor *tensor);

/* Three bytes per step. */
void marey__color_map_fill(enum marey_color_map map, uint8_t table[256][3]);

/* ---- draw.c ---- */
/* Draws everything in `options`. MAREY_EINVAL for a mask of other sizes. */
MAREY_WARN_UNUSED marey_status marey__draw(marey_images *images,
                                           const struct marey_image_options *options);

#endif
