/* range: the instrument that every other one and every user starts from. */
#ifndef KYMO_RANGE_INTERNAL_H
#define KYMO_RANGE_INTERNAL_H

#include "record/record_internal.h"
#include <kymo/range.h>

/* Remember that this thread began `id`; memory running out is an event lost, not a failure. */
void kymo__nesting_push(kymo_id id);

#endif
