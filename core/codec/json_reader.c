/* See json_reader.h. */
#include "codec/json_reader.h"

#include <math.h>
#include <string.h>

enum { MAX_DEPTH = 64, MAX_NUMBER = 64 };

void marey__json_fini(struct marey__json_reader *reader)
{
    marey__buf_fini(&reader->text);
}

static enum marey__json_token mistake(struct marey__json_reader *reader, const char *words)
{
    if (reader->mistake == NULL)
        reader->mistake = words;
    reader->at = reader->end;
    return MAREY__JSON_MISTAKE;
}

/* ---- texts ---- */

static bool hex4(struct marey__json_reader *reader, uint32_t *out)
{
    if (reader->end - reader->at < 4)
        return false;
    *out = 0;
    for (int i = 0; i < 4; i++) {
        const char c = *reader->at++;
        const uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                               : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                               : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                      : 16;
        if (digit > 15)
            return false;
        *out = *out * 16 + digit;
    }
    return true;
}

static void put_code(struct marey__buf *text, uint32_t code)
{
    char bytes[4];
    size_t n = 0;
    if (code < 0x80) {
        bytes[n++] = (char)code;
    } else if (code < 0x800) {
        bytes[n++] = (char)(0xc0 | code >> 6);
        bytes[n++] = (char)(0x80 | (code & 63));
    } else if (code < 0x10000) {
        bytes[n++] = (char)(0xe0 | code >> 12);
        bytes[n++] = (char)(0x80 | (code >> 6 & 63));
        bytes[n++] = (char)(0x80 | (code & 63));
    } else {
        bytes[n++] = (char)(0xf0 | code >> 18);
        bytes[n++] = (char)(0x80 | (code >> 12 & 63));
        bytes[n++] = (char)(0x80 | (code >> 6 & 63));
        bytes[n++] = (char)(0x80 | (code & 63));
    }
    marey__buf_put(text, bytes, n);
}

/* Behind "\u"; two of them make one character above 0xffff. Half a pair becomes U+FFFD. */
static bool take_code(struct marey__json_reader *reader)
{
    uint32_t code, low;
    if (!hex4(reader, &code))
        return false;
    if (code >= 0xd800 && code < 0xdc00 && reader->end - reader->at >= 6 && reader->at[0] == '\\' &&
        reader->at[1] == 'u') {
        reader->at += 2;
        if (!hex4(reader, &low))
            return false;
        code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
                                             : 0xfffd;
    }
    put_code(&reader->text, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
    return true;
}

static bool take_escape(struct marey__json_reader *reader)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (reader->at == reader->end)
        return false;
    const char c = *reader->at++;
    if (c == 'u')
        return take_code(reader);
    const char *found = c != '\0' ? strchr(letters, c) : NULL;
    if (found == NULL)
        return false;
    marey__buf_put(&reader->text, &meanings[found - letters], 1);
    return true;
}

static enum marey__json_token take_text(struct marey__json_reader *reader)
{
    reader->text.len = 0;
    reader->at++;
    while (reader->at < reader->end && *reader->at != '"') {
        const char *from = reader->at;
        while (reader->at < reader->end && *reader->at != '"' && *reader->at != '\\')
            reader->at++;
        marey__buf_put(&reader->text, from, (size_t)(reader->at - from));
        if (reader->at < reader->end && *reader->at == '\\') {
            reader->at++;
            if (!take_escape(reader))
                return mistake(reader, "a wrong escape in a text");
        }
    }
    if (reader->at == reader->end)
        return mistake(reader, "a text without an end");
    reader->at++;
    return reader->text.failed ? mistake(reader, "a text that does not fit into memory")
                               : MAREY__JSON_TEXT;
}

/* ---- numbers and words ---- */

static enum marey__json_token take_number(struct marey__json_reader *reader)
{
    char digits[MAX_NUMBER], *end;
    size_t n = 0;
    while (reader->at + n < reader->end && n < MAX_NUMBER - 1 && reader->at[n] != '\0' &&
           strchr("+-.0123456789eE", reader->at[n]) != NULL)
        n++;
    memcpy(digits, reader->at, n);
    digits[n] = '\0';
    reader->number = strtod(digits, &end);
    if (n == 0 || *end != '\0')
        return mistake(reader, "a word that JSON does not have");
    reader->at += n;
    return MAREY__JSON_NUMBER;
}

static enum marey__json_token take_word(struct marey__json_reader *reader)
{
    static const struct {
        const char *word;
        enum marey__json_token token;
        double number;
    } words[] = {{"true", MAREY__JSON_TRUE, 1},
                 {"false", MAREY__JSON_FALSE, 0},
                 {"null", MAREY__JSON_NULL, 0},
                 {"NaN", MAREY__JSON_NUMBER, NAN},
                 {"nan", MAREY__JSON_NUMBER, NAN},
                 {"Infinity", MAREY__JSON_NUMBER, INFINITY},
                 {"-Infinity", MAREY__JSON_NUMBER, -INFINITY}};
    for (size_t i = 0; i < MAREY__COUNT_OF(words); i++) {
        const size_t len = strlen(words[i].word);
        if ((size_t)(reader->end - reader->at) >= len && memcmp(reader->at, words[i].word, len) == 0) {
            reader->at += len;
            reader->number = words[i].number;
            return words[i].token;
        }
    }
    return take_number(reader);
}

enum marey__json_token marey__json_next(struct marey__json_reader *reader)
{
    while (reader->at < reader->end &&
           (*reader->at == ' ' || *reader->at == '\n' || *reader->at == '\t' || *reader->at == '\r'))
        reader->at++;
    if (reader->mistake != NULL)
        return MAREY__JSON_MISTAKE;
    if (reader->at == reader->end)
        return MAREY__JSON_END;
    static const char marks[] = "{}[]:,";
    static const enum marey__json_token tokens[] = {MAREY__JSON_OBJECT, MAREY__JSON_OBJECT_END,
                                                    MAREY__JSON_LIST,   MAREY__JSON_LIST_END,
                                                    MAREY__JSON_COLON,  MAREY__JSON_COMMA};
    const char *mark = *reader->at != '\0' ? strchr(marks, *reader->at) : NULL;
    if (mark != NULL) {
        reader->at++;
        return tokens[mark - marks];
    }
    return *reader->at == '"' ? take_text(reader) : take_word(reader);
}

/* ---- entries ---- */

static bool skip_comma(struct marey__json_reader *reader, bool *is_first,
                       enum marey__json_token *token)
{
    *token = marey__json_next(reader);
    const bool was_first = *is_first;
    *is_first = false;
    if (was_first || *token != MAREY__JSON_COMMA)
        return was_first || *token == MAREY__JSON_OBJECT_END || *token == MAREY__JSON_LIST_END;
    *token = marey__json_next(reader);
    return *token != MAREY__JSON_OBJECT_END && *token != MAREY__JSON_LIST_END;
}

bool marey__json_next_key(struct marey__json_reader *reader, bool *is_first)
{
    enum marey__json_token token;
    const bool is_entry = skip_comma(reader, is_first, &token);
    if (is_entry && token == MAREY__JSON_OBJECT_END)
        return false;
    if (is_entry && token == MAREY__JSON_TEXT && marey__json_next(reader) == MAREY__JSON_COLON)
        return true;
    mistake(reader, "an object that is not made of \"key\": value");
    return false;
}

bool marey__json_next_item(struct marey__json_reader *reader, bool *is_first,
                           enum marey__json_token *token)
{
    const bool is_entry = skip_comma(reader, is_first, token);
    if (is_entry && *token == MAREY__JSON_LIST_END)
        return false;
    if (is_entry && *token != MAREY__JSON_COMMA && *token != MAREY__JSON_COLON &&
        *token != MAREY__JSON_OBJECT_END && *token != MAREY__JSON_END &&
        *token != MAREY__JSON_MISTAKE)
        return true;
    mistake(reader, "a list whose values have no comma between them, or no end");
    return false;
}

/* Brackets are counted, not paired: what is skipped has no meaning to us. */
bool marey__json_skip(struct marey__json_reader *reader, enum marey__json_token first)
{
    size_t depth = 0;
    for (enum marey__json_token token = first;; token = marey__json_next(reader)) {
        if (token == MAREY__JSON_OBJECT || token == MAREY__JSON_LIST)
            depth++;
        else if ((token == MAREY__JSON_OBJECT_END || token == MAREY__JSON_LIST_END) && depth != 0)
            depth--;
        else if (token == MAREY__JSON_END || token == MAREY__JSON_MISTAKE)
            return mistake(reader, "a value without an end") == MAREY__JSON_NULL;
        if (depth > MAX_DEPTH)
            return mistake(reader, "values nested too deeply") == MAREY__JSON_NULL;
        if (depth == 0)
            return true;
    }
}
