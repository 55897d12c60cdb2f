/* image: tensors as images, drawings in them, writing and reading PNG. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "codec/internal.h"
#include "tensor/image/internal.h"

static const uint8_t *samples(const marey_images *images, size_t i)
{
    return marey_images_get(images, i)->samples;
}

static marey_images *made(const struct marey_tensor *tensor, enum marey_image_type type,
                          const struct marey_image_options *options)
{
    marey_images *images = NULL;
    const marey_status status = marey_images_create(tensor, type, options, &images);
    if (status != MAREY_OK)
        fail_msg("%s", marey_last_error());
    return images;
}

#define SIZES(...) ((const int64_t[]){__VA_ARGS__})

/* ---- ranges ---- */

static void each_picture_is_stretched_over_its_own_range(void **state)
{
    (void)state;
    const float x[] = {0, 1, 2, 3, /* and */ 10, 10, 10, 30};
    const struct marey_tensor t = {.data = x, .dtype = MAREY_F32, .rank = 3, .sizes = SIZES(2, 2, 2)};
    marey_images *images = made(&t, MAREY_IMAGE_GREY, NULL);
    const int64_t *axes;
    assert_int_equal(marey_images_count(images), 2);
    assert_int_equal(marey_images_axes(images, &axes), 1);
    assert_int_equal(axes[0], 2);
    assert_memory_equal(samples(images, 0), ((uint8_t[]){0, 85, 170, 255}), 4);
    assert_memory_equal(samples(images, 1), ((uint8_t[]){0, 0, 0, 255}), 4);
    assert_true(marey_images_get(images, 1)->low == 10 && marey_images_get(images, 1)->high == 30);
    marey_images_destroy(images);
}

static void a_batch_has_one_range_if_asked(void **state)
{
    (void)state;
    const float x[] = {0, 1, 1, 4};
    const struct marey_tensor t = {.data = x, .dtype = MAREY_F32, .rank = 3, .sizes = SIZES(2, 1, 2)};
    marey_images *images =
        made(&t, MAREY_IMAGE_GREY, &(struct marey_image_options){.range = MAREY_RANGE_BATCH});
    assert_memory_equal(samples(images, 0), ((uint8_t[]){0, 64}), 2);
    assert_memory_equal(samples(images, 1), ((uint8_t[]){64, 255}), 2);
    marey_images_destroy(images);
}

static void a_fixed_range_rounds_and_clips(void **state)
{
    (void)state;
    const double x[] = {-5, 0, 0.5, 1, 7, NAN, INFINITY, -INFINITY};
    const struct marey_tensor t = {.data = x, .dtype = MAREY_F64, .rank = 2, .sizes = SIZES(1, 8)};
    const struct marey_image_options fixed = {.range = MAREY_RANGE_FIXED, .low = 0, .high = 1};
    marey_images *images = made(&t, MAREY_IMAGE_GREY, &fixed);
    assert_memory_equal(samples(images, 0), ((uint8_t[]){0, 0, 128, 255, 255, 0, 255, 0}), 8);
    marey_images_destroy(images);
    const struct marey_image_options deep = {
        .range = MAREY_RANGE_FIXED, .low = 0, .high = 1, .depth = 16};
    images = made(&t, MAREY_IMAGE_GREY, &deep);
    assert_memory_equal(samples(images, 0), ((uint16_t[]){0, 0, 32768, 65535, 65535, 0, 65535, 0}),
                        16);
    marey_images_destroy(images);
}

static void what_is_all_alike_or_no_number_is_black(void **state)
{
    (void)state;
    const float x[] = {3, 3, NAN, NAN};
    const struct marey_tensor t = {.data = x, .dtype = MAREY_F32, .rank = 3, .sizes = SIZES(2, 1, 2)};
    marey_images *images = made(&t, MAREY_IMAGE_GREY, NULL);
    assert_memory_equal(samples(images, 0), ((uint8_t[]){0, 0}), 2);
    assert_memory_equal(samples(images, 1), ((uint8_t[]){0, 0}), 2);
    assert_true(isnan(marey_images_get(images, 1)->low));
    marey_images_destroy(images);
}

static void every_single_number_type_is_a_picture(void **state)
{
    (void)state;
    const struct {
        enum marey_dtype dtype;
        uint64_t low, high;
    } types[] = {
        {MAREY_BOOL, 0, 1},
        {MAREY_U8, 0, 255},
        {MAREY_I8, 0x80, 0x7f},
        {MAREY_I16, 0x8000, 1},
        {MAREY_U16, 0, 0xffff},
        {MAREY_I32, 0x80000000, 1},
        {MAREY_U32, 0, 7},
        {MAREY_I64, 1ull << 63, 1},
        {MAREY_U64, 0, UINT64_MAX},
        {MAREY_F16, 0xbc00, 0x3c00},
        {MAREY_BF16, 0xbf80, 0x3f80},
        {MAREY_F8_E4M3FN, 0xb8, 0x38},
        {MAREY_F8_E5M2, 0xbc, 0x3c},
        {MAREY_F8_E4M3FNUZ, 0xc0, 0x40},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(types); i++) {
        uint8_t bytes[16];
        const size_t size = marey_dtype_size(types[i].dtype);
        memcpy(bytes, &types[i].low, size);
        memcpy(bytes + size, &types[i].high, size);
        const struct marey_tensor t = {
            .data = bytes, .dtype = types[i].dtype, .rank = 2, .sizes = SIZES(1, 2)};
        marey_images *images = made(&t, MAREY_IMAGE_GREY, NULL);
        assert_memory_equal(samples(images, 0), ((uint8_t[]){0, 255}), 2);
        marey_images_destroy(images);
    }
}

/* ---- channels ---- */

static void channels_come_last_or_first_and_blue_may_lead(void **state)
{
    (void)state;
    const uint8_t last[] = {0, 51, 102, 153, 204, 255};  /* one row of two pixels */
    const uint8_t first[] = {0, 153, 51, 204, 102, 255}; /* the same */
    const uint8_t bgr[] = {102, 51, 0, 255, 204, 153};
    const struct marey_tensor l = {
        .data = last, .dtype = MAREY_U8, .rank = 3, .sizes = SIZES(1, 2, 3)};
    const struct marey_tensor f = {
        .data = first, .dtype = MAREY_U8, .rank = 3, .sizes = SIZES(3, 1, 2)};
    const struct marey_tensor b = {.data = bgr, .dtype = MAREY_U8, .rank = 3, .sizes = SIZES(1, 2, 3)};
    marey_images *images[] = {made(&l, MAREY_IMAGE_RGB, NULL), made(&f, MAREY_IMAGE_RGB, NULL),
                              made(&b, MAREY_IMAGE_BGR, NULL)};
    for (size_t i = 0; i < MAREY__COUNT_OF(images); i++) {
        assert_int_equal(marey_images_get(images[i], 0)->width, 2);
        assert_int_equal(marey_images_get(images[i], 0)->n_channels, 3);
        assert_memory_equal(samples(images[i], 0), last, sizeof last);
        marey_images_destroy(images[i]);
    }
}

static void alpha_is_not_stretched(void **state)
{
    (void)state;
    const float x[] = {2, 4, 6, 0.5f};
    const struct marey_tensor t = {.data = x, .dtype = MAREY_F32, .rank = 3, .sizes = SIZES(1, 1, 4)};
    marey_images *images = made(&t, MAREY_IMAGE_RGB, NULL);
    assert_memory_equal(samples(images, 0), ((uint8_t[]){0, 128, 255, 128}), 4);
    marey_images_destroy(images);
}

static void one_channel_behind_a_grey_picture_is_no_batch(void **state)
{
    (void)state;
    const uint8_t x[] = {0, 1, 2, 3, 4, 5};
    const struct marey_tensor t = {.data = x, .dtype = MAREY_U8, .rank = 3, .sizes = SIZES(2, 3, 1)};
    marey_images *images = made(&t, MAREY_IMAGE_GREY, NULL);
    assert_int_equal(marey_images_count(images), 1);
    assert_int_equal(marey_images_get(images, 0)->width, 3);
    assert_int_equal(marey_images_get(images, 0)->height, 2);
    marey_images_destroy(images);
}

static void what_is_no_picture_is_reported(void **state)
{
    (void)state;
    const float x[16] = {0};
    const double complex_numbers[4] = {0};
    marey_images *images;
    const struct marey_tensor two = {
        .data = x, .dtype = MAREY_F32, .rank = 3, .sizes = SIZES(2, 2, 2)};
    const struct marey_tensor line = {.data = x, .dtype = MAREY_F32, .rank = 1, .sizes = SIZES(4)};
    const struct marey_tensor none = {
        .data = NULL, .dtype = MAREY_F32, .rank = 2, .sizes = SIZES(0, 4)};
    const struct marey_tensor c = {
        .data = complex_numbers, .dtype = MAREY_C64, .rank = 2, .sizes = SIZES(2, 2)};
    assert_int_equal(marey_images_create(&two, MAREY_IMAGE_RGB, NULL, &images), MAREY_EINVAL);
    assert_non_null(strstr(marey_last_error(), "[2, 2, 2]"));
    assert_int_equal(marey_images_create(&line, MAREY_IMAGE_GREY, NULL, &images), MAREY_EINVAL);
    assert_int_equal(marey_images_create(&none, MAREY_IMAGE_GREY, NULL, &images), MAREY_EINVAL);
    assert_int_equal(marey_images_create(&c, MAREY_IMAGE_GREY, NULL, &images), MAREY_EINVAL);
    const struct marey_image_options bad[] = {
        {.depth = 12},
        {.range = MAREY_RANGE_FIXED, .low = 1, .high = 1},
        {.range = MAREY_RANGE_FIXED, .low = NAN, .high = 1},
        {.map = MAREY_N_MAPS},
        {.mask = line},
    };
    const struct marey_tensor grey = {.data = x, .dtype = MAREY_F32, .rank = 2, .sizes = SIZES(2, 2)};
    for (size_t i = 0; i < MAREY__COUNT_OF(bad); i++)
        assert_int_equal(marey_images_create(&grey, MAREY_IMAGE_GREY, &bad[i], &images),
                         MAREY_EINVAL);
}

/* ---- colours and drawings ---- */

static void maps_begin_and_end_with_their_colours(void **state)
{
    (void)state;
    const float x[] = {-1, 1, NAN};
    const struct marey_tensor t = {.data = x, .dtype = MAREY_F32, .rank = 2, .sizes = SIZES(1, 3)};
    marey_images *images =
        made(&t, MAREY_IMAGE_GREY, &(struct marey_image_options){.map = MAREY_MAP_VIRIDIS});
    const uint8_t expected[] = {0x44, 0x01, 0x54, 0xfd, 0xe7, 0x25, 255, 0, 255};
    assert_int_equal(marey_images_get(images, 0)->n_channels, 3);
    assert_memory_equal(samples(images, 0), expected, sizeof expected);
    marey_images_destroy(images);
}

static uint32_t color_at(const marey_images *images, size_t i, uint32_t x, uint32_t y)
{
    const struct marey_image *image = marey_images_get(images, i);
    const uint8_t *at = samples(images, i) + (size_t)(y * image->width + x) * image->n_channels;
    return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}

static void boxes_points_and_masks_are_drawn_where_they_are(void **state)
{
    (void)state;
    static uint8_t x[2 * 10 * 12], mask[10 * 12];
    mask[9 * 12 + 11] = 1;
    const struct marey_tensor t = {.data = x, .dtype = MAREY_U8, .rank = 3, .sizes = SIZES(2, 10, 12)};
    const struct marey_box boxes[] = {{1, 2, 6, 7, 0, 0x00ff00},
                                      {-1e300, NAN, 1e300, 1e12, 1, 0x0000ff},
                                      {0, 0, 5, 5, 9, 0x0000ff}};
    const struct marey_point points[] = {{10, 3, 0, 0x123456}, {INFINITY, 3, 1, 0xffffff}};
    const struct marey_image_options options = {
        .boxes = boxes,
        .n_boxes = 3,
        .points = points,
        .n_points = 2,
        .point_radius = 1,
        .mask = {.data = mask, .dtype = MAREY_BOOL, .rank = 2, .sizes = SIZES(10, 12)},
    };
    marey_images *images = made(&t, MAREY_IMAGE_GREY, &options);
    assert_int_equal(color_at(images, 0, 1, 2), 0x00ff00);
    assert_int_equal(color_at(images, 0, 6, 7), 0x00ff00);
    assert_int_equal(color_at(images, 0, 1, 5), 0x00ff00);
    assert_int_equal(color_at(images, 0, 2, 3), 0);
    assert_int_equal(color_at(images, 0, 7, 7), 0);
    assert_int_equal(color_at(images, 0, 10, 3), 0x123456);
    assert_int_equal(color_at(images, 0, 9, 3), 0x123456);
    assert_int_equal(color_at(images, 0, 9, 2), 0);
    assert_int_equal(color_at(images, 0, 11, 9), 0x800000);
    assert_int_equal(color_at(images, 1, 11, 9), 0x800000);
    marey_images_destroy(images);
}

static void the_difference_is_brightest_where_it_is_largest(void **state)
{
    (void)state;
    const uint8_t a[] = {10, 20, 30, 40}, b[] = {10, 10, 30, 60};
    const struct marey_image x = {.width = 2, .height = 2, .n_channels = 1, .depth = 8, .samples = a};
    const struct marey_image y = {.width = 2, .height = 2, .n_channels = 1, .depth = 8, .samples = b};
    const struct marey_image wide = {
        .width = 4, .height = 1, .n_channels = 1, .depth = 8, .samples = a};
    marey_images *images;
    assert_int_equal(marey_images_difference(&x, &y, MAREY_MAP_NONE, &images), MAREY_OK);
    assert_int_equal(color_at(images, 0, 0, 0), 0);
    assert_int_equal(color_at(images, 0, 1, 0), 0x808080);
    assert_int_equal(color_at(images, 0, 1, 1), 0xffffff);
    marey_images_destroy(images);
    assert_int_equal(marey_images_difference(&x, &wide, MAREY_MAP_NONE, &images), MAREY_EINVAL);
}

/* ---- PNG ---- */

static void fill(uint8_t *bytes, size_t n, uint32_t seed, bool is_smooth)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(is_smooth ? i / 7 + (seed >> 31) : seed >> 24);
    }
}

static void what_is_packed_is_unpacked(void **state)
{
    (void)state;
    static uint8_t bytes[64 * 33 * 4 * 2];
    for (uint32_t channels = 1; channels <= 4; channels++) {
        for (uint32_t depth = 8; depth <= 16; depth += 8) {
            for (uint32_t seed = 0; seed < 2; seed++) {
                const struct marey_image image = {.width = 64,
                                                  .height = 33,
                                                  .n_channels = channels,
                                                  .depth = depth,
                                                  .samples = bytes};
                void *packed;
                size_t len;
                marey_images *images;
                fill(bytes, sizeof bytes, seed + channels, seed == 0);
                assert_int_equal(marey_png_pack(&image, NULL, &packed, &len), MAREY_OK);
                assert_int_equal(marey_png_unpack(packed, len, &images), MAREY_OK);
                assert_int_equal(marey_images_get(images, 0)->n_channels, channels);
                assert_int_equal(marey_images_get(images, 0)->depth, depth);
                assert_memory_equal(samples(images, 0), bytes, marey__image_bytes(&image));
                marey_images_destroy(images);
                marey_png_free(packed);
            }
        }
    }
}

static void every_cut_and_every_flip_is_refused_or_read(void **state)
{
    (void)state;
    uint8_t bytes[12 * 9];
    const struct marey_image image = {
        .width = 12, .height = 9, .n_channels = 1, .depth = 8, .samples = bytes};
    const struct marey_png_text texts[] = {{"name", "layer0"}, {"other", "größe"}, {NULL, NULL}};
    void *packed;
    size_t len;
    marey_images *images;
    fill(bytes, sizeof bytes, 1, true);
    assert_int_equal(marey_png_pack(&image, texts, &packed, &len), MAREY_OK);
    for (size_t cut = 0; cut < len; cut++)
        assert_int_equal(marey_png_unpack(packed, cut, &images), MAREY_EFORMAT);
    for (size_t i = 0; i < 8 * len; i++) {
        uint8_t *byte = (uint8_t *)packed + i / 8;
        *byte ^= (uint8_t)(1 << i % 8);
        assert_int_equal(marey_png_unpack(packed, len, &images),
                         MAREY_EFORMAT); /* each has a checksum */
        *byte ^= (uint8_t)(1 << i % 8);
    }
    marey_png_free(packed);
}

static void files_are_whole_or_not_there(void **state)
{
    (void)state;
    char folder[] = "/tmp/marey-image-XXXXXX", path[64];
    const uint8_t bytes[4] = {1, 2, 3, 4};
    const struct marey_image image = {
        .width = 2, .height = 2, .n_channels = 1, .depth = 8, .samples = bytes};
    marey_images *images;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x.png", folder);
    assert_int_equal(marey_png_open(path, &images), MAREY_EIO);
    assert_int_equal(marey_png_open(folder, &images), MAREY_EFORMAT);
    assert_non_null(strstr(marey_last_error(), folder));
    assert_int_equal(marey_png_save(&image, NULL, path), MAREY_OK);
    assert_int_equal(marey_png_open(path, &images), MAREY_OK);
    assert_memory_equal(samples(images, 0), bytes, 4);
    marey_images_destroy(images);
    unlink(path);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left */
    assert_int_equal(marey_png_save(&image, NULL, path), MAREY_EIO);
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    const float x[] = {0, 1, 2, 3};
    const uint8_t mask[] = {0, 1, 1, 0};
    const struct marey_tensor t = {.data = x, .dtype = MAREY_F32, .rank = 2, .sizes = SIZES(2, 2)};
    const struct marey_image_options options = {
        .mask = {.data = mask, .dtype = MAREY_U8, .rank = 2, .sizes = SIZES(2, 2)}};
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status == MAREY_ENOMEM; nth++) {
        marey_images *images = NULL, *back = NULL;
        void *packed = NULL;
        size_t len;
        marey__alloc_fail_nth(nth);
        status = marey_images_create(&t, MAREY_IMAGE_GREY, &options, &images);
        if (status == MAREY_OK)
            status = marey_png_pack(marey_images_get(images, 0), NULL, &packed, &len);
        marey__alloc_fail_nth(0);
        if (status == MAREY_OK)
            assert_int_equal(marey_png_unpack(packed, len, &back), MAREY_OK);
        marey_images_destroy(images);
        marey_images_destroy(back);
        marey_png_free(packed);
    }
    assert_int_equal(status, MAREY_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_picture_is_stretched_over_its_own_range),
        cmocka_unit_test(a_batch_has_one_range_if_asked),
        cmocka_unit_test(a_fixed_range_rounds_and_clips),
        cmocka_unit_test(what_is_all_alike_or_no_number_is_black),
        cmocka_unit_test(every_single_number_type_is_a_picture),
        cmocka_unit_test(channels_come_last_or_first_and_blue_may_lead),
        cmocka_unit_test(alpha_is_not_stretched),
        cmocka_unit_test(one_channel_behind_a_grey_picture_is_no_batch),
        cmocka_unit_test(what_is_no_picture_is_reported),
        cmocka_unit_test(maps_begin_and_end_with_their_colours),
        cmocka_unit_test(boxes_points_and_masks_are_drawn_where_they_are),
        cmocka_unit_test(the_difference_is_brightest_where_it_is_largest),
        cmocka_unit_test(what_is_packed_is_unpacked),
        cmocka_unit_test(every_cut_and_every_flip_is_refused_or_read),
        cmocka_unit_test(files_are_whole_or_not_there),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
