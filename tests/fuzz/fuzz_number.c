/* Any text as a number, as the library reads it; any bits as text and back; any bytes as a key of a path and back. */
#include <math.h>
#include <stdio.h>

#include "base/internal.h"
#include "fuzz.h"
#include "padded.h"

static void check_text(const char *text)
{
    struct marey__number number;
    const char *const end = marey__number_read(text, &number);
    if (end == NULL)
        return;
    char copy[4096];
    const size_t len = (size_t)(end - text);
    if (len >= sizeof copy)
        return;
    memcpy(copy, text, len);
    copy[len] = '\0';
    const double expected = strtod(copy, NULL);
    MAREY_ASSERT(memcmp(&expected, &number.value, sizeof expected) == 0);
}

static void check_bits(const uint8_t *data)
{
    char text[MAREY__NUMBER_ROOM + MAREY__TEXT_PADDING];
    struct marey__number number;
    double wide;
    float narrow;
    memcpy(&wide, data, sizeof wide);
    memcpy(&narrow, data, sizeof narrow);
    if (isfinite(wide)) {
        memset(text, 0, sizeof text);
        const char *const end = marey__f64_text(text, wide);
        memset(text + (end - text), 0, sizeof text - (size_t)(end - text));
        MAREY_ASSERT(marey__number_read(text, &number) == end);
        MAREY_ASSERT(memcmp(&number.value, &wide, sizeof wide) == 0);
    }
    if (isfinite(narrow)) {
        const char *const end = marey__f32_text(text, narrow);
        memset(text + (end - text), 0, sizeof text - (size_t)(end - text));
        MAREY_ASSERT(marey__number_read(text, &number) == end);
        const float read = marey__number_read_f32(text);
        MAREY_ASSERT(memcmp(&read, &narrow, sizeof narrow) == 0);
    }
}

static void check_name(const char *key, size_t len)
{
    const struct marey_dump_part parts[] = {
        {.key = key, .key_len = len}, {.index = len}, {.key = key, .key_len = len / 2}};
    struct marey__buf name = {0}, file = {0};
    struct marey__path path;
    marey__name_put(&name, (enum marey_dump_tree)(len & 1), parts, 3);
    MAREY_ASSERT(marey__name_parse(name.data, name.len, &path) == MAREY_OK && path.n_parts == 3);
    MAREY_ASSERT(path.parts[0].key_len == len && memcmp(path.parts[0].key, key, len) == 0);
    MAREY_ASSERT(path.parts[2].key_len == len / 2 && path.tree == (enum marey_dump_tree)(len & 1));
    marey__path_fini(&path);
    marey__file_name_put(&file, name.data, name.len, "");
    MAREY_ASSERT(file.len > 0 && file.len <= MAREY__FILE_NAME_MAX && file.data[0] != '.');
    MAREY_ASSERT(memchr(file.data, '/', file.len) == NULL && memchr(file.data, 0, file.len) == NULL);
    if (marey__name_parse(key, len, &path) == MAREY_OK)
        marey__path_fini(&path);
    marey__buf_fini(&name);
    marey__buf_fini(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct marey__map text = padded_copy(data, size);
    check_text(text.data);
    check_name(text.data, size);
    if (size >= sizeof(double))
        check_bits(data);
    free(text.data);
    return 0;
}
