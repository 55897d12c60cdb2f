/* A pickle, opcode by opcode: memory_pickle_out.h. */
#include <string.h>

#include "present/memory/internal.h"

enum {
    PROTO = 0x80,
    STOP = '.',
    MARK = '(',
    NEWFALSE = 0x89,
    BININT = 'J',
    BININT1 = 'K',
    BININT2 = 'M',
    LONG1 = 0x8a,
    SHORT_BINUNICODE = 0x8c,
    BINUNICODE = 'X',
    EMPTY_LIST = ']',
    APPENDS = 'e',
    EMPTY_DICT = '}',
    SETITEMS = 'u',
    TUPLE2 = 0x86,
    MEMOIZE = 0x94,
    BINGET = 'h',
    LONG_BINGET = 'j',
};

/* An opcode and its argument of `n` bytes, the lowest first. */
static void put(struct marey__pickle *pickle, uint8_t opcode, uint64_t argument, size_t n)
{
    uint8_t *p = (uint8_t *)marey__out_room(pickle->out);
    *p++ = opcode;
    for (size_t i = 0; i < n; i++)
        *p++ = (uint8_t)(argument >> (8 * i));
    pickle->out->p = (char *)p;
}

void marey__pickle_begin(struct marey__pickle *pickle, struct marey__out *out,
                         const char *const *words, size_t n_words)
{
    MAREY_ASSERT(n_words <= MAREY__PICKLE_WORDS);
    *pickle = (struct marey__pickle){.out = out, .words = words};
    for (size_t i = 0; i < n_words; i++)
        pickle->places[i] = MAREY__PICKLE_NONE;
    put(pickle, PROTO, 4, 1);
}

void marey__pickle_end(struct marey__pickle *pickle)
{
    put(pickle, STOP, 0, 0);
}

void marey__pickle_dict(struct marey__pickle *pickle)
{
    put(pickle, EMPTY_DICT, 0, 0);
    put(pickle, MARK, 0, 0);
}

void marey__pickle_dict_end(struct marey__pickle *pickle)
{
    put(pickle, SETITEMS, 0, 0);
}

struct marey__pickle_list marey__pickle_list(struct marey__pickle *pickle)
{
    put(pickle, EMPTY_LIST, 0, 0);
    return (struct marey__pickle_list){0};
}

void marey__pickle_item(struct marey__pickle *pickle, struct marey__pickle_list *list)
{
    if (list->n % MAREY__PICKLE_BATCH == 0) {
        if (list->n != 0)
            put(pickle, APPENDS, 0, 0);
        put(pickle, MARK, 0, 0);
    }
    list->n++;
}

void marey__pickle_list_end(struct marey__pickle *pickle, struct marey__pickle_list *list)
{
    if (list->n != 0)
        put(pickle, APPENDS, 0, 0);
}

void marey__pickle_int(struct marey__pickle *pickle, int64_t value)
{
    if (value >= 0 && value <= UINT8_MAX) {
        put(pickle, BININT1, (uint64_t)value, 1);
    } else if (value >= 0 && value <= UINT16_MAX) {
        put(pickle, BININT2, (uint64_t)value, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        put(pickle, BININT, (uint64_t)value, 4);
    } else {
        /* The number of its bytes, then as many: the second half of an opcode's argument. */
        put(pickle, LONG1, sizeof value, 1);
        memcpy(marey__out_room(pickle->out), &value, sizeof value);
        pickle->out->p += sizeof value;
    }
}

void marey__pickle_text(struct marey__pickle *pickle, const char *text, size_t len)
{
    struct marey__buf clean = {0};
    bool is_clean = true;
    for (size_t i = 0, n; i < len && is_clean; i += n)
        is_clean = (n = marey__utf8_length(text + i, len - i)) != 0;
    if (!is_clean) {
        marey__utf8_put(&clean, text, len);
        text = clean.data;
        len = clean.failed ? 0 : clean.len;
        if (clean.failed && pickle->out->status == MAREY_OK)
            pickle->out->status = marey__no_memory();
    }
    if (len <= UINT8_MAX)
        put(pickle, SHORT_BINUNICODE, len, 1);
    else
        put(pickle, BINUNICODE, len, 4);
    if (len != 0)
        marey__out_put(pickle->out, text, len);
    marey__buf_fini(&clean);
}

void marey__pickle_word(struct marey__pickle *pickle, size_t word)
{
    if (pickle->places[word] != MAREY__PICKLE_NONE) {
        marey__pickle_again(pickle, pickle->places[word]);
        return;
    }
    marey__pickle_text(pickle, pickle->words[word], strlen(pickle->words[word]));
    pickle->places[word] = marey__pickle_keep(pickle);
}

void marey__pickle_false(struct marey__pickle *pickle)
{
    put(pickle, NEWFALSE, 0, 0);
}

void marey__pickle_pair(struct marey__pickle *pickle, int64_t a, int64_t b)
{
    marey__pickle_int(pickle, a);
    marey__pickle_int(pickle, b);
    put(pickle, TUPLE2, 0, 0);
}

uint32_t marey__pickle_keep(struct marey__pickle *pickle)
{
    put(pickle, MEMOIZE, 0, 0);
    return pickle->n_kept++;
}

void marey__pickle_again(struct marey__pickle *pickle, uint32_t place)
{
    if (place <= UINT8_MAX)
        put(pickle, BINGET, place, 1);
    else
        put(pickle, LONG_BINGET, place, 4);
}
