/*
 * Writes PNG files: signature, IHDR, texts, IDAT, IEND. An image has one filter, the one with the smallest differences
 * in a few sampled rows.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "codec/internal.h"
#include "tensor/image/internal.h"

enum filter { FILTER_NONE, FILTER_SUB, FILTER_UP, N_FILTERS };

static void put_u32(struct marey__buf *out, uint32_t n)
{
    const uint8_t bytes[4] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    marey__buf_put(out, bytes, sizeof bytes);
}

/* ---- chunks: begin, content, end ---- */

static size_t begin_chunk(struct marey__buf *out, const char *type)
{
    const size_t begin = out->len;
    put_u32(out, 0);
    marey__buf_put(out, type, 4);
    return begin;
}

static void end_chunk(struct marey__buf *out, size_t begin)
{
    if (out->failed)
        return;
    uint8_t *at = (uint8_t *)out->data + begin;
    const size_t len = out->len - begin - 8;
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(len >> (24 - 8 * i));
    put_u32(out, marey__crc32(0, at + 4, len + 4));
}

static bool is_ascii(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text >= 0x80)
            return false;
    return true;
}

static void put_text(struct marey__buf *out, const struct marey_png_text *text)
{
    const bool is_plain = is_ascii(text->text);
    const size_t begin = begin_chunk(out, is_plain ? "tEXt" : "iTXt");
    marey__buf_put(out, text->key, strnlen(text->key, 79)); /* the format's limit */
    marey__buf_put(out, "\0\0\0\0\0", is_plain ? 1 : 5); /* not packed, no language, no other key */
    marey__utf8_put(out, text->text, strlen(text->text));
    end_chunk(out, begin);
}

/* ---- rows ---- */

struct rows {
    const struct marey_image *image;
    size_t row_bytes, pixel_bytes;
    uint8_t *current, *above; /* for 16 bits: two rows in file byte order */
};

/* Row `y` in file byte order: 16-bit samples are big-endian. */
static const uint8_t *row_at(const struct rows *rows, uint32_t y, uint8_t *swapped)
{
    const uint8_t *row = (const uint8_t *)rows->image->samples + y * rows->row_bytes;
    if (rows->image->depth == 8)
        return row;
    for (size_t i = 0; i < rows->row_bytes; i += 2) {
        uint16_t sample;
        memcpy(&sample, row + i, 2);
        swapped[i] = (uint8_t)(sample >> 8);
        swapped[i + 1] = (uint8_t)sample;
    }
    return swapped;
}

/* `above` NULL: the first row. */
static void filter_row(enum filter filter, const uint8_t *row, const uint8_t *above, size_t n,
                       size_t pixel, uint8_t *restrict out)
{
    if (filter == FILTER_NONE || (filter == FILTER_UP && above == NULL)) {
        memcpy(out, row, n);
        return;
    }
    if (filter == FILTER_UP) {
        for (size_t i = 0; i < n; i++)
            out[i] = (uint8_t)(row[i] - above[i]);
        return;
    }
    memcpy(out, row, pixel);
    for (size_t i = pixel; i < n; i++)
        out[i] = (uint8_t)(row[i] - row[i - pixel]);
}

static uint64_t roughness(const uint8_t *bytes, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += bytes[i] < 128 ? bytes[i] : 256u - bytes[i];
    return sum;
}

static enum filter choose_filter(const struct rows *rows, uint8_t *scratch)
{
    enum { LOOKS = 16 };
    uint64_t sums[N_FILTERS] = {0};
    const uint32_t step = MAREY__MAX(rows->image->height / LOOKS, 1);
    for (uint32_t y = 1; y < rows->image->height; y += step) {
        const uint8_t *above = row_at(rows, y - 1, rows->above);
        const uint8_t *row = row_at(rows, y, rows->current);
        for (enum filter f = FILTER_NONE; f < N_FILTERS; f++) {
            filter_row(f, row, above, rows->row_bytes, rows->pixel_bytes, scratch);
            sums[f] += roughness(scratch, rows->row_bytes);
        }
    }
    enum filter best = FILTER_UP;
    for (enum filter f = FILTER_NONE; f < N_FILTERS; f++)
        if (sums[f] < sums[best])
            best = f;
    return best;
}

/* All rows with filter bytes, to be freed by the caller; NULL on out of memory. */
static uint8_t *filter_rows(const struct marey_image *image, size_t *n)
{
    const size_t row_bytes = marey__image_bytes(image) / image->height;
    uint8_t *const swapped MAREY__FREED = marey__alloc(2 * row_bytes);
    uint8_t *all = swapped != NULL ? marey__alloc((row_bytes + 1) * image->height) : NULL;
    if (all == NULL)
        return NULL;
    struct rows rows = {.image = image,
                        .row_bytes = row_bytes,
                        .pixel_bytes = image->n_channels * (image->depth / 8),
                        .current = swapped,
                        .above = swapped + row_bytes};
    const enum filter filter = choose_filter(&rows, all);
    const uint8_t *above = NULL;
    for (uint32_t y = 0; y < image->height; y++) {
        uint8_t *out = all + y * (row_bytes + 1);
        const uint8_t *row = row_at(&rows, y, y % 2 ? rows.above : rows.current);
        out[0] = (uint8_t)filter;
        filter_row(filter, row, above, row_bytes, rows.pixel_bytes, out + 1);
        above = row;
    }
    *n = (row_bytes + 1) * image->height;
    return all;
}

static void put_png(struct marey__buf *out, const struct marey_image *image,
                    const struct marey_png_text *texts)
{
    static const uint8_t color_types[] = {0, 0, 4, 2, 6}; /* by the number of channels */
    const uint8_t rest[5] = {(uint8_t)image->depth, color_types[image->n_channels], 0, 0, 0};
    size_t n;
    uint8_t *const rows MAREY__FREED = filter_rows(image, &n);
    if (rows == NULL) {
        out->failed = true;
        return;
    }
    marey__buf_put(out, "\x89PNG\r\n\x1a\n", 8);
    size_t chunk = begin_chunk(out, "IHDR");
    put_u32(out, image->width);
    put_u32(out, image->height);
    marey__buf_put(out, rest, sizeof rest);
    end_chunk(out, chunk);
    for (; texts != NULL && texts->key != NULL; texts++)
        put_text(out, texts);
    chunk = begin_chunk(out, "IDAT");
    marey__zlib_pack(out, rows, n);
    end_chunk(out, chunk);
    end_chunk(out, begin_chunk(out, "IEND"));
}

static marey_status check_image(const struct marey_image *image)
{
    const bool is_one = image->width != 0 && image->height != 0 && image->n_channels >= 1 &&
                        image->n_channels <= 4 && (image->depth == 8 || image->depth == 16);
    if (!is_one || (uint64_t)image->width * image->height > MAREY__MAX_SAMPLES / image->n_channels)
        return marey__fail(MAREY_EINVAL,
                           "PNG cannot hold this image: %u x %u pixels, %u channels of %u bits",
                           image->width, image->height, image->n_channels, image->depth);
    return MAREY_OK;
}

marey_status marey_png_pack(const struct marey_image *image, const struct marey_png_text *texts,
                            void **bytes, size_t *len)
{
    struct marey__buf out MAREY__FINALLY(marey__buf_fini) = {0};
    MAREY_TRY(check_image(image));
    put_png(&out, image, texts);
    MAREY__TRY_MEMORY(!out.failed);
    *bytes = out.data;
    *len = out.len;
    out.data = NULL; /* now owned by the caller */
    return MAREY_OK;
}

void marey_png_free(void *bytes)
{
    marey__free(bytes);
}

marey_status marey_png_save(const struct marey_image *image, const struct marey_png_text *texts,
                            const char *path)
{
    void *bytes = NULL;
    size_t len = 0;
    MAREY_TRY(marey_png_pack(image, texts, &bytes, &len));
    const marey_status status = marey__replace_file(path, bytes, len);
    marey_png_free(bytes);
    return status;
}
