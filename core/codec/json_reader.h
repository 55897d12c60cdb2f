/*
 * A reader of JSON, one token after the other, for files of stats. Numbers are doubles; NaN and Infinity, which some
 * programs write though JSON has none, are read as such, so that whoever wants a number can say what is wrong with it.
 * Nothing is trusted: lengths, depth and UTF-16 escapes are checked, and a mistake says where it is.
 */
#ifndef MAREY_JSON_READER_H
#define MAREY_JSON_READER_H

#include "base/base_internal.h"

enum marey__json_token {
    MAREY__JSON_END, /* of the text */
    MAREY__JSON_OBJECT,
    MAREY__JSON_OBJECT_END,
    MAREY__JSON_LIST,
    MAREY__JSON_LIST_END,
    MAREY__JSON_TEXT, /* in `text`; a key of an object as well */
    MAREY__JSON_NUMBER,
    MAREY__JSON_TRUE,
    MAREY__JSON_FALSE,
    MAREY__JSON_NULL,
    MAREY__JSON_COLON,
    MAREY__JSON_COMMA,
    MAREY__JSON_MISTAKE, /* `mistake` says which */
};

struct marey__json_reader {
    const char *start, *at, *end; /* lent */
    struct marey__buf text;       /* of the latest MAREY__JSON_TEXT */
    double number;
    const char *mistake; /* a few words; NULL: none so far */
};

/* `reader` is zeroed but for `start`, `at` and `end`; fini frees its text. */
enum marey__json_token marey__json_next(struct marey__json_reader *reader);
void marey__json_fini(struct marey__json_reader *reader);

/* Go past the value that begins with `first`. False for a mistake, or one that is nested too deeply. */
MAREY_WARN_UNUSED bool marey__json_skip(struct marey__json_reader *reader,
                                        enum marey__json_token first);

/*
 * Behind the opening token of an object or list: go to the next entry. True when there is one: for an object its key is
 * in `text` and the colon is read; for a list `*token` begins the value. False at the end, and for a mistake.
 */
bool marey__json_next_key(struct marey__json_reader *reader, bool *is_first);
bool marey__json_next_item(struct marey__json_reader *reader, bool *is_first,
                           enum marey__json_token *token);

#endif
