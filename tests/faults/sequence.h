/*
 * What every faulty program records, so that one checker can tell whether anything is missing, doubled or torn.
 *
 * The ranges of a thread are numbered from 0; number i has the name "s<i mod 61>". Each sixteenth holds a mark "number"
 * whose payload is i itself. A word lost or out of place breaks the order of names; a record torn breaks the payload.
 */
#ifndef MAREY_FAULT_SEQUENCE_H
#define MAREY_FAULT_SEQUENCE_H

#include <marey/marey.h>

enum { SEQUENCE_NAMES = 61, SEQUENCE_MARK_EVERY = 16 };

/* Give the names their ids; before the first range. A second time it does nothing. */
void sequence_init(void);
/* Record range `i` of this thread. */
void sequence_range(uint64_t i);
/* Record the first `n` ranges of this thread. */
void sequence_ranges(uint64_t n);
/* Record to `path` with MAREY_OPTIONS-like `text` (NULL for none), or say why not and exit with 1. */
void sequence_start(const char *path, const char *text);

#endif
