/* A call tree that is too long for a page: the heaviest stay, and nothing of the rest's time is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "present/page_internal.h"

struct node {
    uint64_t depth;
    const char *name;
    uint64_t count, total_ns, self_ns;
};

static kymo_table *make(const struct node *nodes, size_t n)
{
    kymo_table *tree = NULL;
    assert_int_equal(kymo_table_create("tree", kymo__tree_columns, KYMO__N_TREE_COLUMNS, &tree),
                     KYMO_OK);
    for (size_t i = 0; i < n; i++) {
        kymo_table_u64(tree, nodes[i].depth);
        kymo_table_text(tree, nodes[i].name, strlen(nodes[i].name));
        kymo_table_u64(tree, nodes[i].count);
        kymo_table_u64(tree, nodes[i].total_ns);
        kymo_table_u64(tree, nodes[i].self_ns);
        kymo_table_f64(tree, (double)nodes[i].total_ns / 1000);
    }
    assert_int_equal(kymo_table_status(tree), KYMO_OK);
    return tree;
}

/* "0 step 2 100", a row each: depth, name, count, total. */
static void assert_rows(const kymo_table *table, const char *const *rows, size_t n)
{
    assert_int_equal(kymo_table_n_rows(table), n);
    for (size_t i = 0; i < n; i++) {
        char row[100];
        const struct kymo_cell name = kymo_table_cell(table, i, 1);
        snprintf(row, sizeof row, "%u %.*s %u %u", (unsigned)kymo_table_cell(table, i, 0).as.u64,
                 (int)name.len, name.as.text, (unsigned)kymo_table_cell(table, i, 2).as.u64,
                 (unsigned)kymo_table_cell(table, i, 3).as.u64);
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
    kymo_table *tree = make(step, KYMO__COUNT_OF(step)), *reduced = NULL;
    size_t n_others = 0;
    assert_true(kymo__page_reduce_tree(tree, 5, &reduced, &n_others));
    assert_rows(reduced, rows, KYMO__COUNT_OF(rows));
    assert_int_equal(n_others, 2);
    kymo_table_destroy(reduced);
    kymo_table_destroy(tree);
}

static void a_parent_without_a_time_of_its_own_stays_for_its_children(void **state)
{
    (void)state;
    static const struct node open[] = {
        {0, "quick", 1, 20, 20}, {0, "never ends", 0, 0, 0}, {1, "inside", 1, 90, 90}};
    static const char *const rows[] = {"0 never ends 0 0", "1 inside 1 90", "0 (1 other) 1 20"};
    kymo_table *tree = make(open, KYMO__COUNT_OF(open)), *reduced = NULL;
    size_t n_others = 0;
    assert_true(kymo__page_reduce_tree(tree, 2, &reduced, &n_others));
    assert_rows(reduced, rows, KYMO__COUNT_OF(rows));
    kymo_table_destroy(reduced);
    kymo_table_destroy(tree);
}

static void of_equals_the_first_stay(void **state)
{
    (void)state;
    static const struct node alike[] = {
        {0, "a", 1, 7, 0}, {1, "b", 1, 7, 7}, {0, "c", 1, 7, 0}, {1, "d", 1, 7, 7}};
    static const char *const rows[] = {"0 a 1 7", "1 b 1 7", "0 c 1 7", "1 (1 other) 1 7"};
    kymo_table *tree = make(alike, KYMO__COUNT_OF(alike)), *reduced = NULL;
    size_t n_others = 0;
    assert_true(kymo__page_reduce_tree(tree, 3, &reduced, &n_others));
    assert_rows(reduced, rows, KYMO__COUNT_OF(rows));
    kymo_table_destroy(reduced);
    kymo_table_destroy(tree);
}

static void memory_that_runs_out_leaves_nothing_behind(void **state)
{
    (void)state;
    kymo_table *tree = make(step, KYMO__COUNT_OF(step)), *reduced = NULL;
    size_t n_others = 0;
    bool is_done = false;
    for (uint64_t nth = 1; !is_done; nth++) {
        kymo__alloc_fail_nth(nth);
        is_done = kymo__page_reduce_tree(tree, 5, &reduced, &n_others);
        kymo__alloc_fail_nth(0);
        assert_true(is_done == (reduced != NULL));
        assert_true(nth < 1000);
    }
    kymo_table_destroy(reduced);
    kymo_table_destroy(tree);
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
