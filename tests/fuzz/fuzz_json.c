/* Any text as JSON: the same tokens at once and in pieces of a few bytes; skipping ends at the same
 * place as reading. */
#include <stdlib.h>
#include <string.h>

#include "codec/internal.h"
#include "fuzz.h"

/* A hash of all tokens with their strings, in order. */
static uint64_t digest_tokens(struct marey__json *json)
{
    uint64_t sum = 0;
    enum marey__json_token token;
    do {
        token = marey__json_next(json);
        sum = (sum + token) * 1099511628211u;
        if (token == MAREY__JSON_KEY || token == MAREY__JSON_STRING || token == MAREY__JSON_NUMBER)
            sum += marey__crc32c(0, json->text, json->text_len);
        int64_t integer;
        double number;
        if (token == MAREY__JSON_NUMBER && marey__decimal(json->text, json->text_len, 3, &integer))
            MAREY_ASSERT(marey__decimal_double(json->text, json->text_len, &number));
        MAREY_ASSERT(json->depth <= MAREY__JSON_MAX_DEPTH);
    } while (token != MAREY__JSON_END && token != MAREY__JSON_MISTAKE);
    MAREY_ASSERT((token == MAREY__JSON_MISTAKE) == (json->mistake != NULL));
    sum += marey__json_offset(json);
    marey__json_fini(json);
    return sum;
}

static uint64_t digest(const uint8_t *data, size_t size, size_t cut, unsigned rules)
{
    marey__byte_source *bytes;
    struct marey__json json;
    if (marey__bytes_open_memory(data, size, &bytes) != MAREY_OK)
        return 0;
    marey__bytes_cut(bytes, cut);
    if (marey__json_init(&json, bytes) != MAREY_OK)
        abort();
    json.rules = rules;
    const uint64_t sum = digest_tokens(&json);
    marey__bytes_close(bytes);
    return sum;
}

static uint64_t digest_text(const uint8_t *data, size_t size, unsigned rules)
{
    struct marey__json json;
    marey__json_init_text(&json, (const char *)data, size, rules);
    return digest_tokens(&json);
}

/* Skip every value that an object has. */
static void skip(const uint8_t *data, size_t size, size_t cut)
{
    marey__byte_source *bytes;
    struct marey__json scan;
    if (marey__bytes_open_memory(data, size, &bytes) != MAREY_OK)
        return;
    marey__bytes_cut(bytes, cut);
    if (marey__json_init(&scan, bytes) != MAREY_OK)
        abort();
    enum marey__json_token token;
    do {
        token = marey__json_next(&scan);
        if (token == MAREY__JSON_KEY && !marey__json_skip(&scan))
            MAREY_ASSERT(scan.mistake != NULL);
    } while (token != MAREY__JSON_END && token != MAREY__JSON_MISTAKE);
    marey__json_fini(&scan);
    marey__bytes_close(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *text = malloc(size > 0 ? size : 1); /* separate, to detect reads past its end */
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    const bool is_packed = size >= 2 && text[0] == 0x1f && text[1] == 0x8b; /* fuzz_bytes.c's */
    if (!is_packed) {
        static const unsigned rules[] = {
            0, MAREY__JSON_STRICT, MAREY__JSON_STRICT | MAREY__JSON_NAN | MAREY__JSON_SURROGATES};
        for (size_t i = 0; i < MAREY__COUNT_OF(rules); i++) {
            const uint64_t whole = digest(text, size, 0, rules[i]);
            MAREY_ASSERT(digest(text, size, 1, rules[i]) == whole);
            MAREY_ASSERT(digest(text, size, 7, rules[i]) == whole);
            MAREY_ASSERT(digest_text(text, size, rules[i]) == whole);
        }
        skip(text, size, 0);
        skip(text, size, 1);
    }
    free(text);
    return 0;
}
