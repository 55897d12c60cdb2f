/*
 * Python's pickle, protocol 4, of dictionaries, lists, numbers and texts: what the allocator's snapshot needs, with no
 * opcode besides those that PyTorch's memory viewer knows. It knows none above protocol 4 and takes lists in pieces that
 * fit the arguments of a call, so that pieces have at most 1000 items, as Python's own.
 *
 *   marey__pickle_begin(&p, out, words, n);
 *     marey__pickle_dict(&p);  word, value, word, value ...  marey__pickle_dict_end(&p);
 *     struct marey__pickle_list list = marey__pickle_list(&p);
 *       marey__pickle_item(&p, &list);  value ...
 *     marey__pickle_list_end(&p, &list);
 *   marey__pickle_end(&p);
 */
#ifndef MAREY_MEMORY_PICKLE_OUT_H
#define MAREY_MEMORY_PICKLE_OUT_H

#include "present/export/export_internal.h"

/* Places in the reader's memory; NONE: not there. */
#define MAREY__PICKLE_NONE UINT32_MAX
enum { MAREY__PICKLE_BATCH = 1000, MAREY__PICKLE_WORDS = 64 };

struct marey__pickle {
    struct marey__out *out;
    const char *const *words; /* texts that come often, lent: each is written once */
    uint32_t places[MAREY__PICKLE_WORDS];
    uint32_t n_kept; /* values that the reader has in memory */
};

struct marey__pickle_list {
    uint64_t n;
};

/* At most MAREY__PICKLE_WORDS words. Failures are those of `out`. */
void marey__pickle_begin(struct marey__pickle *pickle, struct marey__out *out,
                         const char *const *words, size_t n_words);
void marey__pickle_end(struct marey__pickle *pickle);
void marey__pickle_dict(struct marey__pickle *pickle);
void marey__pickle_dict_end(struct marey__pickle *pickle);
struct marey__pickle_list marey__pickle_list(struct marey__pickle *pickle);
/* An item comes next. */
void marey__pickle_item(struct marey__pickle *pickle, struct marey__pickle_list *list);
void marey__pickle_list_end(struct marey__pickle *pickle, struct marey__pickle_list *list);
void marey__pickle_int(struct marey__pickle *pickle, int64_t value);
/* Bytes that are no UTF-8 become U+FFFD. */
void marey__pickle_text(struct marey__pickle *pickle, const char *text, size_t len);
void marey__pickle_word(struct marey__pickle *pickle, size_t word);
void marey__pickle_false(struct marey__pickle *pickle);
/* Two small numbers as a tuple. */
void marey__pickle_pair(struct marey__pickle *pickle, int64_t a, int64_t b);
/* Let the reader keep the value that was written last, and return its place for marey__pickle_again. */
uint32_t marey__pickle_keep(struct marey__pickle *pickle);
void marey__pickle_again(struct marey__pickle *pickle, uint32_t place);

#endif
