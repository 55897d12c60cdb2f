/*
 * The same from C++14: every macro of range.h compiles without a warning, and a scope ends when an exception leaves it.
 */
#include <marey/marey.h>

#include <cstdio>
#include <stdexcept>

static void leave_by_exception()
{
    marey::scope scope(MAREY_ID("thrown out of", .category = "test"));
    throw std::runtime_error("as planned");
}

int main()
{
    marey_options options = {};
    options.path = "consumer_raii.marey";
    if (marey_start(&options) != MAREY_OK) {
        std::fprintf(stderr, "marey_start: %s\n", marey_last_error());
        return 1;
    }
    {
        MAREY_SCOPE("scope");
        MAREY_RANGE ("range") {
            marey_mark(MAREY_ID("mark"));
            marey_counter(MAREY_ID("counter"), 0.5);
        }
    }
    try {
        leave_by_exception();
    } catch (const std::runtime_error &) {
    }
    marey_counts counts = {};
    marey_counts_get(&counts);
    marey_stop();
    /* Three ranges with a begin and an end each, a mark and a counter. */
    return counts.events == 8 && counts.lost_events == 0 ? 0 : 1;
}
