/* Attribution of joules to ranges, ranks, devices, runs; windows that are too short; text of the
 * report. */
#include "energy_plant.h"

static double constant_power(double t)
{
    (void)t;
    return 200;
}
static double constant_energy(double t)
{
    return 200 * t;
}
static double twice_power(double t)
{
    (void)t;
    return 400;
}
static double twice_energy(double t)
{
    return 400 * t;
}
static const struct curve steady = {constant_power, constant_energy},
                          twice = {twice_power, twice_energy};

static void plant_device(struct plant *plant, const char *device, const struct curve *curve,
                         double from, double to)
{
    plant_power(plant, device, curve, from, to, 20);
    plant_counter(plant, device, curve, from, to, 4);
}

static bool is_near(double value, double truth, double tolerance)
{
    if (fabs(value - truth) <= tolerance)
        return true;
    print_error("%.9g is not %.9g within %g\n", value, truth, tolerance);
    return false;
}

/* ---- ranges ---- */

static void a_range_counts_each_moment_once(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant, (const char *const[]){"devices", "GPU-a", NULL});
    log_put_lane(&plant.log, 2, 102, "helper");
    plant_device(&plant, "GPU-a", &steady, 0, 10);
    log_begin(&plant.log, 1000000000, 1);
    log_begin(&plant.log, 1500000000, 1); /* within itself */
    log_end(&plant.log, 2000000000, 1);
    log_end(&plant.log, 3000000000, 1);
    plant_range(&plant, 5, 6, 1);
    plant_words(&plant, 0);
    plant_range(&plant, 2, 4, 1); /* on another thread, and longer */
    log_put_words(&plant.log, 2, 0);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_int_equal(rows_in(report, "ranges"), 1);
    assert_int_equal((int)number_in(report, "ranges", 0, "count"), 4);
    assert_true(number_in(report, "ranges", 0, "duration_ns") == 4e9);
    assert_true(is_near(number_in(report, "ranges", 0, "joules"), 800, 1e-6));
    marey_report_destroy(report);
}

static void what_is_too_short_has_no_figure(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant, (const char *const[]){"devices", "GPU-a", NULL});
    plant_device(&plant, "GPU-a", &steady, 0, 10);
    for (int i = 0; i < 50; i++)
        plant_range(&plant, 1 + i * 0.1, 1.07 + i * 0.1, 1); /* 70 ms: below twice 50 ms */
    plant_range(&plant, 7, 7.11, 2);
    plant_words(&plant, 0);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    const size_t one = row_named(report, "ranges", "name", "one"),
                 two = row_named(report, "ranges", "name", "two");
    assert_true(cell_in(report, "ranges", one, "joules").is_null);
    assert_true(cell_in(report, "ranges", one, "mean_w").is_null);
    assert_string_equal(text_in(report, "ranges", one, "note"), "too short to say");
    assert_int_equal((int)number_in(report, "ranges", one, "count"), 50);
    assert_true(is_near(number_in(report, "ranges", two, "joules"), 22, 1e-6));
    marey_report_destroy(report);
}

/* Steps of 20 ms with a little between them: together they are long enough, and what lies between is in the ±. */
static void steps_that_follow_one_another_are_as_good_as_one(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant, (const char *const[]){"devices", "GPU-a", NULL});
    plant_device(&plant, "GPU-a", &steady, 0, 10);
    for (int i = 0; i < 200; i++)
        plant_range(&plant, 1 + i * 0.02, 1.019 + i * 0.02, 1); /* 19 ms of 20 */
    for (int i = 0; i < 100; i++)
        plant_range(&plant, 6 + i * 0.02, 6.01 + i * 0.02, 2); /* half of the time */
    plant_words(&plant, 0);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    const size_t one = row_named(report, "ranges", "name", "one"),
                 two = row_named(report, "ranges", "name", "two");
    assert_true(is_near(number_in(report, "ranges", one, "joules"), 200 * 0.019 * 200, 1e-6));
    assert_true(number_in(report, "ranges", one, "duration_ns") == 3.8e9);
    assert_true(is_near(number_in(report, "ranges", one, "mean_w"), 200, 1e-6));
    assert_true(number_in(report, "ranges", one, "plus_minus_j") > 199 * 0.001 * 200);
    assert_string_equal(text_in(report, "ranges", two, "note"), "too short to say");
    marey_report_destroy(report);
}

static void a_sensor_that_changes_slowly_makes_more_too_short(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant,
                (const char *const[]){
                    "devices", "GPU-a", "energy_sources",
                    "GPU-b|T4|power: x\nGPU-a|A100|power: instant, 200 readings, a new value "
                    "every 0.100 s; energy: the total counter",
                    NULL});
    plant_device(&plant, "GPU-a", &steady, 0, 10);
    plant_range(&plant, 1, 1.15, 1);
    plant_range(&plant, 2, 2.25, 2);
    plant_words(&plant, 0);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_string_equal(text_in(report, "devices", 0, "model"), "A100");
    assert_true(
        cell_in(report, "ranges", row_named(report, "ranges", "name", "one"), "joules").is_null);
    assert_true(is_near(
        number_in(report, "ranges", row_named(report, "ranges", "name", "two"), "joules"), 50, 1e-6));
    marey_report_destroy(report);
}

static void ranges_are_filtered(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant, NULL);
    plant_device(&plant, "GPU-a", &steady, 0, 10);
    plant_range(&plant, 1, 2, 1);
    plant_range(&plant, 2, 3, 3);
    plant_words(&plant, 0);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, (const char *const[]){"filter=t?r*", NULL});
    assert_int_equal(rows_in(report, "ranges"), 1);
    assert_string_equal(text_in(report, "ranges", 0, "name"), "three");
    assert_true(has_note(report, "the GPUs used by the processes are unknown"));
    marey_report_destroy(report);
}

static void iterations_come_in_groups_that_are_long_enough(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant, (const char *const[]){"devices", "GPU-a", NULL});
    plant_device(&plant, "GPU-a", &steady, 0, 10);
    log_iteration_begin(&plant.log, 0, 0);
    for (uint64_t i = 0; i < 100; i++) /* 0.1 s each, 8 samples */
        log_iteration(&plant.log, (i + 1) * 100000000, i, false, 8);
    log_phase(&plant.log, 10000000000, 2);
    plant_words(&plant, 0);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_int_equal(rows_in(report, "iterations"), 20); /* of five: 0.5 s are ten periods */
    assert_int_equal((int)number_in(report, "iterations", 3, "first"), 15);
    assert_int_equal((int)number_in(report, "iterations", 3, "last"), 19);
    assert_int_equal((int)number_in(report, "iterations", 3, "count"), 5);
    for (size_t row = 0; row < 20; row++)
        assert_true(is_near(number_in(report, "iterations", row, "joules"), 100, 1e-6));
    assert_true(is_near(number_in(report, "iterations", 3, "joules_per_sample"), 2.5, 1e-9));
    assert_true(is_near(number_in(report, "runs", 0, "joules_per_sample"), 2.5, 1e-9));
    marey_report_destroy(report);
    report = report_of(s->folder, (const char *const[]){"group=1", NULL});
    assert_int_equal(rows_in(report, "iterations"), 100);
    marey_report_destroy(report);
}

static void phases_and_their_times_add_up(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant, (const char *const[]){"devices", "GPU-a", NULL});
    plant_device(&plant, "GPU-a", &steady, 0, 10);
    log_phase(&plant.log, 0, 1);
    log_phase(&plant.log, 3000000000, 2);
    log_phase(&plant.log, 4000000000, 1);
    log_phase(&plant.log, 9000000000, 0);
    plant_words(&plant, 0);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_int_equal(rows_in(report, "phases"), 3);
    assert_string_equal(text_in(report, "phases", 0, "name"), "one");
    assert_true(is_near(number_in(report, "phases", 0, "joules"), 1600, 1e-6));
    assert_int_equal((int)number_in(report, "phases", 0, "count"), 2);
    assert_true(is_near(number_in(report, "phases", 1, "joules"), 200, 1e-6));
    /* With the time in no phase they come to the run. */
    const bool is_second = strcmp(text_in(report, "phases", 1, "name"), "(no phase)") == 0;
    assert_string_equal(text_in(report, "phases", is_second ? 1 : 2, "name"), "(no phase)");
    assert_true(is_near(number_in(report, "phases", 2, "joules"), 200, 1e-6));
    assert_true(is_near(number_in(report, "runs", 0, "joules"), 2000, 1e-6));
    marey_report_destroy(report);
}

/* ---- ranks and devices ---- */

static void a_device_nobody_uses_is_listed_and_not_counted(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant,
                (const char *const[]){"devices", "GPU-a", "energy_sources",
                                      "GPU-a|NVIDIA H200|power, energy\nGPU-b|T4|power", NULL});
    plant_device(&plant, "GPU-a", &steady, 0, 10);
    plant_device(&plant, "GPU-b", &twice, 0, 10);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_true(is_near(number_in(report, "runs", 0, "joules"), 2000, 1e-6));
    assert_int_equal((int)number_in(report, "runs", 0, "devices"), 1);
    assert_int_equal(rows_in(report, "devices"), 2);
    const size_t a = row_named(report, "devices", "device", "GPU-a"),
                 b = row_named(report, "devices", "device", "GPU-b");
    assert_int_equal((int)number_in(report, "devices", a, "used"), 1);
    assert_string_equal(text_in(report, "devices", a, "model"), "NVIDIA H200");
    assert_string_equal(text_in(report, "devices", a, "ranks"), "0");
    assert_int_equal((int)number_in(report, "devices", b, "used"), 0);
    assert_true(is_near(number_in(report, "devices", b, "joules"), 4000, 1e-6));
    assert_true(has_note(report, "not used by any process and not in the sums: GPU-b of testhost"));
    marey_report_destroy(report);
}

/* A second rank on the host, which measures nothing itself and is there from `from` to `to` seconds. */
static void plant_rank(const char *folder, const char *const *pairs, double from, double to)
{
    struct plant plant;
    plant_begin(&plant, pairs);
    plant.log.base_tick = (uint64_t)(from * 1e9);
    plant_range(&plant, from, to, 1);
    plant_words(&plant, 0);
    plant_finish(&plant, folder, "r1");
}

static void a_device_that_ranks_share_counts_once(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant, (const char *const[]){"devices", "GPU-a", NULL});
    plant_device(&plant, "GPU-a", &steady, 0, 10);
    plant_range(&plant, 2, 6, 1);
    plant_words(&plant, 0);
    plant_finish(&plant, s->folder, "r0");
    plant_rank(s->folder, (const char *const[]){"rank", "1", "devices", "GPU-a", NULL}, 4, 8);
    marey_report *report = report_of(s->folder, NULL);
    assert_true(is_near(number_in(report, "runs", 0, "joules"), 2000, 1e-6));
    assert_int_equal(rows_in(report, "devices"), 1);
    assert_int_equal((int)number_in(report, "devices", 0, "shared"), 1);
    assert_string_equal(text_in(report, "devices", 0, "ranks"), "0,1");
    assert_true(is_near(number_in(report, "ranges", 0, "joules"), 1200, 1e-6)); /* 2 to 8 s */
    assert_int_equal(rows_in(report, "ranks"), 2);
    assert_int_equal((int)number_in(report, "ranks", 1, "shared"), 1);
    assert_true(is_near(number_in(report, "ranks", 1, "joules"), 800, 1e-6));
    assert_int_equal(rows_in(report, "nodes"), 1);
    assert_true(is_near(number_in(report, "nodes", 0, "joules"), 2000, 1e-6));
    assert_true(has_note(report, "counted once in a run"));
    marey_report_destroy(report);
}

static void two_devices_of_two_ranks_add_up(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant, (const char *const[]){"devices", "GPU-a,GPU-b", "local_rank", "0", NULL});
    plant_device(&plant, "GPU-a", &steady, 0, 10);
    plant_device(&plant, "GPU-b", &twice, 0, 10);
    const uint32_t site = plant_site(&plant, "package-0", "energy");
    for (int i = 0; i <= 200; i++)
        plant_reading(&plant, site, i / 20.0, 7 + 50 * i / 20.0);
    plant_range(&plant, 0, 10, 1);
    plant_words(&plant, 0);
    plant_finish(&plant, s->folder, "r0");
    plant_rank(s->folder,
               (const char *const[]){"rank", "1", "devices", "GPU-a,GPU-b", "local_rank", "1", NULL},
               0, 10);
    marey_report *report = report_of(s->folder, NULL);
    assert_true(has_note(report, "each is assumed to use the one at its local rank"));
    assert_int_equal(rows_in(report, "runs"), 3);
    assert_true(is_near(
        number_in(report, "runs", row_named(report, "runs", "kind", "gpu"), "joules"), 6000, 1e-6));
    assert_true(is_near(
        number_in(report, "runs", row_named(report, "runs", "kind", "cpu"), "joules"), 500, 1e-6));
    assert_true(is_near(
        number_in(report, "runs", row_named(report, "runs", "kind", "all"), "joules"), 6500, 1e-6));
    assert_true(is_near(number_in(report, "runs", 0, "mean_w"), 600, 1e-6));
    assert_true(is_near(number_in(report, "ranks", 0, "joules"), 2000, 1e-6));
    assert_true(is_near(number_in(report, "ranks", 1, "joules"), 4000, 1e-6));
    assert_int_equal((int)number_in(report, "ranks", 1, "shared"), 0);
    marey_report_destroy(report);
}

static void streams_tell_which_devices_were_used(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant, (const char *const[]){"devices", "GPU-a,GPU-b", NULL});
    log_put_stream(&plant.log, 2, 1, 7, "");
    plant_device(&plant, "GPU-a", &steady, 0, 10);
    plant_device(&plant, "GPU-b", &twice, 0, 10);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_true(is_near(number_in(report, "runs", 0, "joules"), 4000, 1e-6));
    marey_report_destroy(report);
}

/* A process that sees all GPUs and uses one: utilization tells. */
static void a_device_on_which_nothing_ran_is_nobodys(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant, (const char *const[]){"devices", "GPU-a,GPU-b", NULL});
    plant_device(&plant, "GPU-a", &steady, 0, 10);
    plant_device(&plant, "GPU-b", &twice, 0, 10);
    const uint32_t a = plant_site(&plant, "GPU-a", "utilization"),
                   b = plant_site(&plant, "GPU-b", "utilization");
    for (int i = 0; i <= 10; i++) {
        plant_reading(&plant, a, i, i == 5 ? 7 : 0);
        plant_reading(&plant, b, i, 0);
    }
    plant_words(&plant, 1);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_true(is_near(number_in(report, "runs", 0, "joules"), 2000, 1e-6));
    assert_true(has_note(report, "not used by any process and not in the sums: GPU-b of testhost"));
    marey_report_destroy(report);
}

static void a_slice_of_mig_has_the_energy_of_its_gpu(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant, (const char *const[]){
                            "devices", "MIG-1", "energy_sources",
                            "GPU-a|H200|of the whole GPU, whose 7 MIG slices are not told apart; "
                            "missing: nothing\nGPU-b|H200|power: instant",
                            NULL});
    plant_device(&plant, "GPU-a", &steady, 0, 10);
    plant_device(&plant, "GPU-b", &twice, 0, 10);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_true(is_near(number_in(report, "runs", 0, "joules"), 2000, 1e-6));
    marey_report_destroy(report);
}

/* marey run --energy: a log of role "energy", which saw more of the run than the program's own log; or all of it. */
static void a_run_lasts_as_long_as_it_was_measured(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    for (int has_program = 0; has_program < 2; has_program++) {
        plant_begin(&plant, (const char *const[]){"role", "energy", "rank", "-1", NULL});
        plant_device(&plant, "GPU-a", &steady, 0, 10);
        plant_finish(&plant, s->folder, "measured");
        if (has_program)
            plant_rank(s->folder, (const char *const[]){"rank", "0", "devices", "GPU-a", NULL}, 4, 8);
        marey_report *report = report_of(s->folder, NULL);
        assert_int_equal(rows_in(report, "runs"), 1);
        assert_true(is_near(number_in(report, "runs", 0, "joules"), 2000, 1e-6));
        assert_int_equal(rows_in(report, "ranges"), (size_t)has_program);
        if (has_program)
            assert_true(is_near(number_in(report, "ranges", 0, "joules"), 800, 1e-6));
        marey_report_destroy(report);
    }
}

static double later_energy(double t)
{
    return 200 * t - 900; /* another origin */
}

static void a_process_that_goes_on_measuring_is_no_reset(void **state)
{
    const struct scratch *s = *state;
    const struct curve later = {constant_power, later_energy};
    struct plant plant;
    plant_begin(&plant, (const char *const[]){"devices", "GPU-a", NULL});
    plant_device(&plant, "GPU-a", &steady, 0, 5);
    plant_finish(&plant, s->folder, "r0");
    plant_begin(&plant, (const char *const[]){"rank", "1", "devices", "GPU-a", NULL});
    plant.log.base_tick = 6000000000;
    plant_device(&plant, "GPU-a", &later, 6, 12);
    plant_finish(&plant, s->folder, "r1");
    marey_report *report = report_of(s->folder, NULL);
    assert_int_equal(rows_in(report, "devices"), 1);
    /* Nobody was there between the fifth and the sixth second. */
    assert_true(is_near(number_in(report, "runs", 0, "joules"), 2200, 1e-6));
    assert_false(has_note(report, "reset"));
    assert_true(has_note(report, "power readings are missing for 1.00 s"));
    marey_report_destroy(report);
}

static void a_window_outside_the_measuring_is_reported(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant, (const char *const[]){"devices", "GPU-a", NULL});
    plant_device(&plant, "GPU-a", &steady, 2, 6);
    plant_range(&plant, 0, 8, 1);
    plant_range(&plant, 9, 10, 2);
    plant_words(&plant, 0);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_string_equal(text_in(report, "runs", 0, "note"), "partly measured");
    assert_true(is_near(number_in(report, "runs", 0, "joules"), 800, 25));
    assert_true(is_near(number_in(report, "runs", 0, "mean_w"), 200, 1e-6));
    const size_t two = row_named(report, "ranges", "name", "two");
    assert_string_equal(text_in(report, "ranges", two, "note"), "not measured");
    assert_true(cell_in(report, "ranges", two, "joules").is_null);
    marey_report_destroy(report);
}

static void other_quantities_are_means_over_time(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant, (const char *const[]){"devices", "GPU-a", NULL});
    plant_device(&plant, "GPU-a", &steady, 0, 10);
    const uint32_t use = plant_site(&plant, "GPU-a", "utilization"),
                   throttle = plant_site(&plant, "GPU-a", "throttle"),
                   heat = plant_site(&plant, "GPU-a", "temperature");
    for (int i = 1; i <= 100; i++) { /* each speaks for the tenth of a second before it */
        plant_reading(&plant, use, i / 10.0, i <= 50 ? 100 : 20);
        plant_reading(&plant, throttle, i / 10.0, i <= 25 ? 4 : 1);
        plant_reading(&plant, heat, i / 10.0, i == 30 ? 81 : 60);
    }
    plant_words(&plant, 1);
    plant_range(&plant, 4, 6, 1);
    plant_words(&plant, 0);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_true(is_near(number_in(report, "runs", 0, "utilization"), 0.6, 1e-9));
    assert_true(is_near(number_in(report, "ranges", 0, "utilization"), 0.6, 1e-9));
    assert_true(is_near(number_in(report, "runs", 0, "throttled"), 0.25, 1e-9));
    assert_true(is_near(number_in(report, "ranges", 0, "throttled"), 0, 1e-9));
    assert_true(is_near(number_in(report, "devices", 0, "temperature_c"), 81, 1e-9));
    assert_true(cell_in(report, "runs", 0, "sm_active").is_null);
    marey_report_destroy(report);
}

/* ---- runs ---- */

static void repeats_are_averaged_and_never_added(void **state)
{
    const struct scratch *s = *state;
    const struct curve *const curves[] = {&steady, &twice};
    struct plant plant;
    for (int run = 0; run < 2; run++) {
        char id[8], name[8];
        snprintf(id, sizeof id, "x-%d", run + 1);
        snprintf(name, sizeof name, "r%d", run);
        plant_begin(&plant, (const char *const[]){"run_id", id, "devices", "GPU-a", NULL});
        plant.log.base_tick = (uint64_t)run * 20000000000;
        plant_device(&plant, "GPU-a", curves[run], run * 20, run * 20 + 10);
        plant_finish(&plant, s->folder, name);
    }
    marey_report *report = report_of(s->folder, NULL);
    assert_int_equal(rows_in(report, "runs"), 2);
    assert_true(is_near(
        number_in(report, "runs", row_named(report, "runs", "run_id", "x-1"), "joules"), 2000, 1e-6));
    assert_true(is_near(
        number_in(report, "runs", row_named(report, "runs", "run_id", "x-2"), "joules"), 4000, 1e-6));
    assert_int_equal(rows_in(report, "repeats"), 1);
    assert_int_equal((int)number_in(report, "repeats", 0, "runs"), 2);
    assert_true(is_near(number_in(report, "repeats", 0, "mean_j"), 3000, 1e-6));
    /* Student's t for one degree of freedom is 12.706; the standard error is 1000. */
    assert_true(is_near(number_in(report, "repeats", 0, "high_j"), 3000 + 12706.2, 0.5));
    assert_int_equal(rows_in(report, "devices"), 2);
    marey_report_destroy(report);
}

static void carbon_is_energy_times_what_the_user_says(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant, (const char *const[]){"devices", "GPU-a", NULL});
    plant_device(&plant, "GPU-a", &steady, 0, 9);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, (const char *const[]){"co2=400", "pue=1.5", NULL});
    assert_true(is_near(number_in(report, "runs", 0, "co2_g"), 1800 / 3.6e6 * 400 * 1.5, 1e-9));
    marey_report_destroy(report);
}

static void wrong_options_and_nothing_to_tell_are_sentences(void **state)
{
    const struct scratch *s = *state;
    static const char *const wrong[] = {"co2=-1", "co2=nan", "pue=0.5", "pue=inf", "by=day"};
    marey_recording *recording = NULL;
    marey_report *report = NULL;
    struct plant plant;
    plant_begin(&plant, NULL);
    plant_range(&plant, 1, 2, 1);
    plant_words(&plant, 0);
    plant_finish(&plant, s->folder, "r0");
    assert_int_equal(marey_recording_open(s->folder, &recording), MAREY_OK);
    assert_int_equal(marey_report_is_there("energy", &recording, 1), 0);
    assert_int_equal(create_energy(recording, NULL, &report), MAREY_EFORMAT);
    assert_non_null(
        strstr(marey_last_error(), "has no energy in it: 'marey run --energy' records it"));
    for (size_t i = 0; i < MAREY__COUNT_OF(wrong); i++)
        assert_int_equal(create_energy(recording, (const char *const[]){wrong[i], NULL}, &report),
                         MAREY_EINVAL);
    marey_recording_close(recording);
}

/* ---- drawn ---- */

static void plant_everything(const char *folder)
{
    struct plant plant;
    plant_begin(&plant, (const char *const[]){"devices", "GPU-a", NULL});
    plant_device(&plant, "GPU-a", &steady, 0, 10);
    const uint32_t use = plant_site(&plant, "GPU-a", "utilization");
    for (int i = 0; i <= 20; i++)
        plant_reading(&plant, use, i / 2.0, 50);
    plant_words(&plant, 1);
    plant_epoch(&plant, 0, 0, true);
    log_phase(&plant.log, 0, 4);
    plant_range(&plant, 1, 4, 1);
    for (uint64_t i = 0; i < 10; i++)
        log_iteration(&plant.log, 4000000000 + i * 100000000, i, i == 0, 32);
    plant_epoch(&plant, 5, 0, false);
    plant_words(&plant, 0);
    plant_finish(&plant, folder, "r0");
    plant_rank(folder, (const char *const[]){"rank", "1", "devices", "GPU-a", NULL}, 4, 8);
}

static char *drawn(const marey_report *report, const char *format,
                   const struct marey_write_options *options)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_int_equal(marey_report_write(report, format, options, out), MAREY_OK);
    fclose(out);
    return text;
}

static void the_answer_comes_first(void **state)
{
    const struct scratch *s = *state;
    plant_everything(s->folder);
    marey_report *report = report_of(s->folder, NULL);
    char *text = drawn(report, "text", NULL),
         *few = drawn(report, "text", &(struct marey_write_options){.is_short = 1}),
         *one = drawn(report, "text", &(struct marey_write_options){.table = "epochs"}),
         *json = drawn(report, "json", NULL);
    static const char first[] = "energy, 1 GPU: 2 kJ ± 28.28 J in 10.0 s, mean 200 W, peak 200 W, ";
    assert_int_equal(strncmp(text, first, sizeof first - 1), 0);
    assert_non_null(strstr(text, "\niterations\n"));
    assert_null(strstr(few, "\niterations\n"));
    assert_non_null(strstr(few, "\nepochs\n"));
    assert_int_equal(strncmp(one, "epochs\n", 7), 0);
    assert_non_null(strstr(json, "\"runs\": ["));
    assert_non_null(strstr(json, "\"notes\": ["));
    assert_int_equal(
        marey_report_write(report, "text", &(struct marey_write_options){.table = "x"}, stdout),
        MAREY_EINVAL);
    free(text);
    free(few);
    free(one);
    free(json);
    marey_report_destroy(report);
}

static void every_failed_allocation_is_reported(void **state)
{
    const struct scratch *s = *state;
    marey_recording *recording = NULL;
    plant_everything(s->folder);
    assert_int_equal(marey_recording_open(s->folder, &recording), MAREY_OK);
    for (uint64_t nth = 1;; nth++) {
        marey_report *report = NULL;
        marey__alloc_fail_nth(nth);
        const marey_status status = create_energy(recording, NULL, &report);
        marey__alloc_fail_nth(0);
        marey_report_destroy(report);
        if (status == MAREY_OK)
            break;
        assert_int_equal(status, MAREY_ENOMEM);
    }
    marey_recording_close(recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(a_range_counts_each_moment_once),
        SCRATCH_TEST(what_is_too_short_has_no_figure),
        SCRATCH_TEST(steps_that_follow_one_another_are_as_good_as_one),
        SCRATCH_TEST(a_sensor_that_changes_slowly_makes_more_too_short),
        SCRATCH_TEST(ranges_are_filtered),
        SCRATCH_TEST(iterations_come_in_groups_that_are_long_enough),
        SCRATCH_TEST(phases_and_their_times_add_up),
        SCRATCH_TEST(a_device_nobody_uses_is_listed_and_not_counted),
        SCRATCH_TEST(a_device_that_ranks_share_counts_once),
        SCRATCH_TEST(two_devices_of_two_ranks_add_up),
        SCRATCH_TEST(streams_tell_which_devices_were_used),
        SCRATCH_TEST(a_device_on_which_nothing_ran_is_nobodys),
        SCRATCH_TEST(a_slice_of_mig_has_the_energy_of_its_gpu),
        SCRATCH_TEST(a_run_lasts_as_long_as_it_was_measured),
        SCRATCH_TEST(a_process_that_goes_on_measuring_is_no_reset),
        SCRATCH_TEST(a_window_outside_the_measuring_is_reported),
        SCRATCH_TEST(other_quantities_are_means_over_time),
        SCRATCH_TEST(repeats_are_averaged_and_never_added),
        SCRATCH_TEST(carbon_is_energy_times_what_the_user_says),
        SCRATCH_TEST(wrong_options_and_nothing_to_tell_are_sentences),
        SCRATCH_TEST(the_answer_comes_first),
        SCRATCH_TEST(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
