/* Reads PNG files: all color types and depths, not interlaced. Every byte is untrusted. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/internal.h"
#include "tensor/image/internal.h"

enum { GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGB_ALPHA = 6, N_COLORS };

struct png {
    uint32_t width, height;
    uint8_t depth, color;
    const uint8_t *palette; /* three bytes per color */
    uint32_t n_colors;
    struct marey__buf *packed; /* the IDATs, concatenated */
    bool has_header, has_end;
};

static uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static marey_status broken(const char *why)
{
    return marey__fail(MAREY_EFORMAT, "not a sound PNG: %s", why);
}

/* ---- chunks ---- */

static marey_status take_header(struct png *png, const uint8_t *at, uint32_t len)
{
    /* Permitted depths of each color type, added up. */
    static const uint8_t depths[N_COLORS] = {
        [GREY] = 1 | 2 | 4 | 8 | 16, [RGB] = 8 | 16, [PALETTE] = 1 | 2 | 4 | 8, [GREY_ALPHA] = 8 | 16, [RGB_ALPHA] = 8 | 16};
    if (len != 13 || png->has_header)
        return broken("its header is not as it should be");
    png->width = get_u32(at);
    png->height = get_u32(at + 4);
    png->depth = at[8];
    png->color = at[9];
    if (png->color >= N_COLORS || (png->depth & (png->depth - 1)) != 0 ||
        (depths[png->color] & png->depth) == 0)
        return broken("its colour type or depth is unknown");
    if (at[10] != 0 || at[11] != 0)
        return broken("it is packed in an unknown way");
    if (at[12] != 0)
        return marey__fail(MAREY_EFORMAT,
                           "this PNG is interlaced, which is not read; save it again without");
    if (png->width == 0 || png->height == 0 ||
        (uint64_t)png->width * png->height > MAREY__MAX_SAMPLES / 4)
        return marey__fail(MAREY_EFORMAT, "a PNG of %u x %u pixels is empty or too large",
                           png->width, png->height);
    png->has_header = true;
    return MAREY_OK;
}

static marey_status take_chunk(struct png *png, const uint8_t *type, const uint8_t *at, uint32_t len)
{
    if (memcmp(type, "IHDR", 4) == 0)
        return take_header(png, at, len);
    if (!png->has_header)
        return broken("it does not begin with its header");
    if (memcmp(type, "PLTE", 4) == 0) {
        if (len % 3 != 0 || len > 3 * 256)
            return broken("its palette is not as it should be");
        png->palette = at;
        png->n_colors = len / 3;
    } else if (memcmp(type, "IDAT", 4) == 0) {
        marey__buf_put(png->packed, at, len);
    } else if (memcmp(type, "IEND", 4) == 0) {
        png->has_end = true;
    } else if ((type[0] & 0x20) == 0) { /* a capital letter: a critical chunk */
        return broken("it has a part that is not known");
    }
    return MAREY_OK;
}

static marey_status take_chunks(struct png *png, const uint8_t *at, size_t len)
{
    if (len < 8 || memcmp(at, "\x89PNG\r\n\x1a\n", 8) != 0)
        return broken("it does not begin as one");
    at += 8;
    len -= 8;
    while (!png->has_end) {
        if (len < 12 || get_u32(at) > len - 12)
            return broken("it ends too early");
        const uint32_t n = get_u32(at);
        if (marey__crc32(0, at + 4, (size_t)n + 4) != get_u32(at + 8 + n))
            return broken("a checksum is wrong");
        MAREY_TRY(take_chunk(png, at + 4, at + 8, n));
        at += (size_t)12 + n;
        len -= (size_t)12 + n;
    }
    MAREY__TRY_MEMORY(!png->packed->failed);
    return MAREY_OK;
}

/* ---- rows ---- */

static uint8_t paeth(int left, int up, int corner)
{
    const int guess = left + up - corner;
    const int a = abs(guess - left), b = abs(guess - up), c = abs(guess - corner);
    return (uint8_t)(a <= b && a <= c ? left : b <= c ? up : corner);
}

/* `above` NULL: the first row. False for an unknown filter. */
static bool undo_filter(uint8_t filter, uint8_t *row, const uint8_t *above, size_t n, size_t pixel)
{
    if (filter > 4)
        return false;
    for (size_t i = 0; filter != 0 && i < n; i++) {
        const uint8_t left = i >= pixel ? row[i - pixel] : 0, up = above != NULL ? above[i] : 0;
        const uint8_t corner = i >= pixel && above != NULL ? above[i - pixel] : 0;
        const uint8_t guess = filter == 1   ? left
                              : filter == 2 ? up
                              : filter == 3 ? (uint8_t)((left + up) / 2)
                                            : paeth(left, up, corner);
        row[i] = (uint8_t)(row[i] + guess);
    }
    return true;
}

/* Sample `x` of a row with 1, 2, 4 or 8 bits each. */
static uint8_t sample_at(const uint8_t *row, size_t x, uint8_t depth)
{
    const size_t bit = x * depth;
    return (uint8_t)(row[bit / 8] >> (8 - depth - bit % 8) & ((1 << depth) - 1));
}

/* False for a color that is not in the palette. */
static bool take_row(const struct png *png, const uint8_t *row, uint32_t n_channels, uint8_t *out)
{
    const size_t n = (size_t)png->width * n_channels;
    if (png->depth == 16) {
        for (size_t i = 0; i < n; i++) {
            const uint16_t sample = (uint16_t)(row[2 * i] << 8 | row[2 * i + 1]);
            memcpy(out + 2 * i, &sample, 2);
        }
        return true;
    }
    if (png->color != PALETTE) {
        const int top = (1 << png->depth) - 1;
        for (size_t i = 0; i < n; i++)
            out[i] = (uint8_t)(sample_at(row, i, png->depth) * 255 / top);
        return true;
    }
    for (size_t x = 0; x < png->width; x++) {
        const uint8_t color = sample_at(row, x, png->depth);
        if (color >= png->n_colors)
            return false;
        memcpy(out + 3 * x, png->palette + (size_t)3 * color, 3);
    }
    return true;
}

static marey_status take_rows(const struct png *png, uint8_t *rows, size_t row_bytes, size_t pixel,
                              marey_images *images)
{
    const struct marey_image *image = &images->images[0];
    const size_t out_bytes = marey__image_bytes(image) / image->height;
    for (uint32_t y = 0; y < png->height; y++) {
        uint8_t *row = rows + y * (row_bytes + 1) + 1;
        const uint8_t *above = y != 0 ? row - (row_bytes + 1) : NULL;
        if (!undo_filter(row[-1], row, above, row_bytes, pixel))
            return broken("unknown row filter");
        if (!take_row(png, row, image->n_channels, images->samples + y * out_bytes))
            return broken("palette index out of range");
    }
    return MAREY_OK;
}

static marey_status make_image(const struct png *png, marey_images **out)
{
    static const uint8_t channels[N_COLORS] = {
        [GREY] = 1, [RGB] = 3, [PALETTE] = 1, [GREY_ALPHA] = 2, [RGB_ALPHA] = 4};
    const uint32_t n_in = channels[png->color];
    const size_t row_bytes = ((size_t)png->width * n_in * png->depth + 7) / 8;
    const size_t n = (row_bytes + 1) * png->height;
    const struct marey_image like = {.width = png->width,
                                     .height = png->height,
                                     .n_channels = png->color == PALETTE ? 3 : n_in,
                                     .depth = png->depth == 16 ? 16 : 8};
    if (png->color == PALETTE && png->palette == NULL)
        return broken("its palette is missing");
    /* Deflate compresses by at most a factor of about 1000: do not allocate for larger claims. */
    if (png->packed->len == 0 || n / 1100 > png->packed->len)
        return broken("its pixels are missing");
    uint8_t *const rows MAREY__FREED = marey__alloc(n);
    MAREY__TRY_MEMORY(rows != NULL);
    if (!marey__zlib_unpack((const uint8_t *)png->packed->data, png->packed->len, rows, n))
        return broken("its pixels cannot be unpacked");
    MAREY_TRY(marey__images_alloc(&like, 1, out));
    const marey_status status =
        take_rows(png, rows, row_bytes, MAREY__MAX(n_in * png->depth / 8, 1), *out);
    if (status != MAREY_OK)
        marey_images_destroy(*out);
    return status;
}

marey_status marey_png_unpack(const void *bytes, size_t len, marey_images **out)
{
    struct marey__buf packed MAREY__FINALLY(marey__buf_fini) = {0};
    struct png png = {.packed = &packed};
    MAREY_TRY(take_chunks(&png, bytes, len));
    return make_image(&png, out);
}

static marey_status read_whole(int fd, const char *path, struct marey__buf *bytes)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return marey__fail_errno("read %s", path);
    if (!S_ISREG(st.st_mode))
        return marey__fail(MAREY_EFORMAT, "it is not a regular file");
    uint8_t *room = marey__buf_extend(bytes, (size_t)st.st_size);
    for (size_t at = 0; room != NULL && at < bytes->len;) {
        const ssize_t n = read(fd, room + at, bytes->len - at);
        if (n < 0)
            return marey__fail_errno("read %s", path);
        if (n == 0)
            bytes->len = at; /* it became smaller */
        at += (size_t)n;
    }
    return bytes->failed ? marey__no_memory() : MAREY_OK;
}

marey_status marey_png_open(const char *path, marey_images **out)
{
    struct marey__buf bytes MAREY__FINALLY(marey__buf_fini) = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return marey__fail_errno("open %s", path);
    marey_status status = read_whole(fd, path, &bytes);
    close(fd);
    if (status == MAREY_OK)
        status = marey_png_unpack(bytes.data, bytes.len, out);
    if (status == MAREY_EFORMAT) {
        char why[256];
        snprintf(why, sizeof why, "%s", marey_last_error());
        status = marey__fail(MAREY_EFORMAT, "%s: %s", path, why);
    }
    return status;
}
