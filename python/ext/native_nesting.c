/*
 * native_nesting.c: ranges of `with` blocks and functions while nesting is checked: marey.start(check=True), or
 * NVTXRangeWrapper with the order kept track of.
 *
 * libmarey keeps each thread's stack and tells a mismatch. What it cannot know is that a block was entered before the
 * check was switched on: its end would look like one too many. Blocks nest, so each thread counts those it entered
 * since the switches were last touched; an end with none left belongs to a block from before, and is not checked.
 */
#include "native.h"

/* Grows whenever Python switches a recording or the range wrapper on or off, in whichever interpreter. */
static _Atomic unsigned generation = 1;

static _Thread_local struct {
    unsigned generation, depth;
} entered;

void native_nesting_renew(void)
{
    generation++;
}

void native_begin_checked(const struct native_range *range)
{
    const unsigned now = generation;
    if (entered.generation != now) {
        entered.generation = now;
        entered.depth = 0;
    }
    entered.depth++;
    native_begin_now(range);
}

int native_end_checked(const struct native_range *range, int failing)
{
    if (entered.generation != generation || entered.depth == 0) {
        marey_end_unchecked(range->id);
        return 0;
    }
    entered.depth--;
    const marey_status status = marey_end_checked(range->id);
    if (status == MAREY_OK || failing)
        return 0;
    native_raise_for(Py_TYPE((PyObject *)range), status);
    return -1;
}
