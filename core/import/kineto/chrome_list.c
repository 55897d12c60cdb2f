/*
 * The list of events of a trace, for all who read one: events where they lie in the window, more bytes when it is used
 * up, what is no event passed over.
 */
#include "codec/json_chars.h"
#include "import/kineto/chrome_internal.h"

/* An entry of the list that is no object. */
static bool skip_entry(const struct marey__chrome_list *list)
{
    if (list->n_no_events != NULL)
        ++*list->n_no_events;
    const enum marey__json_token token = marey__json_next(list->scan);
    if (token == MAREY__JSON_ARRAY)
        marey__json_skip(list->scan);
    return list->scan->mistake == NULL && token != MAREY__JSON_END;
}

/* The event at the window's begin. False: the reading ends. */
static bool read_event(const struct marey__chrome_list *list)
{
    struct marey__json *scan = list->scan;
    const char *next, *mistake;
    switch (marey__chrome_parse(list->event, scan->at, scan->end, &next, &mistake)) {
    case MAREY__CHROME_WHOLE:
        scan->at = next;
        return list->put(list->ctx);
    case MAREY__CHROME_CUT:
        if (list->refill(list->ctx))
            return true;
        scan->is_cut = scan->mistake == NULL;
        marey__json_fail(scan, "it ends in the middle of an event");
        return false;
    default:
        scan->at = next;
        marey__json_fail(scan, mistake);
        return false;
    }
}

void marey__chrome_read_list(const struct marey__chrome_list *list)
{
    struct marey__json *scan = list->scan;
    for (bool goes_on = true; goes_on;) {
        scan->at = json_skip_blanks(scan->at);
        if (MAREY_UNLIKELY(scan->at == scan->end))
            goes_on = list->refill(list->ctx);
        else if (MAREY_LIKELY(*scan->at == '{'))
            goes_on = read_event(list);
        else if (*scan->at == ']')
            return;
        else
            goes_on = skip_entry(list);
    }
}
