/* Draws boxes, points and masks into color images, clipped to the image. */
#include <math.h>
#include <string.h>

#include "tensor/image/internal.h"
#include "tensor/kernels/internal.h"

/* One image to draw into. */
struct canvas {
    const struct marey_image *image;
    uint8_t *samples;
};

/* Blends `color` over a pixel; keeps alpha, and ignores pixels outside. */
static void blend(const struct canvas *c, int64_t x, int64_t y, uint32_t color, double opacity)
{
    const struct marey_image *image = c->image;
    if (x < 0 || y < 0 || x >= image->width || y >= image->height)
        return;
    const size_t at = ((size_t)y * image->width + (size_t)x) * image->n_channels;
    for (uint32_t i = 0; i < 3; i++) {
        const double wish = (color >> (16 - 8 * i) & 0xff) / 255.0;
        if (image->depth == 16) {
            uint16_t sample;
            memcpy(&sample, c->samples + 2 * (at + i), 2);
            sample = (uint16_t)(sample * (1 - opacity) + wish * 65535 * opacity + 0.5);
            memcpy(c->samples + 2 * (at + i), &sample, 2);
        } else {
            c->samples[at + i] =
                (uint8_t)(c->samples[at + i] * (1 - opacity) + wish * 255 * opacity + 0.5);
        }
    }
}

/* Converts a coordinate to a pixel; NaN and far values stay outside. */
static int64_t pixel(double x)
{
    return x >= -1e6 && x <= 2e9 ? (int64_t)floor(x) : x > 0 ? (int64_t)2e9 : -1000000;
}

static void fill(const struct canvas *c, int64_t x0, int64_t y0, int64_t x1, int64_t y1,
                 uint32_t color)
{
    x1 = MAREY__MIN(x1, (int64_t)c->image->width - 1);
    y1 = MAREY__MIN(y1, (int64_t)c->image->height - 1);
    for (int64_t y = MAREY__MAX(y0, 0); y <= y1; y++)
        for (int64_t x = MAREY__MAX(x0, 0); x <= x1; x++)
            blend(c, x, y, color, 1);
}

/* The outline, with its lines inside the box. */
static void draw_box(const struct canvas *c, const struct marey_box *box, uint32_t line_width)
{
    const int64_t x0 = pixel(fmin(box->x0, box->x1)), x1 = pixel(fmax(box->x0, box->x1));
    const int64_t y0 = pixel(fmin(box->y0, box->y1)), y1 = pixel(fmax(box->y0, box->y1));
    const int64_t more = (int64_t)line_width - 1;
    fill(c, x0, y0, x1, MAREY__MIN(y0 + more, y1), box->color);
    fill(c, x0, MAREY__MAX(y1 - more, y0), x1, y1, box->color);
    fill(c, x0, y0, MAREY__MIN(x0 + more, x1), y1, box->color);
    fill(c, MAREY__MAX(x1 - more, x0), y0, x1, y1, box->color);
}

static void draw_point(const struct canvas *c, const struct marey_point *point, int64_t radius)
{
    const int64_t x = pixel(point->x), y = pixel(point->y);
    for (int64_t dy = -radius; dy <= radius; dy++)
        for (int64_t dx = -radius; dx <= radius; dx++)
            if (dx * dx + dy * dy <= radius * radius)
                blend(c, x + dx, y + dy, point->color, 1);
}

/* ---- masks ---- */

static marey_status check_mask(const marey_images *images, const struct marey_tensor *mask,
                               size_t *n_masks)
{
    const struct marey_image *image = &images->images[0];
    MAREY_TRY(marey__image_check(mask));
    const uint64_t pixels = (uint64_t)image->width * image->height, n = marey_tensor_count(mask);
    const bool has_sides = mask->rank >= 2 && mask->sizes[mask->rank - 1] == image->width &&
                           mask->sizes[mask->rank - 2] == image->height;
    if (!has_sides || (n != pixels && n != pixels * images->n))
        return marey__fail(
            MAREY_EINVAL, "the mask is not one of %u rows and %u columns, for each image or for all",
            image->height, image->width);
    *n_masks = (size_t)(n / pixels);
    return MAREY_OK;
}

static marey_status draw_masks(marey_images *images, const struct marey_image_options *o)
{
    const size_t size = marey_dtype_size(o->mask.dtype);
    const double opacity = o->mask_opacity > 0 ? fmin(o->mask_opacity, 1) : 0.5;
    const uint32_t color = o->mask_color != 0 ? o->mask_color : 0xff0000;
    const uint32_t width = images->images[0].width;
    size_t n_masks = 1;
    MAREY_TRY(check_mask(images, &o->mask, &n_masks));
    uint8_t *const elements MAREY__FREED = marey__alloc((size_t)marey_tensor_bytes(&o->mask));
    double *const row MAREY__FREED = marey__calloc(width, sizeof *row);
    MAREY__TRY_MEMORY(elements != NULL && row != NULL);
    MAREY_TRY(marey_tensor_gather(&o->mask, elements));
    for (size_t i = 0; i < images->n; i++) {
        const struct canvas c = {&images->images[i], marey__image_samples(images, i)};
        const size_t first = n_masks > 1 ? i * c.image->height : 0; /* first row in the masks */
        for (uint32_t y = 0; y < c.image->height; y++) {
            marey__widen_to_double(o->mask.dtype, elements + (first + y) * width * size, width, row);
            for (uint32_t x = 0; x < width; x++)
                if (row[x] != 0 && !isnan(row[x]))
                    blend(&c, x, y, color, opacity);
        }
    }
    return MAREY_OK;
}

marey_status marey__draw(marey_images *images, const struct marey_image_options *o)
{
    if (o->mask.data != NULL)
        MAREY_TRY(draw_masks(images, o));
    for (size_t i = 0; i < o->n_boxes; i++) {
        const size_t at = o->boxes[i].image;
        if (at < images->n)
            draw_box(&(struct canvas){&images->images[at], marey__image_samples(images, at)},
                     &o->boxes[i], MAREY__MAX(o->line_width, 1));
    }
    for (size_t i = 0; i < o->n_points; i++) {
        const size_t at = o->points[i].image;
        if (at < images->n)
            draw_point(&(struct canvas){&images->images[at], marey__image_samples(images, at)},
                       &o->points[i], o->point_radius != 0 ? MAREY__MIN(o->point_radius, 1000u) : 2);
    }
    return MAREY_OK;
}
