/*
 * image: tensors as pictures, pictures as PNG files.
 *
 *   image_make.c ── a tensor's numbers to samples, by a range;  color_map.c ── or to colours
 *   draw.c ── boxes, points and masks into them;  image_difference.c ── two of them against one another
 *   png_write.c, png_read.c ── files;  image_list.c ── what is handed out
 */
#ifndef KYMO_IMAGE_INTERNAL_H
#define KYMO_IMAGE_INTERNAL_H

#include <kymo/image.h>

#include "base/base_internal.h"

/* Samples of one picture are at most this many. */
#define KYMO__MAX_SAMPLES ((uint64_t)1 << 30)

/* ---- image_list.c ---- */
struct kymo_images {
    struct kymo_image *images; /* their samples lie in `samples`, one behind the other */
    size_t n;
    uint8_t *samples;
    uint32_t n_axes;
    int64_t axes[KYMO_MAX_RANK];
};
/* `n` pictures alike, all black; KYMO_EINVAL where they are empty or too large, KYMO_ENOMEM. */
KYMO_WARN_UNUSED kymo_status kymo__images_alloc(const struct kymo_image *like, size_t n,
                                                kymo_images **out);
/* The samples of one, to be written. */
uint8_t *kymo__image_samples(kymo_images *images, size_t i);
size_t kymo__image_bytes(const struct kymo_image *image);

/* ---- image_make.c ---- */
/* Elements in a row as doubles; of a type that kymo__image_check() takes. */
void kymo__image_values(enum kymo_dtype dtype, const void *from, size_t n, double *to);
/* KYMO_EINVAL for what is no tensor, or one whose elements are not single numbers. */
KYMO_WARN_UNUSED kymo_status kymo__image_check(const struct kymo_tensor *tensor);

/* ---- color_map.c ---- */
/* Three bytes for each of 256 steps. */
void kymo__color_map_fill(enum kymo_color_map map, uint8_t table[256][3]);

/* ---- draw.c ---- */
/* Everything that `options` wants drawn. KYMO_EINVAL for a mask of other sizes. */
KYMO_WARN_UNUSED kymo_status kymo__draw(kymo_images *images,
                                        const struct kymo_image_options *options);

/* ---- png_write.c ---- */
void kymo__png_put(struct kymo__buf *out, const struct kymo_image *image,
                   const struct kymo_png_text *texts);

#endif
