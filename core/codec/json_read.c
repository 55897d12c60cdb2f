/*
 * JSON in one pass. The window holds the unconsumed bytes. A token that is cut by the end of the window is read again
 * from its start once more bytes follow, so every token is contiguous in memory and most are never copied.
 *
 *     window              at                          end
 *     | consumed          | "name": "aten::ad         "" (quotes added here, then padding)
 */
#include <math.h>

#include "codec/internal.h"
#include "codec/json_chars.h"

enum { FIRST_WINDOW_BYTES = 64 << 10 };

/* ---- the window ---- */

marey_status marey__json_init(struct marey__json *json, struct marey__byte_source *bytes)
{
    *json = (struct marey__json){.bytes = bytes, .status = MAREY_OK};
    json->window = marey__calloc(1, FIRST_WINDOW_BYTES);
    MAREY__TRY_MEMORY(json->window != NULL);
    json->window_cap = FIRST_WINDOW_BYTES;
    json->at = json->end = json->window;
    json->window[0] = json->window[1] = '"';
    return MAREY_OK;
}

void marey__json_init_padded(struct marey__json *json, char *text, size_t len, unsigned rules)
{
    *json = (struct marey__json){.window = text,
                                 .at = text,
                                 .end = text + len,
                                 .rules = rules,
                                 .is_last = true,
                                 .status = MAREY_OK};
    text[len] = text[len + 1] = '"';
}

void marey__json_init_text(struct marey__json *json, const char *text, size_t len, unsigned rules)
{
    char *copy = marey__alloc(len + MAREY__JSON_PADDING);
    if (copy == NULL) {
        *json = (struct marey__json){.is_last = true};
        marey__json_fail_memory(json);
        return;
    }
    if (len > 0)
        memcpy(copy, text, len);
    memset(copy + len, 0, MAREY__JSON_PADDING);
    marey__json_init_padded(json, copy, len, rules);
    json->window_cap = len + MAREY__JSON_PADDING;
}

void marey__json_fini(struct marey__json *json)
{
    marey__buf_fini(&json->decoded);
    if (json->window_cap > 0)
        marey__free(json->window);
    json->window = NULL;
}

uint64_t marey__json_offset(const struct marey__json *json)
{
    return json->window_offset + (uint64_t)(json->at - json->window);
}

enum marey__json_token marey__json_fail(struct marey__json *json, const char *mistake)
{
    if (json->mistake == NULL) {
        json->mistake = mistake;
        json->status = MAREY_EFORMAT;
    }
    return MAREY__JSON_MISTAKE;
}

enum marey__json_token marey__json_fail_memory(struct marey__json *json)
{
    marey__json_fail(json, "out of memory");
    json->status = marey__no_memory();
    return MAREY__JSON_MISTAKE;
}

marey_status marey__json_status(const struct marey__json *json, const char *path, const char *what)
{
    if (json->status == MAREY_ENOMEM)
        return marey__no_memory();
    if (json->status == MAREY_EIO)
        return json->status;
    return marey__fail(MAREY_EFORMAT, "%s is not %s: %s at byte %" PRIu64, path, what,
                       json->mistake != NULL ? json->mistake : "something is wrong",
                       marey__json_offset(json));
}

/* Moves the unconsumed bytes to the front, and makes room for `len` more. */
static bool make_room(struct marey__json *json, size_t len)
{
    const size_t kept = (size_t)(json->end - json->at);
    json->window_offset += (uint64_t)(json->at - json->window);
    memmove(json->window, json->at, kept);
    json->at = json->window;
    json->end = json->window + kept;
    if (kept > MAREY__JSON_MAX_TEXT) {
        marey__json_fail(json, "a string or event of more than 64 MiB");
        return false;
    }
    const size_t want = kept + len + MAREY__JSON_PADDING;
    if (want > json->window_cap) {
        const size_t old_cap = json->window_cap;
        if (!marey__grow(&json->window, &json->window_cap, want, 1)) {
            marey__json_fail_memory(json);
            return false;
        }
        memset(json->window + old_cap, 0, json->window_cap - old_cap); /* padding is read */
        json->at = json->window;
        json->end = json->window + kept;
    }
    return true;
}

bool marey__json_refill(struct marey__json *json)
{
    const char *piece;
    size_t len;
    if (json->is_last || json->mistake != NULL)
        return false;
    const marey_status status = marey__bytes_next(json->bytes, &piece, &len);
    if (status != MAREY_OK) {
        marey__json_fail(json, "the file cannot be read");
        json->status = status;
        return false;
    }
    json->is_last = len == 0;
    if (json->is_last || !make_room(json, len))
        return false;
    char *end = json->window + (json->end - json->window);
    memcpy(end, piece, len);
    end[len] = end[len + 1] = '"';
    json->end = end + len;
    return true;
}

/* ---- tokens ---- */

/* Returned for a token that the end of the window cuts. */
enum { CUT = -1 };

/* `place`: decides whether STRICT expects a comma. */
enum { FIRST, AFTER_COMMA, AFTER_VALUE };

static bool is_strict(const struct marey__json *json)
{
    return (json->rules & MAREY__JSON_STRICT) != 0;
}

static bool in_object(const struct marey__json *json)
{
    const uint32_t level = json->depth - 1;
    return json->depth > 0 && (json->is_object[level / 64] >> (level % 64) & 1) != 0;
}

static int open_level(struct marey__json *json, bool is_object)
{
    if (json->depth == MAREY__JSON_MAX_DEPTH)
        return (int)marey__json_fail(json, "objects and arrays nested more than 1024 deep");
    const uint64_t bit = UINT64_C(1) << (json->depth % 64);
    uint64_t *word = &json->is_object[json->depth / 64];
    *word = is_object ? *word | bit : *word & ~bit;
    json->depth++;
    json->at++;
    json->wants_key = is_object;
    json->place = FIRST;
    return is_object ? MAREY__JSON_OBJECT : MAREY__JSON_ARRAY;
}

/* After a value or its end. */
static void end_value(struct marey__json *json)
{
    json->wants_key = in_object(json);
    json->place = AFTER_VALUE;
}

static void leave_level(struct marey__json *json)
{
    json->depth--;
    end_value(json);
}

static int close_level(struct marey__json *json, bool is_object)
{
    if (json->depth == 0 || in_object(json) != is_object)
        return (int)marey__json_fail(json, "a bracket that closes what is not open");
    if (is_object && !json->wants_key)
        return (int)marey__json_fail(json, "a key without a value");
    json->at++;
    leave_level(json);
    return is_object ? MAREY__JSON_OBJECT_END : MAREY__JSON_ARRAY_END;
}

static bool has_controls(const char *text, size_t len)
{
    bool found = false;
    for (size_t i = 0; i < len; i++)
        found |= (unsigned char)text[i] < 0x20;
    return found;
}

/* At an opening quote: sets `text`, and `at` after the string. */
static int take_string(struct marey__json *json)
{
    bool has_escapes = false;
    const char *begin = json->at + 1;
    const char *close = json_end_of_string(begin, json->end, &has_escapes);
    if (close >= json->end)
        return CUT;
    json->text = begin;
    json->text_len = (size_t)(close - begin);
    if (is_strict(json) && has_controls(json->text, json->text_len))
        return (int)marey__json_fail(json, "a control character in a string");
    if (has_escapes) {
        json->decoded.len = 0;
        if (!marey__json_decode(&json->decoded, json->text, json->text_len, json->rules))
            return (int)marey__json_fail(json, "an unknown escape in a string");
        marey__buf_put(&json->decoded, "", 1);
        if (json->decoded.failed)
            return (int)marey__json_fail_memory(json);
        json->text = json->decoded.data;
        json->text_len = json->decoded.len - 1;
    }
    json->at = close + 1;
    return MAREY__JSON_STRING;
}

static int take_key(struct marey__json *json)
{
    if (*json->at != '"')
        return (int)marey__json_fail(json, "a key that is not in quotes");
    const char *begin = json->at;
    const int token = take_string(json);
    if (token != MAREY__JSON_STRING)
        return token;
    const char *colon = json_skip_spaces(json->at);
    if (colon >= json->end) {
        json->at = begin;
        return CUT;
    }
    json->at = colon;
    if (*colon != ':')
        return (int)marey__json_fail(json, "a key without a colon");
    json->at++;
    json->wants_key = false;
    json->place = FIRST;
    return MAREY__JSON_KEY;
}

static bool is_word_byte(char c)
{
    return marey__is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '+';
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && marey__is_digit(*p))
        p++;
    return p;
}

/* Whether the text is a number according to RFC 8259. */
static bool is_plain_number(const char *p, const char *end)
{
    p += p < end && *p == '-';
    const char *first = p;
    p = skip_digits(p, end);
    if (p == first || (*first == '0' && p > first + 1))
        return false;
    if (p < end && *p == '.') {
        first = p + 1;
        if ((p = skip_digits(first, end)) == first)
            return false;
    }
    if (p < end && (*p | 0x20) == 'e') {
        first = p + 1;
        first += first < end && (*first == '+' || *first == '-');
        if ((p = skip_digits(first, end)) == first)
            return false;
    }
    return p == end;
}

static bool is_number(const struct marey__json *json)
{
    double number;
    if (!is_strict(json))
        return marey__is_digit(*json->text) ||
               marey__decimal_double(json->text, json->text_len, &number);
    const bool is_nan = marey__json_is(json, "NaN") || marey__json_is(json, "nan") ||
                        marey__json_is(json, "Infinity") || marey__json_is(json, "-Infinity");
    return is_nan ? (json->rules & MAREY__JSON_NAN) != 0
                  : is_plain_number(json->text, json->text + json->text_len);
}

/* A number, or a literal name. */
static int take_word(struct marey__json *json)
{
    const char *p = json->at;
    while (is_word_byte(*p))
        p++;
    if (p == json->end && !json->is_last)
        return CUT;
    json->text = json->at;
    json->text_len = (size_t)(p - json->at);
    int token = MAREY__JSON_NUMBER;
    if (marey__json_is(json, "true"))
        token = MAREY__JSON_TRUE;
    else if (marey__json_is(json, "false"))
        token = MAREY__JSON_FALSE;
    else if (marey__json_is(json, "null"))
        token = MAREY__JSON_NULL;
    else if (!is_number(json))
        return (int)marey__json_fail(json, "an unknown value");
    json->at = p;
    return token;
}

static int take_value(struct marey__json *json)
{
    int token;
    switch (*json->at) {
    case '{':
        return open_level(json, true);
    case '[':
        return open_level(json, false);
    case '"':
        token = take_string(json);
        break;
    default:
        token = take_word(json);
        break;
    }
    if (token != CUT)
        end_value(json);
    return token;
}

/* Skips blanks and, in strict mode, the comma required between two values. False on a mistake. */
static bool take_comma(struct marey__json *json)
{
    json->at = json_skip_spaces(json->at);
    bool is_close = *json->at == '}' || *json->at == ']';
    if (json->at < json->end && json->place == AFTER_VALUE && !is_close) {
        if (json->depth == 0)
            return marey__json_fail(json, "something follows the end") == MAREY__JSON_END;
        if (*json->at != ',')
            return marey__json_fail(json, "a comma is missing") == MAREY__JSON_END;
        json->place = AFTER_COMMA;
        json->at = json_skip_spaces(json->at + 1);
        is_close = *json->at == '}' || *json->at == ']';
    }
    if (json->place == AFTER_COMMA && is_close)
        return marey__json_fail(json, "a comma without a value") == MAREY__JSON_END;
    return true;
}

static int take_token(struct marey__json *json)
{
    if (MAREY_LIKELY(!is_strict(json)))
        json->at = json_skip_blanks(json->at);
    else if (!take_comma(json))
        return MAREY__JSON_MISTAKE;
    if (json->at == json->end)
        return CUT;
    if (*json->at == '}')
        return close_level(json, true);
    if (*json->at == ']')
        return close_level(json, false);
    return json->wants_key ? take_key(json) : take_value(json);
}

/* At the end of the input, where a token is cut or none begins. */
static enum marey__json_token end_of_bytes(struct marey__json *json)
{
    if (json->mistake != NULL)
        return MAREY__JSON_MISTAKE;
    if (json->depth == 0 && json->at == json->end)
        return MAREY__JSON_END;
    json->is_cut = true;
    return marey__json_fail(json, "it ends in the middle");
}

/* Some editors write a byte order mark in front of UTF-8. */
static void skip_byte_order_mark(struct marey__json *json)
{
    while (json->end - json->at < 3 && marey__json_refill(json))
        ;
    if (json->end - json->at >= 3 && memcmp(json->at, "\xef\xbb\xbf", 3) == 0)
        json->at += 3;
}

enum marey__json_token marey__json_next(struct marey__json *json)
{
    if (json->mistake != NULL)
        return MAREY__JSON_MISTAKE;
    if (MAREY_UNLIKELY(marey__json_offset(json) == 0))
        skip_byte_order_mark(json);
    for (;;) {
        const int token = take_token(json);
        if (MAREY_LIKELY(token != CUT)) {
            /* The closing quote is consumed; decoded text already has its NUL. */
            if ((token == MAREY__JSON_KEY || token == MAREY__JSON_STRING) &&
                json->text != json->decoded.data)
                json->window[json->text + json->text_len - json->window] = '\0';
            return (enum marey__json_token)token;
        }
        /* A word at the very end is complete once it is known that nothing follows. */
        if (!marey__json_refill(json) && (!json->is_last || json->mistake != NULL || *json->at == '"'))
            return end_of_bytes(json);
    }
}

bool marey__json_next_key(struct marey__json *json)
{
    return marey__json_next(json) == MAREY__JSON_KEY;
}

bool marey__json_next_item(struct marey__json *json, enum marey__json_token *token)
{
    *token = marey__json_next(json);
    return *token != MAREY__JSON_ARRAY_END && *token != MAREY__JSON_MISTAKE &&
           *token != MAREY__JSON_END;
}

char marey__json_peek(struct marey__json *json)
{
    if (json->mistake != NULL)
        return '\0';
    do {
        if (!is_strict(json))
            json->at = json_skip_blanks(json->at);
        else if (!take_comma(json))
            return '\0';
    } while (json->at == json->end && marey__json_refill(json));
    /* NUL means the end, so return another invalid character for a NUL byte in the text. */
    return json->at == json->end ? '\0' : *json->at != '\0' ? *json->at : '\1';
}

void marey__json_taken(struct marey__json *json, const char *p)
{
    json->at = p;
    end_value(json);
}

double marey__json_number(const struct marey__json *json, enum marey__json_token token)
{
    double number = NAN;
    if (token == MAREY__JSON_NUMBER && !marey__decimal_double(json->text, json->text_len, &number))
        number = NAN;
    return number;
}

int64_t marey__json_integer(const struct marey__json *json, enum marey__json_token token,
                            int64_t otherwise)
{
    int64_t number;
    const bool is_text = token == MAREY__JSON_NUMBER || token == MAREY__JSON_STRING;
    return is_text && marey__decimal(json->text, json->text_len, 0, &number) ? number : otherwise;
}

bool marey__json_expect(struct marey__json *json, enum marey__json_token wanted, const char *mistake)
{
    if (marey__json_next(json) == wanted)
        return true;
    marey__json_fail(json, mistake);
    return false;
}

bool marey__json_string(struct marey__json *json)
{
    return marey__json_expect(json, MAREY__JSON_STRING, "a string is missing");
}

bool marey__json_count(struct marey__json *json, uint64_t *out)
{
    if (!marey__json_expect(json, MAREY__JSON_NUMBER, "a number is missing"))
        return false;
    if (skip_digits(json->text, json->text + json->text_len) == json->text + json->text_len &&
        marey__parse_number(json->text, json->text_len, out) && *out <= INT64_MAX)
        return true;
    marey__json_fail(json, "a number that is not a count");
    return false;
}

bool marey__json_end(struct marey__json *json)
{
    return marey__json_expect(json, MAREY__JSON_END, "something follows the end");
}

bool marey__json_object(struct marey__json *json, const struct marey__json_key *keys, void *into)
{
    if (!marey__json_expect(json, MAREY__JSON_OBJECT, "an object is missing"))
        return false;
    while (marey__json_next_key(json)) {
        const struct marey__json_key *key = keys;
        while (key->name != NULL && strcmp(key->name, json->text) != 0)
            key++;
        if (!(key->name != NULL ? key->read(json, (char *)into + key->offset)
                                : marey__json_skip(json)))
            return false;
    }
    return json->mistake == NULL;
}

bool marey__json_enter(struct marey__json *json, enum marey__json_token wanted)
{
    const enum marey__json_token token = marey__json_next(json);
    if (token != wanted)
        marey__json_skip_from(json, token);
    return token == wanted;
}

int64_t marey__json_read_integer(struct marey__json *json, int64_t otherwise)
{
    const enum marey__json_token token = marey__json_next(json);
    const int64_t number = marey__json_integer(json, token, otherwise);
    marey__json_skip_from(json, token);
    return number;
}

bool marey__json_read_flag(struct marey__json *json)
{
    const enum marey__json_token token = marey__json_next(json);
    const bool is_set = token == MAREY__JSON_TRUE || marey__json_integer(json, token, 0) > 0;
    marey__json_skip_from(json, token);
    return is_set;
}

/* ---- skipping: steps over strings and counts brackets, in a window that need not grow ---- */

/* Skips to the bracket that closes `n_open` of them, within the window; true if it was consumed. */
static bool skip_brackets(struct marey__json *json, uint64_t *n_open)
{
    const char *p = json->at, *end = json->end;
    bool has_escapes = false;
    while (*n_open > 0) {
        p = json_find_bracket(p);
        const char *string_end =
            *p == '"' && p < end ? json_end_of_string(p + 1, end, &has_escapes) : p;
        if (p >= end || string_end >= end) {
            json->at = p < end ? p : end; /* a string that is cut is read again */
            return false;
        }
        p = string_end;
        if (*p == '{' || *p == '[')
            ++*n_open;
        else if (*p != '"')
            --*n_open;
        p++;
    }
    json->at = p;
    return true;
}

/* Skips the rest of the innermost object or array. */
static bool skip_rest(struct marey__json *json)
{
    if (is_strict(json)) {
        for (const uint32_t depth = json->depth; json->depth >= depth;)
            if (marey__json_next(json) == MAREY__JSON_MISTAKE)
                return false;
        return true;
    }
    uint64_t n_open = 1;
    while (!skip_brackets(json, &n_open)) {
        if (!marey__json_refill(json)) {
            json->is_cut = json->mistake == NULL;
            marey__json_fail(json, "it ends in the middle");
            return false;
        }
    }
    leave_level(json);
    return true;
}

bool marey__json_skip_from(struct marey__json *json, enum marey__json_token token)
{
    if (token == MAREY__JSON_OBJECT || token == MAREY__JSON_ARRAY)
        return skip_rest(json);
    return token != MAREY__JSON_MISTAKE;
}

bool marey__json_skip(struct marey__json *json)
{
    if (json->depth == 0 || json->mistake != NULL)
        return json->mistake == NULL;
    if (json->wants_key || !in_object(json))
        return skip_rest(json);
    return marey__json_skip_from(json, marey__json_next(json));
}
