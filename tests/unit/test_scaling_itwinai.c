/* itwinai's tables of a scaling report, and how they are drawn: its columns, keys below their titles, no sums of repeats. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base_internal.h"
#include "table_view.h"
#include <marey/scaling.h>

static void add(marey_scaling_runs *runs, const char *strategy, uint32_t workers, double epoch_s,
                double joules)
{
    const double epochs[] = {3 * epoch_s, epoch_s, epoch_s};
    const struct marey_scaling_run run = {
        .experiment = "e",
        .strategy = strategy,
        .name = "job",
        .workers = workers,
        .samples_per_epoch = NAN,
        .batch = NAN,
        .epoch_s = epochs,
        .n_epochs = 3,
        .compute_s = NAN,
        .communication_s = NAN,
        .memory_s = NAN,
        .idle_s = NAN,
        .joules = joules,
        .utilization = isnan(joules) ? NAN : 0.8,
        .computation_fraction = workers == 2 ? 0.625 : NAN,
        .computation_vs_communication = NAN,
    };
    assert_int_equal(marey_scaling_runs_add(runs, &run), MAREY_OK);
}

/* One worker twice, two twice, and another strategy. */
static marey_scaling *make(void)
{
    marey_scaling_runs *runs = NULL;
    marey_scaling *scaling = NULL;
    assert_int_equal(marey_scaling_runs_create(&runs), MAREY_OK);
    add(runs, "torch-ddp", 1, 8, 1000);
    add(runs, "torch-ddp", 1, 8, 1000);
    add(runs, "torch-ddp", 2, 5, 3600);
    add(runs, "torch-ddp", 2, 5, 7200);
    add(runs, "horovod", 2, 6, NAN);
    assert_int_equal(marey_scaling_create(runs, NULL, &scaling), MAREY_OK);
    marey_scaling_runs_destroy(runs);
    return scaling;
}

static marey_table *table_of(marey_scaling *scaling, const char *name)
{
    marey_table *table = NULL;
    assert_int_equal(marey_scaling_itwinai(scaling, name, &table), MAREY_OK);
    return table;
}

static char *drawn(const marey_table *table)
{
    char *text = NULL;
    size_t len = 0;
    FILE *const out = open_memstream(&text, &len);
    assert_int_equal(marey_present_presto(table, out), MAREY_OK);
    fclose(out);
    return text;
}

static void epochs_have_a_baseline_for_each_strategy(void **state)
{
    (void)state;
    marey_scaling *scaling = make();
    marey_table *table = table_of(scaling, "epoch");
    char *text = drawn(table);
    /* clang-format off */
    assert_string_equal(text,
" strategy   |   global_world_size | avg_epoch_time   | interval       | speedup   | efficiency   |   runs\n"
"------------+---------------------+------------------+----------------+-----------+--------------+--------\n"
" torch-ddp  |                   1 | 8.00 s           | 8.00 .. 8.00 s | 1.00      | 100.0 %      |      2\n"
" torch-ddp  |                   2 | 5.00 s           | 5.00 .. 5.00 s | 1.60      | 80.0 %       |      2\n"
" horovod    |                   2 | 6.00 s           |                | 1.00      | 100.0 %      |      1\n");
    /* clang-format on */
    free(text);
    marey_table_destroy(table);
    marey_scaling_destroy(scaling);
}

static void energy_of_repeats_is_not_added_up(void **state)
{
    (void)state;
    marey_scaling *scaling = make();
    marey_table *table = table_of(scaling, "gpu");
    assert_int_equal(marey_table_n_rows(table), 2);
    assert_string_equal(table_cell(table, 0, "total_energy_wh").as.text, "0.28 Wh");
    assert_string_equal(table_cell(table, 1, "total_energy_wh").as.text, "1.50 Wh");
    assert_string_equal(table_cell(table, 1, "utilization").as.text, "80.00 %");
    marey_table_destroy(table);
    marey_scaling_destroy(scaling);
}

static void fractions_stand_below_their_titles(void **state)
{
    (void)state;
    marey_scaling *scaling = make();
    marey_table *table = table_of(scaling, "computation");
    assert_int_equal(marey_table_n_rows(table), 2);
    assert_string_equal(table_cell(table, 0, "strategy").as.text, "torch-ddp");
    assert_int_equal(table_number(table, 0, "num_gpus"), 2);
    assert_string_equal(table_cell(table, 0, "computation_fraction").as.text, "62.50 %");
    marey_table_destroy(table);
    marey_table *other = table_of(scaling, "communication");
    assert_int_equal(marey_table_n_rows(other), 0);
    marey_table_destroy(other);
    marey_scaling_destroy(scaling);
}

static void another_name_is_refused(void **state)
{
    (void)state;
    marey_scaling *scaling = make();
    marey_table *table = NULL;
    assert_int_equal(marey_scaling_itwinai(scaling, "none", &table), MAREY_EINVAL);
    assert_null(table);
    marey_scaling_destroy(scaling);
}

static void every_failed_allocation_is_told(void **state)
{
    (void)state;
    marey_scaling *scaling = make();
    FILE *const out = fopen("/dev/null", "w");
    assert_non_null(out);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey_table *table = NULL;
        marey__alloc_fail_nth(nth);
        status = marey_scaling_itwinai(scaling, "gpu", &table);
        if (status == MAREY_OK)
            status = marey_present_presto(table, out);
        marey__alloc_fail_nth(0);
        marey_table_destroy(table);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
    }
    fclose(out);
    marey_scaling_destroy(scaling);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_have_a_baseline_for_each_strategy),
        cmocka_unit_test(energy_of_repeats_is_not_added_up),
        cmocka_unit_test(fractions_stand_below_their_titles),
        cmocka_unit_test(another_name_is_refused),
        cmocka_unit_test(every_failed_allocation_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
