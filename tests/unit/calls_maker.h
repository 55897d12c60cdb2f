/* Hand-made CALLS blocks, valid or not, for tests of their reader. */
#ifndef MAREY_TEST_CALLS_MAKER_H
#define MAREY_TEST_CALLS_MAKER_H

#include <stdarg.h>
#include <string.h>

#include "log_maker.h"

static inline void calls_number(struct marey__buf *block, uint64_t number)
{
    do {
        const uint8_t byte = (uint8_t)((number & 0x7f) | (number > 0x7f ? 0x80 : 0));
        marey__buf_put(block, &byte, 1);
        number >>= 7;
    } while (number != 0);
}

/* A tag and `fields`: n an int, r a double, t a string. */
static inline void calls_entry(struct marey__buf *block, char tag, const char *fields, ...)
{
    va_list args;
    va_start(args, fields);
    marey__buf_put(block, &tag, 1);
    for (; *fields != '\0'; fields++)
        if (*fields == 'n') {
            calls_number(block, (uint64_t)va_arg(args, int));
        } else if (*fields == 'r') {
            const double real = va_arg(args, double);
            marey__buf_put(block, &real, sizeof real);
        } else {
            const char *const text = va_arg(args, const char *);
            calls_number(block, strlen(text));
            marey__buf_puts(block, text);
        }
    va_end(args);
}

/* Nanoseconds are ticks; a call costs 2 ns. */
static inline void calls_profile(struct marey__buf *block, int number, int flags)
{
    calls_entry(block, 'P', "nrnn", number, 1.0, flags, 2000);
}

static inline void calls_function(struct marey__buf *block, int number, int line, const char *name)
{
    const bool is_built_in = name[0] == '<';
    calls_entry(block, 'F', "nnntttt", number, is_built_in, is_built_in ? 0 : line, name, name,
                is_built_in ? "~" : "/src/dot.py", is_built_in ? "" : "dot");
}

static inline void calls_signature(struct marey__buf *block, int number, int function, int elements,
                                   const char *text)
{
    calls_entry(block, 'S', "nnnt", number, function, elements, text);
}

static inline void calls_thread(struct marey__buf *block, int number, int tid, const char *name)
{
    calls_entry(block, 'T', "nnt", number, tid, name);
}

/* A path of thread 1 and its sums. */
static inline void calls_path(struct marey__buf *block, int number, int parent, int function,
                              int signature, int calls, int self, int total)
{
    calls_entry(block, 'N', "nnnnn", number, 1, parent, function, signature);
    calls_entry(block, 'C', "nnnnnn", number, calls, 0, self, total, total);
}

static inline void calls_put_block(struct log_maker *log, struct marey__buf *block)
{
    log_put_block(log, (struct marey__block){.type = MAREY__BLOCK_CALLS}, block->data, block->len);
    marey__buf_fini(block);
}

#endif
