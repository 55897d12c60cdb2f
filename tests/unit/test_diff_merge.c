/* Merging ranks: shards, replicas, partial sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "diff_values.h"
#include "tensor/diff/internal.h"

struct fixture {
    struct made_side made[2], whole;
    struct marey__diff_side ranks[2], side;
    struct marey_diff_options options;
};

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state == NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    marey__diff_merge_close(&f->side);
    free(f);
    return 0;
}

static marey_status open_merged(struct fixture *f)
{
    f->ranks[0] = f->made[0].side;
    f->ranks[1] = f->made[1].side;
    return marey__diff_merge_open(f->ranks, 2, &f->whole.side, &f->options, &f->side);
}

static struct marey_tensor get(struct fixture *f, size_t i)
{
    struct marey_tensor tensor;
    assert_int_equal(f->side.open(&f->side, i, NULL, &tensor), MAREY_OK);
    return tensor;
}

/* Make the last value of a side one of two axes. */
static void reshape(struct made_side *side, int64_t rows, int64_t columns)
{
    const size_t i = side->side.n - 1;
    side->sizes[i][0] = rows;
    side->sizes[i][1] = columns;
    side->tensors[i].rank = side->values[i].rank = 2;
}

static void columns_stand_beside_one_another(void **state)
{
    static const float left[] = {1, 2, 5, 6}, right[] = {3, 4, 7, 8};
    static const float whole[] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct fixture *f = *state;
    add_floats(&f->made[0], "w", left, 4);
    reshape(&f->made[0], 2, 2);
    add_floats(&f->made[1], "w", right, 4);
    reshape(&f->made[1], 2, 2);
    add_floats(&f->whole, "w", whole, 8);
    reshape(&f->whole, 2, 4);
    assert_int_equal(open_merged(f), MAREY_OK);
    const struct marey_tensor merged = get(f, 0);
    assert_int_equal(f->side.values[0].sizes[1], 4);
    assert_memory_equal(merged.data, whole, sizeof whole);
}

static void parts_of_a_sum_are_added_where_asked_and_rounded(void **state)
{
    static const uint16_t a[] = {0x3f80, 0x4000},
                          b[] = {0x3f80, 0xc000}; /* 1, 2 and 1, -2 in bfloat16 */
    static const uint16_t sums[] = {0x4000, 0x0000};
    static const char *const patterns[] = {"*.out"};
    struct fixture *f = *state;
    f->options.partial = patterns;
    f->options.n_partial = 1;
    add_made(&f->made[0], "l.out", MAREY_BF16, a, 2);
    add_made(&f->made[1], "l.out", MAREY_BF16, b, 2);
    add_made(&f->whole, "l.out", MAREY_BF16, sums, 2);
    assert_int_equal(open_merged(f), MAREY_OK);
    const struct marey_tensor merged = get(f, 0);
    assert_memory_equal(merged.data, sums, sizeof sums);
}

static void integers_are_no_parts_of_a_sum(void **state)
{
    static const int64_t a[] = {1};
    static const char *const patterns[] = {"*"};
    struct fixture *f = *state;
    f->options.partial = patterns;
    f->options.n_partial = 1;
    add_made(&f->made[0], "n", MAREY_I64, a, 1);
    add_made(&f->made[1], "n", MAREY_I64, a, 1);
    add_made(&f->whole, "n", MAREY_I64, a, 1);
    assert_int_equal(open_merged(f), MAREY_OK);
    struct marey_tensor tensor;
    assert_int_equal(f->side.open(&f->side, 0, NULL, &tensor), MAREY_EINVAL);
}

static void the_copy_that_is_not_one_is_given(void **state)
{
    static const float one[] = {1, 2}, other[] = {1, 3};
    struct fixture *f = *state;
    set_digest(&f->made[0], add_floats(&f->made[0], "x", one, 2), 1);
    set_digest(&f->made[1], add_floats(&f->made[1], "x", other, 2), 2);
    set_digest(&f->whole, add_floats(&f->whole, "x", one, 2), 1);
    assert_int_equal(open_merged(f), MAREY_OK);
    assert_null(f->side.values[0].digest); /* else nobody would read it */
    assert_memory_equal(get(f, 0).data, other, sizeof other);
}

static void what_one_rank_alone_has_is_kept(void **state)
{
    static const float one[] = {1};
    struct fixture *f = *state;
    add_floats(&f->made[0], "x", one, 1);
    add_floats(&f->made[1], "y", one, 1);
    assert_int_equal(open_merged(f), MAREY_OK);
    assert_int_equal(f->side.n, 2);
    assert_string_equal(f->side.values[1].name, "y");
    assert_memory_equal(get(f, 1).data, one, sizeof one);
}

static void each_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    static const float a[] = {1}, whole[] = {1, 1};
    struct fixture *f = *state;
    add_floats(&f->made[0], "x", a, 1);
    add_floats(&f->made[1], "x", a, 1);
    add_floats(&f->whole, "x", whole, 2);
    for (uint64_t n = 1;; n++) {
        struct marey_tensor tensor;
        f->side.ctx = NULL;
        marey__alloc_fail_nth(n);
        marey_status status = open_merged(f);
        if (status == MAREY_OK)
            status = f->side.open(&f->side, 0, NULL, &tensor);
        marey__alloc_fail_nth(0);
        if (status == MAREY_OK)
            break;
        assert_int_equal(status, MAREY_ENOMEM);
        marey__diff_merge_close(&f->side);
        f->side.ctx = NULL;
        assert_true(n < 100);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(columns_stand_beside_one_another),
        TEST(parts_of_a_sum_are_added_where_asked_and_rounded),
        TEST(integers_are_no_parts_of_a_sum),
        TEST(the_copy_that_is_not_one_is_given),
        TEST(what_one_rank_alone_has_is_kept),
        TEST(each_failing_allocation_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
