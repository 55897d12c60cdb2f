/* Any bytes as a PNG. Checksums of its chunks are fixed first; otherwise no code after them would
 * be reached. */
#include <stdlib.h>
#include <string.h>

#include "codec/internal.h"
#include "fuzz.h"
#include "tensor/image/internal.h"

static void mend_checksums(uint8_t *bytes, size_t len)
{
    for (size_t at = 8; len >= 12 && at <= len - 12;) {
        const size_t n = (size_t)bytes[at] << 24 | (size_t)bytes[at + 1] << 16 |
                         (size_t)bytes[at + 2] << 8 | bytes[at + 3];
        if (n > len - at - 12)
            return;
        const uint32_t crc = marey__crc32(0, bytes + at + 4, n + 4);
        for (size_t i = 0; i < 4; i++)
            bytes[at + 8 + n + i] = (uint8_t)(crc >> (24 - 8 * i));
        at += 12 + n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size > 0 ? size : 1); /* separate, to detect reads past its end */
    marey_images *images;
    if (bytes == NULL)
        return 0;
    memcpy(bytes, data, size);
    mend_checksums(bytes, size);
    if (marey_png_unpack(bytes, size, &images) == MAREY_OK) {
        const struct marey_image *image = marey_images_get(images, 0);
        volatile uint8_t last = ((const uint8_t *)image->samples)[marey__image_bytes(image) - 1];
        (void)last;
        marey_images_destroy(images);
    }
    free(bytes);
    return 0;
}
