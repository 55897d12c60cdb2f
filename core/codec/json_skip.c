/* Past a value that nobody wants: strings are stepped over and brackets counted, in a window that need not grow. */
#include "codec/codec_internal.h"
#include "codec/json_chars.h"

/* Go to the bracket that closes `n_open` of them, as far as the window goes; true when it is behind us. */
static bool skip_brackets(struct kymo__scan *scan, uint64_t *n_open)
{
    const char *p = scan->at, *end = scan->end;
    bool has_escapes = false;
    while (*n_open > 0) {
        p = json_find_bracket(p);
        const char *string_end =
            *p == '"' && p < end ? json_end_of_string(p + 1, end, &has_escapes) : p;
        if (p >= end || string_end >= end) {
            scan->at = p < end ? p : end; /* a string that is cut is looked at again, whole */
            return false;
        }
        p = string_end;
        if (*p == '{' || *p == '[')
            ++*n_open;
        else if (*p != '"')
            --*n_open;
        p++;
    }
    scan->at = p;
    return true;
}

/* The rest of the object or array that was opened last. */
static bool skip_rest(struct kymo__scan *scan)
{
    uint64_t n_open = 1;
    while (!skip_brackets(scan, &n_open)) {
        if (!kymo__scan_refill(scan)) {
            scan->is_cut = scan->mistake == NULL;
            kymo__scan_fail(scan, "it ends in the middle");
            return false;
        }
    }
    kymo__scan_leave(scan);
    return true;
}

bool kymo__scan_skip(struct kymo__scan *scan)
{
    if (scan->depth == 0 || scan->mistake != NULL)
        return scan->mistake == NULL;
    if (scan->wants_key || !kymo__scan_in_object(scan))
        return skip_rest(scan);
    const enum kymo__scan_token token = kymo__scan_next(scan);
    if (token == KYMO__SCAN_OBJECT || token == KYMO__SCAN_ARRAY)
        return skip_rest(scan);
    return token != KYMO__SCAN_MISTAKE;
}
