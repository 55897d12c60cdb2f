/* Tables and quantile sketches. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/internal.h"

static const struct marey_column columns[] = {
    {"name", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"total_ns", "total", MAREY_TYPE_U64, MAREY_UNIT_NS},
    {"delta", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},
    {"share", NULL, MAREY_TYPE_F64, MAREY_UNIT_SHARE},
    {"is_gpu", NULL, MAREY_TYPE_BOOL, MAREY_UNIT_NONE},
};

static marey_table *make_table(void)
{
    marey_table *table = NULL;
    assert_int_equal(marey_table_create("t", columns, MAREY__COUNT_OF(columns), &table), MAREY_OK);
    return table;
}

static void put_row(marey_table *table, const char *name, uint64_t total)
{
    marey_table_text(table, name, strlen(name));
    marey_table_u64(table, total);
    marey_table_i64(table, -(int64_t)total);
    marey_table_f64(table, (double)total / 100);
    marey_table_bool(table, 7);
}

static void cells_come_back_as_they_went_in(void **state)
{
    (void)state;
    marey_table *table = make_table();
    put_row(table, "one", 1);
    marey_table_text(table, "a\0b", 3);
    for (int i = 0; i < 4; i++)
        marey_table_null(table);
    assert_int_equal(marey_table_n_rows(table), 2);
    assert_int_equal(marey_table_n_columns(table), 5);
    assert_int_equal(marey_table_find(table, "share"), 3);
    assert_int_equal(marey_table_find(table, "total"), -1);
    assert_string_equal(marey_table_column(table, 1)->title, "total");
    assert_string_equal(marey_table_column(table, 0)->title, "name");
    assert_null(marey_table_column(table, 5));
    assert_string_equal(marey_table_cell(table, 0, 0).as.text, "one");
    assert_int_equal(marey_table_cell(table, 0, 1).as.u64, 1);
    assert_int_equal(marey_table_cell(table, 0, 2).as.i64, -1);
    assert_true(marey_table_cell(table, 0, 3).as.f64 == 0.01);
    assert_int_equal(marey_table_cell(table, 0, 4).as.u64, 1);
    assert_int_equal(marey_table_cell(table, 1, 0).len, 3);
    assert_memory_equal(marey_table_cell(table, 1, 0).as.text, "a\0b", 4);
    assert_true(marey_table_cell(table, 1, 1).is_null);
    assert_true(marey_table_cell(table, 2, 0).is_null);
    assert_int_equal(marey_table_status(table), MAREY_OK);
    marey_table_destroy(table);
    marey_table_destroy(NULL);
}

static void a_lent_text_stays_while_rows_are_added(void **state)
{
    (void)state;
    marey_table *table = make_table();
    put_row(table, "first", 0);
    const char *lent = marey_table_cell(table, 0, 0).as.text;
    for (uint64_t i = 0; i < 20000; i++)
        put_row(table, "another name", i);
    assert_string_equal(lent, "first");
    assert_ptr_equal(lent, marey_table_cell(table, 0, 0).as.text);
    marey_table_destroy(table);
}

static void a_cell_of_another_type_is_reported(void **state)
{
    (void)state;
    marey_table *table = make_table();
    put_row(table, "good", 1);
    marey_table_u64(table, 1);
    put_row(table, "after", 2);
    assert_int_equal(marey_table_status(table), MAREY_EINVAL);
    assert_int_equal(marey_table_n_rows(table), 1);
    marey_table_destroy(table);
}

static const char *name_at(const marey_table *table, size_t row)
{
    return marey_table_cell(table, row, 0).as.text;
}

static void sorting_is_stable_with_nulls_last(void **state)
{
    (void)state;
    marey_table *table = make_table();
    put_row(table, "a", 2);
    marey_table_text(table, "null", 4);
    for (int i = 0; i < 4; i++)
        marey_table_null(table);
    put_row(table, "b", 3);
    put_row(table, "c", 2);
    put_row(table, "d", 1);
    marey_table_sort(table, 1, 1);
    const char *const descending[] = {"b", "a", "c", "d", "null"};
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(name_at(table, i), descending[i]);
    marey_table_sort(table, 2, 1); /* the negative numbers */
    const char *const by_delta[] = {"d", "a", "c", "b", "null"};
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(name_at(table, i), by_delta[i]);
    marey_table_sort(table, 0, 0);
    const char *const by_name[] = {"a", "b", "c", "d", "null"};
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(name_at(table, i), by_name[i]);
    assert_true(marey_table_cell(table, 3, 3).as.f64 == 0.01);
    marey_table_truncate(table, 2);
    assert_int_equal(marey_table_n_rows(table), 2);
    marey_table_destroy(table);
}

static void a_table_without_memory_has_whole_rows(void **state)
{
    (void)state;
    for (uint64_t nth = 1;; nth++) {
        marey_table *table = NULL;
        marey__alloc_fail_nth(nth);
        marey_status status = marey_table_create("t", columns, MAREY__COUNT_OF(columns), &table);
        if (status == MAREY_OK) {
            for (uint64_t i = 0; i < 40; i++)
                put_row(table, "name", i);
            marey_table_sort(table, 1, 1);
            status = marey_table_status(table);
            assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
            for (size_t row = 0; row < marey_table_n_rows(table); row++)
                assert_string_equal(name_at(table, row), "name");
        }
        marey__alloc_fail_nth(0);
        marey_table_destroy(table);
        if (status == MAREY_OK)
            break;
        assert_int_equal(status, MAREY_ENOMEM);
        assert_true(nth < 1000);
    }
}

/* ---- sketches ---- */

static void few_values_are_exact(void **state)
{
    (void)state;
    struct marey__sketch sketch = {0};
    const uint64_t values[] = {1000003, 5, 77777};
    for (size_t i = 0; i < 3; i++)
        assert_true(marey__sketch_add(&sketch, values[i]));
    assert_int_equal(marey__sketch_quantile(&sketch, 0.5), 77777);
    assert_int_equal(marey__sketch_quantile(&sketch, 0), 5);
    assert_int_equal(marey__sketch_quantile(&sketch, 1), 1000003);
    assert_int_equal(sketch.min, 5);
    assert_int_equal(sketch.max, 1000003);
    assert_int_equal(sketch.sum, 1077785);
    marey__sketch_fini(&sketch);
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    return *x ^= *x << 17;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void quantiles_are_within_eight_in_a_thousand(void **state)
{
    (void)state;
    enum { N = 20000 };
    static uint64_t values[N];
    uint64_t seed = 42;
    struct marey__sketch sketch = {0};
    for (size_t i = 0; i < N; i++) {
        values[i] = next_random(&seed) >> (next_random(&seed) % 64);
        assert_true(marey__sketch_add(&sketch, values[i]));
    }
    qsort(values, N, sizeof values[0], by_value);
    const double qs[] = {0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1};
    for (size_t i = 0; i < MAREY__COUNT_OF(qs); i++) {
        const double exact = (double)values[(size_t)ceil(qs[i] * N) - 1];
        const double got = (double)marey__sketch_quantile(&sketch, qs[i]);
        assert_true(fabs(got - exact) <= 0.008 * exact);
    }
    marey__sketch_fini(&sketch);
}

static void merging_equals_adding_to_one(void **state)
{
    (void)state;
    struct marey__sketch parts[3] = {{0}}, all = {0}, merged = {0};
    uint64_t seed = 7;
    for (size_t i = 0; i < 3000; i++) {
        const uint64_t value = next_random(&seed) % 1000000;
        assert_true(marey__sketch_add(&parts[i < 3 ? 0 : 1 + i % 2], value));
        assert_true(marey__sketch_add(&all, value));
    }
    for (size_t i = 0; i < 3; i++)
        assert_true(marey__sketch_merge(&merged, &parts[i]));
    assert_int_equal(merged.count, all.count);
    assert_int_equal(merged.sum, all.sum);
    assert_int_equal(merged.min, all.min);
    assert_int_equal(merged.max, all.max);
    for (double q = 0; q <= 1; q += 0.01)
        assert_int_equal(marey__sketch_quantile(&merged, q), marey__sketch_quantile(&all, q));
    for (size_t i = 0; i < 3; i++)
        marey__sketch_fini(&parts[i]);
    marey__sketch_fini(&all);
    marey__sketch_fini(&merged);
}

/* Sums of 3, of 1000 and of 2 values, beside single ones: counts and sums are exact, each is its mean. */
static void a_sum_counts_as_so_many_of_its_mean(void **state)
{
    (void)state;
    struct marey__sketch sketch = {0};
    assert_true(marey__sketch_add_sum(&sketch, 31, 3));
    assert_int_equal(sketch.count, 3);
    assert_int_equal(marey__sketch_quantile(&sketch, 0.5), 10);
    assert_null(sketch.pages);
    assert_true(marey__sketch_add(&sketch, 7));
    assert_true(marey__sketch_add_sum(&sketch, 1000000, 1000));
    assert_true(marey__sketch_add_sum(&sketch, 40001, 2));
    assert_int_equal(sketch.count, 1006);
    assert_int_equal(sketch.sum, 1040039);
    assert_int_equal(sketch.min, 7);
    assert_int_equal(sketch.max, 20000);
    assert_in_range(marey__sketch_quantile(&sketch, 0.5), 992, 1008);
    marey__sketch_fini(&sketch);
    /* So many that none is kept by itself. */
    assert_true(marey__sketch_add_sum(&sketch, 600, 6));
    assert_non_null(sketch.pages);
    assert_int_equal(marey__sketch_quantile(&sketch, 1), 100);
    marey__sketch_fini(&sketch);
}

static void the_ends_of_the_scale_fit(void **state)
{
    (void)state;
    struct marey__sketch sketch = {0};
    for (size_t i = 0; i < 10; i++) {
        assert_true(marey__sketch_add(&sketch, 0));
        assert_true(marey__sketch_add(&sketch, UINT64_MAX));
        assert_true(marey__sketch_add(&sketch, 63));
        assert_true(marey__sketch_add(&sketch, 64));
    }
    assert_int_equal(marey__sketch_quantile(&sketch, 0), 0);
    assert_int_equal(marey__sketch_quantile(&sketch, 0.5), 63);
    assert_int_equal(marey__sketch_quantile(&sketch, 0.75), 64);
    assert_true(marey__sketch_quantile(&sketch, 1) > UINT64_MAX / 128 * 126);
    marey__sketch_fini(&sketch);
    assert_int_equal(marey__sketch_quantile(&sketch, 0.5), 0);
}

static void a_sketch_without_memory_leaks_nothing(void **state)
{
    (void)state;
    bool done = false;
    for (uint64_t nth = 1; !done; nth++) {
        struct marey__sketch a = {0}, b = {0};
        marey__alloc_fail_nth(nth);
        done = true;
        for (uint64_t i = 0; i < 40; i++)
            done = marey__sketch_add(&a, i * i * i) && done;
        done = marey__sketch_merge(&b, &a) && done;
        marey__alloc_fail_nth(0);
        marey__sketch_fini(&a);
        marey__sketch_fini(&b);
        assert_true(nth < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_come_back_as_they_went_in),
        cmocka_unit_test(a_lent_text_stays_while_rows_are_added),
        cmocka_unit_test(a_cell_of_another_type_is_reported),
        cmocka_unit_test(sorting_is_stable_with_nulls_last),
        cmocka_unit_test(a_table_without_memory_has_whole_rows),
        cmocka_unit_test(few_values_are_exact),
        cmocka_unit_test(quantiles_are_within_eight_in_a_thousand),
        cmocka_unit_test(merging_equals_adding_to_one),
        cmocka_unit_test(a_sum_counts_as_so_many_of_its_mean),
        cmocka_unit_test(the_ends_of_the_scale_fit),
        cmocka_unit_test(a_sketch_without_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
