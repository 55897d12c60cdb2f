/* itwinai's tables of a scaling report, and how they are drawn: its columns, keys below their titles, no sums of repeats. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base_internal.h"
#include "table_view.h"
#include <kymo/scaling.h>

static void add(kymo_scaling_runs *runs, const char *strategy, uint32_t workers, double epoch_s,
                double joules)
{
    const double epochs[] = {3 * epoch_s, epoch_s, epoch_s};
    const struct kymo_scaling_run run = {
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
    assert_int_equal(kymo_scaling_runs_add(runs, &run), KYMO_OK);
}

/* One worker twice, two twice, and another strategy. */
static kymo_scaling *make(void)
{
    kymo_scaling_runs *runs = NULL;
    kymo_scaling *scaling = NULL;
    assert_int_equal(kymo_scaling_runs_create(&runs), KYMO_OK);
    add(runs, "torch-ddp", 1, 8, 1000);
    add(runs, "torch-ddp", 1, 8, 1000);
    add(runs, "torch-ddp", 2, 5, 3600);
    add(runs, "torch-ddp", 2, 5, 7200);
    add(runs, "horovod", 2, 6, NAN);
    assert_int_equal(kymo_scaling_create(runs, NULL, &scaling), KYMO_OK);
    kymo_scaling_runs_destroy(runs);
    return scaling;
}

static kymo_table *table_of(kymo_scaling *scaling, const char *name)
{
    kymo_table *table = NULL;
    assert_int_equal(kymo_scaling_itwinai(scaling, name, &table), KYMO_OK);
    return table;
}

static char *drawn(const kymo_table *table)
{
    char *text = NULL;
    size_t len = 0;
    FILE *const out = open_memstream(&text, &len);
    assert_int_equal(kymo_present_presto(table, out), KYMO_OK);
    fclose(out);
    return text;
}

static void epochs_have_a_baseline_for_each_strategy(void **state)
{
    (void)state;
    kymo_scaling *scaling = make();
    kymo_table *table = table_of(scaling, "epoch");
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
    kymo_table_destroy(table);
    kymo_scaling_destroy(scaling);
}

static void energy_of_repeats_is_not_added_up(void **state)
{
    (void)state;
    kymo_scaling *scaling = make();
    kymo_table *table = table_of(scaling, "gpu");
    assert_int_equal(kymo_table_n_rows(table), 2);
    assert_string_equal(table_cell(table, 0, "total_energy_wh").as.text, "0.28 Wh");
    assert_string_equal(table_cell(table, 1, "total_energy_wh").as.text, "1.50 Wh");
    assert_string_equal(table_cell(table, 1, "utilization").as.text, "80.00 %");
    kymo_table_destroy(table);
    kymo_scaling_destroy(scaling);
}

static void fractions_stand_below_their_titles(void **state)
{
    (void)state;
    kymo_scaling *scaling = make();
    kymo_table *table = table_of(scaling, "computation");
    assert_int_equal(kymo_table_n_rows(table), 2);
    assert_string_equal(table_cell(table, 0, "strategy").as.text, "torch-ddp");
    assert_int_equal(table_number(table, 0, "num_gpus"), 2);
    assert_string_equal(table_cell(table, 0, "computation_fraction").as.text, "62.50 %");
    kymo_table_destroy(table);
    kymo_table *other = table_of(scaling, "communication");
    assert_int_equal(kymo_table_n_rows(other), 0);
    kymo_table_destroy(other);
    kymo_scaling_destroy(scaling);
}

static void another_name_is_refused(void **state)
{
    (void)state;
    kymo_scaling *scaling = make();
    kymo_table *table = NULL;
    assert_int_equal(kymo_scaling_itwinai(scaling, "none", &table), KYMO_EINVAL);
    assert_null(table);
    kymo_scaling_destroy(scaling);
}

static void every_failed_allocation_is_told(void **state)
{
    (void)state;
    kymo_scaling *scaling = make();
    FILE *const out = fopen("/dev/null", "w");
    assert_non_null(out);
    kymo_status status = KYMO_ENOMEM;
    for (uint64_t nth = 1; status != KYMO_OK; nth++) {
        kymo_table *table = NULL;
        kymo__alloc_fail_nth(nth);
        status = kymo_scaling_itwinai(scaling, "gpu", &table);
        if (status == KYMO_OK)
            status = kymo_present_presto(table, out);
        kymo__alloc_fail_nth(0);
        kymo_table_destroy(table);
        assert_true(status == KYMO_OK || status == KYMO_ENOMEM);
    }
    fclose(out);
    kymo_scaling_destroy(scaling);
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
