/*
 * kymo/image.h: tensors as pictures, pictures as PNG files (libkymo-tools).
 *
 *     kymo_images *images;
 *     kymo_images_create(&tensor, KYMO_IMAGE_RGB, NULL, &images);
 *     kymo_png_save(kymo_images_get(images, 0), NULL, "layer0.png");
 *     kymo_images_destroy(images);
 *
 * Numbers become samples by a range: its low end is black, its high end the brightest, rounded to the nearest and clipped.
 * NaN is black, and magenta where colours are mapped. The last two axes are rows and columns, with the channels behind or
 * before them; axes in front of them count pictures. Any thread; what is lent is lent for the call.
 */
#ifndef KYMO_IMAGE_H
#define KYMO_IMAGE_H

#include <kymo/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the channels of a tensor are. */
enum kymo_image_type {
    KYMO_IMAGE_RGB = 0, /* three channels, or four with the last as alpha */
    KYMO_IMAGE_BGR,     /* the same, blue first */
    KYMO_IMAGE_GREY,    /* one, or none: rows and columns alone; two: the second is alpha */
};

enum kymo_image_range {
    KYMO_RANGE_EACH =
        0, /* from the lowest to the highest number of each picture; one that is all alike is black */
    KYMO_RANGE_BATCH, /* of all pictures of the tensor */
    KYMO_RANGE_FIXED, /* `low` to `high` */
};

enum kymo_channel_axis {
    KYMO_CHANNEL_AUTO =
        0, /* the last axis if it has as many as there are channels, else the one before rows and columns */
    KYMO_CHANNEL_LAST,
    KYMO_CHANNEL_FIRST,
    KYMO_CHANNEL_ABSENT, /* of GREY */
};

/* Colours for the numbers of a grey picture; the result is RGB, as it is when something is drawn into it. */
enum kymo_color_map {
    KYMO_MAP_NONE = 0,
    KYMO_MAP_VIRIDIS,
    KYMO_MAP_HEAT,      /* black, red, yellow, white */
    KYMO_MAP_DIVERGING, /* blue below the middle of the range, red above, white in it */
    KYMO_N_MAPS
};

/* Drawn into picture number `image`, in pixels from the upper left corner; color is 0xRRGGBB. */
struct kymo_box {
    double x0, y0, x1, y1;
    uint32_t image, color;
};
struct kymo_point {
    double x, y;
    uint32_t image, color;
};

/* Zero means the default for every field. */
struct kymo_image_options {
    enum kymo_image_range range;
    double low, high;
    uint32_t depth; /* bits of a sample, 8 or 16; default 8. Colour maps have 8 */
    enum kymo_channel_axis channels;
    enum kymo_color_map map;
    const struct kymo_box *boxes;
    size_t n_boxes;
    const struct kymo_point *points;
    size_t n_points;
    uint32_t line_width;   /* of boxes; default 1 */
    uint32_t point_radius; /* default 2 */
    /* Where it is not zero, the picture is tinted: rows and columns, with as many pictures in front as there are, or one for all. */
    struct kymo_tensor mask; /* data NULL: none */
    uint32_t mask_color;     /* default red */
    double mask_opacity;     /* 0 to 1; default 0.5 */
    /* Samples of 8 bits by the arithmetic of torch in the tensor's type, cut and not rounded, as ACCV-Lab has them. */
    int truncates;
};

/* Samples in rows, channels together; 16-bit ones in the machine's order. */
struct kymo_image {
    uint32_t width, height;
    uint32_t n_channels; /* 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha */
    uint32_t depth;      /* 8 or 16 */
    const void *samples;
    double low, high; /* the range that was drawn; NaN where there is none */
};

typedef struct kymo_images kymo_images;

/* KYMO_EINVAL with a sentence for a tensor that is no picture of this sort, a mask of other sizes, options that are none. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_images_create(const struct kymo_tensor *tensor,
                                                         enum kymo_image_type type,
                                                         const struct kymo_image_options *options,
                                                         kymo_images **out);
KYMO_API void kymo_images_destroy(kymo_images *images);
KYMO_API size_t kymo_images_count(const kymo_images *images);
/* Lent until destroy. */
KYMO_API const struct kymo_image *kymo_images_get(const kymo_images *images, size_t i);
/* How many axes of the tensor count pictures, and their sizes, lent until destroy. */
KYMO_API uint32_t kymo_images_axes(const kymo_images *images, const int64_t **sizes);

/* Of two pictures of one size: the magnitude of the difference, the largest in colour `map`. KYMO_EINVAL for other sizes. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_images_difference(const struct kymo_image *a,
                                                             const struct kymo_image *b,
                                                             enum kymo_color_map map,
                                                             kymo_images **out);

/* ---- PNG ---- */

/* Texts to go along, as tEXt or iTXt; the last has key NULL. */
struct kymo_png_text {
    const char *key, *text;
};
/* Write a file, under another name until it is whole. `texts` may be NULL. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_png_save(const struct kymo_image *image,
                                                    const struct kymo_png_text *texts,
                                                    const char *path);
/* Into memory; the caller frees with kymo_png_free. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_png_pack(const struct kymo_image *image,
                                                    const struct kymo_png_text *texts, void **bytes,
                                                    size_t *len);
KYMO_API void kymo_png_free(void *bytes);
/*
 * Read one: palettes become RGB, fewer than 8 bits 8. KYMO_EFORMAT with a sentence for what is damaged, interlaced or over
 * 2^30 samples; KYMO_EUNAVAILABLE in a build without ISA-L and zlib.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_png_open(const char *path, kymo_images **out);
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_png_unpack(const void *bytes, size_t len,
                                                      kymo_images **out);

#ifdef __cplusplus
}
#endif
#endif
