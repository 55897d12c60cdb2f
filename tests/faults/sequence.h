/*
 * The ranges that every faulty program records, so that one checker can detect missing, duplicate
 * or torn events.
 *
 * The ranges of a thread are numbered from 0; number i has the name "s<i mod 61>". Each sixteenth
 * contains a mark "number" with payload i. A lost or misplaced word breaks the order of names; a
 * torn record breaks the payload.
 */
#ifndef MAREY_FAULT_SEQUENCE_H
#define MAREY_FAULT_SEQUENCE_H

#include <marey/marey.h>

enum { SEQUENCE_NAMES = 61, SEQUENCE_MARK_EVERY = 16 };

/* Intern the names before the first range. A second call does nothing. */
void sequence_init(void);
/* Record range `i` of this thread. */
void sequence_range(uint64_t i);
/* Record the first `n` ranges of this thread. */
void sequence_ranges(uint64_t n);
/* Record to `path` with options in the format of MAREY_OPTIONS (NULL for none); on failure print it
 * and exit with 1. */
void sequence_start(const char *path, const char *text);

#endif
