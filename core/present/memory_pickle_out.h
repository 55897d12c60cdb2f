/*
 * Python's pickle, protocol 4, of dictionaries, lists, numbers and texts: what the allocator's snapshot needs, with no
 * opcode besides those that PyTorch's memory viewer knows. It knows none above protocol 4 and takes lists in pieces that
 * fit the arguments of a call, so that pieces have at most 1000 items, as Python's own.
 *
 *   kymo__pickle_begin(&p, out, words, n);
 *     kymo__pickle_dict(&p);  word, value, word, value ...  kymo__pickle_dict_end(&p);
 *     struct kymo__pickle_list list = kymo__pickle_list(&p);
 *       kymo__pickle_item(&p, &list);  value ...
 *     kymo__pickle_list_end(&p, &list);
 *   kymo__pickle_end(&p);
 */
#ifndef KYMO_MEMORY_PICKLE_OUT_H
#define KYMO_MEMORY_PICKLE_OUT_H

#include "present/export_internal.h"

/* Places in the reader's memory; NONE: not there. */
#define KYMO__PICKLE_NONE UINT32_MAX
enum { KYMO__PICKLE_BATCH = 1000, KYMO__PICKLE_WORDS = 64 };

struct kymo__pickle {
    struct kymo__out *out;
    const char *const *words; /* texts that come often, lent: each is written once */
    uint32_t places[KYMO__PICKLE_WORDS];
    uint32_t n_kept; /* values that the reader has in memory */
};

struct kymo__pickle_list {
    uint64_t n;
};

/* At most KYMO__PICKLE_WORDS words. Failures are those of `out`. */
void kymo__pickle_begin(struct kymo__pickle *pickle, struct kymo__out *out,
                        const char *const *words, size_t n_words);
void kymo__pickle_end(struct kymo__pickle *pickle);
void kymo__pickle_dict(struct kymo__pickle *pickle);
void kymo__pickle_dict_end(struct kymo__pickle *pickle);
struct kymo__pickle_list kymo__pickle_list(struct kymo__pickle *pickle);
/* An item comes next. */
void kymo__pickle_item(struct kymo__pickle *pickle, struct kymo__pickle_list *list);
void kymo__pickle_list_end(struct kymo__pickle *pickle, struct kymo__pickle_list *list);
void kymo__pickle_int(struct kymo__pickle *pickle, int64_t value);
/* Bytes that are no UTF-8 become U+FFFD. */
void kymo__pickle_text(struct kymo__pickle *pickle, const char *text, size_t len);
void kymo__pickle_word(struct kymo__pickle *pickle, size_t word);
void kymo__pickle_false(struct kymo__pickle *pickle);
/* Two small numbers as a tuple. */
void kymo__pickle_pair(struct kymo__pickle *pickle, int64_t a, int64_t b);
/* Let the reader keep the value that was written last, and return its place for kymo__pickle_again. */
uint32_t kymo__pickle_keep(struct kymo__pickle *pickle);
void kymo__pickle_again(struct kymo__pickle *pickle, uint32_t place);

#endif
