/* Past a value that nobody wants: strings are stepped over and brackets counted, in a window that need not grow. */
#include "codec/codec_internal.h"
#include "codec/json_chars.h"

/* Go to the bracket that closes `n_open` of them, as far as the window goes; true when it is behind us. */
static bool skip_brackets(struct marey__scan *scan, uint64_t *n_open)
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
static bool skip_rest(struct marey__scan *scan)
{
    uint64_t n_open = 1;
    while (!skip_brackets(scan, &n_open)) {
        if (!marey__scan_refill(scan)) {
            scan->is_cut = scan->mistake == NULL;
            marey__scan_fail(scan, "it ends in the middle");
            return false;
        }
    }
    marey__scan_leave(scan);
    return true;
}

bool marey__scan_skip(struct marey__scan *scan)
{
    if (scan->depth == 0 || scan->mistake != NULL)
        return scan->mistake == NULL;
    if (scan->wants_key || !marey__scan_in_object(scan))
        return skip_rest(scan);
    const enum marey__scan_token token = marey__scan_next(scan);
    if (token == MAREY__SCAN_OBJECT || token == MAREY__SCAN_ARRAY)
        return skip_rest(scan);
    return token != MAREY__SCAN_MISTAKE;
}
