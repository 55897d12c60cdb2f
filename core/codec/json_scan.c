/*
 * JSON in one pass. The window holds the bytes that are not taken yet, one behind the other; a token that the window
 * cuts is looked at again from its begin once the next piece stands behind it. So every token lies whole in memory, and
 * most are never copied.
 *
 *     window              at                          end
 *     | taken already     | "name": "aten::ad         "" (quotes of ours, then padding)
 */
#include <string.h>

#include "codec/codec_internal.h"
#include "codec/json_chars.h"

enum { FIRST_WINDOW_BYTES = 64 << 10 };

/* ---- the window ---- */

marey_status marey__scan_init(struct marey__scan *scan, struct marey__byte_source *bytes)
{
    *scan = (struct marey__scan){.bytes = bytes, .status = MAREY_OK};
    scan->window = marey__calloc(1, FIRST_WINDOW_BYTES);
    if (scan->window == NULL)
        return marey__fail(MAREY_ENOMEM, "no memory to read JSON");
    scan->window_cap = FIRST_WINDOW_BYTES;
    scan->at = scan->end = scan->window;
    scan->window[0] = scan->window[1] = '"';
    return MAREY_OK;
}

void marey__scan_fini(struct marey__scan *scan)
{
    marey__buf_fini(&scan->decoded);
    marey__free(scan->window);
    scan->window = NULL;
}

uint64_t marey__scan_offset(const struct marey__scan *scan)
{
    return scan->window_offset + (uint64_t)(scan->at - scan->window);
}

enum marey__scan_token marey__scan_fail(struct marey__scan *scan, const char *mistake)
{
    if (scan->mistake == NULL) {
        scan->mistake = mistake;
        scan->status = MAREY_EFORMAT;
    }
    return MAREY__SCAN_MISTAKE;
}

static bool give_up(struct marey__scan *scan, marey_status status, const char *mistake)
{
    marey__scan_fail(scan, mistake);
    scan->status = status;
    return false;
}

/* Move what is not taken to the front, and make room for `len` bytes more. */
static bool make_room(struct marey__scan *scan, size_t len)
{
    const size_t kept = (size_t)(scan->end - scan->at);
    scan->window_offset += (uint64_t)(scan->at - scan->window);
    memmove(scan->window, scan->at, kept);
    scan->at = scan->window;
    scan->end = scan->window + kept;
    if (kept > MAREY__SCAN_MAX_TEXT)
        return give_up(scan, MAREY_EFORMAT, "a text or event of more than 64 MiB");
    const size_t want = kept + len + MAREY__SCAN_PADDING;
    if (want > scan->window_cap) {
        const size_t old_cap = scan->window_cap;
        if (!marey__grow(&scan->window, &scan->window_cap, want, 1)) {
            marey__fail(MAREY_ENOMEM, "no memory for a text of %zu bytes", kept);
            return give_up(scan, MAREY_ENOMEM, "no memory");
        }
        memset(scan->window + old_cap, 0, scan->window_cap - old_cap); /* padding is read */
        scan->at = scan->window;
        scan->end = scan->window + kept;
    }
    return true;
}

bool marey__scan_refill(struct marey__scan *scan)
{
    const char *piece;
    size_t len;
    if (scan->is_last || scan->mistake != NULL)
        return false;
    const marey_status status = marey__bytes_next(scan->bytes, &piece, &len);
    if (status != MAREY_OK)
        return give_up(scan, status, "the file cannot be read");
    scan->is_last = len == 0;
    if (scan->is_last || !make_room(scan, len))
        return false;
    char *end = scan->window + (scan->end - scan->window);
    memcpy(end, piece, len);
    end[len] = end[len + 1] = '"';
    scan->end = end + len;
    return true;
}

/* ---- tokens ---- */

/* What a token's reader returns for one that the window cuts. */
enum { CUT = -1 };

bool marey__scan_in_object(const struct marey__scan *scan)
{
    const uint32_t level = scan->depth - 1;
    return scan->depth > 0 && (scan->is_object[level / 64] >> (level % 64) & 1) != 0;
}

static int open_level(struct marey__scan *scan, bool is_object)
{
    if (scan->depth == MAREY__SCAN_MAX_DEPTH)
        return (int)marey__scan_fail(scan, "objects and arrays nested more than 1024 deep");
    const uint64_t bit = UINT64_C(1) << (scan->depth % 64);
    uint64_t *word = &scan->is_object[scan->depth / 64];
    *word = is_object ? *word | bit : *word & ~bit;
    scan->depth++;
    scan->at++;
    scan->wants_key = is_object;
    return is_object ? MAREY__SCAN_OBJECT : MAREY__SCAN_ARRAY;
}

void marey__scan_leave(struct marey__scan *scan)
{
    scan->depth--;
    scan->wants_key = marey__scan_in_object(scan);
}

static int close_level(struct marey__scan *scan, bool is_object)
{
    if (scan->depth == 0 || marey__scan_in_object(scan) != is_object)
        return (int)marey__scan_fail(scan, "a bracket that closes what is not open");
    if (is_object && !scan->wants_key)
        return (int)marey__scan_fail(scan, "a key without a value");
    scan->at++;
    marey__scan_leave(scan);
    return is_object ? MAREY__SCAN_OBJECT_END : MAREY__SCAN_ARRAY_END;
}

/* At an opening quote: `text`, and `at` behind the string. */
static int take_string(struct marey__scan *scan)
{
    bool has_escapes = false;
    const char *begin = scan->at + 1;
    const char *close = json_end_of_string(begin, scan->end, &has_escapes);
    if (close >= scan->end)
        return CUT;
    scan->text = begin;
    scan->text_len = (size_t)(close - begin);
    scan->at = close + 1;
    if (!has_escapes)
        return MAREY__SCAN_STRING;
    scan->decoded.len = 0;
    marey__json_decode(&scan->decoded, scan->text, scan->text_len);
    if (scan->decoded.failed) {
        marey__fail(MAREY_ENOMEM, "no memory for a text of %zu bytes", scan->text_len);
        give_up(scan, MAREY_ENOMEM, "no memory");
        return MAREY__SCAN_MISTAKE;
    }
    scan->text = scan->decoded.data;
    scan->text_len = scan->decoded.len;
    return MAREY__SCAN_STRING;
}

static int take_key(struct marey__scan *scan)
{
    if (*scan->at != '"')
        return (int)marey__scan_fail(scan, "a key that is not in quotes");
    const char *begin = scan->at;
    const int token = take_string(scan);
    if (token != MAREY__SCAN_STRING)
        return token;
    const char *colon = json_skip_spaces(scan->at);
    if (colon >= scan->end) {
        scan->at = begin;
        return CUT;
    }
    scan->at = colon;
    if (*colon != ':')
        return (int)marey__scan_fail(scan, "a key without a colon");
    scan->at++;
    scan->wants_key = false;
    return MAREY__SCAN_KEY;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word_byte(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '+';
}

static bool is_word(const struct marey__scan *scan, const char *word)
{
    return scan->text_len == strlen(word) && memcmp(scan->text, word, scan->text_len) == 0;
}

/* A number, or a word that stands for a value. */
static int take_word(struct marey__scan *scan)
{
    const char *p = scan->at;
    while (is_word_byte(*p))
        p++;
    if (p == scan->end && !scan->is_last)
        return CUT;
    scan->text = scan->at;
    scan->text_len = (size_t)(p - scan->at);
    int token = MAREY__SCAN_NUMBER;
    double number;
    if (is_word(scan, "true"))
        token = MAREY__SCAN_TRUE;
    else if (is_word(scan, "false"))
        token = MAREY__SCAN_FALSE;
    else if (is_word(scan, "null"))
        token = MAREY__SCAN_NULL;
    else if (!is_digit(*scan->at) && !marey__decimal_double(scan->text, scan->text_len, &number))
        return (int)marey__scan_fail(scan, "something that is no value");
    scan->at = p;
    return token;
}

static int take_value(struct marey__scan *scan)
{
    int token;
    switch (*scan->at) {
    case '{':
        return open_level(scan, true);
    case '[':
        return open_level(scan, false);
    case '"':
        token = take_string(scan);
        break;
    default:
        token = take_word(scan);
        break;
    }
    if (token != CUT)
        scan->wants_key = marey__scan_in_object(scan);
    return token;
}

static int take_token(struct marey__scan *scan)
{
    scan->at = json_skip_blanks(scan->at);
    if (scan->at == scan->end)
        return CUT;
    if (*scan->at == '}')
        return close_level(scan, true);
    if (*scan->at == ']')
        return close_level(scan, false);
    return scan->wants_key ? take_key(scan) : take_value(scan);
}

/* At the end of the bytes, where a token is cut or none begins. */
static enum marey__scan_token end_of_bytes(struct marey__scan *scan)
{
    if (scan->mistake != NULL)
        return MAREY__SCAN_MISTAKE;
    if (scan->depth == 0 && scan->at == scan->end)
        return MAREY__SCAN_END;
    scan->is_cut = true;
    return marey__scan_fail(scan, "it ends in the middle");
}

/* Some editors put a mark of three bytes in front of UTF-8. */
static void skip_byte_order_mark(struct marey__scan *scan)
{
    while (scan->end - scan->at < 3 && marey__scan_refill(scan))
        ;
    if (scan->end - scan->at >= 3 && memcmp(scan->at, "\xef\xbb\xbf", 3) == 0)
        scan->at += 3;
}

enum marey__scan_token marey__scan_next(struct marey__scan *scan)
{
    if (scan->mistake != NULL)
        return MAREY__SCAN_MISTAKE;
    if (MAREY_UNLIKELY(marey__scan_offset(scan) == 0))
        skip_byte_order_mark(scan);
    for (;;) {
        const int token = take_token(scan);
        if (MAREY_LIKELY(token != CUT))
            return (enum marey__scan_token)token;
        /* The word at the very end is whole once it is known that nothing follows. */
        if (!marey__scan_refill(scan) && (!scan->is_last || scan->mistake != NULL || *scan->at == '"'))
            return end_of_bytes(scan);
    }
}
