/*
 * A reader of JSON, one token after the other, for files of stats. Numbers are doubles; NaN and Infinity, which some
 * programs write though JSON has none, are read as such, so that whoever wants a number can say what is wrong with it.
 * Nothing is trusted: lengths, depth and UTF-16 escapes are checked, and a mistake says where it is.
 */
#ifndef KYMO_JSON_READER_H
#define KYMO_JSON_READER_H

#include "base/base_internal.h"

enum kymo__json_token {
    KYMO__JSON_END, /* of the text */
    KYMO__JSON_OBJECT,
    KYMO__JSON_OBJECT_END,
    KYMO__JSON_LIST,
    KYMO__JSON_LIST_END,
    KYMO__JSON_TEXT, /* in `text`; a key of an object as well */
    KYMO__JSON_NUMBER,
    KYMO__JSON_TRUE,
    KYMO__JSON_FALSE,
    KYMO__JSON_NULL,
    KYMO__JSON_COLON,
    KYMO__JSON_COMMA,
    KYMO__JSON_MISTAKE, /* `mistake` says which */
};

struct kymo__json_reader {
    const char *start, *at, *end; /* lent */
    struct kymo__buf text;        /* of the latest KYMO__JSON_TEXT */
    double number;
    const char *mistake; /* a few words; NULL: none so far */
};

/* `reader` is zeroed but for `start`, `at` and `end`; fini frees its text. */
enum kymo__json_token kymo__json_next(struct kymo__json_reader *reader);
void kymo__json_fini(struct kymo__json_reader *reader);

/* Go past the value that begins with `first`. False for a mistake, or one that is nested too deeply. */
KYMO_WARN_UNUSED bool kymo__json_skip(struct kymo__json_reader *reader, enum kymo__json_token first);

/*
 * Behind the opening token of an object or list: go to the next entry. True when there is one: for an object its key is
 * in `text` and the colon is read; for a list `*token` begins the value. False at the end, and for a mistake.
 */
bool kymo__json_next_key(struct kymo__json_reader *reader, bool *is_first);
bool kymo__json_next_item(struct kymo__json_reader *reader, bool *is_first,
                          enum kymo__json_token *token);

#endif
