/* Converts a tensor to samples: reorders axes to images, rows, columns, channels; then doubles, their range, rounding. */
#include <math.h>
#include <string.h>

#include "tensor/image/internal.h"
#include "tensor/kernels/internal.h"

/* How the tensor is decomposed. */
struct shape {
    struct marey_tensor ordered; /* images, rows, columns, channels */
    int64_t sizes[MAREY_MAX_RANK + 1], strides[MAREY_MAX_RANK + 1];
    uint32_t n_axes;     /* leading axes that count images */
    uint32_t n_channels; /* of the tensor, including alpha */
    bool has_alpha;
    size_t n_images, n_values; /* values: per image */
};

struct maker {
    const struct marey_image_options *options;
    const struct shape *shape;
    enum marey_image_type type;
    marey_images *images;
    const uint8_t *elements; /* row-major */
    double *values;          /* of one image */
    uint8_t colors[256][3];
};

marey_status marey__image_check(const struct marey_tensor *tensor)
{
    MAREY_TRY(marey_tensor_check(tensor));
    if (marey__dtype_get(tensor->dtype)->n_parts != 1)
        return marey__fail(MAREY_EINVAL, "a tensor of %s cannot be an image",
                           marey_dtype_name(tensor->dtype));
    return MAREY_OK;
}

/* ---- axes ---- */

static bool is_color_count(enum marey_image_type type, int64_t n)
{
    return type == MAREY_IMAGE_GREY ? n == 1 || n == 2 : n == 3 || n == 4;
}

/* Finds the channel axis: the last, the one before rows and columns, or none. */
static marey_status find_channels(const struct marey_tensor *t, enum marey_image_type type,
                                  enum marey_channel_axis wish, enum marey_channel_axis *out)
{
    const bool is_grey = type == MAREY_IMAGE_GREY;
    const int64_t last = t->rank >= 3 ? t->sizes[t->rank - 1] : 0;
    const int64_t first = t->rank >= 3 ? t->sizes[t->rank - 3] : 0;
    *out = wish;
    if (wish == MAREY_CHANNEL_AUTO && is_grey) /* [height, width, 1], never a batch of thin images */
        *out = last == 1 ? MAREY_CHANNEL_LAST : MAREY_CHANNEL_ABSENT;
    else if (wish == MAREY_CHANNEL_AUTO)
        *out = is_color_count(type, last) ? MAREY_CHANNEL_LAST : MAREY_CHANNEL_FIRST;
    if (*out == MAREY_CHANNEL_ABSENT && is_grey && t->rank >= 2)
        return MAREY_OK;
    if (*out == MAREY_CHANNEL_LAST && is_color_count(type, last))
        return MAREY_OK;
    if (*out == MAREY_CHANNEL_FIRST && is_color_count(type, first))
        return MAREY_OK;
    struct marey__buf sizes MAREY__FINALLY(marey__buf_fini) = {0};
    for (uint32_t i = 0; i < t->rank; i++)
        marey__buf_printf(&sizes, "%s%lld", i != 0 ? ", " : "", (long long)t->sizes[i]);
    return marey__fail(MAREY_EINVAL, "sizes [%.*s] are not those of an image: %s; permute the axes",
                       (int)MAREY__MIN(sizes.len, (size_t)200), sizes.len != 0 ? sizes.data : "",
                       is_grey
                           ? "grey ones have rows and columns last, and 1 or 2 channels if any"
                           : "3 or 4 channels are expected after rows and columns, or before them");
}

static void add_axis(struct shape *shape, const struct marey_tensor *t, const int64_t *strides,
                     uint32_t axis)
{
    shape->sizes[shape->ordered.rank] = t->sizes[axis];
    shape->strides[shape->ordered.rank++] = strides[axis];
}

static marey_status take_apart(const struct marey_tensor *t, enum marey_image_type type,
                               enum marey_channel_axis wish, struct shape *shape)
{
    enum marey_channel_axis where;
    int64_t strides[MAREY_MAX_RANK] = {0};
    *shape = (struct shape){.ordered = *t, .n_channels = 1, .n_images = 1};
    MAREY_TRY(marey__image_check(t));
    MAREY_TRY(find_channels(t, type, wish, &where));
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0; stride *= t->sizes[i])
        strides[i] = t->strides != NULL ? t->strides[i] : stride;
    const uint32_t n_own = where == MAREY_CHANNEL_ABSENT ? 2 : 3; /* axes per image */
    const uint32_t rows = t->rank - (where == MAREY_CHANNEL_LAST ? 3 : 2);
    shape->ordered.rank = 0;
    shape->n_axes = t->rank - n_own;
    for (uint32_t i = 0; i < shape->n_axes; i++) {
        add_axis(shape, t, strides, i);
        shape->n_images *= (size_t)t->sizes[i];
    }
    add_axis(shape, t, strides, rows);
    add_axis(shape, t, strides, rows + 1);
    if (where != MAREY_CHANNEL_ABSENT) {
        const uint32_t axis = where == MAREY_CHANNEL_LAST ? t->rank - 1 : t->rank - 3;
        shape->n_channels = (uint32_t)t->sizes[axis];
        add_axis(shape, t, strides, axis);
    }
    shape->has_alpha = shape->n_channels % 2 == 0;
    shape->ordered.sizes = shape->sizes;
    shape->ordered.strides = shape->strides;
    shape->n_values = (size_t)(t->sizes[rows] * t->sizes[rows + 1]) * shape->n_channels;
    return MAREY_OK;
}

/* ---- ranges ---- */

static void widen(const struct maker *m, double *low, double *high)
{
    const uint32_t n_channels = m->shape->n_channels;
    for (size_t i = 0; i < m->shape->n_values; i++) {
        if (m->shape->has_alpha && i % n_channels == n_channels - 1)
            continue;
        const double value = m->values[i];
        if (!isfinite(value))
            continue;
        *low = value < *low ? value : *low;
        *high = value > *high ? value : *high;
    }
}

static void load(const struct maker *m, size_t i)
{
    const enum marey_dtype dtype = m->shape->ordered.dtype;
    marey__widen_to_double(dtype, m->elements + i * m->shape->n_values * marey_dtype_size(dtype),
                           m->shape->n_values, m->values);
}

/* The value of full opacity: 1 for fractions, the maximum of small integers. */
static double full_alpha(enum marey_dtype dtype)
{
    return dtype == MAREY_U8 ? 255 : dtype == MAREY_U16 ? 65535 : 1;
}

/* ---- samples ---- */

/* 0..top, rounded; an empty range and NaN are black. */
static uint32_t sample_of(double value, double low, double high, double top)
{
    const double share = (value - low) / (high - low);
    if (!(share > 0)) /* includes NaN */
        return 0;
    return (uint32_t)((share < 1 ? share : 1) * top + 0.5);
}

/* ((x - low) * (255 / (high - low))).astype(uint8), where torch multiplies by the reciprocal. */
static uint8_t truncated_sample(double value, double low, double high, bool is_double)
{
    if (!(high > low) || !(value >= low)) /* includes NaN */
        return 0;
    const double scaled = is_double
                              ? (value - low) * (1 / (high - low) * 255)
                              : (double)((float)(value - low) * (1 / (float)(high - low) * 255.0f));
    return (uint8_t)(scaled < 255 ? scaled : 255);
}

static void put_mapped(const struct maker *m, const struct marey_image *image, uint8_t *out)
{
    static const uint8_t magenta[3] = {255, 0, 255};
    const uint32_t n_in = m->shape->n_channels, n_out = image->n_channels;
    const size_t n = m->shape->n_values / n_in;
    for (size_t i = 0; i < n; i++) {
        const double value = m->values[i * n_in];
        const uint32_t step = sample_of(value, image->low, image->high, 255);
        memcpy(out + i * n_out, isnan(value) ? magenta : m->colors[step], 3);
        if (n_in == 2)
            out[i * n_out + 3] = (uint8_t)sample_of(m->values[i * n_in + 1], 0,
                                                    full_alpha(m->shape->ordered.dtype), 255);
    }
}

static void put_plain(const struct maker *m, const struct marey_image *image, uint8_t *out)
{
    static const uint8_t reversed[4] = {2, 1, 0, 3};
    const uint32_t n_channels = image->n_channels;
    const double top = image->depth == 16 ? 65535 : 255;
    const double alpha = full_alpha(m->shape->ordered.dtype);
    const bool is_double = m->shape->ordered.dtype == MAREY_F64;
    for (size_t i = 0; i < m->shape->n_values; i++) {
        const uint32_t channel = (uint32_t)(i % n_channels);
        const bool is_alpha = m->shape->has_alpha && channel == n_channels - 1;
        const size_t from = m->type == MAREY_IMAGE_BGR ? i - channel + reversed[channel] : i;
        const double value = m->values[from];
        const uint32_t sample = is_alpha ? sample_of(value, 0, alpha, top)
                                : m->options->truncates && image->depth == 8
                                    ? truncated_sample(value, image->low, image->high, is_double)
                                    : sample_of(value, image->low, image->high, top);
        if (image->depth == 16)
            memcpy(out + 2 * i, &(uint16_t){(uint16_t)sample}, 2);
        else
            out[i] = (uint8_t)sample;
    }
}

/* Grey becomes RGB through a map, or so that drawings in it have color. */
static bool wants_map(const struct marey_image_options *o, enum marey_image_type type)
{
    const bool is_drawn_into = o->n_boxes != 0 || o->n_points != 0 || o->mask.data != NULL;
    return type == MAREY_IMAGE_GREY && (o->map != MAREY_MAP_NONE || is_drawn_into);
}

static void make_all(struct maker *m)
{
    const struct marey_image_options *o = m->options;
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; o->range == MAREY_RANGE_BATCH && i < m->images->n; i++) {
        load(m, i);
        widen(m, &low, &high);
    }
    if (o->range == MAREY_RANGE_FIXED) {
        low = o->low;
        high = o->high;
    }
    for (size_t i = 0; i < m->images->n; i++) {
        struct marey_image *image = &m->images->images[i];
        load(m, i);
        if (o->range == MAREY_RANGE_EACH) {
            low = INFINITY;
            high = -INFINITY;
            widen(m, &low, &high);
        }
        image->low = low <= high ? low : NAN;
        image->high = low <= high ? high : NAN;
        if (wants_map(o, m->type))
            put_mapped(m, image, marey__image_samples(m->images, i));
        else
            put_plain(m, image, marey__image_samples(m->images, i));
    }
}

/* ---- options ---- */

static marey_status check_options(const struct marey_image_options *o, enum marey_image_type type)
{
    if (o->depth != 0 && o->depth != 8 && o->depth != 16)
        return marey__fail(MAREY_EINVAL, "samples have 8 or 16 bits, not %u", o->depth);
    if (o->range == MAREY_RANGE_FIXED && !(o->low < o->high))
        return marey__fail(MAREY_EINVAL, "a range from %g to %g is none", o->low, o->high);
    if (o->map >= MAREY_N_MAPS)
        return marey__fail(MAREY_EINVAL, "there is no such colour map");
    if (o->map != MAREY_MAP_NONE && type != MAREY_IMAGE_GREY)
        return marey__fail(MAREY_EINVAL, "colour maps are for grey images");
    return MAREY_OK;
}

static marey_status make(const struct marey_tensor *tensor, const struct shape *shape,
                         enum marey_image_type type, const struct marey_image_options *o,
                         marey_images *images)
{
    uint8_t *const elements MAREY__FREED = marey__alloc((size_t)marey_tensor_bytes(tensor));
    double *const values MAREY__FREED = marey__calloc(shape->n_values, sizeof *values);
    MAREY__TRY_MEMORY(elements != NULL && values != NULL);
    MAREY_TRY(marey_tensor_gather(&shape->ordered, elements));
    struct maker m = {.options = o,
                      .shape = shape,
                      .type = type,
                      .images = images,
                      .elements = elements,
                      .values = values};
    marey__color_map_fill(o->map, m.colors);
    make_all(&m);
    return marey__draw(images, o);
}

marey_status marey_images_create(const struct marey_tensor *tensor, enum marey_image_type type,
                                 const struct marey_image_options *options, marey_images **out)
{
    static const struct marey_image_options none;
    const struct marey_image_options *o = options != NULL ? options : &none;
    struct shape shape;
    marey_images *images;
    MAREY_TRY(check_options(o, type));
    MAREY_TRY(take_apart(tensor, type, o->channels, &shape));
    const int64_t height = shape.sizes[shape.n_axes], width = shape.sizes[shape.n_axes + 1];
    const bool is_mapped = wants_map(o, type);
    const struct marey_image like = {.width = (uint32_t)MAREY__MIN(width, INT32_MAX),
                                     .height = (uint32_t)MAREY__MIN(height, INT32_MAX),
                                     .n_channels = is_mapped ? shape.n_channels + 2 : shape.n_channels,
                                     .depth = is_mapped || o->depth == 0 ? 8 : o->depth};
    MAREY_TRY(marey__images_alloc(&like, shape.n_images, &images));
    images->n_axes = shape.n_axes;
    memcpy(images->axes, shape.sizes, shape.n_axes * sizeof *images->axes);
    const marey_status status = make(tensor, &shape, type, o, images);
    if (status == MAREY_OK)
        *out = images;
    else
        marey_images_destroy(images);
    return status;
}
