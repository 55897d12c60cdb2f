/* Scaling: grouping of runs, comparisons, and messages. */
#include <stdlib.h>

#include "scaling_maker.h"

static int setup(void **state)
{
    struct marey__scaling_runs *runs = NULL;
    const marey_status status = (runs = runs_create()) != NULL ? MAREY_OK : MAREY_ENOMEM;
    *state = runs;
    return status != MAREY_OK;
}

static int teardown(void **state)
{
    runs_destroy(*state);
    return 0;
}

static const double TEN[] = {10, 10, 10}, FIVE[] = {5, 5, 5}, THREE[] = {3, 3, 3};

/* ---- the list ---- */

static void a_run_is_copied(void **state)
{
    char name[] = "x", strategy[] = "y";
    double epochs[] = {1, 2}, joules[] = {3, NAN}, steps[] = {4};
    struct marey__scaling_run run = run_with(strategy, 7);
    run.name = name;
    run.epoch_s = epochs;
    run.epoch_j = joules;
    run.n_epochs = 2;
    run.step_s = steps;
    run.n_steps = 1;
    add(*state, &run);
    name[0] = strategy[0] = '!';
    epochs[1] = joules[0] = steps[0] = 99;
    const struct marey__scaling_run *kept = ((struct marey__scaling_runs *)*state)->list;
    assert_int_equal(((struct marey__scaling_runs *)*state)->n, 1);
    assert_string_equal(kept->name, "x");
    assert_string_equal(kept->strategy, "y");
    assert_string_equal(kept->experiment, "");
    assert_true(kept->epoch_s[1] == 2 && kept->epoch_j[0] == 3 && isnan(kept->epoch_j[1]));
    assert_true(kept->step_s[0] == 4 && kept->workers == 7);
}

static void times_that_are_none_are_refused(void **state)
{
    const double wrong[] = {0, -1, NAN, INFINITY};
    struct marey__scaling_run run = run_with("s", 1);
    for (size_t i = 0; i < MAREY__COUNT_OF(wrong); i++) {
        run.epoch_s = &wrong[i];
        run.n_epochs = 1;
        run.n_steps = 0;
        assert_int_equal(marey__scaling_runs_add(*state, &run), MAREY_EINVAL);
        assert_non_null(strstr(marey_last_error(), "a run: epoch 0 takes"));
        run.step_s = &wrong[i];
        run.n_steps = 1;
        run.n_epochs = 0;
        assert_int_equal(marey__scaling_runs_add(*state, &run), MAREY_EINVAL);
    }
    run = run_with("s", 0);
    assert_int_equal(marey__scaling_runs_add(*state, &run), MAREY_EINVAL);
    assert_int_equal(((struct marey__scaling_runs *)*state)->n, 0);
}

static void nothing_to_scale_is_an_error(void **state)
{
    marey_report *scaling = NULL;
    assert_int_equal(scaling_create(*state, NULL, &scaling), MAREY_EFORMAT);
    const struct marey__scaling_run run = run_with("s", 2);
    add(*state, &run);
    assert_int_equal(scaling_create(*state, NULL, &scaling), MAREY_EFORMAT);
    assert_non_null(strstr(marey_last_error(), "none of 1 runs"));
    add_epochs(*state, "s", 1, TEN, 3);
    assert_int_equal(
        scaling_create(*state, &(struct marey__scaling_options){.measure = "step"}, &scaling),
        MAREY_EFORMAT);
    assert_null(scaling);
}

/* ---- points ---- */

static void repeats_are_never_summed(void **state)
{
    add_epochs(*state, "s", 1, TEN, 3);
    add_epochs(*state, "s", 1, TEN, 3);
    add_epochs(*state, "s", 1, TEN, 2);
    add_epochs(*state, "s", 2, FIVE, 3);
    add_epochs(*state, "s", 2, FIVE, 3);
    struct marey__scaling_run run = run_with("s", 4);
    const double joules[] = {9, 7, 7, 7};
    const double epochs[] = {9, 3, 3, 3};
    run.epoch_s = epochs;
    run.epoch_j = joules;
    run.n_epochs = 4;
    add(*state, &run);
    add(*state, &run);
    marey_report *scaling = scale_with(*state, NULL);
    assert_int_equal(n_rows(scaling, "points"), 3);
    assert_int_equal(n_rows(scaling, "runs"), 7);
    const double times[] = {10, 5, 3};
    const uint64_t n_runs[] = {3, 2, 2}, n_epochs[] = {8, 6, 6};
    for (size_t i = 0; i < 3; i++) {
        assert_true(real(scaling, "points", i, "time_s") == times[i]);
        assert_true(real(scaling, "points", i, "low_s") == times[i]);
        assert_true(real(scaling, "points", i, "high_s") == times[i]);
        assert_int_equal(whole(scaling, "points", i, "runs"), n_runs[i]);
        assert_int_equal(whole(scaling, "points", i, "epochs"), n_epochs[i]);
    }
    assert_true(real(scaling, "points", 2, "joules_per_epoch") == 7);
    assert_true(real(scaling, "points", 2, "energy_delay") == 21);
    expect_note(scaling, "energy is not known with 1 and 2 workers");
    marey_report_destroy(scaling);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double naive_median(const double *values, size_t n)
{
    double sorted[16];
    memcpy(sorted, values, n * sizeof *values);
    qsort(sorted, n, sizeof *sorted, compare_doubles);
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

/* Series with other grids and another baseline each, other numbers of repeats and epochs at each point. */
static void speedup_is_that_of_brute_force(void **state)
{
    const struct {
        const char *strategy;
        uint32_t workers[4];
    } series[] = {{"ddp", {1, 2, 4, 8}}, {"deepspeed", {4, 16, 24, 100}}, {"horovod", {3, 5, 6, 7}}};
    double want[3][4];
    uint64_t seed = 42;
    for (size_t round = 0; round < 3; round++) /* runs of the series come in turns */
        for (size_t s = 0; s < 3; s++)
            for (size_t p = round; p < 4; p += 3) {
                double medians[8];
                const size_t n_runs = 1 + (s + p) % 4;
                for (size_t r = 0; r < n_runs; r++) {
                    double epochs[12];
                    const size_t n = 2 + (s + 3 * p + r) % 9;
                    for (size_t i = 0; i < n; i++)
                        epochs[i] = 50 / (double)series[s].workers[p] + 3 +
                                    (double)(next_number(&seed) % 1000) / 500;
                    add_epochs(*state, series[s].strategy, series[s].workers[p], epochs, n);
                    medians[r] = naive_median(epochs, n);
                }
                want[s][p] = naive_median(medians, n_runs);
            }
    marey_report *scaling = scale_with(*state, NULL);
    assert_int_equal(n_rows(scaling, "points"), 12);
    for (size_t s = 0; s < 3; s++)
        for (size_t p = 0; p < 4; p++) {
            const size_t row = 4 * s + p;
            const double ratio = (double)series[s].workers[p] / series[s].workers[0],
                         speedup = want[s][0] / want[s][p];
            assert_string_equal(text(scaling, "points", row, "strategy"), series[s].strategy);
            assert_int_equal(whole(scaling, "points", row, "workers"), series[s].workers[p]);
            assert_true(real(scaling, "points", row, "time_s") == want[s][p]);
            expect_near(real(scaling, "points", row, "speedup"), speedup, 1e-12);
            expect_near(real(scaling, "points", row, "ideal"), ratio, 1e-12);
            expect_near(real(scaling, "points", row, "efficiency"), speedup / ratio, 1e-12);
            expect_near(real(scaling, "points", row, "worker_hours"),
                        series[s].workers[p] * want[s][p] / 3600, 1e-12);
            if (p == 0) {
                assert_true(cell(scaling, "points", row, "karp_flatt").is_null);
                continue;
            }
            expect_near(real(scaling, "points", row, "karp_flatt"),
                        (1 / speedup - 1 / ratio) / (1 - 1 / ratio), 1e-9);
            assert_true(real(scaling, "points", row, "speedup_low") < speedup);
            assert_true(real(scaling, "points", row, "speedup_high") > speedup);
        }
    expect_note(scaling, "deepspeed: there is no run with one worker; speedup is against 4");
    marey_report_destroy(scaling);
}

static void experiments_are_apart(void **state)
{
    struct marey__scaling_run run = run_with("s", 1);
    run.epoch_s = TEN;
    run.n_epochs = 3;
    run.experiment = "a";
    add(*state, &run);
    run.experiment = "as"; /* "as" and "" are not "a" and "s" */
    run.strategy = "";
    add(*state, &run);
    marey_report *scaling = scale_with(*state, NULL);
    assert_int_equal(n_rows(scaling, "points"), 2);
    assert_string_equal(text(scaling, "points", 0, "experiment"), "a");
    assert_string_equal(text(scaling, "points", 1, "experiment"), "as");
    expect_note(scaling, "a, s: one run with 1 worker");
    marey_report_destroy(scaling);
}

/* ---- strong and weak ---- */

static void add_work(struct marey__scaling_runs *runs, uint32_t workers, const double *epochs,
                     double samples)
{
    struct marey__scaling_run run = run_with("s", workers);
    run.epoch_s = epochs;
    run.n_epochs = 3;
    run.numbers.samples_per_epoch = samples;
    add(runs, &run);
}

static void equal_work_is_strong_scaling(void **state)
{
    add_work(*state, 1, TEN, 1000);
    add_work(*state, 2, FIVE, 1002); /* ranks that round up */
    marey_report *scaling = scale_with(*state, NULL);
    assert_string_equal(text(scaling, "points", 1, "kind"), "strong");
    assert_true(real(scaling, "points", 1, "speedup") == 2);
    assert_true(real(scaling, "points", 1, "throughput") == 1002 / 5.0);
    assert_true(real(scaling, "points", 0, "throughput") == 100);
    assert_false(has_note(scaling, "are not known"));
    marey_report_destroy(scaling);
}

static void work_that_grows_as_workers_is_weak_scaling(void **state)
{
    add_work(*state, 2, FIVE, 1000);
    add_work(*state, 4, TEN, 2000);
    marey_report *scaling = scale_with(*state, NULL);
    assert_string_equal(text(scaling, "points", 1, "kind"), "weak");
    assert_true(real(scaling, "points", 1, "speedup") == 1); /* twice the work in twice the time */
    assert_true(real(scaling, "points", 1, "efficiency") == 0.5);
    assert_true(cell(scaling, "points", 1, "karp_flatt").is_null); /* two points have no trend */
    marey_report_destroy(scaling);
    scaling = scale_with(*state, &(struct marey__scaling_options){.kind = "strong"});
    assert_string_equal(text(scaling, "points", 1, "kind"), "strong");
    assert_true(real(scaling, "points", 1, "speedup") == 0.5);
    marey_report_destroy(scaling);
}

static void work_that_grows_in_another_way_is_reported_by_throughput(void **state)
{
    add_work(*state, 1, TEN, 1000);
    add_work(*state, 4, TEN, 2000);
    marey_report *scaling = scale_with(*state, NULL);
    assert_string_equal(text(scaling, "points", 1, "kind"), "mixed");
    assert_true(real(scaling, "points", 1, "speedup") == 2);
    expect_note(scaling, "neither the same for all workers nor grow as workers do");
    marey_report_destroy(scaling);
}

static void unknown_work_is_assumed_to_be_equal_and_a_note_says_so(void **state)
{
    add_work(*state, 1, TEN, NAN);
    add_work(*state, 2, FIVE, 1000);
    marey_report *scaling = scale_with(*state, NULL);
    assert_string_equal(text(scaling, "points", 1, "kind"), "unknown");
    assert_true(real(scaling, "points", 1, "speedup") == 2);
    expect_note(scaling, "samples of an epoch are not known");
    marey_report_destroy(scaling);
    scaling = scale_with(*state, &(struct marey__scaling_options){.kind = "weak"});
    assert_string_equal(text(scaling, "points", 1, "kind"), "weak");
    assert_true(real(scaling, "points", 1, "speedup") == 4);
    marey_report_destroy(scaling);
}

/* ---- which epochs count ---- */

static void the_first_epoch_warms_up(void **state)
{
    const double epochs[] = {50, 10, 11, 12};
    struct marey__scaling_run run = run_with("s", 1);
    run.epoch_s = epochs;
    run.n_epochs = 4;
    add(*state, &run);
    marey_report *scaling = scale_with(*state, NULL);
    assert_true(real(scaling, "points", 0, "time_s") == 11);
    assert_int_equal(whole(scaling, "points", 0, "epochs"), 3);
    marey_report_destroy(scaling);
    scaling = scale_with(*state, &(struct marey__scaling_options){.with_first = 1});
    assert_true(real(scaling, "points", 0, "time_s") == 11.5);
    marey_report_destroy(scaling);
    run.workers = 2;
    run.first_epoch_counts = 1;
    add(*state, &run);
    run.workers = 3;
    run.first_epoch_counts = 0;
    run.n_epochs = 1;
    add(*state, &run);
    scaling = scale_with(*state, NULL);
    assert_true(real(scaling, "points", 1, "time_s") == 11.5);
    assert_true(real(scaling, "points", 2, "time_s") == 50);
    assert_true(cell(scaling, "points", 2, "low_s").is_null);
    expect_note(scaling, "there is no epoch but the first with 3 workers");
    expect_note(scaling, "a single run does not show how much runs differ");
    marey_report_destroy(scaling);
}

static void a_run_that_stopped_half_way_counts_by_its_whole_epochs(void **state)
{
    const double epochs[] = {50, 10, 12};
    struct marey__scaling_run run = run_with("s", 1);
    run.epoch_s = epochs;
    run.n_epochs = 3;
    add(*state, &run);
    run.name = "killed";
    run.is_partial = 1;
    run.n_epochs = 2;
    add(*state, &run);
    run.name = "killed early"; /* its warm-up is no time where others have better ones */
    run.n_epochs = 1;
    add(*state, &run);
    run.name = "killed at once";
    run.n_epochs = 0;
    add(*state, &run);
    marey_report *scaling = scale_with(*state, NULL);
    assert_true(real(scaling, "points", 0, "time_s") == 10.5);
    assert_int_equal(whole(scaling, "points", 0, "runs"), 2);
    assert_int_equal(n_rows(scaling, "runs"), 4);
    expect_note(scaling, "killed, 1 worker, stopped half-way: 1 whole epoch of it counts");
    expect_note(scaling, "killed at once, 1 worker, stopped half-way: it does not count");
    expect_note(scaling, "killed early, 1 worker has no epoch but the first");
    marey_report_destroy(scaling);
}

static void repeats_that_disagree_are_flagged(void **state)
{
    const double other[] = {12, 12, 12};
    add_epochs(*state, "s", 1, TEN, 3);
    add_epochs(*state, "s", 1, other, 3);
    add_epochs(*state, "s", 2, FIVE, 3);
    add_epochs(*state, "s", 2, FIVE, 3);
    marey_report *scaling = scale_with(*state, NULL);
    expect_near(real(scaling, "points", 0, "spread"), 2 / 11.0, 1e-12);
    assert_true(whole(scaling, "points", 0, "disagrees") == 1);
    assert_true(whole(scaling, "points", 1, "disagrees") == 0);
    assert_true(real(scaling, "points", 1, "spread") == 0);
    expect_note(scaling, "with 1 worker the medians of 2 runs differ by 18.2 %");
    assert_false(has_note(scaling, "with 2 workers the medians"));
    /* What runs at one worker differ by is expected of the others as well. */
    assert_true(real(scaling, "points", 1, "low_s") < 5);
    marey_report_destroy(scaling);
}

/* Common sense of many calm points does not make one that is plainly noisy look calm. */
static void a_noisy_point_among_calm_ones_keeps_its_interval(void **state)
{
    const double calm[][2] = {{99, 99}, {100, 100}, {101, 101}},
                 noisy[][2] = {{60, 60}, {100, 100}, {140, 140}};
    for (uint32_t workers = 1; workers <= 12; workers++)
        for (size_t i = 0; i < 3; i++)
            add_epochs(*state, "s", workers, workers == 7 ? noisy[i] : calm[i], 2);
    marey_report *scaling = scale_with(*state, NULL);
    assert_true(real(scaling, "points", 6, "low_s") < 65);
    assert_true(real(scaling, "points", 6, "high_s") > 155);
    assert_true(real(scaling, "points", 0, "low_s") > 80);
    marey_report_destroy(scaling);
}

static void points_without_a_time_are_left_out_and_said(void **state)
{
    add_epochs(*state, "s", 1, TEN, 3);
    const struct marey__scaling_run run = run_with("s", 2);
    add(*state, &run);
    add_epochs(*state, "s", 4, THREE, 3);
    marey_report *scaling = scale_with(*state, NULL);
    assert_int_equal(n_rows(scaling, "points"), 2);
    assert_int_equal(whole(scaling, "points", 1, "workers"), 4);
    expect_note(scaling, "no times of epochs with 2 workers");
    marey_report_destroy(scaling);
}

/* ---- steps ---- */

static void add_steps(struct marey__scaling_runs *runs, uint32_t workers, double first, double batch)
{
    double steps[1000];
    for (size_t i = 0; i < 1000; i++)
        steps[i] = first + (double)(i % 3) * 0.01 * first;
    struct marey__scaling_run run = run_with("s", workers);
    run.step_s = steps;
    run.n_steps = 1000;
    run.numbers.batch = batch;
    run.numbers.compute_s = first / 2;
    run.numbers.communication_s = first / 4;
    run.numbers.memory_s = first / 8;
    run.numbers.idle_s = first / 8;
    run.numbers.utilization = 0.5;
    add(runs, &run);
}

static void steps_tell_where_there_are_no_epochs(void **state)
{
    add_steps(*state, 1, 1, 64);
    add_steps(*state, 4, 1.25, 256);
    struct marey__scaling_run run =
        run_with("s", 4); /* of unknown parts: it does not spoil their sum */
    const double step = 1.2625;
    run.numbers.compute_s = 77;
    run.step_s = &step;
    run.n_steps = 1;
    run.numbers.batch = 256;
    add(*state, &run);
    marey_report *scaling = scale_with(*state, NULL);
    assert_string_equal(text(scaling, "points", 0, "measure"), "step");
    assert_string_equal(text(scaling, "points", 1, "kind"), "weak");
    expect_near(real(scaling, "points", 0, "time_s"), 1.01, 1e-12);
    expect_near(real(scaling, "points", 0, "step_s"), 1.01, 1e-12);
    expect_near(real(scaling, "points", 0, "throughput"), 64 / 1.01, 1e-12);
    expect_near(real(scaling, "points", 1, "efficiency"), 0.8, 1e-12);
    const char *const parts[] = {"compute_s", "communication_s", "memory_s", "idle_s"};
    double sum = 0;
    for (size_t i = 0; i < 4; i++)
        sum += real(scaling, "points", 1, parts[i]);
    expect_near(sum, 1.25, 1e-12);
    assert_true(real(scaling, "points", 1, "utilization") == 0.5);
    marey_report_destroy(scaling);
}

static void a_measure_can_be_chosen(void **state)
{
    add_epochs(*state, "s", 1, TEN, 3);
    add_epochs(*state, "s", 2, FIVE, 3);
    add_steps(*state, 1, 1, 64);
    add_steps(*state, 2, 1, 64);
    marey_report *scaling = scale_with(*state, NULL);
    assert_string_equal(text(scaling, "points", 0, "measure"), "epoch");
    assert_int_equal(whole(scaling, "points", 0, "runs"), 1);
    expect_near(real(scaling, "points", 1, "step_s"), 1.01, 1e-12);
    marey_report_destroy(scaling);
    scaling = scale_with(*state, &(struct marey__scaling_options){.measure = "step"});
    assert_string_equal(text(scaling, "points", 0, "measure"), "step");
    expect_near(real(scaling, "points", 1, "speedup"), 1, 1e-12);
    marey_report_destroy(scaling);
}

/* ---- energy and the best ---- */

static void add_energy(struct marey__scaling_runs *runs, uint32_t workers, double seconds,
                       double joules)
{
    const double epochs[] = {99, seconds, seconds}, energy[] = {999, joules, NAN};
    struct marey__scaling_run run = run_with("s", workers);
    run.epoch_s = epochs;
    run.epoch_j = energy;
    run.n_epochs = 3;
    run.numbers.samples_per_epoch = 100;
    add(runs, &run);
}

static void the_best_is_another_for_time_and_for_energy(void **state)
{
    add_energy(*state, 1, 100, 1000);
    add_energy(*state, 2, 60, 1100); /* 66 kJs, the least of all */
    add_energy(*state, 4, 50, 1800);
    marey_report *scaling = scale_with(*state, NULL);
    const struct {
        const char *what;
        uint64_t workers;
        double value;
    } want[] = {{"time", 4, 50}, {"energy", 1, 1000}, {"energy_delay", 2, 66000}};
    size_t n_found = 0;
    for (size_t row = 0; row < n_rows(scaling, "best"); row++)
        for (size_t i = 0; i < 3; i++) {
            if (strcmp(text(scaling, "best", row, "for"), want[i].what) != 0 ||
                whole(scaling, "best", row, "measured") == 0)
                continue;
            assert_int_equal(whole(scaling, "best", row, "workers"), want[i].workers);
            expect_near(real(scaling, "best", row, "value"), want[i].value, 1e-12);
            n_found++;
        }
    assert_int_equal(n_found, 3);
    assert_true(real(scaling, "points", 1, "joules_per_sample") == 11);
    expect_near(real(scaling, "points", 1, "energy_efficiency"), 1000 / 1100.0, 1e-12);
    marey_report_destroy(scaling);
}

static void energy_of_the_whole_run_serves_and_is_said(void **state)
{
    const double epochs[] = {20, 10, 10};
    struct marey__scaling_run run = run_with("s", 1);
    run.epoch_s = epochs;
    run.n_epochs = 3;
    run.numbers.joules = 600;
    add(*state, &run);
    marey_report *scaling = scale_with(*state, NULL);
    assert_true(real(scaling, "points", 0, "joules_per_epoch") == 200);
    assert_true(real(scaling, "runs", 0, "joules") == 600);
    expect_note(scaling, "that of the run over its epochs with 1 worker");
    marey_report_destroy(scaling);
}

/* ---- complete reports ---- */

static void fill(struct marey__scaling_runs *runs, bool is_reversed)
{
    static const char *const names[] = {"a", "b", "c"};
    for (size_t i = 0; i < 12; i++) {
        const size_t k = is_reversed ? 11 - i : i;
        const uint32_t workers = 1u << k / 3;
        double epochs[6];
        uint64_t seed = 100 + k;
        for (size_t e = 0; e < 6; e++)
            epochs[e] = 20.0 / workers + 1 + 0.1 * next_normal(&seed);
        struct marey__scaling_run run = run_with("s", workers);
        run.name = names[k % 3];
        run.epoch_s = epochs;
        run.n_epochs = 6;
        add(runs, &run);
    }
}

static void the_order_of_runs_changes_nothing(void **state)
{
    struct marey__scaling_runs *reversed = runs_create();
    fill(*state, false);
    fill(reversed, true);
    marey_report *a = scale_with(*state, NULL), *b = scale_with(reversed, NULL);
    const char *const tables[] = {"points", "fits", "forecast"};
    for (size_t t = 0; t < 3; t++) {
        const marey_table *x = marey_report_table(a, tables[t]),
                          *y = marey_report_table(b, tables[t]);
        assert_int_equal(marey_table_n_rows(x), marey_table_n_rows(y));
        for (size_t row = 0; row < marey_table_n_rows(x); row++)
            for (size_t column = 0; column < marey_table_n_columns(x); column++) {
                const struct marey_cell p = marey_table_cell(x, row, column),
                                        q = marey_table_cell(y, row, column);
                if (marey_table_column(x, column)->type != MAREY_TYPE_TEXT)
                    assert_int_equal(p.as.u64, q.as.u64); /* the same bits */
            }
    }
    marey_report_destroy(a);
    marey_report_destroy(b);
    runs_destroy(reversed);
}

static void notes_of_readers_are_reported(void **state)
{
    add_epochs(*state, "s", 1, TEN, 3);
    assert_int_equal(marey__scaling_runs_note(*state, "x.csv: line 3 has no number"), MAREY_OK);
    marey_report *scaling = scale_with(*state, NULL);
    expect_note(scaling, "x.csv: line 3 has no number");
    assert_null(marey_report_table(scaling, "nothing"));
    marey_report_destroy(scaling);
}

/* Whatever a file may say, each cell is a finite number or null. */
static void strange_numbers_do_no_harm(void **state)
{
    const double strange[] = {1e-300, 1e300, 1e-9, 5};
    const uint32_t workers[] = {1, 2, UINT32_MAX - 1, UINT32_MAX};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++) {
            const double epochs[] = {1, strange[i], strange[k]}, joules[] = {-1, INFINITY, 1e308};
            struct marey__scaling_run run = run_with("s", workers[i]);
            run.epoch_s = epochs;
            run.epoch_j = joules;
            run.n_epochs = 3;
            run.numbers.samples_per_epoch = strange[3 - i];
            run.numbers.batch = -5;
            run.numbers.joules = INFINITY;
            run.numbers.compute_s = 1e308;
            run.numbers.communication_s = 1e308;
            run.numbers.memory_s = run.numbers.idle_s = 0;
            add(*state, &run);
        }
    marey_report *scaling = scale_with(*state, &(struct marey__scaling_options){.n_resamples = 100});
    const char *const tables[] = {"points", "fits", "forecast", "best", "runs"};
    for (size_t t = 0; t < 5; t++) {
        const marey_table *table = marey_report_table(scaling, tables[t]);
        for (size_t row = 0; row < marey_table_n_rows(table); row++)
            for (size_t column = 0; column < marey_table_n_columns(table); column++)
                if (marey_table_column(table, column)->type == MAREY_TYPE_F64)
                    assert_true(isfinite(marey_table_cell(table, row, column).as.f64));
    }
    marey_report_destroy(scaling);
}

static marey_status make_all(void)
{
    const double epochs[] = {10, 9, 8};
    struct marey__scaling_run run = run_with("s", 1);
    run.epoch_s = run.epoch_j = run.step_s = epochs;
    run.n_epochs = run.n_steps = 3;
    struct marey__scaling_runs *runs = NULL;
    marey_report *scaling = NULL;
    marey_status status = (runs = runs_create()) != NULL ? MAREY_OK : MAREY_ENOMEM;
    if (status == MAREY_OK)
        status = marey__scaling_runs_note(runs, "a note");
    for (uint32_t i = 0; status == MAREY_OK && i < 20; i++) {
        run.workers = 1 + i / 2;
        run.strategy = i < 10 ? "s" : "t";
        status = marey__scaling_runs_add(runs, &run);
    }
    if (status == MAREY_OK)
        status = scaling_create(runs, &(struct marey__scaling_options){.n_resamples = 100}, &scaling);
    assert_true(status != MAREY_OK || n_rows(scaling, "points") == 10);
    marey_report_destroy(scaling);
    runs_destroy(runs);
    return status;
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey__alloc_fail_nth(nth);
        status = make_all();
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_run_is_copied),
        TEST(times_that_are_none_are_refused),
        TEST(nothing_to_scale_is_an_error),
        TEST(repeats_are_never_summed),
        TEST(speedup_is_that_of_brute_force),
        TEST(experiments_are_apart),
        TEST(equal_work_is_strong_scaling),
        TEST(work_that_grows_as_workers_is_weak_scaling),
        TEST(work_that_grows_in_another_way_is_reported_by_throughput),
        TEST(unknown_work_is_assumed_to_be_equal_and_a_note_says_so),
        TEST(the_first_epoch_warms_up),
        TEST(a_run_that_stopped_half_way_counts_by_its_whole_epochs),
        TEST(repeats_that_disagree_are_flagged),
        TEST(a_noisy_point_among_calm_ones_keeps_its_interval),
        TEST(points_without_a_time_are_left_out_and_said),
        TEST(steps_tell_where_there_are_no_epochs),
        TEST(a_measure_can_be_chosen),
        TEST(the_best_is_another_for_time_and_for_energy),
        TEST(energy_of_the_whole_run_serves_and_is_said),
        TEST(the_order_of_runs_changes_nothing),
        TEST(notes_of_readers_are_reported),
        TEST(strange_numbers_do_no_harm),
        TEST(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
