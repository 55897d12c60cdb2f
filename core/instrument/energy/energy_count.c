/*
 * Energy counters only increase, but may wrap, restart at zero, or stop. The result never decreases or jumps.
 */
#include "instrument/energy/internal.h"

double marey__count_begin(struct marey__count *count, uint64_t now_ns, double watts)
{
    const double seconds = count->read_ns != 0 ? (double)(now_ns - count->read_ns) / 1e9 : 0;
    count->expected_j += watts * seconds;
    count->still_s += seconds;
    count->read_ns = now_ns;
    return seconds;
}

static enum marey__counter_event fall(struct marey__count *count, uint64_t value)
{
    const bool may_wrap = count->range != 0 && count->last <= count->range;
    const double risen = may_wrap ? (double)(count->range - count->last + value) * count->unit_j : 0;
    if (may_wrap && risen <= count->most_j) {
        count->joules += risen;
        return MAREY__COUNT_WRAPPED;
    }
    count->joules += count->expected_j;
    return MAREY__COUNT_RESET;
}

enum marey__counter_event marey__count_take(struct marey__count *count, uint64_t value)
{
    /* A counter that has not moved after this much energy does not work. Drivers update it every 0.1 s. */
    const double still_j = 50, still_s = 0.5;
    enum marey__counter_event event = MAREY__COUNT_FINE;
    if (!count->has_last)
        count->joules = (double)value * count->unit_j;
    else if (value == count->last && count->expected_j > still_j && count->still_s > still_s)
        event = MAREY__COUNT_STUCK;
    else if (value >= count->last)
        count->joules += (double)(value - count->last) * count->unit_j;
    else
        event = fall(count, value);
    if (!count->has_last || value != count->last)
        count->expected_j = count->still_s = 0;
    count->is_stuck = event == MAREY__COUNT_STUCK;
    count->has_last = true;
    count->last = value;
    return event;
}
