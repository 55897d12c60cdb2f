/* clock: running ticks, and clock samples. */
#include "scratch.h"

static void the_monotonic_clock_can_be_asked_for(void **state)
{
    (void)state;
    assert_int_equal(marey__clock_choose(MAREY_CLOCK_MONOTONIC), MAREY_OK);
    assert_string_equal(marey__clock_name(), "monotonic");
    assert_int_equal(marey__clock_hz(), 1000000000u);
    const uint64_t before = marey__clock_ns(CLOCK_MONOTONIC);
    const uint64_t ticks = marey__clock_ticks();
    assert_in_range(ticks, before, marey__clock_ns(CLOCK_MONOTONIC));
}

static void a_moment_of_nanoseconds_is_exact(void **state)
{
    (void)state;
    struct marey__moment moment;
    marey__clock_moment(false, &moment);
    assert_int_equal(moment.tick, moment.monotonic_ns);
}

static void the_counter_is_refused_or_runs_at_its_rate(void **state)
{
    (void)state;
    if (marey__clock_choose(MAREY_CLOCK_TSC) != MAREY_OK) {
        assert_non_null(strstr(marey_last_error(), "clock=auto"));
        skip();
    }
    assert_string_equal(marey__clock_name(), "tsc");
    struct marey__moment a, b;
    marey__clock_moment(true, &a);
    usleep(20000);
    marey__clock_moment(true, &b);
    const double hz = (double)(b.tick - a.tick) * 1e9 / (double)(b.monotonic_ns - a.monotonic_ns);
    const double known = (double)marey__clock_hz();
    /* A moment that was interrupted, on a machine that is busy elsewhere, is good to its width. */
    const double doubt =
        1e-3 + (double)(a.width_ns + b.width_ns) / (double)(b.monotonic_ns - a.monotonic_ns);
    assert_true(known > hz * (1 - doubt) && known < hz * (1 + doubt));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_monotonic_clock_can_be_asked_for),
        cmocka_unit_test(a_moment_of_nanoseconds_is_exact),
        cmocka_unit_test(the_counter_is_refused_or_runs_at_its_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
