/*
 * marey/image.h: tensors as images, images as PNG files (libmarey-tools).
 *
 *     marey_images *images;
 *     marey_images_create(&tensor, MAREY_IMAGE_RGB, NULL, &images);
 *     marey_png_save(marey_images_get(images, 0), NULL, "layer0.png");
 *     marey_images_destroy(images);
 *
 * A range maps values to samples: its low end is black, its high end the brightest; rounded to the nearest and clipped. NaN
 * is black, or magenta with a color map. The last two axes are rows and columns, with the channel axis after or before
 * them; the axes before those enumerate images. Any thread; arguments are lent for the call.
 */
#ifndef MAREY_IMAGE_H
#define MAREY_IMAGE_H

#include <marey/tensor.h>

MAREY_BEGIN_C

/* Meaning of the channels of a tensor. */
enum marey_image_type {
    MAREY_IMAGE_RGB = 0, /* three channels, or four with the last as alpha */
    MAREY_IMAGE_BGR,     /* the same, blue first */
    MAREY_IMAGE_GREY,    /* one channel, or no channel axis; two: the second is alpha */
};

enum marey_image_range {
    MAREY_RANGE_EACH = 0, /* minimum to maximum of each image; a constant image is black */
    MAREY_RANGE_BATCH,    /* minimum to maximum of all images of the tensor */
    MAREY_RANGE_FIXED,    /* `low` to `high` */
};

enum marey_channel_axis {
    MAREY_CHANNEL_AUTO =
        0, /* the last axis if its size matches the channels, else the axis before rows and columns */
    MAREY_CHANNEL_LAST,
    MAREY_CHANNEL_FIRST,
    MAREY_CHANNEL_ABSENT, /* only GREY */
};

/* Color map of a grey image; the result is RGB, as with boxes, points or a mask. */
enum marey_color_map {
    MAREY_MAP_NONE = 0,
    MAREY_MAP_VIRIDIS,
    MAREY_MAP_HEAT,      /* black, red, yellow, white */
    MAREY_MAP_DIVERGING, /* blue below the middle of the range, white in the middle, red above */
    MAREY_N_MAPS
};

/* Drawn into image number `image`, in pixels from the upper left corner; color is 0xRRGGBB. */
struct marey_box {
    double x0, y0, x1, y1;
    uint32_t image, color;
};
struct marey_point {
    double x, y;
    uint32_t image, color;
};

/* Zero means the default for every field. */
struct marey_image_options {
    enum marey_image_range range;
    double low, high;
    uint32_t depth; /* bits per sample, 8 or 16; default 8. Color maps use 8 */
    enum marey_channel_axis channels;
    enum marey_color_map map;
    const struct marey_box *boxes;
    size_t n_boxes;
    const struct marey_point *points;
    size_t n_points;
    uint32_t line_width;   /* of boxes; default 1 */
    uint32_t point_radius; /* default 2 */
    /* Tints the image where not zero: rows and columns, preceded by the same image axes, or one mask for all. */
    struct marey_tensor mask; /* data NULL: none */
    uint32_t mask_color;      /* default red */
    double mask_opacity;      /* 0 to 1; default 0.5 */
    /* 8-bit samples by torch's arithmetic in the tensor's type, truncated instead of rounded, as in ACCV-Lab. */
    int truncates;
};

/* Samples row by row, channels interleaved; 16-bit samples in native byte order. */
struct marey_image {
    uint32_t width, height;
    uint32_t n_channels; /* 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha */
    uint32_t depth;      /* 8 or 16 */
    const void *samples;
    double low, high; /* the range of values; NaN: none */
};

typedef struct marey_images marey_images;

/* MAREY_EINVAL: the tensor does not fit `type`, the mask has other sizes, or invalid options. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_images_create(const struct marey_tensor *tensor,
                                                             enum marey_image_type type,
                                                             const struct marey_image_options *options,
                                                             marey_images **out);
MAREY_API void marey_images_destroy(marey_images *images);
MAREY_API size_t marey_images_count(const marey_images *images);
/* Lent until destroy. */
MAREY_API const struct marey_image *marey_images_get(const marey_images *images, size_t i);
/* Number of image axes of the tensor, and their sizes, lent until destroy. */
MAREY_API uint32_t marey_images_axes(const marey_images *images, const int64_t **sizes);

/* Magnitude of the difference of two images, scaled to the largest, in color map `map`. MAREY_EINVAL: sizes differ. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_images_difference(const struct marey_image *a,
                                                                 const struct marey_image *b,
                                                                 enum marey_color_map map,
                                                                 marey_images **out);

/* ---- PNG ---- */

/* Text chunks (tEXt or iTXt); terminated by key NULL. */
struct marey_png_text {
    const char *key, *text;
};
/* Write a file, under a temporary name until complete. `texts` may be NULL. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_png_save(const struct marey_image *image,
                                                        const struct marey_png_text *texts,
                                                        const char *path);
/* Into memory; the caller frees with marey_png_free. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_png_pack(const struct marey_image *image,
                                                        const struct marey_png_text *texts,
                                                        void **bytes, size_t *len);
MAREY_API void marey_png_free(void *bytes);
/*
 * Read a PNG; palettes become RGB, fewer than 8 bits become 8. MAREY_EFORMAT: damaged, interlaced or more than 2^30
 * samples.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_png_open(const char *path, marey_images **out);
MAREY_API MAREY_WARN_UNUSED marey_status marey_png_unpack(const void *bytes, size_t len,
                                                          marey_images **out);

MAREY_END_C
#endif
