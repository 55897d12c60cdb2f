/* Any text as JSON: the same tokens in one piece and in pieces of a few bytes, and skipping ends where reading does. */
#include <stdlib.h>
#include <string.h>

#include "codec/codec_internal.h"
#include "fuzz.h"

/* A number that stands for all tokens with their texts, in their order. */
static uint64_t digest(const uint8_t *data, size_t size, size_t cut)
{
    marey__byte_source *bytes;
    struct marey__scan scan;
    uint64_t sum = 0;
    if (marey__bytes_open_memory(data, size, &bytes) != MAREY_OK)
        return 0;
    marey__bytes_cut(bytes, cut);
    if (marey__scan_init(&scan, bytes) != MAREY_OK)
        abort();
    enum marey__scan_token token;
    do {
        token = marey__scan_next(&scan);
        sum = (sum + token) * 1099511628211u;
        if (token == MAREY__SCAN_KEY || token == MAREY__SCAN_STRING || token == MAREY__SCAN_NUMBER)
            sum += marey__crc32c(0, scan.text, scan.text_len);
        int64_t integer;
        double number;
        if (token == MAREY__SCAN_NUMBER && marey__decimal(scan.text, scan.text_len, 3, &integer))
            MAREY_ASSERT(marey__decimal_double(scan.text, scan.text_len, &number));
        MAREY_ASSERT(scan.depth <= MAREY__SCAN_MAX_DEPTH);
    } while (token != MAREY__SCAN_END && token != MAREY__SCAN_MISTAKE);
    MAREY_ASSERT((token == MAREY__SCAN_MISTAKE) == (scan.mistake != NULL));
    sum += marey__scan_offset(&scan);
    marey__scan_fini(&scan);
    marey__bytes_close(bytes);
    return sum;
}

/* Skip every value that an object has. */
static void skip(const uint8_t *data, size_t size, size_t cut)
{
    marey__byte_source *bytes;
    struct marey__scan scan;
    if (marey__bytes_open_memory(data, size, &bytes) != MAREY_OK)
        return;
    marey__bytes_cut(bytes, cut);
    if (marey__scan_init(&scan, bytes) != MAREY_OK)
        abort();
    enum marey__scan_token token;
    do {
        token = marey__scan_next(&scan);
        if (token == MAREY__SCAN_KEY && !marey__scan_skip(&scan))
            MAREY_ASSERT(scan.mistake != NULL);
    } while (token != MAREY__SCAN_END && token != MAREY__SCAN_MISTAKE);
    marey__scan_fini(&scan);
    marey__bytes_close(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *text = malloc(size > 0 ? size : 1); /* of its own, so that a read behind it is seen */
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    const bool is_packed = size >= 2 && text[0] == 0x1f && text[1] == 0x8b; /* fuzz_bytes.c's */
    if (!is_packed) {
        const uint64_t whole = digest(text, size, 0);
        MAREY_ASSERT(digest(text, size, 1) == whole);
        MAREY_ASSERT(digest(text, size, 7) == whole);
        skip(text, size, 0);
        skip(text, size, 1);
    }
    free(text);
    return 0;
}
