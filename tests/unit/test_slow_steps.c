/* The period of slow steps: a few irregular ones have none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyze/diagnosis/internal.h"

#define PERIOD(n_steps, ...)                                                                       \
    marey__facts_find_period((const uint64_t[]){__VA_ARGS__},                                      \
                             sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), n_steps)

static void test_regular(void **state)
{
    (void)state;
    assert_int_equal(PERIOD(100, 9, 19, 29, 39, 49, 59, 69, 79, 89, 99), 10);
    assert_int_equal(PERIOD(100, 30, 60, 90), 30);
    assert_int_equal(PERIOD(100, 9, 19, 29, 49, 51, 59, 69, 79, 99),
                     10); /* one by chance, two missing */
}

/* Three of five or six are at equal distances. */
static void test_irregular(void **state)
{
    (void)state;
    assert_int_equal(PERIOD(30, 2, 11, 14, 20, 27), 0);
    assert_int_equal(PERIOD(100, 5, 12, 37, 44, 69, 93), 0);
    assert_int_equal(PERIOD(100, 40), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regular),
        cmocka_unit_test(test_irregular),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
