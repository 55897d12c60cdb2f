/*
 * The same from C++14: every macro of range.h compiles without a warning, and a scope ends when an exception leaves it.
 */
#include <kymo/kymo.h>

#include <cstdio>
#include <stdexcept>

static void leave_by_exception()
{
    kymo::scope scope(KYMO_ID("thrown out of", .category = "test"));
    throw std::runtime_error("as planned");
}

int main()
{
    kymo_options options = {};
    options.path = "consumer_raii.kymo";
    if (kymo_start(&options) != KYMO_OK) {
        std::fprintf(stderr, "kymo_start: %s\n", kymo_last_error());
        return 1;
    }
    {
        KYMO_SCOPE("scope");
        KYMO_RANGE ("range") {
            kymo_mark(KYMO_ID("mark"));
            kymo_counter(KYMO_ID("counter"), 0.5);
        }
    }
    try {
        leave_by_exception();
    } catch (const std::runtime_error &) {
    }
    kymo_counts counts = {};
    kymo_counts_get(&counts);
    kymo_stop();
    /* Three ranges with a begin and an end each, a mark and a counter. */
    return counts.events == 8 && counts.lost_events == 0 ? 0 : 1;
}
