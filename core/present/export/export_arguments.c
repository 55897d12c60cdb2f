/*
 * The arguments of an event: a JSON object as another tool wrote it. A recording may be damaged and the tool may have
 * been careless, so the text is looked through before it becomes part of another file.
 */
#include <math.h>

#include "codec/json_reader.h"
#include "present/export/export_internal.h"

enum { MAX_DEPTH = 32 };

/* Go through a value that begins with `token`: everything in it is paired as it must be. */
static bool is_sound(struct marey__json_reader *reader, enum marey__json_token token, int depth)
{
    bool is_first = true;
    if (depth > MAX_DEPTH)
        return false;
    if (token == MAREY__JSON_OBJECT) {
        while (marey__json_next_key(reader, &is_first))
            if (!is_sound(reader, marey__json_next(reader), depth + 1))
                return false;
    } else if (token == MAREY__JSON_LIST) {
        while (marey__json_next_item(reader, &is_first, &token))
            if (!is_sound(reader, token, depth + 1))
                return false;
    } else {
        return token >= MAREY__JSON_TEXT && token <= MAREY__JSON_NULL;
    }
    return reader->mistake == NULL;
}

/* Texts in JSON may have any byte but those below a space; between texts, these may stand. */
static bool has_controls(const char *text, size_t len)
{
    bool is_text = false;
    for (size_t i = 0; i < len; i++) {
        if (is_text && (unsigned char)text[i] < 0x20)
            return true;
        if (is_text && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            is_text = !is_text;
    }
    return false;
}

static uint32_t bit_of(const struct marey__buf *key, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(keys[i]) == key->len && memcmp(keys[i], key->data, key->len) == 0)
            return 1u << i;
    return 0;
}

bool marey__arguments_look(const char *text, size_t len, const char *const *keys, size_t n,
                           uint32_t *found)
{
    struct marey__json_reader reader = {.start = text, .at = text, .end = text + len};
    bool is_first = true;
    bool sound = marey__json_next(&reader) == MAREY__JSON_OBJECT;
    *found = 0;
    while (sound && marey__json_next_key(&reader, &is_first)) {
        *found |= bit_of(&reader.text, keys, n);
        sound = is_sound(&reader, marey__json_next(&reader), 1);
    }
    sound = sound && reader.mistake == NULL && marey__json_next(&reader) == MAREY__JSON_END;
    marey__json_fini(&reader);
    return sound && !has_controls(text, len);
}

static bool has_wild_numbers(const char *text, size_t len)
{
    return memmem(text, len, "NaN", 3) != NULL || memmem(text, len, "nan", 3) != NULL ||
           memmem(text, len, "Infinity", 8) != NULL;
}

/* Token by token, with quotes around numbers that JSON does not have. */
static void put_tokens(struct marey__buf *buf, const char *text, size_t len)
{
    struct marey__json_reader reader = {.start = text, .at = text, .end = text + len};
    for (;;) {
        const char *from = reader.at;
        const enum marey__json_token token = marey__json_next(&reader);
        if (token == MAREY__JSON_END || token == MAREY__JSON_MISTAKE)
            break;
        const bool is_wild = token == MAREY__JSON_NUMBER && !isfinite(reader.number);
        if (is_wild)
            marey__buf_puts(buf, isnan(reader.number) ? "\"NaN\""
                                 : reader.number > 0  ? "\"Infinity\""
                                                      : "\"-Infinity\"");
        else
            marey__utf8_put(buf, from, (size_t)(reader.at - from));
    }
    marey__json_fini(&reader);
}

bool marey__arguments_put(struct marey__buf *buf, const char *text, size_t len)
{
    const char *from = memchr(text, '{', len), *to = memrchr(text, '}', len);
    from++;
    while (from < to && (*from == ' ' || *from == '\n' || *from == '\t' || *from == '\r'))
        from++;
    if (from >= to)
        return false;
    if (has_wild_numbers(from, (size_t)(to - from)))
        put_tokens(buf, from, (size_t)(to - from));
    else
        marey__utf8_put(buf, from, (size_t)(to - from));
    return true;
}
