/* libmarey-mpi's list of ranks: short, in order, equal for equal groups. */
#include "scratch.h"

#include "mpi_internal.h"

static void check(const int *ranks, int n, const char *expected)
{
    char *text = mpi_ranks_text(ranks, n);
    assert_string_equal(text, expected);
    free(text);
}
#define CHECK(expected, ...)                                                                       \
    check((const int[]){__VA_ARGS__}, (int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)), expected)

static void neighbours_are_a_run(void **state)
{
    (void)state;
    check(NULL, 0, "");
    CHECK("5", 5);
    CHECK("0-1", 0, 1);
    CHECK("0-3", 0, 1, 2, 3);
    CHECK("0-1,4-5", 0, 1, 4, 5);
    CHECK("7,0-2", 7, 0, 1, 2);
}

static void strides_are_a_run(void **state)
{
    (void)state;
    CHECK("0,2", 0, 2); /* two are no stride */
    CHECK("0-4:2", 0, 2, 4);
    CHECK("1-13:4,14-16", 1, 5, 9, 13, 14, 15, 16);
    CHECK("0-9:3,11", 0, 3, 6, 9, 11);
}

static void the_order_is_kept(void **state)
{
    (void)state;
    CHECK("3,2,1,0", 3, 2, 1, 0);
    CHECK("2,0-1", 2, 0, 1);
    CHECK("2147483647,0", 2147483647, 0);
}

static void many_ranks_without_order_are_all_there(void **state)
{
    (void)state;
    enum { N = 5000 };
    static int ranks[N];
    for (int i = 0; i < N; i++)
        ranks[i] = (i * 7919) % 1000003;
    char *text = mpi_ranks_text(ranks, N);
    int n = 0;
    for (const char *at = text; at != NULL && *at != '\0'; n++) {
        char *end;
        const long first = strtol(at, &end, 10);
        long last = first, step = 1;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (*end == ':')
            step = strtol(end + 1, &end, 10);
        for (long rank = first; rank < last; rank += step)
            assert_int_equal(ranks[n++], rank);
        assert_int_equal(ranks[n], last);
        at = *end == ',' ? end + 1 : end;
    }
    assert_int_equal(n, N);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_are_a_run),
        cmocka_unit_test(strides_are_a_run),
        cmocka_unit_test(the_order_is_kept),
        cmocka_unit_test(many_ranks_without_order_are_all_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
