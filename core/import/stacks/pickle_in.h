/*
 * pickle_in.c: plain values out of Python's pickles of protocol 2 to 5. Nothing is ever called: a pickle that makes objects
 * is refused. What a pickle names again by its memo is there once.
 */
#ifndef MAREY_PICKLE_IN_H
#define MAREY_PICKLE_IN_H

#include "base/base_internal.h"

enum marey__unpickled_type {
    MAREY__UNPICKLED_NONE,
    MAREY__UNPICKLED_BOOL,
    MAREY__UNPICKLED_INT,
    MAREY__UNPICKLED_FLOAT,
    MAREY__UNPICKLED_TEXT,
    MAREY__UNPICKLED_LIST, /* tuples are lists */
    MAREY__UNPICKLED_DICT, /* keys and values take turns */
};

struct marey__unpickled_value {
    uint8_t type; /* enum marey__unpickled_type */
    uint32_t n;   /* bytes of a text, items of a list, twice the pairs of a dict */
    uint32_t cap;
    union {
        int64_t number; /* also of a bool; one that does not fit is the nearest that does */
        double real;
        const char *text; /* lent by the bytes; UTF-8 that nobody has checked, without a NUL */
        uint32_t *items;  /* numbers of values. They may hold one another in a circle */
    } as;
};

struct marey__unpickled {
    struct marey__unpickled_value *values;
    size_t n, cap;
    uint32_t top;
    const char *mistake; /* what is wrong with the bytes, and where; NULL: nothing. Static */
    size_t offset;
};

/* Read `len` bytes, which are lent while the values are used; fini in any case. False: see `mistake`, NULL without memory. */
MAREY_WARN_UNUSED bool marey__unpickle(struct marey__unpickled *pickle, const void *bytes,
                                       size_t len);
void marey__unpickled_fini(struct marey__unpickled *pickle);

/* The value under `key`, NULL when `value` is NULL, no dict, or has it not. */
const struct marey__unpickled_value *marey__unpickled_get(const struct marey__unpickled *pickle,
                                                          const struct marey__unpickled_value *value,
                                                          const char *key);
/* Items of a list; 0 for anything else, also NULL. */
size_t marey__unpickled_length(const struct marey__unpickled_value *value);
const struct marey__unpickled_value *marey__unpickled_item(const struct marey__unpickled *pickle,
                                                           const struct marey__unpickled_value *list,
                                                           size_t i);
/* A number, whichever kind; false for anything else, also NULL. */
bool marey__unpickled_number(const struct marey__unpickled_value *value, double *out);
bool marey__unpickled_whole(const struct marey__unpickled_value *value, int64_t *out);
/* A text and its length; NULL for anything else. */
const char *marey__unpickled_text(const struct marey__unpickled_value *value, size_t *len);
bool marey__unpickled_is(const struct marey__unpickled_value *value, const char *text);

#endif
