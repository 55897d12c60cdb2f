/* A call tree that is too long for a page: the heaviest nodes are kept, and the time of the others
 * is preserved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "present/page/internal.h"

struct node {
    uint64_t depth;
    const char *name;
    uint64_t count, total_ns, self_ns;
};

static marey_table *make(const struct node *nodes, size_t n)
{
    marey_table *tree = NULL;
    assert_int_equal(marey_table_create("tree", marey__tree_columns, MAREY__N_TREE_COLUMNS, &tree),
                     MAREY_OK);
    for (size_t i = 0; i < n; i++) {
        marey_table_u64(tree, nodes[i].depth);
        marey_table_text(tree, nodes[i].name, strlen(nodes[i].name));
        marey_table_u64(tree, nodes[i].count);
        marey_table_u64(tree, nodes[i].total_ns);
        marey_table_u64(tree, nodes[i].self_ns);
        marey_table_f64(tree, (double)nodes[i].total_ns / 1000);
    }
    assert_int_equal(marey_table_status(tree), MAREY_OK);
    return tree;
}

/* "0 step 2 100", a row each: depth, name, count, total. */
static void assert_rows(const marey_table *table, const char *const *rows, size_t n)
{
    assert_int_equal(marey_table_n_rows(table), n);
    for (size_t i = 0; i < n; i++) {
        char row[100];
        const struct marey_cell name = marey_table_cell(table, i, 1);
        snprintf(row, sizeof row, "%u %.*s %u %u", (unsigned)marey_table_cell(table, i, 0).as.u64,
                 (int)name.len, name.as.text, (unsigned)marey_table_cell(table, i, 2).as.u64,
                 (unsigned)marey_table_cell(table, i, 3).as.u64);
        assert_string_equal(row, rows[i]);
    }
}

static const struct node step[] = {
    {0, "step", 2, 100, 5},     {1, "forward", 2, 60, 10}, {2, "gemm", 9, 40, 40},
    {2, "copy", 3, 6, 4},       {3, "wait", 1, 2, 2},      {2, "cast", 7, 4, 4},
    {1, "backward", 2, 35, 35}, {0, "load", 1, 50, 50},    {0, "log", 4, 3, 3},
};

static void the_heaviest_stay_and_the_rest_is_folded_where_it_was(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "0 step 2 100",    "1 forward 2 60", "2 gemm 9 40",     "2 (3 others) 10 10",
        "1 backward 2 35", "0 load 1 50",    "0 (1 other) 4 3",
    };
    marey_table *tree = make(step, MAREY__COUNT_OF(step)), *reduced = NULL;
    size_t n_others = 0;
    assert_true(marey__page_reduce_tree(tree, 5, &reduced, &n_others));
    assert_rows(reduced, rows, MAREY__COUNT_OF(rows));
    assert_int_equal(n_others, 2);
    marey_table_destroy(reduced);
    marey_table_destroy(tree);
}

static void a_parent_without_a_time_of_its_own_stays_for_its_children(void **state)
{
    (void)state;
    static const struct node open[] = {
        {0, "quick", 1, 20, 20}, {0, "never ends", 0, 0, 0}, {1, "inside", 1, 90, 90}};
    static const char *const rows[] = {"0 never ends 0 0", "1 inside 1 90", "0 (1 other) 1 20"};
    marey_table *tree = make(open, MAREY__COUNT_OF(open)), *reduced = NULL;
    size_t n_others = 0;
    assert_true(marey__page_reduce_tree(tree, 2, &reduced, &n_others));
    assert_rows(reduced, rows, MAREY__COUNT_OF(rows));
    marey_table_destroy(reduced);
    marey_table_destroy(tree);
}

static void of_equals_the_first_stay(void **state)
{
    (void)state;
    static const struct node alike[] = {
        {0, "a", 1, 7, 0}, {1, "b", 1, 7, 7}, {0, "c", 1, 7, 0}, {1, "d", 1, 7, 7}};
    static const char *const rows[] = {"0 a 1 7", "1 b 1 7", "0 c 1 7", "1 (1 other) 1 7"};
    marey_table *tree = make(alike, MAREY__COUNT_OF(alike)), *reduced = NULL;
    size_t n_others = 0;
    assert_true(marey__page_reduce_tree(tree, 3, &reduced, &n_others));
    assert_rows(reduced, rows, MAREY__COUNT_OF(rows));
    marey_table_destroy(reduced);
    marey_table_destroy(tree);
}

static void memory_that_runs_out_leaves_nothing_behind(void **state)
{
    (void)state;
    marey_table *tree = make(step, MAREY__COUNT_OF(step)), *reduced = NULL;
    size_t n_others = 0;
    bool is_done = false;
    for (uint64_t nth = 1; !is_done; nth++) {
        marey__alloc_fail_nth(nth);
        is_done = marey__page_reduce_tree(tree, 5, &reduced, &n_others);
        marey__alloc_fail_nth(0);
        assert_true(is_done == (reduced != NULL));
        assert_true(nth < 1000);
    }
    marey_table_destroy(reduced);
    marey_table_destroy(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_heaviest_stay_and_the_rest_is_folded_where_it_was),
        cmocka_unit_test(a_parent_without_a_time_of_its_own_stays_for_its_children),
        cmocka_unit_test(of_equals_the_first_stay),
        cmocka_unit_test(memory_that_runs_out_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
