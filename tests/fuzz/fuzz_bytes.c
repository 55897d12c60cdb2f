/* Any bytes as a file: reading at once and in small pieces gives the same. */
#include <stdlib.h>
#include <string.h>

#include "codec/internal.h"
#include "fuzz.h"

enum { MAX_UNPACKED = 8 << 20 }; /* a few bytes can decompress to gigabytes */

static uint32_t digest(const uint8_t *data, size_t size, size_t cut, bool *is_damaged)
{
    marey__byte_source *source;
    const char *bytes;
    size_t len = 1;
    uint32_t sum = 0;
    if (marey__bytes_open_memory(data, size, &source) != MAREY_OK)
        return 0;
    marey__bytes_cut(source, cut);
    while (len > 0 && marey__bytes_total(source) < MAX_UNPACKED) {
        if (marey__bytes_next(source, &bytes, &len) != MAREY_OK)
            abort();
        sum = marey__crc32c(sum, bytes, len);
    }
    MAREY_ASSERT(marey__bytes_share(source) >= 0 && marey__bytes_share(source) <= 1);
    *is_damaged = marey__bytes_damage(source) != NULL;
    marey__bytes_close(source);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1); /* separate, to detect reads past its end */
    if (copy == NULL)
        return 0;
    memcpy(copy, data, size);
    bool is_damaged[2] = {false, false};
    const uint32_t whole = digest(copy, size, 0, &is_damaged[0]);
    const uint32_t cut = digest(copy, size, 1024, &is_damaged[1]);
    MAREY_ASSERT(whole == cut && is_damaged[0] == is_damaged[1]);
    free(copy);
    return 0;
}
