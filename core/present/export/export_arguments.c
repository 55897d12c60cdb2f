/*
 * The arguments of an event: a JSON object as another tool wrote it. A recording may be damaged and the tool may have
 * been careless, so the text is looked through before it becomes part of another file.
 */
#include <math.h>

#include "codec/internal.h"
#include "present/export/internal.h"

enum { MAX_DEPTH = 32 };

static uint32_t bit_of(const struct marey__json *json, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (marey__json_is(json, keys[i]))
            return 1u << i;
    return 0;
}

bool marey__arguments_look(const char *text, size_t len, const char *const *keys, size_t n,
                           uint32_t *found)
{
    struct marey__json json;
    marey__json_init_text(&json, text, len, MAREY__JSON_STRICT | MAREY__JSON_NAN);
    enum marey__json_token token = marey__json_next(&json);
    bool is_sound = token == MAREY__JSON_OBJECT;
    *found = 0;
    while (is_sound && (token = marey__json_next(&json)) != MAREY__JSON_END) {
        if (token == MAREY__JSON_KEY && json.depth == 1)
            *found |= bit_of(&json, keys, n);
        is_sound = token != MAREY__JSON_MISTAKE && json.depth <= MAX_DEPTH;
    }
    marey__json_fini(&json);
    return is_sound;
}

static bool has_wild_numbers(const char *text, size_t len)
{
    return memmem(text, len, "NaN", 3) != NULL || memmem(text, len, "nan", 3) != NULL ||
           memmem(text, len, "Infinity", 8) != NULL;
}

/* The part of `text` between `from` and `to`, with quotes around numbers that JSON does not have. */
static void put_quoted(struct marey__buf *buf, const char *text, size_t len, const char *from,
                       const char *to)
{
    struct marey__json json;
    enum marey__json_token token;
    marey__json_init_text(&json, text, len, MAREY__JSON_STRICT | MAREY__JSON_NAN);
    while ((token = marey__json_next(&json)) != MAREY__JSON_END && token != MAREY__JSON_MISTAKE) {
        const double number = marey__json_number(&json, token);
        if (token != MAREY__JSON_NUMBER || isfinite(number))
            continue;
        const char *const end = text + marey__json_offset(&json);
        marey__utf8_put(buf, from, (size_t)(end - json.text_len - from));
        marey__buf_puts(buf, isnan(number) ? "\"NaN\""
                             : number > 0  ? "\"Infinity\""
                                           : "\"-Infinity\"");
        from = end;
    }
    marey__utf8_put(buf, from, (size_t)(to - from));
    marey__json_fini(&json);
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
        put_quoted(buf, text, len, from, to);
    else
        marey__utf8_put(buf, from, (size_t)(to - from));
    return true;
}
