/* Matching values of two steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "diff_values.h"

struct pair_of_sides {
    struct made_side a, b;
    struct marey__diff_pairs pairs;
};

static const float numbers[4] = {1, 2, 3, 4};

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct pair_of_sides));
    return *state == NULL;
}

static int teardown(void **state)
{
    struct pair_of_sides *p = *state;
    marey__diff_pairs_fini(&p->pairs);
    free(p);
    return 0;
}

static size_t add(struct made_side *side, const char *name, uint8_t digest)
{
    const size_t i = add_floats(side, name, numbers, 4);
    if (digest != 0)
        set_digest(side, i, digest);
    return i;
}

static void align(struct pair_of_sides *p)
{
    assert_int_equal(marey__diff_align(&p->a.side, &p->b.side, &p->pairs), MAREY_OK);
}

static const char *name_of(const struct made_side *side, size_t i)
{
    return i != MAREY__DIFF_NONE ? side->values[i].name : "-";
}

/* "x=y" for each pair, in order, "-" for none. */
static void expect(struct pair_of_sides *p, const char *wanted)
{
    char found[2048] = "";
    for (size_t i = 0; i < p->pairs.n; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s=%s", i == 0 ? "" : " ",
                 name_of(&p->a, p->pairs.list[i].a), name_of(&p->b, p->pairs.list[i].b));
    assert_string_equal(found, wanted);
}

static void equal_paths_are_paired_in_any_order(void **state)
{
    struct pair_of_sides *p = *state;
    add(&p->a, "x", 0);
    add(&p->a, "y", 0);
    add(&p->b, "y", 0);
    add(&p->b, "x", 0);
    align(p);
    expect(p, "x=x y=y");
}

static void what_one_side_lacks_stands_where_it_was(void **state)
{
    struct pair_of_sides *p = *state;
    add(&p->a, "x", 0);
    add(&p->a, "z", 0);
    add(&p->b, "x", 0);
    add(&p->b, "y", 0);
    add(&p->b, "z", 0);
    align(p);
    expect(p, "x=x -=y z=z");
}

static void names_that_differ_in_a_digit_are_not_the_same(void **state)
{
    struct pair_of_sides *p = *state;
    add(&p->a, "tensor3", 0);
    add(&p->b, "tensor4", 0);
    align(p);
    expect(p, "tensor3=- -=tensor4");
}

static void an_inserted_operation_moves_the_numbers_of_those_behind_it(void **state)
{
    struct pair_of_sides *p = *state;
    add(&p->a, "ops[0].add", 1);
    add(&p->a, "ops[1].mul", 2);
    add(&p->a, "ops[2].relu", 3);
    add(&p->a, "ops[3].add", 4);
    add(&p->b, "ops[0].add", 1);
    add(&p->b, "ops[1].mul", 2);
    add(&p->b, "ops[2].cast", 9);
    add(&p->b, "ops[3].relu", 13);
    add(&p->b, "ops[4].add", 14);
    align(p);
    expect(p, "ops[0].add=ops[0].add ops[1].mul=ops[1].mul -=ops[2].cast ops[2].relu=ops[3].relu "
              "ops[3].add=ops[4].add");
}

static void equal_digests_count_more_than_equal_paths(void **state)
{
    struct pair_of_sides *p = *state;
    add(&p->a, "op0", 1);
    add(&p->a, "op1", 2);
    add(&p->a, "op2", 3);
    add(&p->b, "op0", 1);
    add(&p->b, "op1", 7);
    add(&p->b, "op2", 2);
    add(&p->b, "op3", 3);
    align(p);
    expect(p, "op0=op0 -=op1 op1=op2 op2=op3");
}

static void a_changed_shape_is_still_the_same_value(void **state)
{
    struct pair_of_sides *p = *state;
    add(&p->a, "x", 0);
    add_floats(&p->a, "y", numbers, 2);
    add(&p->a, "new", 0);
    add(&p->b, "x", 0);
    add(&p->b, "y", 0);
    align(p);
    expect(p, "x=x y=y new=-");
}

static void trees_are_apart(void **state)
{
    struct pair_of_sides *p = *state;
    add(&p->a, "w", 0);
    p->b.values[add(&p->b, "w", 0)].tree = MAREY_DUMP_GRADIENTS;
    align(p);
    expect(p, "w=- -=w");
}

static void nothing_is_aligned_with_something(void **state)
{
    struct pair_of_sides *p = *state;
    add(&p->b, "x", 0);
    align(p);
    expect(p, "-=x");
}

static void each_failing_allocation_is_reported_and_leaves_nothing(void **state)
{
    struct pair_of_sides *p = *state;
    add(&p->a, "x", 0);
    add(&p->a, "y", 0);
    add(&p->b, "x", 1);
    add(&p->b, "z", 0);
    for (uint64_t n = 1;; n++) {
        marey__alloc_fail_nth(n);
        const marey_status status = marey__diff_align(&p->a.side, &p->b.side, &p->pairs);
        marey__alloc_fail_nth(0);
        if (status == MAREY_OK)
            break;
        assert_int_equal(status, MAREY_ENOMEM);
        marey__diff_pairs_fini(&p->pairs);
        assert_true(n < 100);
    }
    expect(p, "x=x y=- -=z");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(equal_paths_are_paired_in_any_order),
        TEST(what_one_side_lacks_stands_where_it_was),
        TEST(names_that_differ_in_a_digit_are_not_the_same),
        TEST(an_inserted_operation_moves_the_numbers_of_those_behind_it),
        TEST(equal_digests_count_more_than_equal_paths),
        TEST(a_changed_shape_is_still_the_same_value),
        TEST(trees_are_apart),
        TEST(nothing_is_aligned_with_something),
        TEST(each_failing_allocation_is_reported_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
