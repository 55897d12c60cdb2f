/* Any text as JSON: the same tokens in one piece and in pieces of a few bytes, and skipping ends where reading does. */
#include <stdlib.h>
#include <string.h>

#include "codec/codec_internal.h"
#include "fuzz.h"

/* A number that stands for all tokens with their texts, in their order. */
static uint64_t digest(const uint8_t *data, size_t size, size_t cut)
{
    kymo__byte_source *bytes;
    struct kymo__scan scan;
    uint64_t sum = 0;
    if (kymo__bytes_open_memory(data, size, &bytes) != KYMO_OK)
        return 0;
    kymo__bytes_cut(bytes, cut);
    if (kymo__scan_init(&scan, bytes) != KYMO_OK)
        abort();
    enum kymo__scan_token token;
    do {
        token = kymo__scan_next(&scan);
        sum = (sum + token) * 1099511628211u;
        if (token == KYMO__SCAN_KEY || token == KYMO__SCAN_STRING || token == KYMO__SCAN_NUMBER)
            sum += kymo__crc32c(0, scan.text, scan.text_len);
        int64_t integer;
        double number;
        if (token == KYMO__SCAN_NUMBER && kymo__decimal(scan.text, scan.text_len, 3, &integer))
            KYMO_ASSERT(kymo__decimal_double(scan.text, scan.text_len, &number));
        KYMO_ASSERT(scan.depth <= KYMO__SCAN_MAX_DEPTH);
    } while (token != KYMO__SCAN_END && token != KYMO__SCAN_MISTAKE);
    KYMO_ASSERT((token == KYMO__SCAN_MISTAKE) == (scan.mistake != NULL));
    sum += kymo__scan_offset(&scan);
    kymo__scan_fini(&scan);
    kymo__bytes_close(bytes);
    return sum;
}

/* Skip every value that an object has. */
static void skip(const uint8_t *data, size_t size, size_t cut)
{
    kymo__byte_source *bytes;
    struct kymo__scan scan;
    if (kymo__bytes_open_memory(data, size, &bytes) != KYMO_OK)
        return;
    kymo__bytes_cut(bytes, cut);
    if (kymo__scan_init(&scan, bytes) != KYMO_OK)
        abort();
    enum kymo__scan_token token;
    do {
        token = kymo__scan_next(&scan);
        if (token == KYMO__SCAN_KEY && !kymo__scan_skip(&scan))
            KYMO_ASSERT(scan.mistake != NULL);
    } while (token != KYMO__SCAN_END && token != KYMO__SCAN_MISTAKE);
    kymo__scan_fini(&scan);
    kymo__bytes_close(bytes);
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
        KYMO_ASSERT(digest(text, size, 1) == whole);
        KYMO_ASSERT(digest(text, size, 7) == whole);
        skip(text, size, 0);
        skip(text, size, 1);
    }
    free(text);
    return 0;
}
