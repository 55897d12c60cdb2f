/*
 * range: ranges, marks, counters, payloads and async ranges: the API of <marey/range.h> beyond its inline part.
 *
 *   range.c           begin and end: the fast path to the lane; the slow one to the thread's stack and an NVTX tool
 *   nesting.c         checks that ranges nest          wrapper.c   NVTXRangeWrapper's order checks and GPU waits
 *   communication.c   what a collective sends
 *
 * Input: calls of the program. Output: words and records of the calling thread's lane. A recording without checks and
 * without an NVTX tool takes the fast path in marey_begin_on(). Does not know durations: readers subtract timestamps.
 */
#ifndef MAREY_INSTRUMENT_RANGE_INTERNAL_H
#define MAREY_INSTRUMENT_RANGE_INTERNAL_H

#include "record/internal.h"
#include <marey/range.h>

/* Begins a range that goes on this thread's stack. `payload` may be NULL. */
void marey__range_begin_entry(marey__entry entry, const struct marey_payload *payload);
/* Ends the range of an entry taken from the stack; 0 does nothing. */
void marey__range_end_entry(marey__entry entry);

/* Whether `name` (NULL: any) is what this thread began last; else MAREY_EMISMATCH. Only for threads with a stack. */
marey_status marey__nesting_check(const char *name, size_t len);
/* The same for the name of `id`; 0: any. */
marey_status marey__nesting_check_id(marey_id id);

#endif
