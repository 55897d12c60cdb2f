/* range: the instrument that every other one and every user starts from. */
#ifndef KYMO_RANGE_INTERNAL_H
#define KYMO_RANGE_INTERNAL_H

#include "record/record_internal.h"
#include "stack/stack_internal.h"
#include <kymo/range.h>

/* Begin a range that goes on this thread's stack, whoever asks for it. `payload` may be NULL. */
void kymo__range_begin_entry(kymo__entry entry, const struct kymo_payload *payload);
/* End what was taken from the stack; 0 does nothing. */
void kymo__range_end_entry(kymo__entry entry);

/*
 * Whether `name` (`len` bytes; NULL: any) is what this thread began last. KYMO_EMISMATCH and a sentence when it is not,
 * or nothing is begun. Only for threads whose stack is kept.
 */
kymo_status kymo__nesting_check(const char *name, size_t len);
/* The same for the name of `id`; 0: any. */
kymo_status kymo__nesting_check_id(kymo_id id);

#endif
