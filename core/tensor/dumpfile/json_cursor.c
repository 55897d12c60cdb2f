/* JSON as RFC 8259 has it, strictly, one step at a time; no more is read than is asked for. */
#include <string.h>

#include "tensor/dumpfile/dumpfile_internal.h"

void marey__cursor_init(struct marey__cursor *cursor, const char *text, size_t len)
{
    *cursor = (struct marey__cursor){.start = text, .at = text, .end = text + len};
}

void marey__cursor_fini(struct marey__cursor *cursor)
{
    marey__buf_fini(&cursor->text);
}

bool marey__cursor_fail(struct marey__cursor *cursor, const char *mistake)
{
    if (cursor->mistake == NULL)
        cursor->mistake = cursor->text.failed ? "out of memory" : mistake;
    return false;
}

marey_status marey__cursor_status(const struct marey__cursor *cursor, const char *path,
                                  const char *what)
{
    MAREY__TRY_MEMORY(!cursor->text.failed);
    return marey__fail(MAREY_EFORMAT, "%s is no %s: %s at byte %zu", path, what,
                       cursor->mistake != NULL ? cursor->mistake : "something is wrong",
                       (size_t)(cursor->at - cursor->start));
}

char marey__cursor_peek(struct marey__cursor *cursor)
{
    while (*cursor->at == ' ' || *cursor->at == '\n' || *cursor->at == '\t' || *cursor->at == '\r')
        cursor->at++;
    /* A zero within the text is no end, and nothing that JSON has. */
    return cursor->at < cursor->end ? (*cursor->at != '\0' ? *cursor->at : '\1') : '\0';
}

bool marey__cursor_take(struct marey__cursor *cursor, char c)
{
    if (marey__cursor_peek(cursor) != c)
        return false;
    cursor->at++;
    return true;
}

bool marey__cursor_word(struct marey__cursor *cursor, const char *word)
{
    const size_t len = strlen(word);
    marey__cursor_peek(cursor);
    if ((size_t)(cursor->end - cursor->at) < len || memcmp(cursor->at, word, len) != 0)
        return false;
    cursor->at += len;
    return true;
}

bool marey__cursor_done(struct marey__cursor *cursor)
{
    return marey__cursor_peek(cursor) == '\0' ||
           marey__cursor_fail(cursor, "something stands behind the end");
}

/* ---- strings ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four digits behind \u; -1 for what is none. */
static int32_t take_unit(struct marey__cursor *cursor)
{
    int32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        const int digit = hex_digit(cursor->at[i]); /* a zero behind the end is none */
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    cursor->at += 4;
    return unit;
}

/* A lone surrogate becomes three bytes, as Python's "surrogatepass" writes it: nothing is lost. */
static void put_character(struct marey__buf *out, uint32_t c)
{
    char bytes[4];
    size_t n = 0;
    if (c < 0x80) {
        bytes[n++] = (char)c;
    } else {
        const unsigned n_more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
        bytes[n++] = (char)(leads[n_more] | c >> (6 * n_more));
        for (unsigned i = n_more; i-- > 0;)
            bytes[n++] = (char)(0x80 | (c >> (6 * i) & 0x3f));
    }
    marey__buf_put(out, bytes, n);
}

static bool take_escape(struct marey__cursor *cursor)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char c = *cursor->at++;
    const char *const at = c != '\0' ? strchr(from, c) : NULL;
    if (at != NULL) {
        marey__buf_put(&cursor->text, &to[at - from], 1);
        return true;
    }
    int32_t unit = c == 'u' ? take_unit(cursor) : -1;
    if (unit < 0)
        return marey__cursor_fail(cursor, "an unknown escape");
    if (unit >= 0xd800 && unit < 0xdc00 && cursor->at[0] == '\\' && cursor->at[1] == 'u') {
        const char *const back = cursor->at;
        cursor->at += 2;
        const int32_t low = take_unit(cursor);
        if (low >= 0xdc00 && low < 0xe000)
            unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        else
            cursor->at = back;
    }
    put_character(&cursor->text, (uint32_t)unit);
    return true;
}

bool marey__cursor_string(struct marey__cursor *cursor)
{
    if (!marey__cursor_take(cursor, '"'))
        return marey__cursor_fail(cursor, "a string is missing");
    cursor->text.len = 0;
    for (;;) {
        const char *const from = cursor->at;
        while ((unsigned char)*cursor->at >= 0x20 && *cursor->at != '"' && *cursor->at != '\\')
            cursor->at++;
        marey__buf_put(&cursor->text, from, (size_t)(cursor->at - from));
        if (cursor->at >= cursor->end)
            return marey__cursor_fail(cursor, "a string without an end");
        const char c = *cursor->at++;
        if (c == '"')
            break;
        if (c != '\\')
            return marey__cursor_fail(cursor, "a control character in a string");
        if (!take_escape(cursor))
            return false;
    }
    marey__buf_put(&cursor->text, "", 1);
    if (cursor->text.failed)
        return marey__cursor_fail(cursor, "out of memory");
    cursor->text.len--;
    return true;
}

/* ---- numbers ---- */

bool marey__cursor_number(struct marey__cursor *cursor, struct marey__number *out)
{
    marey__cursor_peek(cursor);
    const char *const end = marey__number_read(cursor->at, out);
    if (end == NULL || end > cursor->end)
        return marey__cursor_fail(cursor, "a number is missing");
    cursor->at = end;
    return true;
}

bool marey__cursor_count(struct marey__cursor *cursor, uint64_t *out)
{
    struct marey__number number;
    if (!marey__cursor_number(cursor, &number))
        return false;
    if (!number.is_integer || number.is_negative || number.digits > INT64_MAX)
        return marey__cursor_fail(cursor, "a number that is no count");
    *out = number.digits;
    return true;
}

/* ---- objects and lists ---- */

static bool next(struct marey__cursor *cursor, bool *is_first, char close)
{
    const bool was_first = *is_first;
    *is_first = false;
    if (cursor->mistake != NULL || marey__cursor_take(cursor, close))
        return false;
    if (!was_first && !marey__cursor_take(cursor, ','))
        return marey__cursor_fail(cursor, "a comma is missing");
    return true;
}

bool marey__cursor_next_key(struct marey__cursor *cursor, bool *is_first)
{
    if (!next(cursor, is_first, '}') || !marey__cursor_string(cursor))
        return false;
    return marey__cursor_take(cursor, ':') || marey__cursor_fail(cursor, "a colon is missing");
}

bool marey__cursor_next_item(struct marey__cursor *cursor, bool *is_first)
{
    return next(cursor, is_first, ']');
}

static bool skip(struct marey__cursor *cursor, unsigned depth)
{
    bool is_first = true;
    if (depth > MAREY__CURSOR_DEPTH)
        return marey__cursor_fail(cursor, "it is nested too deeply");
    switch (marey__cursor_peek(cursor)) {
    case '{':
        cursor->at++;
        while (marey__cursor_next_key(cursor, &is_first))
            if (!skip(cursor, depth + 1))
                return false;
        return cursor->mistake == NULL;
    case '[':
        cursor->at++;
        while (marey__cursor_next_item(cursor, &is_first))
            if (!skip(cursor, depth + 1))
                return false;
        return cursor->mistake == NULL;
    case '"':
        return marey__cursor_string(cursor);
    default:
        if (marey__cursor_word(cursor, "true") || marey__cursor_word(cursor, "false") ||
            marey__cursor_word(cursor, "null"))
            return true;
        return marey__cursor_number(cursor, &(struct marey__number){0});
    }
}

bool marey__cursor_skip(struct marey__cursor *cursor)
{
    return skip(cursor, 0);
}

bool marey__cursor_object(struct marey__cursor *cursor, const struct marey__key *keys, void *into)
{
    bool is_first = true;
    if (!marey__cursor_take(cursor, '{'))
        return marey__cursor_fail(cursor, "an object is missing");
    while (marey__cursor_next_key(cursor, &is_first)) {
        const struct marey__key *key = keys;
        while (key->name != NULL && strcmp(key->name, cursor->text.data) != 0)
            key++;
        if (!(key->name != NULL ? key->read(cursor, into) : marey__cursor_skip(cursor)))
            return false;
    }
    return cursor->mistake == NULL;
}

/* ---- sizes ---- */

bool marey__shape_read(struct marey__cursor *cursor, struct marey__shape *out)
{
    bool is_first = true;
    out->rank = 0;
    if (!marey__cursor_take(cursor, '['))
        return marey__cursor_fail(cursor, "a list of sizes is missing");
    while (marey__cursor_next_item(cursor, &is_first)) {
        uint64_t size;
        if (out->rank == MAREY_MAX_RANK)
            return marey__cursor_fail(cursor, "there are more than 64 axes");
        if (!marey__cursor_count(cursor, &size))
            return false;
        out->sizes[out->rank++] = (int64_t)size;
    }
    return cursor->mistake == NULL;
}

bool marey__shape_bytes(const struct marey__shape *shape, uint64_t *out)
{
    uint64_t n = marey_dtype_size(shape->dtype);
    bool is_empty = false;
    for (uint32_t i = 0; i < shape->rank; i++)
        is_empty |= shape->sizes[i] == 0;
    for (uint32_t i = 0; i < shape->rank && !is_empty; i++)
        if (__builtin_mul_overflow(n, (uint64_t)shape->sizes[i], &n) || n > INT64_MAX)
            return false;
    *out = is_empty ? 0 : n;
    return true;
}
